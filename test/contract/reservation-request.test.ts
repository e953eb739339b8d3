import { describe, expect, test } from 'vitest';
import {
  asRequest,
  type ChangeItem,
  checkItems,
  isSameRequest,
  queryOf,
  type ReservationRequest,
  toBody,
} from '../../src/contract/reservation-request.ts';
import { IDS, LATER, NOW, RESERVATION } from '../fixtures/tokens.ts';

const HOUR = 3_600_000;
const at = (offset: number): string => new Date(NOW + offset).toISOString();

/** `--start-now --for 2h`, typed at {@link NOW}. */
const FOR_2H: ReservationRequest = { ...LATER, start: 'now', end: NOW + 2 * HOUR };

describe('the body and the query of a request', () => {
  const { site1, site2 } = LATER;
  test.each<[ReservationRequest, object, object]>([
    [LATER, { bandwidth: '1000', start_date: at(HOUR), end_date: at(3 * HOUR) }, {}],
    [FOR_2H, { bandwidth: '1000', start_date: null, end_date: at(2 * HOUR) }, { start_now: 'true' }],
    [{ ...FOR_2H, name: 'a' }, { name: 'a', start_date: null }, { start_now: 'true' }],
    [{ ...LATER, duration: HOUR }, { bandwidth: '1000', duration: 'PT1H' }, { earliest: 'true' }],
    [{ ...LATER, bandwidth: undefined, volume: 5 }, { volume: '5', bandwidth: undefined }, {}],
  ])('%j', (request, members, query) => {
    expect(toBody(request, ['token'])).toMatchObject({ site1, site2, ...members, tokens: ['token'] });
    expect(queryOf(request)).toEqual(query);
    expect(queryOf(request, { dryRun: true })).toEqual({ ...query, dry_run: 'true' });
  });

  test('of a reservation as it stands are what it was asked for with', () => {
    const { start_date, end_date, bandwidth } = RESERVATION;
    const due = { site1, site2, start_date, end_date, bandwidth: `${bandwidth}`, name: 'a', tokens: [] };
    expect(toBody(asRequest({ ...RESERVATION, name: 'a' }), [])).toEqual(due);
  });
});

describe('changes that can not be asked for together', () => {
  const create = (request: ReservationRequest): ChangeItem => ({ action: 'create', request });
  const drop: ChangeItem = { action: 'delete', id: IDS.reservation };
  test.each<[string, ChangeItem[], boolean]>([
    ['none', [], false],
    ['64', Array.from({ length: 64 }, () => drop), true],
    ['65', Array.from({ length: 65 }, () => drop), false],
    ['a search alone', [create({ ...LATER, duration: HOUR })], true],
    ['a search with others', [create({ ...LATER, duration: HOUR }), drop], false],
    ['a volume alone', [create({ ...LATER, bandwidth: undefined, volume: 5 })], true],
    ['a volume with others', [create({ ...LATER, volume: 5 }), drop], false],
    ['two searches', [create({ ...LATER, duration: HOUR, volume: 5 })], false],
    ['no bandwidth', [create({ ...LATER, bandwidth: undefined })], false],
  ])('%s', (_, items, isFine) => {
    const check = () => checkItems(items);
    if (isFine) check();
    else expect(check).toThrow(expect.objectContaining({ code: 'usage' }));
  });
});

describe('the same request', () => {
  const second = { end: NOW + 3 * HOUR };
  test.each<[string, ReservationRequest, Partial<ReservationRequest>, number, boolean]>([
    ['word for word, at once', LATER, {}, 0, true],
    ['word for word, a day later', LATER, {}, 24 * HOUR, true],
    ['the other way round', LATER, { site1: 'pl-poznan1', site2: 'be-gent1' }, 0, false],
    ['another first site', LATER, { site1: 'fr-lille' }, 0, false],
    ['another bandwidth', LATER, { bandwidth: 999 }, 0, false],
    ['another name', LATER, { name: 'gent-poznan' }, 0, false],
    ['another route', LATER, { via: ['fr-lille'] }, 0, false],
    ['another start', LATER, { start: NOW + HOUR + 1 }, 0, false],
    ['another end', LATER, { end: NOW + 3 * HOUR + 1 }, 0, false],
    ['now in place of a start', LATER, { start: 'now' }, 0, false],
    ['a start in place of now', FOR_2H, { start: NOW }, 0, false],
    ['as long from a later now', FOR_2H, second, HOUR, true],
    ['as long, but for 5 s', FOR_2H, { end: second.end + 5000 }, HOUR, true],
    ['longer by more than 5 s', FOR_2H, { end: second.end + 5001 }, HOUR, false],
    ['shorter by more than 5 s', FOR_2H, { end: second.end - 5001 }, HOUR, false],
    ['now until the same end, later', FOR_2H, {}, HOUR, true],
    ['another link', FOR_2H, { site2: 'fr-lille', ...second }, HOUR, false],
    // A given start does not move with the clock.
    ['a named start, an end later by as much', LATER, { end: NOW + 4 * HOUR }, HOUR, false],
  ])('%s', (_, request, changes, later, same) => {
    const first = { request, at: NOW, typedTimes: 'a' };
    const again = { request: { ...request, ...changes }, at: NOW + later };
    expect(isSameRequest(first, again)).toBe(same);
    expect(isSameRequest(first, { ...again, typedTimes: 'b' })).toBe(same);
    // The same words mean the same times.
    const differs = Object.keys(changes).some((member) => !['start', 'end'].includes(member));
    expect(isSameRequest(first, { ...again, typedTimes: 'a' })).toBe(!differs);
  });
});
