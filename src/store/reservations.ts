import { TAG_PLACES } from '../allocator/demand.ts';
import {
  type Decided,
  EXPIRED_KEYS_AT_ONCE,
  type HeldReservation,
  type LinkReading,
  type LinkTransaction,
  nameOfKey,
  notBegun,
  type ReservationChange,
  type ReservationQuery,
  type ReservationRecord,
  type ReservationStore,
  StoreUnavailableError,
  textOfName,
} from '../allocator/store.ts';
import { RESERVATION_TEXTS } from '../contract/reservation-texts.ts';
import { auditWrites } from './audit.ts';
import { deleteIfExpired, findKey, IDEMPOTENCY_KEY, keyRow } from './idempotency-keys.ts';
import { deleteOldRows } from './old-rows.ts';
import {
  type Locking,
  MAKE_LINK,
  READ_LINK,
  type SqlDatabase,
  type SqlInsert,
  type SqlReader,
  type SqlRow,
  type SqlTransaction,
  type SqlValue,
  type SqlValues,
  type SqlWrite,
} from './sql.ts';

/** What a reservation holds of its link, in the order in which {@link heldOf} reads it. */
const HELD_COLUMNS = ['id', 'start_ms', 'end_ms', 'bandwidth', ...TAG_PLACES, 'tenant'] as const;
const HELD = HELD_COLUMNS.join(', ');
const COLUMNS = `${HELD}, experiment, link, reversed, created_by, created_ms, ${RESERVATION_TEXTS.join(', ')}`;

const TEXT_COLUMNS = Object.fromEntries(RESERVATION_TEXTS.map((text) => [text, 'text' as const]));

/** A row is a reservation as it is now; a deleted one keeps its row, with `deleted_ms`, until it is forgotten. */
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
    deleted_ms: 'bigint',
    tenant: 'text',
    ...TEXT_COLUMNS,
  },
  onConflict: `ON CONFLICT (id) DO UPDATE SET version = excluded.version, start_ms = excluded.start_ms,
    end_ms = excluded.end_ms, bandwidth = excluded.bandwidth, site1_s_tag = excluded.site1_s_tag,
    site1_c_tag = excluded.site1_c_tag, site2_s_tag = excluded.site2_s_tag, site2_c_tag = excluded.site2_c_tag,
    deleted_ms = excluded.deleted_ms,
    ${RESERVATION_TEXTS.map((text) => `${text} = excluded.${text}`).join(', ')}`,
};

/** The four tags of a reservation, each with its period: the rows that SQLite's guard checks. */
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

const SET_LINK_VERSION = 'UPDATE link SET version = $2 WHERE id = $1';

/** Reservations in a database. */
export function reservationStore(database: SqlDatabase, locking: Locking): ReservationStore {
  const { reader } = database;
  return {
    changeLink: (link, work, since) =>
      changeLinks(database, locking, { links: [link], since }, async ([transaction]) => {
        if (!transaction) throw new RangeError('no link was locked');
        return work(transaction);
      }),
    changeLinks: (links, work) => changeLinks(database, locking, { links: links.toSorted() }, work),
    readLinks: (work) =>
      database.snapshot((sql) =>
        work(async (link) => {
          const row = await sql.first(READ_LINK, link);
          // A link that nothing was ever booked on has no row.
          const [version, forgotten] = [Number(row?.['version'] ?? 0), Number(row?.['forgotten'] ?? 0)];
          return linkReading(sql, { link, version, history: sql.history, forgotten });
        }),
      ),
    loadLink: (link, from, take) =>
      database.snapshot(async (sql) => {
        const row = await sql.first('SELECT version FROM link WHERE id = $1', link);
        const held = sql.portions(
          `SELECT ${HELD} FROM reservation
           WHERE link = $1 AND end_ms > $2 AND deleted_ms IS NULL ORDER BY end_ms, start_ms`,
          link,
          from,
        );
        for await (const portion of held) take(portion.map(heldOf));
        return { version: Number(row?.['version'] ?? 0), history: sql.history };
      }),
    findKey: (key, now) => findKey(reader, key, now),
    find: (id) => read(reader, id),
    list: (query) => list(reader, query),
    // The index makes each insert slower: only servers that limit the number have it.
    prepareCounts: () =>
      database.transaction(async (sql) => {
        await locking.lockNames(sql, ['reservation_unended']);
        await sql.run(
          `CREATE INDEX IF NOT EXISTS reservation_unended ON reservation (tenant, end_ms)
           WHERE deleted_ms IS NULL`,
        );
      }),
    forget: (before) => deleteOldRows(database, locking, before),
  };
}

