import { join } from 'node:path';
import { builtInTopology } from '../../src/allocator/network.ts';
import { openStores } from '../../src/store/stores.ts';
import type { Benchmark, Result } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { horizonOf, makeDatabase } from './live-rows.ts';
import { alternate, milliseconds } from './measure.ts';
import { allocatorOn, booked, requestFor } from './requests.ts';
import { seeded } from './seeded.ts';

/** The sites of the built-in network that lie one after the other; each link has room for all its tags at once. */
const CHAIN = ['es-upvehu', 'es-uc3m', 'fr-sophia', 'fr-slices', 'pl-poznan1', 'hu-sztaki'];
const LIVE = 20_000;
/** Bookings in a turn. */
const TURN = 48;
const HOPS = [2, 3, 5] as const;

/** What each further link of a route costs. */
export const hops: Benchmark = {
  name: 'hops',
  method: `Allocator on a SQLite file with ${LIVE} live on each of ${CHAIN.length - 1} links, one booking at a time, durable, in turns of ${TURN} between sites that are so many links apart; as a route is found without a lock and decided on in one transaction`,
  async run({ quick }) {
    const path = join(folderOnDisk(), 'ours.sqlite');
    const from = Date.now() + 3_600_000;
    const live = quick ? LIVE / 4 : LIVE;
    const { links } = builtInTopology();
    const held = CHAIN.slice(1).map((site, index) => {
      const ends = [CHAIN[index], site];
      const link = links.find(({ site1, site2 }) => ends.includes(site1) && ends.includes(site2));
      if (!link) throw new RangeError(`${ends.join(' – ')} is not a link`);
      return { link, live, from };
    });
    await makeDatabase(path, held);
    const [first] = held;
    if (!first) throw new RangeError('there is no link');
    const stores = await openStores(path);
    const allocator = allocatorOn(stores.reservations);
    const random = seeded(14);
    const over = (count: number) => async (): Promise<number> => {
      const [site1 = '', site2 = ''] = [CHAIN[0], CHAIN[count]];
      const sites = { ...first.link, site1, site2 };
      const took = await milliseconds(async () => {
        for (let time = 0; time < TURN; time += 1) {
          await booked(allocator, requestFor(sites, { from, horizon: horizonOf(first) }, random));
        }
      });
      return took / TURN;
    };
    const rounds = await alternate(quick ? 5 : 15, [
      ['1', over(1)],
      ...HOPS.map((count) => [`${count}`, over(count)] as const),
    ]);
    await stores.close();
    return HOPS.map(
      (count): Result => ({
        name: `hops, ${count}`,
        what: `a booking over ${count} links ÷ over one`,
        ratio: rounds.ratio(`${count}`, '1'),
        limit: 1 + 0.3 * (count - 1),
        bound: 'atMost',
        measured: `${rounds.median(`${count}`).toFixed(2)} ms ÷ ${rounds.median('1').toFixed(2)} ms`,
      }),
    );
  },
};
