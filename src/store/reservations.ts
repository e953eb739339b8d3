import { answerOf } from '../allocator/answer.ts';
import { TAG_PLACES } from '../allocator/demand.ts';
import { Slices } from '../allocator/event-loop.ts';
import { MAX_ROWS } from '../allocator/link-use.ts';
import {
  type Decided,
  EXPIRED_KEYS_AT_ONCE,
  type HeldReservation,
  type IdempotencyKey,
  type IdempotencyRecord,
  type LinkVersion,
  type Locks,
  nameOfKey,
  type ReservationStore,
  RolledBackError,
  type StoreReading,
  type StoreTransaction,
  textOfName,
} from '../allocator/store.ts';
import { RESERVATION_TEXTS } from '../contract/reservation.ts';
import { jsonText } from '../contract/visible-text.ts';
import { AUDIT, auditRows, COUNT_MORE } from './audit.ts';
import { deleteOldRows } from './old-rows.ts';
import { changedRecords, listAnswers, readRecord, recordsEndingAfter } from './reservation-records.ts';
import { overlapping, spanOf } from './spans.ts';
import {
  insertInto,
  type Locking,
  READ_LINK,
  type SqlDatabase,
  type SqlReader,
  type SqlStatements,
  type SqlTransaction,
} from './sql.ts';

/** The versions of reservations that begin on a link and were not deleted. */
const VERSIONS = `SELECT version FROM hop
  WHERE link = $link AND version >= $at AND version < $end AND position = 0 AND deleted_ms IS NULL`;

/** What is held of a link at some instant of a period. */
const OVERLAPPING = `${overlapping(
  `SELECT reservation, start_ms, end_ms, bandwidth, ${TAG_PLACES.join(', ')}, tenant FROM hop
   WHERE link = $link AND deleted_ms IS NULL`,
)} LIMIT ${MAX_ROWS + 1}`;

/** A row is a reservation as it is now; a deleted one keeps its row, with `deleted_ms`, until it is forgotten. */
const RESERVATION = insertInto(
  'reservation',
  `id text, site1 text, site2 text, start_ms bigint start, end_ms bigint end, bandwidth bigint, experiment text,
   tenant text, created_by text createdBy, created_ms bigint createdAt, deleted_ms bigint deletedAt, answer text,
   ${RESERVATION_TEXTS.map((text) => `${text} text`).join(', ')}`,
  `ON CONFLICT (id) DO UPDATE SET
    ${replaced('start_ms', 'end_ms', 'bandwidth', 'deleted_ms', 'answer', ...RESERVATION_TEXTS)}`,
);

const NO_TEXTS = Object.fromEntries(RESERVATION_TEXTS.map((text) => [text, null]));

/** A reservation's share of one link. */
const HOP = insertInto(
  'hop',
  `reservation text id, position integer, link text, version bigint, span integer, start_ms bigint start, end_ms bigint end,
   bandwidth bigint, ${TAG_PLACES.map((place) => `${place} integer`).join(', ')}, tenant text, deleted_ms bigint deletedAt`,
  `ON CONFLICT (reservation, position) DO UPDATE SET
    ${replaced('version', 'span', 'start_ms', 'end_ms', 'bandwidth', ...TAG_PLACES, 'deleted_ms')}`,
);

function replaced(...columns: string[]): string {
  return columns.map((column) => `${column} = excluded.${column}`).join(', ');
}

/** Inserts keys. A key that is there already makes it fail: the caller has locked its keys, and found them free. */
const IDEMPOTENCY_KEY = insertInto(
  'idempotency_key',
  `created_by text createdBy, experiment text, key text, fingerprint text, reservation text, items text,
   expires_ms bigint expires`,
);

/** Makes the row of a link that has none. Of two at once, the second waits for the first. */
const MAKE_LINK = 'INSERT INTO link (id, version) VALUES ($link, 0) ON CONFLICT (id) DO NOTHING';
const SET_LINK_VERSION = 'UPDATE link SET version = $version WHERE id = $link';
/** Releases the tags of a reservation whose row is written next, so that others may take them in any order. */
const RELEASE_TAGS = 'UPDATE hop SET deleted_ms = 0 WHERE reservation = $id AND deleted_ms IS NULL';

/** How many versions of a link are read at once. */
const VERSIONS_AT_ONCE = 8192;

