import { describe, expect, it } from 'vitest';
import { type Axis, axisOf } from '../../../src/page/timeline/axis.ts';
import {
  ceilToStep,
  createClock,
  floorToStep,
  movedByStep,
  nextStep,
  type Step,
} from '../../../src/page/timeline/civil-time.ts';
import {
  freeText,
  instantText,
  periodSentence,
  periodText,
  windowText,
} from '../../../src/page/timeline/words.ts';

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const brussels = createClock('Europe/Brussels');
/** Brussels puts its clocks back on 25 Oct 2026 at 03:00, and forward on 28 Mar 2027 at 02:00. */
const [BACK, FORWARD] = [Date.UTC(2026, 9, 25, 1), Date.UTC(2027, 2, 28, 1)];
const NOW = Date.UTC(2026, 10, 22, 10, 30);
const minutes = (count: number): Step => ({ unit: 'minute', count });
const DAYS: Step = { unit: 'day', count: 1 };
const WEEKS: Step = { unit: 'week', count: 1 };

describe('a clock', () => {
  it('agrees with the zone before and after a change', () => {
    expect(brussels.civil(BACK - 1) - (BACK - 1)).toBe(2 * HOUR);
    expect(brussels.civil(BACK) - BACK).toBe(HOUR);
    expect(createClock('UTC').civil(BACK)).toBe(BACK);
    expect(createClock('Asia/Kolkata').offset(BACK)).toBe(5.5 * HOUR);
    expect(createClock('America/St_Johns').offset(NOW)).toBe(-3.5 * HOUR);
  });

  it('takes the first of two instants, and the later time for one that is skipped', () => {
    expect(brussels.instant(Date.UTC(2026, 9, 25, 2, 30))).toBe(BACK - 30 * MINUTE);
    expect(brussels.instant(Date.UTC(2027, 2, 28, 2, 30))).toBe(FORWARD + 30 * MINUTE);
    expect([BACK - MINUTE, BACK, BACK + HOUR].map(brussels.isTwice)).toEqual([true, true, false]);
  });

  it('finds the first moment of a day that has no midnight', () => {
    const santiago = createClock('America/Santiago');
    const day = santiago.instant(Date.UTC(2026, 8, 6));
    expect(day).toBe(Date.UTC(2026, 8, 6, 4));
    expect(new Date(santiago.civil(day)).getUTCHours()).toBe(1);
    expect(floorToStep(day + 5 * HOUR, DAYS, santiago)).toBe(day);
  });

  it.each(['Europe/Brussels', 'Australia/Lord_Howe', 'America/Santiago', 'Asia/Kolkata', 'UTC'])(
    'floors and goes on without a gap or a circle in %s',
    (zone) => {
      const clock = createClock(zone);
      const steps = [
        minutes(15),
        minutes(60),
        minutes(360),
        DAYS,
        WEEKS,
        { unit: 'month', count: 3 } as const,
      ];
      for (const step of steps) {
        let at = floorToStep(Date.UTC(2026, 8, 1), step, clock);
        for (let times = 0; times < 200; times += 1) {
          const next = nextStep(at, step, clock);
          expect(next).toBeGreaterThan(at);
          expect(floorToStep(next, step, clock)).toBe(next);
          expect(ceilToStep(next - 1, step, clock)).toBe(next);
          expect(floorToStep(next - 1, step, clock)).toBeGreaterThanOrEqual(at);
          at = next;
        }
      }
    },
  );

  it('begins weeks on Monday, and keeps the day of a month as far as there is one', () => {
    const monday = floorToStep(NOW, WEEKS, brussels);
    expect(instantText(monday, { clock: brussels, now: NOW })).toBe('Mon 16 Nov 00:00');
    const civil = Date.UTC(2027, 0, 31, 8);
    expect(movedByStep(civil, { unit: 'month', count: 1 })).toBe(Date.UTC(2027, 1, 28, 8));
    expect(movedByStep(civil, { unit: 'month', count: 1 }, -2)).toBe(Date.UTC(2026, 10, 30, 8));
  });
});

