import { TAG_PLACES } from '../allocator/demand.ts';
import { Slices } from '../allocator/event-loop.ts';
import type {
  ChangedReservation,
  Hop,
  ListedReservation,
  ReservationQuery,
  ReservationRecord,
} from '../allocator/store.ts';
import { RESERVATION_TEXTS } from '../contract/reservation.ts';
import type { SqlReader } from './sql.ts';

/** A row for each hop: the reservation, with what it holds there. */
const RECORDS = `r.id, r.site1, r.site2, r.start_ms, r.end_ms, r.bandwidth, r.experiment, r.created_by, r.created_ms,
  hop.version, r.tenant, ${RESERVATION_TEXTS.map((text) => `r.${text}`).join(', ')},
  hop.link, ${TAG_PLACES.map((place) => `hop.${place}`).join(', ')}, r.deleted_ms`;

type HopRow = readonly [
  ...[id: string, site1: string, site2: string, start: number, end: number, bandwidth: number],
  ...[experiment: string, createdBy: string, createdAt: number, version: number, tenant: string],
  ...[name: string | null, description: string | null, link: string],
  ...[site1_s_tag: number, site1_c_tag: number, site2_s_tag: number, site2_c_tag: number],
  deletedAt: number | null,
];

/** Reads reservations with their hops, by id. In a subquery as a table, they would be sorted once more. */
function rowsOf(condition: string): string {
  return `SELECT ${RECORDS} FROM reservation AS r JOIN hop ON hop.reservation = r.id
    WHERE ${condition} ORDER BY r.id, position`;
}

const ONE = rowsOf('r.id = $id AND r.deleted_ms IS NULL');

/** A reservation that was not deleted. */
export async function readRecord(sql: SqlReader, id: string): Promise<ReservationRecord | undefined> {
  return grouped(await sql.arrays<HopRow>(ONE, { id }))[0];
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
  const rows = await sql.arrays<HopRow>(CHANGED, { link, since, experiment, most });
  const deleted = new Set(rows.flatMap((row) => (row.at(-1) === null ? [] : row[0])));
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
    const given = { experiment, after, instant, count: READ_AT_ONCE };
    const found = grouped(await sql.arrays<HopRow>(ENDING_AFTER, given));
    records.push(...found);
    if (found.length < READ_AT_ONCE) return records;
    if (slices.isOver) await slices.next();
  }
}

/** @param rows of hops, those of a reservation one after the other */
function grouped(rows: readonly HopRow[]): ReservationRecord[] {
  const records: ReservationRecord[] = [];
  for (const row of rows) {
    const [id, site1, site2, start, end, bandwidth, experiment, createdBy, createdAt, version, ...rest] = row;
    const [tenant, name, description, link, site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag] = rest;
    const hop: Hop = { link, tags: { site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag } };
    const last = records.at(-1);
    if (last?.id === id) {
      last.hops = [...last.hops, hop];
      continue;
    }
    const about = { id, site1, site2, start, end, bandwidth, experiment, createdBy, createdAt, version };
    const record: ReservationRecord = { ...about, tenant, hops: [hop] };
    if (name !== null) record.name = name;
    if (description !== null) record.description = description;
    records.push(record);
  }
  return records;
}
