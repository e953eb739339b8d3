import { Chalk } from 'chalk';
import { describe, expect, test } from 'vitest';
import {
  availabilityChart,
  chartColumns,
  type FreePart,
  type LinkAvailability,
} from '../../../src/cli/print/availability-chart.ts';
import { Printer } from '../../../src/cli/print/output.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';

const HOUR = 3_600_000;
/** Monday 2026-11-23, 00:00 in Brussels. */
const MIDNIGHT = Date.UTC(2026, 10, 22, 23);
const window = { start: MIDNIGHT, end: MIDNIGHT + 24 * HOUR };

/** Parts from hours of that day: from, until, free throughout, free at best, VLANs. */
function parts(...rows: readonly (readonly [number, number, number, number?, number?])[]): FreePart[] {
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
  test.each([60, 80, 120, 200, 300])('no line is longer than %i columns', (width) => {
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
