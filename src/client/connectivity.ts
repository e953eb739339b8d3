import * as v from 'valibot';
import { Availability, type RouteItem, RouteList, type Slot, SlotList } from '../contract/availability.ts';
import { isoDuration } from '../contract/durations.ts';
import { EVENT_STREAM_TYPE } from '../contract/events.ts';
import { Failure, isMissing } from '../contract/failure.ts';
import { NextCursor } from '../contract/fields.ts';
import { formatInstant, type ReservationState } from '../contract/instants.ts';
import { type Link, LinkList } from '../contract/links.ts';
import { isProblemCode, PROBLEMS } from '../contract/problems.ts';
import { MAX_PAGE_ITEMS, MAX_ROUTE_ITEMS } from '../contract/request-limits.ts';
import {
  type AskedRoute,
  asksForRoute,
  type Reservation,
  type ReservationEvent,
  ReservationReply,
} from '../contract/reservation.ts';
import { JWT_TYPE, type RouteName } from '../contract/routes.ts';
import type { Transport } from '../contract/sending.ts';
import { type Change, type ChangeOptions, createChange } from './changes.ts';
import { News, reservationEvent } from './events.ts';
import { type Query, readAs } from './exchange.ts';
import { type Extension, requireFeatures, type ServiceFeatures } from './features.ts';
import { type ProofOptions, type ProvenReservation, prove } from './proof.ts';
import type { Reply } from './reply-failure.ts';
import {
  type ConnectivityClientOptions,
  type SentTokens,
  type ServiceRequests,
  serviceRequests,
} from './service-requests.ts';

/** The connectivity service, seen from a client. Every method throws Failure. */
export interface ConnectivityClient {
  /**
   * The extensions of the API that the service has, by its API description, which is remembered for a minute.
   *
   * @throws Failure when the description can't be fetched
   */
  features(): Promise<ServiceFeatures>;
  /** A reservation, proven. */
  show(id: string, options?: ProofOptions): Promise<ProvenReservation>;
  /**
   * Makes 1 to 64 changes, all or none, and verifies the signed answer about each. One goes by its own route, several as
   * a batch; so does one with `earliest`, and a dry run of an update or a deletion. Where the service chooses period or
   * rate, the answer must lie within the request.
   *
   * @example
   * const [booked] = await client.change([{ action: 'create', request }]);
   *
   * @returns for each item, in their order, what it leaves behind; null for a deletion
   * @throws Failure for a refusal; of a batch, its `details` name the refused items by their index
   * @throws Failure `unverified` or `unsigned` with `reservation`, or of a batch `reservations`: the ids, where the changes
   *   were made and an answer does not verify
   * @throws Failure `not_supported` for what the service's API description does not mention: a search, a batch, a dry run.
   *   Nothing was sent, since it might book otherwise (THREATS.md 45)
   * @throws Failure `reply_invalid` where the service booked in spite of a dry run
   */
  change: Change<ChangeOptions>;
  /**
   * The experiment's reservations, all pages; undefined where the service has no list.
   *
   * @param state lists these only, where the service has that filter; a service without it lists all
   */
  list(state?: ReservationState): Promise<Reservation[] | undefined>;
  /** The events of the experiment's reservations, as they happen. */
  news(): News<ReservationEvent>;
  /** The names of the service's sites; undefined where its API description does not tell them. */
  sites(): Promise<readonly string[] | undefined>;
  /** The links between sites; undefined where the service does not list them. */
  links(): Promise<Link[] | undefined>;
  /**
   * A link's use over time, the exact steps of all pages joined.
   *
   * @throws Failure `not_supported` where the service does not tell it
   */
  availability(question: AvailabilityQuestion): Promise<Availability>;
  /**
   * When a reservation can start, in order: all runs of starts that fit.
   *
   * @throws Failure `not_supported` where the service does not tell it
   */
  slots(question: SlotsQuestion): Promise<Slot[]>;
  /**
   * The routes between two sites, by hops: 100 at most.
   *
   * @throws Failure `not_supported` where the service has no routes
   */
  routes(question: RoutesQuestion): Promise<RouteItem[]>;
}

/** Between which sites a route is asked for, and what is asked of it. */
export interface RoutesQuestion extends AskedRoute {
  /** One end. */
  site1: string;
  /** The other end. */
  site2: string;
}

