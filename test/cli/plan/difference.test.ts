import { describe, expect, it, test } from 'vitest';
import {
  type ComparingOptions,
  type NamedReservation,
  type PlannedChange,
  plannedChanges,
} from '../../../src/cli/plan/difference.ts';
import type { WantedReservation } from '../../../src/cli/plan/plan-file.ts';
import { asRequest } from '../../../src/contract/reservation-request.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { NOW, RESERVATION } from '../../fixtures/tokens.ts';

const HOUR = 3_600_000;
const [LINK, TURNED] = [
  { site1: 'be-gent1', site2: 'pl-poznan1' },
  { site1: 'pl-poznan1', site2: 'be-gent1' },
];

/** What a file wants: by default from the next hour on, for two hours. Times are in hours after {@link NOW}. */
function wanted({
  start = 1,
  end = 3,
  ...rest
}: Partial<WantedReservation> & { start?: number | 'now'; end?: number } = {}): WantedReservation {
  const length = (end - (start === 'now' ? 0 : start)) * HOUR;
  const period = { start: start === 'now' ? start : NOW + start * HOUR, end: NOW + end * HOUR, length };
  return { name: 'a', ...LINK, bandwidth: 1000, place: 'demo.yaml:4:12', ...period, ...rest };
}

/** What exists under a name: by default what {@link wanted} says. */
function named({
  name = 'a',
  start = 1,
  end = 3,
  ...rest
}: Partial<NamedReservation['reservation']> & { start?: number; end?: number } = {}): NamedReservation {
  const [start_date = '', end_date = ''] = [start, end].map((at) => new Date(NOW + at * HOUR).toISOString());
  return { name, reservation: { ...RESERVATION, ...LINK, bandwidth: 1000, start_date, end_date, ...rest } };
}

/** A change: its action; of an update the members that it changes, times in hours. */
function said({ action, current, request }: PlannedChange): unknown {
  if (action !== 'update') return action;
  const before = asRequest(current);
  const members = (['bandwidth', 'start', 'end', 'description'] as const).filter(
    (name) => before[name] !== request[name],
  );
  const hours = (name: string, value: unknown) =>
    ['start', 'end'].includes(name) ? (Number(value) - NOW) / HOUR : value;
  return Object.fromEntries(members.map((name) => [name, hours(name, request[name])]));
}

const difference = (
  file: readonly WantedReservation[],
  existing: readonly NamedReservation[],
  options: Partial<ComparingOptions> = {},
): PlannedChange[] => plannedChanges(file, existing, { now: NOW, ...options });

type Row = [string, Parameters<typeof wanted>[0], Parameters<typeof named>[0][], unknown];
const NOW_FOR_2H = { start: 'now', end: 2 } as const;
const SECONDS = 1 / 3600;

