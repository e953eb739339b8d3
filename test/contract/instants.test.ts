import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeInput, formatInstant, isWithin, parseInstant } from '../../src/contract/instants.ts';

const LAST = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

describe('parseInstant', () => {
  test.each<[string, number]>([
    ['2026-12-01T10:00:00.000Z', Date.UTC(2026, 11, 1, 10)],
    ['2026-12-01T10:00:00Z', Date.UTC(2026, 11, 1, 10)],
    ['2026-12-01t10:00:00z', Date.UTC(2026, 11, 1, 10)],
    ['2026-12-01T10:00:00.5Z', 1_796_119_200_500],
    ['2026-12-01T10:00:00.05Z', 1_796_119_200_050],
    ['2026-12-01T10:00:00.120Z', 1_796_119_200_120],
    ['2026-12-01T10:00:00.1239Z', 1_796_119_200_123],
    ['2026-12-01T10:00:00.999999999999Z', 1_796_119_200_999],
    ['2026-12-01T12:00:00+02:00', Date.UTC(2026, 11, 1, 10)],
    ['2026-12-01T04:30:00-05:30', Date.UTC(2026, 11, 1, 10)],
    ['2026-12-01T10:00:00+00:00', Date.UTC(2026, 11, 1, 10)],
    ['2026-12-01T10:00:00-00:00', Date.UTC(2026, 11, 1, 10)],
    ['2026-12-31T23:30:00-01:00', Date.UTC(2027, 0, 1, 0, 30)],
    ['2027-01-01T00:30:00+01:00', Date.UTC(2026, 11, 31, 23, 30)],
    ['2026-12-02T09:59:00+23:59', Date.UTC(2026, 11, 1, 10)],
    ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
    ['2000-02-29T00:00:00Z', Date.UTC(2000, 1, 29)],
    ['2026-12-01T00:00:00Z', Date.UTC(2026, 11, 1)],
    ['2026-12-01T23:59:59.999Z', Date.UTC(2026, 11, 1, 23, 59, 59, 999)],
    ['1970-01-01T00:00:00Z', 0],
    ['1970-01-01T01:00:00+01:00', 0],
    ['9999-12-31T23:59:59.999Z', LAST],
  ])('row 36: %s is accepted', (text, instant) => {
    expect(parseInstant(text)).toBe(instant);
    expect(parseInstant(text, 'utc-if-absent')).toBe(instant);
  });

  test.each([
    ['30 February', '2026-02-30T10:00:00Z'],
    ['29 February of a common year', '2026-02-29T10:00:00Z'],
    ['29 February of 2100', '2100-02-29T10:00:00Z'],
    ['31 April', '2026-04-31T10:00:00Z'],
    ['day 0', '2026-12-00T10:00:00Z'],
    ['day 32', '2026-12-32T10:00:00Z'],
    ['month 0', '2026-00-01T10:00:00Z'],
    ['month 13', '2026-13-01T10:00:00Z'],
    ['hour 24', '2026-12-01T24:00:00Z'],
    ['hour 25', '2026-12-01T25:00:00Z'],
    ['minute 60', '2026-12-01T10:60:00Z'],
    ['a leap second that was', '2016-12-31T23:59:60Z'],
    ['a leap second that was not', '2026-12-01T10:00:60Z'],
    ['second 61', '2026-12-01T10:00:61Z'],
    ['year 10000', '10000-01-01T00:00:00Z'],
    ['a signed year of six digits', '+010000-01-01T00:00:00Z'],
    ['year 0', '0000-01-01T00:00:00Z'],
    ['year 26', '0026-12-01T10:00:00Z'],
    ['a year of two digits', '26-12-01T10:00:00Z'],
    ['a negative year', '-2026-12-01T10:00:00Z'],
    ['before the epoch', '1969-12-31T23:59:59.999Z'],
    ['before the epoch by its offset', '1970-01-01T00:00:00+00:01'],
    ['after the year 9999 by its offset', '9999-12-31T23:59:59.999-00:01'],
    ['an offset of 24 hours', '2026-12-01T10:00:00+24:00'],
    ['an offset of 60 minutes', '2026-12-01T10:00:00+01:60'],
    ['an offset without a colon', '2026-12-01T10:00:00+0100'],
    ['an offset without minutes', '2026-12-01T10:00:00+01'],
    ['an offset after a space (a + in a query)', '2026-12-01T10:00:00 01:00'],
    ['a zone and an offset', '2026-12-01T10:00:00Z+01:00'],
    ['the name of a zone', '2026-12-01T10:00:00 UTC'],
    ['another letter as zone', '2026-12-01T10:00:00A'],
    ['a zone in brackets', '2026-12-01T10:00:00Z[UTC]'],
    ['a minus that is not ASCII', '2026-12-01T10:00:00\u221201:00'],
    ['a space for T', '2026-12-01 10:00:00Z'],
    ['an underscore for T', '2026-12-01_10:00:00Z'],
    ['a date alone', '2026-12-01'],
    ['a date with a zone', '2026-12-01Z'],
    ['no seconds', '2026-12-01T10:00Z'],
    ['a point without digits', '2026-12-01T10:00:00.Z'],
    ['a comma', '2026-12-01T10:00:00,5Z'],
    ['basic format', '20261201T100000Z'],
    ['a week date', '2026-W49-2T10:00:00Z'],
    ['an ordinal date', '2026-335T10:00:00Z'],
    ['single digits', '2026-12-1T10:00:00Z'],
    ['a space before', ' 2026-12-01T10:00:00Z'],
    ['a space after', '2026-12-01T10:00:00Z '],
    ['a newline after', '2026-12-01T10:00:00Z\n'],
    ['a line before', 'x\n2026-12-01T10:00:00Z'],
    ['a NUL after', '2026-12-01T10:00:00Z\0'],
    ['Arabic digits', '٢٠٢٦-12-01T10:00:00Z'],
    ['full-width digits', '２０２６-12-01T10:00:00Z'],
    ['seconds since the epoch', '1796119200'],
    ['an HTTP date', 'Tue, 01 Dec 2026 10:00:00 GMT'],
    ['a word', 'now'],
    ['nothing', ''],
  ])('row 36: %s is refused', (_, text) => {
    expect(parseInstant(text)).toBeUndefined();
    expect(parseInstant(text, 'utc-if-absent')).toBeUndefined();
  });

  test.each(['2026-12-01T10:00:00', '2026-12-01T10:00:00.000', '2026-12-01t10:00:00.0'])(
    'row 36: %s has no zone: it is refused in a request, and UTC in a reply',
    (text) => {
      expect(parseInstant(text)).toBeUndefined();
      expect(parseInstant(text, 'required')).toBeUndefined();
      expect(parseInstant(text, 'utc-if-absent')).toBe(Date.UTC(2026, 11, 1, 10));
    },
  );

  const instants = fc.integer({ min: 0, max: LAST });
  test('parseInstant reads the text of formatInstant (property)', () => {
    fc.assert(
      fc.property(instants, (instant) => {
        const text = formatInstant(instant);
        expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        expect(parseInstant(text)).toBe(instant);
        expect(parseInstant(text.replace(/\.?0+Z$/, 'Z'))).toBe(instant);
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

  test('an offset moves the instant by its own length (property)', () => {
    const two = (number: number) => String(number).padStart(2, '0');
    const offsets = fc.tuple(fc.constantFrom(1, -1), fc.nat(23), fc.nat(59));
    fc.assert(
      fc.property(
        fc.integer({ min: 86_400_000, max: LAST - 86_400_000 }),
        offsets,
        (instant, [sign, h, m]) => {
          const text = formatInstant(instant).replace('Z', `${sign > 0 ? '+' : '-'}${two(h)}:${two(m)}`);
          expect(parseInstant(text)).toBe(instant - sign * (h * 60 + m) * 60_000);
        },
      ),
    );
  });

  test('it accepts exactly the days that exist', () => {
    const two = (number: number) => String(number).padStart(2, '0');
    for (const [year, days] of [
      [2026, 365],
      [2028, 366],
      [2100, 365],
    ] as const) {
      let found = 0;
      for (let month = 0; month <= 13; month += 1) {
        for (let day = 0; day <= 32; day += 1) {
          if (parseInstant(`${year}-${two(month)}-${two(day)}T00:00:00Z`) !== undefined) found += 1;
        }
      }
      expect(found).toBe(days);
    }
  });
});

describe('describeInput', () => {
  test.each<[unknown, string]>([
    [undefined, 'it is missing'],
    [null, 'got null'],
    ['a"b', 'got "a\\"b"'],
    [1e30, 'got 1e+30'],
  ])('%j', (input, text) => expect(describeInput(input)).toBe(text));

  test('row 36: is short for every value', () => {
    expect(describeInput('x'.repeat(3_000_000)).length).toBeLessThan(80);
  });

  test('row 36: accepts any nesting', () => {
    const deep: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
    expect(describeInput(deep).length).toBeLessThan(80);
  });
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
