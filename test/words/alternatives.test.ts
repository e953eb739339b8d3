import { expect, test } from 'vitest';
import { HOUR } from '../../src/contract/durations.ts';
import { UTC_TIMES } from '../../src/contract/said.ts';
import { type Asked, alternativeText, type Offered } from '../../src/words/problems.ts';

const NOW = Date.parse('2026-12-01T09:00:00Z');
const START = NOW + 2 * HOUR;
const ASKED: Asked = { start: START, end: START + 8 * HOUR };
const text = (offered: Partial<Offered>, asked: Asked | undefined) =>
  alternativeText({ bandwidth: 9000, start: START, end: ASKED.end, ...offered }, asked, NOW, UTC_TIMES);
const AT_ONCE: Asked = { start: 'now', end: NOW + 8 * HOUR };
const LONGER = '9 Gbps, same period, via fr-slices, se-kth: leaves others less on 3 links';

test.each<[Asked | undefined, Partial<Offered>, string]>([
  [ASKED, { bandwidth: 6000 }, '6 Gbps, same period'],
  [ASKED, { via: ['fr-slices', 'se-kth'] }, LONGER],
  [ASKED, { end: START + 2 * HOUR }, '9 Gbps for 2 h'],
  [ASKED, { start: START + HOUR, end: START + 9 * HOUR }, '9 Gbps from 2026-12-01T12:00:00.000Z'],
  [ASKED, { start: START + HOUR }, '9 Gbps from 2026-12-01T12:00:00.000Z for 7 h'],
  [ASKED, { start: 'now', end: NOW + 8 * HOUR }, '9 Gbps from now'],
  // Of a request that starts at once, a few seconds are no difference.
  [AT_ONCE, { start: 'now', end: NOW + 8 * HOUR - 5000 }, '9 Gbps, same period'],
  // Of a search its own result is told.
  [{ ...ASKED, duration: 8 * HOUR }, {}, '9 Gbps from 2026-12-01T11:00:00.000Z'],
  [{ ...ASKED, volume: 1e12 }, {}, 'done by 2026-12-01T19:00:00.000Z'],
  [undefined, {}, '9 Gbps from 2026-12-01T11:00:00.000Z to 2026-12-01T19:00:00.000Z'],
])('where %j was asked for, %j is said by what differs: %s', (asked, offered, said) => {
  expect(text(offered, asked)).toBe(said);
});
