import type { Link } from '../contract/links.ts';
import type { Demand, LinkCalendar, Period, Refusal } from './calendar.ts';
import { linkId, type Network } from './network.ts';
import { carry, type Projection } from './projection.ts';
import { KEY_LIFETIME, type KeyedRequest, type Repetition, repetitionOf } from './repetition.ts';
import type { LinkTransaction, RememberedBooking, ReservationRecord, ReservationStore } from './store.ts';

/** A new reservation to be decided on. */
export interface BookingRequest extends Demand {
  site1: string;
  site2: string;
  experiment: string;
  createdBy: string;
  /** When the experiment ends: no alternative is offered beyond it. Milliseconds. */
  expiry: number;
}

/** What is to change about a reservation; what is absent stays. */
export interface Amendment {
  start?: number;
  end?: number;
  bandwidth?: number;
}

/** A demand that would be accepted now in place of the refused one. */
export type Offer = Demand;

/** The answer to a request. Refusals are values: they are everyday outcomes, not faults. */
export type Outcome =
  | { ok: true; record: ReservationRecord }
  | { ok: false; reason: 'refused'; link: Link; refusals: readonly [Refusal, ...Refusal[]]; offers: Offer[] };

/** The answer to an amendment: as for a booking, or what the caller's own check found. */
export type AmendmentOutcome<Fault> = Outcome | { ok: false; reason: 'fault'; fault: Fault };

/** Looks at an amended reservation before it is decided on; what it returns is passed on in place of a decision. */
export type AmendmentCheck<Fault> = (current: ReservationRecord, amended: Demand) => Fault | undefined;

/** What an allocator needs. */
export interface AllocatorOptions {
  network: Network;
  store: ReservationStore;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Makes a reservation's id. */
  newId: () => string;
}

/** A decision to be made on a link. */
interface Question<Answer> {
  link: Link;
  /** The earliest instant that it looks at, in milliseconds, as things stand under the lock. */
  from: (transaction: LinkTransaction) => Promise<number>;
  decide: (transaction: LinkTransaction, calendar: LinkCalendar, now: number) => Promise<Verdict<Answer>>;
}

/** What a decision leaves: the answer, and what it changed, to be taken over into memory after the commit. */
interface Verdict<Answer> {
  answer: Answer;
  take?: (calendar: LinkCalendar) => void;
}

/**
 * Decides on reservations, one link at a time (DESIGN.md, "Allocator").
 *
 * Every decision happens inside the transaction that records it: lock the link, carry the calendar to the link's
 * version, decide, write, commit, and only then change memory. Whatever fails in between, memory is thrown away and
 * read again. So any number of allocators on one database agree, and a crash leaves nothing behind.
 */
export class Allocator {
  readonly #options: AllocatorOptions;
  readonly #projections = new Map<string, Projection>();
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(options: AllocatorOptions) {
    this.#options = options;
  }

  /**
   * Books a link.
   *
   * @param dryRun decide and answer, and leave nothing behind
   * @throws RangeError when the sites are not connected: the caller checks first
   * @throws StoreUnavailableError when the database is away; then nothing was booked
   */
  async book(request: BookingRequest, dryRun = false): Promise<Outcome> {
    return this.#ask(this.#booking(request, dryRun ? showOnly : put));
  }

