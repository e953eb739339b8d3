import { News, type OpenEvents, type StreamEvent } from '../client/events.ts';
import type { Availability, UseList } from '../contract/availability.ts';
import { setBounded } from '../contract/bounded.ts';
import type { Experiment } from '../contract/directory.ts';
import { EVENT_STREAM_TYPE, type LinkEvent } from '../contract/events.ts';
import { Failure, type FailureDetail } from '../contract/failure.ts';
import type { Period } from '../contract/instants.ts';
import type { Place, Link as WholeLink } from '../contract/links.ts';
import type { RefusalFacts } from '../contract/problems.ts';
import { MAX_PAGE_ITEMS } from '../contract/request-limits.ts';
import type { Reservation, ReservationEvent } from '../contract/reservation.ts';
import { queryOf, type ReservationRequest, toBody } from '../contract/reservation-request.ts';
import { readProblem } from '../words/problems.ts';

/** A link as the page knows it: its sites, and its capacity in Mbps. It has no direction. */
export type Link = Pick<WholeLink, 'site1' | 'site2' | 'bandwidth'>;

/** Two sites, named either way round. */
export type Ends = Pick<Link, 'site1' | 'site2'>;

/** A part of a period, and what between two sites is free in it. */
export interface Column extends Period {
  /** Mbps that are free throughout the part. */
  free: number;
  /** Mbps that are free at best, for some of the part. */
  freeMax: number;
  /** The fewest free VLANs at any instant of the part. */
  vlans: number;
  /** All sites of the route that has this; absent where one link is all. */
  route?: readonly string[];
}

/** A reservation of the chosen experiment, with its period also in milliseconds. */
export type OwnReservation = Reservation & Period;

/** An event of the service: of a reservation of the experiment, or of a link. */
export type Told = (Omit<ReservationEvent, 'reservation'> & { reservation: OwnReservation }) | LinkEvent;

/** The use of each link, in columns. */
export type LinkUse = readonly (Ends & { columns: readonly Column[] })[];

/** The members of an {@link OwnReservation} that are drawn and said. */
export type Own = Pick<
  OwnReservation,
  'id' | 'name' | 'site1' | 'via' | 'site2' | 'bandwidth' | 'start' | 'end'
>;

/** An experiment that the user takes part in. The role is as the portal says it; see `readRole` of contract/roles.ts. */
export interface ExperimentChoice extends Pick<Experiment, 'id' | 'name' | 'role' | 'expires_at'> {
  project: { id: string; name: string };
}

/** The public facts of a server: the reply of `GET ui/api/network`. */
export interface NetworkFacts {
  /** The operator's name for the server. */
  name: string | null;
  base_url: string;
  /** Whether a login is possible here. */
  login: boolean;
  sites: readonly { name: string; place: Readonly<Place> | null }[];
  links: readonly Link[];
}

/** Who is logged in: the reply of `GET ui/api/session`. */
export interface Login {
  user: { id: string; name: string } | null;
  experiments: readonly ExperimentChoice[];
}

/** The facts of a refused reply. */
export interface RefusedReply extends Required<RefusalFacts> {
  status: number;
  /** A problem code of contract/problems.ts, or empty. */
  code: string;
  /** The errors; their words are in src/words. */
  details: readonly FailureDetail[];
}

/** A request to create a reservation, or to update one. It is the same text each time that it is sent. */
export interface FormRequest {
  request: ReservationRequest;
  /** Of an update: the reservation's id. */
  id?: string;
  /** Of a request to create: its idempotency key. */
  key?: string;
}

/** The service said no. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly facts: RefusedReply;

  constructor(facts: RefusedReply) {
    super(facts.details.map(({ msg }) => msg).join(' '));
    this.facts = facts;
  }

  /** Whether the login has ended: everything that needs one is refused until the next. */
  get isLoggedOut(): boolean {
    return this.facts.code === 'token_missing';
  }
}

/** No answer came, or the answer does not say whether a change was made. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered';
}

/** The server, as the page asks it. Every function rejects with {@link Refused}, {@link Unanswered} or an AbortError. */
export type Service = ReturnType<typeof createService>;

