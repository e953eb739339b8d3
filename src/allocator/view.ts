import { LinkUse } from './link-use.ts';
import type { Network } from './network.ts';
import {
  type IdempotencyKey,
  type IdempotencyRecord,
  type LinkVersion,
  nameOfKey,
  type ReservationName,
  type ReservationRecord,
  type StoreReading,
  textOfName,
  type WrittenChange,
} from './store.ts';

/** The rows that must be read before an operation decides. */
export interface Needs {
  /** The ids of its links, different from each other and sorted. */
  readonly links: readonly string[];
  /** The ids of the reservations that it changes. */
  readonly about: readonly string[];
  /** The tenants whose live reservations are counted. */
  readonly counted: readonly string[];
  /** The names that it gives reservations. */
  readonly named: readonly ReservationName[];
  /** The idempotency keys that it is done under. */
  readonly keys: readonly IdempotencyKey[];
}

/** What was read for an operation, beside the use of its links. */
interface Known {
  /** The links' versions, by their ids. */
  versions: Map<string, number>;
  records: Map<string, ReservationRecord>;
  /** How many live reservations each tenant has that is counted. */
  live: Map<string, number>;
  /** The ids of the reservations that have the names which it gives, by `textOfName`. */
  names: Map<string, string>;
  /** What the keys stand for that are not free, by `nameOfKey`. */
  keys: Map<string, IdempotencyRecord>;
}

/** Options of a {@link LinksView}. */
export interface ViewOptions {
  network: Pick<Network, 'byId'>;
  /** See {@link LinkUse}. */
  maxShare?: number | undefined;
  /** Where rows are read. */
  reading: Pick<StoreReading, 'overlapping'>;
}

/** Reads what an operation needs. */
export async function readAhead(
  reading: StoreReading,
  { links, about, counted, named, keys }: Needs,
  now: number,
): Promise<Known> {
  // All are sent at once; the store keeps the order in which they lock.
  const [rows, earlier, live, names, found] = await Promise.all([
    reading.versions(links),
    readEach(keys, nameOfKey, (key) => reading.findKey(key, now)),
    readEach(counted, String, (tenant) => reading.countLive(tenant, now)),
    readEach(named, textOfName, (name) => reading.findName(name, now)),
    readEach(about, String, reading.find),
  ]);
  const ids = [...earlier.values()].flatMap(({ reservations }) => reservations);
  const replayed = await readEach(ids, String, reading.find);
  return {
    versions: new Map(rows.map(({ id, version }) => [id, version])),
    records: new Map([...found, ...replayed]),
    live,
    names,
    keys: earlier,
  };
}

/** What is found of each, by its name. */
async function readEach<Key, Value>(
  keys: readonly Key[],
  nameOf: (key: Key) => string,
  read: (key: Key) => Promise<Value | undefined>,
): Promise<Map<string, Value>> {
  const found = await Promise.all(keys.map(async (key) => ({ name: nameOf(key), value: await read(key) })));
  return new Map(found.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])));
}

/** Links as an operation sees them: with the changes that it has decided on so far. */
export class LinksView {
  /** When it is decided, in milliseconds. */
  readonly now: number;
  readonly #options: ViewOptions;
  #known: Known;
  readonly #uses = new Map<string, LinkUse>();
  /** The changes, each with its reservation as it was before. */
  readonly #changes: (WrittenChange & { before: ReservationRecord | undefined })[] = [];
  /** How many changes each link has of them, and how many live reservations more each tenant. */
  readonly #moved = new Map<string, number>();
  readonly #made = new Map<string, number>();