describe('the difference between a file and what exists', () => {
  test.each<[...Row, ...Partial<ComparingOptions>[]]>([
    ['nothing exists', {}, [], 'create'],
    ['another name exists', {}, [{ name: 'b' }], 'create'],
    ['the same exists', {}, [{}], 'none'],
    ['the same the other way round', {}, [TURNED], 'none'],
    ['another bandwidth', {}, [{ bandwidth: 500 }], { bandwidth: 1000 }],
    ['another description', { description: 'x' }, [{}], { description: 'x' }],
    ['the same description', { description: 'x' }, [{ description: 'x' }], 'none'],
    ['no description in the file', {}, [{ description: 'x' }], 'none'],
    ['another start', {}, [{ start: 2 }], { start: 1 }],
    ['a start a millisecond away', {}, [{ start: 1 + 1 / HOUR }], { start: 1 }],
    ['another end', {}, [{ end: 4 }], { end: 3 }],
    [
      'nothing alike but the link',
      {},
      [{ bandwidth: 1, start: 5, end: 6 }],
      { bandwidth: 1000, start: 1, end: 3 },
    ],
    ['it has ended, as it was wanted', { start: -2, end: 0 }, [{ start: -2, end: 0 }], 'none'],
    ['another of the name has ended', {}, [{ start: -2, end: 0 }], 'create'],
    ['one of the name has ended, and one has not', {}, [{ start: -2, end: 0 }, {}], 'none'],
    ['now: nothing', NOW_FOR_2H, [], 'create'],
    ['now: since an hour', NOW_FOR_2H, [{ start: -1, end: 1 }], 'none'],
    ['now: it begins later', NOW_FOR_2H, [{}], 'none'],
    ['now: 6 s longer, as it was sent', NOW_FOR_2H, [{ start: 0, end: 2 + 6 * SECONDS }], 'none'],
    ['now: 10 s shorter, its request was slow', NOW_FOR_2H, [{ start: 10 * SECONDS, end: 2 }], 'none'],
    ['now: 11 s longer', NOW_FOR_2H, [{ start: -1, end: 1 + 11 * SECONDS }], { end: 1 }],
    ['now: it has ended', NOW_FOR_2H, [{ start: -2, end: 0 }], 'create'],
    ['now: another bandwidth', NOW_FOR_2H, [{ start: -1, end: 1, bandwidth: 1 }], { bandwidth: 1000 }],
    ['later, of the same length', {}, [{ start: 9, end: 11 }], 'none'],
    ['later, with another bandwidth', {}, [{ start: 9, end: 11, bandwidth: 1 }], { bandwidth: 1000 }],
    ['move: later', {}, [{ start: 9, end: 11 }], { start: 1, end: 3 }, { move: true, earliest: true }],
    ['sooner', {}, [{ start: 0, end: 2 }], { start: 1, end: 3 }, { earliest: true }],
    ['it was later, and has ended', { start: -9, end: -7 }, [{ start: -4, end: -2 }], 'none', { move: true }],
    ['earliest: later', {}, [{ start: 9, end: 11 }], 'none', { earliest: true }],
    ['earliest: longer', {}, [{ start: 9, end: 12 }], { end: 11 }, { earliest: true }],
    ['earliest: it was sooner, and has ended', {}, [{ start: -4, end: -2 }], 'create', { earliest: true }],
  ])('%s', (_, file, existing, expected, options = {}) => {
    const [change, another] = difference([wanted(file)], existing.map(named), options);
    expect([change && said(change), another]).toEqual([expected, undefined]);
    if (change?.action !== 'update') return;
    // An update makes what is then up to date.
    const { bandwidth = 0, start, end, description } = change.request;
    const [start_date = '', end_date = ''] = [Number(start), end].map((at) => new Date(at).toISOString());
    const reservation = { ...change.current, bandwidth, start_date, end_date, description };
    expect(difference([wanted(file)], [{ name: 'a', reservation }], options).map(said)).toEqual(['none']);
  });

  it('--prune deletes what has another name and has not ended, after the names of the file', () => {
    const others = [named({ name: 'b' }), named({ name: 'c', start: -2, end: 0 }), named({ name: 'd' })];
    const names = (prune: boolean) =>
      difference([wanted()], others, { prune }).map(({ action, name }) => `${action} ${name}`);
    expect(names(false)).toEqual(['create a']);
    expect(names(true)).toEqual(['create a', 'delete b', 'delete d']);
  });

  it('other sites are a mistake in the file, and all are named', async () => {
    const other = { site1: 'se-kth' };
    const compare = (count: number) =>
      failureOf(() =>
        difference(
          ['a', 'b'].slice(0, count).map((name) => wanted({ name })),
          [named(other), named({ name: 'b', ...other })],
        ),
      );
    expect(await compare(1)).toMatchObject({
      code: 'usage',
      message:
        'demo.yaml:4:12: a is between se-kth and pl-poznan1, and the file says be-gent1 and pl-poznan1.',
    });
    expect(await compare(2)).toMatchObject({
      code: 'usage',
      message: '2 reservations are between other sites, or take other routes, than the file says.',
      facts: { lines: [expect.any(String), expect.any(String)] },
    });
  });

  it.each<[string, Parameters<typeof wanted>[0], string[] | undefined, RegExp | undefined]>([
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
    else expect(compare().map(said)).toEqual(['none']);
  });

  it('64 changes are the most, and what is up to date does not count', async () => {
    const names = Array.from({ length: 66 }, (_, at) => `a${at}`);
    const file = names.map((name) => wanted({ name }));
    const some = names.slice(0, 2).map((name) => named({ name }));
    expect(difference(file, some)).toHaveLength(66);
    expect(await failureOf(() => difference(file, some.slice(1)))).toMatchObject({
      code: 'usage',
      message: 'The file needs 65 changes, and 64 can be made together.',
    });
  });
});
