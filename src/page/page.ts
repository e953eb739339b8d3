import { DAY, HOUR, MINUTE } from '../contract/durations.ts';
import { clockOf, instantText } from '../words/civil-time.ts';
import { readView, viewOf, withView } from './address.ts';
import { createBooking, keptForm, readKeptForm } from './booking.ts';
import { BookingForm } from './booking-form.ts';
import { change } from './change.ts';
import { type PageContext, say } from './context.ts';
import { type Draft, draftOf, picked, startedAt } from './draft.ts';
import { element, setText } from './elements.ts';
import { createLoading } from './loading.ts';
import { createLogin } from './login.ts';
import { createMap } from './map/map.ts';
import { createNews } from './news.ts';
import { createNotice } from './notice.ts';
import { createForgetting, createReservationActions } from './reservation-actions.ts';
import { createReservationList } from './reservation-list.ts';
import { routeBetween } from './route.ts';
import { createServerClock } from './server-clock.ts';
import { createService, type Link, type NetworkFacts, Unanswered } from './service.ts';
import { createSessionBar } from './session-bar.ts';
import {
  type Action,
  calendarOf,
  draftRoute,
  formParts,
  linkRows,
  mayDo,
  openState,
  readForm,
  routeParts,
  type Selected,
  type State,
  shownRoute,
  timelineTerms,
  useAt,
} from './state.ts';
import { openStorage } from './storage.ts';
import { createStore, remembered } from './store.ts';
import type { TimelineAction } from './timeline/model.ts';
import { Timeline } from './timeline/timeline.ts';
import { createWelcome, RESERVATION } from './welcome.ts';
import {
  awayText,
  clockText,
  lengthText,
  ownSentence,
  refusalText,
  tagsText,
  wishSentence,
} from './words.ts';

/** The address below which the page's files lie: `…/ui/`. */
const base = new URL('.', import.meta.url);
const lasting = openStorage('localStorage', base.pathname);
const passing = openStorage('sessionStorage', base.pathname);
const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const zones = [...new Set([ownZone, 'UTC', ...Intl.supportedValuesOf('timeZone')])];
const zone = zones.find((one) => one === lasting.get('zone')) ?? ownZone;
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
const select = (selected: Selected | undefined): void =>
  store.dispatch({ type: 'learnt', facts: { selected } });
const routeOf = remembered(routeParts, shownRoute);
const routeOfDraft = remembered(routeParts, draftRoute);

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
    if (!isAtForm) list.focus(reservation.id);
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
  views?.timeline.refresh(linkRows(store.state, links));
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
const forget = createForgetting(context, booking);
const act = createReservationActions(context, booking, {
  focusForm: () => views?.form.focus(),
  focusReservation: (id) => list.focus(id),
  scrollToTimeline: () => views?.timeline.element.scrollIntoView({ block: 'nearest' }),
});

// The views

const away = element('p', { class: 'away', role: 'alert', hidden: true });
const wrongClock = element('p', { class: 'away', role: 'status', hidden: true });
const notice = createNotice({ later, dispatch: store.dispatch });
const list = createReservationList({
  act: (action, own) => void act(action, own),
  filter: (filter) => store.dispatch({ type: 'learnt', facts: { filter } }),
  wantEnded: () => void loading.loadEnded(),
});
function choose(id: string): void {
  begin();
  const experiment = store.state.login?.experiments.find((one) => one.id === id);
  store.dispatch({ type: 'chosen', experiment });
  context.look();
}
const welcome = createWelcome(choose);
const bar = createSessionBar({
  ...{ zones, choose },
  setZone(next) {
    lasting.set('zone', next);
    store.dispatch({ type: 'zoned', zone: next });
  },
  logIn: () => void login.logIn(),
  logOut: () => void login.logOut(),
});
/** Whether what is done now is done by a key. */
let isByKey = false;
/** The views of the network; undefined until it is known. */
let views: ReturnType<typeof build> | undefined;

