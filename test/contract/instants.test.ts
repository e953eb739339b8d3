import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeInput, formatInstant, isWithin, parseInstant } from '../../src/contract/instants.ts';

const LAST = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const TEN = Date.UTC(2026, 11, 1, 10);
const two = (number: number) => String(number).padStart(2, '0');

describe('parseInstant', () => {
  test.each<[string, number]>([
    ['2026-12-01T10:00:00.000Z', TEN],
    ['2026-12-01t10:00:00z', TEN],
    ['2026-12-01T10:00:00.5Z', TEN + 500],
    ['2026-12-01T10:00:00.05Z', TEN + 50],
    ['2026-12-01T10:00:00.1239Z', TEN + 123],
    ['2026-12-01T10:00:00.999999999999Z', TEN + 999],
    ['2026-12-01T12:00:00+02:00', TEN],
    ['2026-12-01T04:30:00-05:30', TEN],
    ['2026-12-01T10:00:00-00:00', TEN],
    ['2026-12-31T23:30:00-01:00', Date.UTC(2027, 0, 1, 0, 30)],
    ['2026-12-02T09:59:00+23:59', TEN],
    ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
    ['2000-02-29T00:00:00Z', Date.UTC(2000, 1, 29)],
    ['1970-01-01T01:00:00+01:00', 0],
    ['9999-12-31T23:59:59.999Z', LAST],
  ])('row 36: %s is accepted', (text, instant) => {
    expect(parseInstant(text)).toBe(instant);
    expect(parseInstant(text, 'utc-if-absent')).toBe(instant);
  });

  test.each([
    ['a day that does not exist', '2026-02-30', '2026-02-29', '2100-02-29', '2026-04-31', '2026-13-01'],
    ['another year', '10000-01-01', '+010000-01-01', '0000-01-01', '0026-12-01', '26-12-01'],
    ['a day in another form', '-2026-12-01', '2026-W49-2', '2026-335', '2026-12-1', '20261201'],
    ['digits that are not ASCII', '٢٠٢٦-12-01', '２０２６-12-01'],
  ])('row 36: %s is refused', (_, ...days) => {
    for (const day of days) {
      expect([day, parseInstant(`${day}T10:00:00Z`)]).toEqual([day, undefined]);
      expect(parseInstant(`${day}T10:00:00`, 'utc-if-absent')).toBeUndefined();
    }
  });

  test.each([
    ['a time that does not exist', 'T24:00:00Z', 'T25:00:00Z', 'T10:60:00Z', 'T10:00:61Z'],
    ['an offset of 24 hours or 60 minutes', 'T10:00:00+24:00', 'T10:00:00+01:60'],
    ['another offset', 'T10:00:00+0100', 'T10:00:00+01', 'T10:00:00 01:00', 'T10:00:00\u221201:00'],
    ['another zone', 'T10:00:00Z+01:00', 'T10:00:00 UTC', 'T10:00:00A', 'T10:00:00Z[UTC]'],
    ['another form', ' 10:00:00Z', '_10:00:00Z', '', 'Z', 'T10:00Z', 'T10:00:00.Z', 'T10:00:00,5Z'],
    ['what stands behind it', 'T10:00:00Z ', 'T10:00:00Z\n', 'T10:00:00Z\0'],
  ])('row 36: with %s it is refused', (_, ...rests) => {
    for (const rest of rests) {
      expect([rest, parseInstant(`2026-12-01${rest}`)]).toEqual([rest, undefined]);
      expect(parseInstant(`2026-12-01${rest}`, 'utc-if-absent')).toBeUndefined();
    }
  });

  test.each([
    ...['2016-12-31T23:59:60Z', '1969-12-31T23:59:59.999Z', '1970-01-01T00:00:00+00:01', 'now', ''],
    ...['9999-12-31T23:59:59.999-00:01', 'x\n2026-12-01T10:00:00Z', ' 2026-12-01T10:00:00Z', '1796119200'],
  ])('row 36: %j is refused', (text) => {
    expect(parseInstant(text)).toBeUndefined();
    expect(parseInstant(text, 'utc-if-absent')).toBeUndefined();
  });

  test.each(['2026-12-01T10:00:00', '2026-12-01T10:00:00.000', '2026-12-01t10:00:00.0'])(
    'row 36: %s has no zone: it is refused in a request, and UTC in a reply',
    (text) => {
      expect(parseInstant(text)).toBeUndefined();
      expect(parseInstant(text, 'utc-if-absent')).toBe(TEN);
    },
  );

  const instants = fc.integer({ min: 0, max: LAST });
  test('parseInstant reads the text of formatInstant, at any offset (property)', () => {
    const offsets = fc.tuple(fc.constantFrom(1, -1), fc.nat(23), fc.nat(59));
    fc.assert(
      fc.property(instants, offsets, (instant, [sign, h, m]) => {
        const text = formatInstant(instant);
        expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        expect(parseInstant(text)).toBe(instant);
        expect(parseInstant(text.replace(/\.?0+Z$/, 'Z'))).toBe(instant);
        const moved = instant - sign * (h * 60 + m) * 60_000;
        const isInRange = moved >= 0 && moved <= LAST;
        const offset = `${sign > 0 ? '+' : '-'}${two(h)}:${two(m)}`;
        expect(parseInstant(text.replace('Z', offset))).toBe(isInRange ? moved : undefined);
      }),
    );
  });

  test('formatInstant writes what the platform does, parts of a millisecond left out (property)', () => {
    const anyInstant = fc.oneof(instants, fc.double({ min: -8.64e15, max: 8.64e15, noNaN: true }));
    fc.assert(
      fc.property(anyInstant, (instant) => {
        expect(formatInstant(instant)).toBe(new Date(instant).toISOString());
      }),
    );
    for (const no of [Number.NaN, 8.65e15, Number.POSITIVE_INFINITY])
      expect(() => formatInstant(no)).toThrow(RangeError);
  });

  test.each([
    [2026, 365],
    [2028, 366],
    [2100, 365],
  ])('of %i it accepts exactly the %i days that exist', (year, days) => {
    const all = Array.from({ length: 14 * 33 }, (_, index) => [Math.floor(index / 33), index % 33] as const);
    const found = all.filter(
      ([month, day]) => parseInstant(`${year}-${two(month)}-${two(day)}T00:00:00Z`) !== undefined,
    );
    expect(found).toHaveLength(days);
  });
});

test('row 36: what was received is described in a few words, whatever it is', () => {
  const deep: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  const said = [undefined, null, 'a"b', 1e30, deep, 'x'.repeat(3_000_000)].map(describeInput);
  const cut = `got "${'x'.repeat(60)}…"`;
  expect(said).toEqual(['it is missing', 'got null', 'got "a\\"b"', 'got 1e+30', 'got an array', cut]);
});

test.each<[string, number, boolean]>([
  ['now', 1000, true],
  ['almost the span ago', 901, true],
  ['the span ago', 900, false],
  ['never', Number.NEGATIVE_INFINITY, false],
  ['in the future, by a clock that was set back since', 1001, false],
  ['at no time', Number.NaN, false],
])('isWithin: %s', (_, at, due) => {
  expect(isWithin(at, 100, 1000)).toBe(due);
});
