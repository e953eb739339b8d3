import { HOUR } from '../contract/durations.ts';
import { may } from '../contract/roles.ts';
import { type Clock, createClock } from '../words/civil-time.ts';
import { createBooking } from './booking.ts';
import { createBookingForm } from './booking-form.ts';
import { ask } from './dialogs.ts';
import { draftOf, EMPTY_DRAFT, isSameDraft, linkBetween, picked } from './draft.ts';
import { element, setText } from './elements.ts';
import { createMap, type NetworkMap } from './map/map.ts';
import { createNews } from './news.ts';
import { createNotice } from './notice.ts';
import { createReservationList, type ReservationAction } from './reservation-list.ts';
import { showServerText } from './server-text.ts';
import {
  createService,
  type Experiment,
  type Link,
  type NetworkFacts,
  Refused,
  type Reserved,
  type Session,
  Unanswered,
} from './service.ts';
import { createSessionBar } from './session-bar.ts';
import { createTimeline, type Timeline } from './timeline/timeline.ts';
import type { Calendar } from './timeline/words.ts';
import {
  awayText,
  extensionText,
  maySee,
  ownSentence,
  refusalText,
  stateOf,
  tagsText,
  titleOf,
} from './words.ts';

/** Below which address the files of the page lie: `…/ui/`. */
const BASE = new URL('.', import.meta.url);
/** Milliseconds. */
/** How long the map's use looks ahead, in milliseconds: a request for it stays the same so long, and costs nothing. */
const NOW_LASTS = 300_000;

const now = Date.now;
const later = (milliseconds: number, run: () => void): (() => void) => {
  const timer = setTimeout(run, milliseconds);
  return () => clearTimeout(timer);
};
/** What a browser keeps may be forbidden by its user: then nothing is kept. */
function storage(kind: 'localStorage' | 'sessionStorage') {
  const name = (key: string): string => `slices-conn ${BASE.pathname} ${key}`;
  return {
    get(key: string): string | null {
      try {
        return window[kind].getItem(name(key));
      } catch {
        return null;
      }
    },
    /** @returns whether it is kept */
    set(key: string, value: string | null): boolean {
      try {
        if (value === null) window[kind].removeItem(name(key));
        else window[kind].setItem(name(key), value);
        return true;
      } catch {
        // All but the login works without.
        return false;
      }
    },
    /** Whether an event of another tab concerns a key. */
    concerns: (event: StorageEvent, key: string): boolean => event.key === null || event.key === name(key),
  };
}
const lasting = storage('localStorage');
const passing = storage('sessionStorage');

const service = createService({
  base: BASE,
  secret: () => lasting.get('session'),
  fetch: (url, init) => window.fetch(url, init),
});
const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const zones = [...new Set([ownZone, 'UTC'])];
let zone = zones.find((one) => one === lasting.get('zone')) ?? ownZone;
let clock: Clock = createClock(zone);
const calendar = (): Calendar => ({ clock, now: now() });

const NOBODY: Session = { user: null, experiments: [] };
let network: NetworkFacts | undefined;
let session = NOBODY;
let isSessionKnown = false;
let chosen: Experiment | undefined;
let live: readonly Reserved[] | undefined;
let ended: readonly Reserved[] | undefined;
/** Why the reservations can't be seen, where the service says so. */
let hidden: string | undefined;
const busy = new Set<string>();
/** Why nobody can log in, where the browser forbids it. */
const NOT_KEPT = `You are not logged in: your browser keeps no cookies or no data of this page. Allow both for ${location.host}, and log in again.`;
/** Whether the login ended by itself: what was being typed stays where it is, and so does the notice that says so. */
let hasEnded = false;
/** Ends with the login: what is asked for as a user is given up then. */
let visit = new AbortController();