/** Options of {@link createService}. */
export interface ServiceOptions {
  /** The address of `ui/`, with a slash at its end. */
  base: URL;
  /** The half of the session's secret that this browser keeps; null where it keeps none. */
  secret: () => string | null;
  fetch: (url: URL, init: RequestInit) => Promise<Response>;
}

/** How long an answer may take, in milliseconds. */
const TIMEOUT = 20_000;
/** The most replies of a kind that are kept to be asked about by their ETag. */
const MOST_KEPT = 500;

const withPeriod = (reply: Reservation): OwnReservation => ({
  ...reply,
  start: Date.parse(reply.start_date),
  end: Date.parse(reply.end_date),
});

const columnsOf = ({ items, routes }: Pick<Availability, 'items' | 'routes'>): readonly Column[] =>
  items.map((item) => ({
    start: Date.parse(item.start_date),
    end: Date.parse(item.end_date),
    free: item.bandwidth,
    freeMax: item.bandwidth_max,
    vlans: item.vlans,
    route: routes?.[item.route ?? -1],
  }));

function toldBy({ event, data }: StreamEvent): Told | undefined {
  if (event !== 'reservation') return event === 'link' ? JSON.parse(data) : undefined;
  const { type, reservation }: ReservationEvent = JSON.parse(data);
  return { type, reservation: withPeriod(reservation) };
}

function windowQuery({ start, end }: Period, points: number): URLSearchParams {
  const [from, until] = [new Date(start).toISOString(), new Date(end).toISOString()];
  return new URLSearchParams({ start: from, end: until, points: `${points}` });
}

/** Options of a read. */
interface ReadOptions {
  experiment?: string;
  signal?: AbortSignal;
}

