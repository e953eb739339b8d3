import { describe, expect, it, test } from 'vitest';
import {
  type ComparingOptions,
  type NamedReservation,
  type PlannedChange,
  plannedChanges,
} from '../../../src/cli/plan/difference.ts';
import type { WantedReservation } from '../../../src/cli/plan/plan-file.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { asRequest } from '../../../src/contract/reservation-request.ts';
import { NOW, RESERVATION } from '../../fixtures/tokens.ts';

const SECOND = 1000;
const HOUR = 3_600_000;

/** Wanted from the next hour on, for two hours. */
function wanted(changes: Partial<WantedReservation> = {}): WantedReservation {
  const period = { start: NOW + HOUR, end: NOW + 3 * HOUR, ...changes };
  const from = period.start === 'now' ? NOW : period.start;
  return {
    ...{ name: 'a', site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000, place: 'demo.yaml:4:12' },
    length: period.end - from,
    ...period,
    ...changes,
  };
}

const TURNED = { site1: 'pl-poznan1', site2: 'be-gent1' };

/** What exists under a name: by default what {@link wanted} says. Times are after {@link NOW}. */
function named(
  { name = 'a', start = HOUR, end = 3 * HOUR, ...rest } = {} as {
    name?: string;
    start?: number;
    end?: number;
    site1?: string;
    site2?: string;
    bandwidth?: number;
    description?: string;
    via?: string[];
  },
): NamedReservation {
  const dates = {
    start_date: new Date(NOW + start).toISOString(),
    end_date: new Date(NOW + end).toISOString(),
  };
  const sites = { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000 };
  return { name, reservation: { ...RESERVATION, ...sites, ...dates, ...rest } };
}

/** The members that an update changes. */
function changed({ current, request }: PlannedChange & { action: 'update' }): object {
  const before = asRequest(current);
  const members = (['bandwidth', 'start', 'end', 'description'] as const).filter(
    (name) => before[name] !== request[name],
  );
  return Object.fromEntries(members.map((name) => [name, request[name]]));
}

/** Actions by names, with what an update changes. */
function difference(
  file: readonly WantedReservation[],
  existing: readonly NamedReservation[],
  options: Partial<ComparingOptions> = {},
): unknown[] {
  return plannedChanges(file, existing, { now: NOW, ...options }).map((change) => [
    change.action,
    change.name,
    ...(change.action === 'update' ? [changed(change)] : []),
  ]);
}

const NOW_FOR_2H = { start: 'now', end: NOW + 2 * HOUR } as const;

