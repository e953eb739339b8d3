import { DAY } from '../contract/durations.ts';
import type { Link } from '../contract/links.ts';
import { MAX_FREE_PARTS } from '../contract/problems.ts';
import type { LinkCalendar, Refusal } from './calendar.ts';
import type { Demand, Period } from './demand.ts';
import { linkId } from './network.ts';
import { type Offer, offersFor } from './offers.ts';
import { judge, judgeSearch, type Search } from './search.ts';
import type {
  AuditEntry,
  IdempotencyKey,
  IdempotencyRecord,
  ReservationName,
  ReservationRecord,
  WrittenChange,
} from './store.ts';

/**
 * What waits in a link's queue: it names what must be read for it, and then decides, as a pure function of what was
 * read. `createOperation`, `updateOperation` and `deleteOperation` make them.
 */
export interface Operation<Answer> {
  /** The id of the reservation to read. */
  readonly about?: string;
  /** The idempotency key to lock and read. */
  readonly key?: IdempotencyKey;
  /** The tenant whose live reservations are counted. */
  readonly counts?: string;
  /** The name that it gives a reservation. */
  readonly named?: ReservationName;
  /** The earliest instant that it looks at, in milliseconds; undefined when it needs no calendar. */
  from(view: Pick<LinkView, 'reservation'>): number | undefined;
  decide(view: LinkView): Decision<Answer>;
}

/** The result of an operation: the answer, the change to write, and its row in the audit. */
export interface Decision<Answer> {
  answer: Answer;
  change?: WrittenChange;
  audit?: AuditEntry;
}

/** A link as an operation sees it: with the changes of the operations before it in the same transaction. */
export interface LinkView {
  /** Milliseconds. */
  readonly now: number;
  /** The link's version; each change before it in the transaction counts. */
  readonly version: number;
  /** @throws RangeError for an operation whose `from` is undefined */
  readonly calendar: LinkCalendar;
  /** The reservation that the operation is about, or that its key stands for; undefined when it was deleted. */
  reservation(id: string): ReservationRecord | undefined;
  /** How many reservations of the tenant have not ended, on all links. @throws RangeError when they were not counted */
  live(tenant: string): number;
  /** The id of the reservation that has a name; undefined when the name is free. */
  holderOf(name: ReservationName): string | undefined;
  /** What the operation's key stands for; undefined when the key is free. */
  idempotencyRecord(key: IdempotencyKey): IdempotencyRecord | undefined;
}

/** The answer to a create or an update. Refusals are values: they are everyday outcomes, not faults. */
export type Outcome = { ok: true; record: ReservationRecord } | RefusedOutcome;

/** The answer to a create; its name may be taken, by the reservation with this id. */
export type CreateOutcome = Outcome | { ok: false; reason: 'name_taken'; name: string; reservation: string };

/** A demand that can't be met: every limit that it broke, and what would be accepted in its place. */
export interface RefusedOutcome {
  ok: false;
  reason: 'refused';
  link: Link;
  /** Whether the request, or the reservation, names the link's sites the other way round. */
  reversed: boolean;
  /** Whose share counted. */
  tenant: string;
  /** What the refusals are about; for a search, the demand within its window that comes closest. */
  demand: Demand;
  refusals: readonly [Refusal, ...Refusal[]];
  /** The period that was asked for in at most {@link MAX_FREE_PARTS} parts, with the Mbps that are free throughout each. */
  free: Demand[];
  offers: Offer[];
}

function freeParts(calendar: LinkCalendar, period: Period): Demand[] {
  return calendar
    .columns(period, MAX_FREE_PARTS)
    .map(({ start, end, bandwidth }) => ({ start, end, bandwidth }));
}

/**
 * A refusal in a few words, for the audit: "bandwidth: 400 of 1000 Mbps free", "tags: no site1_s_tag of 100 free",
 * "share: 400 of 500 Mbps held".
 */
export function reasonOf(refusals: readonly Refusal[]): string {
  return refusals.map(wordsOf).join('; ');
}

