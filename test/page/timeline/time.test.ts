import { expect, it } from 'vitest';
import { MINUTE } from '../../../src/contract/durations.ts';
import {
  freeText,
  mostOf,
  periodSentence,
  periodText,
  windowText,
} from '../../../src/page/timeline/words.ts';
import { createClock } from '../../../src/words/civil-time.ts';

const brussels = createClock('Europe/Brussels');
/** Brussels puts its clocks back on 25 Oct 2026 at 03:00. */
const BACK = Date.UTC(2026, 9, 25, 1);
const NOW = Date.UTC(2026, 10, 22, 10, 30);
const calendar = { clock: brussels, now: NOW };
const link = { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 10_000 };
const at = (...parts: [number, number, number, number?]): number => brussels.instant(Date.UTC(...parts));

it('say a period of a link as a person would', () => {
  const period = { start: at(2026, 10, 23, 9), end: at(2026, 10, 23, 17) };
  const facts = { free: 6000, freeMax: 6000, vlans: 996 };
  const ends = { site1: 'be-gent1', site2: 'pl-poznan1', ...period };
  const own = [{ id: 'con_x_01jd3x0m2sf0vrv9mhb1wk6x4q', name: 'training', bandwidth: 500, ...ends }];
  expect(periodSentence(link, period, { facts, own: [], calendar })).toBe(
    'be-gent1 – pl-poznan1, Mon 23 Nov 09:00 to 17:00: 6 of 10 Gbps free throughout, 996 VLANs.',
  );
  expect(periodSentence(link, period, { facts: undefined, own, calendar })).toBe(
    'be-gent1 – pl-poznan1, Mon 23 Nov 09:00 to 17:00: not loaded yet; yours: training with 500 Mbps.',
  );
  expect(periodSentence(link, period, { facts: 'over', own: [], calendar })).toContain(
    ': this time is over.',
  );
});

it('say of several reservations how many they are, and the most that they have at the same time', () => {
  const ends = { site1: 'be-gent1', site2: 'pl-poznan1' };
  const own = (start: number, end: number, bandwidth: number) => ({
    ...{ ...ends, id: `con_x_${start}`, bandwidth, start: NOW + start, end: NOW + end },
  });
  const some = [own(0, 10, 1000), own(10, 20, 1400), own(15, 40, 300), own(-5, 2, 600)];
  expect([mostOf(some, NOW), mostOf(some, NOW + 3), mostOf([], NOW)]).toEqual([1700, 1700, 0]);
  const period = { start: NOW, end: NOW + 30 };
  expect(periodSentence(link, period, { facts: undefined, own: some, calendar })).toMatch(
    /: not loaded yet; 4 of yours, 1\.7 Gbps at most\.$/,
  );
});

it('say what is free with its units', () => {
  expect(freeText({ free: 500, freeMax: 2500, vlans: 1 }, link)).toBe(
    '500 Mbps of 10 Gbps free throughout, up to 2.5 Gbps for part of it, 1 VLAN',
  );
  expect(freeText({ free: 0, freeMax: 0, vlans: 0 }, link)).toBe('0 of 10 Gbps free throughout, 0 VLANs');
});

it('name both days, another year, and which of two hours', () => {
  const period = { start: at(2026, 11, 31, 22), end: at(2027, 0, 1, 3) };
  expect(periodText(period, calendar)).toBe('Thu 31 Dec 22:00 to Fri 1 Jan 2027 03:00');
  expect(periodText({ start: BACK - 30 * MINUTE, end: BACK + 30 * MINUTE }, calendar)).toBe(
    'Sun 25 Oct 02:30 (UTC+2) to 02:30 (UTC+1)',
  );
});

it('name a window of whole days by its days', () => {
  const titles = [
    [at(2026, 10, 23), at(2026, 10, 24)],
    [at(2026, 10, 23), at(2026, 10, 30)],
    [at(2026, 11, 1), at(2027, 11, 1)],
    [at(2026, 10, 23, 9), at(2026, 10, 23, 12)],
  ].map(([start = 0, end = 0]) => windowText({ start, end }, calendar));
  expect(titles).toEqual([
    'Mon 23 Nov 2026',
    'Mon 23 Nov to Sun 29 Nov 2026',
    'Tue 1 Dec 2026 to Tue 30 Nov 2027',
    'Mon 23 Nov 09:00 to 12:00',
  ]);
});
