import { setBounded } from '../contract/bounded-map.ts';
import { isWithin } from '../contract/instants.ts';

/** How many values are kept. A status list has some 50 KiB at most. */
const MOST_KEPT = 64;

/**
 * Makes the value of a name once in a span, in milliseconds, however many ask; one that failed is made again. Values of
 * {@link MOST_KEPT} names are kept.
 *
 * @param make is given the value before; undefined where there is none, or it failed
 */
export function onceIn<Value>(
  span: number,
  now: () => number,
  make: (name: string, last?: Value) => Promise<Value>,
): (name: string) => Promise<Value> {
  const values = new Map<string, { at: number; value: Promise<Value> }>();
  return (name) => {
    const last = values.get(name);
    if (last && isWithin(last.at, span, now())) return last.value;
    const made = (last?.value ?? Promise.resolve(undefined)).catch(() => undefined);
    const next = { at: now(), value: made.then((before) => make(name, before)) };
    next.value.catch(() => values.get(name) === next && values.delete(name));
    setBounded(values, name, next, MOST_KEPT);
    return next.value;
  };
}
