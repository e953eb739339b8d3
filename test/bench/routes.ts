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

/** What each further link of a route costs. */
export const routes: Benchmark = {
  name: 'routes',
  method: `Allocator on one SQLite file, one booking at a time, durable, in turns of ${TURN} within 60 days`,
  async run({ quick }) {
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
    const rounds = await alternate(quick ? 5 : 15, [
      ['one', between(near)],
      ['many', between(FAR)],
    ]);
    await stores.close();
    return [
      {
        name: 'routes',
        what: `a booking over ${FAR.links} links ÷ over one`,
        ratio: rounds.ratio('many', 'one'),
        limit: 1 + 0.3 * (FAR.links - 1),
        bound: 'atMost',
        measured: `${rounds.median('many').toFixed(2)} ms ÷ ${rounds.median('one').toFixed(2)} ms`,
      },
    ];
  },
};