function wordsOf(refusal: Refusal): string {
  if (refusal.limit === 'bandwidth') {
    return `bandwidth: ${refusal.free} of ${refusal.capacity} Mbps free`;
  }
  if (refusal.limit === 'tags') return `tags: no ${refusal.place} of ${refusal.total} free`;
  const counted = { bandwidth: 'Mbps held', tags: 'tags held', live: 'live reservations' }[refusal.of];
  return `share: ${refusal.held} of ${refusal.allowed} ${counted}`;
}

/**
 * A new reservation to be decided on: a demand; or, with `search`, a window from `start` to `end` in which the service
 * finds the demand, in the transaction that books it.
 */
export type CreateRequest = Period & {
  site1: string;
  site2: string;
  experiment: string;
  /** See `ReservationRecord`. Default: the experiment. */
  tenant?: string;
  createdBy: string;
  /** When the experiment ends: no alternative is offered beyond it. Milliseconds. */
  expiry: number;
  /** Whether the request said `start_now`: then so do its alternatives. Default: no. */
  startsNow?: boolean;
  /** See `ReservationRecord`. */
  name?: string;
} & (
    | {
        /** Mbps. */
        bandwidth: number;
        /** The earliest period of so many milliseconds is booked; the window is not shorter. */
        search?: Extract<Search, { duration: number }>;
      }
    | {
        /** The most that the transfer may use, in Mbps. Default: the link's capacity. */
        bandwidth?: number;
        /** The transfer of so many bytes at one constant rate that ends first is booked. */
        search: Extract<Search, { volume: number }>;
      }
  );

/** A request under an idempotency key, and what tells it from other requests under the same key. */
export interface KeyedRequest extends IdempotencyKey {
  /** Equal for equal requests. */
  fingerprint: string;
}

/** How long an idempotency key stands for its reservation (contract/README.md, "Extensions"): 24 h, in milliseconds. */
export const KEY_LIFETIME = DAY;

/** The answer to a request whose idempotency key stands for a reservation already. */
export type Replay =
  /** The same request: its reservation, as it is now. */
  | { ok: true; record: ReservationRecord; replayed: true }
  /** The same request, whose reservation was deleted since. */
  | { ok: false; reason: 'deleted'; reservation: string }
  /** Another request. */
  | { ok: false; reason: 'key_taken' };

/** What the operation needs besides the request. */
export interface CreateTerms {
  link: Link;
  /** Makes the reservation's id. */
  newId: () => string;
  /** Decide and answer, and write nothing. */
  dryRun: boolean;
  /** How many reservations that have not ended one tenant may have, on all links. Default: no limit. */
  maxLive?: number;
}

/**
 * The answer to a request whose idempotency key is taken.
 *
 * @param earlier what the key stands for
 * @param record its reservation; undefined when it was deleted since
 */
export function replayOf(
  earlier: IdempotencyRecord,
  { fingerprint }: KeyedRequest,
  record: ReservationRecord | undefined,
): Replay {
  if (earlier.fingerprint !== fingerprint) return { ok: false, reason: 'key_taken' };
  return record
    ? { ok: true, record, replayed: true }
    : { ok: false, reason: 'deleted', reservation: earlier.reservations.join(' ') };
}

/** Creates a reservation. */
export function createOperation(
  request: CreateRequest,
  keyed: undefined,
  terms: CreateTerms,
): Operation<CreateOutcome>;
/** Creates a reservation; under an idempotency key, at most one. */
export function createOperation(
  request: CreateRequest,
  keyed: KeyedRequest | undefined,
  terms: CreateTerms,
): Operation<CreateOutcome | Replay>;
/** Creates a reservation; under an idempotency key, at most one. */
export function createOperation(
  request: CreateRequest,
  keyed: KeyedRequest | undefined,
  terms: CreateTerms,
): Operation<CreateOutcome | Replay> {
  return {
    ...(terms.maxLive === undefined ? {} : { counts: request.tenant ?? request.experiment }),
    ...(keyed ? { key: keyed } : {}),
    ...namedBy(request),
    from: () => request.start,
    decide(view) {
      if (!keyed) return decideCreate(view, request, terms);
      const earlier = view.idempotencyRecord(keyed);
      if (earlier)
        return { answer: replayOf(earlier, keyed, view.reservation(earlier.reservations[0] ?? '')) };
      const { change, ...decision } = decideCreate(view, request, terms);
      if (!change) return decision;
      const { createdBy, experiment, key, fingerprint } = keyed;
      const [reservations, expires] = [[change.record.id], view.now + KEY_LIFETIME];
      const record = { createdBy, experiment, key, fingerprint, reservations, expires };
      return { ...decision, change: { ...change, key: record } };
    },
  };
}

