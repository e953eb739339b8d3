import * as v from 'valibot';
import { Failure, shellWord } from '../contract/failure.ts';
import { type Link, LinkList } from '../contract/links.ts';
import {
  type Reservation,
  ReservationReply,
  type ReservationRequestBody,
  type ReservationState,
} from '../contract/reservation.ts';
import {
  EXPERIMENT_TOKEN_HEADER,
  IDEMPOTENCY_KEY_HEADER,
  JWT_TYPE,
  type RouteName,
} from '../contract/routes.ts';
import type { Secret } from '../contract/secret.ts';
import type { Trust } from '../tokens/verify.ts';
import { claimedSubject } from './claimed.ts';
import {
  bearerHeader,
  exchange,
  type Fetch,
  headerToken,
  isMissing,
  REPLY_TIMEOUT,
  readAs,
  readTokenInput,
  requestTo,
  type TokenInput,
  tokenIn,
} from './exchange.ts';
import {
  checkDeletion,
  checkExpectation,
  claimedId,
  type Expectation,
  type ProvenReservation,
  proveReservation,
  readReservation,
} from './proof.ts';
import { expiredInstead, type Reply } from './reply-failure.ts';
import { type NewReservation, type ReservationChange, requestedOf, updated } from './reservation-request.ts';

/** Where the two tokens go (DESIGN.md, "Experiment token's header", column Client). */
export type TokenPlacement = 'user' | 'experiment';

/** What the connectivity service's client needs. */
export interface ConnectivityClientOptions {
  fetch: Fetch;
  /**
   * How long a reply may take to its end, in milliseconds; `Infinity` where `fetch` has a limit of its own. Default
   * 60,000. A request that the limit ends may still have taken effect (`maybeDone`).
   */
  timeout?: number;
  /** `{base_url}`, without a trailing slash. */
  baseUrl: string;
  /** The user token (SPEC.md, "User token"). */
  userToken: TokenInput;
  /** A token of the experiment that reservations belong to, such as the portal's client gives. */
  experimentToken: TokenInput;
  /** The issuers whose signature on a reservation is accepted. */
  trust: Trust;
  /** `user` (the default): user token in Authorization; `experiment`: experiment token there, user token in `tokens`. */
  tokenPlacement?: TokenPlacement;
  /** Default `Slices-Experiment-Token`. */
  experimentTokenHeader?: string;
}

/** Whether an answer must be signed. */
export interface ProofOptions {
  /** Accept an unsigned answer: it comes back with `verified: false`. Default false. */
  allowUnsigned?: boolean;
}

/** How a link is booked. */
export interface ReserveOptions extends ProofOptions {
  /** Sent as `Idempotency-Key`. A service that honours it books the same request under the same key once. */
  idempotencyKey?: string;
}

/** The connectivity service, seen from a client. Every method throws Failure. */
export interface ConnectivityClient {
  /** Books a link, and verifies the signed answer. @throws Failure `unverified` or `unsigned` with the reservation's id */
  reserve(request: NewReservation, options?: ReserveOptions): Promise<ProvenReservation>;
  /** A dry run: the reservation that {@link reserve} would create now. @throws Failure `reply_invalid` where the service booked */
  rehearse(request: NewReservation): Promise<Reservation>;
  show(id: string, options?: ProofOptions): Promise<ProvenReservation>;
  /** Changes a reservation. @param current how it stands now: a request holds all its values, changed or not */
  update(current: Reservation, change: ReservationChange, options?: ProofOptions): Promise<ProvenReservation>;
  delete(id: string): Promise<void>;
  /**
   * The experiment's reservations, all pages; undefined where the service has no list.
   *
   * @param state lists these only, where the service has that filter; a service without it lists all
   */
  list(state?: ReservationState): Promise<Reservation[] | undefined>;
  /** The links between sites; undefined where the service does not list them. */
  links(): Promise<Link[] | undefined>;
}

/** The headers that carry tokens, and the tokens, which no output may show. */
interface TokenHeaders {
  headers: Record<string, string>;
  secrets: readonly Secret[];
}

