import { describe, expect, test } from 'vitest';
import type { Period, Tags } from '../../src/allocator/demand.ts';
import { LinkUse, MAX_ROWS } from '../../src/allocator/link-use.ts';
import { RouteUse } from '../../src/allocator/route-use.ts';
import { TooMuchError } from '../../src/allocator/steps.ts';
import type { HeldReservation } from '../../src/allocator/store.ts';
import { DAY, HOUR, MINUTE } from '../../src/contract/durations.ts';
import { smallLink } from './small-link.ts';
import { answerOf, rowsOf, useOf } from './uses.ts';

const TEN = 10 * HOUR;
const ELEVEN = 11 * HOUR;

describe('the documented link: 1000 Mbps, 600 booked from 10:00 to 11:00', () => {
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
  ])('$rule', async ({ demand, refusal }) => {
    const plan = await answerOf(booked().plan(demand));
    if (refusal) expect(plan).toEqual({ accepted: false, refusals: [refusal] });
    else expect(plan.accepted).toBe(true);
  });
});

test('the most is found on a link of the largest bandwidth that there is', async () => {
  const link = smallLink({ bandwidth: 999_999_999_999_999 });
  const one = { start: 0, end: 10, bandwidth: link.bandwidth - 5, tags: tags(1) };
  const two = { start: 5, end: 20, bandwidth: 2, tags: tags(2) };
  const use = useOf(link, new Map(Object.entries({ one, two })));
  const route = new RouteUse([use], [[link]]);
  expect(await answerOf(route.mostBandwidth({ start: 0, end: 10, duration: 5 }))).toBe(5);
  expect(await answerOf(route.mostBandwidth({ start: 0, end: 20, duration: 5 }))).toBe(link.bandwidth - 2);
});

describe('what was changed here', () => {
  const free = (use: LinkUse, end = ELEVEN) => answerOf(use.freeBandwidth({ start: TEN, end }));
  const changed = { id: 'first', start: TEN, end: ELEVEN, bandwidth: 100, tags: tags(1), tenant: '' };

  test('takes the place of the row that was read', async () => {
    const use = booked();
    expect(await free(use)).toBe(400);
    use.put(changed);
    expect(await free(use)).toBe(900);
    use.remove('first');
    use.remove('first');
    expect(await free(use)).toBe(1000);
  });

  test('stays where its row is read only afterwards', async () => {
    for (const [change, due] of [
      [(use: LinkUse) => use.put(changed), 900],
      [(use: LinkUse) => use.remove('first'), 1000],
    ] as const) {
      const use = booked();
      change(use);
      expect(await free(use)).toBe(due);
      expect(await free(use, 3 * DAY)).toBe(due);
    }
  });

  test('is as before when work without a reservation fails', async () => {
    const use = booked();
    await use.load({ start: 0, end: ELEVEN });
    const route = new RouteUse([use], [[use.link]]);
    function* fail(): Generator<undefined, never, void> {
      yield;
      throw new Error('no answer');
    }
    await expect(answerOf(route.without('first', fail()))).rejects.toThrow('no answer');
    expect(await free(use)).toBe(400);
    await answerOf(route.without('unknown', use.freeBandwidth({ start: 0, end: 1 })));
    expect(await free(use)).toBe(400);
  });
});

describe('the rows of a link are read', () => {
  /** A link on which every instant up to the last is full. */
  function full(last: number): { use: LinkUse; reads: Period[] } {
    const reads: Period[] = [];
    const all = { start: 0, end: last, bandwidth: 1000, tags: tags(1) };
    const read = async (period: Period) => {
      reads.push(period);
      return rowsOf(new Map([['all', all]]), period);
    };
    return { use: new LinkUse('a~b', smallLink(), { read }), reads };
  }

  test('as far as a demand goes, and once', async () => {
    const { use, reads } = full(20 * DAY);
    for (const bandwidth of [1, 2]) await answerOf(use.plan({ start: DAY, end: DAY + HOUR, bandwidth }));
    expect(reads).toEqual([{ start: DAY, end: DAY + HOUR }]);
  });

  test('in portions that grow, where a search goes on', async () => {
    const { use, reads } = full(DAY);
    // Each day ends as the next begins.
    for (let day = 1; day < 1000; day += 1) {
      use.put({
        id: `r${day}`,
        start: day * DAY,
        end: (day + 1) * DAY,
        bandwidth: 1000,
        tags: tags(1),
        tenant: '',
      });
    }
    const sought = { start: DAY, end: 2000 * DAY, bandwidth: 1, duration: HOUR };
    for (let end = 2; end <= 1000; end += 1) await answerOf(use.earliest({ ...sought, end: end * DAY }));
    expect(await answerOf(use.earliest(sought))).toBe(1000 * DAY);
    expect(reads.length).toBeLessThan(Math.log2(1000));
    // What is full anyway is left out, and nothing is read twice.
    for (const [index, { start }] of reads.entries()) {
      expect(start).toBeGreaterThanOrEqual(reads[index - 1]?.end ?? DAY);
    }
  });

  test(`${MAX_ROWS} at most: more are too much`, async () => {
    const rows = Array.from({ length: MAX_ROWS + 1 }, (_, index): HeldReservation => {
      return { id: `r${index}`, start: 0, end: 10, bandwidth: 0, tags: tags(9), tenant: '' };
    });
    for (const [most, failure] of [
      [MAX_ROWS, undefined],
      [MAX_ROWS + 1, TooMuchError],
    ] as const) {
      const read = async () => rows.slice(0, most);
      const use = new LinkUse('a~b', smallLink(), { read });
      const answer = answerOf(use.freeBandwidth({ start: 0, end: 10 }));
      if (failure) await expect(answer).rejects.toThrow(failure);
      else expect(await answer).toBe(1000);
    }
  });
});

/** The documented link. */
function booked(): LinkUse {
  return useOf(smallLink(), new Map([['first', { start: TEN, end: ELEVEN, bandwidth: 600, tags: tags(1) }]]));
}

function tags(tag: number): Tags {
  return { site1_s_tag: tag, site1_c_tag: tag, site2_s_tag: tag, site2_c_tag: tag };
}
