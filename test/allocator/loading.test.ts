import { describe, expect, test } from 'vitest';
import { canCatchUp, loadCalendar } from '../../src/allocator/cached-calendar.ts';
import { LinkCalendar } from '../../src/allocator/calendar.ts';
import { TAG_PLACES, type Tags } from '../../src/allocator/demand.ts';
import { fastestOver } from '../../src/allocator/fastest.ts';
import type { HeldReservation } from '../../src/allocator/store.ts';
import type { Link } from '../../src/contract/links.ts';
import { seeded } from '../bench/seeded.ts';
import { agree } from './agree.ts';
import { smallLink } from './small-link.ts';

const LINK = smallLink({
  bandwidth: 60,
  site1_s_tags: [1, 30],
  site1_c_tags: [1, 24],
  site2_s_tags: [11, 50],
  site2_c_tags: [5, 36],
});
/** Reservations start before this; so many of them fill several blocks. */
const HORIZON = 20_000;
const LIVE = 1500;

/** A link's calendar as it is read from a store that has these rows. */
async function loaded(link: Link, rows: readonly HeldReservation[], share?: number): Promise<LinkCalendar> {
  const inOrder = rows.toSorted((one, other) => one.end - other.end || one.start - other.start);
  const store: Parameters<typeof loadCalendar>[0] = {
    async loadLink(_link, _from, take) {
      for (let at = 0; at < inOrder.length; at += 250) take(inOrder.slice(at, at + 250));
      return { version: 7, history: 'one' };
    },
  };
  const { calendar, version, from } = await loadCalendar(store, link, 0, { id: 'a~b', share });
  expect({ version, from }).toEqual({ version: 7, from: 0 });
  return calendar;
}

/** Random demands, on few instants, so that many starts and ends coincide; and reservations of them. */
class Random {
  readonly upTo: (bound: number) => number;

  constructor(seed: number) {
    const random = seeded(seed);
    this.upTo = (bound) => Math.floor(random() * bound);
  }

  demand(): { start: number; end: number; bandwidth: number } {
    const start = 10 * this.upTo(HORIZON / 10);
    return { start, end: start + 10 * (1 + this.upTo(40)), bandwidth: 1 + this.upTo(6) };
  }

  /** Books where it fits; now and then with tags that left the topology since. */
  book(calendar: LinkCalendar, id: string): HeldReservation | undefined {
    const demand = this.demand();
    const plan = calendar.plan(demand, 0);
    if (!plan.accepted) return undefined;
    const tags: Tags = { ...plan.tags };
    for (const place of TAG_PLACES) if (this.upTo(30) === 0) tags[place] = 90 + this.upTo(4);
    const held = { id, ...demand, tags, tenant: `exp${this.upTo(3)}` };
    calendar.put(id, held);
    return held;
  }
}

/** Expects two calendars to give the same answers to random questions. */
function sameAnswers(one: LinkCalendar, other: LinkCalendar, random: Random): void {
  for (let asked = 0; asked < 60; asked += 1) {
    const { start, end, bandwidth } = random.demand();
    const duration = end - start;
    const window = { start, end: start + 10 * duration };
    const tenant = random.upTo(2) === 0 ? undefined : 'exp1';
    const questions = { window, duration, bandwidth, tenant };
    const answers = (calendar: LinkCalendar): unknown => ({
      size: calendar.size,
      plan: calendar.plan({ start, end, bandwidth }, start - 50, tenant ? { tenant } : {}),
      free: calendar.freeBandwidth({ start, end }, tenant),
      steps: [...calendar.steps(window)],
      columns: calendar.columns(window, 7),
      slots: [...calendar.slots({ ...window, bandwidth, duration }, tenant)],
      earliest: calendar.earliest(start, duration, bandwidth, tenant),
      freeUntil: calendar.freeUntil(start, bandwidth, window.end, tenant),
      fastest: fastestOver([calendar], { ...window, bandwidth, volume: 4000 }, tenant),
      most: calendar.mostBandwidth({ ...window, duration }, tenant),
      nextEnd: calendar.nextEnd(start),
    });
    agree(answers(one), answers(other), questions);
  }
}

