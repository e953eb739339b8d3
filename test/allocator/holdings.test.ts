import { describe, expect, test } from 'vitest';
import { TAG_PLACES, type TagPlace } from '../../src/allocator/demand.ts';
import { Holdings } from '../../src/allocator/holdings.ts';
import { seeded } from '../bench/seeded.ts';
import { agree } from './agree.ts';
import { bestFit, type Hold } from './best-fit.ts';

/** A reservation of one of a few tags at each place. */
interface Held {
  id: string;
  start: number;
  end: number;
  tags: Record<TagPlace, number>;
}

/** The places have 3, 2, 4 and 1 tags; tags 8 and 9 are outside every range. */
const SIZES: Record<TagPlace, number> = { site1_s_tag: 3, site1_c_tag: 2, site2_s_tag: 4, site2_c_tag: 1 };
const LINK = {
  site1_s_tags: [1, 3],
  site1_c_tags: [1, 2],
  site2_s_tags: [1, 4],
  site2_c_tags: [1, 1],
} satisfies ConstructorParameters<typeof Holdings>[0];

/** Whether a tag is free for a period, by looking at every reservation. */
function isFree(held: readonly Held[], place: TagPlace, tag: number, start: number, end: number): boolean {
  return !held.some((one) => one.tags[place] === tag && one.start < end && start < one.end);
}

function tagsAt(place: TagPlace): number[] {
  return Array.from({ length: SIZES[place] }, (_, index) => index + 1);
}

function someFree(held: readonly Held[], place: TagPlace, start: number, end: number): boolean {
  return tagsAt(place).some((tag) => isFree(held, place, tag, start, end));
}

/** The earliest start by trying `from` and every end after it. */
function earliest(held: readonly Held[], place: TagPlace, from: number, duration: number): number {
  const ends = held.map(({ end }) => end).filter((end) => end > from);
  const starts = [from, ...ends.toSorted((one, other) => one - other)];
  return starts.find((start) => someFree(held, place, start, start + duration)) ?? Number.NaN;
}

