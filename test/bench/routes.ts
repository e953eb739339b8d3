import { join } from 'node:path';
import { DAY, HOUR } from '../../src/contract/durations.ts';
import { openStores } from '../../src/store/stores.ts';
import type { Benchmark } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { alternate, milliseconds } from './measure.ts';
import { allocatorOn, booked, requestFor } from './requests.ts';
import { seeded } from './seeded.ts';
import { CONNECTED } from './serving.ts';

/** Two sites of the built-in network with so many links between them. */
const FAR = { site1: 'es-upvehu', site2: 'hu-sztaki', links: 5 };
/** Bookings in a turn. */
const TURN = 48;

/** What each further link of a route costs, in turns on one SQLite file, one booking at a time, durable, within 60 days. */
export const routes: Benchmark = async ({ quick }) => {
  const stores = await openStores(join(folderOnDisk(), 'ours.sqlite'));
  const allocator = allocatorOn(stores.reservations);
  const random = seeded(14);
  const [near] = CONNECTED;
  if (!near) throw new RangeError('there is no link');
  const between = (sites: typeof near) => async (): Promise<number> => {
    const when = { from: Date.now() + HOUR, horizon: 60 * DAY };
    const took = await milliseconds(async () => {
      for (let time = 0; time < TURN; time += 1) await booked(allocator, requestFor(sites, when, random));
    });
    return took / TURN;
  };
  const compare = await alternate(quick ? 5 : 15, [
    ['one', between(near)],
    ['many', between(FAR)],
  ]);
  await stores.close();
  const what = `a booking over ${FAR.links} links ÷ over one`;
  const limit = 1 + 0.3 * (FAR.links - 1);
  const about = { name: 'routes', what, limit, bound: 'atMost' } as const;
  return [compare('many', 'one', about, (figure) => `${figure.toFixed(2)} ms`)];
};
