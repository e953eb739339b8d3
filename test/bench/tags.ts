import { TagLayer } from '../../src/allocator/tag-layer.ts';
import type { Benchmark } from './benchmark.ts';
import { alternate, milliseconds } from './measure.ts';
import { type Random, seeded } from './seeded.ts';

const DAY = 24 * 3_600_000;
const TAGS = 4094;
const LIVE = 100_000;
const CHOICES = 200;
/** Microseconds. */
const LIMIT = 200;

interface Held {
  tag: number;
  start: number;
  end: number;
}

/** Every tag held and free by turns, a day each on average, until there are so many holds in all. */
function fill(layer: TagLayer, random: Random): Held[] {
  const held: Held[] = [];
  const until = Array.from({ length: TAGS }, () => 0);
  while (held.length < LIVE) {
    for (let tag = 1; tag <= TAGS && held.length < LIVE; tag += 1) {
      const start = (until[tag - 1] ?? 0) + 1 + Math.floor(random() * 2 * DAY);
      const end = start + 1 + Math.floor(random() * 2 * DAY);
      layer.hold(tag, start, end);
      until[tag - 1] = end;
      held.push({ tag, start, end });
    }
  }
  return held;
}

/** The smallest of some numbers: what a choice among as many tags can't do without, if it looks at each. */
function scan(numbers: Float64Array): number {
  let smallest = Number.POSITIVE_INFINITY;
  for (const number of numbers) if (number < smallest) smallest = number;
  return smallest;
}

/** What the choice of one tag by best fit costs where a layer has all tags that there can be. */
export const tags: Benchmark = {
  name: 'tags',
  method: `TagLayer of ${TAGS} tags with ${LIVE} live holds: bestFit, hold, and release of another, in turns of ${CHOICES} with as many linear scans of ${TAGS} numbers; the limit is in time, the scans are for comparison`,
  async run({ quick }) {
    const random = seeded(3);
    const layer = new TagLayer([1, TAGS]);
    const held = fill(layer, random);
    const horizon = Math.max(...held.slice(-TAGS).map(({ start }) => start));
    // In no order of time, so that what is let go lies anywhere.
    held.sort(() => random() - 0.5);
    let next = 0;
    const choose = (): void => {
      const start = Math.floor(random() * horizon);
      const end = start + 1 + Math.floor(random() * 2 * DAY);
      const tag = layer.bestFit(start, end, 0);
      if (tag === undefined) return;
      layer.hold(tag, start, end);
      const gone = held[next];
      if (gone) layer.release(gone.tag, gone.start, gone.end);
      held[next] = { tag, start, end };
      next = (next + 1) % held.length;
    };
    const numbers = Float64Array.from({ length: TAGS }, random);
    let sum = 0;
    const times = (work: () => void) => () => {
      for (let time = 0; time < CHOICES; time += 1) work();
    };
    const rounds = await alternate(quick ? 11 : 41, [
      ['choice', () => milliseconds(times(choose))],
      [
        'scan',
        () =>
          milliseconds(
            times(() => {
              sum += scan(numbers);
            }),
          ),
      ],
    ]);
    if (!Number.isFinite(sum)) throw new RangeError('nothing was scanned');
    const micros = (name: 'choice' | 'scan'): number => (rounds.median(name) / CHOICES) * 1000;
    return [
      {
        name: 'tags',
        what: `a tag chosen by best fit among ${TAGS}, taken, and another let go ÷ ${LIMIT} µs`,
        ratio: micros('choice') / LIMIT,
        limit: 1,
        bound: 'atMost',
        measured: `${micros('choice').toFixed(1)} µs; ${rounds.ratio('choice', 'scan').toFixed(1)} × a linear scan of ${micros('scan').toFixed(2)} µs`,
      },
    ];
  },
};
