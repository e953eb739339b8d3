import { TAG_PLACES } from '../allocator/calendar.ts';
import type {
  LinkTransaction,
  ReservationQuery,
  ReservationRecord,
  ReservationStore,
} from '../allocator/store.ts';
import { recall, remember } from './booking-keys.ts';
import type { SqlDatabase, SqlRow, SqlStatements, SqlValue } from './sql.ts';

const COLUMNS = `id, link, reversed, start_ms, end_ms, bandwidth,
  site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag, experiment, created_by, created_ms`;

/** The four tags of a reservation, in the order of {@link TAG_PLACES}. */
const HOLD = `INSERT INTO tag_hold (link, place, tag, start_ms, end_ms, reservation) VALUES
  ${TAG_PLACES.map((place, index) => `($1, '${place}', $${index + 5}, $2, $3, $4)`).join(', ')}`;

/** What the engines do differently about reservations. */
export interface LinkLocking {
  /** Locks a link's row, which is made where there is none, until the transaction ends; it reads nothing else. */
  lock(sql: SqlStatements, link: string): Promise<void>;
  /** Deletes booking keys that expired by `$1`, the oldest first and `$2` at most. */
  letKeysGo: string;
}

/** Reservations in a database. */
export function reservationStore(database: SqlDatabase, locking: LinkLocking): ReservationStore {
  return {
    changeLink: (link, work) =>
      database.transaction(async (sql) => {
        await locking.lock(sql, link);
        const row = await sql.first('SELECT version FROM link WHERE id = $1', link);
        return work(linkTransaction(sql, { link, lockedVersion: Number(row?.['version']), locking }));
      }),
    recall: (key, now) => recall(database, key, now),
    find: (id) => read(database, id),
    list: (query) => list(database, query),
  };
}

interface LockedLink {
  link: string;
  lockedVersion: number;
  locking: LinkLocking;
}

function linkTransaction(sql: SqlStatements, { link, lockedVersion, locking }: LockedLink): LinkTransaction {
  let version = lockedVersion;
  const nextVersion = async (): Promise<number> => {
    version += 1;
    await sql.run('UPDATE link SET version = $2 WHERE id = $1', link, version);
    return version;
  };
  return {
    version: lockedVersion,

    async endingAfter(from) {
      const rows = await sql.all(
        `SELECT ${COLUMNS} FROM reservation WHERE link = $1 AND end_ms > $2 AND cancelled_ms IS NULL`,
        link,
        from,
      );
      return rows.map(toRecord);
    },

    async changesSince(since) {
      const rows = await sql.all(
        `SELECT ${COLUMNS}, cancelled_ms FROM reservation WHERE link = $1 AND version > $2 ORDER BY version`,
        link,
        since,
      );
      return rows.map((row) =>
        row['cancelled_ms'] === null
          ? { id: String(row['id']), cancelled: false, record: toRecord(row) }
          : { id: String(row['id']), cancelled: true },
      );
    },

    async read(id) {
      const record = await read(sql, id);
      return record?.link === link ? record : undefined;
    },

    async put(record) {
      const { start, end, tags } = record;
      await sql.run('DELETE FROM tag_hold WHERE reservation = $1', record.id);
      await sql.run(
        `INSERT INTO reservation (${COLUMNS}, version)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
         ON CONFLICT (id) DO UPDATE SET version = $14, start_ms = $4, end_ms = $5, bandwidth = $6,
           site1_s_tag = $7, site1_c_tag = $8, site2_s_tag = $9, site2_c_tag = $10`,
        ...toColumns(record),
        await nextVersion(),
      );
      await sql.run(HOLD, link, start, end, record.id, ...TAG_PLACES.map((place) => tags[place]));
    },

    async cancel(id, now) {
      await sql.run('DELETE FROM tag_hold WHERE reservation = $1', id);
      const next = await nextVersion();
      await sql.run('UPDATE reservation SET cancelled_ms = $2, version = $3 WHERE id = $1', id, now, next);
    },

    recall: (key, now) => recall(sql, key, now),
    remember: (booking, now) => remember(sql, booking, { now, letGo: locking.letKeysGo }),
  };
}

async function read(sql: SqlStatements, id: string): Promise<ReservationRecord | undefined> {
  const row = await sql.first(
    `SELECT ${COLUMNS} FROM reservation WHERE id = $1 AND cancelled_ms IS NULL`,
    id,
  );
  return row && toRecord(row);
}

async function list(sql: SqlStatements, query: ReservationQuery): Promise<ReservationRecord[]> {
  const { experiment, state = 'any', now, after = '', limit } = query;
  const rows = await sql.all(
    `SELECT ${COLUMNS} FROM reservation
     WHERE experiment = $1 AND cancelled_ms IS NULL AND id > $2
       AND CASE $3
         WHEN 'scheduled' THEN start_ms > $4
         WHEN 'active' THEN start_ms <= $4 AND end_ms > $4
         WHEN 'ended' THEN end_ms <= $4
         ELSE TRUE END
     ORDER BY id LIMIT $5`,
    experiment,
    after,
    state,
    now,
    limit,
  );
  return rows.map(toRecord);
}

function toColumns(record: ReservationRecord): SqlValue[] {
  const { tags } = record;
  return [
    record.id,
    record.link,
    record.reversed ? 1 : 0,
    record.start,
    record.end,
    record.bandwidth,
    ...TAG_PLACES.map((place) => tags[place]),
    record.experiment,
    record.createdBy,
    record.createdAt,
  ];
}

function toRecord(row: SqlRow): ReservationRecord {
  return {
    id: String(row['id']),
    link: String(row['link']),
    reversed: row['reversed'] === 1,
    start: Number(row['start_ms']),
    end: Number(row['end_ms']),
    bandwidth: Number(row['bandwidth']),
    tags: {
      site1_s_tag: Number(row['site1_s_tag']),
      site1_c_tag: Number(row['site1_c_tag']),
      site2_s_tag: Number(row['site2_s_tag']),
      site2_c_tag: Number(row['site2_c_tag']),
    },
    experiment: String(row['experiment']),
    createdBy: String(row['created_by']),
    createdAt: Number(row['created_ms']),
  };
}
