import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Holding, type Period, TAG_PLACES, type Tags } from '../../src/allocator/demand.ts';
import type { Free, LinkUse, Slot } from '../../src/allocator/link-use.ts';
import { type FreeOnRoute, RouteUse } from '../../src/allocator/route-use.ts';
import { DAY } from '../../src/contract/durations.ts';
import type { Link } from '../../src/contract/links.ts';
import { agree } from './agree.ts';
import { Oracle } from './oracle.ts';
import { smallLink } from './small-link.ts';
import { answerOf, type Held, useOf } from './uses.ts';

/** How many random links are tried. `npm run prove` tries 2,000. */
const LINKS = Number(process.env['PROVE_CALENDARS'] ?? 200);
/** Reservations start before this, and windows lie around it. */
const HORIZON = 40;

const size = fc.constantFrom(1, 2, 2, 3, 4, 5);
const links = fc.record({
  sizes: fc.tuple(size, size, size, size),
  bandwidth: fc.integer({ min: 2, max: 10 }),
});
const held = fc.record({
  start: fc.nat(HORIZON - 1),
  length: fc.integer({ min: 1, max: 12 }),
  bandwidth: fc.integer({ min: 1, max: 4 }),
  tenant: fc.constantFrom('x', 'x', 'y'),
  // The lowest free one, another that may be free, or one from before the topology changed.
  tags: fc.tuple(...TAG_PLACES.map(() => fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 90))),
  // The link was wider then.
  isAbove: fc.constantFrom(...Array.from({ length: 19 }, () => false), true),
});
const asked = fc.record({
  start: fc.nat(HORIZON - 1),
  length: fc.integer({ min: 1, max: HORIZON }),
  duration: fc.integer({ min: 1, max: 10 }),
  share: fc.double({ min: 0, max: 1.1, noNaN: true }),
  volume: fc.double({ min: 0, max: 1, noNaN: true }),
  count: fc.integer({ min: 1, max: HORIZON }),
  own: fc.option(fc.nat(20)),
});
const cases = fc.record({
  shape: links,
  share: fc.constantFrom(100, 100, 33, 50, 80),
  tenant: fc.constantFrom('x', 'x', 'x', undefined),
  holdings: fc.array(held, { minLength: 4, maxLength: 28, size: 'max' }),
  questions: fc.array(asked, { minLength: 3, maxLength: 3 }),
});

function linkOf({ sizes: [a, b, c, d], bandwidth }: { sizes: number[]; bandwidth: number }): Link {
  const to = (size = 1): [number, number] => [1, size];
  return smallLink({
    bandwidth,
    site1_s_tags: to(a),
    site1_c_tags: to(b),
    site2_s_tags: to(c),
    site2_c_tags: to(d),
  });
}

/** Holds what fits, with tags that may be others than the planned ones. */
function hold(
  oracle: Oracle,
  holdings: readonly (typeof held extends fc.Arbitrary<infer Each> ? Each : never)[],
): void {
  for (const [index, { start, length, bandwidth, tenant, tags, isAbove }] of holdings.entries()) {
    const demand = { start, end: start + length, bandwidth };
    const plan = oracle.plan(isAbove ? { ...demand, bandwidth: 0 } : demand);
    if (!plan.accepted) continue;
    const chosen: Tags = { ...plan.tags };
    const others = [...oracle.held.values()].filter((each) => each.start < demand.end && start < each.end);
    for (const [at, place] of TAG_PLACES.entries()) {
      const tag = tags[at] ?? 0;
      if (tag > 0 && !others.some((other) => other.tags[place] === tag)) chosen[place] = tag;
    }
    oracle.hold(`r${index}`, { ...demand, tags: chosen, tenant });
  }
}

interface Question extends Period {
  bandwidth: number;
  duration: number;
  volume: number;
  count: number;
  own: string | undefined;
  tenant: string | undefined;
}

/** All answers about a link. @param open gives its use for each of them */
async function answers(
  open: () => Promise<LinkUse>,
  link: Link,
  { own = '', tenant, count, ...sought }: Question,
  { keep }: { keep: Tags | undefined },
) {
  const { start, end, duration } = sought;
  const ask = async <Answer>(
    question: (route: RouteUse, use: LinkUse) => Parameters<typeof answerOf<Answer>>[0],
  ) => {
    const use = await open();
    const route = new RouteUse([use], [[link]]);
    return answerOf(route.without(own, question(route, use)));
  };
  const slots: Slot[] = [];
  await ask((route) => route.slots({ ...sought, tenant }, slots, Number.POSITIVE_INFINITY));
  const steps: FreeOnRoute[] = [];
  await ask((route) => route.steps({ start, end }, steps, count));
  return {
    plan: await ask((_, use) => use.plan(sought, keep ? { keep, tenant } : { tenant })),
    steps,
    columns: await ask((route) => route.columns({ start, end }, count)),
    slots,
    earliest: await ask((route) => route.earliest({ ...sought, tenant })),
    freeUntil: await ask((route) => route.freeUntil(sought, tenant)),
    fastest: await ask((route) => route.fastest(sought, tenant)),
    fastestOfAll: await ask((route) => route.fastest({ ...sought, bandwidth: route.capacity }, tenant)),
    mostBandwidth: await ask((route) => route.mostBandwidth({ start, end, duration }, tenant)),
    freeBandwidth: await ask((route) => route.freeBandwidth({ start, end }, tenant)),
  };
}

