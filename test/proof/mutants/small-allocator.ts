import type { AllocatorOptions } from '../../../src/allocator/allocator.ts';
import type { Amendment, AmendmentOutcome, AmendmentTerms } from '../../../src/allocator/amendment.ts';
import type { BookingRequest } from '../../../src/allocator/booking.ts';
import type { Decision } from '../../../src/allocator/calendar.ts';
import type { CancellationTerms } from '../../../src/allocator/cancellation.ts';
import type { Demand, Holding } from '../../../src/allocator/demand.ts';
import { linkId } from '../../../src/allocator/network.ts';
import type { Offer } from '../../../src/allocator/offers.ts';
import type { Outcome } from '../../../src/allocator/outcome.ts';
import {
  KEY_LIFETIME,
  type KeyedRequest,
  type Repetition,
  repetitionOf,
} from '../../../src/allocator/repetition.ts';
import type {
  LinkTransaction,
  RememberedBooking,
  ReservationRecord,
  WrittenChange,
} from '../../../src/allocator/store.ts';
import type { Link } from '../../../src/contract/links.ts';
import { Oracle } from '../../allocator/oracle.ts';
import type { Subject } from '../subject.ts';

/** A protocol that is known to be broken (DESIGN.md, "Allocator", the last list). */
export type Mistake =
  | 'check and insert in two transactions'
  | 'memory changed before the commit'
  | 'memory kept after an error'
  | 'version not read again'
  | 'changes without what was cancelled'
  | 'an update that skips the check'
  | 'an update that counts its own use'
  | 'closed intervals'
  | 'equal deltas counted once'
  | 'key kept in another transaction'
  | 'the failing one of a group answered as success';

interface Memory {
  oracle: Oracle;
  version: number;
}

interface Verdict<Answer> {
  answer: Answer;
  change?: WrittenChange;
  take?: (oracle: Oracle) => void;
  /** What is written in a transaction of its own after this one. */
  later?: WrittenChange;
}

type Work<Answer> = (transaction: LinkTransaction, oracle: Oracle, now: number) => Promise<Verdict<Answer>>;

/** Offers need every bandwidth tried, which is quick only on a link that has little. */
const FEW_MBPS = 100;

/**
 * The allocator's protocol in small, over the store's interface, with the oracle for a calendar: right without a
 * mistake, which the proofs must confirm, and wrong with any, which they must find out.
 */
export class SmallAllocator implements Subject {
  readonly #options: AllocatorOptions;
  readonly #mistake: Mistake | undefined;
  readonly #memories = new Map<string, Memory>();
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(options: AllocatorOptions, mistake?: Mistake) {
    this.#options = options;
    this.#mistake = mistake;
  }

  async book(request: BookingRequest, dryRun = false): Promise<Outcome> {
    return this.#ask(this.#link(linkId(request.site1, request.site2)), this.#booking(request, dryRun));
  }