/** The name that a request gives, where it gives one. */
function namedBy({ experiment, name }: CreateRequest): { named?: ReservationName } {
  return name === undefined ? {} : { named: { experiment, name } };
}

function decideCreate(view: LinkView, request: CreateRequest, terms: CreateTerms): Decision<CreateOutcome> {
  const { site1, site2, start, end, experiment, createdBy, search, expiry, startsNow = false } = request;
  const { tenant = experiment } = request;
  const { named } = namedBy(request);
  const holder = named && view.holderOf(named);
  if (named && holder !== undefined) {
    return { answer: { ok: false, reason: 'name_taken', name: named.name, reservation: holder } };
  }
  const { link, newId, dryRun, maxLive = Number.POSITIVE_INFINITY } = terms;
  const reversed = site1 !== link.site1;
  const { now, calendar } = view;
  const asked = { start, end, bandwidth: request.bandwidth ?? link.bandwidth };
  const entry = { at: now, action: 'create', by: createdBy, experiment } as const;
  const live = Number.isFinite(maxLive) ? view.live(tenant) : 0;
  const isFull = live >= maxLive;
  const offerTerms = { calendar, tenant, now, expiry, startsNow };
  // With too many live reservations no demand would be accepted, so none is searched for.
  const judged = !search
    ? judge(asked, offerTerms)
    : isFull
      ? undefined
      : judgeSearch(asked, search, offerTerms);
  const { demand = asked, plan } = judged ?? {};
  if (!plan?.accepted || isFull) {
    const tooMany = { limit: 'share', of: 'live', held: live, allowed: maxLive, start, end } as const;
    const broken = plan && !plan.accepted ? plan.refusals : [];
    const [first = tooMany, ...rest] = isFull ? [...broken, tooMany] : broken;
    const refusals = [first, ...rest] as const;
    const audit: AuditEntry = {
      ...entry,
      demand: asked,
      reservation: null,
      tags: null,
      why: reasonOf(refusals),
    };
    const free = freeParts(calendar, asked);
    const offers = isFull ? [] : (judged?.offers() ?? []);
    const facts = { link, reversed, tenant, demand, refusals, free, offers };
    const answer: Outcome = { ok: false, reason: 'refused', ...facts };
    return { answer, ...(dryRun ? {} : { audit }) };
  }
  const { tags } = plan;
  const record: ReservationRecord = {
    id: newId(),
    link: linkId(site1, site2),
    reversed,
    ...demand,
    tags,
    experiment,
    tenant,
    createdBy,
    createdAt: now,
    ...(named ? { name: named.name } : {}),
  };
  const answer: Outcome = { ok: true, record };
  if (dryRun) return { answer };
  const audit: AuditEntry = { ...entry, demand, reservation: record.id, tags, why: null };
  return { answer, change: { action: 'create', record }, audit };
}

/** What to change about a reservation; an absent member keeps its value. Milliseconds and Mbps. */
export interface UpdateRequest {
  start?: number;
  end?: number;
  bandwidth?: number;
  /** Whether the request said `start_now`: then so do its alternatives. Default: no. */
  startsNow?: boolean;
}

/** The answer to an update: as for a create, or what the caller's own check found. */
export type UpdateOutcome<Fault> = Outcome | { ok: false; reason: 'fault'; fault: Fault };

/** Who updates a reservation, and within which limits. */
export interface UpdateTerms<Fault> {
  /** The `sub` of the user who asks. */
  by: string;
  /** When the experiment ends: no alternative is offered beyond it. Milliseconds. */
  expiry: number;
  /**
   * Checks the updated reservation before it is decided on; a fault is the answer in place of a decision. Alternatives
   * are checked too.
   */
  check: (current: ReservationRecord, updated: Demand) => Fault | undefined;
  /** Decide and answer, and write nothing. */
  dryRun?: boolean;
}

/** What an update is about. */
export interface UpdateSubject {
  link: Link;
  /** The reservation as it was before the link was locked. */
  found: ReservationRecord;
  update: UpdateRequest;
}

