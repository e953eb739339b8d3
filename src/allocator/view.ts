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
  const [rows, taken, live, names, found] = await Promise.all([
    reading.versions(links),
    Promise.all(keys.map((key) => reading.findKey(key, now))),
    counted.length > 0 ? reading.countLive(counted, now) : undefined,
    named.length > 0 ? reading.findNames(named, now) : undefined,
    about.length > 0 ? reading.read(about) : [],
  ]);
  const earlier = taken.flatMap((record) => record ?? []);
  const ids = earlier.flatMap(({ reservations }) => reservations);
  const replayed = ids.length > 0 ? await reading.read(ids) : [];
  return {
    versions: new Map(rows.map(({ id, version }) => [id, version])),
    records: new Map([...found, ...replayed].map((record) => [record.id, record])),
    live: live ?? new Map(),
    names: names ?? new Map(),
    keys: new Map(earlier.map((record) => [nameOfKey(record), record])),
  };
}

/** Links as an operation sees them: with the changes that it has decided on so far. */
export class LinksView {
  /** When it is decided, in milliseconds. */
  readonly now: number;
  readonly #options: ViewOptions;
  #known: Known;
  readonly #uses = new Map<string, LinkUse>();
  /** The functions that undo the changes, in the order of the changes. */
  readonly #inverses: (() => void)[] = [];

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
    return this.#known.versions.get(link) ?? 0;
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
    return this.#known.records.get(id);
  }

  /** How many reservations of the tenant have not ended, on all links. @throws RangeError when they were not counted */
  live(tenant: string): number {
    const live = this.#known.live.get(tenant);
    if (live === undefined) throw new RangeError('the reservations of this tenant were not counted');
    return live;
  }

  /** The id of the reservation that has a name; undefined when the name is free. */
  holderOf(name: ReservationName): string | undefined {
    return this.#known.names.get(textOfName(name));
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
    return this.#inverses.length;
  }

  /** Takes changes back, the last one first, until only so many are left. */
  undo(changes: number): void {
    for (const inverse of this.#inverses.splice(changes).reverse()) inverse();
  }

  /** Makes a change, which whatever is decided after it sees. */
  apply({ action, record }: WrittenChange): void {
    const { live, names, records, versions } = this.#known;
    const { id, experiment, tenant, hops } = record;
    const before = records.get(id);
    const textOf = (name: string | undefined) =>
      name === undefined ? [] : [textOfName({ experiment, name })];
    const texts = [...textOf(before?.name), ...textOf(record.name)];
    const holders = texts.map((text) => [text, names.get(text)] as const);
    const counted = live.get(tenant);
    const moveOn = (by: 1 | -1): void => {
      for (const { link } of hops) versions.set(link, this.version(link) + by);
    };
    this.#inverses.push(() => {
      moveOn(-1);
      restore(records, id, before);
      for (const [text, holder] of holders) restore(names, text, holder);
      if (counted !== undefined) live.set(tenant, counted);
      this.#hold(before ?? record, before !== undefined);
    });
    moveOn(1);
    for (const [text, holder] of holders) if (holder === id) names.delete(text);
    if (action !== 'delete') for (const text of textOf(record.name)) names.set(text, id);
    if (counted !== undefined && record.end > this.now) {
      live.set(tenant, counted + { create: 1, update: 0, delete: -1 }[action]);
    }
    restore(records, id, action === 'delete' ? undefined : record);
    this.#hold(record, action !== 'delete');
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

function restore<Value>(map: Map<string, Value>, key: string, value: Value | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
