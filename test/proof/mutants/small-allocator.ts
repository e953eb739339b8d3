import type { Plan } from '../../../src/allocator/calendar.ts';
import type { Demand, Holding } from '../../../src/allocator/demand.ts';
import {
  type CreateRequest,
  type DeleteTerms,
  KEY_LIFETIME,
  type KeyedRequest,
  type UpdateRequest,
  type UpdateTerms,
} from '../../../src/allocator/decide.ts';
import type { IdempotencyRecord, ReservationRecord, WrittenChange } from '../../../src/allocator/store.ts';
import { type Link, linkId } from '../../../src/contract/links.ts';
import type { AllocatorOptions, Outcome, Replay } from '../../allocator/allocator.ts';
import { type Asked, Oracle } from '../../allocator/oracle.ts';
import { changeLink, type LinkTransaction, oneHop } from '../../store/one-link.ts';
import type { Subject } from '../subject.ts';

/** A protocol that is known to be broken (allocator/README.md, "Mistakes of other systems, each a test here"). */
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

interface Decision<Answer> {
  answer: Answer;
  change?: WrittenChange;
  take?: (oracle: Oracle) => void;
  /** What is written in a transaction of its own after this one. */
  later?: WrittenChange;
}

type Work<Answer> = (transaction: LinkTransaction, oracle: Oracle, now: number) => Promise<Decision<Answer>>;

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

  create(request: CreateRequest & KeyedRequest): Promise<Outcome | Replay>;
  create(request: CreateRequest & { key?: undefined }, dryRun?: boolean): Promise<Outcome>;
  create(
    request: CreateRequest & (KeyedRequest | { key?: undefined }),
    dryRun = false,
  ): Promise<Outcome | Replay> {
    const link = this.#link(linkId(request.site1, request.site2));
    const create = this.#creation(request, dryRun);
    if (request.key === undefined) return this.#ask(link, create);
    return this.#ask<Outcome | Replay>(link, async (transaction, oracle, now) => {
      const [earlier] = await transaction.lockKeys([request], now);
      if (earlier) {
        const [record] = await transaction.read(earlier.reservations);
        return { answer: replayOf(earlier, request, record) };
      }
      const decision = await create(transaction, oracle, now);
      const { answer, change } = decision;
      if (!answer.ok || !change) return decision;
      const { createdBy, experiment, key: name, fingerprint } = request;
      const key: IdempotencyRecord = {
        ...{ createdBy, experiment, key: name, fingerprint },
        reservations: [answer.record.id],
        expires: now + KEY_LIFETIME,
      };
      if (this.#mistake !== 'key kept in another transaction')
        return { ...decision, change: { ...change, key } };
      return { ...decision, later: { ...change, action: 'update', key } };
    });
  }

  async update(
    id: string,
    update: UpdateRequest,
    { expiry, check, dryRun = false }: UpdateTerms & { dryRun?: boolean },
  ): ReturnType<Subject['update']> {
    const found = await this.#options.store.find(id);
    if (!found) return undefined;
    const link = this.#link(found.hops[0].link);
    return this.#ask<Awaited<ReturnType<Subject['update']>>>(link, async (transaction, oracle, now) => {
      const [current] = await transaction.read([id]);
      if (!current) return { answer: undefined };
      const [hop] = current.hops;
      const { start, end, bandwidth } = { ...current, ...update };
      const demand: Demand = { start, end, bandwidth };
      const fault = check(current, demand);
      if (fault !== undefined) return { answer: { ok: false, reason: 'rule', problems: fault } };
      const own = this.#mistake === 'an update that counts its own use' ? undefined : id;
      const plan: Plan =
        this.#mistake === 'an update that skips the check'
          ? { accepted: true, tags: hop.tags }
          : oracle.plan(demand, now, own);
      if (plan.accepted) {
        return put({ ...current, ...demand, hops: [{ ...hop, tags: plan.tags }] }, 'update', dryRun);
      }
      const movable = update.start !== undefined && current.start > now;
      return {
        answer: refusal({ link, ends: current, tenant: current.tenant }, plan, oracle, demand, {
          now,
          expiry,
          own: id,
          movable,
        }),
      };
    });
  }

  async delete(id: string, _: DeleteTerms): Promise<boolean> {
    const found = await this.#options.store.find(id);
    if (!found) return false;
    return this.#ask<boolean>(this.#link(found.hops[0].link), async (transaction) => {
      const [record] = await transaction.read([id]);
      if (!record) return { answer: false };
      return { answer: true, change: { action: 'delete', record }, take: (oracle) => oracle.drop(id) };
    });
  }

  #creation(request: CreateRequest, dryRun: boolean): Work<Outcome> {
    const { site1, site2, start, end, experiment, tenant = experiment, createdBy, expiry } = request;
    const id = linkId(site1, site2);
    const link = this.#link(id);
    const demand: Demand = { start, end, bandwidth: request.bandwidth ?? link.bandwidth };
    return async (_, oracle, now) => {
      const plan = oracle.plan(demand, now);
      if (!plan.accepted)
        return {
          answer: refusal({ link, ends: { site1, site2 }, tenant }, plan, oracle, demand, {
            now,
            expiry,
          }),
        };
      const { tags } = plan;
      const terms = { ...demand, tags, experiment, tenant, createdBy, createdAt: now };
      return put(
        oneHop({ id: this.#options.newId(), link: id, reversed: site1 !== link.site1, ...terms }),
        'create',
        dryRun,
      );
    };
  }

  #link(id: string): Link {
    const link = this.#options.network.byId(id);
    if (!link) throw new RangeError(`there is no link ${id}`);
    return link;
  }

  /** Runs the operations of a link one after the other. */
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
    const { decision, memory } = await changeLink(store, id, async (transaction) => {
      const memory = await this.#caughtUp(known, link, transaction);
      const decision = await work(transaction, memory.oracle, now());
      if (mistake === 'memory changed before the commit') this.#take(id, memory, decision);
      if (mistake === 'check and insert in two transactions') return { memory, decision };
      try {
        if (decision.change) await transaction.write({ changes: [decision.change], audit: [] }, now());
      } catch (error) {
        if (mistake !== 'the failing one of a group answered as success') throw error;
      }
      return { memory, decision };
    });
    const { change, later } = decision;
    const writeAlone = (each: WrittenChange): Promise<void> =>
      store.changeLinks({ links: [id] }, (transaction) => transaction.write({ changes: [each], audit: [] }, now()));
    if (mistake === 'check and insert in two transactions' && change) await writeAlone(change);
    if (mistake !== 'memory changed before the commit') this.#take(id, memory, decision);
    if (later) await writeAlone(later);
    return decision.answer;
  }

  #take<Answer>(id: string, memory: Memory, { change, take }: Decision<Answer>): void {
    take?.(memory.oracle);
    if (change) memory.version += 1;
    this.#memories.set(id, memory);
  }

  async #caughtUp(known: Memory | undefined, link: Link, transaction: LinkTransaction): Promise<Memory> {
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
      if (!change.deleted) known.oracle.hold(change.id, change.holding);
      else if (this.#mistake !== 'changes without what was cancelled') known.oracle.drop(change.id);
    }
    known.version = version;
    return known;
  }
}

