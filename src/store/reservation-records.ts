import { TAG_PLACES, type Tags } from '../allocator/demand.ts';
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

/** A row for each hop, its columns in the order in which {@link toRecord} reads them. */
const RECORDS = `r.id, hop.link, ${TAG_PLACES.map((place) => `hop.${place}`).join(', ')},
  r.site1, r.site2, r.start_ms, r.end_ms, r.bandwidth, r.experiment, r.created_by, r.created_ms, hop.version, r.tenant,
  ${RESERVATION_TEXTS.map((text) => `r.${text}`).join(', ')}, r.deleted_ms`;

/** Reads reservations with their hops, by id. In a subquery as a table, they would be sorted once more. */
function rowsOf(condition: string): string {
  return `SELECT ${RECORDS} FROM reservation AS r JOIN hop ON hop.reservation = r.id
    WHERE ${condition} ORDER BY r.id, position`;
}

const ONE = rowsOf('r.id = $id AND r.deleted_ms IS NULL');

/** A reservation that was not deleted. */
export async function readRecord(sql: SqlReader, id: string): Promise<ReservationRecord | undefined> {
  return grouped(await sql.arrays(ONE, { id }))[0];
}

/** How many reservations are read at once: with eight hops each, some milliseconds. */
export const READ_AT_ONCE = 128;

/** Reservations that were not deleted, by id. */
export function listAnswers(sql: SqlReader, query: ReservationQuery): Promise<ListedReservation[]> {
  const { experiment, state = 'any', now, after = '', limit } = query;
  return sql.all<ListedReservation>(
    `SELECT id, answer FROM reservation
     WHERE experiment = $experiment AND deleted_ms IS NULL AND id > $after
       AND CASE $state
         WHEN 'scheduled' THEN start_ms > $now
         WHEN 'active' THEN start_ms <= $now AND end_ms > $now
         WHEN 'ended' THEN end_ms <= $now
         ELSE TRUE END
     ORDER BY id LIMIT $limit`,
    { experiment, state, now, after, limit },
  );
}

const CHANGED = rowsOf(
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
  return grouped(rows).map((record) => ({ record, deleted: deleted.has(record.id) }));
}

const ENDING_AFTER = rowsOf(
  `r.id IN (
    SELECT id FROM reservation WHERE experiment = $experiment AND deleted_ms IS NULL AND id > $after AND end_ms > $instant
    ORDER BY id LIMIT $count)`,
);

/** An experiment's reservations that were not deleted and end after an instant: read in parts, with time for others in between. */
export async function recordsEndingAfter(
  sql: SqlReader,
  experiment: string,
  instant: number,
): Promise<ReservationRecord[]> {
  const slices = new Slices();
  const records: ReservationRecord[] = [];
  for (;;) {
    const after = records.at(-1)?.id ?? '';
    const rows = await sql.arrays(ENDING_AFTER, { experiment, after, instant, count: READ_AT_ONCE });
    const found = grouped(rows);
    records.push(...found);
    if (found.length < READ_AT_ONCE) return records;
    if (slices.isOver) await slices.next();
  }
}

/** @param rows of hops, those of a reservation one after the other */
function grouped(rows: readonly SqlValues[]): ReservationRecord[] {
  const records: ReservationRecord[] = [];
  for (const row of rows) {
    const last = records.at(-1);
    if (last && last.id === row[0]) last.hops = [...last.hops, hopOf(row)];
    else records.push(toRecord(row));
  }
  return records;
}

function hopOf([, link, s1, c1, s2, c2]: SqlValues): Hop {
  return { link: String(link), tags: tagsIn([s1, c1, s2, c2]) };
}

/** The tags of a row. @param values of its columns of tags, in the order of {@link TAG_PLACES} */
export function tagsIn([s1, c1, s2, c2]: SqlValues): Tags {
  return {
    site1_s_tag: Number(s1),
    site1_c_tag: Number(c1),
    site2_s_tag: Number(s2),
    site2_c_tag: Number(c2),
  };
}

function toRecord(row: SqlValues): ReservationRecord {
  const [
    id,
    ,
    ,
    ,
    ,
    ,
    site1,
    site2,
    start,
    end,
    bandwidth,
    experiment,
    createdBy,
    createdAt,
    version,
    tenant,
  ] = row;
  const record: ReservationRecord = {
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
    version: Number(version),
    tenant: String(tenant),
  };
  for (const [index, text] of RESERVATION_TEXTS.entries()) {
    const value = row[TEXTS_FROM + index];
    if (value !== null) record[text] = String(value);
  }
  return record;
}

/** Where the texts begin in a row. */
const TEXTS_FROM = 16;