  /** @param now milliseconds */
  constructor(now: number, options: ViewOptions) {
    this.now = now;
    this.#options = options;
    this.#known = {
      versions: new Map(),
      records: new Map(),
      live: new Map(),
      names: new Map(),
      keys: new Map(),
    };
  }

  /** Takes what was read. */
  know(known: Known): void {
    this.#known = known;
  }

  /** Takes the versions of links; the rows of those that changed since they were read are forgotten. @returns whether there were any */
  renew(versions: readonly LinkVersion[]): boolean {
    const changed = versions.filter(({ id, version }) => version !== this.version(id));
    for (const { id, version } of changed) {
      this.#known.versions.set(id, version);
      this.#uses.delete(id);
    }
    return changed.length > 0;
  }

  /** A link's version; each change of the operation counts. */
  version(link: string): number {
    return (this.#known.versions.get(link) ?? 0) + (this.#moved.get(link) ?? 0);
  }

  /** The use of a link. @throws RangeError for a link that left the network */
  use(id: string): LinkUse {
    const known = this.#uses.get(id);
    if (known) return known;
    const { network, maxShare: share, reading } = this.#options;
    const link = network.byId(id);
    if (!link) throw new RangeError(`there is no link ${id}`);
    const use = new LinkUse(id, link, { share, read: (period) => reading.overlapping(id, period) });
    this.#uses.set(id, use);
    return use;
  }

  /** A reservation that was read; undefined when it was deleted. */
  reservation(id: string): ReservationRecord | undefined {
    const change = this.#changes.findLast(({ record }) => record.id === id);
    if (change) return change.action === 'delete' ? undefined : change.record;
    return this.#known.records.get(id);
  }

  /** How many reservations of the tenant have not ended, on all links. @throws RangeError when they were not counted */
  live(tenant: string): number {
    const live = this.#known.live.get(tenant);
    if (live === undefined) throw new RangeError('the reservations of this tenant were not counted');
    return live + (this.#made.get(tenant) ?? 0);
  }

  /** The id of the reservation that has a name; undefined when the name is free. */
  holderOf(name: ReservationName): string | undefined {
    const has = (record: ReservationRecord): boolean =>
      record.name === name.name && record.experiment === name.experiment;
    let holder = this.#known.names.get(textOfName(name));
    for (const { action, record } of this.#changes) {
      if (action !== 'delete' && has(record)) holder = record.id;
      // One that has ended had the name too, and does not free it.
      else if (holder === record.id) holder = undefined;
    }
    return holder;
  }

  /** What an idempotency key stands for; undefined when the key is free. */
  earlier(key: IdempotencyKey): IdempotencyRecord | undefined {
    return this.#known.keys.get(nameOfKey(key));
  }

  /** Keeps what a key stands for from now on. */
  keep(record: IdempotencyRecord): void {
    this.#known.keys.set(nameOfKey(record), record);
  }

  /** How many changes were made so far. */
  get changes(): number {
    return this.#changes.length;
  }

  /** Takes changes back, the last one first, until only so many are left. */
  undo(changes: number): void {
    for (const { before, ...change } of this.#changes.splice(changes).reverse()) {
      this.#count(change, -1);
      this.#hold(before ?? change.record, before !== undefined);
    }
  }

  /** Makes a change, which whatever is decided after it sees. */
  apply(change: WrittenChange): void {
    const { action, record } = change;
    this.#changes.push({ ...change, before: action === 'create' ? undefined : this.reservation(record.id) });
    this.#count(change, 1);
    this.#hold(record, action !== 'delete');
  }

  /** Counts a change, or takes it back: a look at all changes would take longer with each. */
  #count({ action, record }: WrittenChange, times: 1 | -1): void {
    const add = (counts: Map<string, number>, name: string, by: number): void =>
      void counts.set(name, (counts.get(name) ?? 0) + by);
    for (const { link } of record.hops) add(this.#moved, link, times);
    if (record.end > this.now)
      add(this.#made, record.tenant, times * { create: 1, update: 0, delete: -1 }[action]);
  }

  /** Puts a reservation into the use of its links, or removes it. */
  #hold({ id, hops, start, end, bandwidth, tenant }: ReservationRecord, isHeld: boolean): void {
    for (const { link, tags } of hops) {
      if (!this.#options.network.byId(link)) continue;
      if (isHeld) this.use(link).put({ id, start, end, bandwidth, tags, tenant });
      else this.use(link).remove(id);
    }
  }
}
