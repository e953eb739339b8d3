import { describe, expect, test } from 'vitest';
import { type Free, LinkCalendar } from '../../src/allocator/calendar.ts';
import {
  type Demand,
  type Holding,
  TAG_PLACES,
  type TagPlace,
  type Tags,
} from '../../src/allocator/demand.ts';
import { fastestOver } from '../../src/allocator/fastest.ts';
import { seeded } from '../bench/seeded.ts';
import { agree } from './agree.ts';
import { Oracle } from './oracle.ts';
import { smallLink } from './small-link.ts';

/** How many random calendars are tried. `npm run prove` tries 2,000. */
const CALENDARS = Number(process.env['PROVE_CALENDARS'] ?? 120);
/** Reservations start before this, and windows lie around it. */
const HORIZON = 40;

/** A calendar and the oracle that knows the same, with reservations put in and taken out again. */
class Both {
  readonly calendar: LinkCalendar;
  readonly oracle: Oracle;
  readonly tenant: string | undefined;
  readonly bandwidth: number;
  readonly upTo: (bound: number) => number;
  readonly #sizes: Record<TagPlace, number>;

  constructor(seed: number) {
    const random = seeded(seed);
    this.upTo = (bound) => Math.floor(random() * bound);
    const [a, b, c, d] = [this.#size(), this.#size(), this.#size(), this.#size()];
    this.#sizes = { site1_s_tag: a, site1_c_tag: b, site2_s_tag: c, site2_c_tag: d };
    this.bandwidth = 2 + this.upTo(9);
    const link = smallLink({
      bandwidth: this.bandwidth,
      site1_s_tags: [1, a],
      site1_c_tags: [1, b],
      site2_s_tags: [1, c],
      site2_c_tags: [1, d],
    });
    const share = seed % 3 === 0 ? 30 + this.upTo(60) : 100;
    this.calendar = new LinkCalendar(link, share);
    this.oracle = new Oracle(link, share);
    this.tenant = this.upTo(4) === 0 ? undefined : 'x';
    this.oracle.tenant = this.tenant;
    const most = 4 + this.upTo(24);
    for (let step = 0; step < most * 1.5; step += 1) {
      if (this.upTo(4) > 0) this.#add(`r${step}`);
      else this.#remove();
    }
  }

  window(): { start: number; end: number } {
    const start = this.upTo(HORIZON);
    return { start, end: start + 1 + this.upTo(HORIZON) };
  }

  #size(): number {
    return this.upTo(5) === 0 ? 1 : 2 + this.upTo(4);
  }

  #add(id: string): void {
    const start = this.upTo(HORIZON);
    const demand = { start, end: start + 1 + this.upTo(12), bandwidth: 1 + this.upTo(4) };
    const plan = this.calendar.plan(demand, 0);
    expect(plan).toEqual(this.oracle.plan(demand, 0));
    if (!plan.accepted) return;
    const tags: Tags = { ...plan.tags };
    for (const place of TAG_PLACES) {
      // The topology had more tags, or others, when it was made; or best fit would leave no gaps.
      if (this.upTo(12) === 0) tags[place] = 90 + this.upTo(1000);
      else if (this.upTo(2) === 0) tags[place] = this.#someTag(place, demand) ?? tags[place];
    }
    const holding: Holding = { ...demand, tags, tenant: this.upTo(3) === 0 ? 'y' : 'x' };
    this.calendar.put(id, holding);
    this.oracle.hold(id, holding);
  }

  #someTag(place: TagPlace, { start, end }: Demand): number | undefined {
    const held = [...this.oracle.held.values()].filter((each) => each.start < end && start < each.end);
    const tag = 1 + this.upTo(this.#sizes[place]);
    return held.some(({ tags }) => tags[place] === tag) ? undefined : tag;
  }

  #remove(): void {
    const ids = [...this.oracle.held.keys()];
    const id = ids[this.upTo(ids.length)];
    if (id === undefined) return;
    this.calendar.remove(id);
    this.oracle.drop(id);
  }
}

