import { TAG_PLACES } from '../allocator/demand.ts';
import { Slices } from '../allocator/event-loop.ts';
import type { ChangedReservation, Hop, ReservationQuery, ReservationRecord } from '../allocator/store.ts';
import { RESERVATION_TEXTS } from '../contract/reservation-texts.ts';
import type { SqlReader, SqlValues } from './sql.ts';

/** Reservations with their hops, a row for each hop, its columns in the order in which {@link toRecord} reads them. */
const RECORDS = `SELECT r.id, hop.link, ${TAG_PLACES.map((place) => `hop.${place}`).join(', ')}, hop.version,
  r.site1, r.site2, r.start_ms, r.end_ms, r.bandwidth, r.tenant, r.experiment, r.created_by, r.created_ms, r.deleted_ms,
  ${RESERVATION_TEXTS.map((text) => `r.${text}`).join(', ')}`;

/** A reservation that was not deleted. */
export async function readRecord(sql: SqlReader, id: string): Promise<ReservationRecord | undefined> {
  const rows = await sql.arrays(
    `${RECORDS} FROM reservation AS r JOIN hop ON hop.reservation = r.id
     WHERE r.id = $id AND r.deleted_ms IS NULL ORDER BY position`,
    { id },
  );
  return toRecords(rows)[0];
}

/** How many reservations are read at once: with eight hops each, some milliseconds. */
export const READ_AT_ONCE = 128;

/** Reservations that were not deleted, by id. @param sql a snapshot where there may be more than {@link READ_AT_ONCE} */
export async function listRecords(sql: SqlReader, query: ReservationQuery): Promise<ReservationRecord[]> {
  const { experiment, state = 'any', now, after = '', limit } = query;
  return inParts({ after, limit }, (from, count) =>
    sql.arrays(
      `${RECORDS} FROM (
       SELECT * FROM reservation
       WHERE experiment = $experiment AND deleted_ms IS NULL AND id > $from
         AND CASE $state
           WHEN 'scheduled' THEN start_ms > $now
           WHEN 'active' THEN start_ms <= $now AND end_ms > $now
           WHEN 'ended' THEN end_ms <= $now
           ELSE TRUE END
       ORDER BY id LIMIT $count
     ) AS r JOIN hop ON hop.reservation = r.id
     ORDER BY r.id, position`,
      { experiment, from, state, now, count },
    ),
  );
}

/** Reads reservations in parts, by id, with time for others in between. */
async function inParts(
  { after, limit }: { after: string; limit: number },
  read: (after: string, count: number) => Promise<SqlValues[]>,
): Promise<ReservationRecord[]> {
  const slices = new Slices();
  const records: ReservationRecord[] = [];
  for (;;) {
    const count = Math.min(READ_AT_ONCE, limit - records.length);
    const found = toRecords(await read(records.at(-1)?.id ?? after, count));
    records.push(...found);
    if (found.length < count || records.length === limit) return records;
    if (slices.isOver) await slices.next();
  }
}

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
  const rows = await sql.arrays(
    `${RECORDS} FROM (
       SELECT found.* FROM hop AS changed JOIN reservation AS found ON found.id = changed.reservation
       WHERE changed.link = $link AND changed.version > $since
         AND (found.experiment = $experiment OR $experiment = '') LIMIT $most
     ) AS r JOIN hop ON hop.reservation = r.id
     ORDER BY r.id, position`,
    { link, since, experiment, most },
  );
  const deleted = new Set(rows.flatMap((row) => (row[DELETED] === null ? [] : [row[ID]])));
  return toRecords(rows).map((record) => ({ record, deleted: deleted.has(record.id) }));
}

/** An experiment's reservations that were not deleted and end after an instant. */
export async function recordsEndingAfter(
  sql: SqlReader,
  experiment: string,
  instant: number,
): Promise<ReservationRecord[]> {
  return inParts({ after: '', limit: Number.POSITIVE_INFINITY }, (after, count) =>
    sql.arrays(
      `${RECORDS} FROM (
         SELECT * FROM reservation WHERE experiment = $experiment AND deleted_ms IS NULL AND id > $after AND end_ms > $instant
         ORDER BY id LIMIT $count
       ) AS r JOIN hop ON hop.reservation = r.id
       ORDER BY r.id, position`,
      { experiment, after, instant, count },
    ),
  );
}

const [ID, DELETED] = [0, 16];

/** @param rows of {@link RECORDS}, the hops of a reservation one after the other */
function toRecords(rows: readonly SqlValues[]): ReservationRecord[] {
  const records: ReservationRecord[] = [];
  for (const row of rows) {
    const last = records.at(-1);
    if (last && last.id === row[ID]) last.hops = [...last.hops, hopOf(row)];
    else records.push(toRecord(row));
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

function toRecord(row: SqlValues): ReservationRecord {
  const [id, , , , , , version, site1, site2, start, end, bandwidth] = row;
  const [tenant, experiment, createdBy, createdAt, , ...texts] = row.slice(12);
  const record: ReservationRecord = {
    id: String(id),
    site1: String(site1),
    site2: String(site2),
    hops: [hopOf(row)],
    start: Number(start),
    end: Number(end),
    bandwidth: Number(bandwidth),
    tenant: String(tenant),
    experiment: String(experiment),
    createdBy: String(createdBy),
    createdAt: Number(createdAt),
    version: Number(version),
  };
  for (const [index, text] of RESERVATION_TEXTS.entries()) {
    if (texts[index] !== null) record[text] = String(texts[index]);
  }
  return record;
}
