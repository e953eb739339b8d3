import { options, render } from 'preact';
import { HOUR, MINUTE } from '../contract/durations.ts';
import { escapeText } from '../contract/visible-text.ts';
import { readView, viewOf, withView } from './address.ts';
import { App } from './app.tsx';
import { createBooking, keptForm, readKeptForm } from './booking.ts';
import { change } from './change.ts';
import { type PageContext, say } from './context.ts';
import { createLoading } from './loading.ts';
import { createLogin } from './login.ts';
import { createNews } from './news.ts';
import type { Page } from './page-props.ts';
import { createForgetting, createReservationActions } from './reservation-actions.ts';
import { routeBetween } from './route.ts';
import { createServerClock } from './server-clock.ts';
import { createService } from './service.ts';
import { SessionBar } from './session-bar.tsx';
import { focusReservation, leadToForm } from './sights.ts';
import { createStore, whenChanged } from './signals.ts';
import { type Action, calendarOf, mayDo, openState, type State } from './state.ts';
import { openStorage } from './storage.ts';
import type { TimelineAction } from './timeline/model.ts';
import { lengthText, ownSentence, refusalText, tagsText, wishSentence } from './words.ts';
import { OWN_ZONE, ZONES } from './zones.ts';

// When an action has returned, the page shows it: what has the focus then is there.
options.debounceRendering = (run) => run();
// All text is shown as text, with its invisible characters as codes.
options.vnode = (node) => {
  const { props }: { props: unknown } = node;
  if (typeof props === 'string') Object.assign(node, { props: escapeText(props) });
};

/** The address below which the page's files lie: `…/ui/`. */
const base = new URL('.', import.meta.url);
const lasting = openStorage('localStorage', base.pathname);
const passing = openStorage('sessionStorage', base.pathname);
const zone = ZONES.find((one) => one === lasting.get('zone')) ?? OWN_ZONE;
const clock = createServerClock(Date.now);
/** Milliseconds. */
const ADDRESS_DELAY = 300;
const TICK = 15_000;
const later = (milliseconds: number, run: () => void): (() => void) => {
  const timer = setTimeout(run, milliseconds);
  return () => clearTimeout(timer);
};

// The state

const first = openState(clock.now(), zone, readKeptForm(passing.get('draft')));
// Time goes on with every action; moves of the timeline are too many for that.
const store = createStore<State, Action>(first, (state, action) =>
  change(action.type === 'timeline' ? state : { ...state, now: clock.now(), ahead: clock.ahead }, action),
);
const begin = (): void => store.dispatch({ type: 'unsaid', since: 'begun' });

// The actions

const service = createService({
  base,
  secret: () => lasting.get('session'),
  async fetch(url, init) {
    const hear = clock.ask();
    const reply = await window.fetch(url, init);
    hear(reply.headers.get('date'));
    return reply;
  },
});
const context: PageContext = {
  ...{ store, service, base, lasting, passing },
  look: () => news.look(),
  lost: () => news.lost(),
  failed(error) {
    say(context, 'Something went wrong in this page. Reload it; what you typed is kept.', 'page');
    reportError(error);
  },
};
const login = createLogin(context);
const booking = createBooking({
  ...{ store, service, later },
  newKey: () => crypto.randomUUID(),
  done({ experiment, wish, draft }, reservation) {
    store.dispatch({ type: 'changed', experiment, reservation });
    const isAtForm = wish.id === undefined || draft.isDragged;
    if (!isAtForm) focusReservation(reservation.id);
    const sentence = ownSentence(reservation, calendarOf(store.state));
    const length = lengthText(wish.period, reservation);
    const tags = wish.id === undefined ? `\n${tagsText(reservation)}` : '';
    const text = `${wish.id === undefined ? 'Booked' : 'Changed'}: ${sentence}.${tags}`;
    say(context, length + text, isAtForm ? 'form' : { id: reservation.id }, length === '');
    context.look();
  },
  refused({ wish }, { facts }, isSettled) {
    const calendar = calendarOf(store.state);
    const why = refusalText(facts, calendar);
    const it = `${wish.id === undefined ? 'Not booked' : 'Not changed'}: ${wishSentence(wish, calendar)}. `;
    say(context, isSettled ? it + why : why, 'form');
  },
  unanswered: context.lost,
  loggedOut() {
    store.dispatch({ type: 'login-ended' });
    store.dispatch({ type: 'learnt', facts: { isDoubted: true } });
    context.look();
  },
  failed: context.failed,
});
/** The view before a reload or a login. */
const seen = readView(location.search);
const move = (action: TimelineAction): void => store.dispatch({ type: 'timeline', action });
if (seen.window) move({ type: 'moved', window: seen.window, unit: seen.unit });
else if (seen.unit) move({ type: 'unit', unit: seen.unit });
const loading = createLoading(context, login, (links) => {
  store.dispatch({ type: 'learnt', facts: { stale: links } });
  booking.refresh();
});
const news = createNews({
  ...{ identify: loading.identify, open: loading.open, ask: loading.askForNews, tell: loading.tell },
  ...{ now: clock.now, later, failed: context.failed },
  show(reach) {
    store.dispatch({ type: 'learnt', facts: { reach } });
    if (reach.isAway) store.dispatch({ type: 'unsaid', since: 'passed' });
  },
});
const act = createReservationActions(context, booking);
const forget = createForgetting(context, booking);
/** Whether what is done now is done by a key. */
let isByKey = false;
for (const type of ['keydown', 'pointerdown']) {
  addEventListener(
    type,
    () => {
      isByKey = type === 'keydown';
    },
    true,
  );
}
const page: Page = {
  ...{ store, lasting, booking, login, service, begin, move },
  act: (action, own) => void act(action, own),
  forget: () => void forget(),
  pick(selected, draft) {
    store.dispatch({ type: 'learnt', facts: { selected } });
    if (!mayDo(store.state, 'create')) return;
    // A start within this minute would be in the past when the request is sent.
    const isNow = typeof draft.start === 'number' && draft.start < store.state.now + MINUTE;
    booking.fill(isNow ? { ...draft, start: 'now' } : draft);
    if (isByKey && selected.site2 !== '') leadToForm();
  },
  loadEnded: loading.loadEnded,
  choose(id) {
    begin();
    const experiment = store.state.login?.experiments.find((one) => one.id === id);
    store.dispatch({ type: 'chosen', experiment });
    context.look();
  },
};

