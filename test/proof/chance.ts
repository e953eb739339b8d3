/** Random choices that a seed repeats. They are not for secrets. */
export interface Chance {
  /** From 0 up to, and without, `limit`. */
  below(limit: number): number;
  /** True in `percent` of a hundred cases. */
  is(percent: number): boolean;
  /** One of a list; undefined of an empty one. */
  of<Item>(items: readonly Item[]): Item | undefined;
}

/** See {@link Chance}. The generator is mulberry32. */
export function chanceFrom(seed: number): Chance {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return { below, is: (percent) => below(100) < percent, of: (items) => items[below(items.length)] };
}
