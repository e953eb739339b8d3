import { setImmediate } from 'node:timers/promises';
import type {
  HeldReservation,
  ReservationStore,
  StoreTransaction,
  WrittenChange,
} from '../../../src/allocator/store.ts';
import { POSTGRES_LOCKING } from '../../../src/store/postgres/database.ts';
import { reservationStore } from '../../../src/store/reservations.ts';
import { READ_LINK, type SqlDatabase, type SqlRow } from '../../../src/store/sql.ts';

/** A store that makes a mistake, from a store that makes none. */
export type Mistaken = (real: ReservationStore) => ReservationStore;

/** The real one, but for what is asked within a transaction. */
function within(changed: (transaction: StoreTransaction) => Partial<StoreTransaction>): Mistaken {
  return (real) => ({
    ...real,
    changeLinks: (locks, work) =>
      real.changeLinks(locks, (transaction) => work({ ...transaction, ...changed(transaction) })),
  });
}

/** Transactions see other rows of a link than there are. @param sooner by how much earlier what they read begins */
const seeing = (seen: (rows: HeldReservation[], start: number) => HeldReservation[], sooner = 0): Mistaken =>
  within((transaction) => ({
    overlapping: async (link, { start, end }) =>
      seen(await transaction.overlapping(link, { start: start - sooner, end }), start),
  }));

/** What is written of a change at first, and in a transaction of its own after that. */
type Parts = readonly (WrittenChange | undefined)[];

/** Writes a part of each change in a transaction of its own. */
function writingApart(partsOf: (change: WrittenChange) => Parts): Mistaken {
  return (real) => ({
    ...real,
    async changeLinks(locks, work) {
      const later: (() => Promise<void>)[] = [];
      const answer = await real.changeLinks(locks, (transaction) =>
        work({
          ...transaction,
          async write({ changes }, now) {
            const [first = [], rest = []] = [0, 1].map((part) =>
              changes.flatMap((change) => partsOf(change)[part] ?? []),
            );
            const writeRest = (own: StoreTransaction) => own.write({ changes: rest, audit: [] }, now);
            if (rest.length > 0) later.push(() => real.changeLinks(locks, writeRest));
            if (first.length > 0) await transaction.write({ changes: first, audit: [] }, now);
          },
        }),
      );
      // Others decide in the meantime.
      await setImmediate();
      for (const write of later) await write();
      return answer;
    },
  });
}

/** Mistakes of other systems (allocator/README.md, "Mistakes of other systems, each a test here"), and ones like them. */
export const MISTAKES = {
  'check and insert in two transactions': writingApart((change) => [undefined, change]),
  'rows read before the lock': (real) => ({
    ...real,
    async changeLinks(locks, work) {
      const EVER = { start: 0, end: Number.MAX_SAFE_INTEGER };
      const early = await Promise.all(
        locks.links.map(async (link) => [link, await real.overlapping(link, EVER)] as const),
      );
      // Others read in the meantime.
      await setImmediate();
      const rowsOf = new Map(early);
      return real.changeLinks(locks, (transaction) =>
        work({
          ...transaction,
          overlapping: async (link, period) =>
            (rowsOf.get(link) ?? []).filter(({ start, end }) => start < period.end && end > period.start),
        }),
      );
    },
  }),
  'rows of what has begun not read': seeing((rows, begun) => rows.filter(({ start }) => start >= begun)),
  'an update that skips the check': within(({ find, overlapping }) => {
    let isUpdate = false;
    return {
      find(id) {
        isUpdate = true;
        return find(id);
      },
      overlapping: async (link, period) => (isUpdate ? [] : overlapping(link, period)),
    };
  }),
  'an update that counts its own use': seeing((rows) => rows.map((row) => ({ ...row, id: `${row.id} too` }))),
  'closed intervals': seeing((rows) => rows.map((row) => ({ ...row, end: row.end + 1 })), 1),
  'equal deltas counted once': seeing((rows) =>
    rows.map((row, at) => {
      const isSame = ({ start, end }: HeldReservation): boolean => start === row.start && end === row.end;
      return { ...row, bandwidth: rows.findIndex(isSame) < at ? 0 : row.bandwidth };
    }),
  ),
  'key kept in another transaction': writingApart(({ key, ...change }) => [
    change,
    key && { ...change, action: 'update', key },
  ]),
  'the hops of a route in transactions of their own': writingApart((change) => {
    const { hops, ...record } = change.record;
    if (change.action !== 'create' || hops.length === 1) return [change];
    return [
      { ...change, record: { ...record, hops: [hops[0]] } },
      { ...change, action: 'update' },
    ];
  }),
  'the failing one of a group answered as success': (real) => ({
    ...real,
    async changeLinks<Answer>(...[locks, work]: Parameters<typeof real.changeLinks<Answer>>) {
      const decided: Answer[] = [];
      const changed = real.changeLinks(locks, async (transaction) => {
        const answer = await work(transaction);
        decided.push(answer);
        return answer;
      });
      return changed.catch((error: unknown) => {
        for (const answer of decided) return answer;
        throw error;
      });
    },
  }),
} satisfies Record<string, Mistaken>;

/**
 * A store on PostgreSQL that locks the link in the statement that reads its reservations. At READ COMMITTED the
 * locked row is read again after the wait, the reservations are as they were before it.
 */
export function locksWhereItReads(database: SqlDatabase): ReservationStore {
  return {
    ...reservationStore(database, POSTGRES_LOCKING),
    changeLinks: (locks, work) =>
      database.transaction(async (sql) => {
        const rows = await sql.all<SqlRow>(
          `SELECT hop.* FROM link
           LEFT JOIN hop ON hop.link = link.id AND hop.deleted_ms IS NULL
           WHERE link.id = $link FOR UPDATE OF link`,
          // The race is on one link.
          { link: locks.links[0] ?? '' },
        );
        const held = rows.flatMap((row) => (row['reservation'] === null ? [] : [heldIn(row)]));
        const underWay: SqlDatabase = { ...database, ...sql, transaction: (work) => work(sql) };
        const inner = reservationStore(underWay, {
          ...POSTGRES_LOCKING,
          lock: (statements, id) => statements.first(READ_LINK, { link: id }),
          hasOneWriter: true,
        });
        return inner.changeLinks(locks, (transaction) =>
          work({ ...transaction, overlapping: async () => held }),
        );
      }),
  };
}

function heldIn(row: SqlRow): HeldReservation {
  const numberIn = (column: string): number => Number(row[column]);
  return {
    id: String(row['reservation']),
    start: numberIn('start_ms'),
    end: numberIn('end_ms'),
    bandwidth: numberIn('bandwidth'),
    tags: {
      site1_s_tag: numberIn('site1_s_tag'),
      site1_c_tag: numberIn('site1_c_tag'),
      site2_s_tag: numberIn('site2_s_tag'),
      site2_c_tag: numberIn('site2_c_tag'),
    },
    tenant: String(row['tenant']),
  };
}
