import { expect, test } from 'vitest';
import type { Demand } from '../../src/allocator/demand.ts';
import { type BandwidthPart, fastest } from '../../src/allocator/fastest.ts';
import { seeded } from '../bench/seeded.ts';

/** The milliseconds from `start` to before `end` as one part, with bounds that are as far off as a caller's may be. */
function partOf(free: readonly number[], start: number, end: number, slack: number): BandwidthPart {
  const within = free.slice(start, end);
  return {
    start,
    end,
    least: Math.max(0, Math.min(...within) - slack),
    most: Math.max(...within) + slack,
    steps: within.length,
    startOf: (step) => start + step,
    freeIn: (step) => within[step] ?? 0,
  };
}

/** Whether tags are free for the whole of a period: where they change, all are held for an instant. */
function areTagsFree(changes: readonly number[], start: number, end: number): boolean {
  return !changes.some((change) => start < change && change < end);
}

/** By trying every rate and every start. */
function tried(
  free: readonly number[],
  changes: readonly number[],
  most: number,
  volume: number,
): Demand | undefined {
  let best: Demand | undefined;
  for (let bandwidth = most; bandwidth > 0; bandwidth -= 1) {
    const duration = Math.ceil(volume / (125 * bandwidth));
    for (let start = 0; start + duration <= Math.min(free.length, best?.end ?? free.length); start += 1) {
      const end = start + duration;
      const isFree = free.slice(start, end).every((mbps) => mbps >= bandwidth);
      if (isFree && areTagsFree(changes, start, end)) best = { start, end, bandwidth };
    }
  }
  return best;
}

test('the fastest transfer through parts of any length is that which a trial of every rate and start finds', () => {
  let found = 0;
  for (let seed = 1; seed <= 400; seed += 1) {
    const random = seeded(seed);
    const upTo = (bound: number): number => Math.floor(random() * bound);
    const [length, highest] = [20 + upTo(60), 3 + upTo(9)];
    const free: number[] = [];
    while (free.length < length) {
      const mbps = upTo(6) === 0 ? 0 : upTo(highest + 1);
      for (let time = 1 + upTo(5); time > 0 && free.length < length; time -= 1) free.push(mbps);
    }
    const changes = Array.from({ length: upTo(5) }, () => upTo(length));
    const most = 1 + upTo(highest + 2);
    const volume = 1 + upTo(125 * most * (1 + upTo(length)));
    const parts: BandwidthPart[] = [];
    for (let start = 0; start < length; ) {
      const end = Math.min(length, start + 1 + upTo(12));
      parts.push(partOf(free, start, end, upTo(3)));
      start = end;
    }
    const transfer = {
      most,
      volume,
      tagsFrom: (from: number, duration: number): number => {
        let start = from;
        while (!areTagsFree(changes, start, start + duration)) start += 1;
        return start;
      },
      tagsWithin: ({ start, end }: { start: number; end: number }): number => {
        const edges = [0, ...changes, length].toSorted((one, other) => one - other);
        const lengths = edges.map((edge, index) => {
          const next = edges[index + 1] ?? edge;
          return edge < end && next > start ? next - edge : 0;
        });
        return Math.max(...lengths) + upTo(3);
      },
      tagsSince: (until: number): number => {
        let start = until - 1;
        while (start > 0 && areTagsFree(changes, start - 1, until)) start -= 1;
        return start;
      },
    };
    const due = tried(free, changes, most, volume);
    expect({ seed, fastest: fastest(parts, length, transfer) }).toEqual({ seed, fastest: due });
    found += due && due.start > 0 ? 1 : 0;
  }
  expect(found).toBeGreaterThan(80);
});
