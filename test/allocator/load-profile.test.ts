import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type LoadLimits, LoadProfile } from '../../src/allocator/load-profile.ts';
import { agree } from './agree.ts';

/** Of long random histories; more by `npm run prove`. */
const SEEDS = Array.from({ length: Number(process.env['PROVE_SEEDS'] ?? 2) }, (_, index) => index + 1);

/** A stretch over which nothing changes. */
interface LoadSegment {
  start: number;
  end: number;
  load: number;
  live: number;
}

/** The stretches that make up `[start, end)`, in order. */
function* segments(profile: LoadProfile, start: number, end: number): Generator<LoadSegment> {
  const cursor = profile.from(start);
  for (let from = start; from < end; cursor.advance()) {
    const until = Math.min(end, cursor.end());
    yield { start: from, end: until, load: cursor.load(), live: cursor.live() };
    from = until;
  }
}

describe('LoadProfile', () => {
  test('adds overlapping reservations: 100 + 400 = 500 Mbps between 15 and 20', () => {
    const profile = docstring();
    expect(profile.peak(0, 40)).toBe(500);
    expect(profile.peak(20, 30)).toBe(400);
    expect([...segments(profile, 0, 40)]).toEqual([
      { start: 0, end: 10, load: 0, live: 0 },
      { start: 10, end: 15, load: 100, live: 1 },
      { start: 15, end: 20, load: 500, live: 2 },
      { start: 20, end: 30, load: 400, live: 1 },
      { start: 30, end: 40, load: 0, live: 0 },
    ]);
  });

  test.each([
    { rule: 'the instant of an end is free', from: 30, to: 31, peak: 0 },
    { rule: 'the last instant before an end is taken', from: 29, to: 30, peak: 400 },
    { rule: 'the instant of a start is taken', from: 10, to: 11, peak: 100 },
    { rule: 'what ends as another starts does not meet it', from: 9, to: 10, peak: 0 },
    { rule: 'the end of the question is not part of it', from: 10, to: 15, peak: 100 },
    { rule: 'one millisecond is enough to meet', from: 10, to: 16, peak: 500 },
    { rule: 'a question within one segment finds its load', from: 16, to: 18, peak: 500 },
    { rule: 'before everything there is nothing', from: -9, to: 10, peak: 0 },
  ])('periods are half-open: $rule', ({ from, to, peak }) => {
    expect(docstring().peak(from, to)).toBe(peak);
  });

  test('each of two equal deltas at one instant counts', () => {
    const profile = new LoadProfile();
    profile.add(10, 20, 100);
    profile.add(10, 20, 100);
    profile.add(10, 30, 100);
    expect(profile.peak(10, 11)).toBe(300);
    expect(profile.peak(20, 30)).toBe(100);
    profile.add(10, 20, -100);
    expect(profile.peak(10, 20)).toBe(200);
  });

  test('an end and a start of the same size at one instant leave one segment', () => {
    const profile = new LoadProfile();
    profile.add(10, 20, 100);
    profile.add(20, 30, 100);
    expect([...segments(profile, 10, 30)]).toEqual([{ start: 10, end: 30, load: 100, live: 1 }]);
  });

  test('steps are appended; one at which nothing changes leaves one segment', () => {
    const profile = new LoadProfile();
    profile.append({ time: 10, load: 100, live: 1 });
    profile.append({ time: 20, load: 100, live: 1 });
    profile.append({ time: 30, load: 0, live: 0 });
    expect([...segments(profile, 10, 40)]).toEqual([
      { start: 10, end: 30, load: 100, live: 1 },
      { start: 30, end: 40, load: 0, live: 0 },
    ]);
  });

  test('where two take over from one of their size, the number of reservations changes', () => {
    const profile = new LoadProfile();
    profile.add(10, 20, 200);
    for (let one = 0; one < 2; one += 1) profile.add(20, 30, 100);
    expect([...segments(profile, 10, 30)]).toEqual([
      { start: 10, end: 20, load: 200, live: 1 },
      { start: 20, end: 30, load: 200, live: 2 },
    ]);
    profile.add(20, 30, -100);
    expect(profile.extremes(10, 30)).toEqual({ peak: 200, low: 100, live: 1 });
  });

  test.each([
    { limit: 500, duration: 40, from: 0, earliest: 0 },
    { limit: 499, duration: 15, from: 0, earliest: 0 },
    { limit: 499, duration: 16, from: 0, earliest: 20 },
    { limit: 399, duration: 16, from: 0, earliest: 30 },
    { limit: 100, duration: 5, from: 10, earliest: 10 },
    { limit: 100, duration: 5, from: 11, earliest: 30 },
    { limit: 0, duration: 10, from: 0, earliest: 0 },
    { limit: 0, duration: 10, from: 1, earliest: 30 },
    { limit: 0, duration: 10, from: 35, earliest: 35 },
  ])(
    'a load of at most $limit Mbps for $duration from $from on starts at $earliest',
    ({ limit, duration, from, earliest }) => {
      expect(docstring().earliest(from, duration, { load: limit })).toBe(earliest);
    },
  );

  test('agrees with an array of milliseconds on random histories', () => {
    const horizon = 40;
    const change = fc.record({
      start: fc.nat(horizon - 2),
      length: fc.integer({ min: 1, max: 12 }),
      load: fc.integer({ min: 1, max: 3 }),
      release: fc.option(fc.nat(30), { nil: undefined }),
      question: question(horizon),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30, size: 'max' }), (changes) => {
        const both = new Both(horizon);
        for (const { release, question, ...added } of changes) {
          if (release === undefined) both.add(added.start, added.start + added.length, added.load);
          else both.release(release);
          both.agreeOn(question);
        }
        both.releaseAll();
      }),
      { numRuns: 150 * SEEDS.length },
    );
  });

  test.each(SEEDS.slice(1))(
    'agrees where thousands of breakpoints make blocks split and vanish (seed %i)',
    (seed) => {
      const horizon = 30_000;
      const upTo = random(seed);
      const both = new Both(horizon);
      const ask = (highest: number): void => {
        for (const length of [1 + upTo(600), 1 + upTo(horizon)]) {
          both.agreeOn({ from: upTo(horizon), length, limit: upTo(highest) });
        }
      };
      for (let turn = 0; turn < 3000; turn += 1) {
        // Most are short; the long ones lie over whole blocks.
        const length = 1 + upTo(turn % 4 === 0 ? horizon / 2 : 600);
        const start = upTo(horizon - length);
        both.add(start, start + length, 1 + upTo(9));
        if (turn % 20 === 0) ask(turn);
      }
      // A block holds at most 1,024 breakpoints.
      expect([...segments(both.profile, 0, horizon)].length).toBeGreaterThan(4096);
      for (let turn = 0; turn < 2500; turn += 1) {
        both.release(upTo(3000));
        if (turn % 20 === 0) ask(2500 - turn);
      }
      both.releaseAll();
    },
  );

  test('a block knows its own peak after a split: the last of 2,000 rising steps is the highest', () => {
    const profile = new LoadProfile();
    for (let step = 1; step <= 2000; step += 1) {
      profile.add(step, step + 1, step);
      if (step % 100 !== 0) continue;
      for (let last = 1; last <= step; last += 1) agree(profile.peak(0, last + 1), last);
    }
  });

  test.each(SEEDS.slice(1))(
    'agrees while thousands of breakpoints are added and removed (seed %i)',
    (seed) => {
      const horizon = 4000;
      const upTo = random(seed);
      const both = new Both(horizon);
      for (let turn = 0; turn < 9000; turn += 1) {
        if (turn < 3000 || upTo(2) === 0) {
          const start = upTo(horizon - 4);
          both.add(start, start + 1 + upTo(3), 1 + upTo(2));
        } else both.release(upTo(horizon));
        if (turn % 25 === 0) both.agreeOn({ from: upTo(horizon), length: 1 + upTo(horizon), limit: upTo(9) });
      }
      both.releaseAll();
    },
  );
});

