import { describe, expect, test } from 'vitest';
import { LinkCalendar } from '../../src/allocator/calendar.ts';
import { type Demand, TAG_PLACES, type Tags } from '../../src/allocator/demand.ts';
import type { TagRange } from '../../src/contract/links.ts';
import { smallLink } from './small-link.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const TEN = 10 * HOUR;
const ELEVEN = 11 * HOUR;

describe('LinkCalendar.plan', () => {
  test.each([
    {
      rule: '600 + 500 = 1100 > 1000; 400 are free from 10:30 to 11:00',
      demand: { start: TEN + 30 * MINUTE, end: ELEVEN + 30 * MINUTE, bandwidth: 500 },
      refusal: { limit: 'bandwidth', capacity: 1000, free: 400, start: TEN + 30 * MINUTE, end: ELEVEN },
    },
    { rule: 'the first has ended at 11:00', demand: { start: ELEVEN, end: 12 * HOUR, bandwidth: 500 } },
    { rule: 'what ends as the first starts', demand: { start: 9 * HOUR, end: TEN, bandwidth: 1000 } },
    {
      rule: 'one millisecond of overlap is one too many',
      demand: { start: ELEVEN - 1, end: 12 * HOUR, bandwidth: 401 },
      refusal: { limit: 'bandwidth', capacity: 1000, free: 400, start: ELEVEN - 1, end: ELEVEN },
    },
    { rule: '600 + 400 = 1000 fills the link', demand: { start: TEN, end: ELEVEN, bandwidth: 400 } },
    {
      rule: 'more than the capacity is too much where nothing is booked, too',
      demand: { start: 0, end: HOUR, bandwidth: 1001 },
      refusal: { limit: 'bandwidth', capacity: 1000, free: 1000, start: 0, end: HOUR },
    },
  ])('1000 Mbps, 600 booked from 10:00 to 11:00: $rule', ({ demand, refusal }) => {
    const decision = booked().plan(demand, 0);
    if (refusal) expect(decision).toEqual({ accepted: false, refusals: [refusal] });
    else expect(decision.accepted).toBe(true);
  });

  test('a refusal for bandwidth names the tightest part of the period, the first one on a tie', () => {
    const range: TagRange = [1, 4];
    const calendar = new LinkCalendar(
      smallLink({ site1_s_tags: range, site1_c_tags: range, site2_s_tags: range, site2_c_tags: range }),
    );
    calendar.put('one', { start: 10, end: 20, bandwidth: 300, tags: tags(1) });
    calendar.put('two', { start: 30, end: 35, bandwidth: 700, tags: tags(1) });
    calendar.put('three', { start: 35, end: 40, bandwidth: 700, tags: tags(2) });
    calendar.put('four', { start: 50, end: 60, bandwidth: 700, tags: tags(3) });
    expect(calendar.plan({ start: 0, end: 90, bandwidth: 800 }, 0)).toEqual({
      accepted: false,
      refusals: [{ limit: 'bandwidth', capacity: 1000, free: 300, start: 30, end: 40 }],
    });
  });

  test.each(TAG_PLACES)(
    '%s is refused over the whole period when each tag is held in a part of it',
    (place) => {
      const calendar = new LinkCalendar(smallLink({ [`${place}s`]: [8, 9] }));
      calendar.put('one', { start: 10, end: 20, bandwidth: 1, tags: { ...tags(1), [place]: 8 } });
      calendar.put('two', { start: 30, end: 40, bandwidth: 1, tags: { ...tags(1), [place]: 9 } });
      expect(calendar.plan({ start: 19, end: 31, bandwidth: 1 }, 0)).toEqual({
        accepted: false,
        refusals: [{ limit: 'tags', place, total: 2, start: 19, end: 31 }],
      });
      expect(calendar.plan({ start: 20, end: 31, bandwidth: 1 }, 0)).toMatchObject({ accepted: true });
      expect(calendar.plan({ start: 19, end: 30, bandwidth: 1 }, 0)).toMatchObject({ accepted: true });
    },
  );

  test('a refusal names every broken limit, always in the same order', () => {
    const calendar = new LinkCalendar(smallLink({ site1_c_tags: [5, 5], site2_s_tags: [7, 7] }));
    calendar.put('one', {
      start: 10,
      end: 20,
      bandwidth: 900,
      tags: { ...tags(1), site1_c_tag: 5, site2_s_tag: 7 },
    });
    expect(calendar.plan({ start: 15, end: 25, bandwidth: 200 }, 0)).toEqual({
      accepted: false,
      refusals: [
        { limit: 'bandwidth', capacity: 1000, free: 100, start: 15, end: 20 },
        { limit: 'tags', place: 'site1_c_tag', total: 1, start: 15, end: 25 },
        { limit: 'tags', place: 'site2_s_tag', total: 1, start: 15, end: 25 },
      ],
    });
  });

  test('each place chooses its own best tag', () => {
    const calendar = new LinkCalendar(smallLink());
    calendar.put('one', {
      start: 10,
      end: 20,
      bandwidth: 1,
      tags: { site1_s_tag: 1, site1_c_tag: 2, site2_s_tag: 3, site2_c_tag: 1 },
    });
    calendar.put('two', {
      start: 10,
      end: 19,
      bandwidth: 1,
      tags: { site1_s_tag: 2, site1_c_tag: 1, site2_s_tag: 1, site2_c_tag: 3 },
    });
    const fit = { site1_s_tag: 1, site1_c_tag: 2, site2_s_tag: 3, site2_c_tag: 1 };
    expect(calendar.plan({ start: 20, end: 30, bandwidth: 1 }, 0)).toEqual({ accepted: true, tags: fit });
  });

  test('deciding changes nothing', () => {
    const calendar = booked();
    const demand = { start: TEN, end: ELEVEN, bandwidth: 400 };
    expect(calendar.plan(demand, 0)).toEqual(calendar.plan(demand, 0));
  });
});