describe('the difference between a file and what exists', () => {
  test.each<[string, WantedReservation, NamedReservation[], Partial<ComparingOptions>, unknown[]]>([
    ['nothing exists', wanted(), [], {}, ['create', 'a']],
    ['another name exists', wanted(), [named({ name: 'b' })], {}, ['create', 'a']],
    ['the same exists', wanted(), [named()], {}, ['none', 'a']],
    [
      'the same the other way round',
      wanted(),
      [named({ site1: 'pl-poznan1', site2: 'be-gent1' })],
      {},
      ['none', 'a'],
    ],
    ['another bandwidth', wanted(), [named({ bandwidth: 500 })], {}, ['update', 'a', { bandwidth: 1000 }]],
    [
      'another description',
      wanted({ description: 'x' }),
      [named()],
      {},
      ['update', 'a', { description: 'x' }],
    ],
    ['the same description', wanted({ description: 'x' }), [named({ description: 'x' })], {}, ['none', 'a']],
    ['no description in the file', wanted(), [named({ description: 'x' })], {}, ['none', 'a']],
    ['another start', wanted(), [named({ start: 2 * HOUR })], {}, ['update', 'a', { start: NOW + HOUR }]],
    [
      'a start a millisecond away',
      wanted(),
      [named({ start: HOUR + 1 })],
      {},
      ['update', 'a', { start: NOW + HOUR }],
    ],
    ['another end', wanted(), [named({ end: 4 * HOUR })], {}, ['update', 'a', { end: NOW + 3 * HOUR }]],
    [
      'nothing alike but the link',
      wanted(),
      [named({ bandwidth: 1, start: 5 * HOUR, end: 6 * HOUR })],
      {},
      ['update', 'a', { bandwidth: 1000, start: NOW + HOUR, end: NOW + 3 * HOUR }],
    ],
    [
      'it has ended, as it was wanted',
      wanted({ start: NOW - 2 * HOUR, end: NOW }),
      [named({ start: -2 * HOUR, end: 0 })],
      {},
      ['none', 'a'],
    ],
    ['another of the name has ended', wanted(), [named({ start: -2 * HOUR, end: 0 })], {}, ['create', 'a']],
    [
      'one of the name has ended, and one has not',
      wanted(),
      [named({ start: -2 * HOUR, end: 0 }), named()],
      {},
      ['none', 'a'],
    ],
    ['now: nothing', wanted(NOW_FOR_2H), [], {}, ['create', 'a']],
    ['now: since an hour', wanted(NOW_FOR_2H), [named({ start: -HOUR, end: HOUR })], {}, ['none', 'a']],
    ['now: it begins later', wanted(NOW_FOR_2H), [named({ start: HOUR, end: 3 * HOUR })], {}, ['none', 'a']],
    [
      'now: 6 s longer, as it was sent',
      wanted(NOW_FOR_2H),
      [named({ start: 0, end: 2 * HOUR + 6 * SECOND })],
      {},
      ['none', 'a'],
    ],
    [
      'now: 10 s shorter, its request was slow',
      wanted(NOW_FOR_2H),
      [named({ start: 10 * SECOND, end: 2 * HOUR })],
      {},
      ['none', 'a'],
    ],
    [
      'now: 11 s longer',
      wanted(NOW_FOR_2H),
      [named({ start: -HOUR, end: HOUR + 11 * SECOND })],
      {},
      ['update', 'a', { end: NOW + HOUR }],
    ],
    ['now: it has ended', wanted(NOW_FOR_2H), [named({ start: -2 * HOUR, end: 0 })], {}, ['create', 'a']],
    [
      'now: another bandwidth',
      wanted(NOW_FOR_2H),
      [named({ start: -HOUR, end: HOUR, bandwidth: 1 })],
      {},
      ['update', 'a', { bandwidth: 1000 }],
    ],
    ['later, of the same length', wanted(), [named({ start: 9 * HOUR, end: 11 * HOUR })], {}, ['none', 'a']],
    [
      'later, with another bandwidth',
      wanted(),
      [named({ start: 9 * HOUR, end: 11 * HOUR, bandwidth: 1 })],
      {},
      ['update', 'a', { bandwidth: 1000 }],
    ],
    [
      'move: later',
      wanted(),
      [named({ start: 9 * HOUR, end: 11 * HOUR })],
      { move: true, earliest: true },
      ['update', 'a', { start: NOW + HOUR, end: NOW + 3 * HOUR }],
    ],
    [
      'sooner',
      wanted(),
      [named({ start: 0, end: 2 * HOUR })],
      { earliest: true },
      ['update', 'a', { start: NOW + HOUR, end: NOW + 3 * HOUR }],
    ],
    [
      'it was later, and has ended',
      wanted({ start: NOW - 9 * HOUR, end: NOW - 7 * HOUR }),
      [named({ start: -4 * HOUR, end: -2 * HOUR })],
      { move: true },
      ['none', 'a'],
    ],
    [
      'earliest: later',
      wanted(),
      [named({ start: 9 * HOUR, end: 11 * HOUR })],
      { earliest: true },
      ['none', 'a'],
    ],
    [
      'earliest: longer',
      wanted(),
      [named({ start: 9 * HOUR, end: 12 * HOUR })],
      { earliest: true },
      ['update', 'a', { end: NOW + 11 * HOUR }],
    ],
    [
      'earliest: it was sooner, and has ended',
      wanted(),
      [named({ start: -4 * HOUR, end: -2 * HOUR })],
      { earliest: true },
      ['create', 'a'],
    ],
  ])('%s', (_, one, existing, options, expected) => {
    expect(difference([one], existing, options)).toEqual([expected]);
  });

  it('--prune deletes what has another name and has not ended, after the names of the file', () => {
    const others = [
      named({ name: 'b' }),
      named({ name: 'c', start: -2 * HOUR, end: 0 }),
      named({ name: 'd' }),
    ];
    expect(difference([wanted()], others, {})).toEqual([['create', 'a']]);
    expect(difference([wanted()], others, { prune: true })).toEqual([
      ['create', 'a'],
      ['delete', 'b'],
      ['delete', 'd'],
    ]);
  });

  it('an update makes what is then met', () => {
    const existing = named({ bandwidth: 1, start: 5 * HOUR, end: 6 * HOUR });
    for (const [one, options] of [
      [wanted(), {}],
      [wanted(NOW_FOR_2H), {}],
      [wanted(), { earliest: true }],
    ] as const) {
      const [update] = plannedChanges([one], [existing], { now: NOW, ...options });
      if (update?.action !== 'update') throw new Error('it is no update');
      const { bandwidth = 0, start, end } = update.request;
      const start_date = new Date(start === 'now' ? NOW : start).toISOString();
      const dates = { start_date, end_date: new Date(end).toISOString() };
      const after = { ...existing.reservation, bandwidth, ...dates };
      expect(difference([one], [{ name: 'a', reservation: after }], options)).toEqual([['none', 'a']]);
    }
  });

  it('other sites are a mistake in the file, and all are named', () => {
    const other = { site1: 'se-kth' };
    const compare = (count: number) => () =>
      difference(
        ['a', 'b'].slice(0, count).map((name) => wanted({ name })),
        [named(other), named({ name: 'b', ...other })],
      );
    expect(compare(1)).toThrow(
      'demo.yaml:4:12: a is between se-kth and pl-poznan1, and the file says be-gent1 and pl-poznan1.',
    );
    expect(compare(2)).toThrow(
      '2 reservations are between other sites, or take other routes, than the file says.',
    );
    expect(failureOf(compare(2))).toMatchObject({
      code: 'usage',
      facts: { lines: [expect.any(String), expect.any(String)] },
    });
  });

  it.each<[string, Partial<WantedReservation>, string[] | undefined, RegExp | undefined]>([
    ['as the file says', { via: ['b'], avoid: ['d'] }, ['b', 'c'], undefined],
    ['the other way round', { ...TURNED, via: ['c', 'b'] }, ['b', 'c'], undefined],
    [
      'past a site',
      { via: ['d'] },
      ['b', 'c'],
      /demo\.yaml:4:12: a takes another route .* It does not pass d/,
    ],
    ['through a site', { avoid: ['c'] }, ['b', 'c'], /It passes c/],
    ['not direct', { direct: true }, ['b'], /several hops/],
    ['direct', { direct: true }, undefined, undefined],
  ])('a route that stands is compared, and no update can change it: %s', (_, asked, via, says) => {
    const compare = () => difference([wanted(asked)], [named({ via })]);
    if (says) expect(compare).toThrow(says);
    else expect(compare()).toEqual([['none', 'a']]);
  });

  it('64 changes are the most, and what is met does not count', () => {
    const names = Array.from({ length: 66 }, (_, at) => `a${at}`);
    const file = names.map((name) => wanted({ name }));
    const some = names.slice(0, 2).map((name) => named({ name }));
    expect(difference(file, some)).toHaveLength(66);
    expect(failureOf(() => difference(file, some.slice(1)))).toMatchObject({
      code: 'usage',
      message: 'The file needs 65 changes, and 64 can be made together.',
    });
  });
});

function failureOf(work: () => unknown): Failure {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error('it did not fail');
}
