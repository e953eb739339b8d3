import { Chalk } from 'chalk';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  availabilityChart,
  chartColumns,
  type LinkAvailability,
} from '../../../src/cli/print/availability-chart.ts';
import { Printer } from '../../../src/cli/print/output.ts';
import type { AvailablePart } from '../../../src/contract/availability.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';

const HOUR = 3_600_000;
/** Monday 2026-11-23, 00:00 in Brussels. */
const MIDNIGHT = Date.UTC(2026, 10, 22, 23);
const window = { start: MIDNIGHT, end: MIDNIGHT + 24 * HOUR };

/** Parts from hours of that day: from, until, free throughout, free at best, VLANs. */
function parts(...rows: readonly (readonly [number, number, number, number?, number?])[]): AvailablePart[] {
  return rows.map(([from, until, bandwidth, bandwidth_max = bandwidth, vlans = 996]) => ({
    start_date: new Date(MIDNIGHT + from * HOUR).toISOString(),
    end_date: new Date(MIDNIGHT + until * HOUR).toISOString(),
    bandwidth,
    bandwidth_max,
    vlans,
  }));
}

const link = { site1: 'be-gent1', site2: 'se-kth', bandwidth: 10_000 };

interface Drawing {
  width?: number;
  rows?: number;
  now?: number;
  ascii?: boolean;
  level?: 0 | 1;
}

function draw(
  links: readonly LinkAvailability[],
  { width = 80, rows = 24, now = MIDNIGHT, ascii = false, level = 0 }: Drawing = {},
): string {
  const print = new Printer(new Chalk({ level }), recordedStream(width, rows), { ascii });
  return availabilityChart(print, { links, window, zone: 'Europe/Brussels', now }, width);
}

const items = parts(
  [0, 4, 10_000],
  [4, 6, 5000, 10_000],
  [6, 8, 0],
  [8, 10, 0, 5000],
  [10, 12, 400],
  [12, 18, 3333, 3400],
  [18, 24, 8000, 9000, 994],
);

test('filled up to what is free throughout, shaded up to what is free at best; hours, VLANs and the zone', () => {
  expect(
    draw([{ link, items }]),
  ).toBe(` 10 Gbps ┤███████████░░░░░░░                                  ░▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃
  5 Gbps ┤███████████▄▄▄▄▄▄░     ░░░░░░░                      ░█████████████████
         ┤█████████████████░     ░░░░░░░▁▁▁▁▁▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇█████████████████
         └┬────────────────┬─────────────────┬────────────────┬─────────────────
          Mon 23 Nov       06:00             12:00            18:00
 █ free throughout  ░ for part of the column   994 VLANs   Europe/Brussels
`);
});

describe('at every width', () => {
  test.each([30, 40, 50, 60, 80, 120, 200, 300])('no line is longer than %i columns', (width) => {
    for (const ascii of [false, true]) {
      const text = draw(
        [
          { link, items },
          { link: { ...link, bandwidth: 2488 }, items },
        ],
        { width, ascii },
      );
      for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(Math.min(width, 200));
      if (ascii) expect(text.replaceAll('–', '-')).toMatch(/^[\x00-\x7f]*$/);
    }
  });

  test.each([
    [60, 50],
    [80, 70],
    [200, 190],
    [500, 190],
    [10, 20],
  ])('%i columns of a terminal are %i of time', (width, columns) => {
    expect(chartColumns(width)).toBe(columns);
  });

  test.each([
    [80, 24, 3],
    [200, 24, 3],
    [120, 40, 5],
    [200, 60, 7],
    [80, 200, 3],
  ])('a terminal of %i × %i has %i lines for a link', (width, rows, lines) => {
    expect(draw([{ link, items }], { width, rows }).match(/┤/g)).toHaveLength(lines);
  });
});