const away = element('p', { class: 'away', role: 'alert', hidden: true });
const notice = createNotice(later);
/** What the notice is about: the page, the form, or a reservation by its id. */
type About = 'page' | 'form' | { id: string };
let about: About = 'page';
/** Says what became of an action, beside what it is about. What was done goes by itself. */
function say(text: string, { at, isDone = false }: { at: About; isDone?: boolean }): void {
  about = at;
  notice.say(text, isDone);
  putNotice();
  if (at !== 'page') notice.element.scrollIntoView({ block: 'nearest' });
}
const done = (at: About) => ({ at, isDone: true });
/** Takes the notice away, since something else has begun. That the login has ended is true until the next one. */
function clearNotice(): void {
  if (!hasEnded) notice.clear();
}
/** Without a login nothing can be asked: says so, until there is one. */
function sayEnded(): void {
  const kept = isSameDraft(booking.view.draft, EMPTY_DRAFT) ? '' : '; what you typed is kept';
  if (!hasEnded) say(`Your login has ended. Log in again${kept}.`, { at: 'form' });
  hasEnded = true;
}
/** Puts the notice where it belongs; a row that was made anew has lost it. */
function putNotice(): void {
  const after =
    typeof about === 'object' && !list.element.hidden
      ? list.placeFor(about.id)
      : about === 'form' && form && !form.element.hidden
        ? form.heading
        : away;
  if (after.nextElementSibling !== notice.element) after.after(notice.element);
}
/** A bug shows up in the console, and the page says so. */
function failed(error: unknown): void {
  say('Something went wrong in this page. Reload it; what you typed is kept.', { at: 'page' });
  reportError(error);
}

const bar = createSessionBar({
  choose(id) {
    clearNotice();
    choose(session.experiments.find((one) => one.id === id));
    void news.look();
  },
  setZone(next) {
    zone = next;
    clock = createClock(zone);
    lasting.set('zone', zone);
    show();
    timeline?.refresh();
  },
  logIn: () => void logIn(),
  logOut: () => void logOut(),
});
const list = createReservationList({
  act: (action, own) => void act(action, own),
  wantEnded: () => void loadEnded(),
});
const booking = createBooking({
  service,
  terms: () =>
    network && chosen
      ? { experiment: chosen.id, now: now(), links: network.links, expiry: Date.parse(chosen.expires_at) }
      : undefined,
  later,
  newKey: () => crypto.randomUUID(),
  keep: (text) => passing.set('draft', text),
  kept: passing.get('draft'),
  show: () => show(),
  done(reservation, isNew) {
    live = [...(live ?? []).filter(({ id }) => id !== reservation.id), reservation];
    showReservations();
    if (!isNew) list.focus(reservation.id);
    say(
      `${isNew ? 'Booked' : 'Changed'}: ${ownSentence(reservation, calendar())}.${isNew ? ` ${tagsText(reservation.tags).replace('\n', '; ')}.` : ''}`,
      done(isNew ? 'form' : { id: reservation.id }),
    );
    void news.look();
  },
  unanswered: () => news.lost(),
  loggedOut() {
    sayEnded();
    isSessionStale = true;
    void news.look();
  },
  failed,
});
let timeline: Timeline | undefined;
let map: NetworkMap | undefined;
let form: ReturnType<typeof createBookingForm> | undefined;

/** What the role allows. */
const mayDo = (action: 'create' | 'update' | 'delete'): boolean =>
  chosen !== undefined && may(chosen.role, action);

/** Shows everything that is known. */
function show(): void {
  bar.show({ session, canLogIn: network?.login ?? false, chosen, zone, zones });
  if (!network) return;
  const isIn = session.user !== null;
  for (const part of document.querySelectorAll<HTMLElement>('[data-for]')) {
    part.hidden = part.dataset['for'] !== (isIn ? 'user' : 'stranger') || !isSessionKnown;
  }
  list.element.hidden = !isIn || !chosen;
  if (chosen) {
    list.show({
      experiment: chosen.name,
      ...{ live, ended, hidden, calendar: calendar(), busy },
      ...{ mayUpdate: mayDo('update'), mayDelete: mayDo('delete') },
    });
  }
  const { view } = booking;
  if (form) {
    const mayBook = isIn && (view.draft.id === undefined ? mayDo('create') : mayDo('update'));
    form.element.hidden = !mayBook && !(hasEnded && !isSameDraft(view.draft, EMPTY_DRAFT));
    form.show(view);
  }
  putNotice();
}

/** Chooses the experiment that is worked in, and remembers it in the address and for the next time. */
function choose(experiment: Experiment | undefined): void {
  const isOther = experiment?.id !== chosen?.id;
  chosen = experiment;
  if (isOther) {
    [live, ended, hidden] = [undefined, undefined, undefined];
    if (booking.view.draft.id !== undefined) booking.reset();
    timeline?.setReservations([]);
  }
  if (experiment) {
    lasting.set('experiment', experiment.id);
    const address = new URL(location.href);
    if (address.searchParams.get('experiment') !== experiment.id) {
      address.searchParams.set('experiment', experiment.id);
      history.replaceState(null, '', address);
    }
  }
  show();
}

