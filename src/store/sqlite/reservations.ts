import { TAG_PLACES } from '../../allocator/calendar.ts';
import type {
  LinkTransaction,
  ReservationQuery,
  ReservationRecord,
  ReservationStore,
} from '../../allocator/store.ts';
import { recall, remember } from './booking-keys.ts';
import type { SqliteDatabase, SqliteTransaction, SqlRow, SqlValue } from './database.ts';

const COLUMNS = `id, link, reversed, start_ms, end_ms, bandwidth,
  site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag, experiment, created_by, created_ms`;

/** Reservations on SQLite. */
export function sqliteReservations(database: SqliteDatabase): ReservationStore {
  return {
    changeLink: (link, work) =>
      database.transaction(async (sql) => {
        sql.run('INSERT INTO link (id, version) VALUES ($1, 0) ON CONFLICT (id) DO NOTHING', link);
        const row = sql.first('SELECT version FROM link WHERE id = $1', link);
        return work(linkTransaction(sql, link, Number(row?.['version'])));
      }),
    recall: (key, now) => database.transaction(async (sql) => recall(sql, key, now)),
    find: (id) => database.transaction(async (sql) => read(sql, id)),
    list: (query) => database.transaction(async (sql) => list(sql, query)),
  };
}

function linkTransaction(sql: SqliteTransaction, link: string, lockedVersion: number): LinkTransaction {
  let version = lockedVersion;
  const nextVersion = (): number => {
    version += 1;
    sql.run('UPDATE link SET version = $2 WHERE id = $1', link, version);
    return version;
  };
  return {
    version: lockedVersion,

    async endingAfter(from) {
      return sql
        .all(
          `SELECT ${COLUMNS} FROM reservation WHERE link = $1 AND end_ms > $2 AND cancelled_ms IS NULL`,
          link,
          from,
        )
        .map(toRecord);
    },

    async changesSince(since) {
      return sql
        .all(
          `SELECT ${COLUMNS}, cancelled_ms FROM reservation WHERE link = $1 AND version > $2 ORDER BY version`,
          link,
          since,
        )
        .map((row) =>
          row['cancelled_ms'] === null
            ? { id: String(row['id']), cancelled: false, record: toRecord(row) }
            : { id: String(row['id']), cancelled: true },
        );
    },

    async read(id) {
      const record = read(sql, id);
      return record?.link === link ? record : undefined;
    },

    async put(record) {
      const { start, end, tags } = record;
      sql.run('DELETE FROM tag_hold WHERE reservation = $1', record.id);
      sql.run(
        `INSERT INTO reservation (${COLUMNS}, version)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
         ON CONFLICT (id) DO UPDATE SET version = $14, start_ms = $4, end_ms = $5, bandwidth = $6,
           site1_s_tag = $7, site1_c_tag = $8, site2_s_tag = $9, site2_c_tag = $10`,
        ...toColumns(record),
        nextVersion(),
      );
      for (const place of TAG_PLACES) {
        sql.run(
          'INSERT INTO tag_hold (link, place, tag, start_ms, end_ms, reservation) VALUES ($1, $2, $3, $4, $5, $6)',
          link,
          place,
          tags[place],
          start,
          end,
          record.id,
        );
      }
    },

    async cancel(id, now) {
      sql.run('DELETE FROM tag_hold WHERE reservation = $1', id);
      sql.run('UPDATE reservation SET cancelled_ms = $2, version = $3 WHERE id = $1', id, now, nextVersion());
    },

    recall: async (key, now) => recall(sql, key, now),
    remember: async (booking, now) => remember(sql, booking, now),
  };
}

function read(sql: SqliteTransaction, id: string): ReservationRecord | undefined {
  const row = sql.first(`SELECT ${COLUMNS} FROM reservation WHERE id = $1 AND cancelled_ms IS NULL`, id);
  return row && toRecord(row);
}

function list(sql: SqliteTransaction, query: ReservationQuery): ReservationRecord[] {
  const { experiment, state = 'any', now, after = '', limit } = query;
  return sql
    .all(
      `SELECT ${COLUMNS} FROM reservation
       WHERE experiment = $1 AND cancelled_ms IS NULL AND id > $2
         AND CASE $3
           WHEN 'scheduled' THEN start_ms > $4
           WHEN 'active' THEN start_ms <= $4 AND end_ms > $4
           WHEN 'ended' THEN end_ms <= $4
           ELSE 1 END
       ORDER BY id LIMIT $5`,
      experiment,
      after,
      state,
      now,
      limit,
    )
    .map(toRecord);
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