  async bookOnce(request: BookingRequest & KeyedRequest): Promise<Outcome | Repetition> {
    const link = this.#link(linkId(request.site1, request.site2));
    const book = this.#booking(request, false);
    return this.#ask<Outcome | Repetition>(link, async (transaction, oracle, now) => {
      const [earlier] = await transaction.claim([request], now);
      if (earlier) {
        const [record] = await transaction.read([earlier.reservation]);
        return { answer: repetitionOf(earlier, request, record) };
      }
      const verdict = await book(transaction, oracle, now);
      const { answer, change } = verdict;
      if (!answer.ok || !change) return verdict;
      const { createdBy, experiment, key: name, fingerprint } = request;
      const key: RememberedBooking = {
        ...{ createdBy, experiment, key: name, fingerprint },
        reservation: answer.record.id,
        expires: now + KEY_LIFETIME,
      };
      if (this.#mistake !== 'key kept in another transaction')
        return { ...verdict, change: { ...change, key } };
      return { ...verdict, later: { ...change, action: 'amend', key } };
    });
  }

  async amend<Fault>(
    id: string,
    amendment: Amendment,
    { expiry, check, dryRun = false }: AmendmentTerms<Fault>,
  ): Promise<AmendmentOutcome<Fault> | undefined> {
    const found = await this.#options.store.find(id);
    if (!found) return undefined;
    const link = this.#link(found.link);
    return this.#ask<AmendmentOutcome<Fault> | undefined>(link, async (transaction, oracle, now) => {
      const [current] = await transaction.read([id]);
      if (!current) return { answer: undefined };
      const { start, end, bandwidth } = { ...current, ...amendment };
      const demand: Demand = { start, end, bandwidth };
      const fault = check(current, demand);
      if (fault !== undefined) return { answer: { ok: false, reason: 'fault', fault } };
      const own = this.#mistake === 'an update that counts its own use' ? undefined : id;
      const decision: Decision =
        this.#mistake === 'an update that skips the check'
          ? { accepted: true, tags: current.tags }
          : oracle.decide(demand, now, own);
      if (decision.accepted) return put({ ...current, ...demand, tags: decision.tags }, 'amend', dryRun);
      const from = current.start > now ? start : undefined;
      return { answer: refusal(link, decision, offersFor(oracle, link, demand, { from, expiry, own: id })) };
    });
  }

  async cancel(id: string, _: CancellationTerms): Promise<boolean> {
    const found = await this.#options.store.find(id);
    if (!found) return false;
    return this.#ask<boolean>(this.#link(found.link), async (transaction) => {
      const [record] = await transaction.read([id]);
      if (!record) return { answer: false };
      return { answer: true, change: { action: 'cancel', record }, take: (oracle) => oracle.drop(id) };
    });
  }

  #booking(request: BookingRequest, dryRun: boolean): Work<Outcome> {
    const { site1, site2, start, end, bandwidth, experiment, createdBy, expiry } = request;
    const id = linkId(site1, site2);
    const link = this.#link(id);
    return async (_, oracle, now) => {
      const decision = oracle.decide(request, now);
      if (!decision.accepted) {
        const offers = offersFor(oracle, link, { start, end, bandwidth }, { from: start, expiry });
        return { answer: refusal(link, decision, offers) };
      }
      const { tags } = decision;
      const terms = { start, end, bandwidth, tags, experiment, createdBy, createdAt: now };
      return put(
        { id: this.#options.newId(), link: id, reversed: site1 !== link.site1, ...terms },
        'book',
        dryRun,
      );
    };
  }

  #link(id: string): Link {
    const link = this.#options.network.byId(id);
    if (!link) throw new RangeError(`there is no link ${id}`);
    return link;
  }

  /** Questions about one link are answered one after the other. */
  async #ask<Answer>(link: Link, work: Work<Answer>): Promise<Answer> {
    const id = linkId(link.site1, link.site2);
    const turn = (this.#queues.get(id) ?? Promise.resolve()).then(() => this.#transact(id, link, work));
    this.#queues.set(
      id,
      turn.catch(() => undefined),
    );
    return turn;
  }

  async #transact<Answer>(id: string, link: Link, work: Work<Answer>): Promise<Answer> {
    const { store, now } = this.#options;
    const mistake = this.#mistake;
    const known = this.#memories.get(id);
    if (mistake !== 'memory kept after an error') this.#memories.delete(id);
    const { verdict, memory } = await store.changeLink(id, async (transaction) => {
      const memory = await this.#carried(known, link, transaction);
      const verdict = await work(transaction, memory.oracle, now());
      if (mistake === 'memory changed before the commit') this.#take(id, memory, verdict);
      if (mistake === 'check and insert in two transactions') return { memory, verdict };
      try {
        if (verdict.change) await transaction.write({ changes: [verdict.change], audit: [] }, now());
      } catch (error) {
        if (mistake !== 'the failing one of a group answered as success') throw error;
      }
      return { memory, verdict };
    });
    const { change, later } = verdict;
    const writeAlone = (each: WrittenChange): Promise<void> =>
      store.changeLink(id, (transaction) => transaction.write({ changes: [each], audit: [] }, now()));
    if (mistake === 'check and insert in two transactions' && change) await writeAlone(change);
    if (mistake !== 'memory changed before the commit') this.#take(id, memory, verdict);
    if (later) await writeAlone(later);
    return verdict.answer;
  }

  #take<Answer>(id: string, memory: Memory, { change, take }: Verdict<Answer>): void {
    take?.(memory.oracle);
    if (change) memory.version += 1;
    this.#memories.set(id, memory);
  }

  async #carried(known: Memory | undefined, link: Link, transaction: LinkTransaction): Promise<Memory> {
    const { version } = transaction;
    if (!known) {
      const oracle = oracleFor(link, this.#mistake);
      for (const record of await transaction.endingBetween(-1, Number.MAX_SAFE_INTEGER))
        oracle.hold(record.id, record);
      return { oracle, version };
    }
    if (this.#mistake === 'version not read again' || known.version === version) return known;
    const since = known.version;
    // Too early: what throws from here on leaves a memory that is not at this version.
    if (this.#mistake === 'memory kept after an error') known.version = version;
    const changes = await transaction.changesSince(since);
    for (const change of changes) {
      if (!change.cancelled) known.oracle.hold(change.id, change.holding);
      else if (this.#mistake !== 'changes without what was cancelled') known.oracle.drop(change.id);
    }
    known.version = version;
    return known;
  }
}

function put(record: ReservationRecord, action: 'book' | 'amend', dryRun: boolean): Verdict<Outcome> {
  const answer: Outcome = { ok: true, record };
  if (dryRun) return { answer };
  return { answer, change: { action, record }, take: (oracle) => oracle.hold(record.id, record) };
}

function refusal(
  link: Link,
  { refusals }: Decision & { accepted: false },
  offers: Offer[],
): Outcome & { ok: false; reason: 'refused' } {
  return { ok: false, reason: 'refused', link, refusals, offers };
}

function offersFor(
  oracle: Oracle,
  link: Link,
  demand: Demand,
  { from, expiry, own }: { from: number | undefined; expiry: number; own?: string },
): Offer[] {
  if (link.bandwidth > FEW_MBPS) return [];
  const most = oracle.most(demand, own);
  const offers: Offer[] = most > 0 ? [{ ...demand, bandwidth: most }] : [];
  if (from === undefined) return offers;
  const duration = demand.end - demand.start;
  const start = oracle.earliest(from, duration, demand.bandwidth, expiry, own);
  if (start !== undefined) offers.push({ ...demand, start, end: start + duration });
  return offers;
}

function oracleFor(link: Link, mistake: Mistake | undefined): Oracle {
  if (mistake === 'closed intervals') return new ClosedOracle(link);
  if (mistake === 'equal deltas counted once') return new OnceOracle(link);
  return new Oracle(link);
}

/** What ends at an instant is still there at it. */
class ClosedOracle extends Oracle {
  override hold(id: string, holding: Holding): void {
    super.hold(id, { ...holding, end: holding.end + 1 });
  }
}

/** Of reservations that begin and end together only the first counts. */
class OnceOracle extends Oracle {
  override hold(id: string, holding: Holding): void {
    const same = [...this.held].some(
      ([other, { start, end }]) => other !== id && start === holding.start && end === holding.end,
    );
    super.hold(id, same ? { ...holding, bandwidth: 0 } : holding);
  }
}
