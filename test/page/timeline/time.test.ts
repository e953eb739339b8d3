import { expect, it } from 'vitest';
import { MINUTE } from '../../../src/contract/durations.ts';
import type { Period } from '../../../src/contract/instants.ts';
import type { Column, Own } from '../../../src/page/service.ts';
import { periodSentence } from '../../../src/page/timeline/facts.ts';
import { freeText, periodText } from '../../../src/page/timeline/words.ts';
import { createClock } from '../../../src/words/civil-time.ts';

const brussels = createClock('Europe/Brussels');
/** Brussels puts its clocks back on 25 Oct 2026 at 03:00. */
const BACK = Date.UTC(2026, 9, 25, 1);
const NOW = Date.UTC(2026, 10, 22, 10, 30);
const calendar = { clock: brussels, now: NOW };
const link = { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 10_000 };
const at = (...parts: [number, number, number, number?]): number => brussels.instant(Date.UTC(...parts));

const sentence = (period: Period, own: readonly Own[], columns: readonly Column[] = []): string =>
  periodSentence(
    { ...calendar, own: [own], columns: new Map([[link, columns]]) },
    { row: 0, ...period },
    link,
  );

it('say a period of a link as a person would', () => {
  const period = { start: at(2026, 10, 23, 9), end: at(2026, 10, 23, 17) };
  const ends = { site1: 'be-gent1', site2: 'pl-poznan1', ...period };
  const own = [{ id: 'con_x_01jd3x0m2sf0vrv9mhb1wk6x4q', name: 'training', bandwidth: 500, ...ends }];
  const known = { ...period, start: NOW, free: 6000, freeMax: 6000, vlans: 996 };
  expect(sentence(period, [], [known])).toBe(
    'be-gent1 – pl-poznan1, Mon 23 Nov 09:00 to 17:00: 6 of 10 Gbps free throughout, 996 VLANs.',
  );
  expect(sentence(period, own)).toBe(
    'be-gent1 – pl-poznan1, Mon 23 Nov 09:00 to 17:00: not loaded yet; yours: training with 500 Mbps.',
  );
  expect(sentence({ start: NOW - 2, end: NOW - 1 }, [])).toContain(': this time is over.');
});

it('name some of several reservations', () => {
  const ends = { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000 };
  const some = Array.from({ length: 6 }, (_, at) => ({
    ...{ ...ends, id: `con_x_${at}`, name: `run-${at}`, start: NOW, end: NOW + 30 },
  }));
  expect(sentence({ start: NOW, end: NOW + 30 }, some)).toMatch(
    /: not loaded yet; yours: run-0 with 1 Gbps, .*, run-3 with 1 Gbps, and 2 more of yours\.$/,
  );
});

it('say what is free with its units', () => {
  expect(freeText({ free: 500, freeMax: 2500, vlans: 1 }, link)).toBe(
    '500 Mbps of 10 Gbps free throughout, up to 2.5 Gbps for part of it, 1 VLAN',
  );
  expect(freeText({ free: 0, freeMax: 0, vlans: 0 }, link)).toBe(
    '0 of 10 Gbps free throughout, no VLAN left',
  );
});

it('name both days, another year, and which of two hours', () => {
  const period = { start: at(2026, 11, 31, 22), end: at(2027, 0, 1, 3) };
  expect(periodText(period, calendar)).toBe('Thu 31 Dec 22:00 to Fri 1 Jan 2027 03:00');
  expect(periodText({ start: BACK - 30 * MINUTE, end: BACK + 30 * MINUTE }, calendar)).toBe(
    'Sun 25 Oct 02:30 (UTC+2) to 02:30 (UTC+1)',
  );
});
