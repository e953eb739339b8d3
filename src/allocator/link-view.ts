import type { LinkCalendar } from './calendar.ts';
import type { Decision, LinkView, Operation } from './operations.ts';
import {
  type IdempotencyKey,
  type IdempotencyRecord,
  type LinkReading,
  nameOfKey,
  type ReservationName,
  type ReservationRecord,
  textOfName,
  type WrittenChange,
} from './store.ts';

/** The rows that operations need. */
export interface ReadAhead {
  reservation(id: string): ReservationRecord | undefined;
  records: Map<string, ReservationRecord>;
  /** How many live reservations each tenant has that an operation counts. */
  live: Map<string, number>;
  keys: Map<string, IdempotencyRecord>;
  /** The ids of the reservations that have the names which operations give, by `textOfName`. */
  names: Map<string, string>;
}

/** A link, and the operations that are decided on it. */
interface LinkPart {
  link: LinkReading;
  operations: readonly Operation<unknown>[];
}

/**
 * Reads what operations need beside the calendars.
 *
 * @param parts of one transaction, one at least
 * @param taken what their idempotency keys stand for
 */
export async function readAhead(
  parts: readonly LinkPart[],
  { at, taken }: { at: number; taken: readonly IdempotencyRecord[] },
): Promise<ReadAhead> {
  const operations = parts.flatMap((part) => part.operations);
  const counted = [...new Set(operations.flatMap(({ counts }) => counts ?? []))];
  const named = operations.flatMap(({ named: name }) => name ?? []);
  // Counts and names are of all links, whichever is asked. All are locked at once, so that their order is the same for all.
  const any = parts[0]?.link;
  const live = counted.length > 0 ? await any?.countLive(counted, at) : undefined;
  const names = named.length > 0 ? await any?.findNames(named, at) : undefined;
  const records = new Map<string, ReservationRecord>();
  for (const part of parts) {
    const ids = new Set([
      ...part.operations.flatMap(({ about }) => about ?? []),
      ...taken.flatMap(({ reservations }) => reservations),
    ]);
    const found = ids.size > 0 ? await part.link.read([...ids]) : [];
    for (const record of found) records.set(record.id, record);
  }
  return {
    records,
    live: live ?? new Map(),
    names: names ?? new Map(),
    keys: new Map(taken.map((record) => [nameOfKey(record), record])),
    reservation: (id) => records.get(id),
  };
}

/** The same rows once more, for another way to decide. */
export function copyOf({ records, live, names, keys }: ReadAhead): ReadAhead {
  const copied = new Map(records);
  return {
    records: copied,
    live: new Map(live),
    names: new Map(names),
    keys: new Map(keys),
    reservation: (id) => copied.get(id),
  };
}

/** A link within a transaction: each operation sees the changes of those before it. */
export class GroupView implements LinkView {
  readonly now: number;
  readonly #calendar: LinkCalendar | undefined;
  readonly #known: ReadAhead;
  #version: number;
  /** What takes back each change of the calendar, in their order. */
  readonly #inverses: (() => void)[] = [];

  constructor(now: number, version: number, calendar: LinkCalendar | undefined, known: ReadAhead) {
    this.now = now;
    this.#version = version;
    this.#calendar = calendar;
    this.#known = known;
  }

  get version(): number {
    return this.#version;
  }

  get calendar(): LinkCalendar {
    if (!this.#calendar) throw new RangeError('the operation needs no calendar');
    return this.#calendar;
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

  decide(operation: Operation<unknown>): Decision<unknown> {
    const decision = operation.decide(this);
    if (decision.change) this.#apply(decision.change);
    return decision;
  }

  /** Takes the changes back, the last one first, so that the calendar is as it was. The view is of no use after it. */
  undo(): void {
    for (const inverse of this.#inverses.reverse()) inverse();
  }

  #apply({ action, record, key }: WrittenChange): void {
    this.#version += 1;
    const { live, names, records } = this.#known;
    const before = records.get(record.id);
    this.#inverses.push(() => {
      if (before) this.#calendar?.put(record.id, before);
      else this.#calendar?.remove(record.id);
    });
    const { experiment, name } = record;
    if (name !== undefined && action !== 'update') {
      const text = textOfName({ experiment, name });
      if (action === 'create') names.set(text, record.id);
      else if (names.get(text) === record.id) names.delete(text);
    }
    const counted = live.get(record.tenant);
    if (counted !== undefined && record.end > this.now) {
      live.set(record.tenant, counted + { create: 1, update: 0, delete: -1 }[action]);
    }
    if (action === 'delete') {
      records.delete(record.id);
      this.#calendar?.remove(record.id);
    } else {
      records.set(record.id, record);
      this.#calendar?.put(record.id, record);
    }
    if (key) this.#known.keys.set(nameOfKey(key), key);
  }
}
