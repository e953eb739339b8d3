import { expect, test } from 'vitest';
import type { AvailabilityView } from '../../../src/cli/print/availability-chart.ts';
import { availabilitySvg } from '../../../src/cli/print/availability-svg.ts';
import { DAY, LINK as link, MIDNIGHT, parts } from './available-parts.ts';

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
