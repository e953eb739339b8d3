import { LinkCalendar } from '../../src/allocator/calendar.ts';
import type { TagRange } from '../../src/contract/links.ts';
import type { Benchmark } from './benchmark.ts';
import { alternate, milliseconds } from './measure.ts';
import { type Random, seeded } from './seeded.ts';

const DAY = 24 * 3_600_000;
const TAGS = 4094;
const LIVE = 100_000;
const CHOICES = 200;
/** Microseconds. */
const LIMIT = 200;

const RANGE: TagRange = [1, TAGS];
/** Bandwidth enough for all of them at once. */
const LINK = {
  site1: 'a',
  site2: 'b',
  bandwidth: LIVE + 1,
  site1_s_tags: RANGE,
  site1_c_tags: RANGE,
  site2_s_tags: RANGE,
  site2_c_tags: RANGE,
};

/** Every tag held and free by turns, a day each on average, until there are so many holds at each place. */
function fill(calendar: LinkCalendar, random: Random): number {
  let held = 0;
  let horizon = 0;
  const until = Array.from({ length: TAGS }, () => 0);
  while (held < LIVE) {
    for (let tag = 1; tag <= TAGS && held < LIVE; tag += 1) {
      const start = (until[tag - 1] ?? 0) + 1 + Math.floor(random() * 2 * DAY);
      const end = start + 1 + Math.floor(random() * 2 * DAY);
      const tags = { site1_s_tag: tag, site1_c_tag: tag, site2_s_tag: tag, site2_c_tag: tag };
      calendar.put(String(held), { start, end, bandwidth: 1, tags });
      until[tag - 1] = end;
      held += 1;
      horizon = start;
    }
  }
  return horizon;
}

/** The smallest of some numbers: what a choice among as many tags can't do without, if it looks at each. */
function scan(numbers: Float64Array): number {
  let smallest = Number.POSITIVE_INFINITY;
  for (const number of numbers) if (number < smallest) smallest = number;
  return smallest;
}

/** What the choice of tags by best fit costs where every place has all tags that there can be. */
export const tags: Benchmark = {
  name: 'tags',
  method: `LinkCalendar of ${TAGS} tags at each of the four places with ${LIVE} live reservations: a demand decided on, its tags taken at all four, and another reservation let go, in turns of ${CHOICES} with as many linear scans of ${TAGS} numbers; the limit is in time, the scans are for comparison`,
  async run({ quick }) {
    const random = seeded(3);
    const calendar = new LinkCalendar(LINK);
    const horizon = fill(calendar, random);
    const choose = (): void => {
      const start = Math.floor(random() * horizon);
      const end = start + 1 + Math.floor(random() * 2 * DAY);
      const decision = calendar.plan({ start, end, bandwidth: 1 }, 0);
      if (!decision.accepted) return;
      const id = String(Math.floor(random() * LIVE));
      calendar.put(id, { start, end, bandwidth: 1, tags: decision.tags });
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
        what: `four tags chosen by best fit among ${TAGS} each, taken, and another reservation let go ÷ ${LIMIT} µs`,
        ratio: micros('choice') / LIMIT,
        limit: 1,
        bound: 'atMost',
        measured: `${micros('choice').toFixed(1)} µs; ${rounds.ratio('choice', 'scan').toFixed(1)} × a linear scan of ${micros('scan').toFixed(2)} µs`,
      },
    ];
  },
};
