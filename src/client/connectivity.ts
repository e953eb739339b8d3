import * as v from 'valibot';
import { type Availability, AvailabilityReply, type Slot, SlotListReply } from '../contract/availability.ts';
import { HOUR, isoDuration } from '../contract/durations.ts';
import { Failure, shellWord } from '../contract/failure.ts';
import { formatInstant } from '../contract/instants.ts';
import { type Link, LinkList } from '../contract/links.ts';
import {
  type Reservation,
  ReservationReply,
  type ReservationRequestBody,
  type ReservationState,
} from '../contract/reservation.ts';
import {
  queryOf,
  type ReservationChange,
  type ReservationRequest,
  toBody,
  updated,
} from '../contract/reservation-request.ts';
import {
  EXPERIMENT_TOKEN_HEADER,
  IDEMPOTENCY_KEY_HEADER,
  JWT_TYPE,
  type RouteName,
} from '../contract/routes.ts';
import { type Fetch, sendFrom, type Transport } from '../contract/sending.ts';
import { claimedSubject } from '../tokens/claimed.ts';
import type { Trust } from '../tokens/verify.ts';
import { type BatchItem, type BatchOptions, createBatch } from './batch.ts';
import {
  bearerHeader,
  exchange,
  headerToken,
  isMissing,
  REPLY_TIMEOUT,
  type RequestParts,
  readAs,
  readTokenInput,
  requestTo,
  type TokenHeaders,
  type TokenInput,
  tokenIn,
} from './exchange.ts';
import { rememberedFeatures, requireFeatures, type ServiceFeatures } from './features.ts';
import { readPages } from './pages.ts';
import {
  asRehearsed,
  checkDeletion,
  checkExpectation,
  claimedId,
  type Expectation,
  expectationOf,
  type ProofOptions,
  type ProvenReservation,
  proveReservation,
  type ReserveOptions,
  readReservation,
} from './proof.ts';
import { expiredInstead, type Reply, withHolder } from './reply-failure.ts';

/** Where the two tokens go (contract/README.md, "Experiment token's header", column Client). */
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
  /** The user token (contract/README.md, "User token"). */
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

/** How far this machine's clock may be from the service's, for a start of now: an hour, in milliseconds. */
const START_NOW_TOLERANCE_MS = HOUR;

/** The connectivity service, seen from a client. Every method throws Failure. */
export interface ConnectivityClient {
  /**
   * What the service can do beyond the API as it is given, by its API description, which is remembered for a minute.
   *
   * @throws Failure when the description can't be fetched
   */
  features(): Promise<ServiceFeatures>;
  /**
   * Books a link, and verifies the signed answer. Where the service chooses period or rate, the answer must lie within the
   * request.
   *
   * @throws Failure `unverified` or `unsigned` with the reservation's id
   * @throws Failure `not_supported` for a request that the service's API description does not mention; nothing was sent
   */
  reserve(request: ReservationRequest, options?: ReserveOptions): Promise<ProvenReservation>;
  /**
   * A dry run: the reservation that {@link reserve} would create now.
   *
   * @throws Failure `not_supported` where the service does not describe dry runs: it would book (THREATS.md 45)
   * @throws Failure `reply_invalid` where the service booked all the same
   */
  rehearse(request: ReservationRequest): Promise<Reservation>;
  show(id: string, options?: ProofOptions): Promise<ProvenReservation>;
  /** Changes a reservation. @param current how it stands now: a request holds all its values, changed or not */
  update(current: Reservation, change: ReservationChange, options?: ProofOptions): Promise<ProvenReservation>;
  delete(id: string): Promise<void>;
  /**
   * Makes 1 to 64 changes together, all or none, and verifies the signed answer about each.
   *
   * @returns for each item, in their order, what it left behind; null for a deletion
   * @throws Failure for a refusal, whose `details` name the refused items by their index
   * @throws Failure with `reservations`, the id of each item, where the changes were made and an answer does not verify
   * @throws Failure `not_supported` where the service does not describe batches; nothing was sent
   */
  batch(items: readonly BatchItem[], options?: BatchOptions): Promise<(ProvenReservation | null)[]>;
  /**
   * The experiment's reservations, all pages; undefined where the service has no list.
   *
   * @param state lists these only, where the service has that filter; a service without it lists all
   */
  list(state?: ReservationState): Promise<Reservation[] | undefined>;
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
}

/** Which link is asked about, and over which window. Times in milliseconds. */
export interface LinkWindow {
  site1: string;
  site2: string;
  /** Default: now. At most 24 h ago. */
  start?: number;
  /** Default: 7 days after the start. At most 5 years after it. */
  end?: number;
}