describe('an update of a reservation', () => {
  test.each([
    { rule: 'stays as it is', start: 10, end: 20, bandwidth: 600 },
    { rule: 'is shortened', start: 12, end: 18, bandwidth: 600 },
    { rule: 'takes all of the link', start: 10, end: 20, bandwidth: 1000 },
    { rule: 'moves by half of itself', start: 15, end: 25, bandwidth: 600 },
  ])('a reservation does not compete with itself when it $rule', ({ rule: _, ...demand }) => {
    const calendar = new LinkCalendar(
      smallLink({ site1_s_tags: [2, 2], site1_c_tags: [2, 2], site2_s_tags: [2, 2], site2_c_tags: [2, 2] }),
    );
    calendar.put('own', { start: 10, end: 20, bandwidth: 600, tags: tags(2) });
    expect(planUpdate(calendar, 'own', demand, tags(2))).toEqual({ accepted: true, tags: tags(2) });
  });

  test('the use of other reservations counts', () => {
    const calendar = new LinkCalendar(smallLink());
    calendar.put('own', { start: 10, end: 20, bandwidth: 600, tags: tags(1) });
    calendar.put('other', { start: 15, end: 25, bandwidth: 300, tags: tags(2) });
    expect(planUpdate(calendar, 'own', { start: 10, end: 20, bandwidth: 701 }, tags(1))).toEqual({
      accepted: false,
      refusals: [{ limit: 'bandwidth', capacity: 1000, free: 700, start: 15, end: 20 }],
    });
  });

  test('an update keeps each tag that stays free, where best fit would choose another one', () => {
    const calendar = new LinkCalendar(smallLink());
    calendar.put('own', { start: 10, end: 20, bandwidth: 1, tags: tags(3) });
    calendar.put('near', { start: 5, end: 10, bandwidth: 1, tags: tags(2) });
    calendar.put('in the way', { start: 25, end: 30, bandwidth: 1, tags: { ...tags(1), site2_c_tag: 3 } });
    expect(planUpdate(calendar, 'own', { start: 10, end: 26, bandwidth: 1 }, tags(3))).toEqual({
      accepted: true,
      tags: { ...tags(3), site2_c_tag: 2 },
    });
  });

  test('the reservation is held as before, whether the plan is accepted or refused', () => {
    for (const bandwidth of [1000, 1001]) {
      const calendar = booked();
      planUpdate(calendar, 'first', { start: TEN, end: ELEVEN, bandwidth }, tags(1));
      expect(calendar.freeBandwidth({ start: TEN, end: ELEVEN })).toBe(400);
    }
  });

  test('an unknown reservation is decided like a new one', () => {
    const demand = { start: TEN, end: ELEVEN, bandwidth: 400 };
    expect(planUpdate(booked(), 'unknown', demand)).toEqual(booked().plan(demand, 0));
  });
});

