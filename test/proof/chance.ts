import { seeded } from '../bench/seeded.ts';

/** Random choices that a seed repeats. They are not for secrets. */
export interface Chance {
  /** From 0 up to, and without, `limit`. */
  below(limit: number): number;
  /** True in `percent` of a hundred cases. */
  is(percent: number): boolean;
  /** One of a list; undefined of an empty one. */
  of<Item>(items: readonly Item[]): Item | undefined;
}

/** See {@link Chance}. */
export function chanceFrom(seed: number): Chance {
  const random = seeded(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  return { below, is: (percent) => below(100) < percent, of: (items) => items[below(items.length)] };
}
