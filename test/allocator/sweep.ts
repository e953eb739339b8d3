import { TAG_PLACES } from '../../src/allocator/calendar.ts';
import type { Link } from '../../src/contract/links.ts';
import type { OpenedStore } from '../store/opened-store.ts';

/**
 * Looks at a link's rows, not at the allocator: names every overlap of a tag, every instant above the capacity, and
 * every row of `tag_hold` that is missing or too many. Empty when all is well.
 */
export async function sweep({ rows }: Pick<OpenedStore, 'rows'>, id: string, link: Link): Promise<string[]> {
  const shared = TAG_PLACES.map((place) => `one.${place} = other.${place}`).join(' OR ');
  const overlaps = await rows(
    `SELECT one.id AS one, other.id AS other FROM reservation one
     JOIN reservation other ON other.link = one.link AND other.id > one.id
       AND other.start_ms < one.end_ms AND one.start_ms < other.end_ms AND (${shared})
     WHERE one.link = $1 AND one.cancelled_ms IS NULL AND other.cancelled_ms IS NULL`,
    id,
  );
  // The load can only be highest where some reservation starts.
  const overbooked = await rows(
    `SELECT sum(other.bandwidth) AS load, one.start_ms AS at FROM reservation one
     JOIN reservation other ON other.link = one.link
       AND other.start_ms <= one.start_ms AND one.start_ms < other.end_ms
     WHERE one.link = $1 AND one.cancelled_ms IS NULL AND other.cancelled_ms IS NULL
     GROUP BY one.id, one.start_ms HAVING sum(other.bandwidth) > $2`,
    id,
    link.bandwidth,
  );
  const live = await rows('SELECT * FROM reservation WHERE link = $1 AND cancelled_ms IS NULL', id);
  const due = live.flatMap((row) =>
    TAG_PLACES.map((place) => [row['id'], place, row[place], row['start_ms'], row['end_ms']].join(' ')),
  );
  const held = (await rows('SELECT * FROM tag_hold WHERE link = $1', id)).map((row) =>
    [row['reservation'], row['place'], row['tag'], row['start_ms'], row['end_ms']].join(' '),
  );
  const outside = live.flatMap((row) =>
    TAG_PLACES.filter((place) => {
      const [from, to] = link[`${place}s`];
      return Number(row[place]) < from || Number(row[place]) > to;
    }).map((place) => `${row['id']} holds ${place} ${row[place]}, which is outside the range`),
  );
  return [
    ...overlaps.map(({ one, other }) => `${one} and ${other} overlap and share a tag`),
    ...overbooked.map(({ load, at }) => `${load} of ${link.bandwidth} Mbps at ${at}`),
    ...due.filter((row) => !held.includes(row)).map((row) => `not held: ${row}`),
    ...held.filter((row) => !due.includes(row)).map((row) => `held without a reservation: ${row}`),
    ...outside,
  ];
}
