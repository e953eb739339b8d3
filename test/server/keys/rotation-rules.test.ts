import { describe, expect, test } from 'vitest';
import {
  expiryToNote,
  isRotationDue,
  type KeyRecord,
  newestOf,
  PUBLISHED_AFTER,
  PUBLISHED_AHEAD,
  planKeys,
  publishedUntil,
} from '../../../src/server/keys/rotation-rules.ts';

const at = (time: string): number => Date.parse(`2026-11-01T${time}Z`);
const DAY = 86_400_000;

const key1: KeyRecord = { number: 1, signsFrom: at('00:00:00'), lastExpiry: at('13:00:00') };
const key2: KeyRecord = { number: 2, signsFrom: at('12:20:00'), lastExpiry: 0 };

/** The state of each key at an instant: `1 signs, 2 published`. */
function plan(keys: readonly KeyRecord[], now: number): string {
  const { signing, published, gone } = planKeys(keys, now);
  return [...published, ...gone]
    .toSorted((one, other) => one.number - other.number)
    .map((key) => {
      if (gone.includes(key)) return `${key.number} gone`;
      if (key === signing) return `${key.number} signs`;
      return `${key.number} ${key.number > signing.number ? 'published' : 'verifies'}`;
    })
    .join(', ');
}

test('a key is published longer than clients and caches keep a key set', () => {
  const [client, caches, replicas] = [10 * 60_000, 300_000, 10_000];
  expect(PUBLISHED_AHEAD).toBeGreaterThan(client + caches + replicas);
  expect(PUBLISHED_AHEAD).toBe(20 * 60_000);
  expect(PUBLISHED_AFTER).toBe(20 * 60_000);
});

describe('key1, whose last token expires at 13:00, and key2, made at 12:00', () => {
  test.each([
    ['12:00:00', '1 signs, 2 published'],
    ['12:19:59.999', '1 signs, 2 published'],
    ['12:20:00', '1 verifies, 2 signs'],
    ['13:00:00', '1 verifies, 2 signs'],
    ['13:19:59.999', '1 verifies, 2 signs'],
    ['13:20:00', '1 gone, 2 signs'],
  ])('at %s: %s', (time, due) => {
    expect(plan([key1, key2], at(time))).toBe(due);
    expect(plan([key2, key1], at(time))).toBe(due);
  });

  test('key1 alone signs without an end', () => {
    expect(plan([key1], at('23:59:59'))).toBe('1 signs');
    expect(publishedUntil([key1], key1)).toBe(Number.POSITIVE_INFINITY);
  });

  test.each([
    ['a month later', at('12:00:00') + 30 * DAY, at('12:20:00') + 30 * DAY],
    ['before it was followed', at('12:05:00'), at('12:40:00')],
    ['never, having signed nothing', 0, at('12:40:00')],
  ])('when its last token expires %s', (_, lastExpiry, until) => {
    const keys = [{ ...key1, lastExpiry }, key2];
    expect(plan(keys, until - 1)).toBe('1 verifies, 2 signs');
    expect(plan(keys, until)).toBe('1 gone, 2 signs');
  });

  test('a key with two successors stays as long as its tokens', () => {
    const key3 = { number: 3, signsFrom: at('20:00:00'), lastExpiry: 0 };
    const old = { ...key1, lastExpiry: at('22:00:00') };
    expect(plan([old, key2, key3], at('19:59:00'))).toBe('1 verifies, 2 signs, 3 published');
    expect(plan([old, key2, key3], at('20:20:00'))).toBe('1 verifies, 2 gone, 3 signs');
    expect(plan([old, key3], at('22:20:00'))).toBe('1 gone, 3 signs');
  });

  test('the first key signs when the clock is before all keys', () => {
    expect(plan([key1, key2], at('00:00:00') - DAY)).toBe('1 signs, 2 published');
  });

  test('a service without a key is an error', () => {
    expect(() => planKeys([], 0)).toThrow(RangeError);
    expect(newestOf([])).toBeUndefined();
  });
});

describe('a rotation by age', () => {
  const since = Date.parse('2026-01-01T00:00:00Z');
  const key = { number: 1, signsFrom: since, lastExpiry: 0 };

  test.each([
    ['2026-03-31T23:39:59.999Z', false],
    ['2026-03-31T23:40:00Z', true],
    ['2027-01-01T00:00:00Z', true],
  ])('every 90 days, is due at %s: %s', (time, due) => {
    expect(isRotationDue([key], Date.parse(time), 90 * DAY)).toBe(due);
  });

  test('is not due while a key waits to sign', () => {
    const now = Date.parse('2026-04-01T00:00:00Z');
    const next = { number: 2, signsFrom: now + 1, lastExpiry: 0 };
    expect(isRotationDue([key, next], now, 90 * DAY)).toBe(false);
    expect(isRotationDue([key, { ...next, signsFrom: now }], now, 90 * DAY)).toBe(false);
    expect(isRotationDue([], now, 90 * DAY)).toBe(false);
    // For any age: otherwise every look would make another key.
    expect(isRotationDue([key, next], now, 60_000)).toBe(false);
    expect(isRotationDue([key, next], now + 1, 60_000)).toBe(true);
  });
});

test.each([
  ['12:00:00', '12:00:00'],
  ['12:00:00.001', '13:00:00'],
  ['12:59:59.999', '13:00:00'],
  ['13:00:00', '13:00:00'],
])('an expiry at %s is noted as %s', (expiry, noted) => {
  expect(expiryToNote(at(expiry))).toBe(at(noted));
});
