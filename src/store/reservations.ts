import { TAG_PLACES } from '../allocator/demand.ts';
import type {
  BookingKey,
  Decided,
  HeldReservation,
  LinkTransaction,
  ReservationQuery,
  ReservationRecord,
  ReservationStore,
} from '../allocator/store.ts';
import { AUDIT, auditRows } from './audit.ts';
import { keep, recall } from './booking-keys.ts';
import { forget } from './forgetting.ts';
import type { SqlDatabase, SqlInsert, SqlReader, SqlRow, SqlStatements, SqlValue } from './sql.ts';

/** What a reservation holds of its link. */
const HELD = 'id, start_ms, end_ms, bandwidth, site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag';
const COLUMNS = `${HELD}, link, reversed, experiment, created_by, created_ms`;

/** A row stands for a reservation's present state, whatever became of it. */
const RESERVATION: SqlInsert = {
  into: 'reservation',
  columns: {
    id: 'text',
    link: 'text',
    version: 'bigint',
    reversed: 'integer',
    start_ms: 'bigint',
    end_ms: 'bigint',
    bandwidth: 'bigint',
    site1_s_tag: 'integer',
    site1_c_tag: 'integer',
    site2_s_tag: 'integer',
    site2_c_tag: 'integer',
    experiment: 'text',
    created_by: 'text',
    created_ms: 'bigint',
    cancelled_ms: 'bigint',
  },
  onConflict: `ON CONFLICT (id) DO UPDATE SET version = excluded.version, start_ms = excluded.start_ms,
    end_ms = excluded.end_ms, bandwidth = excluded.bandwidth, site1_s_tag = excluded.site1_s_tag,
    site1_c_tag = excluded.site1_c_tag, site2_s_tag = excluded.site2_s_tag, site2_c_tag = excluded.site2_c_tag,
    cancelled_ms = excluded.cancelled_ms`,
};

/** The four tags of a reservation, each with its period: what the engine's own guard looks at. */
const HOLD: SqlInsert = {
  into: 'tag_hold',
  columns: {
    link: 'text',
    place: 'text',
    tag: 'integer',
    start_ms: 'bigint',
    end_ms: 'bigint',
    reservation: 'text',
  },
};

/** What the engines do differently about reservations. */
export interface LinkLocking {
  /** Locks a link's row, which is made where there is none, until the transaction ends; it reads nothing else. */
  lock(sql: SqlStatements, link: string): Promise<void>;
  /** Locks keys until the transaction ends. They come sorted, so that no two transactions wait for each other. */
  lockKeys(sql: SqlStatements, keys: readonly string[]): Promise<void>;
  /** Deletes booking keys that expired by `$1`, the oldest first and `$2` at most. */
  letKeysGo: string;
}

/** Reservations in a database. */
export function reservationStore(database: SqlDatabase, locking: LinkLocking): ReservationStore {
  const { reader } = database;
  return {
    changeLink: (link, work) =>
      database.transaction(async (sql) => {
        await locking.lock(sql, link);
        const row = await sql.first('SELECT version, forgotten FROM link WHERE id = $1', link);
        const [version, forgotten] = [Number(row?.['version']), Number(row?.['forgotten'])];
        return work(linkTransaction(sql, { link, version, forgotten, locking }));
      }),
    loadLink: (link, from, take) =>
      database.snapshot(async (sql) => {
        const row = await sql.first('SELECT version FROM link WHERE id = $1', link);
        const held = sql.portions(
          `SELECT ${HELD} FROM reservation
           WHERE link = $1 AND end_ms > $2 AND cancelled_ms IS NULL ORDER BY end_ms, start_ms`,
          link,
          from,
        );
        for await (const portion of held) take(portion.map(toHeld));
        return Number(row?.['version'] ?? 0);
      }),
    recall: (key, now) => recall(reader, key, now),
    find: (id) => read(reader, id),
    list: (query) => list(reader, query),
    forget: (before) => forget(database, locking, before),
  };
}

interface LockedLink {
  link: string;
  version: number;
  forgotten: number;
  locking: LinkLocking;
}