/** Reservations in a database. */
export function reservationStore(database: SqlDatabase, locking: Locking): ReservationStore {
  const { reader } = database;
  const told = new Set<() => void>();
  return {
    ...storeReading(reader),
    hasOneWriter: locking.hasOneWriter,
    async changeLinks(locks, work) {
      const answer = await changeLinks(database, locking, locks, work);
      for (const tell of told) tell();
      return answer;
    },
    onCommit(tell) {
      told.add(tell);
      return () => told.delete(tell);
    },
    readLinks: (work) =>
      database.snapshot((sql) =>
        work({
          ...storeReading(sql),
          history: sql.history,
          changedSince: (link, since, of) => changedRecords(sql, { link, since, ...of }),
          endingAfter: (experiment, instant) => recordsEndingAfter(sql, experiment, instant),
        }),
      ),
    readVersions: (link, [from, to], take) =>
      database.snapshot(async (sql) => {
        const { version } = (await sql.first<LinkVersion>(READ_LINK, { link })) ?? unchanged(link);
        const slices = new Slices();
        for (let at = from; at < Math.min(to, version + 1); at += VERSIONS_AT_ONCE) {
          if (slices.isOver) await slices.next();
          const rows = await sql.arrays(VERSIONS, { link, at, end: Math.min(to, at + VERSIONS_AT_ONCE) });
          take(rows.map(([each]) => Number(each)));
        }
        return { version, history: sql.history };
      }),
    list: (query) => listAnswers(reader, query),
    answer: (id) =>
      reader.first('SELECT experiment, answer FROM reservation WHERE id = $id AND deleted_ms IS NULL', {
        id,
      }),
    async countBeside(links, now) {
      const known = links.map((_, index) => `$${index}`).join(', ');
      const row = await reader.first<{ live: number }>(
        `SELECT count(DISTINCT reservation) AS live FROM hop
         WHERE link IN (SELECT id FROM link${known && ` WHERE id NOT IN (${known})`})
           AND deleted_ms IS NULL AND end_ms > $now`,
        { ...links, now },
      );
      return row?.live ?? 0;
    },
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

/** Ends a transaction when a link has no row that could be locked. */
const NO_ROW = new Error('a link has no row');

/** Runs work in a transaction that holds its locks. */
async function changeLinks<Answer>(
  database: SqlDatabase,
  locking: Locking,
  { links, keys = [], counted = [], named = [] }: Locks,
  work: (transaction: StoreTransaction) => Promise<Answer>,
): Promise<Answer> {
  const attempt = (makesRows: boolean): Promise<Answer> =>
    database.transaction(async (sql) => {
      // One after the other in the database; nothing here waits in between.
      const locked = links.map(async (link) => {
        const made = makesRows ? sql.run(MAKE_LINK, { link }) : undefined;
        const [row] = await Promise.all([locking.lock(sql, link), made]);
        if (!row) throw NO_ROW;
        return row;
      });
      const versions = new Map((await Promise.all(locked)).map((version) => [version.id, version]));
      // In one order for all, so that no two transactions wait for each other.
      const names = [
        keys.map(nameOfKey),
        counted.map((tenant) => JSON.stringify(['live', tenant])),
        named.map(textOfName),
      ].flatMap((each) => [...new Set(each)].toSorted());
      if (names.length > 0) await locking.lockNames(sql, names);
      return work({
        ...storeReading(sql),
        versions: async (ids = links) => ids.map((id) => versions.get(id) ?? unchanged(id)),
        write: (decided, now) => write(sql, locking, { versions, decided, now }),
      });
    });
  try {
    // Few links have no row. It is made in another transaction: this one may hold later links, and all lock in one order.
    return await attempt(false).catch((error: unknown) => {
      if (error === NO_ROW) return attempt(true);
      throw error;
    });
  } catch (error) {
    throw error instanceof RolledBackError ? (error.cause ?? error) : error;
  }
}

function unchanged(id: string): LinkVersion {
  return { id, version: 0, forgotten: 0 };
}

/** Up to how many links are looked up one by one. */
const FEW_LINKS = 8;

function storeReading(sql: SqlReader): StoreReading {
  return {
    async versions(links) {
      const rows =
        links && links.length <= FEW_LINKS
          ? await Promise.all(links.map((link) => sql.first<LinkVersion>(READ_LINK, { link })))
          : await sql.all<LinkVersion>('SELECT id, version, forgotten FROM link ORDER BY id');
      const found = new Map(rows.flatMap((row) => (row ? [[row.id, row]] : [])));
      return links ? links.map((id) => found.get(id) ?? unchanged(id)) : [...found.values()];
    },

    async overlapping(link, { start, end }) {
      if (start >= end) return [];
      const until = Math.min(end, Number.MAX_SAFE_INTEGER);
      return (await sql.arrays<HeldRow>(OVERLAPPING, { link, start, end: until })).map(heldOf);
    },

    findKey: (key, now) => findKey(sql, key, now),

    find: (id) => readRecord(sql, id),

    async countLive(tenant, now) {
      const row = await sql.first<{ live: number }>(
        'SELECT count(*) AS live FROM reservation WHERE tenant = $tenant AND deleted_ms IS NULL AND end_ms > $now',
        { tenant, now },
      );
      return row?.live ?? 0;
    },

    async findName(named, now) {
      const row = await sql.first<{ id: string }>(
        `SELECT id FROM reservation
         WHERE experiment = $experiment AND name = $name AND deleted_ms IS NULL AND end_ms > $now LIMIT 1`,
        { ...named, now },
      );
      return row?.id;
    },
  };
}

/**
 * Writes what was decided. Of a reservation that changed twice, only the last state is written, so that the tags which
 * it no longer holds are free for the others.
 *
 * @param versions of the links
 */
async function write(
  sql: SqlTransaction,
  locking: Locking,
  {
    versions,
    decided: { changes, audit },
    now,
  }: { versions: ReadonlyMap<string, LinkVersion>; decided: Decided; now: number },
): Promise<void> {
  const before = new Map([...versions].map(([id, { version }]) => [id, version]));
  const after = new Map(before);
  const reservations = new Map<string, object>();
  const hops = new Map<string, object[]>();
  const known = new Set<string>();
  for (const { action, record } of changes) {
    const deletedAt = action === 'delete' ? now : null;
    if (action !== 'create') known.add(record.id);
    reservations.set(record.id, { ...NO_TEXTS, ...record, answer: jsonText(answerOf(record)), deletedAt });
    const span = spanOf(record.end - record.start);
    const held = record.hops.map(({ link, tags }, position) => {
      const version = (after.get(link) ?? 0) + 1;
      after.set(link, version);
      return { ...record, ...tags, link, position, version, span, deletedAt };
    });
    hops.set(record.id, held);
  }
  const keys = changes.flatMap(({ key }) => key ?? []);
  const audited = await auditRows(sql, before, audit);
  // One change alone meets no tags of others that move too.
  const released = changes.length > 1 ? [...known] : [];
  const moved = [...after].filter(([id, version]) => version !== before.get(id));
  return sql.finish(
    Promise.all([
      ...released.map((id) => sql.run(RELEASE_TAGS, { id })),
      ...keys.map((key) => deleteIfExpired(sql, key, now)),
      sql.insert(RESERVATION, [...reservations.values()]),
      sql.insert(HOP, [...hops.values()].flat()),
      sql.insert(IDEMPOTENCY_KEY, keys.map(keyRow)),
      sql.insert(AUDIT, audited.rows),
      ...audited.counted.map((values) => sql.run(COUNT_MORE, values)),
      ...moved.map(([link, version]) => sql.run(SET_LINK_VERSION, { link, version })),
      ...(keys.length > 0 ? [sql.run(locking.deleteExpiredKeys, { now, most: EXPIRED_KEYS_AT_ONCE })] : []),
    ]),
  );
}

/** A row of {@link OVERLAPPING}. */
type HeldRow = readonly [
  ...[id: string, start: number, end: number, bandwidth: number],
  ...[site1_s_tag: number, site1_c_tag: number, site2_s_tag: number, site2_c_tag: number, tenant: string],
];

function heldOf([id, start, end, bandwidth, s1, c1, s2, c2, tenant]: HeldRow): HeldReservation {
  const tags = { site1_s_tag: s1, site1_c_tag: c1, site2_s_tag: s2, site2_c_tag: c2 };
  return { id, start, end, bandwidth, tags, tenant };
}

/** See `ReservationStore.findKey`. */
async function findKey(
  sql: SqlReader,
  { createdBy, experiment, key }: IdempotencyKey,
  now: number,
): Promise<IdempotencyRecord | undefined> {
  const row = await sql.first<Omit<IdempotencyRecord, 'reservations'> & { items: string }>(
    `SELECT created_by AS "createdBy", experiment, key, fingerprint, coalesce(items, reservation) AS items,
       expires_ms AS expires
     FROM idempotency_key
     WHERE created_by = $createdBy AND experiment = $experiment AND key = $key AND expires_ms > $now`,
    { createdBy, experiment, key, now },
  );
  if (!row) return undefined;
  const { items, ...rest } = row;
  return { ...rest, reservations: items.split(' ') };
}

/** The row of a key. Only that of a batch has a list of items; its reservation is the first of them. */
function keyRow(record: IdempotencyRecord): object {
  const { reservations } = record;
  return {
    ...record,
    reservation: reservations[0],
    items: reservations.length > 1 ? reservations.join(' ') : null,
  };
}

/** Deletes a key if it has expired, so that it can be inserted again. */
function deleteIfExpired(sql: SqlStatements, key: IdempotencyKey, now: number): Promise<void> {
  return sql.run(
    `DELETE FROM idempotency_key
     WHERE created_by = $createdBy AND experiment = $experiment AND key = $key AND expires_ms <= $now`,
    { ...key, now },
  );
}
