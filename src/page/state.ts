import { stateAt } from '../contract/instants.ts';
import { KEY_KEPT } from '../contract/request-limits.ts';
import { may, type Action as Permission } from '../contract/roles.ts';
import { type Calendar, clockOf } from '../words/civil-time.ts';
import { type Draft, EMPTY_DRAFT, isSameDraft, type ReadDraft, readDraft, type Wish } from './draft.ts';
import { hopsOf, isSamePair, linkBetween, pairOf, type Route, routeBetween, routeOver } from './route.ts';
import type {
  Column,
  Ends,
  ExperimentChoice,
  Link,
  LinkUse,
  Login,
  NetworkFacts,
  OwnReservation,
  RefusedReply,
  Told,
} from './service.ts';
import { remembered } from './store.ts';
import {
  changeTimeline,
  type DraftMark,
  openTimeline,
  type TimelineAction,
  type TimelineState,
  type TimelineTerms,
} from './timeline/model.ts';

/** The answer about the draft: to a dry run, or to the request that was sent. */
export type Answer =
  /** Nothing is known: something is missing, or no question was asked yet. */
  | { kind: 'none' }
  /** A dry run is under way. */
  | { kind: 'asking' }
  /** It fits. `free`: what is free on its route then, where the service says so; of a change its own part would count as used. */
  | { kind: 'fits'; wish: Wish; route: Route; free: Column | undefined }
  /** `isSent`: the request itself was refused, not only its dry run. */
  | { kind: 'refused'; wish: Wish; facts: RefusedReply; isSent: boolean }
  /** The dry run had no answer. */
  | { kind: 'away' };

/** A request of the form that was sent: in the same words under the same key as often as it is sent. */
export interface SentRequest {
  /** The id of the experiment that it was sent for. */
  experiment: string;
  /** Of a request to create: its idempotency key. */
  key?: string;
  wish: Wish;
  /** The form as it was then. */
  draft: Draft;
  /** When it was sent first, in milliseconds. */
  at: number;
}

/** The subject of a notice, beside which it stands: the page, the form, or a reservation. */
export type Subject = 'page' | 'form' | { id: string };

/** A sentence about what became of an action. Each is a new object, so that the same text again is news. */
export interface Notice {
  text: string;
  at: Subject;
  /** Something was done: the notice goes by itself. A problem stays. */
  isDone: boolean;
}

/** Whether the server answers. */
export interface Reach {
  isAway: boolean;
  /** When it answered last, in milliseconds; when the page was opened where it never did. */
  since: number;
}

/** Two sites that are looked at; the second one is empty until it is chosen. `via`: the route, where it is a reservation's. */
export interface Selected extends Ends {
  via?: readonly string[];
}

/** All that the page knows. Views are functions of it, and only {@link change} makes the next one. */
export interface State {
  /** The server's time, in milliseconds: one value for everything that is shown and read. */
  now: number;
  /** How far the browser's clock is ahead of it, in milliseconds. */
  ahead: number;
  /** The zone of all times: an IANA name, or `UTC`. */
  zone: string;
  reach: Reach;
  /** Undefined until the server has answered. */
  network?: NetworkFacts;
  /** The use of each link from now on; empty while it is not known. */
  use: LinkUse;
  /** Undefined until it is known whether anyone is logged in. */
  login?: Login;
  /** Whether someone may have logged in or out in another tab, or been given another role: it is asked with the next news. */
  isDoubted: boolean;
  /** Whether the login ended by itself: what was being typed stays, and so does the notice that says so. */
  hasEnded: boolean;
  /** The experiment that is worked in. */
  chosen?: ExperimentChoice;
  /** Its reservations that have not ended; undefined while they are not known. */
  live?: readonly OwnReservation[];
  /** Those that have; undefined until they are asked for. */
  ended?: readonly OwnReservation[];
  /** Why the reservations can't be seen, where the service says so. */
  hidden?: string;
  /** The ids of reservations with a request under way. */
  busy: ReadonlySet<string>;
  /** The sites between which the route is marked everywhere. */
  selected?: Selected;
  /** The content of the form, which the timeline marks as it is typed. */
  draft: Draft;
  /** The draft that stood in the form before a reservation was to be changed. */
  aside: Draft;
  /** Whether the draft was sent as it is: then empty fields are named. */
  isChecked: boolean;
  answer: Answer;
  /**
   * The request that is under way, or had no answer: it may have been done. It is sent again as it was, so that it can't be
   * done twice, and nothing else is sent until it is settled: by an answer, or when the user forgets it.
   */
  sent?: SentRequest;
  /** The user whose draft and request these are, by id; absent until the first login. */
  owner?: string;
  isSending: boolean;
  notice?: Notice;
  timeline: TimelineState;
}

