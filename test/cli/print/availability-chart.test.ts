import { Chalk } from 'chalk';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type AvailabilityView,
  availabilityChart,
  chartColumns,
  type LinkAvailability,
} from '../../../src/cli/print/availability-chart.ts';
import { availabilitySvg } from '../../../src/cli/print/availability-svg.ts';
import { Printer } from '../../../src/cli/print/output.ts';
import type { AvailablePart } from '../../../src/contract/availability.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';

const HOUR = 3_600_000;
/** Monday 2026-11-23, 00:00 in Brussels. */
const MIDNIGHT = Date.UTC(2026, 10, 22, 23);
const DAY = { start: MIDNIGHT, end: MIDNIGHT + 24 * HOUR };
const link = { site1: 'be-gent1', site2: 'se-kth', bandwidth: 10_000 };

/** Parts from hours of that day: from, until, free throughout, free at best, VLANs. */
function parts(...rows: readonly (readonly [number, number, number, number?, number?])[]): AvailablePart[] {
  return rows.map(([from, until, bandwidth, bandwidth_max = bandwidth, vlans = 996]) => ({
    start_date: new Date(MIDNIGHT + from * HOUR).toISOString(),
    end_date: new Date(MIDNIGHT + until * HOUR).toISOString(),
    ...{ bandwidth, bandwidth_max, vlans },
  }));
}

interface Drawing {
  width?: number;
  now?: number;
  ascii?: boolean;
  level?: 0 | 1;
}

function draw(
  links: readonly LinkAvailability[],
  { width = 80, now = MIDNIGHT, ascii = false, level = 0 }: Drawing = {},
): string {
  const print = new Printer(new Chalk({ level }), recordedStream(width), { ascii });
  return availabilityChart(print, { links, window: DAY, zone: 'Europe/Brussels', now }, width);
}

const items = parts(
  ...([
    [0, 4, 10_000],
    [4, 6, 5000, 10_000],
    [6, 8, 0],
    [8, 10, 0, 5000],
    [10, 12, 400],
    [12, 18, 3333, 3400],
    [18, 24, 8000, 9000, 994],
  ] as const),
);

test.each([30, 40, 50, 60, 80, 120, 200, 300])('no line is longer than %i columns', (width) => {
  const routes = [['be-gent1', 'pl-poznan1', 'hu-sztaki', 'gr-uth', 'se-kth']];
  for (const ascii of [false, true]) {
    const narrow = { link: { ...link, bandwidth: 2488 }, items, routes };
    const text = draw([{ link, items }, narrow], { width, ascii });
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(Math.min(width, 200));
    if (ascii) expect(text.replaceAll('–', '-')).toMatch(/^[\x00-\x7f]*$/);
  }
});

test('now is marked inside the window only', () => {
  const at = (now: number): string => draw([{ link, items }], { now });
  for (const outside of [MIDNIGHT, MIDNIGHT - 1, DAY.end]) expect(at(outside)).not.toContain('▲');
  expect(at(MIDNIGHT + 12 * HOUR)).toMatch(/└.{35}▲.*┬.*\n.*\n .* {3}▲ now {3}/);
});

test('a time without a VLAN is marked, and told', () => {
  const text = draw([{ link, items: parts([0, 12, 10_000], [12, 24, 10_000, 10_000, 0]) }]);
  expect(text).toMatch(/└┬[─┬]{34}×{35}\n/);
  expect(text).toContain('× no VLAN free   0 VLANs');
});

test('whatever parts it is given, each column shows the least and the most that is free in it', () => {
  const Part = fc.tuple(fc.integer({ min: 1, max: 7_000_000 }), fc.nat(10_000), fc.nat(10_000));
  const Steps = fc.array(Part, { minLength: 1, maxLength: 40 });
  const drawn = fc.property(Steps, fc.integer({ min: 40, max: 200 }), (steps, width) => {
    const total = steps.reduce((sum, [length]) => sum + length, 0);
    const instant = (at: number): number => MIDNIGHT + Math.round((at / total) * 24 * HOUR);
    let at = 0;
    const cut = steps.map(([length, one, other]) => {
      const start = instant(at);
      at += length;
      return { start, end: instant(at), least: Math.min(one, other), most: Math.max(one, other) };
    });
    const given = cut.flatMap(({ start, end, least, most }) =>
      parts([(start - MIDNIGHT) / HOUR, (end - MIDNIGHT) / HOUR, least, most]),
    );
    const lines = draw([{ link, items: given }], { width }).split('\n');
    const rows = lines.slice(0, 3).map((line) => line.slice(10));
    const count = chartColumns(width);
    for (let column = 0; column < count; column += 1) {
      const [from, until] = [column, column + 1].map((n) => MIDNIGHT + Math.floor((n * 24 * HOUR) / count));
      const own = cut.filter(({ start, end }) => start < (until ?? 0) && end > (from ?? 0) && end > start);
      const least = Math.min(...own.map((one) => one.least));
      const most = Math.max(...own.map((one) => one.most));
      const cells = rows.map((row) => row[column] ?? ' ');
      const height = cells.reduce((sum, cell) => sum + Math.max(0, ' ▁▂▃▄▅▆▇█'.indexOf(cell)), 0);
      expect(height).toBe(least > 0 ? Math.max(1, Math.floor((least * 24) / 10_000)) : 0);
      const reach = cells.findIndex((cell) => cell !== ' ');
      const top = reach < 0 ? 0 : 8 * (3 - reach);
      // A cell is shaded from its half on: it shows no more than half a cell too much, or too little.
      if (most > 0) expect(Math.abs(top - Math.max(height, (most * 24) / 10_000))).toBeLessThanOrEqual(8);
      else expect(top).toBe(0);
    }
  });
  fc.assert(drawn, { numRuns: 50 });
});

