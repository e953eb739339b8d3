import { TAG_PLACES } from '../allocator/demand.ts';
import {
  type Decided,
  EXPIRED_KEYS_AT_ONCE,
  type HeldReservation,
  type Hop,
  type LinkReading,
  type LinkVersion,
  nameOfKey,
  notBegun,
  type ReservationChange,
  type ReservationRecord,
  type ReservationStore,
  type StoreReading,
  type StoreTransaction,
  StoreUnavailableError,
  textOfName,
} from '../allocator/store.ts';
import { RESERVATION_TEXTS } from '../contract/reservation-texts.ts';
import { auditWrites } from './audit.ts';
import { deleteIfExpired, findKey, IDEMPOTENCY_KEY, keyRow } from './idempotency-keys.ts';
import { deleteOldRows } from './old-rows.ts';
import {
  changedRecords,
  listRecords,
  READ_AT_ONCE,
  readRecord,
  recordsEndingAfter,
} from './reservation-records.ts';
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

/** The versions of reservations that begin on a link and were not deleted. */
const VERSIONS = `SELECT version FROM hop
  WHERE link = $1 AND version >= $2 AND version < $3 AND position = 0 AND deleted_ms IS NULL`;

/** The columns of a reservation's share of a link, in the order in which {@link heldOf} reads it. */
const HELD_COLUMNS = ['reservation', 'start_ms', 'end_ms', 'bandwidth', ...TAG_PLACES, 'tenant'] as const;
const HELD = HELD_COLUMNS.join(', ');

/** Selects the shares of a link whose reservations end after an instant, in the order of their ends. */
const HOLDINGS = `SELECT ${HELD} FROM hop
  WHERE link = $1 AND end_ms > $2 AND deleted_ms IS NULL ORDER BY end_ms, start_ms`;

const TEXT_COLUMNS = Object.fromEntries(RESERVATION_TEXTS.map((text) => [text, 'text' as const]));

/** A row is a reservation as it is now; a deleted one keeps its row, with `deleted_ms`, until it is forgotten. */
const RESERVATION: SqlInsert = {
  into: 'reservation',
  columns: {
    id: 'text',
    site1: 'text',
    site2: 'text',
    start_ms: 'bigint',
    end_ms: 'bigint',
    bandwidth: 'bigint',
    experiment: 'text',
    tenant: 'text',
    created_by: 'text',
    created_ms: 'bigint',
    deleted_ms: 'bigint',
    ...TEXT_COLUMNS,
  },
  onConflict: `ON CONFLICT (id) DO UPDATE SET
    ${replaced('start_ms', 'end_ms', 'bandwidth', 'deleted_ms', ...RESERVATION_TEXTS)}`,
};

/** A reservation's share of one link. */
const HOP: SqlInsert = {
  into: 'hop',
  columns: {
    reservation: 'text',
    position: 'integer',
    link: 'text',
    version: 'bigint',
    start_ms: 'bigint',
    end_ms: 'bigint',
    bandwidth: 'bigint',
    site1_s_tag: 'integer',
    site1_c_tag: 'integer',
    site2_s_tag: 'integer',
    site2_c_tag: 'integer',
    tenant: 'text',
    deleted_ms: 'bigint',
  },
  onConflict: `ON CONFLICT (reservation, position) DO UPDATE SET
    ${replaced('version', 'start_ms', 'end_ms', 'bandwidth', ...TAG_PLACES, 'deleted_ms')}`,
};

