import { join } from 'node:path';
import type { Allocator } from '../../src/allocator/allocator.ts';
import type { CreateRequest } from '../../src/allocator/decide.ts';
import { DAY, HOUR } from '../../src/contract/durations.ts';
import { openStores } from '../../src/store/stores.ts';
import type { Benchmark } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { alternate, milliseconds } from './measure.ts';
import { allocatorOn } from './requests.ts';
import { type Random, seeded } from './seeded.ts';
import { CONNECTED } from './serving.ts';

/** How many are live on the links that are compared: as many as this is made for, and a tenth. */
const [FEW, MANY] = [1000, 10_000];
const WAITING = 16;
/** Bookings in a turn. */
const TURN = 160;

const WHO = { experiment: 'exp', createdBy: 'user', expiry: Number.MAX_SAFE_INTEGER };

/** 1 to 9 Mbps for 6 hours within 90 days; or for a minute within the next hour, from which on everything is still to come. */
function request(isSoon: boolean, random: Random): CreateRequest {
  const start = Math.ceil(Date.now() + (isSoon ? random() * HOUR : HOUR + random() * 90 * DAY)) + 60_000;
  const [pair] = CONNECTED;
  if (!pair) throw new RangeError('there is no link');
  const end = start + (isSoon ? 60_000 : 6 * HOUR);
  return { ...WHO, ...pair, start, end, bandwidth: 1 + Math.floor(random() * 9) };
}

/** Makes so many requests, {@link WAITING} at once. @throws Error where one is not answered as is due */
async function makeAll(
  allocator: Allocator,
  requests: readonly CreateRequest[],
  isAccepted = true,
): Promise<void> {
  const left = [...requests];
  const take = async (): Promise<void> => {
    for (let next = left.pop(); next; next = left.pop()) {
      const outcome = await allocator.change([{ action: 'create', request: next }]);
      if (outcome.ok !== isAccepted) throw new Error(`not as is due: ${JSON.stringify(outcome)}`);
    }
  };
  await Promise.all(Array.from({ length: WAITING }, take));
}

/**
 * What many rows on a link cost those who read some of them: in turns on SQLite files, durable, with some and with many live of
 * 6 hours within 90 days on one link. Half of the bookings are within 90 days, half within the next hour; refused is all that the
 * link can carry, of which another has 1 Mbps for all of the time, with alternatives.
 */
export const rows: Benchmark = async ({ quick }) => {
  const folder = folderOnDisk();
  const random = seeded(21);
  const filled = async (live: number) => {
    const stores = await openStores(join(folder, `${live}.sqlite`));
    const allocator = allocatorOn(stores.reservations);
    const all = { ...request(false, random), start: Date.now() + 30_000, end: Date.now() + 95 * DAY };
    await makeAll(allocator, [{ ...all, bandwidth: 1 }]);
    await makeAll(
      allocator,
      Array.from({ length: live }, () => request(false, random)),
    );
    const time = (make: () => Promise<void>) => async (): Promise<number> =>
      (await milliseconds(make)) / TURN;
    const bookings = (): CreateRequest[] =>
      Array.from({ length: TURN }, (_, index) => request(index % 2 === 0, random));
    const whole = (): CreateRequest[] =>
      Array.from({ length: TURN }, () => ({ ...request(false, random), bandwidth: 100_000 }));
    return {
      stores,
      book: time(() => makeAll(allocator, bookings())),
      refuse: time(() => makeAll(allocator, whole(), false)),
    };
  };
  const [few, many] = [await filled(FEW), await filled(MANY)];
  const compare = await alternate(quick ? 5 : 15, [
    ['few', few.book],
    ['many', many.book],
    ['refused', many.refuse],
  ]);
  await Promise.all([few.stores.close(), many.stores.close()]);
  const shown = (figure: number): string => `${figure.toFixed(2)} ms`;
  const booked = `a booking with ${MANY} live ÷ with ${FEW}`;
  const refused = `a refusal with its alternatives ÷ a booking, both with ${MANY} live`;
  const terms = { limit: 2, bound: 'atMost' } as const;
  return [
    compare('many', 'few', { name: 'rows, booked', what: booked, ...terms }, shown),
    compare('refused', 'many', { name: 'rows, refused', what: refused, ...terms }, shown),
  ];
};