/** Milliseconds joined where nothing changes. */
function joined(free: readonly Free[]): Free[] {
  const steps: Free[] = [];
  for (const each of free) {
    const last = steps.at(-1);
    if (last?.bandwidth === each.bandwidth && last.tags === each.tags) last.end = each.end;
    else steps.push({ ...each });
  }
  return steps;
}

/** Milliseconds cut into columns. */
function cut(free: readonly Free[], start: number, count: number): Free[] {
  const columns = Math.min(count, free.length);
  return Array.from({ length: columns }, (_, index) => {
    const from = Math.floor((index * free.length) / columns);
    const to = Math.floor(((index + 1) * free.length) / columns);
    const part = free.slice(from, to);
    return {
      start: start + from,
      end: start + to,
      bandwidth: Math.min(...part.map(({ bandwidth }) => bandwidth)),
      bandwidthMax: Math.max(...part.map(({ bandwidth }) => bandwidth)),
      tags: Math.min(...part.map(({ tags }) => tags)),
    };
  });
}

describe('the searches give the answers that a trial of every millisecond gives', () => {
  const seeds = Array.from({ length: CALENDARS }, (_, index) => index + 1);
  const seen = { slots: 0, fastest: 0, most: 0, tags: 0 };

  // This counts calendars and has no time limit of its own.
  test(`in ${CALENDARS} random calendars, tags and shares included`, { timeout: 3_600_000 }, () => {
    for (const seed of seeds) {
      const both = new Both(seed);
      const { calendar, oracle, tenant, upTo } = both;
      for (let asked = 0; asked < 3; asked += 1) {
        const window = both.window();
        const duration = 1 + upTo(10);
        const bandwidth = 1 + upTo(both.bandwidth + 1);
        const volume = 1 + upTo(125 * both.bandwidth * 12);
        const count = 1 + upTo(HORIZON);
        const free = oracle.free(window);
        const slots = [...calendar.slots({ ...window, bandwidth, duration }, tenant)];
        const answers = {
          steps: [...calendar.steps(window)],
          columns: calendar.columns(window, count),
          starts: slots.flatMap(({ first, last }) =>
            Array.from({ length: last - first + 1 }, (_, index) => first + index),
          ),
          apart: slots.every(({ first }, index) => index === 0 || first > (slots[index - 1]?.last ?? 0) + 1),
          earliest: calendar.earliest(window.start, duration, bandwidth, tenant),
          freeUntil: calendar.freeUntil(window.start, bandwidth, window.end, tenant),
          fastest: fastestOver([calendar], { ...window, bandwidth, volume }, tenant),
          mostBandwidth: calendar.mostBandwidth({ ...window, duration }, tenant),
          freeBandwidth: calendar.freeBandwidth(window, tenant),
        };
        const due = {
          steps: joined(free),
          columns: cut(free, window.start, count),
          starts: oracle.starts({ ...window, bandwidth, duration }),
          apart: true,
          earliest: oracle.earliest(window.start, duration, bandwidth, 4 * HORIZON),
          freeUntil: oracle.freeUntil(window.start, bandwidth, window.end),
          fastest: oracle.fastest({ ...window, bandwidth, volume }),
          mostBandwidth: oracle.mostBandwidth({ ...window, duration }),
          freeBandwidth: oracle.most(window),
        };
        agree(answers, due, { seed, asked });
        seen.slots += slots.length > 1 ? 1 : 0;
        seen.fastest += due.fastest && due.fastest.start > window.start ? 1 : 0;
        seen.most += due.mostBandwidth > due.freeBandwidth && due.freeBandwidth > 0 ? 1 : 0;
        seen.tags += free.some(({ tags }) => tags === 0) ? 1 : 0;
      }
    }
  });

  test('every kind of answer came up often', () => {
    for (const [kind, times] of Object.entries(seen)) {
      expect.soft(times, kind).toBeGreaterThan(CALENDARS / 20);
    }
  });
});
