import { HOUR, MINUTE } from '../../contract/durations.ts';
/** A signing key's number and times, in milliseconds since the Unix epoch. */
export interface KeyRecord {
  /** 1, 2, …: the higher one is the later one. */
  number: number;
  /** When it begins to sign; it signs until a later key does. */
  signsFrom: number;
  /** The latest expiry of the tokens that it signed; 0 before the first one. */
  lastExpiry: number;
}

/**
 * How long a new key is published before it signs, in milliseconds: 10 minutes in which our clients use a key set
 * without asking again, 5 for caches on the way (`max-age=300`), 1 second until every replica has read the key, and
 * the rest for clocks that differ.
 */
export const PUBLISHED_AHEAD = 20 * MINUTE;

/**
 * How long a key stays published after the last of its tokens has expired, in milliseconds: for clocks that differ, and
 * for a replica that took over a little later than the others.
 */
export const PUBLISHED_AFTER = 20 * MINUTE;

/**
 * Which key signs, which are published, which may go (THREATS.md 27).
 *
 * The latest key whose time has come signs. Every later key is published. An earlier one is published until 20 minutes after
 * the last of its tokens has expired, and after the one that followed it began to sign.
 *
 * With a first key whose last token expires at 13:00, and a second one that was made at 12:00 and so signs from 12:20:
 *
 * | at           | first    | second           |
 * |--------------|----------|------------------|
 * | 12:00        | signs    | published        |
 * | 12:19:59.999 | signs    | published        |
 * | 12:20        | verifies | signs            |
 * | 13:00        | verifies | signs            |
 * | 13:19:59.999 | verifies | signs            |
 * | 13:20        | gone     | signs            |
 *
 * Had the first key signed a reservation that ends a month later, it would be gone a month and 20 minutes later; had it signed
 * nothing at all, at 12:40.
 *
 * @param keys a service's keys, at least one, sorted by number
 * @returns the signing key; the published ones: it, those that will sign, and those whose tokens are still valid; and those
 *   that are not needed any more
 * @throws RangeError when there is none
 */
export function planKeys<Key extends KeyRecord>(keys: readonly Key[], now: number) {
  // After the clock was set back, every key may be in the future; then the first one signs.
  const signing = keys.findLast(({ signsFrom }) => signsFrom <= now) ?? keys[0];
  if (!signing) throw new RangeError('a service has no key');
  const gone = keys.filter((key) => now >= publishedUntil(keys, key));
  return { signing, published: keys.filter((key) => !gone.includes(key)), gone };
}

/**
 * When a key stops being published, in milliseconds; infinity for the last key. While the key signs, this may still
 * become later.
 */
export function publishedUntil(keys: readonly KeyRecord[], key: KeyRecord): number {
  return Math.max(followedFrom(keys, key), key.lastExpiry) + PUBLISHED_AFTER;
}

/** When a later key begins to sign, in milliseconds; infinity for the last key. */
export function followedFrom(keys: readonly KeyRecord[], { number }: Pick<KeyRecord, 'number'>): number {
  return Math.min(...keys.flatMap((key) => (key.number > number ? key.signsFrom : [])));
}

/**
 * Whether it is time to make the next key: {@link PUBLISHED_AHEAD} before the newest key reaches the age at which another
 * follows it. False while a key waits to sign.
 *
 * A key that signs from 1 January 2026, 00:00, with 90 days: due on 31 March at 23:40.
 *
 * @param keys sorted by number
 * @param every the age at which a key is followed by another, in milliseconds
 */
export function isRotationDue(keys: readonly KeyRecord[], now: number, every: number): boolean {
  const newest = keys.at(-1);
  return newest !== undefined && newest.signsFrom <= now && now >= newest.signsFrom + every - PUBLISHED_AHEAD;
}

/**
 * The expiry that is noted for a token: rounded up to the full hour, so that few tokens need a write. Both in
 * milliseconds.
 *
 * @example 12:00:00.001 is noted as 13:00:00, and so is 13:00:00 itself
 */
export function expiryToNote(expiry: number): number {
  return Math.ceil(expiry / HOUR) * HOUR;
}