function replaced(...columns: string[]): string {
  return columns.map((column) => `${column} = excluded.${column}`).join(', ');
}

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
  const told = new Set<() => void>();
  return {
    async changeLinks(links, work, since) {
      const answer = await changeLinks(database, locking, { links: links.toSorted(), since }, work);
      for (const tell of told) tell();
      return answer;
    },
    links: () => readVersions(reader),
    onCommit(tell) {
      told.add(tell);
      return () => told.delete(tell);
    },
    readLinks: (work) =>
      database.snapshot((sql) =>
        work({
          ...storeReading(sql),
          history: sql.history,
          links: () => readVersions(sql),
          changedSince: (link, since, of) => changedRecords(sql, { link, since, ...of }),
          endingAfter: (experiment, instant) => recordsEndingAfter(sql, experiment, instant),
          look: async (id) => linkReading(sql, id, (await sql.first(READ_LINK, id)) ?? NEVER_BOOKED),
        }),
      ),
    loadLink: (link, from, take) =>
      readLink(database, HOLDINGS, [link, from], (rows) => take(rows.map(heldOf))),
    readVersions: (link, range, take) =>
      readLink(database, VERSIONS, [link, ...range], (rows) =>
        take(rows.map(([version]) => Number(version))),
      ),
    findKey: (key, now) => findKey(reader, key, now),
    find: (id) => readRecord(reader, id),
    list: (query) =>
      query.limit > READ_AT_ONCE
        ? database.snapshot((sql) => listRecords(sql, query))
        : listRecords(reader, query),
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

/**
 * Reads rows of a link in portions, as of one version.
 *
 * @param values of the query; the first is the link
 */
function readLink(
  database: SqlDatabase,
  query: string,
  values: readonly [link: string, ...SqlValue[]],
  take: (portion: readonly SqlValues[]) => void,
): Promise<Pick<LinkReading, 'version' | 'history'>> {
  return database.snapshot(async (sql) => {
    const row = await sql.first('SELECT version FROM link WHERE id = $1', values[0]);
    for await (const portion of sql.portions(query, ...values)) take(portion);
    return { version: Number(row?.['version'] ?? 0), history: sql.history };
  });
}

async function readVersions(sql: SqlReader): Promise<LinkVersion[]> {
  const rows = await sql.all('SELECT id, version, forgotten FROM link ORDER BY id');
  return rows.map((row) => ({
    id: String(row['id']),
    version: Number(row['version']),
    forgotten: Number(row['forgotten']),
  }));
}

/** Stands for the row of {@link READ_LINK} where a link has no row. */
const NEVER_BOOKED: SqlRow = { version: 0, forgotten: 0 };

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
  work: (transaction: StoreTransaction) => Promise<Answer>,
): Promise<Answer> {
  const attempt = (): Promise<Answer> =>
    database.transaction(async (sql) => {
      // One after the other in the database; nothing here waits in between.
      const locks = Promise.all(links.map((link) => locking.lock(sql, link)));
      const both = Promise.all([
        locks,
        // The engine starts it once the locks are granted, so it sees everything that was committed by then.
        since === undefined ? [] : Promise.all(links.map((link) => changesAfter(sql, link, since))),
      ]);
      both.catch(() => undefined);
      // First: where a lock fails, what comes after it fails too, and does not say why.
      await locks;
      const [rows, changes] = await both;
      const locked = links.flatMap((id, index): LinkReading[] => {
        const row = rows[index];
        if (!row) return [];
        const reading = linkReading(sql, id, row);
        const known = changes[index];
        if (!known) return [reading];
        const changesSince = async (after: number) => (after === since ? known : reading.changesSince(after));
        return [{ ...reading, changesSince }];
      });
      const missing = links.filter((_, index) => rows[index] === undefined);
      if (missing.length > 0) throw new NoRowError(missing);
      return work(storeTransaction(sql, locking, locked));
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

/** @param row as {@link READ_LINK} gives it */
function linkReading(sql: SqlReader & { history: string }, id: string, row: SqlRow): LinkReading {
  return {
    id,
    version: Number(row['version']),
    history: sql.history,
    forgotten: Number(row['forgotten']),

    async endingBetween(after, until) {
      const rows = await sql.all(
        `SELECT ${HELD} FROM hop WHERE link = $1 AND end_ms > $2 AND end_ms <= $3 AND deleted_ms IS NULL`,
        id,
        after,
        until,
      );
      return rows.map(toHeld);
    },

    changesSince: (since) => changesAfter(sql, id, since),
  };
}

function storeReading(sql: SqlReader): StoreReading {
  return {
    async read(ids) {
      const found = await Promise.all(ids.map((id) => readRecord(sql, id)));
      return found.flatMap((record) => record ?? []);
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

function storeTransaction(
  sql: SqlTransaction,
  locking: Locking,
  links: readonly LinkReading[],
): StoreTransaction {
  const reading = storeReading(sql);
  return {
    ...reading,
    links,

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

    write: (decided, now) => write(sql, locking, { links, decided, now }),
  };
}

/** The rows of one reservation, as it was left last. */
interface ReservationRows {
  reservation: SqlValue[];
  hops: SqlValue[][];
  /** The rows that SQLite's guard checks. */
  held: SqlValue[][];
}

/**
 * Writes what was decided. Of a reservation that changed twice, only the last state is written, so that the tags which
 * it no longer holds are free for the others.
 */
async function write(
  sql: SqlTransaction,
  locking: Locking,
  {
    links,
    decided: { changes, audit },
    now,
  }: { links: readonly LinkReading[]; decided: Decided; now: number },
): Promise<void> {
  const before = new Map(links.map(({ id, version }) => [id, version]));
  const versions = new Map(before);
  const last = new Map<string, ReservationRows>();
  const known = new Set<string>();
  for (const { action, record } of changes) {
    const deletedAt = action === 'delete' ? now : null;
    if (action !== 'create') known.add(record.id);
    const isHeld = deletedAt === null && locking.tagsApart;
    last.set(record.id, {
      reservation: reservationRow(record, deletedAt),
      hops: record.hops.map((hop, position) => {
        const version = (versions.get(hop.link) ?? 0) + 1;
        versions.set(hop.link, version);
        return hopRow(record, hop, { position, version, deletedAt });
      }),
      held: isHeld ? record.hops.flatMap((hop) => holdRows(record, hop)) : [],
    });
  }
  const keys = changes.flatMap(({ key }) => key ?? []);
  const rows = [...last.values()];
  const changed = [...versions].filter(([link, version]) => version !== before.get(link));
  const writes: SqlWrite[] = [
    { insert: RESERVATION, rows: rows.map(({ reservation }) => reservation) },
    { insert: HOP, rows: rows.flatMap(({ hops }) => hops) },
    { insert: HOLD, rows: rows.flatMap(({ held }) => held) },
    { insert: IDEMPOTENCY_KEY, rows: keys.map(keyRow) },
    ...(await auditWrites(sql, before, audit)),
    ...changed.map((values) => ({ change: SET_LINK_VERSION, values })),
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
    `SELECT ${HELD}, deleted_ms FROM hop WHERE link = $1 AND version > $2 ORDER BY version`,
    link,
    since,
  );
  return rows.map((row) => {
    const { id, ...holding } = toHeld(row);
    return row['deleted_ms'] === null ? { id, deleted: false, holding } : { id, deleted: true };
  });
}

function reservationRow(record: ReservationRecord, deletedAt: number | null): SqlValue[] {
  return [
    record.id,
    record.site1,
    record.site2,
    record.start,
    record.end,
    record.bandwidth,
    record.experiment,
    record.tenant,
    record.createdBy,
    record.createdAt,
    deletedAt,
    ...RESERVATION_TEXTS.map((text) => record[text] ?? null),
  ];
}

function hopRow(
  { id, start, end, bandwidth, tenant }: ReservationRecord,
  { link, tags }: Hop,
  { position, version, deletedAt }: { position: number; version: number; deletedAt: number | null },
): SqlValue[] {
  const held = [start, end, bandwidth, ...TAG_PLACES.map((place) => tags[place]), tenant];
  return [id, position, link, version, ...held, deletedAt];
}

function holdRows({ id, start, end }: ReservationRecord, { link, tags }: Hop): SqlValue[][] {
  return TAG_PLACES.map((place) => [link, place, tags[place], start, end, id]);
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
