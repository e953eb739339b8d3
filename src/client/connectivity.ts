import * as v from 'valibot';
import { type Availability, AvailabilityReply, type Slot, SlotListReply } from '../contract/availability.ts';
import { Failure, ownCommand, shellWord } from '../contract/failure.ts';
import { formatInstant, isoDuration } from '../contract/instants.ts';
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
import {
  type BatchItem,
  type ClaimedResult,
  checkCount,
  itemBody,
  offsetOf,
  readResults,
  wantedBy,
} from './batch.ts';
import { claimedSubject } from './claimed.ts';
import {
  bearerHeader,
  exchange,
  type Fetch,
  headerToken,
  isMissing,
  REPLY_TIMEOUT,
  type RequestParts,
  readAs,
  readTokenInput,
  requestTo,
  type TokenInput,
  tokenIn,
} from './exchange.ts';
import { readFeatures, type ServiceFeatures } from './features.ts';
import {
  checkDeletion,
  checkExpectation,
  claimedId,
  type Expectation,
  expectationOf,
  type ProvenReservation,
  proveReservation,
  readReservation,
} from './proof.ts';
import { expiredInstead, type Reply } from './reply-failure.ts';
import {
  bodyOf,
  type NewReservation,
  queryOf,
  type ReservationChange,
  updated,
} from './reservation-request.ts';

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

/** How far this machine's clock may be from the service's, for a start of now: an hour, in milliseconds. */
const CLOCKS_APART = 3_600_000;

/** Whether an answer must be signed. */
export interface ProofOptions {
  /** Accept an unsigned answer: it comes back with `verified: false`. Default false. */
  allowUnsigned?: boolean;
}

/** How a link is booked. */
export interface ReserveOptions extends ProofOptions {
  /** Sent as `Idempotency-Key`. A service that honours it books the same request under the same key once. */
  idempotencyKey?: string;
  /**
   * When the request was first sent under its key, in milliseconds; default: now. The answer to a repeated request is the
   * first one's reservation: a start of now was then.
   */
  firstSentAt?: number;
}

/** How a batch is made. */
export interface BatchOptions extends ReserveOptions {
  /** Answer what would be made, and leave nothing behind. Then nothing is signed: `verified` is false. Default false. */
  dryRun?: boolean;
  /** Move all creates later by the smallest common offset at which everything fits. Default false. */
  earliest?: boolean;
}