/** Updates a reservation; the answer is undefined when it was deleted meanwhile. */
export function updateOperation<Fault>(
  subject: UpdateSubject,
  terms: UpdateTerms<Fault>,
): Operation<UpdateOutcome<Fault> | undefined> {
  const { found, update } = subject;
  return {
    about: found.id,
    from(view) {
      const start = view.reservation(found.id)?.start ?? found.start;
      return Math.min(start, update.start ?? start);
    },
    decide(view) {
      const current = view.reservation(found.id);
      return current ? decideUpdate(view, current, subject, terms) : { answer: undefined };
    },
  };
}

function decideUpdate<Fault>(
  view: LinkView,
  current: ReservationRecord,
  { link, update }: UpdateSubject,
  { by, expiry, check, dryRun }: UpdateTerms<Fault>,
): Decision<UpdateOutcome<Fault>> {
  const { calendar, now } = view;
  const { id, experiment, tenant } = current;
  const demand: Demand = {
    start: update.start ?? current.start,
    end: update.end ?? current.end,
    bandwidth: update.bandwidth ?? current.bandwidth,
  };
  const fault = check(current, demand);
  if (fault !== undefined) return { answer: { ok: false, reason: 'fault', fault } };
  const entry = { at: now, action: 'update', by, experiment, reservation: id, demand } as const;
  // A demand for no more than before does not count against the tenant's share, which may have been larger then.
  const grows =
    demand.start < current.start || demand.end > current.end || demand.bandwidth > current.bandwidth;
  const plan = calendar.planUpdate(id, demand, now, grows ? tenant : undefined);
  if (!plan.accepted) {
    const { refusals } = plan;
    const { startsNow = false } = update;
    // A start that has passed never changes; nor does one that the update does not name.
    const movable = update.start !== undefined && current.start > now;
    const instead = calendar.without(id, (rest) => ({
      free: freeParts(rest, demand),
      offers: offersFor(demand, { calendar: rest, tenant, now, expiry, startsNow, current, movable }),
    }));
    const offers = instead.offers.filter((offer) => check(current, offer) === undefined);
    const audit: AuditEntry = { ...entry, tags: null, why: reasonOf(refusals) };
    const answer = {
      ok: false,
      reason: 'refused',
      link,
      reversed: current.reversed,
      tenant,
      demand,
      refusals,
      ...instead,
      offers,
    } as const;
    return { answer, ...(dryRun ? {} : { audit }) };
  }
  const { tags } = plan;
  const record = { ...current, ...demand, tags };
  if (dryRun) return { answer: { ok: true, record } };
  const audit: AuditEntry = { ...entry, tags, why: null };
  return { answer: { ok: true, record }, change: { action: 'update', record }, audit };
}

/** Who deletes a reservation. */
export interface DeleteTerms {
  /** The `sub` of the user who asks. */
  by: string;
  /** Why, where that was said: an administrator's release. */
  reason?: string;
}

/**
 * Deletes a reservation. @returns whether there was one. It needs no calendar, so reservations on a link that left the
 * topology can be deleted too.
 */
export function deleteOperation(id: string, { by, reason }: DeleteTerms): Operation<boolean> {
  return {
    about: id,
    from: () => undefined,
    decide(view) {
      const record = view.reservation(id);
      if (!record) return { answer: false };
      const { experiment, start, end, bandwidth, tags } = record;
      const demand = { start, end, bandwidth };
      const entry = { at: view.now, by, experiment, reservation: id, demand, tags, why: reason ?? null };
      return { answer: true, change: { action: 'delete', record }, audit: { ...entry, action: 'delete' } };
    },
  };
}

/** What a question is told beside the calendar: the link's version that the calendar shows, and the time in milliseconds. */
export type LinkState = Pick<LinkView, 'version' | 'now'>;

/** Asks the calendar a question, which changes nothing. @param from the earliest instant that it looks at, in milliseconds */
export function askOperation<Answer>(
  from: number,
  question: (calendar: LinkCalendar, link: LinkState) => Answer,
): Operation<Answer> {
  return {
    from: () => from,
    decide: ({ calendar, version, now }) => ({ answer: question(calendar, { version, now }) }),
  };
}
