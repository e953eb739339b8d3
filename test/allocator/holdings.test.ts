import { describe, expect, test } from 'vitest';
import { TAG_PLACES, type TagPlace } from '../../src/allocator/demand.ts';
import { Holdings } from '../../src/allocator/holdings.ts';
import { seeded } from '../bench/seeded.ts';
import { agree } from './agree.ts';

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

function someFree(held: readonly Held[], place: TagPlace, start: number, end: number): boolean {
  const tags = Array.from({ length: SIZES[place] }, (_, index) => index + 1);
  return tags.some((tag) => isFree(held, place, tag, start, end));
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
          const free = Array.from({ length: SIZES[place] }, (_, index) => index + 1).filter((tag) =>
            isFree(held, place, tag, start, end),
          );
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
        const fit = holdings.layers[place].bestFit(period.start, period.end, now);
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