/** The connectivity service, seen from a client. Every method throws Failure. */
export interface ConnectivityClient {
  /**
   * Books a link, and verifies the signed answer. Where the service chooses period or rate, the answer must lie within the
   * request.
   *
   * @throws Failure `unverified` or `unsigned` with the reservation's id
   * @throws Failure `not_supported` for a request that the service's API description does not mention; nothing was sent
   */
  reserve(request: NewReservation, options?: ReserveOptions): Promise<ProvenReservation>;
  /**
   * A dry run: the reservation that {@link reserve} would create now.
   *
   * @throws Failure `not_supported` where the service does not describe dry runs: it would book (HOSTILE.md 45)
   * @throws Failure `reply_invalid` where the service booked all the same
   */
  rehearse(request: NewReservation): Promise<Reservation>;
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
      return await exchange(options.fetch, sent, secrets, options.timeout ?? REPLY_TIMEOUT);
    } catch (error) {
      // It has done nothing, and can't sign (RFC 9110 §15.5.7): what it says unsigned is judged as such.
      if (accept === JWT_TYPE && error instanceof Failure && error.facts.httpStatus === 406) {
        return request(name, { ...settings, accept: 'application/json' });
      }
      throw expiredInstead(error, Object.values(parts.headers), (trust.now ?? Date.now)());
    }
  }

  async function bodyFor(reservation: NewReservation): Promise<ReservationRequestBody> {
    return bodyOf(reservation, [(await userToken()).reveal()]);
  }

  /** What the answer to a request must name, its experiment included. */
  async function expectedOf(reservation: NewReservation, firstSentAt?: number): Promise<Expectation> {
    const experiment = claimedSubject((await experimentToken()).reveal());
    const now = (trust.now ?? Date.now)();
    const since = Math.min(firstSentAt ?? now, now);
    return {
      ...expectationOf(reservation, { from: since - CLOCKS_APART, to: now + CLOCKS_APART }),
      ...(experiment === undefined ? {} : { experiment }),
    };
  }

  /**
   * Checks that the service knows the extensions that a request needs, before anything is sent that a service without
   * them would book otherwise.
   *
   * @throws Failure `not_supported`
   */
  async function requireFeatures(needed: readonly (keyof typeof LACKING)[]): Promise<void> {
    if (needed.length === 0) return;
    const features = await readFeatures(options.fetch, baseUrl).catch((error: unknown) => {
      if (error instanceof Failure && error.facts.httpStatus !== undefined) return undefined;
      throw error;
    });
    const lacked = needed.find((feature) => !features?.[feature]);
    if (lacked !== undefined) throw lacking(lacked);
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
      // The same command with --allow-unsigned would book again (HOSTILE.md 45).
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
      if (isMissing(error) || failed === 'reply_invalid') await requireFeatures([feature]);
      throw error;
    }
  }

  return {
    async reserve(reservation, { idempotencyKey, firstSentAt, ...proof } = {}) {
      await requireFeatures(searchIn(reservation));
      const key = idempotencyKey === undefined ? {} : { [IDEMPOTENCY_KEY_HEADER]: idempotencyKey };
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
      await requireFeatures(['dryRun', ...searchIn(reservation)]);
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
      return proofOf(reply, { id, ...(experiment === undefined ? {} : { experiment }) }, proof);
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

    async batch(items, { dryRun = false, earliest = false, idempotencyKey, firstSentAt, ...proof } = {}) {
      checkCount(items);
      const bodies = items.map(itemBody);
      await requireFeatures(['batch']);
      const key = idempotencyKey === undefined || dryRun ? {} : { [IDEMPOTENCY_KEY_HEADER]: idempotencyKey };
      const flags = [...(dryRun ? ['dry_run=true'] : []), ...(earliest ? ['earliest=true'] : [])];
      const held = await credentials();
      const reply = await request('batchReservations', {
        ...held,
        headers: { ...held.headers, ...key },
        accept: 'application/json',
        query: flags.length > 0 ? `?${flags.join('&')}` : '',
        body: { items: bodies, tokens: [(await userToken()).reveal()] },
      }).catch(withHolder());
      let ids: (string | null)[] | undefined;
      try {
        const results = readResults(reply, items);
        ids = results.map(({ connectivity }) => connectivity?.id ?? null);
        const offset = earliest ? offsetOf(items, results) : 0;
        const proven: (ProvenReservation | null)[] = [];
        for (const [index, item] of items.entries()) {
          const result = results[index];
          if (item.action === 'delete' || !result) proven.push(null);
          else proven.push(await provenResult(result, await expectedItem(item, offset, firstSentAt), dryRun));
        }
        return proven;
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        const { reservation: _one, reservations: _all, ...facts } = error.facts;
        if (dryRun) throw new Failure(error.code, error.message, facts);
        const known = ids ?? error.facts.reservations ?? [];
        const reservations = known.some((id) => id !== null) ? { reservations: known } : {};
        throw new Failure(error.code, error.message, {
          ...facts,
          maybeDone: true,
          retryable: false,
          ...reservations,
        });
      }

      /** The proof of what the reply says of one item. A dry run has nothing to prove. */
      async function provenResult(
        { connectivity, token }: ClaimedResult,
        expected: Expectation,
        isRehearsed: boolean,
      ): Promise<ProvenReservation> {
        if (isRehearsed && connectivity) {
          return {
            reservation: asRehearsed(connectivity, expected),
            verified: false,
            token: null,
            claims: null,
          };
        }
        const type = token === null ? 'application/json' : JWT_TYPE;
        return proofOf({ ...reply, type, text: token ?? JSON.stringify(connectivity) }, expected, proof);
      }

      /** @param offset by which a create was moved, in milliseconds */
      async function expectedItem(
        item: Exclude<BatchItem, { action: 'delete' }>,
        offset: number,
        sentAt: number | undefined,
      ): Promise<Expectation> {
        const expected = await expectedOf(wantedBy(item), sentAt);
        return item.action === 'update' ? { ...expected, id: item.current.id } : movedBy(offset, expected);
      }
    },

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

/** What a service lacks without an extension, and what it might do with a request that needs it. */
const LACKING = {
  dryRun: ["can't do dry runs", 'dry runs, so it might book the link'],
  earliest: ["can't look for the earliest start", '`earliest`, so it might book the whole period'],
  batch: ["can't make several changes together", 'batches with dry runs, `earliest` and idempotency keys'],
  volume: ["can't book for a volume", '`volume`, so it might book something else'],
  availability: ["does not tell a link's use over time", "a link's availability"],
  slots: ['does not tell when a reservation can start', "a link's slots"],
} as const satisfies Partial<Record<keyof ServiceFeatures, readonly [lacks: string, otherwise: string]>>;

function lacking(feature: keyof typeof LACKING): Failure {
  const [lacks, otherwise] = LACKING[feature];
  return new Failure('not_supported', `This service ${lacks}.`, {
    why: `Its API description does not mention ${otherwise}. Nothing was booked.`,
  });
}

/** The extensions that a request needs for its search. */
function searchIn({ duration, volume }: NewReservation): ('earliest' | 'volume')[] {
  if (duration !== undefined) return ['earliest'];
  return volume === undefined ? [] : ['volume'];
}

/** Adds to the refusal of a name the command that shows who has it. */
function withHolder({ name }: { name?: string } = {}): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof Failure) || error.code !== 'name_taken') throw error;
    throw error.with({ fix: name === undefined ? ownCommand('list') : ownCommand('show', name) });
  };
}

/** What is expected of a reservation that was moved later. @param offset milliseconds */
function movedBy(offset: number, { start, end, ...expected }: Expectation): Expectation {
  return {
    ...expected,
    ...(start === undefined
      ? {}
      : {
          start:
            typeof start === 'number' ? start + offset : { from: start.from + offset, to: start.to + offset },
        }),
    ...(end === undefined ? {} : { end: end + offset }),
  };
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

const ReservationPage = v.object({
  items: v.array(ReservationReply),
  nextCursor: v.optional(v.nullable(v.string()), null),
});

/**
 * Reads all pages of a list.
 *
 * @param query of the first page, such as `?limit=1000`
 * @param what names it in an error, such as "list of reservations"
 * @param ask fetches a page
 * @throws Failure `reply_invalid` for a list that does not end: a cursor that comes again, or too much in all
 */
async function readPages<Page extends { nextCursor: string | null }>(
  query: string,
  what: string,
  read: (reply: Reply) => Page,
  ask: (query: string) => Promise<Reply>,
): Promise<Page[]> {
  const pages: Page[] = [];
  const cursors = new Set<string>();
  let size = 0;
  for (let next = query; ; ) {
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
    next = `${query}${query === '' ? '?' : '&'}cursor=${encodeURIComponent(nextCursor)}`;
  }
}

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

function endless(what: string, why: string): Failure {
  return new Failure('reply_invalid', `The service's ${what} does not end.`, { why });
}