/** The experiment that was chosen before, or the only one that has not expired. */
function usual({ experiments }: Session): Experiment | undefined {
  const wanted = new URL(location.href).searchParams.get('experiment') ?? lasting.get('experiment');
  const active = experiments.filter(({ expires_at }) => Date.parse(expires_at) > now());
  return (
    experiments.find(({ id }) => id === (chosen?.id ?? wanted)) ??
    (active.length === 1 ? active[0] : undefined)
  );
}

async function loadSession(): Promise<void> {
  const hasLoggedIn = await cameBack;
  const before = session.user?.id;
  const secret = lasting.get('session');
  const found = await service.session();
  const isFirst = !isSessionKnown;
  isSessionKnown = true;
  if (found.user === null) {
    const wasEnded = hasEnded;
    if (hasLoggedIn && isFirst) say(NOT_KEPT, { at: 'page' });
    // It may have ended while the page was closed.
    else if (before !== undefined || secret !== null) sayEnded();
    // Another tab may have logged in meanwhile.
    if (lasting.get('session') === secret) lasting.set('session', null);
    leave();
    // Where nothing was typed the form has gone, and the notice to the top.
    if (!wasEnded && hasEnded) notice.element.scrollIntoView({ block: 'nearest' });
    return;
  }
  session = found;
  if (hasEnded) notice.clear();
  hasEnded = false;
  if (visit.signal.aborted || before !== found.user.id) visit = new AbortController();
  choose(usual(found));
}

async function loadEnded(): Promise<void> {
  if (!chosen || hidden !== undefined) return;
  const { id } = chosen;
  try {
    const found = await service.ended(id);
    if (chosen?.id === id) ended = found;
    showReservations();
  } catch (error) {
    tell(error, 'page');
  }
}

function showReservations(): void {
  timeline?.setReservations([...(ended ?? []), ...(live ?? [])]);
  show();
}

/** Asks for the reservations; a login that has ended is noticed here. */
async function loadReservations(): Promise<void> {
  if (!chosen) return;
  const { id, role } = chosen;
  hidden = maySee(role) ? undefined : 'Your role does not let you see them.';
  if (hidden !== undefined) return;
  try {
    const found = await service.live(id, visit.signal);
    if (chosen?.id !== id) return;
    // What has ended meanwhile is kept in the list of ended ones.
    const over = (live ?? []).filter(
      (one) => stateOf(one, now()) === 'ended' && !found.some((other) => other.id === one.id),
    );
    if (ended && over.length > 0) ended = [...ended, ...over];
    live = found;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.isLoggedOut) await loadSession();
    else hidden = refusalText(error.facts, calendar());
  }
}

/** The use of each link now, for the map. */
async function loadUse({ links }: NetworkFacts): Promise<void> {
  const start = Math.floor(now() / NOW_LASTS) * NOW_LASTS;
  const asked = links.map(async (link) => {
    const [column] = await service.columns(link, { start, end: start + NOW_LASTS }, 1, visit.signal);
    map?.setUse(link, column ? 1 - column.free / link.bandwidth : null);
  });
  await Promise.all(asked);
}

/** Asks for everything that may have changed. */
async function askForNews(): Promise<void> {
  try {
    if (!network) {
      network = await service.network();
      build(network);
    }
    if (isSessionStale) {
      // Set again by what another tab does meanwhile.
      isSessionStale = false;
      await loadSession();
    }
    await loadReservations();
    if (session.user !== null) {
      showReservations();
      timeline?.refresh();
      booking.refresh();
      await loadUse(network);
    }
  } catch (error) {
    // Refused to a user whose role or login has changed: the next question finds out.
    isSessionStale = true;
    if (error instanceof Refused) say(refusalText(error.facts, calendar()), { at: 'page' });
    else if (!(error instanceof DOMException && error.name === 'AbortError')) throw error;
  }
  show();
}
/** Whether someone may have logged in or out in another tab, or been given another role. */
let isSessionStale = true;

const news = createNews({
  ask: askForNews,
  now,
  later,
  failed,
  show({ isAway, since }) {
    away.hidden = !isAway;
    if (isAway) notice.clearDone();
    setText(away, isAway ? awayText(since, calendar()) : '');
  },
});

/** Says why something could not be done. */
function tell(error: unknown, at: About): void {
  if (error instanceof Refused) {
    say(refusalText(error.facts, calendar()), { at });
    if (error.isLoggedOut) isSessionStale = true;
    void news.look();
  } else if (error instanceof Unanswered) {
    say('No answer came. It may be done or not: the list shows it once the server answers.', { at });
    news.lost();
  } else failed(error);
}

