import {
  type CreateRequest,
  type DeleteTerms,
  KEY_LIFETIME,
  type KeyedRequest,
  type UpdateRequest,
  type UpdateTerms,
} from '../../../src/allocator/decide.ts';
import type { Demand, Holding } from '../../../src/allocator/demand.ts';
import type { Plan } from '../../../src/allocator/link-use.ts';
import type {
  HeldReservation,
  IdempotencyKey,
  IdempotencyRecord,
  ReservationRecord,
  StoreTransaction,
  WrittenChange,
} from '../../../src/allocator/store.ts';
import { type Link, linkId } from '../../../src/contract/links.ts';
import type { AllocatorOptions, Outcome, Replay } from '../../allocator/allocator.ts';
import { type Asked, Oracle } from '../../allocator/oracle.ts';
import { oneHop } from '../../store/one-link.ts';
import type { Subject } from '../subject.ts';

/** A protocol that is known to be broken (allocator/README.md, "Mistakes of other systems, each a test here"). */
export type Mistake =
  | 'check and insert in two transactions'
  | 'rows read before the lock'
  | 'rows of what has begun not read'
  | 'an update that skips the check'
  | 'an update that counts its own use'
  | 'closed intervals'
  | 'equal deltas counted once'
  | 'key kept in another transaction'
  | 'the failing one of a group answered as success';

interface Decision<Answer> {
  answer: Answer;
  change?: WrittenChange;
  /** What is written in a transaction of its own after this one. */
  later?: WrittenChange;
}

type Work<Answer> = (transaction: StoreTransaction, oracle: Oracle, now: number) => Promise<Decision<Answer>>;

const EVER = { start: 0, end: Number.MAX_SAFE_INTEGER };

/** Offers need every bandwidth tried, which is quick only on a link that has little. */
const FEW_MBPS = 100;

/**
 * The allocator's protocol in small, over the store's interface, with the oracle to decide: right without a mistake, which the proofs must confirm, and wrong with any, which they must find out.
 */
export class SmallAllocator implements Subject {
  readonly #options: AllocatorOptions;
  readonly #mistake: Mistake | undefined;

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
    const work: Work<Outcome | Replay> = async (transaction, oracle, now) => {
      const earlier = await transaction.findKey(request, now);
      if (earlier) {
        const record = await transaction.find(earlier.reservations[0] ?? '');
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
    };
    return this.#ask(link, work, request);
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
      const current = await transaction.find(id);
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
          : oracle.plan(demand, own);
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
      const record = await transaction.find(id);
      if (!record) return { answer: false };
      return { answer: true, change: { action: 'delete', record } };
    });
  }

  #creation(request: CreateRequest, dryRun: boolean): Work<Outcome> {
    const { site1, site2, start, end, experiment, tenant = experiment, createdBy, expiry } = request;
    const id = linkId(site1, site2);
    const link = this.#link(id);
    const demand: Demand = { start, end, bandwidth: request.bandwidth ?? link.bandwidth };
    return async (_, oracle, now) => {
      const plan = oracle.plan(demand);
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

  /** Decides in a transaction, over the rows that it reads there. */
  async #ask<Answer>(link: Link, work: Work<Answer>, key?: IdempotencyKey): Promise<Answer> {
    const { store, now } = this.#options;
    const mistake = this.#mistake;
    const id = linkId(link.site1, link.site2);
    const early = mistake === 'rows read before the lock' ? await store.overlapping(id, EVER) : undefined;
    let decided: Decision<Answer> | undefined;
    const changed = store.changeLinks({ links: [id], keys: key ? [key] : [] }, async (transaction) => {
      const rows = early ?? (await transaction.overlapping(id, EVER));
      decided = await work(transaction, this.#oracle(link, rows), now());
      const { change } = decided;
      if (change && mistake !== 'check and insert in two transactions') {
        await transaction.write({ changes: [change], audit: [] }, now());
      }
      return decided;
    });
    const { answer, change, later } = await changed.catch((error: unknown) => {
      if (mistake === 'the failing one of a group answered as success' && decided) return decided;
      throw error;
    });
    const writeAlone = (each: WrittenChange): Promise<void> =>
      store.changeLinks({ links: [id] }, (transaction) =>
        transaction.write({ changes: [each], audit: [] }, now()),
      );
    if (mistake === 'check and insert in two transactions' && change) await writeAlone(change);
    if (later) await writeAlone(later);
    return answer;
  }

  #oracle(link: Link, rows: readonly HeldReservation[]): Oracle {
    const mistake = this.#mistake;
    const oracle = oracleFor(link, mistake);
    for (const row of rows) {
      if (mistake === 'rows of what has begun not read' && row.start <= this.#options.now()) continue;
      oracle.hold(row.id, row);
    }
    return oracle;
  }
}

function put(record: ReservationRecord, action: 'create' | 'update', dryRun: boolean): Decision<Outcome> {
  const answer: Outcome = { ok: true, record };
  if (dryRun) return { answer };
  return { answer, change: { action, record } };
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
