import type { Link } from '../../src/contract/links.ts';
import type { SqlRow, SqlValue } from '../../src/store/sql.ts';

/** Queries a database of either engine without the store. Parameters are `$1`, `$2`, … */
export type Rows = (sql: string, ...values: SqlValue[]) => Promise<SqlRow[]>;

/** The places of a reservation's four tags, written again here: the proof shares no list with the code it checks. */
const PLACES = ['site1_s_tag', 'site1_c_tag', 'site2_s_tag', 'site2_c_tag'] as const;

/** A row for each tag that a live reservation of link `$1` names. */
const NAMED = PLACES.map(
  (place) => `SELECT reservation AS id, '${place}' AS place, ${place} AS tag, start_ms, end_ms
    FROM hop WHERE link = $1 AND deleted_ms IS NULL`,
).join(' UNION ALL ');

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
        SELECT start_ms AS instant, bandwidth AS change FROM hop WHERE link = $1 AND deleted_ms IS NULL
        UNION ALL
        SELECT end_ms, -bandwidth FROM hop WHERE link = $1 AND deleted_ms IS NULL
      ) changes GROUP BY instant
    ) at_each
  ) over_time WHERE load > $2`;

const RANGES = `SELECT place, min(tag) AS lowest, max(tag) AS highest FROM (${NAMED}) named GROUP BY place`;

/**
 * Each change gives its reservation the link's next version, so the newest reservation bears the link's own, unless it
 * was a cancelled one that was forgotten since.
 */
const VERSIONS = `
  SELECT link.version AS version, link.forgotten AS forgotten, coalesce(max(hop.version), 0) AS newest,
    count(hop.version) - count(DISTINCT hop.version) AS doubled
  FROM link LEFT JOIN hop ON hop.link = link.id
  WHERE link.id = $1 GROUP BY link.id, link.version, link.forgotten`;

/** What stands at a hop and at its reservation, side by side; the reservation of a hop may be missing. */
const HALVES = `
  SELECT hop.reservation AS id, r.id AS found,
    hop.start_ms AS hop_start, r.start_ms AS start, hop.end_ms AS hop_end, r.end_ms AS until,
    hop.bandwidth AS hop_bandwidth, r.bandwidth AS bandwidth, hop.tenant AS hop_tenant, r.tenant AS tenant,
    hop.deleted_ms AS hop_deleted, r.deleted_ms AS deleted
  FROM hop LEFT JOIN reservation r ON r.id = hop.reservation
  WHERE hop.link = $1 AND (r.id IS NULL OR hop.start_ms <> r.start_ms OR hop.end_ms <> r.end_ms
    OR hop.bandwidth <> r.bandwidth OR hop.tenant <> r.tenant OR hop.deleted_ms IS DISTINCT FROM r.deleted_ms)`;

/** Every hop of the live reservations, in the order of their routes; with a condition on the reservation `r`. */
const routes = (condition: string): string => `
  SELECT r.id AS id, r.site1 AS site1, r.site2 AS site2, hop.position AS position, hop.link AS link
  FROM reservation r JOIN hop ON hop.reservation = r.id
  WHERE r.deleted_ms IS NULL AND ${condition} ORDER BY r.id, hop.position`;
const ROUTES = routes('r.id IN (SELECT reservation FROM hop WHERE link = $1)');

/** On any link: it was made without a route, or forgotten by halves. */
const WITHOUT_HOPS =
  'SELECT id FROM reservation WHERE NOT EXISTS (SELECT 1 FROM hop WHERE hop.reservation = reservation.id)';

/** Names the routes that are no path from the reservation's first site to its second. @param rows those of {@link ROUTES} */
function brokenRoutes(rows: readonly SqlRow[]): string[] {
  return [...Map.groupBy(rows, ({ id }) => id)].flatMap(([id, hops]) => {
    const route = hops.map(({ link }) => link).join(' ');
    let site: unknown = hops[0]?.['site1'];
    const passed = new Set([site]);
    for (const [index, { position, link }] of hops.entries()) {
      const ends = String(link).split('~');
      if (Number(position) !== index) return [`half a route: ${id} has ${route}, no hop ${index}`];
      if (!ends.some((end) => end === site)) return [`no route: ${id} has ${route}, which ends at ${site}`];
      site = ends.find((end) => end !== site);
      if (passed.has(site)) return [`no route: ${id} has ${route}, which passes ${site} twice`];
      passed.add(site);
    }
    const due = hops[0]?.['site2'];
    return site === due ? [] : [`half a route: ${id} has ${route}, which does not reach ${due}`];
  });
}

/**
 * Checks a link's rows in SQL of its own, without the allocator: names every overlap of a tag, every instant above
 * the capacity, every tag outside the link's ranges, and a version
 * that does not fit; and every half of a route: a hop without its reservation or other than it, a reservation whose
 * hops are no path between its sites. Empty when all is well.
 */
export async function sweep({ rows }: { rows: Rows }, id: string, link: Link): Promise<string[]> {
  const overlaps = await rows(OVERLAPS, id);
  const overbooked = await rows(OVERBOOKED, id, link.bandwidth);
  const extremes = await rows(RANGES, id);
  const versions = await rows(VERSIONS, id);
  const halves = await rows(HALVES, id);
  const hops = await rows(ROUTES, id);
  const without = await rows(WITHOUT_HOPS);
  return [
    ...overlaps.map(
      ({ id: reservation, place, tag, start_ms, taken_until }) =>
        `${reservation} holds ${place} ${tag} from ${start_ms}; another does until ${taken_until}`,
    ),
    ...overbooked.map(({ load, instant }) => `${load} of ${link.bandwidth} Mbps at ${instant}`),
    ...extremes.flatMap(({ place, lowest, highest }) => {
      const range = PLACES.find((each) => each === place);
      const [from, to] = range ? link[`${range}s`] : [];
      const outside = [lowest, highest]
        .map(Number)
        .filter((tag) => !(tag >= Number(from) && tag <= Number(to)));
      return outside.map((tag) => `${place} ${tag} is held, outside the range`);
    }),
    ...versions.flatMap(({ version, forgotten, newest, doubled }) => [
      // A new history of the database begins at the beginning of a status list.
      ...(Number(version) === Math.max(Number(newest), Number(forgotten)) ||
      (Number(version) > Number(newest) && Number(version) % 2 ** 17 === 0)
        ? []
        : [`the link is at version ${version}, its rows at ${newest}`]),
      ...(Number(doubled) === 0 ? [] : [`${doubled} versions of the link stand at two reservations`]),
    ]),
    ...halves.map(
      (row) => `half of ${row['id']}: its hop and its reservation differ: ${Object.values(row).join(' ')}`,
    ),
    ...brokenRoutes(hops),
    ...without.map((row) => `half of ${row['id']}: it has no hop`),
  ];
}

/** The half routes that a reader sees at one instant, while others write. */
export async function halfRoutes(rows: Rows): Promise<string[]> {
  return brokenRoutes(await rows(routes('true')));
}
