import {
  type AllocatorOptions,
  type ChangeTerms,
  Allocator as ListAllocator,
} from '../../src/allocator/allocator.ts';
import type {
  ChangeItem,
  CreateRequest,
  DeleteTerms,
  ItemFailure,
  KeyedRequest,
  RefusedOutcome,
  UpdateRequest,
  UpdateTerms,
} from '../../src/allocator/decide.ts';
import type { ChangeOutcome } from '../../src/allocator/list.ts';
import type { ReservationRecord } from '../../src/allocator/store.ts';
import { type Link, linkId } from '../../src/contract/links.ts';
import { oneHop } from '../store/one-link.ts';

export type { AllocatorOptions, ChangeOutcome };

/** The answer to one create or update that gives no name. */
export type Outcome = { ok: true; record: ReservationRecord } | RefusedOutcome;
/** The answer to one create or update. */
export type OneOutcome = { ok: true; record: ReservationRecord } | ItemFailure;
/** The answer to one create under a key that is taken. */
export type Replay =
  | { ok: true; record: ReservationRecord; replayed: true }
  | { ok: false; reason: 'deleted'; reservation: string }
  | { ok: false; reason: 'key_taken' };

/** One change of a list, which names its reservation by its id. */
export type Item =
  | { action: 'create'; request: CreateRequest }
  | { action: 'update'; id: string; update: UpdateRequest; terms: UpdateTerms }
  | { action: 'delete'; id: string; terms: DeleteTerms };

/** The allocator with a method for each kind of change, so that a test reads as what it asks for. */
export class Allocator extends ListAllocator {
  readonly #options: AllocatorOptions;

  constructor(options: AllocatorOptions) {
    super(options);
    this.#options = options;
  }

  /** Creates one reservation. */
  create(request: CreateRequest & KeyedRequest & { name?: undefined }): Promise<Outcome | Replay>;
  create(request: CreateRequest & KeyedRequest): Promise<OneOutcome | Replay>;
  create(request: CreateRequest & { key?: undefined; name?: undefined }, dryRun?: boolean): Promise<Outcome>;
  create(request: CreateRequest & { key?: undefined }, dryRun?: boolean): Promise<OneOutcome>;
  create(
    request: CreateRequest & (KeyedRequest | { key?: undefined }),
    dryRun = false,
  ): Promise<OneOutcome | Replay> {
    const keyed = request.key === undefined ? undefined : request;
    return this.change([{ action: 'create', request }], { keyed, dryRun }).then(oneOf);
  }

  /** Updates one; undefined when there is none. */
  async update(
    id: string,
    update: UpdateRequest,
    { dryRun, ...terms }: UpdateTerms & { dryRun?: boolean },
  ): Promise<Exclude<OneOutcome, { reason: 'missing' }> | undefined> {
    const found = await this.#options.store.find(id);
    if (!found) return undefined;
    const outcome = oneOf(await this.change([{ action: 'update', found, update, terms }], { dryRun }));
    if (!outcome.ok && outcome.reason === 'missing') return undefined;
    return outcome as Exclude<OneOutcome, { reason: 'missing' }>;
  }

  /** Deletes one. @returns whether there was one */
  async delete(id: string, terms: DeleteTerms): Promise<boolean> {
    const found = await this.#options.store.find(id);
    return found !== undefined && (await this.change([{ action: 'delete', found, terms }])).ok;
  }

  /** Makes several changes. */
  async batch(items: readonly Item[], terms?: ChangeTerms): Promise<ChangeOutcome> {
    return this.change(await Promise.all(items.map((item) => this.#found(item))), terms);
  }

  /** What a key stands for. */
  async replayOne(request: KeyedRequest): Promise<OneOutcome | Replay | undefined> {
    const outcome = await this.replay(request);
    return outcome && oneOf(outcome);
  }

  /** An item with its reservation; with one of the first link where there is none, as if it had been deleted meanwhile. */
  async #found(item: Item): Promise<ChangeItem> {
    if (item.action === 'create') return item;
    const { id } = item;
    const [{ site1, site2 }] = this.#options.network.links as [Link];
    const who = { experiment: '', tenant: '', createdBy: '', createdAt: 0 };
    const tags = { site1_s_tag: 1, site1_c_tag: 1, site2_s_tag: 1, site2_c_tag: 1 };
    const gone = oneHop({ id, ...who, tags, link: linkId(site1, site2), start: 0, end: 1, bandwidth: 1 });
    return { ...item, found: (await this.#options.store.find(id)) ?? gone };
  }
}

/** The answer of the only item. */
function oneOf(outcome: ChangeOutcome): OneOutcome | Replay {
  if (!outcome.ok) {
    if (outcome.reason === 'key_taken') return outcome;
    const [only] = outcome.items;
    if (!only) throw new RangeError('there is no item');
    return only;
  }
  const { records, replayed } = outcome;
  const [record] = records;
  if (replayed && !record) return { ok: false, reason: 'deleted', reservation: replayed.join(' ') };
  if (!record) throw new RangeError('there is no item');
  return replayed ? { ok: true, record, replayed: true } : { ok: true, record };
}