function put(record: ReservationRecord, action: 'create' | 'update', dryRun: boolean): Decision<Outcome> {
  const answer: Outcome = { ok: true, record };
  if (dryRun) return { answer };
  return { answer, change: { action, record }, take: (oracle) => oracle.hold(record.id, holdingOf(record)) };
}

function holdingOf({ start, end, bandwidth, tenant, hops: [{ tags }] }: ReservationRecord): Holding {
  return { start, end, bandwidth, tags, tenant };
}

function refusal(
  {
    link,
    ends: { site1, site2 },
    tenant,
  }: { link: Link; ends: { site1: string; site2: string }; tenant: string },
  { refusals }: Plan & { accepted: false },
  oracle: Oracle,
  demand: Demand,
  asked: Asked,
): Outcome & { ok: false; reason: 'refused' } {
  const offers = link.bandwidth > FEW_MBPS ? [] : oracle.offers(demand, asked);
  return {
    ok: false,
    reason: 'refused',
    link,
    sites: [site1, site2],
    isHop: false,
    tenant,
    demand,
    refusals,
    free: oracle.parts(demand, asked.own),
    offers,
  };
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

function replayOf(
  earlier: IdempotencyRecord,
  { fingerprint }: KeyedRequest,
  record: ReservationRecord | undefined,
): Replay {
  if (earlier.fingerprint !== fingerprint) return { ok: false, reason: 'key_taken' };
  if (record) return { ok: true, record, replayed: true };
  return { ok: false, reason: 'deleted', reservation: earlier.reservations.join(' ') };
}