/** What {@link ConnectivityClient.availability} asks. */
export interface AvailabilityQuestion extends LinkWindow {
  /** Columns of equal length in place of the exact steps: 1 to 2000. */
  points?: number;
}

/** What {@link ConnectivityClient.slots} asks. */
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
  const { baseUrl, trust, tokenPlacement = 'user' } = options;
  const { experimentTokenHeader = EXPERIMENT_TOKEN_HEADER } = options;
  const userToken = () => readTokenInput(options.userToken);
  const experimentToken = () => readTokenInput(options.experimentToken);
  const send = sendFrom(options);
  const features = rememberedFeatures(send, baseUrl, trust.now ?? Date.now);

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

  /** The user token alone, in Authorization. */
  async function asUser(): Promise<TokenHeaders> {
    const user = await userToken();
    return { headers: { authorization: bearerHeader(user) }, secrets: [user] };
  }

  /** The same with a token of the experiment, whose share may be less than what is free; without it where there is none. */
  async function withShare(): Promise<TokenHeaders> {
    const { headers, secrets } = await asUser();
    const experiment = await experimentToken().catch(() => undefined);
    if (!experiment) return { headers, secrets };
    return {
      headers: { ...headers, [experimentTokenHeader]: headerToken(experiment) },
      secrets: [...secrets, experiment],
    };
  }

  async function request(
    name: RouteName,
    settings: TokenHeaders & Omit<RequestParts, 'headers'>,
  ): Promise<Reply> {
    const { secrets, ...parts } = settings;
    const { accept } = parts;
    const sent = requestTo(baseUrl, name, parts);
    try {
      return await exchange(send, sent, secrets, options.timeout ?? REPLY_TIMEOUT);
    } catch (error) {
      // It has done nothing, and can't sign (RFC 9110 §15.5.7): what it says unsigned is judged as such.
      if (accept === JWT_TYPE && error instanceof Failure && error.facts.httpStatus === 406) {
        return request(name, { ...settings, accept: 'application/json' });
      }
      throw expiredInstead(error, Object.values(parts.headers), (trust.now ?? Date.now)());
    }
  }

  async function bodyFor(reservation: ReservationRequest): Promise<ReservationRequestBody> {
    return toBody(reservation, [(await userToken()).reveal()]);
  }

  /** What the answer to a request must name, its experiment included. */
  async function expectedOf(reservation: ReservationRequest, firstSentAt?: number): Promise<Expectation> {
    const experiment = claimedSubject((await experimentToken()).reveal());
    const now = (trust.now ?? Date.now)();
    const since = Math.min(firstSentAt ?? now, now);
    return {
      ...expectationOf(reservation, {
        from: since - START_NOW_TOLERANCE_MS,
        to: now + START_NOW_TOLERANCE_MS,
      }),
      experiment,
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
      .then((held) => request('readReservation', { ...held, accept: JWT_TYPE, values: { id } }))
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
      // The same command with --allow-unsigned would book again (THREATS.md 45).
      fix: `slices-conn show ${shellWord(id)} --allow-unsigned`,
      reservation: id,
    });
  }

  /**
   * All pages of an answer about a link.
   *
   * @throws Failure `not_supported` where the service fails to answer and its API description does not mention the question
   */
  async function answers<Page extends { nextCursor: string | null }>(
    feature: keyof typeof LINK_QUESTIONS,
    sites: { site1: string; site2: string },
    query: string,
    read: (reply: Reply) => Page,
  ): Promise<Page[]> {
    try {
      return await readPages(query, 'answer', read, async (next) => {
        const held = feature === 'slots' ? await withShare() : await asUser();
        const parts = { accept: 'application/json', values: sites, query: next };
        return request(LINK_QUESTIONS[feature], { ...held, ...parts });
      });
    } catch (error) {
      const failed = error instanceof Failure ? error.code : undefined;
      if (isMissing(error) || failed === 'reply_invalid') await requireFeatures(features, [feature]);
      throw error;
    }
  }

  return {
    features,

    async reserve(reservation, { idempotencyKey, firstSentAt, ...proof } = {}) {
      await requireFeatures(features, searchIn(reservation));
      const key: Record<string, string> =
        idempotencyKey === undefined ? {} : { [IDEMPOTENCY_KEY_HEADER]: idempotencyKey };
      const held = await credentials();
      const reply = await request('createReservation', {
        ...held,
        headers: { ...held.headers, ...key },
        accept: JWT_TYPE,
        query: queryOf(reservation),
        body: await bodyFor(reservation),
      }).catch(withHolder(reservation));
      return proofOf(reply, await expectedOf(reservation, firstSentAt), proof).catch(afterChange);
    },

    async rehearse(reservation) {
      await requireFeatures(features, ['dryRun', ...searchIn(reservation)]);
      const reply = await request('createReservation', {
        ...(await credentials()),
        accept: 'application/json',
        query: queryOf(reservation, { dryRun: true }),
        body: await bodyFor(reservation),
      }).catch(withHolder(reservation));
      if (reply.status === 200) return asRehearsed(readReservation(reply), await expectedOf(reservation));
      const { id } = readReservation(reply);
      throw new Failure('reply_invalid', 'The service does not know dry runs: it booked.', {
        reservation: id,
        maybeDone: true,
        fix: `slices-conn show ${shellWord(id)}`,
      });
    },

    async show(id, proof = {}) {
      const reply = await request('readReservation', {
        ...(await credentials()),
        accept: JWT_TYPE,
        values: { id },
      });
      const experiment = claimedSubject((await experimentToken()).reveal());
      return proofOf(reply, { id, experiment }, proof);
    },

    async update(current, change, proof = {}) {
      const { id } = current;
      const wanted = updated(current, change);
      const reply = await request('updateReservation', {
        ...(await credentials()),
        accept: JWT_TYPE,
        values: { id },
        query: queryOf(wanted),
        body: await bodyFor(wanted),
      });
      return proofOf(reply, { ...(await expectedOf(wanted)), id }, proof).catch(afterChange);
    },

    async delete(id) {
      const held = await credentials();
      checkDeletion(
        await request('deleteReservation', { ...held, accept: 'application/json', values: { id } }),
        id,
      );
    },

    batch: createBatch({ features, request, credentials, userToken, expectedOf, proofOf }),

    async list(state) {
      const query = `?limit=1000${state === undefined ? '' : `&state=${state}`}`;
      const read = (reply: Reply) => readAs(ReservationPage, reply, 'list of reservations');
      const pages = await orUndefined(
        readPages(query, 'list of reservations', read, async (next) => {
          const held = await credentials();
          return request('listReservations', { ...held, accept: 'application/json', query: next });
        }),
      );
      return pages?.flatMap(({ items }) => items);
    },

    async links() {
      const held = await asUser();
      const reply = await orUndefined(request('listLinks', { ...held, accept: 'application/json' }));
      return reply && readAs(LinkList, reply, 'list of links').items;
    },

    async availability({ site1, site2, points, ...window }) {
      const query = windowQuery(window, points === undefined ? {} : { points: String(points) });
      const read = (reply: Reply) => readAs(AvailabilityReply, reply, 'availability of the link');
      const [first, ...rest] = await answers('availability', { site1, site2 }, query, read);
      if (!first) throw new RangeError('a list has a first page');
      return { ...first, items: [first, ...rest].flatMap(({ items }) => items), nextCursor: null };
    },

    async slots({ site1, site2, bandwidth, duration, ...window }) {
      const query = windowQuery(window, { bandwidth: String(bandwidth), duration: isoDuration(duration) });
      const read = (reply: Reply) => readAs(SlotListReply, reply, 'list of slots');
      return (await answers('slots', { site1, site2 }, query, read)).flatMap(({ items }) => items);
    },
  };
}

