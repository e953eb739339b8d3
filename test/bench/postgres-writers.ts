import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { builtInTopology } from '../../src/allocator/network.ts';
import { DAY, HOUR } from '../../src/contract/durations.ts';
import { type Link, linkId } from '../../src/contract/links.ts';
import { openStores } from '../../src/store/stores.ts';
import { allocatorOn, booked, requestFor } from './requests.ts';
import { seeded } from './seeded.ts';

/** What a process is told: how to write, to which links, and for how long. */
export interface Turn {
  how: 'ours' | 'bare';
  links: 'hot' | 'spread';
  seconds: number;
}

/** How many connections or bookings are under way in one process. */
export const IN_FLIGHT = 8;
const YEAR = 365 * DAY;

/** The tables of the bare writers: rows that are as long as a reservation's, and a row for each link. */
export const BARE_SCHEMA = `
  CREATE TABLE link (id TEXT PRIMARY KEY, version BIGINT NOT NULL);
  CREATE TABLE booking (
    id TEXT, part INTEGER, link TEXT NOT NULL, start_ms BIGINT NOT NULL, end_ms BIGINT NOT NULL, who TEXT NOT NULL,
    PRIMARY KEY (id, part)
  )`;

/** The links of the built-in topology that a booking of a benchmark always finds room on. */
export const LINKS = builtInTopology().links;

/** The ways to write, on their databases. @param seed of the requests */
export async function writers(
  [ours = '', bare = '']: readonly string[],
  seed: number,
): Promise<Record<Turn['how'], (link: Link) => Promise<unknown>>> {
  const allocator = allocatorOn((await openStores(ours)).reservations);
  // It connects when it is used first.
  const pool = new Pool({ connectionString: bare, max: IN_FLIGHT });
  const random = seeded(seed);
  const when = { from: Date.now() + HOUR, horizon: YEAR };
  return {
    ours: (link) => booked(allocator, requestFor(link, when, random)),
    bare: async (link) => {
      const { site1, site2, start, end, createdBy } = requestFor(link, when, random);
      const [id, name] = [randomUUID(), linkId(site1, site2)];
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        for (let part = 0; part < 3; part += 1) {
          await client.query(
            'INSERT INTO booking (id, part, link, start_ms, end_ms, who) VALUES ($1, $2, $3, $4, $5, $6)',
            [id, part, name, start, end, createdBy],
          );
        }
        await client.query('UPDATE link SET version = version + 1 WHERE id = $1', [name]);
        await client.query('COMMIT');
      } finally {
        client.release();
      }
    },
  };
}