/** Makes whole numbers below a bound (mulberry32), the same for the same seed. */
function random(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}

function docstring(): LoadProfile {
  const profile = new LoadProfile();
  profile.add(10, 20, 100);
  profile.add(15, 30, 400);
  return profile;
}

interface Question {
  from: number;
  length: number;
  limit: number;
}

function question(horizon: number): fc.Arbitrary<Question> {
  return fc.record({
    from: fc.nat(horizon - 1),
    length: fc.integer({ min: 1, max: Math.ceil(horizon / 3) }),
    limit: fc.nat(6),
  });
}

/** A profile beside an array that holds the load of every millisecond from 0 to a horizon. */
class Both {
  readonly profile = new LoadProfile();
  readonly #loads: number[];
  readonly #lives: number[];
  readonly #added: [start: number, end: number, load: number][] = [];

  constructor(horizon: number) {
    this.#loads = Array.from({ length: horizon }, () => 0);
    this.#lives = this.#loads.slice();
  }

  add(start: number, end: number, load: number): void {
    this.#added.push([start, Math.min(end, this.#loads.length), load]);
    this.#change(start, Math.min(end, this.#loads.length), load);
  }

  /** Removes one of the added loads. */
  release(pick: number): void {
    const [released] = this.#added.splice(pick % Math.max(1, this.#added.length), 1);
    if (released) this.#change(released[0], released[1], -released[2]);
  }