/** A link of a transaction has no row that could be locked. */
class NoRowError extends Error {
  override readonly name = 'NoRowError';
  readonly links: readonly string[];

  constructor(links: readonly string[]) {
    super(`no row for ${links.join(', ')}`);
    this.links = links;
  }
}

/**
 * Runs `work` on links that are locked.
 *
 * A row that is not there can't be locked. It is made beforehand: a transaction that made it while it held later ones would
 * lock them in another order than others do.
 *
 * @param links sorted
 * @param since a version of each, if its later changes are read together with the lock
 */
async function changeLinks<Answer>(
  database: SqlDatabase,
  locking: Locking,
  { links, since }: { links: readonly string[]; since?: number | undefined },
  work: (transactions: readonly LinkTransaction[]) => Promise<Answer>,
): Promise<Answer> {
  const attempt = (): Promise<Answer> =>
    database.transaction(async (sql) => {
      // One after the other in the database; nothing here waits in between.
      const [rows, changes] = await Promise.all([
        Promise.all(links.map((link) => locking.lock(sql, link))),
        // The engine starts it once the locks are granted, so it sees everything that was committed by then.
        since === undefined ? [] : Promise.all(links.map((link) => changesAfter(sql, link, since))),
      ]);
      const missing = links.filter((_, index) => rows[index] === undefined);
      if (missing.length > 0) throw new NoRowError(missing);
      // The last write of one link is not the last of the transaction.
      const own = links.length === 1 ? sql : { ...sql, finish: sql.write };
      return work(
        links.map((link, index): LinkTransaction => {
          const [version, forgotten] = [Number(rows[index]?.['version']), Number(rows[index]?.['forgotten'])];
          const { history } = sql;
          const transaction = linkTransaction(own, { link, version, history, forgotten, locking });
          const known = changes[index];
          if (!known) return transaction;
          return {
            ...transaction,
            changesSince: async (after) => (after === since ? known : transaction.changesSince(after)),
          };
        }),
      );
    });
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof NoRowError)) throw error;
    for (const link of error.links) {
      // Whether there is a row for a link changes nothing that anyone asked for.
      await database.run(MAKE_LINK, link).catch((failure: unknown) => {
        throw failure instanceof StoreUnavailableError ? notBegun(failure) : failure;
      });
    }
    return attempt();
  }
}

interface ReadLink extends Pick<LinkReading, 'version' | 'history' | 'forgotten'> {
  link: string;
}

interface LockedLink extends ReadLink {
  locking: Locking;
}

function linkReading(sql: SqlReader, { link, version, history, forgotten }: ReadLink): LinkReading {
  return {
    version,
    history,
    forgotten,

    async endingBetween(after, until) {
      const rows = await sql.all(
        `SELECT ${HELD} FROM reservation
         WHERE link = $1 AND end_ms > $2 AND end_ms <= $3 AND deleted_ms IS NULL`,
        link,
        after,
        until,
      );
      return rows.map(toHeld);
    },

    changesSince: (since) => changesAfter(sql, link, since),

    async read(ids) {
      const found = await Promise.all(ids.map((id) => read(sql, id)));
      return found.filter((record): record is ReservationRecord => record?.link === link);
    },

    async countLive(tenants, now) {
      const counted = tenants.map(async (tenant): Promise<[string, number]> => {
        const row = await sql.first(
          'SELECT count(*) AS live FROM reservation WHERE tenant = $1 AND deleted_ms IS NULL AND end_ms > $2',
          tenant,
          now,
        );
        return [tenant, Number(row?.['live'])];
      });
      return new Map(await Promise.all(counted));
    },

    async findNames(names, now) {
      const found = names.map(async (each): Promise<[string, string][]> => {
        const row = await sql.first(
          `SELECT id FROM reservation
           WHERE experiment = $1 AND name = $2 AND deleted_ms IS NULL AND end_ms > $3 LIMIT 1`,
          each.experiment,
          each.name,
          now,
        );
        return row ? [[textOfName(each), String(row['id'])]] : [];
      });
      return new Map((await Promise.all(found)).flat());
    },
  };
}

function linkTransaction(sql: SqlTransaction, locked: LockedLink): LinkTransaction {
  const { locking } = locked;
  const reading = linkReading(sql, locked);
  return {
    ...reading,

    async lockKeys(keys, now) {
      await locking.lockNames(sql, keys.map(nameOfKey).toSorted());
      const found = await Promise.all(keys.map((key) => findKey(sql, key, now)));
      return found.flatMap((record) => record ?? []);
    },

    async countLive(tenants, now) {
      // After the idempotency keys, and sorted, so that no two transactions wait for each other.
      await locking.lockNames(sql, tenants.map((each) => JSON.stringify(['live', each])).toSorted());
      return reading.countLive(tenants, now);
    },

    async findNames(names, now) {
      // After the counts.
      await locking.lockNames(sql, names.map(textOfName).toSorted());
      return reading.findNames(names, now);
    },

    write: (decided, now) => write(sql, locked, decided, now),
  };
}

