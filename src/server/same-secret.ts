import { timingSafeEqual } from 'node:crypto';

/** Compares a text that a request brought with the expected one. The time tells nothing of where they differ. */
export function sameSecret(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