  releaseAll(): void {
    while (this.#added.length > 0) this.release(0);
    const everything = { start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY };
    expect([...segments(this.profile, everything.start, everything.end)]).toEqual([
      { ...everything, load: 0, live: 0 },
    ]);
    expect(this.profile.extremes(0, this.#loads.length)).toEqual({ peak: 0, low: 0, live: 0 });
  }

  agreeOn({ from, length, limit }: Question): void {
    const to = from + length;
    // Sometimes the number of reservations is a limit too, and sometimes the only one.
    const load = from % 5 === 0 ? this.#peak(this.#loads, 0, this.#loads.length) : limit;
    const limits = from % 3 === 0 ? { load, live: Math.ceil(limit / 2) } : { load };
    const loads = this.#loads.slice(from, to);
    if (to > this.#loads.length) loads.push(0);
    const found = {
      peak: this.profile.peak(from, to),
      extremes: this.profile.extremes(from, to),
      segments: [...segments(this.profile, from, to)],
      earliest: this.profile.earliest(from, length, limits),
      firstAbove: this.profile.firstAbove(from, to, limits),
      firstBelow: this.profile.firstBelow(from, to, limit),
    };
    const due = {
      peak: this.#peak(this.#loads, from, to),
      extremes: {
        peak: this.#peak(this.#loads, from, to),
        low: Math.min(...loads),
        live: this.#peak(this.#lives, from, to),
      },
      segments: this.#segments(from, to),
      earliest: this.#earliest(from, length, limits),
      firstAbove: this.#first(from, to, (at) => this.#isAbove(at, limits)),
      firstBelow: this.#first(from, to, (at) => this.#load(at) < limit),
    };
    agree(found, due, { from, to, limits });
  }

  #change(start: number, end: number, delta: number): void {
    this.profile.add(start, end, delta);
    for (let at = start; at < end; at += 1) {
      this.#loads[at] = this.#load(at) + delta;
      this.#lives[at] = this.#live(at) + Math.sign(delta);
    }
  }

  #load(at: number): number {
    return this.#loads[at] ?? 0;
  }

  #live(at: number): number {
    return this.#lives[at] ?? 0;
  }

  #isAbove(at: number, { load, live = Number.POSITIVE_INFINITY }: LoadLimits): boolean {
    return this.#load(at) > load || this.#live(at) > live;
  }

  #peak(values: readonly number[], from: number, to: number): number {
    let peak = 0;
    for (let at = from; at < to; at += 1) peak = Math.max(peak, values[at] ?? 0);
    return peak;
  }

  #segments(from: number, to: number): LoadSegment[] {
    const found: LoadSegment[] = [];
    for (let at = from; at < to; at += 1) {
      const [load, live] = [this.#load(at), this.#live(at)];
      const last = found.at(-1);
      if (last?.load === load && last.live === live) last.end = at + 1;
      else found.push({ start: at, end: at + 1, load, live });
    }
    return found;
  }

  #earliest(from: number, duration: number, limits: LoadLimits): number {
    let start = from;
    for (let at = from; at < start + duration; at += 1) if (this.#isAbove(at, limits)) start = at + 1;
    return start;
  }

  #first(from: number, until: number, is: (at: number) => boolean): number {
    for (let at = from; at < until; at += 1) if (is(at)) return at;
    return until;
  }
}