/** Sends the browser to the identity provider, from where it comes back to {@link comeBack}. */
async function logIn(): Promise<void> {
  try {
    const { address, begun } = await service.beginLogin();
    if (passing.set('login', begun)) location.assign(address);
    else say(NOT_KEPT, { at: 'page' });
  } catch (error) {
    loginFailed(error);
  }
}

/** Ends the login with which the browser has come back. @returns whether it has, and somebody is logged in */
async function comeBack(): Promise<boolean> {
  const { pathname, search } = location;
  if (pathname !== new URL('callback', BASE).pathname) return false;
  history.replaceState(null, '', new URL('..', BASE));
  const begun = passing.get('login') ?? '';
  // It is used once.
  passing.set('login', null);
  try {
    const isKept = lasting.set('session', await service.endLogin(search, begun));
    if (!isKept) say(NOT_KEPT, { at: 'page' });
    return isKept;
  } catch (error) {
    loginFailed(error);
    return false;
  }
}

function loginFailed(error: unknown): void {
  if (error instanceof Refused || error instanceof Unanswered) {
    say(`The login failed. ${error.message}`, { at: 'page' });
  } else failed(error);
}

async function logOut(): Promise<void> {
  notice.clear();
  visit.abort();
  try {
    await service.logOut();
    lasting.set('session', null);
    leave();
    say('You are logged out.', done('page'));
  } catch (error) {
    visit = new AbortController();
    tell(error, 'page');
  }
}

/** Forgets what only a user may see. */
function leave(): void {
  visit.abort();
  if (session.user !== null) select(null);
  [session, chosen, live, ended] = [NOBODY, undefined, undefined, undefined];
  for (const link of network?.links ?? []) map?.setUse(link, null);
  showReservations();
}

/** Runs something with a reservation, once at a time. */
async function whileBusy(id: string, run: () => Promise<void>): Promise<void> {
  if (busy.has(id)) return;
  busy.add(id);
  show();
  try {
    await run();
  } catch (error) {
    tell(error, { id });
  } finally {
    busy.delete(id);
    show();
  }
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Hands a text to the browser as a file. */
function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element('a', { href: address, download: name }).click();
  // The browser reads it after this task.
  later(60_000, () => URL.revokeObjectURL(address));
}

async function act(action: ReservationAction, own: Reserved): Promise<void> {
  const experiment = chosen?.id;
  if (experiment === undefined) return;
  clearNotice();
  const title = titleOf(own);
  const actions: Readonly<Record<ReservationAction, () => void | Promise<void>>> = {
    hour: () => extend(experiment, own, HOUR),
    day: () => extend(experiment, own, 24 * HOUR),
    change() {
      booking.fill(draftOf(own));
      form?.focus();
    },
    delete: () => remove(experiment, own),
    async copy() {
      const isCopied = await copy(`${tagsText(own.tags)}\n`);
      say(
        isCopied
          ? `The tags of ${title} are copied.`
          : 'The browser does not let this page copy: select the tags.',
        { at: own, isDone: isCopied },
      );
    },
    token: () =>
      whileBusy(own.id, async () => {
        const name = `${own.name ?? own.id}.jwt`;
        download(name, 'application/jwt', await service.token(experiment, own.id));
        say(`The token is in ${name}. slices-conn verify ${name} checks it offline.`, done(own));
      }),
    server: () => showServerText(own.record, copy),
    show() {
      const room = Math.max(HOUR, (own.end - own.start) / 4);
      timeline?.show({ start: own.start - room, end: own.end + room });
      const link = linkBetween(network?.links ?? [], own.site1, own.site2);
      if (link) select(link);
      timeline?.element.scrollIntoView({ block: 'nearest' });
    },
  };
  await actions[action]();
}

/** Extends a reservation at once; where that does not fit, the form opens and says what would. */
function extend(experiment: string, own: Reserved, milliseconds: number): Promise<void> {
  return whileBusy(own.id, async () => {
    const draft = { ...draftOf(own), ending: { at: own.end + milliseconds } };
    const { site1, site2, bandwidth, start } = own;
    const body = {
      ...{ site1, site2, bandwidth: `${bandwidth}`, tokens: [] },
      ...{ start_date: new Date(start).toISOString(), end_date: new Date(draft.ending.at).toISOString() },
    };
    try {
      const changed = await service.send(experiment, {
        id: own.id,
        startNow: false,
        body: JSON.stringify(body),
      });
      live = live?.map((one) => (one.id === changed.id ? changed : one));
      say(`Extended: ${ownSentence(changed, calendar())}.`, done(own));
      void news.look();
    } catch (error) {
      if (!(error instanceof Refused) || error.facts.status !== 422) throw error;
      booking.fill(draft);
      form?.focus();
      say(extensionText(own, milliseconds, error.facts, calendar()), { at: 'form' });
    }
  });
}