test('several links have a title each, with their VLANs; the axes are below each other', () => {
  const text = draw([
    { link, items },
    { link: { ...link, site2: 'pl-poznan1', bandwidth: 2488 }, items: parts([0, 24, 2488]) },
  ]);
  expect(text.match(/^be-gent1 – .*$/gm)).toEqual([
    'be-gent1 – se-kth  994 VLANs',
    'be-gent1 – pl-poznan1  996 VLANs',
  ]);
  expect(new Set(text.split('\n').map((line) => line.indexOf('┤')))).toEqual(new Set([-1, 11]));
  expect(text).toMatch(/\n\n █ free throughout {2}░ for part of the column {3}Europe\/Brussels\n$/);
});

test('now is marked inside the window only', () => {
  const at = (now: number): string => draw([{ link, items }], { now });
  for (const outside of [MIDNIGHT, MIDNIGHT - 1, window.end]) expect(at(outside)).not.toContain('▲');
  expect(at(MIDNIGHT + 12 * HOUR)).toMatch(/└.{35}▲.*┬.*\n.*\n .* {3}▲ now {3}/);
});

test('a time without a VLAN is marked, and told', () => {
  const text = draw([{ link, items: parts([0, 12, 10_000], [12, 24, 10_000, 10_000, 0]) }]);
  expect(text).toMatch(/└┬[─┬]{34}×{35}\n/);
  expect(text).toContain('× no VLAN free   0 VLANs');
});

test('the picture is green, the axis is faint, and the legend shows both', () => {
  const text = draw([{ link, items }], { level: 1 });
  expect(text).toContain('\u001b[2m┤\u001b[22m\u001b[32m█');
  expect(text).toContain(' \u001b[32m█\u001b[39m free throughout  \u001b[32m░\u001b[39m for part');
});

test('whatever parts it is given, each column shows the least and the most that is free in it', () => {
  const Part = fc.tuple(fc.integer({ min: 1, max: 7_000_000 }), fc.nat(10_000), fc.nat(10_000));
  fc.assert(
    fc.property(
      fc.array(Part, { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 40, max: 200 }),
      (steps, width) => {
        const total = steps.reduce((sum, [length]) => sum + length, 0);
        let at = 0;
        const cut = steps.map(([length, one, other]) => {
          const start = MIDNIGHT + Math.round((at / total) * 24 * HOUR);
          at += length;
          const end = MIDNIGHT + Math.round((at / total) * 24 * HOUR);
          return { start, end, least: Math.min(one, other), most: Math.max(one, other) };
        });
        const given = cut.map(
          ({ start, end, least, most }): AvailablePart => ({
            ...{ start_date: new Date(start).toISOString(), end_date: new Date(end).toISOString() },
            ...{ bandwidth: least, bandwidth_max: most, vlans: 1 },
          }),
        );
        const rows = draw([{ link, items: given }], { width })
          .split('\n')
          .slice(0, 3)
          .map((line) => line.slice(10));
        const count = chartColumns(width);
        for (let column = 0; column < count; column += 1) {
          const from = MIDNIGHT + Math.floor((column * 24 * HOUR) / count);
          const until = MIDNIGHT + Math.floor(((column + 1) * 24 * HOUR) / count);
          const own = cut.filter(({ start, end }) => start < until && end > from && end > start);
          const [least, most] = [
            Math.min(...own.map((one) => one.least)),
            Math.max(...own.map((one) => one.most)),
          ];
          const cells = rows.map((row) => row[column] ?? ' ');
          const height = cells.reduce((sum, cell) => sum + Math.max(0, ' ▁▂▃▄▅▆▇█'.indexOf(cell)), 0);
          expect(height).toBe(least > 0 ? Math.max(1, Math.floor((least * 24) / 10_000)) : 0);
          const reach = cells.findIndex((cell) => cell !== ' ');
          const top = reach < 0 ? 0 : 8 * (3 - reach);
          // A cell is shaded from its half on: it shows no more than half a cell too much, or too little.
          if (most > 0) expect(Math.abs(top - Math.max(height, (most * 24) / 10_000))).toBeLessThanOrEqual(8);
          else expect(top).toBe(0);
        }
      },
    ),
    { numRuns: 50 },
  );
});
