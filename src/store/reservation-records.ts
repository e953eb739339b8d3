import { TAG_PLACES, type Tags } from '../allocator/demand.ts';
import { Slices } from '../allocator/event-loop.ts';
import type {
  ChangedReservation,
  Hop,
  ListedReservation,
  ReservationQuery,
  ReservationRecord,
} from '../allocator/store.ts';
import { RESERVATION_TEXTS, type ReservationText } from '../contract/reservation-texts.ts';
import type { SqlReader } from './sql.ts';

/** A row for each hop: the reservation, with what it holds there. */
const RECORDS = `r.id, r.site1, r.site2, r.start_ms AS start, r.end_ms AS "end", r.bandwidth, r.experiment,
  r.created_by AS "createdBy", r.created_ms AS "createdAt", hop.version, r.tenant,
  ${RESERVATION_TEXTS.map((text) => `r.${text}`).join(', ')},
  hop.link, ${TAG_PLACES.map((place) => `hop.${place}`).join(', ')}, r.deleted_ms AS "deletedAt"`;

interface HopRow
  extends Omit<ReservationRecord, 'hops' | ReservationText>,
    Record<ReservationText, string | null>,
    Tags {
  link: string;
  deletedAt: number | null;
}

/** Reads reservations with their hops, by id. In a subquery as a table, they would be sorted once more. */
function rowsOf(condition: string): string {
  return `SELECT ${RECORDS} FROM reservation AS r JOIN hop ON hop.reservation = r.id
    WHERE ${condition} ORDER BY r.id, position`;
}

const ONE = rowsOf('r.id = $id AND r.deleted_ms IS NULL');

/** A reservation that was not deleted. */
export async function readRecord(sql: SqlReader, id: string): Promise<ReservationRecord | undefined> {
  return grouped(await sql.all<HopRow>(ONE, { id }))[0];
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
  const rows = await sql.all<HopRow>(CHANGED, { link, since, experiment, most });
  const deleted = new Set(rows.flatMap(({ id, deletedAt }) => (deletedAt === null ? [] : id)));
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
    const found = grouped(await sql.all<HopRow>(ENDING_AFTER, given));
    records.push(...found);
    if (found.length < READ_AT_ONCE) return records;
    if (slices.isOver) await slices.next();
  }
}

/** @param rows of hops, those of a reservation one after the other */
function grouped(rows: readonly HopRow[]): ReservationRecord[] {
  const records: ReservationRecord[] = [];
  for (const row of rows) {
    const {
      link,
      site1_s_tag,
      site1_c_tag,
      site2_s_tag,
      site2_c_tag,
      deletedAt: _,
      name,
      description,
      ...rest
    } = row;
    const hop: Hop = { link, tags: { site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag } };
    const last = records.at(-1);
    if (last?.id === row.id) last.hops = [...last.hops, hop];
    else
      records.push({
        ...rest,
        hops: [hop],
        ...(name === null ? {} : { name }),
        ...(description === null ? {} : { description }),
      });
  }
  return records;
}