/** A client of the connectivity service over any `fetch`. */
export function createConnectivityClient(options: ConnectivityClientOptions): ConnectivityClient {
  const { baseUrl, trust, tokenPlacement = 'user' } = options;
  const { experimentTokenHeader = EXPERIMENT_TOKEN_HEADER } = options;
  const userToken = () => readTokenInput(options.userToken);
  const experimentToken = () => readTokenInput(options.experimentToken);

  async function credentials(): Promise<TokenHeaders> {
    const [user, experiment] = [await userToken(), await experimentToken()];
    const secrets = [user, experiment];
    if (tokenPlacement === 'experiment')
      return { headers: { authorization: bearerHeader(experiment) }, secrets };
    return {
      headers: { authorization: bearerHeader(user), [experimentTokenHeader]: headerToken(experiment) },
      secrets,
    };
  }

  async function request(
    name: RouteName,
    settings: TokenHeaders & { accept: string; id?: string; query?: string; body?: object },
  ): Promise<Reply> {
    const { id, secrets, ...parts } = settings;
    const { accept } = parts;
    const sent = requestTo(baseUrl, name, { ...parts, ...(id === undefined ? {} : { values: { id } }) });
    try {
      return await exchange(options.fetch, sent, secrets, options.timeout ?? REPLY_TIMEOUT);
    } catch (error) {
      // It has done nothing, and can't sign (RFC 9110 §15.5.7): what it says unsigned is judged as such.
      if (accept === JWT_TYPE && error instanceof Failure && error.facts.httpStatus === 406) {
        return request(name, { ...settings, accept: 'application/json' });
      }
      throw expiredInstead(error, Object.values(parts.headers), (trust.now ?? Date.now)());
    }
  }

  async function bodyOf(reservation: NewReservation): Promise<ReservationRequestBody> {
    const tokens = [(await userToken()).reveal()];
    return { ...requestedOf(reservation), bandwidth: String(reservation.bandwidth), tokens };
  }

  /** The sites, bandwidth, period and experiment of the request, which the answer must name. */
  async function expectationOf({
    site1,
    site2,
    bandwidth,
    start,
    end,
  }: NewReservation): Promise<Expectation> {
    const experiment = claimedSubject((await experimentToken()).reveal());
    return {
      sites: [site1, site2],
      bandwidth,
      end,
      start: start === 'now' ? { near: (trust.now ?? Date.now)() } : start,
      ...(experiment === undefined ? {} : { experiment }),
    };
  }

  /** The reservation that a reply proves. Where the reply holds no token, the reservation is read again. */
  async function proofOf(
    reply: Reply,
    expected: Expectation,
    { allowUnsigned = false }: ProofOptions,
  ): Promise<ProvenReservation> {
    const token = tokenIn(reply);
    if (token !== undefined) return proveReservation(token, trust, expected);
    const id = expected.id ?? readReservation(reply, claimedId(reply)).id;
    const again = await credentials()
      .then((held) => request('readReservation', { ...held, accept: JWT_TYPE, id }))
      .catch((error: unknown) => {
        throw error instanceof Failure ? error.with({ reservation: id }) : error;
      });
    const second = tokenIn(again);
    if (second !== undefined) return proveReservation(second, trust, { ...expected, id });
    const reservation = readReservation(again, id);
    checkExpectation(reservation, { ...expected, id });
    if (allowUnsigned) return { reservation, verified: false, token: null, claims: null };
    throw new Failure('unsigned', 'The service answered without a signed token.', {
      why: 'Without a signature, nothing proves that the answer comes from the service.',
      // The same command with --allow-unsigned would book again (HOSTILE.md 45).
      fix: `slices-conn show ${shellWord(id)} --allow-unsigned`,
      reservation: id,
    });
  }

  return {
    async reserve(reservation, { idempotencyKey, ...proof } = {}) {
      const key = idempotencyKey === undefined ? {} : { [IDEMPOTENCY_KEY_HEADER]: idempotencyKey };
      const held = await credentials();
      const reply = await request('createReservation', {
        ...held,
        headers: { ...held.headers, ...key },
        accept: JWT_TYPE,
        query: reservation.start === 'now' ? '?start_now=true' : '',
        body: await bodyOf(reservation),
      });
      return proofOf(reply, await expectationOf(reservation), proof).catch(afterChange);
    },

    async rehearse(reservation) {
      const reply = await request('createReservation', {
        ...(await credentials()),
        accept: 'application/json',
        query: reservation.start === 'now' ? '?start_now=true&dry_run=true' : '?dry_run=true',
        body: await bodyOf(reservation),
      });
      if (reply.status === 200) return asRehearsed(readReservation(reply), await expectationOf(reservation));
      const { id } = readReservation(reply);
      throw new Failure('reply_invalid', 'The service does not know dry runs: it booked.', {
        reservation: id,
        maybeDone: true,
        fix: `slices-conn show ${shellWord(id)}`,
      });
    },

    async show(id, proof = {}) {
      const reply = await request('readReservation', { ...(await credentials()), accept: JWT_TYPE, id });
      const experiment = claimedSubject((await experimentToken()).reveal());
      return proofOf(reply, { id, ...(experiment === undefined ? {} : { experiment }) }, proof);
    },

    async update(current, change, proof = {}) {
      const { id } = current;
      const wanted = updated(current, change);
      const reply = await request('updateReservation', {
        ...(await credentials()),
        accept: JWT_TYPE,
        id,
        query: wanted.start === 'now' ? '?start_now=true' : '',
        body: await bodyOf(wanted),
      });
      return proofOf(reply, { ...(await expectationOf(wanted)), id }, proof).catch(afterChange);
    },

    async delete(id) {
      const held = await credentials();
      checkDeletion(await request('deleteReservation', { ...held, accept: 'application/json', id }), id);
    },

    async list(state) {
      return readPages(`?limit=1000${state === undefined ? '' : `&state=${state}`}`, async (query) => {
        const held = await credentials();
        return orUndefined(request('listReservations', { ...held, accept: 'application/json', query }));
      });
    },

    async links() {
      const user = await userToken();
      const held = { headers: { authorization: bearerHeader(user) }, secrets: [user] };
      const reply = await orUndefined(request('listLinks', { ...held, accept: 'application/json' }));
      return reply && readAs(LinkList, reply, 'list of links').items;
    },
  };
}

