import type { LinkCalendar } from './calendar.ts';
import type { LinksView, Operation } from './operations.ts';
import {
  type IdempotencyKey,
  type IdempotencyRecord,
  nameOfKey,
  type ReservationName,
  type ReservationRecord,
  type StoreReading,
  textOfName,
  type WrittenChange,
} from './store.ts';

/** The rows that operations need. */
export interface ReadAhead {
  records: Map<string, ReservationRecord>;
  /** How many live reservations each tenant has that an operation counts. */
  live: Map<string, number>;
  keys: Map<string, IdempotencyRecord>;
  /** The ids of the reservations that have the names which operations give, by `textOfName`. */
  names: Map<string, string>;
}

/**
 * Reads what operations need beside the calendars.
 *
 * @param taken what their idempotency keys stand for
 */
export async function readAhead(
  reading: StoreReading,
  operations: readonly Operation<unknown>[],
  { at, taken }: { at: number; taken: readonly IdempotencyRecord[] },
): Promise<ReadAhead> {
  const needs = operations.flatMap((operation) => operation.needs);
  const counted = [...new Set(needs.flatMap(({ counts }) => counts ?? []))];
  const named = needs.flatMap(({ named: name }) => name ?? []);
  // All are locked at once, so that their order is the same for all.
  const live = counted.length > 0 ? await reading.countLive(counted, at) : undefined;
  const names = named.length > 0 ? await reading.findNames(named, at) : undefined;
  const keyed = taken.flatMap(({ reservations }) => reservations);
  const ids = new Set([...needs.flatMap(({ about }) => about ?? []), ...keyed]);
  const records = ids.size > 0 ? await reading.read([...ids]) : [];
  return {
    records: new Map(records.map((record) => [record.id, record])),
    live: live ?? new Map(),
    names: names ?? new Map(),
    keys: new Map(taken.map((record) => [nameOfKey(record), record])),
  };
}

/** A link while operations are decided on it. */
export interface OpenLink {
  /** The link's version. */
  version: number;
  /** As of that version, and as far back as the operations look; undefined where none of them needs it. */
  calendar: LinkCalendar | undefined;
}

/** Links within a transaction: each operation sees the changes of those before it. */
export class TransactionView implements LinksView {
  readonly now: number;
  readonly #links: ReadonlyMap<string, OpenLink>;
  readonly #known: ReadAhead;
  /** The functions that undo the changes, in the order of the changes. */
  readonly #inverses: (() => void)[] = [];

  /** @param links by id; their versions are counted up @param known is changed too */
  constructor(now: number, links: ReadonlyMap<string, OpenLink>, known: ReadAhead) {
    this.now = now;
    this.#links = links;
    this.#known = known;
  }

  version(link: string): number {
    return this.#open(link).version;
  }

  calendar(link: string): LinkCalendar {
    const { calendar } = this.#open(link);
    if (!calendar) throw new RangeError('the operation needs no calendar');
    return calendar;
  }

  reservation(id: string): ReservationRecord | undefined {
    return this.#known.records.get(id);
  }

  live(tenant: string): number {
    const live = this.#known.live.get(tenant);
    if (live === undefined) throw new RangeError('the reservations of this tenant were not counted');
    return live;
  }

  holderOf(name: ReservationName): string | undefined {
    return this.#known.names.get(textOfName(name));
  }

  idempotencyRecord(key: IdempotencyKey): IdempotencyRecord | undefined {
    return this.#known.keys.get(nameOfKey(key));
  }

  keep(key: IdempotencyRecord): void {
    this.#known.keys.set(nameOfKey(key), key);
  }

  get changes(): number {
    return this.#inverses.length;
  }

  undo(changes: number): void {
    for (const inverse of this.#inverses.splice(changes).reverse()) inverse();
  }

  apply({ action, record }: WrittenChange): void {
    const links = record.hops.map(({ link }) => this.#open(link));
    const { live, names, records } = this.#known;
    const { id, experiment, tenant } = record;
    const before = records.get(id);
    const textOf = (name: string | undefined) =>
      name === undefined ? [] : [textOfName({ experiment, name })];
    const texts = [...textOf(before?.name), ...textOf(record.name)];
    const holders = texts.map((text) => [text, names.get(text)] as const);
    const counted = live.get(tenant);
    this.#inverses.push(() => {
      for (const link of links) link.version -= 1;
      restore(records, id, before);
      for (const [text, holder] of holders) restore(names, text, holder);
      if (counted !== undefined) live.set(tenant, counted);
      this.#hold(before ?? record, before !== undefined);
    });
    for (const link of links) link.version += 1;
    for (const [text, holder] of holders) if (holder === id) names.delete(text);
    if (action !== 'delete') for (const text of textOf(record.name)) names.set(text, id);
    if (counted !== undefined && record.end > this.now) {
      live.set(tenant, counted + { create: 1, update: 0, delete: -1 }[action]);
    }
    restore(records, id, action === 'delete' ? undefined : record);
    this.#hold(record, action !== 'delete');
  }

  /** Puts a reservation into the calendars of its links, or removes it from them. */
  #hold({ id, hops, start, end, bandwidth, tenant }: ReservationRecord, isHeld: boolean): void {
    for (const { link, tags } of hops) {
      const { calendar } = this.#open(link);
      if (isHeld) calendar?.put(id, { start, end, bandwidth, tags, tenant });
      else calendar?.remove(id);
    }
  }

  #open(link: string): OpenLink {
    const open = this.#links.get(link);
    if (!open) throw new RangeError(`link ${link} is not open`);
    return open;
  }
}

function restore<Value>(map: Map<string, Value>, key: string, value: Value | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