/** Plans an update as an operation does: without the reservation, and with its tags where they stay free. */
function planUpdate(calendar: LinkCalendar, id: string, demand: Demand, keep?: Tags) {
  return calendar.without(id, (rest) => rest.plan(demand, 0, keep && { keep }));
}

describe('LinkCalendar.without', () => {
  test('asks about the calendar without the reservation', () => {
    const calendar = booked();
    expect(calendar.without('first', (rest) => rest.freeBandwidth({ start: TEN, end: ELEVEN }))).toBe(1000);
    expect(calendar.freeBandwidth({ start: TEN, end: ELEVEN })).toBe(400);
  });

  test('the reservation is held again when `ask` throws', () => {
    const calendar = booked();
    const ask = (): never => {
      throw new Error('no answer');
    };
    expect(() => calendar.without('first', ask)).toThrow('no answer');
    expect(calendar.freeBandwidth({ start: TEN, end: ELEVEN })).toBe(400);
    expect(calendar.plan({ start: TEN, end: ELEVEN, bandwidth: 1 }, 0)).toEqual({
      accepted: true,
      tags: tags(2),
    });
  });

  test('an unknown reservation is not held afterwards', () => {
    const calendar = booked();
    calendar.without('unknown', () => undefined);
    expect(calendar.freeBandwidth({ start: TEN, end: ELEVEN })).toBe(400);
  });
});

describe('LinkCalendar.put and remove', () => {
  test('holding a reservation again replaces its former period', () => {
    const calendar = booked();
    calendar.put('first', { start: TEN, end: ELEVEN, bandwidth: 100, tags: tags(1) });
    expect(calendar.freeBandwidth({ start: TEN, end: ELEVEN })).toBe(900);
    calendar.remove('first');
    calendar.remove('first');
    expect(calendar.freeBandwidth({ start: TEN, end: ELEVEN })).toBe(1000);
  });

  test('a held tag is not held a second time', () => {
    const holding = { start: TEN + 1, end: TEN + 2, bandwidth: 1, tags: { ...tags(2), site2_c_tag: 1 } };
    expect(() => booked().put('second', holding)).toThrow(RangeError);
  });
});

