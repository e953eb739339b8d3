import type { Link } from '../../src/contract/links.ts';
import type { SqlRow, SqlValue } from '../../src/store/sql.ts';

/** Queries a database of either engine without the store. Parameters are `$1`, `$2`, … */
export type Rows = (sql: string, ...values: SqlValue[]) => Promise<SqlRow[]>;

/** The places of a reservation's four tags, written again here: the proof shares no list with the code it checks. */
const PLACES = ['site1_s_tag', 'site1_c_tag', 'site2_s_tag', 'site2_c_tag'] as const;

/** A row for each tag that a live reservation of link `$1` names. */
const NAMED = PLACES.map(
  (place) => `SELECT id, '${place}' AS place, ${place} AS tag, start_ms, end_ms
    FROM reservation WHERE link = $1 AND deleted_ms IS NULL`,
).join(' UNION ALL ');

const HELD = 'SELECT reservation AS id, place, tag, start_ms, end_ms FROM tag_hold WHERE link = $1';

/** Compares each period of a tag, in order of start, with the latest end of the earlier ones, in one pass. */
const OVERLAPS = `
  SELECT id, place, tag, start_ms, taken_until FROM (
    SELECT id, place, tag, start_ms, max(end_ms) OVER (
      PARTITION BY place, tag ORDER BY start_ms, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS taken_until FROM (${NAMED}) named
  ) in_order WHERE taken_until > start_ms`;

/** The sum of starts and ends up to each instant. Starts and ends at one instant are summed first. */
const OVERBOOKED = `
  SELECT instant, load FROM (
    SELECT instant, sum(change) OVER (ORDER BY instant) AS load FROM (
      SELECT instant, sum(change) AS change FROM (
        SELECT start_ms AS instant, bandwidth AS change FROM reservation WHERE link = $1 AND deleted_ms IS NULL
        UNION ALL
        SELECT end_ms, -bandwidth FROM reservation WHERE link = $1 AND deleted_ms IS NULL
      ) changes GROUP BY instant
    ) at_each
  ) over_time WHERE load > $2`;

const RANGES = `SELECT place, min(tag) AS lowest, max(tag) AS highest FROM (${NAMED}) named GROUP BY place`;

/**
 * Each change gives its reservation the link's next version, so the newest reservation bears the link's own, unless it
 * was a cancelled one that was forgotten since.
 */
const VERSIONS = `
  SELECT link.version AS version, link.forgotten AS forgotten, coalesce(max(reservation.version), 0) AS newest,
    count(reservation.version) - count(DISTINCT reservation.version) AS doubled
  FROM link LEFT JOIN reservation ON reservation.link = link.id
  WHERE link.id = $1 GROUP BY link.id, link.version, link.forgotten`;

/**
 * Checks a link's rows in SQL of its own, without the allocator: names every overlap of a tag, every instant above
 * the capacity, every row of `tag_hold` that is missing or too many, every tag outside the link's ranges, and a version
 * that does not fit. Empty when all is well.
 */
export async function sweep({ rows }: { rows: Rows }, id: string, link: Link): Promise<string[]> {
  const overlaps = await rows(OVERLAPS, id);
  const overbooked = await rows(OVERBOOKED, id, link.bandwidth);
  const missing = await rows(`SELECT * FROM (${NAMED}) named EXCEPT ${HELD}`, id);
  const leaked = await rows(`${HELD} EXCEPT SELECT * FROM (${NAMED}) named`, id);
  const extremes = await rows(RANGES, id);
  const versions = await rows(VERSIONS, id);
  return [
    ...overlaps.map(
      ({ id: reservation, place, tag, start_ms, taken_until }) =>
        `${reservation} holds ${place} ${tag} from ${start_ms}; another does until ${taken_until}`,
    ),
    ...overbooked.map(({ load, instant }) => `${load} of ${link.bandwidth} Mbps at ${instant}`),
    ...missing.map((row) => `not held: ${inShort(row)}`),
    ...leaked.map((row) => `leak: held without a reservation: ${inShort(row)}`),
    ...extremes.flatMap(({ place, lowest, highest }) => {
      const range = PLACES.find((each) => each === place);
      const [from, to] = range ? link[`${range}s`] : [];
      const outside = [lowest, highest]
        .map(Number)
        .filter((tag) => !(tag >= Number(from) && tag <= Number(to)));
      return outside.map((tag) => `${place} ${tag} is held, outside the range`);
    }),
    ...versions.flatMap(({ version, forgotten, newest, doubled }) => [
      ...(Number(version) === Math.max(Number(newest), Number(forgotten))
        ? []
        : [`the link is at version ${version}, its rows at ${newest}`]),
      ...(Number(doubled) === 0 ? [] : [`${doubled} versions of the link stand at two reservations`]),
    ]),
  ];
}

function inShort({ id, place, tag, start_ms, end_ms }: SqlRow): string {
  return `${id} ${place} ${tag} ${start_ms} to ${end_ms}`;
}
