import { TAG_PLACES } from '../allocator/demand.ts';
import { Slices } from '../allocator/event-loop.ts';
import type {
  ChangedReservation,
  Hop,
  ListedReservation,
  ReservationQuery,
  ReservationRecord,
} from '../allocator/store.ts';
import { RESERVATION_TEXTS } from '../contract/reservation-texts.ts';
import type { SqlReader, SqlValues } from './sql.ts';

/** What an answer has of a reservation, a row for each hop, its columns in the order in which {@link toListed} reads them. */
const LISTED = `r.id, hop.link, ${TAG_PLACES.map((place) => `hop.${place}`).join(', ')},
  r.site1, r.site2, r.start_ms, r.end_ms, r.bandwidth, r.experiment, r.created_by, r.created_ms,
  ${RESERVATION_TEXTS.map((text) => `r.${text}`).join(', ')}`;

/** The rows of whole reservations: the columns that {@link toRecord} reads come last. */
const RECORDS = `${LISTED}, hop.version, r.tenant, r.deleted_ms`;

/** Reads reservations with their hops, by id. In a subquery as a table, they would be sorted once more. */
function rowsOf(columns: string, condition: string): string {
  return `SELECT ${columns} FROM reservation AS r JOIN hop ON hop.reservation = r.id
    WHERE ${condition} ORDER BY r.id, position`;
}

const ONE = rowsOf(RECORDS, 'r.id = $id AND r.deleted_ms IS NULL');

/** A reservation that was not deleted. */
export async function readRecord(sql: SqlReader, id: string): Promise<ReservationRecord | undefined> {
  return grouped(await sql.arrays(ONE, { id }), toRecord)[0];
}

/** How many reservations are read at once: with eight hops each, some milliseconds. */
export const READ_AT_ONCE = 128;

const LIST = rowsOf(
  LISTED,
  `r.id IN (
    SELECT id FROM reservation
    WHERE experiment = $experiment AND deleted_ms IS NULL AND id > $from
      AND CASE $state
        WHEN 'scheduled' THEN start_ms > $now
        WHEN 'active' THEN start_ms <= $now AND end_ms > $now
        WHEN 'ended' THEN end_ms <= $now
        ELSE TRUE END
    ORDER BY id LIMIT $count)`,
);

/** Reservations that were not deleted, by id. @param sql a snapshot where there may be more than {@link READ_AT_ONCE} */
export async function listRecords(sql: SqlReader, query: ReservationQuery): Promise<ListedReservation[]> {
  const { experiment, state = 'any', now, after = '', limit } = query;
  return inParts({ after, limit }, async (from, count) =>
    grouped(await sql.arrays(LIST, { experiment, from, state, now, count }), toListed),
  );
}

/** Reads reservations in parts, by id, with time for others in between. */
async function inParts<Found extends ListedReservation>(
  { after, limit }: { after: string; limit: number },
  read: (after: string, count: number) => Promise<Found[]>,
): Promise<Found[]> {
  const slices = new Slices();
  const records: Found[] = [];
  for (;;) {
    const count = Math.min(READ_AT_ONCE, limit - records.length);
    const found = await read(records.at(-1)?.id ?? after, count);
    records.push(...found);
    if (found.length < count || records.length === limit) return records;
    if (slices.isOver) await slices.next();
  }
}

const CHANGED = rowsOf(
  RECORDS,
  `r.id IN (
    SELECT found.id FROM hop AS changed JOIN reservation AS found ON found.id = changed.reservation
    WHERE changed.link = $link AND changed.version > $since
      AND (found.experiment = $experiment OR $experiment = '') LIMIT $most)`,
);

/**
 * The reservations that changed on a link after a version. A reservation has one hop on a link.
 *
 * @param experiment only this one's; empty: every one's
 * @param most so many of them, whichever
 */
export async function changedRecords(
  sql: SqlReader,
  {
    link,
    since,
    experiment = '',
    most = Number.MAX_SAFE_INTEGER,
  }: { link: string; since: number; experiment?: string; most?: number },
): Promise<ChangedReservation[]> {
  const rows = await sql.arrays(CHANGED, { link, since, experiment, most });
  const deleted = new Set(rows.flatMap((row) => (row.at(-1) === null ? [] : [row[0]])));
  return grouped(rows, toRecord).map((record) => ({ record, deleted: deleted.has(record.id) }));
}

const ENDING_AFTER = rowsOf(
  RECORDS,
  `r.id IN (
    SELECT id FROM reservation WHERE experiment = $experiment AND deleted_ms IS NULL AND id > $after AND end_ms > $instant
    ORDER BY id LIMIT $count)`,
);

/** An experiment's reservations that were not deleted and end after an instant. */
export async function recordsEndingAfter(
  sql: SqlReader,
  experiment: string,
  instant: number,
): Promise<ReservationRecord[]> {
  return inParts({ after: '', limit: Number.POSITIVE_INFINITY }, async (after, count) =>
    grouped(await sql.arrays(ENDING_AFTER, { experiment, after, instant, count }), toRecord),
  );
}

/** @param rows of hops, those of a reservation one after the other */
function grouped<Found extends ListedReservation>(
  rows: readonly SqlValues[],
  read: (row: SqlValues) => Found,
): Found[] {
  const records: Found[] = [];
  for (const row of rows) {
    const last = records.at(-1);
    if (last && last.id === row[0]) last.hops = [...last.hops, hopOf(row)];
    else records.push(read(row));
  }
  return records;
}

function hopOf([, link, s1, c1, s2, c2]: SqlValues): Hop {
  const tags = {
    site1_s_tag: Number(s1),
    site1_c_tag: Number(c1),
    site2_s_tag: Number(s2),
    site2_c_tag: Number(c2),
  };
  return { link: String(link), tags };
}

function toListed(row: SqlValues): ListedReservation {
  const [id, , , , , , site1, site2, start, end, bandwidth, experiment, createdBy, createdAt] = row;
  const record: ListedReservation = {
    id: String(id),
    site1: String(site1),
    site2: String(site2),
    hops: [hopOf(row)],
    start: Number(start),
    end: Number(end),
    bandwidth: Number(bandwidth),
    experiment: String(experiment),
    createdBy: String(createdBy),
    createdAt: Number(createdAt),
  };
  for (const [index, text] of RESERVATION_TEXTS.entries()) {
    const value = row[TEXTS_FROM + index];
    if (value !== null) record[text] = String(value);
  }
  return record;
}

/** Where the texts begin in a row. */
const TEXTS_FROM = 14;

function toRecord(row: SqlValues): ReservationRecord {
  const [version, tenant] = row.slice(TEXTS_FROM + RESERVATION_TEXTS.length);
  return { ...toListed(row), tenant: String(tenant), version: Number(version) };
}
