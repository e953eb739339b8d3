import { join } from 'node:path';
import { openStores } from '../../src/store/stores.ts';
import { BareRows, RowReader } from './bare-rows.ts';
import type { Benchmark } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { horizonOf, makeDatabase, WIDE_LINKS } from './live-rows.ts';
import { alternate, milliseconds } from './measure.ts';
import { allocatorOn, booked, requestFor } from './requests.ts';
import { seeded } from './seeded.ts';

const LIVE = 100_000;
const WAITING = 16;
/** Bookings in a turn: one at a time, and in all where several wait. */
const TURN = 48;
const TURN_WAITING = 10 * WAITING;

/** What the allocator adds to the durable writing of its rows, on SQLite. */
export const durableBookings: Benchmark = {
  name: 'durable-bookings',
  method: `Allocator on a SQLite file with ${LIVE} live on one link, in turns of ${TURN}: one at a time; as many waiting at once as said; and the rows of as many other bookings written again by bare node:sqlite, a durable transaction each (WAL, synchronous FULL; same columns and indexes, no checks), into a copy on the same disk`,
  async run({ quick }) {
    const folder = folderOnDisk();
    const [path, barePath] = [join(folder, 'ours.sqlite'), join(folder, 'bare.sqlite')];
    const [link] = WIDE_LINKS;
    if (!link) throw new RangeError('there is no link');
    const held = { link, live: LIVE, from: Date.now() + 3_600_000 };
    await makeDatabase(path, [held]);
    const bare = new BareRows(barePath, path);
    const stores = await openStores(path);
    const allocator = allocatorOn(stores.reservations);
    const reader = new RowReader(path);
    const random = seeded(4);
    const book = (): Promise<string> =>
      booked(allocator, requestFor(link, { from: held.from, horizon: horizonOf(held) }, random));
    const rounds = await alternate(quick ? 5 : 21, [
      [
        'bare',
        async () => {
          const ids = await Promise.all(Array.from({ length: TURN }, book));
          const rows = ids.map((id) => reader.rowsOf(id));
          const took = await milliseconds(() => {
            for (const row of rows) bare.write(row);
          });
          return took / TURN;
        },
      ],
      [
        'one',
        async () => {
          const took = await milliseconds(async () => {
            for (let time = 0; time < TURN; time += 1) await book();
          });
          return took / TURN;
        },
      ],
      [
        'waiting',
        async () => {
          let left = TURN_WAITING;
          const took = await milliseconds(() =>
            Promise.all(
              Array.from({ length: WAITING }, async () => {
                while (left-- > 0) await book();
              }),
            ),
          );
          return took / TURN_WAITING;
        },
      ],
    ]);
    await stores.close();
    bare.close();
    const perSecond = (name: 'bare' | 'one' | 'waiting'): string => (1000 / rounds.median(name)).toFixed(0);
    return [
      {
        name: 'durable-bookings, one at a time',
        what: `bookings per second one at a time at ${LIVE} live ÷ bare transactions of the same rows`,
        ratio: rounds.ratio('bare', 'one'),
        limit: 0.75,
        bound: 'atLeast',
        measured: `${perSecond('one')}/s ÷ ${perSecond('bare')}/s`,
      },
      {
        name: `durable-bookings, ${WAITING} waiting`,
        what: `bookings per second with ${WAITING} waiting on one link ÷ one at a time`,
        ratio: rounds.ratio('one', 'waiting'),
        limit: 2,
        bound: 'atLeast',
        measured: `${perSecond('waiting')}/s ÷ ${perSecond('one')}/s`,
      },
    ];
  },
};