/** Everything that changes the state. */
export type Action =
  /** Time has passed. */
  | { type: 'tick' }
  /** Facts that nothing else depends on. */
  | {
      type: 'learnt';
      facts: Partial<
        Pick<State, 'network' | 'zone' | 'reach' | 'use' | 'ended' | 'hidden' | 'selected' | 'isDoubted'>
      >;
    }
  /** Somebody is logged in. `wanted`: the experiment that was worked in before, by its id. */
  | { type: 'logged-in'; login: Login; wanted: string | null }
  /** No user is logged in: facts that only a user may see are removed. */
  | { type: 'logged-out' }
  /** The login has ended by itself. */
  | { type: 'login-ended' }
  | { type: 'chosen'; experiment: ExperimentChoice | undefined }
  /** An event of the service. */
  | { type: 'told'; told: readonly Told[] }
  /** The reservations that have not ended, as the service lists them. */
  | { type: 'listed'; live: readonly OwnReservation[] }
  | { type: 'busy'; id: string; isBusy: boolean }
  /** A reservation was created or updated. */
  | { type: 'changed'; experiment: string; reservation: OwnReservation }
  | { type: 'deleted'; id: string }
  /** The form was filled or typed in. */
  | { type: 'drafted'; draft: Draft }
  /** The form goes back to the draft of a new reservation. */
  | { type: 'reset' }
  /** The form was sent with something missing. */
  | { type: 'checked' }
  | { type: 'answered'; answer: Answer }
  | { type: 'sent'; sent: SentRequest }
  /** The end of the request that was sent, where that is known; `failed` where the page itself failed. */
  | {
      type: 'settled';
      as: 'accepted' | 'forgotten' | 'unanswered' | 'failed' | (Answer & { kind: 'refused' });
    }
  | { type: 'said'; notice: Notice }
  /** The notice goes, unless it names a problem and its time has `passed`; that the login has ended outlasts what is `begun`. */
  | { type: 'unsaid'; since: 'begun' | 'closed' | 'passed' }
  | { type: 'timeline'; action: TimelineAction };

/** The parts of the form that are kept for this tab: the draft, the request that had no answer, and whose they are. */
export type KeptForm = Partial<Pick<State, 'draft' | 'sent' | 'owner'>>;

/** The state as the page opens. */
export function openState(now: number, zone: string, kept: KeptForm = {}): State {
  return {
    ...{ now, ahead: 0, zone, reach: { isAway: false, since: now }, use: [], busy: new Set() },
    ...{ isDoubted: true, hasEnded: false },
    ...{ draft: kept.draft ?? EMPTY_DRAFT, aside: EMPTY_DRAFT, isChecked: false, isSending: false },
    answer: { kind: 'none' },
    sent: kept.sent,
    owner: kept.owner,
    timeline: openTimeline(now, clockOf(zone)),
  };
}

