import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { Instant, requestInstant } from '../../src/contract/fields.ts';

describe('requestInstant', () => {
  const schema = requestInstant('end_date');
  const message = (input: unknown) => v.safeParse(schema, input).issues?.[0].message ?? 'accepted';

  test('gives milliseconds', () => {
    expect(v.parse(schema, '2026-12-01T11:00:00+01:00')).toBe(Date.UTC(2026, 11, 1, 10));
  });

  test.each([
    ['2026-02-30T10:00:00Z', 'got "2026-02-30T10:00:00Z"'],
    ['2026-12-01T10:00:00', 'zone'],
    ['', 'got ""'],
    [5, 'got 5'],
    [null, 'got null'],
    [undefined, 'it is missing'],
    [{}, 'got '],
  ])('row 36: %j is refused, and the message names the member and the received value', (input, part) => {
    expect(message(input)).toContain('end_date');
    expect(message(input)).toContain(part);
  });
});

test.each(['2026-12-01T10:00:00.000Z', '2026-12-01T10:00:00Z'])('Instant accepts %s', (text) => {
  expect(v.is(Instant, text)).toBe(true);
});
test.each(['2026-12-01', '', 'now', 5, null])('Instant refuses %j', (text) => {
  expect(v.is(Instant, text)).toBe(false);
});
