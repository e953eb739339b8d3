import { LoadProfile } from '../../src/allocator/load-profile.ts';
import type { Benchmark } from './benchmark.ts';
import { alternate, milliseconds } from './measure.ts';
import { type Random, seeded } from './seeded.ts';

const HOUR = 3_600_000;
/** How many reservations of short periods run at any instant, however many there are in all. */
const CONCURRENT = 100;
const FEW = 1000;
const DECISIONS = 2000;

/** Live reservations whose starts are spread evenly over a horizon and whose lengths over twice their mean. */
interface Shape {
  live: number;
  /** Milliseconds. */
  mean: number;
  horizon: number;
}

/** A link's bandwidth that stays at its size: each decision takes one reservation in and lets another one go. */
class SteadyProfile {
  readonly #profile = new LoadProfile();
  readonly #shape: Shape;
  readonly #random: Random;
  readonly #starts: Float64Array;
  readonly #ends: Float64Array;
  #next = 0;

  constructor(shape: Shape, random: Random) {
    this.#shape = shape;
    this.#random = random;
    this.#starts = new Float64Array(shape.live);
    this.#ends = new Float64Array(shape.live);
    for (let index = 0; index < shape.live; index += 1) this.#take(index);
  }

  /** The question and the update of so many bookings and deletions. */
  decide(times: number): void {
    for (let time = 0; time < times; time += 1) {
      const index = this.#next;
      this.#next = (index + 1) % this.#shape.live;
      this.#profile.add(this.#starts[index] ?? 0, this.#ends[index] ?? 0, -1);
      this.#take(index);
    }
  }

  #take(index: number): void {
    const start = Math.floor(this.#random() * this.#shape.horizon);
    const end = start + 1 + Math.floor(this.#random() * 2 * this.#shape.mean);
    // One Mbps each: no profile refuses, so that both sizes do the same work.
    if (this.#profile.peak(start, end) >= this.#shape.live) throw new RangeError('more than all at once');
    this.#profile.add(start, end, 1);
    this.#starts[index] = start;
    this.#ends[index] = end;
  }
}

/** What a decision about bandwidth costs on a link with many live reservations, by what it costs with few. */
export const calendarGrowth: Benchmark = {
  name: 'calendar-growth',
  method: `LoadProfile: peak, add, and add to release, in turns of ${DECISIONS}, many live against ${FEW} live; short: mean of an hour, ${CONCURRENT} at any instant in both; long: mean of a tenth of the horizon`,
  async run({ quick }) {
    const many = quick ? 100_000 : 1_000_000;
    const short = (live: number): Shape => ({ live, mean: HOUR, horizon: (live * HOUR) / CONCURRENT });
    const long = (live: number): Shape => ({ live, mean: 1000 * HOUR, horizon: 10_000 * HOUR });
    const compared = async (shape: (live: number) => Shape) => {
      const [large, small] = [
        new SteadyProfile(shape(many), seeded(1)),
        new SteadyProfile(shape(FEW), seeded(2)),
      ];
      const rounds = await alternate(quick ? 11 : 31, [
        ['many', () => milliseconds(() => large.decide(DECISIONS))],
        ['few', () => milliseconds(() => small.decide(DECISIONS))],
      ]);
      const micros = (name: 'many' | 'few'): string =>
        `${((rounds.median(name) / DECISIONS) * 1000).toFixed(2)} µs`;
      return { ratio: rounds.ratio('many', 'few'), measured: `${micros('many')} ÷ ${micros('few')}` };
    };
    const what = `a bandwidth decision with its update at ${many.toExponential(0)} live ÷ at ${FEW}`;
    return [
      {
        name: 'calendar-growth, short periods',
        what,
        limit: 2,
        bound: 'atMost',
        ...(await compared(short)),
      },
      { name: 'calendar-growth, long periods', what, limit: 6, bound: 'atMost', ...(await compared(long)) },
    ];
  },
};