/** The next state. Pure: the time is the state's own. */
export function change(state: State, action: Action): State {
  switch (action.type) {
    case 'tick':
      return state;
    case 'learnt':
      return learnt(state, action.facts);
    case 'logged-in':
      return loggedIn(state, action);
    case 'logged-out':
      return loggedOut(state);
    case 'login-ended':
      return loginEnded(state);
    case 'chosen':
      return chosen(state, action.experiment);
    case 'listed':
      return listed(state, action.live);
    case 'told':
      return action.told.reduce(told, state);
    case 'busy': {
      const others = [...state.busy].filter((id) => id !== action.id);
      return { ...state, busy: new Set(action.isBusy ? [...others, action.id] : others) };
    }
    case 'changed': {
      const { reservation, experiment } = action;
      if (experiment !== state.chosen?.id) return state;
      return { ...state, live: [...without(state.live, reservation.id), reservation] };
    }
    case 'deleted': {
      // A change of it that had no answer is settled by that.
      const sent = state.sent?.wish.id === action.id && !state.isSending ? undefined : state.sent;
      const next = { ...state, sent, live: without(state.live, action.id) };
      return state.draft.id === action.id && !state.isSending ? reset(next) : next;
    }
    case 'drafted':
      return state.isSending ? state : drafted(state, action.draft);
    case 'reset':
      return state.isSending ? state : reset(state);
    case 'checked':
      return { ...state, isChecked: true };
    case 'answered':
      return { ...state, answer: action.answer };
    case 'sent':
      return { ...state, sent: action.sent, isSending: true };
    case 'settled':
      return settled({ ...state, isSending: false }, action.as);
    case 'said':
      return { ...state, notice: action.notice };
    case 'unsaid': {
      const stays = { begun: state.hasEnded, closed: false, passed: state.notice?.isDone === false };
      return stays[action.since] ? state : { ...state, notice: undefined };
    }
    case 'timeline':
      return { ...state, timeline: changeTimeline(state.timeline, action.action, timelineTerms(state)) };
  }
}

function learnt(state: State, facts: Extract<Action, { type: 'learnt' }>['facts']): State {
  const next = { ...state, ...facts };
  if (next.zone === state.zone) return next;
  const action = { type: 'rezoned', before: clockOf(state.zone) } as const;
  return { ...next, timeline: changeTimeline(next.timeline, action, timelineTerms(next)) };
}

const without = (list: State['live'], id: string): OwnReservation[] =>
  (list ?? []).filter((one) => one.id !== id);

/** The experiment that was chosen before; else the only experiment that has not expired. */
function usual({ experiments }: Login, state: State, wanted: string | null): ExperimentChoice | undefined {
  const active = experiments.filter(({ expires_at }) => Date.parse(expires_at) > state.now);
  return (
    experiments.find(({ id }) => id === (state.chosen?.id ?? wanted)) ??
    (active.length === 1 ? active[0] : undefined)
  );
}

function chosen(state: State, experiment: ExperimentChoice | undefined): State {
  if (experiment?.id === state.chosen?.id) return { ...state, chosen: experiment };
  const next = { ...state, chosen: experiment, live: undefined, ended: undefined, hidden: undefined };
  return state.draft.id === undefined || state.isSending ? next : reset(next);
}

/** Of what another user typed and sent in this tab nothing is kept. */
function loggedIn(state: State, { login, wanted }: Extract<Action, { type: 'logged-in' }>): State {
  const { owner, login: before, draft, sent } = state;
  const { id = '', name = '' } = login.user ?? {};
  const next: State = {
    ...{ ...state, login, owner: id, hasEnded: false },
    notice: state.hasEnded ? undefined : state.notice,
  };
  if (owner === undefined || owner === id) return chosen(next, usual(login, state, wanted));
  const isTyped = sent !== undefined || !isSameDraft(draft, EMPTY_DRAFT);
  const text = `You are now logged in as ${name}.${isTyped ? ' What another user had typed here is gone.' : ''}`;
  const other = {
    ...openState(state.now, state.zone),
    ...{ isDoubted: state.isDoubted, ahead: state.ahead },
  };
  const { network, reach, use, timeline } = state;
  return chosen(
    {
      ...{ ...other, network, reach, use, timeline, login, owner: id },
      notice: isTyped || before?.user ? { text, at: 'page', isDone: false } : next.notice,
    },
    usual(login, other, wanted),
  );
}

function loggedOut(state: State): State {
  const isNews = Boolean(state.login?.user);
  return {
    ...{ ...state, use: [], login: { user: null, experiments: [] } },
    ...{ chosen: undefined, live: undefined, ended: undefined },
    selected: isNews ? undefined : state.selected,
  };
}

function loginEnded(state: State): State {
  if (state.hasEnded) return state;
  const kept = isSameDraft(state.draft, EMPTY_DRAFT) && !state.sent ? '' : '; what you typed is kept';
  const text = `Your login has ended. Log in again${kept}.`;
  return { ...state, hasEnded: true, notice: { text, at: 'form', isDone: false } };
}