/** Between which sites is asked, over which routes, and over which window. Times in milliseconds. */
export interface LinkWindow extends RoutesQuestion {
  /** Default: now. At most 24 h ago. */
  start?: number;
  /** Default: 7 days after the start. At most 5 years after it. */
  end?: number;
}

/** The question of {@link ConnectivityClient.availability}. */
export interface AvailabilityQuestion extends LinkWindow {
  /** Columns of equal length in place of the exact steps: 1 to 2000. */
  points?: number;
}

/** The question of {@link ConnectivityClient.slots}. */
export interface SlotsQuestion extends LinkWindow {
  /** Mbps. */
  bandwidth: number;
  /** Milliseconds, 1000 at least. The whole reservation lies within the window. */
  duration: number;
}

/** A client of the connectivity service over any `fetch`. */
export function createConnectivityClient(
  options: Omit<ConnectivityClientOptions, 'fetch'> & Transport,
): ConnectivityClient {
  const service = serviceRequests(options);
  const { send, features } = service;
  return {
    features,
    change: createChange(service),

    async show(id, proof) {
      const reply = await send('readReservation', { tokens: 'both', accept: JWT_TYPE, values: { id } });
      return prove(service, reply, { id, experiment: await service.experiment() }, proof);
    },

    async list(state) {
      const first = { limit: String(MAX_PAGE_ITEMS), state };
      const read = (reply: Reply) => readAs(ReservationPage, reply, 'list of reservations');
      const ask = (query: Query) =>
        send('listReservations', { tokens: 'both', accept: 'application/json', query });
      const pages = await orUndefined(readPages(first, 'list of reservations', read, ask)).catch(
        async (error: unknown) => {
          // A service without a list may answer anything to its address: its description says whether it has one.
          if (!isAnswered(error) || (await features().catch(answered))?.list) throw error;
          return undefined;
        },
      );
      return pages?.flatMap(({ items }) => items);
    },

    news: () =>
      new News((since, signal) => {
        const request = { tokens: 'both', accept: EVENT_STREAM_TYPE, query: { since } } as const;
        return service.open('events', request, signal);
      }, reservationEvent),

    async sites() {
      return (await orUndefined(features()))?.sites;
    },

    async links() {
      const asked = send('listLinks', { tokens: 'user', accept: 'application/json' });
      const reply = await orUndefined(asked);
      return reply && readAs(LinkList, reply, 'list of links').items;
    },

    async availability({ points, ...question }) {
      const query = { ...linkQuery(question), points: points?.toString() };
      const read = (reply: Reply) => readAs(AvailabilityPage, reply, 'availability of the link');
      const [first, ...rest] = await linkAnswers(service, 'availability', question, query, read);
      if (!first) throw new RangeError('a list has a first page');
      return { ...first, ...joined([first, ...rest]), nextCursor: null };
    },

    async slots({ bandwidth, duration, ...question }) {
      const asked = { bandwidth: String(bandwidth), duration: isoDuration(duration) };
      const query = { ...linkQuery(question), ...asked };
      const read = (reply: Reply) => readAs(SlotPage, reply, 'list of slots');
      const pages = await linkAnswers(service, 'slots', question, query, read);
      return pages.flatMap(({ items }) => items);
    },

    async routes(question) {
      const query = { ...linkQuery(question), limit: String(MAX_ROUTE_ITEMS) };
      const read = (reply: Reply) => readAs(RouteList, reply, 'list of routes');
      const pages = await linkAnswers(service, 'routes', question, query, read);
      return pages.flatMap(({ items }) => items);
    },
  };
}

/** The parts of all pages, with the routes that they name. */
function joined(pages: readonly Availability[]): Pick<Availability, 'items' | 'routes'> {
  const all = pages.flatMap(({ routes = [] }) => routes.map((sites) => sites.join(' ')));
  const names = [...new Set(all)];
  const items = pages.flatMap(({ items, routes = [] }) =>
    items.map(({ route, ...part }) =>
      route === undefined ? part : { ...part, route: names.indexOf(routes[route]?.join(' ') ?? '') },
    ),
  );
  return { items, routes: names.length > 0 ? names.map((name) => name.split(' ')) : undefined };
}