async function remove(experiment: string, own: Reserved): Promise<void> {
  const isSure = await ask({
    title: `Delete ${titleOf(own)}?`,
    text: `${ownSentence(own, calendar())}. Its bandwidth and VLANs are free for others at once. This can’t be undone.`,
    ...{ yes: 'Delete', no: 'Keep it' },
  });
  if (!isSure) return;
  await whileBusy(own.id, async () => {
    await service.delete(experiment, own.id);
    live = live?.filter(({ id }) => id !== own.id);
    if (booking.view.draft.id === own.id) booking.reset();
    showReservations();
    list.focus(own.id);
    say(`Deleted: ${ownSentence(own, calendar())}.`, done(own));
    void news.look();
  });
}

/** Marks a link everywhere. */
function select(link: Link | null): void {
  timeline?.select(link);
  map?.select(link);
}

/** Puts the application in the place of what the server wrote. */
function build({ links, sites, login }: NetworkFacts): void {
  const main = document.querySelector('main');
  if (!main) return;
  map = createMap({
    sites,
    links,
    onSelect(link) {
      clearNotice();
      select(link);
      if (mayDo('create')) booking.fill(picked(booking.view.draft, link));
    },
  });
  timeline = createTimeline({
    links,
    async columns(link, window, points, signal) {
      visit.signal.throwIfAborted();
      if (session.user === null) throw new Unanswered('Nobody is logged in.');
      return service.columns(link, window, points, AbortSignal.any([signal, visit.signal]));
    },
    now,
    zone: () => zone,
    mayPick: () => mayDo('create'),
    onPick({ link, start, end }) {
      map?.select(link);
      if (!mayDo('create')) return;
      const draft = picked(booking.view.draft, link, { start, end });
      // What begins in this minute, since it was cut to what is not over, would be in the past when it is sent.
      booking.fill(start < now() + 60_000 ? { ...draft, start: 'now' } : draft);
      form?.focus();
      say('The form is filled with this time.', done('form'));
    },
    onOwn: ({ id }) => list.focus(id),
    onWindow: () => {},
  });
  form = createBookingForm({
    ...{ booking, links, calendar, zone: () => zone },
    startOf: (id) => live?.find((one) => one.id === id)?.start,
    onLink: ({ site1, site2 }) => select(linkBetween(links, site1, site2) ?? null),
    onUse: clearNotice,
    onClear() {
      timeline?.clearPick();
      select(null);
    },
  });
  const table = main.querySelector('table');
  const invitation = login
    ? 'Log in to see what is free when, and to book.'
    : 'Use and booking need a login, which this server does not have: use the command line below.';
  main.replaceChildren(
    ...[...main.querySelectorAll('h1')],
    ...[notice.spoken, away, notice.element],
    element('p', { 'data-for': 'stranger', hidden: true }, invitation),
    element('section', { class: 'network-map', 'aria-label': 'Map' }, map.element),
    list.element,
    ...(table
      ? [
          element(
            'section',
            { class: 'beside', 'data-for': 'stranger', hidden: true, 'aria-label': 'Links' },
            table,
          ),
        ]
      : []),
    element(
      'section',
      { class: 'free', 'data-for': 'user', hidden: true, 'aria-labelledby': 'free-heading' },
      element('h2', { id: 'free-heading' }, 'What is free'),
      timeline.element,
    ),
    form.element,
  );
}

const cameBack = comeBack();
document.querySelector('header')?.append(bar.element);
document.querySelector('main')?.prepend(away);
bar.show({ session, canLogIn: false, chosen, zone, zones });
document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    news.pause();
    return;
  }
  isSessionStale = true;
  news.resume();
});
addEventListener('online', () => void news.look());
// Somebody has logged in or out in another tab.
addEventListener('storage', (event) => {
  if (!lasting.concerns(event, 'session')) return;
  isSessionStale = true;
  if (!document.hidden) void news.look();
});
// A page that comes back from the browser's history is as it was left.
addEventListener('pageshow', ({ persisted }) => {
  isSessionStale ||= persisted;
  if (persisted) void news.look();
});
if (!document.hidden) news.resume();