/** Reservations that have ended meanwhile move to the list of ended ones. */
function listed(state: State, live: readonly OwnReservation[]): State {
  const over = (state.live ?? []).filter(
    (one) => stateAt(state.now, one) === 'ended' && !live.some(({ id }) => id === one.id),
  );
  return { ...state, live, ended: state.ended && [...state.ended, ...over] };
}

/** When one has started or ended is the server's to say: its clock may be ahead of what is known of it. */
function told(state: State, event: Told): State {
  if (!('reservation' in event) || !state.live) return state;
  const { type, reservation } = event;
  const live = without(state.live, reservation.id);
  if (type === 'deleted') return { ...state, live };
  if (type === 'ended')
    return { ...state, live, ended: state.ended && [...without(state.ended, reservation.id), reservation] };
  return { ...state, live: [...live, reservation] };
}

function drafted(state: State, draft: Draft): State {
  const aside = draft.id !== undefined && state.draft.id === undefined ? state.draft : state.aside;
  const timeline = changeTimeline(state.timeline, { type: 'redrafted' }, timelineTerms(state));
  const selected = selectedBy(draft, state);
  return { ...state, draft, aside, timeline, selected, answer: { kind: 'none' }, isChecked: false };
}

/** The sites that a draft names are looked at, once they are others than before. */
function selectedBy({ id, site1, site2 }: Draft, { draft, selected }: State): State['selected'] {
  if (`${site1}${site2}` === '' || (id === draft.id && site1 === draft.site1 && site2 === draft.site2))
    return selected;
  if (site1 === '' || site2 === '') return { site1: site1 || site2, site2: '' };
  return { site1, site2 };
}

/** Empties the form, so that a second click can't book the same again. */
function reset(state: State): State {
  const draft = state.draft.id === undefined ? EMPTY_DRAFT : state.aside;
  return { ...drafted(state, draft), aside: EMPTY_DRAFT };
}

function settled(state: State, as: Extract<Action, { type: 'settled' }>['as']): State {
  const { sent } = state;
  if (as === 'failed' || as === 'unanswered') return { ...state, answer: { kind: 'none' } };
  const next = { ...state, sent: undefined };
  // What was typed since it was sent is another draft.
  if (as === 'forgotten' || !sent || !isSameDraft(state.draft, sent.draft)) return next;
  return as === 'accepted' ? reset(next) : { ...next, answer: as };
}

/** The request that was sent and has no answer, while none is waited for. */
export function openRequest({ sent, isSending }: Pick<State, 'sent' | 'isSending'>): SentRequest | undefined {
  return isSending ? undefined : sent;
}

/** Whether a request can be sent again without being done twice: for as long as the service knows its key. */
export function isRepeatable({ key, at }: Pick<SentRequest, 'key' | 'at'>, now: number): boolean {
  return key === undefined || now - at < KEY_KEPT;
}

/** Whether the user's role in the chosen experiment allows something. */
export function mayDo({ chosen: experiment }: Pick<State, 'chosen'>, permission: Permission): boolean {
  return experiment !== undefined && may(experiment.role, permission);
}

/** The clock and the time with which times are written. */
export function calendarOf({ zone, now }: Pick<State, 'zone' | 'now'>): Calendar {
  return { clock: clockOf(zone), now };
}

/** The reservation that the draft changes. */
function ownOf({ draft, live }: Pick<State, 'draft' | 'live'>): OwnReservation | undefined {
  return draft.id === undefined ? undefined : live?.find(({ id }) => id === draft.id);
}

/** The draft as it reads now. */
export function readForm({
  draft,
  network,
  chosen: experiment,
  answer,
  live,
  ...time
}: FormParts): ReadDraft {
  const links = network?.links ?? [];
  const expiry = experiment ? Date.parse(experiment.expires_at) : Number.POSITIVE_INFINITY;
  const own = ownOf({ draft, live });
  const read = readDraft(draft, { ...time, links, expiry, own });
  const isTaken = read.wish && answer.kind === 'refused' && answer.facts.code === 'name_taken';
  return isTaken ? { ...read, problems: new Map([['name', 'This name is taken.']]) } : read;
}

