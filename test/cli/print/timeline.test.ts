import { Chalk } from 'chalk';
import { describe, expect, test } from 'vitest';
import { Printer } from '../../../src/cli/print/output.ts';
import type { ListedIn } from '../../../src/cli/print/reservation-table.ts';
import { timeline } from '../../../src/cli/print/timeline.ts';
import type { ListedReservation } from '../../../src/session/reservations/joined-list.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';

const HOUR = 3_600_000;
/** Sunday 2026-11-22, 12:00 in Brussels. */
const NOW = Date.UTC(2026, 10, 22, 11);
const demo = { id: 'exp_host_1', name: 'demo' };

/** A reservation that this machine asked for, in hours from now. */
function listed(
  state: ListedReservation['state'],
  [start, end]: readonly [number | null, number],
  { site1 = 'be-gent1', site2 = 'pl-poznan1', bandwidth = 1000, id = '' } = {},
): ListedIn {
  const period = { start: start === null ? ('now' as const) : NOW + start * HOUR, end: NOW + end * HOUR };
  const item: ListedReservation = {
    id: id || `con_host_0000${state.slice(0, 2)}${end}`.padEnd(20, 'x'),
    reservation: null,
    state,
    source: 'ledger',
    requested: { site1, site2, bandwidth, ...period },
    entry: undefined,
  };
  return { item, experiment: demo };
}

const all = [
  listed('ended', [-48, -24], { id: 'con_host_00000003', site2: 'se-kth', bandwidth: 500 }),
  listed('active', [-12, 30], { id: 'con_host_00000002', site1: 'pl-poznan1', site2: 'be-gent1' }),
  listed('scheduled', [24, 72], { id: 'con_host_00000001', bandwidth: 2500 }),
];

function draw(
  items: readonly ListedIn[],
  columns?: number,
  {
    ascii = false,
    level = 0,
    ...changes
  }: { ascii?: boolean; level?: 0 | 1 } & Partial<Parameters<typeof timeline>[2]> = {},
): string {
  const print = new Printer(new Chalk({ level }), recordedStream(columns), { ascii });
  const times = { now: NOW, zone: 'Europe/Brussels' };
  const known = items.map(({ item }) => item.id);
  return timeline(print, items, { experiments: [demo], times, known, ...changes }, columns ?? 80);
}

describe('a bar for each reservation over one axis', () => {
  test('on a terminal, with short ids', () => {
    expect(draw(all, 80)).toBe(`Experiment demo, times in Europe/Brussels
                                      21 Nov   Sun 22    Mon 23   Tue 24
                                                    ▼ now 12:00
0003  be-gent1–se-kth      500M   ░░░░░░░░░░···┊····│····┊········┊········┊····
0002  be-gent1–pl-poznan1    1G   ····┊········▓▓▓▓▓████████████··┊········┊····
0001  be-gent1–pl-poznan1  2.5G   ····┊········┊····│····┊···▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
 ▓█ active   ▒ scheduled   ░ ended
`);
  });

  test('without a terminal: 80 columns, then full ids', () => {
    const [, , , first] = draw(all).split('\n');
    expect(first).toBe(
      'be-gent1–se-kth      500M   ░░░░░░░░░░░····┊····│·····┊·········┊·········┊·····  con_host_00000003',
    );
  });

  test('in ASCII', () => {
    expect(draw(all, 80, { ascii: true })).toBe(`Experiment demo, times in Europe/Brussels
                                        Sat 21 Nov        Mon 23
                                                     v now 12:00
0003  be-gent1 - se-kth      500M   ---------........|....:................:....
0002  be-gent1 - pl-poznan1    1G   ....:........====############..........:....
0001  be-gent1 - pl-poznan1  2.5G   ....:............|....:...++++++++++++++++++
 =# active   + scheduled   - ended
`);
  });
});

test('names that a ledger has are escaped, and measured afterwards', () => {
  const text = draw([listed('active', [0, 1], { site1: 'a\u001b[31m', id: 'con_host_00000004' })], 80);
  expect(text).toContain('a\\u001b[31m–pl-poznan1');
  for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});

test('deleted and unknown ones too; one whose period nobody knows has no bar', () => {
  const items = [listed('deleted', [1, 5]), listed('unknown', [2, 6]), listed('unknown', [null, 6])];
  const text = draw(items, 80);
  expect(text).toContain('×××');
  expect(text).toContain('???');
  expect(text.match(/^[^×?]+[·│┊]$/gm)).toHaveLength(1);
  expect(text).toMatch(/ × deleted {3}\? unknown\n$/);
});

test('the axis is the period that was asked for, and bars are cut where it ends', () => {
  const lines = (start: number, end: number) =>
    draw(all, 60, { span: { start: NOW + start * HOUR, end: NOW + end * HOUR } })
      .split('\n')
      .filter((line) => line.startsWith('be-'))
      .map((line) => line.slice(28).replaceAll(/[┊│]/g, '·'));
  expect(lines(-6, 6).slice(1)).toEqual(['▓'.repeat(16) + '█'.repeat(16), '·'.repeat(32)]);
  expect(lines(25, 35)).toEqual(['·'.repeat(32), `${'█'.repeat(16)}${'·'.repeat(16)}`, '▒'.repeat(32)]);
  const later = draw(all, 60, { span: { start: NOW + HOUR } });
  expect(later).not.toMatch(/now|│/);
});

test.each([60, 80, 120, 200])('no line is longer than %i columns, at a glance and in colour', (columns) => {
  const items = [...all, listed('active', [-10_000, 1]), listed('scheduled', [5, 90_000])];
  for (const ascii of [false, true]) {
    const text = draw(items, columns, { ascii });
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(columns);
    if (ascii) expect(text).toMatch(/^[\x00-\x7f]*$/);
  }
  const painted = draw(all, columns, { level: 1 });
  for (const code of [32, 36, 2]) expect(painted).toContain(`\u001b[${code}m`);
});
