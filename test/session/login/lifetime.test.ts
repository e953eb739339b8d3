import { describe, expect, test } from 'vitest';
import { isAlmostOver } from '../../../src/session/login/lifetime.ts';

const [SECOND, MINUTE, HOUR] = [1000, 60_000, 3_600_000];
const ISSUED = Date.UTC(2026, 10, 1, 12);

describe('a token is replaced when less than a minute or a tenth of its lifetime is left', () => {
  test.each<[string, number, number]>([
    ['an hour', HOUR, MINUTE],
    ['ten minutes, where both are the same', 10 * MINUTE, MINUTE],
    ['five minutes', 5 * MINUTE, 30 * SECOND],
    ['ten seconds', 10 * SECOND, SECOND],
  ])('a lifetime of %s', (_, lifetime, margin) => {
    const token = { issuedAt: ISSUED, expiresAt: ISSUED + lifetime };
    const left = (milliseconds: number) => isAlmostOver(token, token.expiresAt - milliseconds);
    expect([left(lifetime), left(margin), left(margin - 1), left(0), left(-HOUR)]).toEqual([
      false,
      false,
      true,
      true,
      true,
    ]);
  });

  test('where nobody knows until when it is good, it is never over', () => {
    expect(isAlmostOver({ issuedAt: ISSUED }, ISSUED + 1000 * HOUR)).toBe(false);
    expect(isAlmostOver({ issuedAt: ISSUED, expiresAt: undefined }, ISSUED + HOUR)).toBe(false);
  });
});