// What is shown

const header = document.querySelector('header');
const main = document.querySelector('main');
if (!header || !main) throw new Error('this is another page');
const bar = document.createElement('div');
header.append(bar);
render(<SessionBar page={page} />, bar);
main.replaceChildren();
render(<App page={page} />, main);

// What is kept

// What a form holds is kept for its tab.
whenChanged(
  store,
  ({ draft, sent, owner }) => ({ draft, sent, owner }),
  (form) => passing.set('draft', keptForm(form)),
);
// The experiment is remembered for the next time.
whenChanged(
  store,
  ({ chosen }) => ({ id: chosen?.id }),
  ({ id }) => {
    if (id !== undefined) lasting.set('experiment', id);
  },
);
// What is looked at is kept in the address. Browsers refuse an address that changes too often.
let callOff = (): void => {};
whenChanged(
  store,
  (state) => ({ ...viewOf(state), isKnown: state.network !== undefined }),
  ({ isKnown }) => {
    callOff();
    if (!isKnown) return;
    callOff = later(ADDRESS_DELAY, () => {
      const query = withView(location.search, viewOf(store.state));
      if (query !== location.search) history.replaceState(null, '', location.pathname + query);
    });
  },
);

// What happens by itself

// The wish that the draft means may change by itself, as at midnight.
whenChanged(
  store,
  ({ answer }) => ({ moved: answer.kind === 'moved' ? answer : undefined }),
  ({ moved }) => {
    if (moved) booking.refresh();
  },
);
whenChanged(
  store,
  ({ now: time }) => ({ quarter: Math.floor(time / (15 * MINUTE)) }),
  () => move({ type: 'elapsed' }),
);
whenChanged(
  store,
  ({ network }) => ({ network }),
  ({ network }) => {
    const { link } = seen;
    if (network && link && routeBetween(network.links, link))
      store.dispatch({ type: 'learnt', facts: { selected: link } });
  },
);
// The user is known, or that the server does not answer.
whenChanged(
  store,
  ({ login: known, reach }) => ({ isReady: known !== undefined || reach.isAway }),
  ({ isReady }) => {
    if (isReady) document.body.classList.add('ready');
  },
);
whenChanged(
  store,
  ({ now }) => ({ hour: Math.floor(now / HOUR) }),
  () => context.look(),
);

// What happens around the page

const doubt = (): void => store.dispatch({ type: 'learnt', facts: { isDoubted: true } });
document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    news.pause();
    return;
  }
  doubt();
  news.resume();
});
addEventListener('online', context.look);
// Somebody has logged in or out in another tab.
addEventListener('storage', (event) => {
  if (!lasting.concerns(event, 'session')) return;
  doubt();
  if (!document.hidden) context.look();
});
// A page that comes back from the browser's history is as it was left.
addEventListener('pageshow', ({ persisted }) => {
  if (!persisted) return;
  doubt();
  context.look();
});
// Time passes also while nothing happens.
setInterval(() => {
  if (!document.hidden) store.dispatch({ type: 'tick' });
}, TICK);
if (!document.hidden) news.resume();