/** Makes the views of the network. */
function build({ sites, links }: NetworkFacts) {
  const map = createMap({
    ...{ sites, links },
    onSelect(selected) {
      begin();
      select(selected);
      if (!mayDo(store.state, 'create')) return;
      booking.fill(picked(store.state.draft, selected));
      if (selected.site2 !== '' && isByKey) form.lead();
    },
  });
  const pick = (link: Link, draft: Draft): void => {
    select(link);
    // A start within this minute would be in the past when the request is sent.
    const isNow = typeof draft.start === 'number' && draft.start < clock.now() + MINUTE;
    booking.fill(isNow ? { ...draft, start: 'now' } : draft);
    if (isByKey) form.lead();
  };
  const timeline = new Timeline({
    links,
    async columns(ends, window, points, signal) {
      login.visit.throwIfAborted();
      if (!store.state.login?.user) throw new Unanswered('No user is logged in.');
      return service.columns(ends, window, points, AbortSignal.any([signal, login.visit]));
    },
    dispatch: move,
    onStart(link, start) {
      const { period } = readForm(store.state);
      pick(link, startedAt(store.state.draft, link, start, period));
    },
    onPick: (link, period) => pick(link, picked(store.state.draft, link, period)),
    onOwn({ id }) {
      store.dispatch({ type: 'learnt', facts: { marked: id } });
      list.focus(id);
    },
    onResize(own, { start, end }) {
      if (!mayDo(store.state, 'update')) return;
      booking.fill({ ...draftOf(own), start, ending: { at: end }, isDragged: true });
    },
  });
  const form = new BookingForm({
    ...{ booking, links, onUse: begin, forget: () => void forget() },
    onClear() {
      move({ type: 'cleared' });
      select(undefined);
    },
  });
  return { map, timeline, form };
}

/** Puts the application in the place of what the server wrote. */
function place(
  main: HTMLElement,
  { map, timeline, form }: NonNullable<typeof views>,
  canLogIn: boolean,
): void {
  const table = main.querySelector('table');
  const invitation = canLogIn
    ? 'Log in to see what is free when, and to book.'
    : 'Use and booking need a login, which this server does not have: use the command line below.';
  const stranger = { 'data-for': 'stranger', hidden: true };
  const links = { class: 'beside', ...stranger, 'aria-label': 'Links' };
  const free = { class: 'free', 'data-for': 'user', hidden: true, 'aria-labelledby': 'free-heading' };
  const work = element(
    'div',
    { class: 'work' },
    element('section', { class: 'network-map', 'aria-label': 'Map' }, map.element),
    element(
      'section',
      links,
      element('p', {}, RESERVATION),
      element('p', {}, invitation),
      ...(table ? [table] : []),
    ),
    element('section', free, element('h2', { id: 'free-heading' }, 'What is free'), timeline.element),
    form.entry,
    form.element,
  );
  main.replaceChildren(
    ...main.querySelectorAll('h1'),
    ...[notice.spoken, wrongClock, away, notice.element, welcome.element, work, list.element],
  );
}

/** The element after which the notice stands. */
function placeOfNotice({ notice: shown }: State): HTMLElement {
  const at = shown?.at ?? 'page';
  if (typeof at === 'object' && !list.element.hidden) return list.placeFor(at.id);
  return at === 'form' && views && !views.form.element.hidden ? views.form.noticePlace : away;
}

/** Shows the views of the network, from now on. */
function showNetwork({ map, timeline, form }: NonNullable<typeof views>): void {
  store.view(
    ({ login: known, network }) => ({ known, network }),
    ({ known }) => {
      const who = known?.user ? 'user' : 'stranger';
      for (const part of document.querySelectorAll<HTMLElement>('[data-for]'))
        part.hidden = !known || part.dataset['for'] !== who;
    },
  );
  const use = remembered(
    ({ use: known, network: facts, now }: State) => ({ known, facts, at: now - (now % MINUTE) }),
    ({ known, facts, at }) => useAt(at, { use: known, network: facts }),
  );
  store.view((state) => ({ use: use(state), selected: state.selected, route: routeOf(state) }), map.show);
  const own = remembered(
    ({ ended, live }: State) => ({ ended, live }),
    ({ ended = [], live = [] }) => [...ended, ...live],
  );
  store.view(
    (state) => ({
      ...timelineTerms(state),
      ...{ state: state.timeline, zone: state.zone, own: own(state), marked: state.marked },
    }),
    (parts) => timeline.show(parts),
  );
  store.view(
    ({ login: known, chosen, live, ended, filter, hidden, marked, busy, now, zone: shown }) => ({
      // In whole seconds: what happens at once is shown once.
      ...{ known, chosen, live, ended, filter, hidden, marked, busy, now: now - (now % 1000), zone: shown },
    }),
    ({ known, ...parts }) => {
      list.element.hidden = !known?.user || !parts.chosen;
      if (parts.chosen) list.show(parts);
    },
  );
  store.view(
    (state) => ({
      ...formParts(state),
      ...{ isChecked: state.isChecked, isLeft: state.isLeft, isSending: state.isSending },
      ...{ login: state.login, hasEnded: state.hasEnded, sent: state.sent },
      route: routeOfDraft(state),
    }),
    (parts) => form.show(parts),
  );
  store.view(
    ({ now: time, zone: shown }) => ({ day: Math.floor(clockOf(shown).civil(time) / DAY) }),
    () => move({ type: 'dawned' }),
  );
  let said: State['notice'];
  store.view(
    (state) => ({ state }),
    ({ state }) => {
      const isMoved = notice.putAfter(placeOfNotice(state));
      const isNews = state.notice !== said || isMoved;
      said = state.notice;
      if (said && said.at !== 'page' && isNews) notice.element.scrollIntoView({ block: 'nearest' });
    },
  );
}