describe('a calendar that is loaded answers as one that was given each reservation by itself', () => {
  test.each([
    { seed: 1, share: undefined },
    { seed: 2, share: 60 },
  ])('then, and after reservations came and went (seed $seed, share $share)', async ({ seed, share }) => {
    const random = new Random(seed);
    const each = new LinkCalendar(LINK, share);
    const rows = new Map<string, HeldReservation>();
    for (let step = 0; rows.size < LIVE; step += 1) {
      const held = random.book(each, `r${step}`);
      if (held) rows.set(held.id, held);
    }
    const read = await loaded(LINK, [...rows.values()], share);
    sameAnswers(read, each, random);
    for (let step = 0; step < 800; step += 1) {
      const ids = [...rows.keys()];
      const id = ids[random.upTo(ids.length)] ?? '';
      rows.delete(id);
      for (const calendar of [read, each]) calendar.remove(id);
      const held = random.upTo(3) === 0 ? random.book(each, `n${step}`) : undefined;
      if (!held) continue;
      rows.set(held.id, held);
      read.put(held.id, held);
    }
    sameAnswers(read, each, random);
    expect(read.evict(HORIZON / 2, LIVE)).toBe(each.evict(HORIZON / 2, LIVE));
    sameAnswers(read, each, random);
    read.evict(2 * HORIZON, LIVE);
    expect(read.size).toBe(0);
    const period = { start: 0, end: 2 * HORIZON };
    expect([...read.steps(period)]).toEqual([...new LinkCalendar(LINK).steps(period)]);
  });

  test('an empty one is free; one with two that follow each other has no step between them', async () => {
    const period = { start: 0, end: 50 };
    const free = { bandwidth: 60, bandwidthMax: 60, tags: 24 };
    const taken = { bandwidth: 50, bandwidthMax: 50, tags: 23 };
    expect([...(await loaded(LINK, [])).steps(period)]).toEqual([{ ...period, ...free }]);
    const two = await loaded(LINK, [row('one', 10, 20), row('two', 20, 30)]);
    expect([...two.steps(period)]).toEqual([
      { start: 0, end: 10, ...free },
      { start: 10, end: 30, ...taken },
      { start: 30, end: 50, ...free },
    ]);
  });

  test.each([
    { rule: 'within the other', start: 12, end: 18 },
    { rule: 'over its start', start: 5, end: 11 },
    { rule: 'over its end', start: 19, end: 25 },
    { rule: 'the same', start: 10, end: 20 },
  ])('rows that hold a tag twice are not loaded: $rule', async ({ start, end }) => {
    await expect(loaded(LINK, [row('one', 10, 20), row('two', start, end)])).rejects.toThrow(
      new RangeError('tag 20 is not free'),
    );
  });

  test('takes the rows in the order of their ends only', () => {
    const calendar = new LinkCalendar(LINK);
    calendar.append('one', row('one', 10, 20));
    expect(() => calendar.append('two', row('two', 5, 9))).toThrow(
      new RangeError('two ends before the last one'),
    );
  });

  test('stops while very many are arranged, so that others have their turn', () => {
    const calendar = new LinkCalendar(LINK);
    for (let at = 0; at < 30_000; at += 1) calendar.append(`r${at}`, row('', 2 * at, 2 * at + 1));
    // Once for each place, around the ends, and three times while the load is summed up.
    expect([...calendar.arrange()]).toHaveLength(9);
    expect(calendar.freeBandwidth({ start: 59_998, end: 59_999 })).toBe(50);
  });
});

/** 10 Mbps, with tag 20 everywhere. */
function row(id: string, start: number, end: number): HeldReservation {
  const tags: Tags = { site1_s_tag: 20, site1_c_tag: 20, site2_s_tag: 20, site2_c_tag: 20 };
  return { id, start, end, bandwidth: 10, tags, tenant: 'exp' };
}

test.each([
  { case: 'the same version', version: 5, can: true },
  { case: 'a later version', version: 6, can: true },
  { case: 'an earlier version, as in a copy that was restored', version: 4, can: false },
  { case: 'another history', version: 6, history: 'two', can: false },
  { case: 'deletions of a later version that are gone', version: 9, forgotten: 6, can: false },
  { case: 'deletions of the same version that are gone', version: 9, forgotten: 5, can: true },
])('a calendar at version 5 can catch up with a link of $case: $can (THREATS.md 72)', ({ can, ...link }) => {
  const known = { calendar: new LinkCalendar(LINK), version: 5, history: 'one', from: 0 };
  expect(canCatchUp(known, { history: 'one', forgotten: 0, ...link })).toBe(can);
});
