import { setBounded } from '../contract/bounded.ts';
import { isWithin } from '../contract/instants.ts';

/**
 * Keeps promises by name. A failure is not kept, so that the next request makes the value again.
 *
 * @param most how many are kept; then the oldest is removed
 * @param now by which `span` is measured, in milliseconds. Default: a clock that stands
 */
export function keptPromises<Value>(most: number, now: () => number = () => 0) {
  const kept = new Map<string, { at: number; value: Promise<Value> }>();
  return {
    /** @param span how old the value may be, in milliseconds. Default: any age. @returns undefined where there is none */
    get(name: string, span?: number): Promise<Value> | undefined {
      const found = kept.get(name);
      return found && (span === undefined || isWithin(found.at, span, now())) ? found.value : undefined;
    },
    /** Keeps a value for all who ask meanwhile and later. @returns the value */
    keep(name: string, value: Promise<Value>): Promise<Value> {
      const entry = { at: now(), value };
      setBounded(kept, name, entry, most);
      value.catch(() => kept.get(name) === entry && kept.delete(name));
      return value;
    },
    delete: (name: string) => void kept.delete(name),
  };
}

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
  const values = keptPromises<Value>(MOST_KEPT, now);
  return (name) => {
    const fresh = values.get(name, span);
    if (fresh) return fresh;
    const made = (values.get(name) ?? Promise.resolve(undefined)).catch(() => undefined);
    return values.keep(
      name,
      made.then((before) => make(name, before)),
    );
  };
}