/** The questions about a link, each named as its feature: its route, and the tokens that it carries. */
const LINK_QUESTIONS = {
  availability: ['linkAvailability', 'user'],
  slots: ['linkSlots', 'share'],
  routes: ['linkRoutes', 'user'],
} as const satisfies Partial<Record<Extension, [RouteName, SentTokens]>>;

/**
 * All pages of an answer about a link.
 *
 * @throws Failure `not_supported` where the service fails to answer and its API description does not mention the question
 */
async function linkAnswers<Page extends { nextCursor: string | null }>(
  { send, features }: ServiceRequests,
  feature: keyof typeof LINK_QUESTIONS,
  { site1, site2, ...asked }: RoutesQuestion,
  first: Query,
  read: (reply: Reply) => Page,
): Promise<Page[]> {
  // A service without routes would answer about any.
  if (asksForRoute(asked)) await requireFeatures(features, ['routes'], true);
  const [route, tokens] = LINK_QUESTIONS[feature];
  const values = { site1, site2 };
  const ask = (query: Query) => send(route, { tokens, accept: 'application/json', values, query });
  try {
    return await readPages(first, 'answer', read, ask);
  } catch (error) {
    const isUnreadable = error instanceof Failure && error.code === 'reply_invalid';
    if (isUnreadable || isMissing(error)) await requireFeatures(features, [feature], true);
    throw error;
  }
}

/** Undefined where the service has no such endpoint. */
async function orUndefined<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Whether a service answered itself, and not that it is busy, or that a token was not accepted. */
function isAnswered(error: unknown): boolean {
  if (!(error instanceof Failure)) return false;
  const { httpStatus = 0 } = error.facts;
  // A redirect leads to another service, which may have the reservations.
  if (httpStatus === 0 || httpStatus >= 429 || Math.floor(httpStatus / 100) === 3) return false;
  return !(isProblemCode(error.code) && PROBLEMS[error.code].exit === 4);
}

/** Nothing in place of a description that the service does not give. @throws where it did not answer */
function answered(error: unknown): undefined {
  if (!isAnswered(error)) throw error;
}

/** Some services leave it out of the last page. */
const nextCursor = v.optional(NextCursor, null);
const ReservationPage = v.object({ items: v.array(ReservationReply), nextCursor });
const AvailabilityPage = v.object({ ...Availability.entries, nextCursor });
const SlotPage = v.object({ ...SlotList.entries, nextCursor });

/** The parameters of a window and a route. */
function linkQuery({ start, end, via = [], avoid = [], direct }: Omit<LinkWindow, 'site1' | 'site2'>): Query {
  return {
    start: start === undefined ? undefined : formatInstant(start),
    end: end === undefined ? undefined : formatInstant(end),
    via: via.join(',') || undefined,
    avoid: avoid.join(',') || undefined,
    direct: direct ? 'true' : undefined,
  };
}

/** The most that is read of a list in all its pages, in characters (THREATS.md 56). */
const MAX_LIST = 64 * 1_048_576;
/** The most pages that are asked for: pages without items would never fill {@link MAX_LIST}. */
const MAX_PAGES = 1000;

/**
 * Reads all pages of a list.
 *
 * @param query of the first page
 * @param what names it in an error, such as "list of reservations"
 * @param ask fetches a page
 * @throws Failure `reply_invalid` for a list that does not end: a cursor that comes again, or too much in all
 */
async function readPages<Page extends { nextCursor: string | null }>(
  query: Query,
  what: string,
  read: (reply: Reply) => Page,
  ask: (query: Query) => Promise<Reply>,
): Promise<Page[]> {
  const pages: Page[] = [];
  const cursors = new Set<string>();
  let size = 0;
  for (let next: Query = query; ; ) {
    const reply = await ask(next);
    const page = read(reply);
    pages.push(page);
    const { nextCursor } = page;
    if (nextCursor === null) return pages;
    if (cursors.has(nextCursor)) throw endless(what, 'A page names an earlier page as its next page.');
    cursors.add(nextCursor);
    size += reply.text.length;
    if (size > MAX_LIST || cursors.size >= MAX_PAGES) {
      throw endless(what, `After ${cursors.size} pages and ${size} characters there is still another page.`);
    }
    next = { ...query, cursor: nextCursor };
  }
}

function endless(what: string, why: string): Failure {
  return new Failure('reply_invalid', `The service's ${what} does not end.`, { why });
}
