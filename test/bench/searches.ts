import { LinkCalendar } from '../../src/allocator/calendar.ts';
import { type Demand, TAG_PLACES, type TagPlace } from '../../src/allocator/demand.ts';
import type { Link, TagRange } from '../../src/contract/links.ts';
import type { Benchmark, Result } from './benchmark.ts';
import { median } from './measure.ts';
import { type Random, seeded } from './seeded.ts';

const HOUR = 3_600_000;
const YEAR = 365 * 24 * HOUR;
const TAGS = 4094;
/** How much of a tag's time is held. */
const HELD = 0.9;
/** Milliseconds: for any search for a start, and for a year's chart. */
const LIMIT = 5;
const LIMIT_CHART = 2;
const COLUMNS = 800;
const CHARTS = 101;
const QUESTIONS = 1000;
/** In how many parts a refusal shows what is free. */
const REFUSED_COLUMNS = 20;
/** How long demands are at most, by how long a tag is held and free in turn: up to the longest gap, and beyond. */
const LENGTHS: readonly number[] = [0.01, 0.05, 0.1, 0.15, 0.18, 0.199, 0.5, 3];
/** What demands are of the link's bandwidth, of which 6% are free on average. */
const SIZES: readonly number[] = [0.001, 0.01, 0.05, 0.06, 0.07, 0.08, 0.1, 0.5];

const RANGE: TagRange = [1, TAGS];

/** A year's reservations on all tags, one after the other on each, in the order of their starts. */
function periods(live: number, random: Random): { start: number; end: number }[] {
  const each = YEAR / (live / TAGS);
  const found: { start: number; end: number }[] = [];
  for (let tag = 0; tag < TAGS; tag += 1) {
    let at = random() * each;
    while (at < YEAR) {
      const start = Math.floor(at + 2 * (1 - HELD) * each * random());
      const end = Math.floor(start + HELD * each * (0.5 + random()));
      found.push({ start, end });
      at = end;
    }
  }
  return found.toSorted((one, other) => one.start - other.start);
}

/** Tags that are free from an instant on, and are taken at random. */
class Pool {
  readonly #free = Array.from({ length: TAGS }, (_, index) => index + 1);

