import { expect, test } from 'vitest';
import { HOUR } from '../../src/contract/durations.ts';
import { UTC_TIMES } from '../../src/contract/said.ts';
import { type Asked, alternativeText, type Offered } from '../../src/words/alternatives.ts';

const NOW = Date.parse('2026-12-01T09:00:00Z');
const START = NOW + 2 * HOUR;
const ASKED: Asked = { start: START, end: START + 8 * HOUR };
const text = (offered: Partial<Offered>, asked: Asked | undefined = ASKED) =>
  alternativeText(
    { bandwidth: 9000, start: START, end: START + 8 * HOUR, ...offered },
    asked,
    NOW,
    UTC_TIMES,
  );

test.each([
  [{ bandwidth: 6000 }, '6 Gbps, same period'],
  [
    { via: ['fr-slices', 'se-kth'] },
    '9 Gbps, same period, via fr-slices, se-kth: leaves others less on 3 links',
  ],
  [{ end: START + 2 * HOUR }, '9 Gbps for 2 h'],
  [{ start: START + HOUR, end: START + 9 * HOUR }, '9 Gbps from 2026-12-01T12:00:00.000Z'],
  [{ start: START + HOUR }, '9 Gbps from 2026-12-01T12:00:00.000Z for 7 h'],
  [{ start: 'now', end: NOW + 8 * HOUR }, '9 Gbps from now'],
] as const)('%j is said by what differs from what was asked for', (offered, said) => {
  expect(text(offered)).toBe(said);
});

test('of a request that starts at once, a few seconds are no difference', () => {
  expect(text({ start: 'now', end: NOW + 8 * HOUR - 5000 }, { start: 'now', end: NOW + 8 * HOUR })).toBe(
    '9 Gbps, same period',
  );
});

test('of a search its own result is told', () => {
  expect(text({ start: START + HOUR, end: START + 2 * HOUR }, { ...ASKED, duration: HOUR })).toBe(
    '9 Gbps from 2026-12-01T12:00:00.000Z',
  );
  expect(text({}, { ...ASKED, volume: 1e12 })).toBe('done by 2026-12-01T19:00:00.000Z');
});

test('without what was asked for, all of it is told', () => {
  const offered = { bandwidth: 500, start: START, end: START + HOUR };
  expect(alternativeText(offered, undefined, NOW, UTC_TIMES)).toBe(
    '500 Mbps from 2026-12-01T11:00:00.000Z to 2026-12-01T12:00:00.000Z',
  );
});