function linkTransaction(
  sql: SqlStatements,
  { link, version, forgotten, locking }: LockedLink,
): LinkTransaction {
  return {
    version,
    forgotten,

    async endingBetween(after, until) {
      const rows = await sql.all(
        `SELECT ${HELD} FROM reservation
         WHERE link = $1 AND end_ms > $2 AND end_ms <= $3 AND cancelled_ms IS NULL`,
        link,
        after,
        until,
      );
      return rows.map(toHeld);
    },

    async changesSince(since) {
      const rows = await sql.all(
        `SELECT ${HELD}, cancelled_ms FROM reservation WHERE link = $1 AND version > $2 ORDER BY version`,
        link,
        since,
      );
      return rows.map((row) => {
        const { id, ...holding } = toHeld(row);
        return row['cancelled_ms'] === null ? { id, cancelled: false, holding } : { id, cancelled: true };
      });
    },

    async read(ids) {
      const found = await Promise.all(ids.map((id) => read(sql, id)));
      return found.filter((record): record is ReservationRecord => record?.link === link);
    },

    async claim(keys, now) {
      await locking.lockKeys(sql, keys.map(lockNameOf).toSorted());
      const found = await Promise.all(keys.map((key) => recall(sql, key, now)));
      return found.flatMap((booking) => booking ?? []);
    },

    write: (decided, now) => write(sql, { link, version, forgotten, locking }, decided, now),
  };
}

/**
 * Of a reservation that changed twice the last state counts: rows and holds are what is true in the end, so that
 * nothing stands in the way of what takes its place.
 */
async function write(
  sql: SqlStatements,
  { link, version, locking }: LockedLink,
  { changes, audit }: Decided,
  now: number,
): Promise<void> {
  const left = new Map<string, { values: SqlValue[]; held: SqlValue[][] }>();
  const before = new Set<string>();
  for (const [index, { action, record }] of changes.entries()) {
    const cancelled = action === 'cancel' ? now : null;
    const { id, start, end, tags } = record;
    if (action !== 'book') before.add(id);
    left.set(id, {
      values: toColumns(record, version + index + 1, cancelled),
      held: cancelled === null ? TAG_PLACES.map((place) => [link, place, tags[place], start, end, id]) : [],
    });
  }
  const keys = changes.flatMap(({ key }) => key ?? []);
  const rows = [...left.values()];
  // One after the other on one connection: none has to wait for the one before it to be answered.
  const written = [
    ...[...before].map((id) => sql.run('DELETE FROM tag_hold WHERE reservation = $1', id)),
    ...(rows.length > 0
      ? [
          sql.insert(
            RESERVATION,
            rows.map(({ values }) => values),
          ),
        ]
      : []),
    ...(rows.some(({ held }) => held.length > 0)
      ? [
          sql.insert(
            HOLD,
            rows.flatMap(({ held }) => held),
          ),
        ]
      : []),
    ...(audit.length > 0 ? [sql.insert(AUDIT, auditRows(link, version, audit))] : []),
    ...(keys.length > 0 ? keep(sql, keys, { now, letGo: locking.letKeysGo }) : []),
    ...(changes.length > 0
      ? [sql.run('UPDATE link SET version = $2 WHERE id = $1', link, version + changes.length)]
      : []),
  ];
  await Promise.all(written);
}

function lockNameOf({ createdBy, experiment, key }: BookingKey): string {
  return JSON.stringify([createdBy, experiment, key]);
}

async function read(sql: SqlReader, id: string): Promise<ReservationRecord | undefined> {
  const row = await sql.first(
    `SELECT ${COLUMNS} FROM reservation WHERE id = $1 AND cancelled_ms IS NULL`,
    id,
  );
  return row && toRecord(row);
}

async function list(sql: SqlReader, query: ReservationQuery): Promise<ReservationRecord[]> {
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

function toColumns(record: ReservationRecord, version: number, cancelled: number | null): SqlValue[] {
  const { tags } = record;
  return [
    record.id,
    record.link,
    version,
    record.reversed ? 1 : 0,
    record.start,
    record.end,
    record.bandwidth,
    ...TAG_PLACES.map((place) => tags[place]),
    record.experiment,
    record.createdBy,
    record.createdAt,
    cancelled,
  ];
}

function toHeld(row: SqlRow): HeldReservation {
  return {
    id: String(row['id']),
    start: Number(row['start_ms']),
    end: Number(row['end_ms']),
    bandwidth: Number(row['bandwidth']),
    tags: {
      site1_s_tag: Number(row['site1_s_tag']),
      site1_c_tag: Number(row['site1_c_tag']),
      site2_s_tag: Number(row['site2_s_tag']),
      site2_c_tag: Number(row['site2_c_tag']),
    },
  };
}

function toRecord(row: SqlRow): ReservationRecord {
  return {
    ...toHeld(row),
    link: String(row['link']),
    reversed: row['reversed'] === 1,
    experiment: String(row['experiment']),
    createdBy: String(row['created_by']),
    createdAt: Number(row['created_ms']),
  };
}
