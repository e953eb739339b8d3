import { DatabaseSync } from 'node:sqlite';
import { builtInTopology } from '../../src/allocator/network.ts';
import { type Link, linkId } from '../../src/contract/links.ts';
import { spanOf } from '../../src/store/spans.ts';
import { openStores } from '../../src/store/stores.ts';

const MINUTE = 60_000;
/** From one start on a tag's turn to the next; it is held for an eighth to three quarters of it. The turns are staggered. */
const TURN = 120 * MINUTE;

/** The built-in links that can carry a tag's worth of traffic on all their tags at once, the widest first. */
export const WIDE_LINKS: readonly Link[] = builtInTopology()
  .links.filter(({ bandwidth }) => bandwidth >= 10_000)
  .toSorted((one, other) => other.bandwidth - one.bandwidth);

/** Live reservations on one link. */
export interface LiveReservations {
  link: Link;
  live: number;
  /** When the first of them may start, in milliseconds. */
  from: number;
  /** From one start on a tag's turn to the next, in milliseconds; lengths grow with it. Default 2 hours. */
  turn?: number;
  /** The most Mbps of one. Default 9. */
  most?: number;
}

/** How long so many live reservations on one link reach, in milliseconds: as each tag is held once in a turn. */
export function horizonOf({ link, live, turn = TURN }: LiveReservations): number {
  const [first, last] = link.site1_s_tags;
  return (Math.ceil(live / (last - first + 1)) + 1) * turn;
}

/**
 * Makes a server's SQLite file with live reservations that break no rule: every tag is held by one at a time, of 1 to
 * `most` Mbps each. The indexes are taken away while it is filled, and put back.
 *
 * @throws Error when what was written breaks a foreign key
 */
export async function makeDatabase(path: string, links: readonly LiveReservations[]): Promise<void> {
  await (await openStores(path)).close();
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  try {
    const indexes = database
      .prepare(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('reservation', 'hop')",
      )
      .all();
    database.function('span_of', (length) => spanOf(Number(length)));
    database.exec('PRAGMA synchronous = OFF; BEGIN');
    for (const { name } of indexes) database.exec(`DROP INDEX ${name}`);
    for (const reservations of links) fill(database, reservations);
    for (const { sql } of indexes) database.exec(String(sql));
    database.exec('COMMIT');
    if (database.prepare('PRAGMA foreign_key_check').all().length > 0) {
      throw new Error('the rows do not belong together');
    }
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } finally {
    database.close();
  }
}

function fill(database: DatabaseSync, { link, live, from, turn = TURN, most = 9 }: LiveReservations): void {
  const part = Math.floor(turn / 8);
  // The noise has a million values, which suits the default.
  const noisier = Math.max(1, Math.round(turn / TURN));
  const id = linkId(link.site1, link.site2);
  const [first, last] = link.site1_s_tags;
  const tags = last - first + 1;
  database.prepare('INSERT INTO link (id, version) VALUES (?, ?)').run(id, live);
  database
    .prepare(
      `INSERT INTO reservation (id, site1, site2, start_ms, end_ms, bandwidth, experiment, tenant, created_by, created_ms)
       WITH RECURSIVE
         number (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM number WHERE i + 1 < $live),
         placed (i, begins, noise) AS (
           SELECT i, $from + i * ${8 * part} / $tags, i * 2654435761 % 1000003 FROM number)
       SELECT printf('con_%s_%026d', $id, i), $site1, $site2,
         begins + noise * ${noisier} % ${2 * part},
         begins + noise * ${noisier} % ${2 * part} + ${part} + noise * ${7 * noisier} % ${5 * part},
         1 + noise % ${most},
         'exp_bench.example.org_' || noise % 100, 'exp_bench.example.org_' || noise % 100,
         'user_bench.example.org_' || noise % 50, $from
       FROM placed`,
    )
    .run({
      $id: id,
      $site1: link.site1,
      $site2: link.site2,
      // A number would be bound as a float, and divide as one.
      $live: BigInt(live),
      $from: BigInt(from),
      $tags: BigInt(tags),
    });
  database
    .prepare(
      `INSERT INTO hop (reservation, position, link, version, span, start_ms, end_ms, bandwidth,
         site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag, tenant)
       SELECT id, 0, $link, i + 1, span_of(end_ms - start_ms), start_ms, end_ms, bandwidth,
         $site1_s + i % $tags, $site1_c + i % $tags, $site2_s + i % $tags, $site2_c + i % $tags, tenant
       FROM (SELECT *, CAST(substr(id, -26) AS INTEGER) AS i FROM reservation
         WHERE id BETWEEN printf('con_%s_%026d', $link, 0) AND printf('con_%s_%026d', $link, $live))
       ORDER BY id`,
    )
    .run({
      $link: id,
      $live: BigInt(live),
      $tags: BigInt(tags),
      $site1_s: first,
      $site1_c: link.site1_c_tags[0],
      $site2_s: link.site2_s_tags[0],
      $site2_c: link.site2_c_tags[0],
    });
}