/** Undefined where the service has no such endpoint. */
async function orUndefined(reply: Promise<Reply>): Promise<Reply | undefined> {
  try {
    return await reply;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Checks the answer to a dry run like any other. @throws Failure `unverified`, which names no reservation: none exists */
function asRehearsed(reservation: Reservation, expected: Expectation): Reservation {
  try {
    checkExpectation(reservation, expected);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { reservation: _none, ...facts } = error.facts;
    throw new Failure(error.code, error.message, facts);
  }
  return reservation;
}

/** Adds `maybeDone` to a failure after the service made the change: its answer can't be used, but the change stays. */
function afterChange(error: unknown): never {
  throw error instanceof Failure ? error.with({ maybeDone: true, retryable: false }) : error;
}

/** The most that is read of a list in all its pages, in characters (HOSTILE.md 56). */
const MAX_LIST = 64 * 1_048_576;
/** The most pages that are asked for: pages without items would never fill {@link MAX_LIST}. */
const MAX_PAGES = 1000;

const Page = v.object({
  items: v.array(ReservationReply),
  nextCursor: v.optional(v.nullable(v.string()), null),
});

/**
 * Reads all pages of a list of reservations.
 *
 * @param query of the first page, such as `?limit=1000`
 * @param ask fetches a page; undefined where the service has no list
 * @throws Failure `reply_invalid` for a list that does not end: a cursor that comes again, or too much in all
 */
async function readPages(
  query: string,
  ask: (query: string) => Promise<Reply | undefined>,
): Promise<Reservation[] | undefined> {
  const found: Reservation[] = [];
  const cursors = new Set<string>();
  let size = 0;
  for (let next = query; ; ) {
    const reply = await ask(next);
    if (!reply) return undefined;
    const { items, nextCursor } = readAs(Page, reply, 'list of reservations');
    found.push(...items);
    if (nextCursor === null) return found;
    if (cursors.has(nextCursor)) throw endless('A page names an earlier page as its next page.');
    cursors.add(nextCursor);
    size += reply.text.length;
    if (size > MAX_LIST || cursors.size >= MAX_PAGES) {
      throw endless(`After ${cursors.size} pages and ${size} characters there is still another page.`);
    }
    next = `${query}&cursor=${encodeURIComponent(nextCursor)}`;
  }
}

function endless(why: string): Failure {
  return new Failure('reply_invalid', "The service's list of reservations does not end.", { why });
}