  take(random: Random): number {
    const at = Math.floor(random() * this.#free.length);
    const tag = this.#free[at] ?? 0;
    const last = this.#free.pop();
    if (at < this.#free.length && last !== undefined) this.#free[at] = last;
    return tag;
  }

  give(tag: number): void {
    this.#free.push(tag);
  }
}

/** A link of which bandwidth and tags are nearly used up all the time, so that most searches must look far. */
export function fullCalendar(live: number, random: Random): { calendar: LinkCalendar; capacity: number } {
  const reservations = periods(live, random).map((period) => ({
    ...period,
    bandwidth: 1 + Math.floor(random() * 40),
  }));
  let load = 0;
  for (const { start, end, bandwidth } of reservations) load += ((end - start) / YEAR) * bandwidth;
  const capacity = Math.ceil(load * 1.06);
  const link: Link = {
    site1: 'a',
    site2: 'b',
    bandwidth: capacity,
    site1_s_tags: RANGE,
    site1_c_tags: RANGE,
    site2_s_tags: RANGE,
    site2_c_tags: RANGE,
  };
  const calendar = new LinkCalendar(link);
  const pools: Record<TagPlace, Pool> = {
    site1_s_tag: new Pool(),
    site1_c_tag: new Pool(),
    site2_s_tag: new Pool(),
    site2_c_tag: new Pool(),
  };
  const ended = reservations.map((_, index) => index);
  ended.sort((one, other) => (reservations[one]?.end ?? 0) - (reservations[other]?.end ?? 0));
  const held: Record<TagPlace, number>[] = [];
  let gone = 0;
  for (const [index, reservation] of reservations.entries()) {
    for (; (reservations[ended[gone] ?? 0]?.end ?? 0) <= reservation.start; gone += 1) {
      const tags = held[ended[gone] ?? 0];
      if (tags) for (const place of TAG_PLACES) pools[place].give(tags[place]);
    }
    const tags = {
      site1_s_tag: pools.site1_s_tag.take(random),
      site1_c_tag: pools.site1_c_tag.take(random),
      site2_s_tag: pools.site2_s_tag.take(random),
      site2_c_tag: pools.site2_c_tag.take(random),
    };
    held.push(tags);
    calendar.add(`con_bench_${String(index).padStart(26, '0')}`, { ...reservation, tags });
  }
  return { calendar, capacity };
}

/** How long a question takes, in microseconds: the least of three times, so that what else the machine does counts less. */
export function cost(ask: () => unknown): number {
  let least = Number.POSITIVE_INFINITY;
  for (let time = 0; time < 3; time += 1) {
    const began = process.hrtime.bigint();
    ask();
    least = Math.min(least, Number(process.hrtime.bigint() - began) / 1000);
  }
  return least;
}

/** Demands at random times, of lengths and sizes that are easy to have, hard, and not to be had for long. */
export function demandsOn(
  { live, capacity, count }: { live: number; capacity: number; count: number },
  random: Random,
): Demand[] {
  const upTo = (bound: number): number => Math.floor(random() * bound);
  const oneOf = (values: readonly number[]): number => values[upTo(values.length)] ?? 0;
  return Array.from({ length: count }, () => {
    const start = upTo(YEAR * 0.9);
    const length = 1 + Math.floor((YEAR / (live / TAGS)) * oneOf(LENGTHS) * random());
    return { start, end: start + length, bandwidth: 1 + Math.floor(capacity * oneOf(SIZES)) };
  });
}

/** What the searches over a link's calendar cost where there is much to look at. */
export const searches: Benchmark = {
  name: 'searches',
  method: `LinkCalendar of ${TAGS} tags at each place, held for ${100 * HELD}% of a year, each place's in an order of its own, and bandwidth for 6% more than is used on average; each question the least of three times`,
  async run({ quick }) {
    const random = seeded(11);
    const live = quick ? 100_000 : 1_000_000;
    const { calendar, capacity } = fullCalendar(live, random);
    const asked = demandsOn({ live, capacity, count: QUESTIONS }, random);
    const of = (ask: (demand: Demand, index: number) => unknown): number[] =>
      asked.map((demand, index) => cost(() => ask(demand, index))).toSorted((one, other) => one - other);
    const chart = Array.from({ length: CHARTS }, () =>
      cost(() => calendar.columns({ start: 0, end: YEAR }, COLUMNS)),
    );
    const decisions = of((demand, index) => {
      const plan = calendar.plan(demand, 0);
      if (plan.accepted) calendar.put(`con_bench_new${index}`, { ...demand, tags: plan.tags });
    });
    const earliest = of(({ start, end, bandwidth }) => calendar.earliest(start, end - start, bandwidth));
    const refusals = of((demand) => {
      const { start, end, bandwidth } = demand;
      if (calendar.plan(demand, 0).accepted) return;
      calendar.freeBandwidth(demand);
      calendar.earliest(start, end - start, bandwidth);
      calendar.freeUntil(start, bandwidth, end);
      calendar.columns(demand, REFUSED_COLUMNS);
    });
    const [decision, search, slowest] = [median(decisions), median(earliest), earliest.at(-1) ?? 0];
    const refused = refusals[Math.floor(0.999 * refusals.length)] ?? 0;
    const inTime = (name: string, what: string, micros: number, limit: number): Result => ({
      name: `searches, ${name}`,
      what: `${what} ÷ ${limit} ms`,
      ratio: micros / 1000 / limit,
      limit: 1,
      bound: 'atMost',
      measured: `${(micros / 1000).toFixed(2)} ms`,
    });
    return [
      {
        name: 'searches, earliest start',
        what: `the earliest start of a demand at ${live.toExponential(0)} live ÷ a decision about it, medians`,
        ratio: search / decision,
        limit: 20,
        bound: 'atMost',
        measured: `${search.toFixed(1)} µs ÷ ${decision.toFixed(1)} µs`,
      },
      inTime('earliest start at worst', 'the slowest of them', slowest, LIMIT),
      inTime('a refusal', 'a refusal with what is free instead, 99.9th percentile', refused, LIMIT),
      inTime('a year', `a year in ${COLUMNS} columns, median`, median(chart), LIMIT_CHART),
    ];
  },
};
