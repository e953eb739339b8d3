import { describe, expect, test } from 'vitest';
import type { Reservation } from '../../../src/contract/reservation.ts';
import type { ReservationRequest } from '../../../src/contract/reservation-request.ts';
import { joinLedger } from '../../../src/session/reservations/joined-list.ts';
import type { LedgerEntry } from '../../../src/session/reservations/ledger.ts';
import { IDS, NOW, RESERVATION } from '../../fixtures/tokens.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const at = (offset: number): string => new Date(NOW + offset).toISOString();
const idOf = (name: string): string => `con_conn.example.org_${name}`;

/** A reservation that was made at {@link NOW}, for the hour after the next. */
function made(name: string, changes: Partial<Reservation> = {}): Reservation {
  const period = { start_date: at(HOUR), end_date: at(2 * HOUR), created_at: at(0) };
  return { ...RESERVATION, id: idOf(name), ...period, ...changes };
}

/** The request that {@link made} answers. */
const REQUESTED: ReservationRequest = {
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 1000,
  start: NOW + HOUR,
  end: NOW + 2 * HOUR,
};

/** An attempt that was sent at {@link NOW} and not answered. */
function attempt(key: string, changes: Partial<LedgerEntry> = {}): LedgerEntry {
  return {
    experiment: RESERVATION.experiment_id,
    key,
    asked: 'reserve',
    askedAt: NOW,
    beganAt: changes.askedAt ?? NOW,
    pending: null,
    typedTimes: undefined,
    requested: REQUESTED,
    outcome: 'unknown',
    id: undefined,
    reservation: undefined,
    token: undefined,
    ...changes,
  };
}

/** An attempt whose outcome is known. */
function settled(
  outcome: LedgerEntry['outcome'],
  reservation: Reservation,
  changes: Partial<LedgerEntry> = {},
): LedgerEntry {
  return attempt(`key of ${reservation.id}`, { outcome, id: reservation.id, reservation, ...changes });
}

/** A join in short: each item, and the outcome of each settled attempt. */
function joined(
  service: readonly Reservation[] | undefined,
  entries: readonly LedgerEntry[],
  now = NOW,
): { items: string[]; settled: string[] } {
  const { items, settlements } = joinLedger(service, entries, now);
  return {
    items: items.map(({ id, state, source, entry }) =>
      [id ?? 'null', state, source, entry?.key ?? 'nobody'].join(' | '),
    ),
    settled: settlements.map(({ entry, reservation }) => `${entry.key}: ${reservation?.id ?? 'null'}`),
  };
}

const a = made('a');
const [A, B] = [idOf('a'), idOf('b')];

describe('with a list', () => {
  test.each<[string, LedgerEntry]>([
    ['booked', settled('booked', a)],
    ['unknown with an id', settled('unknown', a)],
    ['unknown with an id that nothing is known about', settled('unknown', a, { reservation: undefined })],
    ['deleted, and yet there', settled('deleted', a)],
  ])('an entry that is %s and in the list has the service’s values and a state by the clock', (_, entry) => {
    const news = entry.outcome === 'booked' ? [] : [`${entry.key}: ${A}`];
    for (const [now, state] of [
      [NOW, 'scheduled'],
      [NOW + HOUR, 'active'],
      [NOW + 2 * HOUR, 'ended'],
    ] as const) {
      expect(joined([a], [entry], now)).toEqual({
        items: [`${A} | ${state} | service | ${entry.key}`],
        settled: news,
      });
    }
  });

  test('the service’s values win over earlier ones', () => {
    const { items } = joinLedger([{ ...a, bandwidth: 5 }], [settled('booked', a)], NOW);
    expect(items).toMatchObject([{ reservation: { bandwidth: 5 }, requested: { bandwidth: 1000 } }]);
  });

  test.each<[string, LedgerEntry, string[]]>([
    ['booked', settled('booked', a), [`key of ${A}: null`]],
    ['unknown with an id', settled('unknown', a), [`key of ${A}: null`]],
    ['deleted, as was known', settled('deleted', a), []],
  ])('an entry that is %s and not in the list is deleted', (_, entry, settlements) => {
    expect(joined([], [entry])).toEqual({
      items: [`${A} | deleted | ledger | ${entry.key}`],
      settled: settlements,
    });
  });

  test('an attempt without an id gets the reservation that fits', () => {
    expect(joined([a], [attempt('lost')])).toEqual({
      items: [`${A} | scheduled | service | lost`],
      settled: [`lost: ${A}`],
    });
    expect(joinLedger([a], [attempt('lost')], NOW).items[0]?.requested).toEqual(REQUESTED);
  });

  test('an attempt without a fitting reservation is unknown for ten minutes; then it was never made', () => {
    const waiting = { items: ['null | unknown | ledger | lost'], settled: [] };
    expect(joined([], [attempt('lost')])).toEqual(waiting);
    expect(joined([], [attempt('lost')], NOW + 10 * MINUTE)).toEqual(waiting);
    const over = { items: [], settled: ['lost: null'] };
    expect(joined([], [attempt('lost')], NOW + 10 * MINUTE + 1)).toEqual(over);
  });

  test('a refused attempt is not searched for', () => {
    const refused = attempt('refused', { outcome: 'refused' });
    expect(joined([], [refused])).toEqual({ items: [], settled: [] });
    expect(joined([a], [refused])).toEqual({ items: [`${A} | scheduled | service | nobody`], settled: [] });
  });

  test('other reservations of the experiment stay theirs', () => {
    const other = made('other', { bandwidth: 5 });
    expect(joined([other], [attempt('lost'), settled('booked', a)])).toEqual({
      items: [
        `${idOf('other')} | scheduled | service | nobody`,
        'null | unknown | ledger | lost',
        `${A} | deleted | ledger | key of ${A}`,
      ],
      settled: [`key of ${A}: null`],
    });
    expect(joinLedger([other], [], NOW).items).toMatchObject([
      { reservation: other, requested: null, entry: undefined },
    ]);
  });

  test('an update without an answer is settled by comparison with its request', () => {
    const wanted = { ...REQUESTED, bandwidth: 5 };
    const update = settled('unknown', a, { asked: 'update', requested: wanted });
    const { items, settlements } = joinLedger([a], [update], NOW);
    expect(items).toMatchObject([{ reservation: a, state: 'scheduled', requested: wanted }]);
    expect(settlements).toEqual([{ entry: update, reservation: a }]);
  });
});

