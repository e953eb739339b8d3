import type { HeldReservation, ReservationStore } from '../../../src/allocator/store.ts';
import { POSTGRES_LOCKING } from '../../../src/store/postgres/database.ts';
import { reservationStore } from '../../../src/store/reservations.ts';
import { READ_LINK, type SqlDatabase, type SqlRow, type SqlTransaction } from '../../../src/store/sql.ts';

/**
 * A store that makes the mistake: it locks the link in the statement that reads its reservations. At READ COMMITTED the
 * locked row is read again after the wait, the reservations are as they were before it.
 */
export function locksWhereItReads(database: SqlDatabase): ReservationStore {
  const real = reservationStore(database, POSTGRES_LOCKING);
  return {
    ...real,
    changeLinks: (locks, work) =>
      database.transaction(async (sql) => {
        const rows = await sql.all(
          `SELECT hop.* FROM link
           LEFT JOIN hop ON hop.link = link.id AND hop.deleted_ms IS NULL
           WHERE link.id = $link FOR UPDATE OF link`,
          // The race is on one link.
          { link: locks.links[0] ?? '' },
        );
        const records = rows.flatMap((row) => (row['reservation'] === null ? [] : [recordIn(row)]));
        const inner = reservationStore(within(database, sql), {
          ...POSTGRES_LOCKING,
          lock: (statements, id) => statements.first(READ_LINK, { link: id }),
          hasOneWriter: true,
        });
        return inner.changeLinks(locks, (transaction) =>
          work({ ...transaction, overlapping: async () => records }),
        );
      }),
  };
}

/** A transaction that is under way, as a database. */
function within(database: SqlDatabase, sql: SqlTransaction): SqlDatabase {
  const { reader } = database;
  return {
    ...sql,
    reader,
    snapshot: (work) => database.snapshot(work),
    transaction: (work) => work(sql),
  };
}

function recordIn(row: SqlRow): HeldReservation {
  return {
    id: String(row['reservation']),
    start: Number(row['start_ms']),
    end: Number(row['end_ms']),
    bandwidth: Number(row['bandwidth']),
    tags: {
      site1_s_tag: Number(row['site1_s_tag']),
      site1_c_tag: Number(row['site1_c_tag']),
      site2_s_tag: Number(row['site2_s_tag']),
      site2_c_tag: Number(row['site2_c_tag']),
    },
    tenant: String(row['tenant']),
  };
}
