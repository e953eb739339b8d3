import { describe, expect, test } from 'vitest';
import { SortedTimes, type TimeCursor } from '../../src/allocator/sorted-times.ts';
import { seeded } from '../bench/seeded.ts';

interface Entry {
  time: number;
  slot: number;
}

function walk(cursor: TimeCursor): Entry[] {
  const entries: Entry[] = [];
  for (let time = cursor.time(); time !== undefined; time = cursor.time()) {
    entries.push({ time, slot: cursor.slot() });
    cursor.advance();
  }
  return entries;
}

function sorted(entries: readonly Entry[]): Entry[] {
  return entries.toSorted((one, other) => one.time - other.time || one.slot - other.slot);
}

describe('SortedTimes', () => {
  test('is empty without entries: it has no first entry and an empty walk', () => {
    const times = new SortedTimes();
    expect(times.first()).toBeUndefined();
    expect(walk(times.upFrom(0))).toEqual([]);
    expect(walk(times.downFrom(0))).toEqual([]);
  });

  test('sorts equal times by slot, and removes each of them alone', () => {
    const times = new SortedTimes();
    for (const slot of [3, 1, 2]) times.add(10, slot);
    expect(walk(times.upFrom(10)).map(({ slot }) => slot)).toEqual([1, 2, 3]);
    times.remove(10, 2);
    expect(walk(times.upFrom(10)).map(({ slot }) => slot)).toEqual([1, 3]);
    expect(() => times.remove(10, 2)).toThrow(RangeError);
    expect(() => times.remove(11, 1)).toThrow(RangeError);
  });

  test.each([
    { seed: 1, span: 40 },
    { seed: 2, span: 1000 },
    { seed: 3, span: 1e12 },
  ])(
    'agrees with a sorted list while thousands are added and removed (times up to $span)',
    ({ seed, span }) => {
      const random = seeded(seed);
      const times = new SortedTimes();
      let list: Entry[] = [];
      for (let step = 0; step < 6000; step += 1) {
        // It grows for a while, then shrinks until it is empty.
        const grows = random() < (step < 4000 ? 0.8 : 0.2);
        if (grows || list.length === 0) {
          const entry = { time: Math.floor(random() * span), slot: step };
          times.add(entry.time, entry.slot);
          list.push(entry);
        } else {
          const [gone] = list.splice(Math.floor(random() * list.length), 1);
          if (gone) times.remove(gone.time, gone.slot);
        }
        if (step % 300 !== 0) continue;
        list = sorted(list);
        const at = Math.floor(random() * span);
        expect(times.first()).toEqual(list[0]);
        expect(walk(times.upFrom(at))).toEqual(list.filter(({ time }) => time >= at));
        expect(walk(times.downFrom(at))).toEqual(list.filter(({ time }) => time <= at).toReversed());
      }
    },
  );
});