/**
 * Writes what was decided. Of a reservation that changed twice, only the last state is written, so that the tags which
 * it no longer holds are free for the others.
 */
async function write(
  sql: SqlTransaction,
  { link, version, locking }: LockedLink,
  { changes, audit }: Decided,
  now: number,
): Promise<void> {
  const last = new Map<string, { values: SqlValue[]; held: SqlValue[][] }>();
  const known = new Set<string>();
  for (const [index, { action, record }] of changes.entries()) {
    const deletedAt = action === 'delete' ? now : null;
    const { id, start, end, tags } = record;
    if (action !== 'create') known.add(id);
    last.set(id, {
      values: toColumns(record, version + index + 1, deletedAt),
      held:
        deletedAt === null && locking.tagsApart
          ? TAG_PLACES.map((place) => [link, place, tags[place], start, end, id])
          : [],
    });
  }
  const keys = changes.flatMap(({ key }) => key ?? []);
  const rows = [...last.values()];
  const writes: SqlWrite[] = [
    { insert: RESERVATION, rows: rows.map(({ values }) => values) },
    { insert: HOLD, rows: rows.flatMap(({ held }) => held) },
    { insert: IDEMPOTENCY_KEY, rows: keys.map(keyRow) },
    ...(await auditWrites(sql, link, version, audit)),
    ...(changes.length > 0 ? [{ change: SET_LINK_VERSION, values: [link, version + changes.length] }] : []),
  ];
  // One change alone meets no tags of others that move too.
  const released = locking.tagsApart || changes.length > 1 ? [...known] : [];
  if (released.length + keys.length === 0) return sql.finish(...writes);
  await Promise.all([
    ...released.map((id) => sql.run(locking.releaseTags, id)),
    ...keys.map((key) => deleteIfExpired(sql, key, now)),
    sql.write(...writes),
    ...(keys.length > 0 ? [sql.run(locking.deleteExpiredKeys, now, EXPIRED_KEYS_AT_ONCE)] : []),
  ]);
}

async function changesAfter(sql: SqlReader, link: string, since: number): Promise<ReservationChange[]> {
  const rows = await sql.all(
    `SELECT ${HELD}, deleted_ms FROM reservation WHERE link = $1 AND version > $2 ORDER BY version`,
    link,
    since,
  );
  return rows.map((row) => {
    const { id, ...holding } = toHeld(row);
    return row['deleted_ms'] === null ? { id, deleted: false, holding } : { id, deleted: true };
  });
}

async function read(sql: SqlReader, id: string): Promise<ReservationRecord | undefined> {
  const row = await sql.first(`SELECT ${COLUMNS} FROM reservation WHERE id = $1 AND deleted_ms IS NULL`, id);
  return row && toRecord(row);
}

async function list(sql: SqlReader, query: ReservationQuery): Promise<ReservationRecord[]> {
  const { experiment, state = 'any', now, after = '', limit } = query;
  const rows = await sql.all(
    `SELECT ${COLUMNS} FROM reservation
     WHERE experiment = $1 AND deleted_ms IS NULL AND id > $2
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

function toColumns(record: ReservationRecord, version: number, deletedAt: number | null): SqlValue[] {
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
    deletedAt,
    record.tenant,
    ...RESERVATION_TEXTS.map((text) => record[text] ?? null),
  ];
}

function toHeld(row: SqlRow): HeldReservation {
  return heldOf(HELD_COLUMNS.map((column) => row[column]));
}

/** @param values those of {@link HELD_COLUMNS} */
function heldOf(values: SqlValues): HeldReservation {
  return {
    id: String(values[0]),
    start: Number(values[1]),
    end: Number(values[2]),
    bandwidth: Number(values[3]),
    tags: {
      site1_s_tag: Number(values[4]),
      site1_c_tag: Number(values[5]),
      site2_s_tag: Number(values[6]),
      site2_c_tag: Number(values[7]),
    },
    tenant: String(values[8]),
  };
}

function toRecord(row: SqlRow): ReservationRecord {
  return {
    ...toHeld(row),
    experiment: String(row['experiment']),
    link: String(row['link']),
    reversed: row['reversed'] === 1,
    createdBy: String(row['created_by']),
    createdAt: Number(row['created_ms']),
    ...Object.fromEntries(
      RESERVATION_TEXTS.flatMap((text) => (row[text] === null ? [] : [[text, String(row[text])]])),
    ),
  };
}
