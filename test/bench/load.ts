import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { linkId } from '../../src/contract/links.ts';
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
/** How many bookings on it are measured with nothing beside them. */
const BESIDE_ALONE = 21;
/** The first booking on a full link, by reading its rows. */
const LIMIT = 2.5;
/**
 * The longest wait of others, by a usual one: a durable booking takes about a millisecond, and what takes less than a
 * tenth of a second is not felt as a wait.
 */
const LIMIT_BESIDE = 100;

/** Reads a link's rows, as far as a calendar needs them, by node:sqlite alone, and does nothing with them. @returns milliseconds */
function readBare(database: DatabaseSync, link: string): number {
  const began = performance.now();
  const rows = database
    .prepare(
      `SELECT reservation, start_ms, end_ms, bandwidth, site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag, tenant
       FROM hop WHERE link = ? AND end_ms > ? AND deleted_ms IS NULL ORDER BY end_ms, start_ms`,
    )
    .iterate(link, Date.now());
  let read = 0;
  for (const row of rows) if (row['reservation'] !== null) read += 1;
  if (read < LIVE) throw new Error(`${link} has ${read} rows`);
  return performance.now() - began;
}

/** How long the first booking on a full link takes, and how long it holds up those on another. */
export const load: Benchmark = {
  name: 'load',
  method: `a new Allocator on a SQLite file each round: its first booking on a link with ${LIVE} live, while another link, which is in memory already, is booked over and over, one at a time; in turns with reading the same rows by bare node:sqlite`,
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
    const bare = new DatabaseSync(path, { readOnly: true });
    const waits: { longest: number; usual: number; ratio: number }[] = [];
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
          const meanwhile: number[] = [];
          while (loading) meanwhile.push(await milliseconds(bookBeside));
          const alone: number[] = [];
          for (let time = 0; time < BESIDE_ALONE; time += 1) alone.push(await milliseconds(bookBeside));
          const [longest, usual] = [Math.max(...meanwhile), median(alone)];
          waits.push({ longest, usual, ratio: longest / usual });
          again.push(await milliseconds(() => booked(allocator, requestFor(full, when, random))));
          return loaded;
        },
      ],
      ['bare', () => readBare(bare, linkId(full.site1, full.site2))],
    ]);
    bare.close();
    await stores.close();
    // The first round is not counted.
    const counted = (figure: 'longest' | 'usual' | 'ratio'): number =>
      median(waits.slice(1).map((wait) => wait[figure]));
    const known = median(again.slice(1));
    return [
      {
        name: 'load',
        what: `the first booking on a link with ${LIVE} live ÷ reading its rows bare`,
        ratio: rounds.ratio('load', 'bare'),
        limit: LIMIT,
        bound: 'atMost',
        measured: `${rounds.median('load').toFixed(0)} ms ÷ ${rounds.median('bare').toFixed(0)} ms; the second booking on it ${known.toFixed(1)} ms`,
      },
      {
        name: 'load, other links',
        what: 'the longest that a booking on another link takes meanwhile ÷ what one takes with nothing beside it',
        ratio: counted('ratio'),
        limit: LIMIT_BESIDE,
        bound: 'atMost',
        measured: `${counted('longest').toFixed(0)} ms ÷ ${counted('usual').toFixed(2)} ms`,
      },
    ];
  },
};
