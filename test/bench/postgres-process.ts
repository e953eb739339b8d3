import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { DAY, HOUR } from '../../src/contract/durations.ts';
import { type Link, linkId } from '../../src/contract/links.ts';
import { openStores } from '../../src/store/stores.ts';
import { ratePerSecond } from './measure.ts';
import { IN_FLIGHT, LINKS, type Turn } from './postgres.ts';
import { allocatorOn, booked, requestFor } from './requests.ts';
import { seeded } from './seeded.ts';

/** A process that writes when it is told to, and answers with how much it booked a second. Told both databases and a seed. */
process.once('disconnect', () => process.exit());
const [ours = '', bare = '', seed = ''] = process.argv.slice(2);
const allocator = allocatorOn((await openStores(ours)).reservations);
// It connects when it is used first.
const pool = new Pool({ connectionString: bare, max: IN_FLIGHT });
const random = seeded(Number(seed));
const when = { from: Date.now() + HOUR, horizon: 365 * DAY };
const write: Record<Turn['how'], (link: Link) => Promise<unknown>> = {
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
const choice = seeded(Number(seed) + 1);
process.on('message', async ({ how, links, seconds }: Turn) => {
  const among = links === 'hot' ? LINKS.slice(0, 1) : LINKS;
  const rate = await ratePerSecond({ inFlight: IN_FLIGHT, seconds }, async () => {
    const link = among[Math.floor(choice() * among.length)];
    if (link) await write[how](link);
  });
  process.send?.({ rate });
});
process.send?.({ ready: true });