/** The parts of the state with which the form is read. */
export type FormParts = Pick<State, 'draft' | 'now' | 'zone' | 'network' | 'chosen' | 'answer' | 'live'>;
/** See {@link FormParts}. */
export function formParts({ draft, now, zone, network, chosen: experiment, answer, live }: State): FormParts {
  return { draft, now, zone, network, chosen: experiment, answer, live };
}

/** The share of each link that is in use at an instant, 0 to 1; null where it is not known. */
export function useAt(
  now: number,
  { use, network }: Pick<State, 'use' | 'network'>,
): ReadonlyMap<Link, number | null> {
  const shareOf = (link: Link): number | null => {
    const columns = use.find((one) => isSamePair(one, link))?.columns ?? [];
    const column = columns.find(({ start, end }) => start <= now && now < end);
    return column ? 1 - column.free / link.bandwidth : null;
  };
  return new Map(network?.links.map((link) => [link, shareOf(link)]));
}

/** The parts of the state that make routes. */
export type RouteParts = Pick<State, 'selected' | 'network' | 'draft' | 'answer' | 'live'>;
/** See {@link RouteParts}. */
export function routeParts({ selected, network, draft, answer, live }: State): RouteParts {
  return { selected, network, draft, answer, live };
}

/** The route of the draft: as the service answered; until then its reservation's, or what it is where nothing is reserved. */
export function draftRoute({
  draft,
  answer,
  live,
  network,
}: Omit<RouteParts, 'selected'>): Route | undefined {
  const links = network?.links ?? [];
  if (answer.kind === 'fits') return answer.route;
  const own = ownOf({ draft, live });
  return own ? routeOver(links, own) : routeBetween(links, draft);
}

/** The route between the sites that are looked at, as far as it is known; undefined until both are chosen. */
export function shownRoute(state: RouteParts): Route | undefined {
  const { selected, network, draft } = state;
  const links = network?.links ?? [];
  if (!selected) return undefined;
  if (selected.via) return routeOver(links, selected);
  return isSamePair(selected, draft) ? draftRoute(state) : routeBetween(links, selected);
}

/** The rows of links in the timeline. */
export function linkRows({ network }: Pick<State, 'network'>, some: readonly Ends[]): number[] {
  const links = network?.links ?? [];
  return some.map((ends) => links.findIndex((link) => isSamePair(link, ends)));
}

/** The rows of the timeline that are marked: of the two sites first, then of each link of their route. */
export function shownRows(state: RouteParts): readonly number[] {
  const { selected, network } = state;
  const links = network?.links ?? [];
  const route = shownRoute(state);
  if (!selected || !route) return [];
  const hops = linkRows(state, hopsOf(links, route.sites));
  return linkBetween(links, selected) ? hops : [links.length, ...hops];
}

/** The draft's period on its route, as the timeline marks it; undefined where it has none, or its user may send none. */
export function markOf(state: FormParts & RouteParts): DraftMark | undefined {
  const { draft, selected, network } = state;
  const links = network?.links ?? [];
  const { period } = readForm(state);
  const route = draftRoute(state);
  if (!route || !period || !mayDo(state, draft.id === undefined ? 'create' : 'update')) return undefined;
  if (selected && isSamePair(selected, draft)) return { rows: shownRows(state), ...period };
  return { rows: linkRows(state, hopsOf(links, route.sites)), ...period };
}

const markIn = remembered((state: State) => ({ ...formParts(state), ...routeParts(state) }), markOf);
const rowsIn = remembered(routeParts, shownRows);
// One object for as long as its two sites are looked at: what is loaded of it belongs to it.
const pairIn = remembered(
  ({ selected, network }: State) => ({
    site1: selected?.site1 ?? '',
    site2: selected?.site2 ?? '',
    links: network?.links,
  }),
  ({ links = [], ...ends }) => pairOf(links, ends),
);

/** The facts of the page that the timeline needs; the same ones for as long as the state says the same of them. */
export function timelineTerms(state: State): TimelineTerms {
  return {
    ...calendarOf(state),
    pair: pairIn(state),
    selectedRows: rowsIn(state),
    links: state.network?.links.length ?? 0,
    mark: markIn(state),
    mayPick: mayDo(state, 'create'),
  };
}