const used = parts([0, 6, 10_000, 10_000, 1000], [6, 12, 10_000, 10_000, 999], [12, 24, 2500, 5000, 998]);
const view: AvailabilityView = {
  links: [{ link, items: used }],
  window: DAY,
  zone: 'Europe/Brussels',
  now: MIDNIGHT,
};

/** Reads XML strictly enough for what stands here. @returns the elements' names and all text @throws on what is not well-formed */
function readXml(document: string): { names: string[]; text: string } {
  const open: string[] = [];
  const names: string[] = [];
  let text = '';
  const [, body = ''] = /^<\?xml version="1\.0" encoding="UTF-8"\?>\n(.*)\n$/s.exec(document) ?? [];
  const token = /<(\/?)([a-z]+)((?: [A-Za-z0-9-]+="[^"<&]*(?:&#\d+;[^"<&]*)*")*)(\/?)>|([^<]+)/y;
  while (token.lastIndex < body.length) {
    const at = token.lastIndex;
    const match = token.exec(body);
    if (!match) throw new SyntaxError(`not XML: ${body.slice(at, at + 80)}`);
    const [, end, name = '', attributes = '', empty, characters = ''] = match;
    if (/&(?!#\d+;)/.test(characters)) throw new SyntaxError(`& in ${characters}`);
    text += characters;
    const given = [...attributes.matchAll(/ ([A-Za-z0-9-]+)=/g)].map(([, attribute]) => attribute);
    if (new Set(given).size < given.length) throw new SyntaxError(`an attribute twice: ${attributes}`);
    if (end && open.pop() !== name) throw new SyntaxError(`</${name}> without its start`);
    if (name && !end) names.push(name);
    if (name && !end && !empty) open.push(name);
  }
  if (open.length > 0) throw new SyntaxError(`not closed: ${open}`);
  return { names, text };
}

test('well-formed, with title, description, period, zone, units and a legend', () => {
  const { names, text } = readXml(availabilitySvg(view));
  const once = ['svg', 'title', 'desc', 'style'];
  expect(names.filter((name) => once.includes(name))).toEqual(once);
  for (const words of [
    'Free bandwidth, be-gent1 – se-kth',
    'Mon 23 Nov 2026 00:00 – Tue 24 Nov 2026 00:00, Europe/Brussels; 998 or more VLANs free at any time',
    'be-gent1 – se-kth: of 10 Gbps, between 2.5 Gbps and 10 Gbps are free; 998 or more VLANs free at any time.',
    ...['10 Gbps', '5 Gbps', 'Mon 23 Nov', '06:00', 'free throughout', 'free for part of the time'],
  ]) {
    expect(text).toContain(words);
  }
});

test('nothing from elsewhere, no script, colours for light and dark', () => {
  const svg = availabilitySvg(view);
  expect(svg.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|href|@import|<script|on[a-z]+=/);
  expect([...svg.matchAll(/url\(([^)]*)\)/g)].map(([, target]) => target)).toEqual(
    Array.from({ length: 2 }, () => '#availability-hatch'),
  );
  expect(svg).toContain('@media (prefers-color-scheme: dark)');
});

test('text of a service is escaped', () => {
  const site1 = `</text><script>&"'\u0000\u001b\ud800\uffff\u202e`;
  const { names, text } = readXml(
    availabilitySvg({ ...view, links: [{ link: { ...link, site1 }, items: used }] }),
  );
  expect(names).not.toContain('script');
  // Everything that XML 1.0 allows, and nothing that could turn text around.
  expect(text).toMatch(/^[\n\u0020-\u202d\u202f-\ud7ff\ue000-\ufffd]*$/);
});