  /**
   * Books a link under a key, once: a repeat within {@link KEY_LIFETIME} gets what the first request got, whichever
   * process it reaches. Only what was booked is remembered; a refused request may be tried again under its key.
   *
   * @throws as {@link book} does
   */
  async bookOnce(request: BookingRequest & KeyedRequest): Promise<Outcome | Repetition> {
    const { experiment, createdBy, key, fingerprint } = request;
    const booking = this.#booking<Outcome | Repetition>(request, async (transaction, record, now) => {
      const kept = {
        createdBy,
        experiment,
        key,
        fingerprint,
        reservation: record.id,
        expires: now + KEY_LIFETIME,
      };
      const earlier = await transaction.remember(kept, now);
      return earlier ? repeat(transaction, earlier, request) : put(transaction, record);
    });
    const decide: typeof booking.decide = async (transaction, calendar, now) => {
      const earlier = await transaction.recall(request, now);
      return earlier ? repeat(transaction, earlier, request) : booking.decide(transaction, calendar, now);
    };
    return this.#ask({ ...booking, decide });
  }

  /**
   * What a request's key stands for already. {@link bookOnce} looks again under the link's lock; this is for those
   * who must know before they hold the request against rules that it may not keep to any more.
   *
   * @returns undefined when the key is free
   */
  async repeated(request: KeyedRequest): Promise<Repetition | undefined> {
    const { store, now } = this.#options;
    const earlier = await store.recall(request, now());
    return earlier && repetitionOf(earlier, request, (id) => store.find(id));
  }

  /** @param conclude what to do about a reservation that can be had */
  #booking<Answer>(
    request: BookingRequest,
    conclude: (
      transaction: LinkTransaction,
      record: ReservationRecord,
      now: number,
    ) => Promise<Verdict<Answer | Outcome>>,
  ): Question<Answer | Outcome> {
    const { site1, site2, start, end, bandwidth, experiment, createdBy } = request;
    const link = this.#link(linkId(site1, site2));
    const decide: Question<Answer | Outcome>['decide'] = async (transaction, calendar, now) => {
      const decision = calendar.decide(request, now);
      if (!decision.accepted) {
        const offers = offersFor(request, calendar, { from: start, expiry: request.expiry });
        return { answer: { ok: false, reason: 'refused', link, refusals: decision.refusals, offers } };
      }
      const record: ReservationRecord = {
        id: this.#options.newId(),
        link: linkId(site1, site2),
        reversed: site1 !== link.site1,
        start,
        end,
        bandwidth,
        tags: decision.tags,
        experiment,
        createdBy,
        createdAt: now,
      };
      return conclude(transaction, record, now);
    };
    return { link, from: async () => start, decide };
  }

  /**
   * Changes a reservation: releases it and decides anew, in one transaction. What can't be met changes nothing; the
   * tags stay when they can.
   *
   * @param check the rules about dates, which need the reservation as it stands under the lock
   * @returns undefined when there is no such reservation any more
   */
  async amend<Fault>(
    id: string,
    amendment: Amendment,
    { expiry, check, dryRun = false }: { expiry: number; check: AmendmentCheck<Fault>; dryRun?: boolean },
  ): Promise<AmendmentOutcome<Fault> | undefined> {
    const found = await this.#options.store.find(id);
    if (!found) return undefined;
    const link = this.#link(found.link);
    type Answer = AmendmentOutcome<Fault> | undefined;
    const decide: Question<Answer>['decide'] = async (transaction, calendar, now) => {
      const current = await transaction.read(id);
      if (!current) return { answer: undefined };
      const demand: Demand = {
        start: amendment.start ?? current.start,
        end: amendment.end ?? current.end,
        bandwidth: amendment.bandwidth ?? current.bandwidth,
      };
      const fault = check(current, demand);
      if (fault !== undefined) return { answer: { ok: false, reason: 'fault', fault } };
      const decision = calendar.decideAnew(id, demand, now);
      if (!decision.accepted) {
        const offers = calendar.without(id, (rest) =>
          offersFor(demand, rest, current.start > now ? { from: demand.start, expiry } : undefined),
        );
        return { answer: { ok: false, reason: 'refused', link, refusals: decision.refusals, offers } };
      }
      return (dryRun ? showOnly : put)(transaction, { ...current, ...demand, tags: decision.tags });
    };
    const from = async (transaction: LinkTransaction): Promise<number> => {
      const start = (await transaction.read(id))?.start ?? found.start;
      return Math.min(start, amendment.start ?? start);
    };
    return this.#ask({ link, from, decide });
  }

  /** Deletes a reservation; its tags and bandwidth are free again at once. @returns whether there was one */
  async cancel(id: string, _order?: { by: string; reason?: string }): Promise<boolean> {
    const found = await this.#options.store.find(id);
    if (!found) return false;
    // No calendar is asked: a link that left the topology still lets go of what it held.
    return this.#options.store.changeLink(found.link, async (transaction) => {
      if (!(await transaction.read(id))) return false;
      await transaction.cancel(id, this.#options.now());
      return true;
    });
  }

  #link(id: string): Link {
    const link = this.#options.network.byId(id);
    if (!link) throw new RangeError(`there is no link ${id}`);
    return link;
  }

  /** Questions about one link wait for each other here, so that the database's lock is not what they queue on. */
  async #ask<Answer>(question: Question<Answer>): Promise<Answer> {
    const { link } = question;
    const id = linkId(link.site1, link.site2);
    const turn = (this.#queues.get(id) ?? Promise.resolve()).then(() => this.#transact(id, question));
    const settled = turn.catch(() => undefined);
    this.#queues.set(id, settled);
    settled.then(() => {
      if (this.#queues.get(id) === settled) this.#queues.delete(id);
    });
    return turn;
  }

  async #transact<Answer>(id: string, { link, from, decide }: Question<Answer>): Promise<Answer> {
    const { store, now } = this.#options;
    const known = this.#projections.get(id);
    this.#projections.delete(id);
    const { verdict, projection } = await store.changeLink(id, async (transaction) => {
      const decidedAt = now();
      const reach = Math.min(await from(transaction), decidedAt);
      const current = await carry(known, link, transaction, reach);
      return { projection: current, verdict: await decide(transaction, current.calendar, decidedAt) };
    });
    if (verdict.take) {
      verdict.take(projection.calendar);
      projection.version += 1;
    }
    // Only now: had anything thrown on the way, the next request would read everything anew.
    this.#projections.set(id, projection);
    return verdict.answer;
  }
}

async function put(transaction: LinkTransaction, record: ReservationRecord): Promise<Verdict<Outcome>> {
  await transaction.put(record);
  return { answer: { ok: true, record }, take: (memory) => memory.hold(record.id, record) };
}

async function repeat(
  transaction: LinkTransaction,
  earlier: RememberedBooking,
  request: KeyedRequest,
): Promise<Verdict<Repetition>> {
  return { answer: await repetitionOf(earlier, request, (id) => transaction.read(id)) };
}

async function showOnly(_: LinkTransaction, record: ReservationRecord): Promise<Verdict<Outcome>> {
  return { answer: { ok: true, record } };
}

/**
 * What would be accepted in place of a refused demand: the same period with as much bandwidth as there is, and the
 * same bandwidth and duration at the earliest start that it can have.
 *
 * @param later where to look for another start; undefined when the start can't move
 */
function offersFor(
  demand: Demand,
  calendar: LinkCalendar,
  later: { from: number; expiry: number } | undefined,
): Offer[] {
  const offers: Offer[] = [];
  const { start: asked, end } = demand;
  const most = calendar.most(demand);
  if (most > 0) offers.push({ start: asked, end, bandwidth: most });
  if (!later) return offers;
  const duration = end - asked;
  const start = calendar.earliest(later.from, duration, demand.bandwidth);
  if (start !== undefined && start + duration <= later.expiry) {
    const moved: Period = { start, end: start + duration };
    offers.push({ ...moved, bandwidth: demand.bandwidth });
  }
  return offers;
}