describe('a reservation that fits an attempt', () => {
  const created = (offset: number): Partial<Reservation> => ({ created_at: at(offset) });

  test.each<[string, Partial<Reservation>, boolean]>([
    ['the same', {}, true],
    [
      'another spelling of its times',
      { start_date: '2026-11-01T13:00:00', end_date: '2026-11-01T15:00:00+01:00' },
      true,
    ],
    ['another start', { start_date: at(HOUR + 1) }, false],
    ['made by a clock that is 5 min behind', created(-5 * MINUTE), true],
    ['made before that', created(-5 * MINUTE - 1), false],
    ['made 10 min later, by a clock that is 5 min ahead', created(15 * MINUTE), true],
    ['made after that', created(15 * MINUTE + 1), false],
  ])('%s: %j %s', (_, changes, fits) => {
    const found = made('a', changes);
    const { settlements } = joinLedger([found], [attempt('lost')], NOW);
    expect(settlements.map(({ reservation }) => reservation)).toEqual(fits ? [found] : []);
  });

  test.each([
    [IDS.user, true],
    ['user_portal.example.org_another', false],
    ['ada@example.org', true],
  ])('made by %s: %s', (created_by, fits) => {
    const found = made('a', { created_by });
    const { settlements } = joinLedger([found], [attempt('lost')], NOW, IDS.user);
    expect(settlements.map(({ reservation }) => reservation)).toEqual(fits ? [found] : []);
  });

  test.each<[string, number, number, boolean]>([
    ['at once', 0, 0, true],
    ['by a clock that is 4 min ahead', 4 * MINUTE, 4 * MINUTE, true],
    ['5 min after it was made', 0, 5 * MINUTE, true],
    ['later than that', 0, 5 * MINUTE + 1, false],
    ['long before it was made', 0, -HOUR, false],
  ])('start now: a reservation that starts %s', (_, made_at, start, fits) => {
    const now = attempt('lost', { requested: { ...REQUESTED, start: 'now' } });
    const found = made('a', { created_at: at(made_at), start_date: at(start) });
    expect(joined([found], [now]).settled).toEqual(fits ? [`lost: ${A}`] : []);
  });

  test('an attempt without its request fits nothing', () => {
    expect(joined([a], [attempt('lost', { requested: null })]).settled).toEqual([]);
  });

  test('two attempts and one reservation: the older one gets it, and the other stays unknown', () => {
    const entries = [attempt('first'), attempt('second', { askedAt: NOW + 1000 })];
    expect(joined([a], entries)).toEqual({
      items: [`${A} | scheduled | service | first`, 'null | unknown | ledger | second'],
      settled: [`first: ${A}`],
    });
  });

  test('two attempts and two reservations: each gets one, in the order of creation', () => {
    const b = made('b', created(1000));
    const entries = [attempt('first'), attempt('second', { askedAt: NOW + 1000 })];
    for (const service of [
      [a, b],
      [b, a],
    ]) {
      expect(joined(service, entries).settled).toEqual([`first: ${A}`, `second: ${B}`]);
    }
  });

  test.each<[string, LedgerEntry]>([
    ['booked', settled('booked', a)],
    ['has named', settled('unknown', a, { reservation: undefined })],
    ['deleted', settled('deleted', a)],
  ])('a reservation that another attempt %s stays with that one, older or not', (_, other) => {
    for (const entries of [
      [attempt('lost'), other],
      [other, attempt('lost')],
    ]) {
      const { items } = joined([a], entries);
      expect(items).toEqual([`${A} | scheduled | service | ${other.key}`, 'null | unknown | ledger | lost']);
    }
  });
});

describe('without a list', () => {
  test('a deleted reservation stays deleted at any time', () => {
    expect(joined(undefined, [settled('deleted', a)], NOW + HOUR).items).toEqual([
      `${A} | deleted | ledger | key of ${A}`,
    ]);
  });

  test.each<[string, LedgerEntry, string]>([
    ['without an id', attempt('lost'), 'null'],
    ['with an id', attempt('lost', { id: A }), A],
    ['with an answer from before', attempt('lost', { id: A, reservation: a, asked: 'delete' }), A],
  ])('an entry that is unknown %s stays unknown at any age', (_, entry, id) => {
    for (const now of [NOW, NOW + 11 * MINUTE, NOW + 1000 * HOUR]) {
      expect(joined(undefined, [entry], now)).toEqual({
        items: [`${id} | unknown | ledger | lost`],
        settled: [],
      });
    }
  });
});