describe('searches over a link', () => {
  test.each([
    { rule: 'nothing is booked', period: { start: 0, end: TEN }, most: 1000 },
    { rule: 'the tightest part decides', period: { start: 0, end: ELEVEN }, most: 400 },
    { rule: 'half-open', period: { start: ELEVEN, end: 12 * HOUR }, most: 1000 },
  ])('the most over a period: $rule', ({ period, most }) => {
    expect(booked().freeBandwidth(period)).toBe(most);
  });

  test('the most is nothing when one place has no tag left', () => {
    const calendar = new LinkCalendar(smallLink({ site2_s_tags: [1, 1] }));
    calendar.put('first', { start: 10, end: 20, bandwidth: 1, tags: tags(1) });
    expect(calendar.freeBandwidth({ start: 19, end: 21 })).toBe(0);
    expect(calendar.freeBandwidth({ start: 20, end: 21 })).toBe(1000);
  });

  test('the most is found on a link of the largest bandwidth that there is', () => {
    const bandwidth = 999_999_999_999_999;
    const calendar = new LinkCalendar(smallLink({ bandwidth }));
    calendar.put('one', { start: 0, end: 10, bandwidth: bandwidth - 5, tags: tags(1) });
    calendar.put('two', { start: 5, end: 20, bandwidth: 2, tags: tags(2) });
    expect(calendar.mostBandwidth({ start: 0, end: 10, duration: 5 })).toBe(5);
    expect(calendar.mostBandwidth({ start: 0, end: 20, duration: 5 })).toBe(bandwidth - 2);
  });

  test('whether any tag is free is known after a few neighbours; the best one is found all the same', () => {
    const many: TagRange = [1, 40];
    const calendar = new LinkCalendar(
      smallLink({ site1_s_tags: many, site1_c_tags: many, site2_s_tags: many }),
    );
    const free = { ...tags(2), site2_c_tag: 2 };
    for (let tag = 3; tag <= 40; tag += 1) {
      // Nearest first come those whose tags are held in the period too.
      const held = { ...tags(tag), site2_c_tag: 90 };
      calendar.put(`before${tag}`, { start: 0, end: 60 + tag, bandwidth: 1, tags: held });
      calendar.put(`in${tag}`, { start: 110, end: 120, bandwidth: 1, tags: held });
    }
    calendar.put('far', { start: 0, end: 50, bandwidth: 1, tags: free });
    const demand = { start: 105, end: 115, bandwidth: 1 };
    expect(calendar.plan(demand, 0)).toEqual({ accepted: true, tags: free });
    calendar.put('third', { ...demand, bandwidth: 1, tags: { ...tags(1), site2_c_tag: 3 } });
    calendar.put('second', { ...demand, bandwidth: 1, tags: { ...tags(2), site2_c_tag: 90 } });
    const { start, end } = demand;
    const refused = ['site1_s_tag', 'site1_c_tag', 'site2_s_tag'].map((place) => ({
      limit: 'tags',
      place,
      total: 40,
      start,
      end,
    }));
    expect(calendar.plan(demand, 0)).toEqual({ accepted: false, refusals: refused });
  });

  test('the earliest start is the first instant at which all five limits agree', () => {
    const calendar = new LinkCalendar(smallLink({ site1_s_tags: [1, 1], site2_c_tags: [1, 1] }));
    calendar.put('one', { start: 10, end: 20, bandwidth: 600, tags: tags(1) });
    calendar.put('two', { start: 25, end: 30, bandwidth: 1, tags: tags(1) });
    expect(calendar.earliest(0, 10, 500)).toBe(0);
    expect(calendar.earliest(1, 5, 500)).toBe(1);
    expect(calendar.earliest(6, 5, 500)).toBe(20);
    expect(calendar.earliest(6, 6, 500)).toBe(30);
  });

  test('a demand above the capacity has no earliest start', () => {
    expect(booked().earliest(0, 1, 1001)).toBeUndefined();
    expect(booked().earliest(TEN, 1, 1000)).toBe(ELEVEN);
  });
});

/** The docstring's link: 1000 Mbps, 600 of them and tag 1 booked from 10:00 to 11:00. */
function booked(): LinkCalendar {
  const calendar = new LinkCalendar(smallLink());
  calendar.put('first', { start: TEN, end: ELEVEN, bandwidth: 600, tags: tags(1) });
  return calendar;
}

function tags(tag: number): Tags {
  return { site1_s_tag: tag, site1_c_tag: tag, site2_s_tag: tag, site2_c_tag: tag };
}
