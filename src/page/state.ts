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
  type DraftMark,
  openTimeline,
  type TimelineAction,
  type TimelineState,
  type TimelineTerms,
} from './timeline/model.ts';

/**
 * The answer about the draft: to a dry run, or to the request that was sent. It is kept with the wish that it answers: once the
 * draft means another one, it is `moved`.
 */
export type Answer =
  /** Nothing is known: something is missing, or no question was asked yet. */
  | { kind: 'none' }
  /** The last answer is about other times than the draft means now. Nothing is sent until the question was asked again. */
  | { kind: 'moved' }
  /** A dry run is under way. */
  | { kind: 'asking'; wish: Wish }
  /** It fits. `free`: what is free on its route then, where the service says so; of a change its own part would count as used. `isEarliest`: no earlier start was found. */
  | { kind: 'fits'; wish: Wish; route: Route; free: Column | undefined; isEarliest?: boolean }
  /** `isSent`: the request itself was refused, not only its dry run. */
  | { kind: 'refused'; wish: Wish; facts: RefusedReply; isSent: boolean }
  /** The dry run had no answer. */
  | { kind: 'away'; wish: Wish };

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

/** All that the page knows. Views are functions of it, and only `change` makes the next one. */
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
  /** What is typed to find some of them; empty for all. */
  filter: string;
  /** Why the reservations can't be seen, where the service says so. */
  hidden?: string;
  /** The ids of reservations with a request under way. */
  busy: ReadonlySet<string>;
  /** The sites between which the route is marked everywhere. */
  selected?: Selected;
  /** The id of the reservation that is looked at, in the list and in the timeline. */
  marked?: string;
  /** The content of the form, which the timeline marks as it is typed. */
  draft: Draft;
  /** The draft that stood in the form before a reservation was to be changed. */
  aside: Draft;
  /** Whether the draft was sent as it is: then empty fields are named. */
  isChecked: boolean;
  /** Whether the draft is what a booking has left: its sites. It is not sent before something in it is changed. */
  isLeft: boolean;
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
  /** Links whose use may have changed since it was asked for: a new list each time. */
  stale: readonly Ends[];
}

/** Everything that changes the state. */
export type Action =
  /** Time has passed. */
  | { type: 'tick' }
  /** Facts that nothing else depends on. */
  | {
      type: 'learnt';
      facts: Partial<
        Pick<
          State,
          | 'network'
          | 'reach'
          | 'use'
          | 'stale'
          | 'ended'
          | 'filter'
          | 'hidden'
          | 'marked'
          | 'selected'
          | 'isDoubted'
        >
      >;
    }
  /** Times are written, and read, in another zone. */
  | { type: 'zoned'; zone: string }
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
  /** The form was filled or typed in: what was said of another draft goes. */
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
    ...{
      now,
      ahead: 0,
      zone,
      reach: { isAway: false, since: now },
      use: [],
      stale: [],
      filter: '',
      busy: new Set(),
    },
    ...{ isDoubted: true, hasEnded: false },
    ...{ draft: kept.draft ?? EMPTY_DRAFT, aside: EMPTY_DRAFT },
    ...{ isChecked: false, isLeft: false, isSending: false },
    answer: { kind: 'none' },
    sent: kept.sent,
    owner: kept.owner,
    timeline: openTimeline(now, clockOf(zone)),
  };
}

/** The request that was sent and has no answer, while none is waited for. */
export function openRequest({ sent, isSending }: Pick<State, 'sent' | 'isSending'>): SentRequest | undefined {
  return isSending ? undefined : sent;
}

/** Whether something stands in the form that would be lost without it. */
export function isTyped({ draft, isLeft }: Pick<State, 'draft' | 'isLeft'>): boolean {
  return !isLeft && !isSameDraft(draft, EMPTY_DRAFT);
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
  const known = own ?? (draft.via ? draft : undefined);
  return known ? routeOver(links, known) : routeBetween(links, draft);
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
function linkRows({ network }: Pick<State, 'network'>, some: readonly Ends[]): number[] {
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

const NONE: readonly Link[] = [];

/** The facts of the page that the timeline needs; the same ones for as long as the state says the same of them. */
export function timelineTerms(state: State): TimelineTerms {
  return {
    ...calendarOf(state),
    pair: pairIn(state),
    selectedRows: rowsIn(state),
    links: state.network?.links ?? NONE,
    mark: markIn(state),
    mayPick: mayDo(state, 'create'),
  };
}