/** The same answers, by a trial of every millisecond. */
function trials(
  oracle: Oracle,
  { own = '', tenant, count, ...sought }: Question,
): Awaited<ReturnType<typeof answers>> {
  const { start, end, duration, bandwidth } = sought;
  const plan = oracle.plan({ start, end, bandwidth }, own, tenant);
  const row = oracle.held.get(own);
  oracle.drop(own);
  const free = oracle.free({ start, end });
  const due = {
    plan,
    steps: joined(free).slice(0, count),
    columns: cut(free, start, count),
    slots: runs(oracle.starts(sought)),
    earliest: oracle.earliest(sought),
    freeUntil: oracle.freeUntil(start, bandwidth, end),
    fastest: oracle.fastest(sought),
    fastestOfAll: oracle.fastest({ ...sought, bandwidth: oracle.capacity }),
    mostBandwidth: oracle.mostBandwidth({ start, end, duration }),
    freeBandwidth: oracle.most({ start, end }),
  };
  if (row) oracle.hold(own, row);
  return due;
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

/** Instants as runs without gaps. */
function runs(starts: readonly number[]): Slot[] {
  const found: Slot[] = [];
  for (const start of starts) {
    const open = found.at(-1);
    if (open?.last === start - 1) open.last = start;
    else found.push({ first: start, last: start });
  }
  return found;
}

/** Times in units of half a day, so that rows are read in several portions. */
const UNIT = DAY / 2;

function long<Each extends Period>(each: Each): Each {
  return { ...each, start: each.start * UNIT, end: each.end * UNIT };
}

const seen = { slots: 0, fastest: 0, most: 0, tags: 0, updates: 0 };

// This counts links and has no time limit of its own.
test(`a trial of every millisecond finds the same, on ${LINKS} random links`, {
  timeout: 3_600_000,
}, async () => {
  const property = fc.asyncProperty(cases, async ({ shape, share, tenant, holdings, questions }) => {
    const link = linkOf(shape);
    const oracle = new Oracle(link, share);
    hold(oracle, holdings);
    oracle.tenant = tenant;
    const whole = useOf(link, oracle.held, { share });
    await whole.load({ start: 0, end: 10 * HORIZON });
    const longHeld: Held = new Map([...oracle.held].map(([id, each]): [string, Holding] => [id, long(each)]));
    const longWhole = useOf(link, longHeld, { share });
    await longWhole.load({ start: 0, end: 10 * HORIZON * UNIT });
    for (const { start, length, count, ...drawn } of questions) {
      const ids = [...oracle.held.keys()];
      const own = drawn.own === null ? undefined : ids[drawn.own % ids.length];
      const row = oracle.held.get(own ?? '');
      const period = { start, end: start + length };
      const bandwidth = 1 + Math.floor(drawn.share * link.bandwidth);
      const volume = 1 + Math.floor(drawn.volume * 125 * link.bandwidth * Math.min(12, length / 2));
      const question = { ...period, duration: drawn.duration, bandwidth, volume, count, own, tenant };
      const terms = { keep: row?.tags };
      const due = trials(oracle, question);
      agree(await answers(async () => whole, link, question, terms), due, question);

      const longer = { ...long(question), duration: question.duration * UNIT, volume: volume * UNIT };
      const fresh = async () => {
        const use = useOf(link, longHeld, { share });
        // What is updated was read.
        if (row) await use.load({ start: row.start * UNIT, end: row.end * UNIT });
        return use;
      };
      agree(
        await answers(fresh, link, longer, terms),
        await answers(async () => longWhole, link, longer, terms),
        longer,
      );
      seen.slots += due.slots.length > 1 ? 1 : 0;
      seen.fastest += due.fastestOfAll && due.fastestOfAll.start > start ? 1 : 0;
      seen.most += due.mostBandwidth > due.freeBandwidth && due.freeBandwidth > 0 ? 1 : 0;
      seen.tags += due.columns.some(({ tags }) => tags === 0) ? 1 : 0;
      seen.updates += row && row.start < period.end && start < row.end ? 1 : 0;
    }
  });
  // The suite tries the same ones each time, so that each kind comes up.
  const seed = process.env['PROVE_CALENDARS'] === undefined ? { seed: 1 } : {};
  await fc.assert(property, { numRuns: LINKS, ...seed });
  for (const [kind, times] of Object.entries(seen)) expect.soft(times, kind).toBeGreaterThan(LINKS / 20);
});