/** The routes of questions about a link, each named as its feature. */
const LINK_QUESTIONS = {
  availability: 'linkAvailability',
  slots: 'linkSlots',
} as const satisfies Partial<Record<keyof ServiceFeatures, RouteName>>;

/** The extensions that a request needs for its search. */
function searchIn({ duration, volume }: ReservationRequest): ('earliest' | 'volume')[] {
  if (duration !== undefined) return ['earliest'];
  return volume === undefined ? [] : ['volume'];
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

/** Adds `maybeDone` to a failure after the service made the change: its answer can't be used, but the change stays. */
function afterChange(error: unknown): never {
  throw error instanceof Failure ? error.with({ maybeDone: true, retryable: false }) : error;
}

const ReservationPage = v.object({
  items: v.array(ReservationReply),
  nextCursor: v.optional(v.nullable(v.string()), null),
});

/** A query of a window's ends and what else is asked; begins with `?`, or is empty. */
function windowQuery(
  { start, end }: Pick<LinkWindow, 'start' | 'end'>,
  others: Readonly<Record<string, string>>,
): string {
  const said = new URLSearchParams({
    ...(start === undefined ? {} : { start: formatInstant(start) }),
    ...(end === undefined ? {} : { end: formatInstant(end) }),
    ...others,
  }).toString();
  return said === '' ? '' : `?${said}`;
}
