import { join } from 'node:path';
import { openStores } from '../../src/store/stores.ts';
import type { Benchmark } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { horizonOf, makeDatabase, WIDE_LINKS } from './live-rows.ts';
import { alternate, median, milliseconds } from './measure.ts';
import { allocatorOn, booked, requestFor } from './requests.ts';
import { seeded } from './seeded.ts';

const LIVE = 50_000;
/** Live reservations on the link that others book meanwhile. */
const LIVE_BESIDE = 1000;
/** Milliseconds: for the first decision on a link, and for the longest wait of others. */
const LIMIT = 300;
const LIMIT_BESIDE = 100;

/** How long the first booking on a full link takes, and how long it holds up those on another. */
export const load: Benchmark = {
  name: 'load',
  method: `a new Allocator on a SQLite file each round: its first booking on a link with ${LIVE} live, while another link, which is in memory already, is booked over and over, one at a time; both limits are in time`,
  async run({ quick }) {
    const path = join(folderOnDisk(), 'ours.sqlite');
    const [full, beside] = WIDE_LINKS;
    if (!full || !beside) throw new RangeError('there are not two links');
    const from = Date.now() + 3_600_000;
    const held = { link: full, live: LIVE, from };
    await makeDatabase(path, [held, { link: beside, live: LIVE_BESIDE, from }]);
    const stores = await openStores(path);
    const random = seeded(6);
    const when = { from, horizon: horizonOf(held) };
    const waits: number[] = [];
    const again: number[] = [];
    const rounds = await alternate(quick ? 5 : 15, [
      [
        'load',
        async () => {
          const allocator = allocatorOn(stores.reservations);
          const bookBeside = (): Promise<string> => booked(allocator, requestFor(beside, when, random));
          await bookBeside();
          let loading = true;
          const loaded = milliseconds(() => booked(allocator, requestFor(full, when, random))).finally(() => {
            loading = false;
          });
          let longest = 0;
          while (loading) longest = Math.max(longest, await milliseconds(bookBeside));
          waits.push(longest);
          again.push(await milliseconds(() => booked(allocator, requestFor(full, when, random))));
          return loaded;
        },
      ],
    ]);
    await stores.close();
    // The first round is not counted.
    const [wait, known] = [median(waits.slice(1)), median(again.slice(1))];
    return [
      {
        name: 'load',
        what: `the first booking on a link with ${LIVE} live ÷ ${LIMIT} ms`,
        ratio: rounds.median('load') / LIMIT,
        limit: 1,
        bound: 'atMost',
        measured: `${rounds.median('load').toFixed(0)} ms; the second booking on it ${known.toFixed(1)} ms`,
      },
      {
        name: 'load, other links',
        what: `the longest that a booking on another link waits meanwhile ÷ ${LIMIT_BESIDE} ms`,
        ratio: wait / LIMIT_BESIDE,
        limit: 1,
        bound: 'atMost',
        measured: `${wait.toFixed(0)} ms`,
      },
    ];
  },
};