describe('an axis', () => {
  /** Seven pixels a character. */
  const measure = (label: string): number => 7 * label.length;
  const labels = ({ ticks }: Axis): string[] => ticks.map(({ label }) => label);
  const axis = (start: number, end: number, width: number, zone = 'Europe/Brussels'): Axis =>
    axisOf({ start, end }, createClock(zone), { width, measure });
  const day = brussels.instant(Date.UTC(2026, 10, 23));

  it('has hours for a day, and names the day above', () => {
    const found = axis(day, day + DAY, 1000);
    expect(found.spans.map(({ label }) => label)).toEqual(['Mon 23 Nov 2026']);
    expect(labels(found).slice(0, 3)).toEqual(['00:00', '02:00', '04:00']);
  });

  it('has days for a week and for a month, Mondays and months for more', () => {
    expect(labels(axis(day, day + 7 * DAY, 400))).toEqual([
      ...['Mon 23', 'Tue 24', 'Wed 25', 'Thu 26', 'Fri 27', 'Sat 28'],
      'Sun 29',
    ]);
    const month = axis(day, day + 30 * DAY, 375);
    expect(labels(month)).toEqual(['Mon 23', 'Mon 30', 'Mon 7', 'Mon 14', '']);
    expect(month.spans.map(({ label }) => label)).toEqual(['November 2026', 'December 2026']);
    expect(labels(axis(day, day + 365 * DAY, 1000)).slice(0, 3)).toEqual(['December', 'January', 'February']);
    expect(labels(axis(day, day + 365 * DAY, 400)).slice(0, 3)).toEqual(['Dec', 'Jan', 'Feb']);
  });

  it('shows the hour that comes twice twice, and not the one that is skipped', () => {
    const night = labels(axis(BACK - 3 * HOUR, BACK + 3 * HOUR, 300));
    expect(night).toEqual(['00:00', '01:00', '02:00', '02:00', '03:00', '04:00']);
    expect(labels(axis(FORWARD - 2 * HOUR, FORWARD + 2 * HOUR, 240))).toEqual([
      ...['00:00', '01:00', '03:00'],
      '04:00',
    ]);
    const days = axis(brussels.instant(Date.UTC(2026, 9, 24)), brussels.instant(Date.UTC(2026, 9, 27)), 400);
    expect(days.spans.map(({ start, end }) => (end - start) / HOUR)).toEqual([24, 25, 24]);
  });

  it.each([375, 1280])('lets no label reach into another, at any zoom, %i wide', (width) => {
    const random = [0.013, 0.37, 0.51, 0.77, 0.98];
    for (let length = HOUR; length < 700 * DAY; length *= 1.7) {
      for (const share of random) {
        const start = NOW + share * 300 * DAY;
        const window = { start, end: start + length };
        const { spans, ticks } = axisOf(window, brussels, { width, measure });
        const x = (at: number): number => Math.max(0, ((at - start) / length) * width);
        const texts = [
          ticks.map(({ at, label }) => ({ from: x(at), label })),
          spans.map((span) => ({ from: x(span.start), label: span.label })),
        ];
        for (const line of texts) {
          let free = 0;
          for (const { from, label } of line.filter((one) => one.label !== '')) {
            expect(from).toBeGreaterThanOrEqual(free);
            free = from + measure(label);
          }
          expect(free).toBeLessThanOrEqual(width);
        }
        for (const [index, span] of spans.entries()) {
          if (index > 0) expect(span.start).toBe(spans[index - 1]?.end);
        }
        expect(ticks.length).toBeLessThan(width / 7);
      }
    }
  });
});

describe('words', () => {
  const calendar = { clock: brussels, now: NOW };
  const link = { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 10_000 };
  const at = (...parts: [number, number, number, number?]): number => brussels.instant(Date.UTC(...parts));

  it('say a period of a link as a person would', () => {
    const period = { start: at(2026, 10, 23, 9), end: at(2026, 10, 23, 17) };
    const facts = { free: 6000, freeMax: 6000, vlans: 996 };
    const own = [
      {
        ...{ id: 'con_x_01jd3x0m2sf0vrv9mhb1wk6x4q', name: 'training', bandwidth: 500, createdBy: '' },
        ...{
          site1: 'be-gent1',
          site2: 'pl-poznan1',
          ...period,
          tags: [
            { site: '', sTag: 1, cTag: 1 },
            { site: '', sTag: 1, cTag: 1 },
          ] as const,
        },
      },
    ];
    expect(periodSentence(link, period, { facts, own: [], calendar })).toBe(
      'be-gent1 – pl-poznan1, Mon 23 Nov 09:00 to 17:00: 6 of 10 Gbps free throughout, 996 VLANs.',
    );
    expect(periodSentence(link, period, { facts: undefined, own, calendar })).toBe(
      'be-gent1 – pl-poznan1, Mon 23 Nov 09:00 to 17:00: not loaded yet; yours: training with 500 Mbps.',
    );
    expect(periodSentence(link, period, { facts: 'over', own: [], calendar })).toContain(
      'its use is not kept',
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
});