/** The last end by trying every start after `from`. */
function freeUntil(held: readonly Held[], place: TagPlace, from: number): number {
  const starts = held.map(({ start }) => start).filter((start) => start > from);
  const ends = [Number.POSITIVE_INFINITY, ...starts.toSorted((one, other) => other - one)];
  return ends.find((end) => someFree(held, place, from, end)) ?? from;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const PLACE = 'site1_s_tag';

/** Reservations of tags of one place, whose range is given. */
function holdingsOf(range: [number, number], held: readonly Hold[]): Holdings {
  const holdings = new Holdings({ ...LINK, site1_s_tags: range });
  for (const [index, [tag, start, end]] of held.entries()) {
    const tags = { site1_s_tag: tag, site1_c_tag: 9, site2_s_tag: 9, site2_c_tag: 9 };
    holdings.add(`r${index}`, { start, end, bandwidth: 1, tags });
  }
  return holdings;
}

describe('Holdings.bestFit', () => {
  test('best fit at 10:00: of tags held until 09:00, until 09:59 and never, it chooses the one held until 09:59', () => {
    const holdings = holdingsOf(
      [10, 12],
      [
        [10, 8 * HOUR, 9 * HOUR],
        [11, 8 * HOUR, 10 * HOUR - MINUTE],
      ],
    );
    expect(holdings.bestFit(PLACE, { start: 10 * HOUR, end: 11 * HOUR }, 0)).toBe(11);
  });

  test.each<{ rule: string; held: Hold[]; now?: number; fit: number | undefined }>([
    { rule: 'an empty layer gives its lowest tag', held: [], fit: 1 },
    {
      rule: 'a gap of nothing is the best',
      held: [
        [3, 40, 50],
        [2, 30, 49],
      ],
      fit: 3,
    },
    {
      rule: 'a gap after counts as one before',
      held: [
        [2, 40, 45],
        [3, 61, 70],
      ],
      fit: 3,
    },
    {
      rule: 'the smaller of both sides counts',
      held: [
        [1, 40, 44],
        [2, 30, 40],
        [2, 62, 70],
      ],
      fit: 2,
    },
    {
      rule: 'a tie goes to the lowest tag',
      held: [
        [3, 40, 45],
        [2, 40, 45],
      ],
      fit: 2,
    },
    {
      rule: 'a tie of a gap before and one after goes to the lowest tag',
      held: [
        [3, 40, 45],
        [2, 65, 70],
      ],
      fit: 2,
    },
    { rule: 'any neighbour is better than none', held: [[3, 1, 2]], fit: 3 },
    {
      rule: 'a held tag is passed over',
      held: [
        [1, 59, 61],
        [2, 40, 51],
      ],
      fit: 3,
    },
    {
      rule: 'none is left',
      held: [
        [1, 59, 61],
        [2, 40, 51],
        [3, 50, 60],
      ],
      fit: undefined,
    },
    { rule: 'time that has passed is no gap', held: [[3, 40, 45]], now: 45, fit: 1 },
    { rule: 'time that is still to pass is one', held: [[3, 40, 45]], now: 44, fit: 3 },
    {
      rule: 'what has passed does not hide a gap after',
      held: [
        [2, 40, 50],
        [3, 70, 80],
      ],
      now: 50,
      fit: 3,
    },
  ])('50 to 60 among tags 1 to 3: $rule', ({ held, now = 0, fit }) => {
    const period = { start: 50, end: 60 };
    expect(holdingsOf([1, 3], held).bestFit(PLACE, period, now)).toBe(fit);
    expect(bestFit(held, [1, 2, 3], period, now)?.tag).toBe(fit);
  });
});

describe('gaps of the tags agree with a search through every reservation', () => {
  test.each([
    { seed: 1, horizon: 30, steps: 2000, most: 12, longest: 8 },
    { seed: 2, horizon: 200, steps: 1500, most: 60, longest: 30 },
    // Many reservations, so that blocks split and vanish, and many that end at the same instant.
    { seed: 3, horizon: 6000, steps: 6000, most: 3000, longest: 12 },
    { seed: 4, horizon: 3000, steps: 5000, most: 2000, longest: 9 },
  ])('$most reservations within $horizon ms (seed $seed)', ({ seed, horizon, steps, most, longest }) => {
    const random = seeded(seed);
    const upTo = (bound: number): number => Math.floor(random() * bound);
    const holdings = new Holdings(LINK);
    const held: Held[] = [];
    for (let step = 0; step < steps; step += 1) {
      const grows = held.length === 0 || (held.length < most && random() < (step < steps / 2 ? 0.8 : 0.4));
      if (grows) {
        const start = upTo(horizon);
        const end = start + 1 + upTo(longest);
        const tagAt = (place: TagPlace): number => {
          const free = tagsAt(place).filter((tag) => isFree(held, place, tag, start, end));
          return free[upTo(free.length)] ?? 8 + upTo(2);
        };
        const tags = Object.fromEntries(TAG_PLACES.map((place) => [place, tagAt(place)])) as Held['tags'];
        const one = { id: `r${step}`, start, end, tags };
        held.push(one);
        holdings.add(one.id, { start, end, bandwidth: 1, tags });
      } else {
        const [gone] = held.splice(upTo(held.length), 1);
        if (gone) holdings.remove(gone.id);
      }
      if (held.length > 100 && step % 40 !== 0) continue;
      const [from, duration] = [upTo(horizon), 1 + upTo(2 * longest)];
      for (const place of TAG_PLACES) {
        const asked = { step, place, from, duration };
        agree(holdings.earliestTag(place, from, duration), earliest(held, place, from, duration), asked);
        agree(holdings.tagFreeUntil(place, from), freeUntil(held, place, from), asked);
        const period = { start: from, end: from + duration };
        const now = from - upTo(longest);
        const holds = held.map(({ tags, start, end }): Hold => [tags[place], start, end]);
        const fit = bestFit(holds, tagsAt(place), period, now)?.tag;
        agree(holdings.bestFit(place, period, now), fit, { ...asked, now });
      }
    }
    for (const { id } of held) holdings.remove(id);
    for (const place of TAG_PLACES) {
      expect(holdings.earliestTag(place, 0, horizon)).toBe(0);
      expect(holdings.tagFreeUntil(place, 0)).toBe(Number.POSITIVE_INFINITY);
    }
  });
});