/** The problem body of a refused reply; none where a proxy in between answers with a page of its own. */
function problemOf(text: string): RefusalFacts {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** The facts of a refused reply, however much of the problem body it has. */
function factsOf(status: number, body: RefusalFacts): RefusedReply {
  const { code = '', details } = readProblem(body);
  const none = { loc: [], msg: `The server answered with status ${status}.`, type: '' };
  return {
    status,
    code,
    details: details.length > 0 ? details : [none],
    limits: body.limits ?? [],
    free: body.free ?? [],
    alternatives: body.alternatives ?? [],
  };
}

/** Replies after which a change may have been made or not: no service answered, or the service does not know. */
const isUnknown = ({ status, code }: RefusedReply): boolean =>
  code === 'outcome_unknown' || code === 'internal' || (status >= 500 && code === '');

/** Sends one request. @throws Refused, Unanswered, or the signal's reason */
type Send = (
  path: string,
  init?: RequestInit & { headers?: Readonly<Record<string, string>> },
) => Promise<Response>;

/**
 * Makes the functions that send requests, with this browser's half of the session's secret: `ask` waits {@link TIMEOUT}
 * at most, and a stream lasts until its signal ends it.
 */
function createSenders({ base, secret, fetch }: ServiceOptions): { ask: Send; openStream: Send } {
  const send = async (
    path: string,
    init: NonNullable<Parameters<Send>[1]>,
    limits: readonly AbortSignal[],
  ) => {
    const kept = secret();
    const signals = [...limits, ...(init.signal ? [init.signal] : [])];
    let reply: Response;
    let text: string;
    try {
      reply = await fetch(new URL(path, base), {
        ...init,
        headers: { ...init.headers, ...(kept === null ? {} : { 'slices-session': kept }) },
        cache: 'no-store',
        signal: AbortSignal.any(signals),
      });
      if (reply.ok || reply.status === 304) return reply;
      text = await reply.text();
    } catch (cause) {
      init.signal?.throwIfAborted();
      throw new Unanswered('The server does not answer.', { cause });
    }
    const facts = factsOf(reply.status, problemOf(text));
    throw isUnknown(facts) ? new Unanswered(new Refused(facts).message) : new Refused(facts);
  };
  return {
    ask: (path, init = {}) => send(path, init, [AbortSignal.timeout(TIMEOUT)]),
    openStream: (path, init = {}) => send(path, init, []),
  };
}

/** Makes the function that opens streams of events. */
function eventsOf(openStream: Send, experiment: string | undefined, visit: () => AbortSignal): OpenEvents {
  const headers = {
    accept: EVENT_STREAM_TYPE,
    ...(experiment === undefined ? {} : { 'slices-experiment': experiment }),
  };
  return async (since, signal) => {
    const query = new URLSearchParams({ links: 'true', ...(since === undefined ? {} : { since }) });
    try {
      const path = `api/events?${query}`;
      return await openStream(path, { headers, signal: AbortSignal.any([signal, visit()]) });
    } catch (cause) {
      const httpStatus = cause instanceof Refused ? cause.facts.status : undefined;
      throw new Failure('network', 'There is no stream of events.', { httpStatus, cause });
    }
  };
}

/** The text of a successful reply. @throws Unanswered when it breaks off */
async function textOf(reply: Response, signal?: AbortSignal): Promise<string> {
  try {
    return await reply.text();
  } catch (cause) {
    signal?.throwIfAborted();
    throw new Unanswered('The answer broke off.', { cause });
  }
}

/** Makes functions that read something again and again: an unchanged reply is not sent twice, and is the same object as before. */
function createReaders(ask: Send) {
  const caches: Map<string, unknown>[] = [];
  function reader<Value>(parse: (text: string) => Value) {
    const kept = new Map<string, { tag: string; value: Value }>();
    caches.push(kept);
    return async (path: string, { experiment, signal }: ReadOptions = {}): Promise<Value> => {
      const name = `${experiment ?? ''} ${path}`;
      const known = kept.get(name);
      const headers = {
        accept: 'application/json',
        ...(experiment === undefined ? {} : { 'slices-experiment': experiment }),
        ...(known === undefined ? {} : { 'if-none-match': known.tag }),
      };
      const reply = await ask(path, { headers, signal });
      const value = reply.status === 304 && known ? known.value : parse(await textOf(reply, signal));
      const tag = reply.headers.get('etag');
      kept.delete(name);
      if (tag !== null) setBounded(kept, name, { tag, value }, MOST_KEPT);
      return value;
    };
  }
  const forget = (): void => {
    for (const cache of caches) cache.clear();
  };
  return { reader, forget };
}

/** Makes the functions that ask the page's own server. */
export function createService(options: ServiceOptions) {
  const { ask, openStream } = createSenders(options);
  const { reader, forget } = createReaders(ask);
  const readNetwork = reader((text): NetworkFacts => JSON.parse(text));
  const readSession = reader((text): Login => JSON.parse(text));
  const readColumns = reader((text) => columnsOf(JSON.parse(text)));
  const readUse = reader((text): LinkUse => {
    const { items }: UseList = JSON.parse(text);
    return items.map((item) => ({ site1: item.site1, site2: item.site2, columns: columnsOf(item) }));
  });
  const readPage = reader((text) => {
    const { items, nextCursor }: { items: Reservation[]; nextCursor: string | null } = JSON.parse(text);
    return { items: items.map(withPeriod), nextCursor };
  });

  async function list(experiment: string, state: string, signal?: AbortSignal): Promise<OwnReservation[]> {
    const found: OwnReservation[] = [];
    const query = new URLSearchParams({ state, limit: `${MAX_PAGE_ITEMS}` });
    for (;;) {
      const { items, nextCursor } = await readPage(`api/connectivity?${query}`, { experiment, signal });
      found.push(...items);
      if (nextCursor === null) return found;
      query.set('cursor', nextCursor);
    }
  }

  /** Sends a change: other pages can't set this header. */
  function change(method: string, path: string, headers: Record<string, string>, init: RequestInit = {}) {
    return ask(path, { ...init, method, headers: { 'x-slices-conn': 'ui', ...headers } });
  }

  /** Creates or updates a reservation. @param dryRun the signal of a dry run, which carries no key */
  async function reserve(
    experiment: string,
    { id, request, key }: FormRequest,
    dryRun?: AbortSignal,
  ): Promise<OwnReservation> {
    const path = id === undefined ? 'api/connectivity' : `api/connectivity/${encodeURIComponent(id)}`;
    const query = new URLSearchParams(queryOf(request, { dryRun: dryRun !== undefined }));
    const reply = await change(
      id === undefined ? 'POST' : 'PUT',
      query.size === 0 ? path : `${path}?${query}`,
      {
        accept: 'application/json',
        'content-type': 'application/json',
        'slices-experiment': experiment,
        ...(key === undefined || dryRun ? {} : { 'idempotency-key': key }),
      },
      { body: JSON.stringify(toBody(request, [])), signal: dryRun },
    );
    // A dry run that is refused is no failure of the request: browsers would show it as an error.
    const answer: Reservation | { ok: false; problem: RefusalFacts } = JSON.parse(
      await textOf(reply, dryRun),
    );
    if ('problem' in answer) throw new Refused(factsOf(422, answer.problem));
    return withPeriod(answer);
  }

  return {
    network: () => readNetwork('api/network'),
    session: () => readSession('api/session'),
    /** Begins a login. @returns where the browser goes for it, and what ends it, to be kept in this tab until then */
    async beginLogin(): Promise<{ address: string; begun: string }> {
      return JSON.parse(await textOf(await change('POST', 'login', {})));
    },
    /**
     * Ends a login. The browser gets the session's cookie.
     *
     * @param query with which the browser came back
     * @returns the other half of the session's secret, to be kept in this browser
     */
    async endLogin(query: string, begun: string): Promise<string> {
      const reply = await change('POST', `session${query}`, { 'slices-login': begun });
      const { session }: { session: string } = JSON.parse(await textOf(reply));
      return session;
    },
    async logOut(): Promise<void> {
      await change('POST', 'logout', {});
      forget();
    },
    /** Reads the free capacity between two sites in a window, in columns of equal length. */
    columns({ site1, site2 }: Ends, window: Period, points: number, signal?: AbortSignal) {
      const path = `api/links/${encodeURIComponent(site1)}/${encodeURIComponent(site2)}/availability`;
      return readColumns(`${path}?${windowQuery(window, points)}`, { signal });
    },
    /**
     * The use of links in a window. The same value as before says that none of them has changed.
     *
     * @param links 40 at most. Default: all links
     */
    use(window: Period, points: number, signal?: AbortSignal, links: readonly Ends[] = []) {
      const query = windowQuery(window, points);
      for (const { site1, site2 } of links) query.append('link', `${site1},${site2}`);
      return readUse(`api/links/use?${query}`, { signal });
    },
    /**
     * Opens the events of the links, and of the reservations of an experiment.
     *
     * @param visit gives up what is open, as the login ends
     * @param cursor where another one has stopped
     */
    news: (experiment: string | undefined, visit: () => AbortSignal, cursor?: string): News<Told> =>
      new News(eventsOf(openStream, experiment, visit), toldBy, cursor),
    /** The experiment's reservations that have not ended. */
    async live(experiment: string, signal?: AbortSignal): Promise<readonly OwnReservation[]> {
      const lists = await Promise.all(
        ['active', 'scheduled'].map((state) => list(experiment, state, signal)),
      );
      // One that starts between the two requests is in both.
      return [...new Map(lists.flat().map((own) => [own.id, own])).values()];
    },
    ended: (experiment: string) => list(experiment, 'ended'),
    /** Asks whether a reservation would be made; nothing is. */
    dryRun: (experiment: string, asked: FormRequest, signal: AbortSignal) =>
      reserve(experiment, asked, signal),
    /** Makes or updates a reservation. */
    send: (experiment: string, asked: FormRequest) => reserve(experiment, asked),
    async delete(experiment: string, id: string): Promise<void> {
      await change('DELETE', `api/connectivity/${encodeURIComponent(id)}`, {
        'slices-experiment': experiment,
      });
    },
    /** A reservation's connectivity token, signed by the service. */
    async token(experiment: string, id: string): Promise<string> {
      const headers = { accept: 'application/jwt', 'slices-experiment': experiment };
      return textOf(await ask(`api/connectivity/${encodeURIComponent(id)}`, { headers }));
    },
  };
}