/** Keeps what is looked at in the address, from now on. Browsers refuse an address that changes too often. */
function keepAddress(): void {
  let callOff = (): void => {};
  store.view(viewOf, () => {
    callOff();
    callOff = later(ADDRESS_DELAY, () => {
      const query = withView(location.search, viewOf(store.state));
      if (query !== location.search) history.replaceState(null, '', location.pathname + query);
    });
  });
}

/** Paper says when it was printed, in place of what can be chosen. */
const printed = element('p', { class: 'printed' });
document.querySelector('header')?.append(bar.element, printed);
document.querySelector('main')?.prepend(wrongClock, away, notice.element);
store.view(
  ({ network, login: known, chosen, zone: shown }) => ({ network, login: known, chosen, zone: shown }),
  bar.show,
);
store.view(
  ({ now, zone: shown }) => ({ at: now - (now % MINUTE), shown }),
  ({ at, shown }) => {
    // Of no year: paper outlasts this one.
    const when = instantText(at, { clock: clockOf(shown), now: 0 });
    setText(printed, `Printed ${when}, times in ${shown}.`);
  },
);
store.view(({ login: known, chosen, now }) => ({ login: known, chosen, now }), welcome.show);
store.view(
  ({ notice: shown }) => ({ shown }),
  ({ shown }) => notice.show(shown),
);
store.view(
  ({ reach, zone: shown, now }) => ({ reach, zone: shown, now }),
  ({ reach, ...time }) => {
    away.hidden = !reach.isAway;
    setText(away, reach.isAway ? awayText(reach.since, calendarOf(time)) : '');
  },
);
store.view(
  ({ ahead }) => ({ text: clockText(ahead) }),
  ({ text }) => {
    wrongClock.hidden = text === '';
    setText(wrongClock, text);
  },
);
store.view(
  ({ draft, sent, owner }) => ({ draft, sent, owner }),
  (form) => passing.set('draft', keptForm(form)),
);
// The wish that the draft means may change by itself, as at midnight.
store.view(
  ({ answer }) => ({ moved: answer.kind === 'moved' ? answer : undefined }),
  ({ moved }) => {
    if (moved) booking.refresh();
  },
);
// The user is known, or that the server does not answer.
store.view(
  ({ login: known, reach }) => ({ isReady: known !== undefined || reach.isAway }),
  ({ isReady }) => {
    if (isReady) document.body.classList.add('ready');
  },
);
// The experiment is remembered for the next time.
store.view(
  ({ chosen }) => ({ id: chosen?.id }),
  ({ id }) => {
    if (id !== undefined) lasting.set('experiment', id);
  },
);
store.view(
  ({ network }) => ({ network }),
  ({ network }) => {
    const main = document.querySelector('main');
    if (!network || !main) return;
    views = build(network);
    place(main, views, network.login);
    showNetwork(views);
    const { link } = seen;
    if (link && routeBetween(network.links, link)) select(link);
    keepAddress();
  },
);

// What happens around the page

for (const type of ['keydown', 'pointerdown']) {
  addEventListener(
    type,
    () => {
      isByKey = type === 'keydown';
    },
    true,
  );
}

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
store.view(
  ({ now }) => ({ hour: Math.floor(now / HOUR) }),
  () => context.look(),
);
if (!document.hidden) news.resume();
