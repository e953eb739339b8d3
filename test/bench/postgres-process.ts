import { ratePerSecond } from './measure.ts';
import { IN_FLIGHT, LINKS, type Turn, writers } from './postgres-writers.ts';
import { seeded } from './seeded.ts';

/** A process that writes when it is told to, and answers with how much it booked a second. Told both databases and a seed. */
process.once('disconnect', () => process.exit());
const [ours = '', bare = '', seed = ''] = process.argv.slice(2);
const write = await writers([ours, bare], Number(seed));
const random = seeded(Number(seed) + 1);
process.on('message', async ({ how, links, seconds }: Turn) => {
  const among = links === 'hot' ? LINKS.slice(0, 1) : LINKS;
  const rate = await ratePerSecond({ inFlight: IN_FLIGHT, seconds }, async () => {
    const link = among[Math.floor(random() * among.length)];
    if (link) await write[how](link);
  });
  process.send?.({ rate });
});
process.send?.({ ready: true });
