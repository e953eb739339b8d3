import { describe, expect, test } from 'vitest';
import {
  asReservation,
  isSameRequest,
  meets,
  type Requested,
  requestedOf,
  toBody,
  updated,
} from '../../src/contract/reservation-request.ts';
import { NOW, RESERVATION } from '../fixtures/tokens.ts';

const HOUR = 3_600_000;
const at = (offset: number): string => new Date(NOW + offset).toISOString();

const LATER: Requested = {
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 1000,
  start_date: at(HOUR),
  end_date: at(3 * HOUR),
};
/** `--start-now --for 2h`, typed at {@link NOW}. */
const FOR_2H: Requested = { ...LATER, start_date: null, end_date: at(2 * HOUR) };

describe('the stored form of a request', () => {
  test.each([LATER, FOR_2H, { ...LATER, name: 'gent-poznan' }])(
    'can be sent again unchanged: %j',
    (requested) => {
      expect(requestedOf(asReservation(requested))).toEqual(requested);
    },
  );

  test.each<{ name?: string }>([{}, { name: 'gent-poznan' }])(
    'is sent with the name that it has, if any: %j',
    (named) => {
      const body = toBody(asReservation({ ...LATER, ...named }), []);
      expect(body).toMatchObject(named);
      expect(body.name).toBe(named.name);
    },
  );

  test('equals the sent body: no date for now, times in UTC with milliseconds', () => {
    const reservation = { site1: 'a', site2: 'b', bandwidth: 5, start: 'now', end: NOW } as const;
    expect(requestedOf(reservation)).toEqual({
      site1: 'a',
      site2: 'b',
      bandwidth: 5,
      start_date: null,
      end_date: '2026-11-01T12:00:00.000Z',
    });
  });
});

describe('the same request', () => {
  test.each<[string, Requested, Requested, number, boolean]>([
    ['word for word, at once', LATER, LATER, 0, true],
    ['word for word, a day later', LATER, LATER, 24 * HOUR, true],
    ['the other way round', LATER, { ...LATER, site1: 'pl-poznan1', site2: 'be-gent1' }, 0, false],
    ['another first site', LATER, { ...LATER, site1: 'fr-lille' }, 0, false],
    ['another second site', LATER, { ...LATER, site2: 'fr-lille' }, 0, false],
    ['another bandwidth', LATER, { ...LATER, bandwidth: 999 }, 0, false],
    ['another name', LATER, { ...LATER, name: 'gent-poznan' }, 0, false],
    ['another start', LATER, { ...LATER, start_date: at(HOUR + 1) }, 0, false],
    ['another end', LATER, { ...LATER, end_date: at(3 * HOUR + 1) }, 0, false],
    ['now in place of a start', LATER, { ...LATER, start_date: null }, 0, false],
    ['a start in place of now', FOR_2H, { ...FOR_2H, start_date: at(0) }, 0, false],
    ['as long from a later now', FOR_2H, { ...FOR_2H, end_date: at(3 * HOUR) }, HOUR, true],
    ['as long, but for 5 s', FOR_2H, { ...FOR_2H, end_date: at(3 * HOUR + 5000) }, HOUR, true],
    ['longer by more than 5 s', FOR_2H, { ...FOR_2H, end_date: at(3 * HOUR + 5001) }, HOUR, false],
    ['shorter by more than 5 s', FOR_2H, { ...FOR_2H, end_date: at(3 * HOUR - 5001) }, HOUR, false],
    ['now until the same end, later', FOR_2H, FOR_2H, HOUR, true],
    [
      'another link for as long',
      FOR_2H,
      { ...FOR_2H, site2: 'fr-lille', end_date: at(3 * HOUR) },
      HOUR,
      false,
    ],
    // A given start does not move with the clock.
    ['a named start, an end later by as much', LATER, { ...LATER, end_date: at(4 * HOUR) }, HOUR, false],
  ])('%s', (_, before, again, later, same) => {
    expect(isSameRequest(before, NOW, again, NOW + later)).toBe(same);
  });
});

describe('an update', () => {
  const [start, end] = [Date.parse(RESERVATION.start_date), Date.parse(RESERVATION.end_date)];
  const link = { site1: 'be-gent1', site2: 'pl-poznan1' };

  test.each([
    [{}, { ...link, bandwidth: 1000, start, end }],
    [{ bandwidth: 5 }, { ...link, bandwidth: 5, start, end }],
    [{ start: 'now' }, { ...link, bandwidth: 1000, start: 'now', end }],
    [
      { start: start + 1, end: end + 1 },
      { ...link, bandwidth: 1000, start: start + 1, end: end + 1 },
    ],
  ] as const)('%j asks for what changes, and for the rest as it stands', (change, whole) => {
    expect(updated(RESERVATION, change)).toEqual(whole);
  });

  test.each([
    [{}, true],
    [{ start: 'now' }, true],
    [{ bandwidth: 999 }, false],
    [{ start: start + 1 }, false],
    [{ end: end - 1 }, false],
  ] as const)('the reservation as it stood meets %j: %s', (change, met) => {
    expect(meets(RESERVATION, updated(RESERVATION, change))).toBe(met);
  });

  test('is met by a reservation without zones in its times too', () => {
    const found = {
      ...RESERVATION,
      start_date: '2026-12-01T10:00:00',
      end_date: '2026-12-02T11:00:00+01:00',
    };
    expect(meets(found, updated(RESERVATION, {}))).toBe(true);
  });
});
