import { LinkCalendar } from '../../src/allocator/calendar.ts';
import type { Period } from '../../src/allocator/demand.ts';
import type { Link, TagRange } from '../../src/contract/links.ts';
import type { Benchmark } from './benchmark.ts';
import { median } from './measure.ts';
import { type Random, seeded } from './seeded.ts';

const DAY = 24 * 3_600_000;
const TAGS = 50;
const REQUESTS = 20_000;
const SEEDS = 5;
/** By how much the requests exceed what the tags could carry if they were never idle. */
const PRESSURE = 1.2;

/** A request, and when it is made, in milliseconds. */
interface Asked extends Period {
  at: number;
}

/** Requests in the order of their making, each up to a week ahead, for a day on average (exponentially distributed). */
function requests(random: Random): Asked[] {
  const span = (REQUESTS * DAY) / (TAGS * PRESSURE);
  const asked = Array.from({ length: REQUESTS }, () => {
    const at = Math.floor(random() * span);
    const start = at + Math.floor(random() * 7 * DAY);
    return { at, start, end: start + 1 + Math.floor(-Math.log(1 - random()) * DAY) };
  });
  return asked.toSorted((one, other) => one.at - other.at);
}

/** How many a link takes that must answer each when it is made and keep what it gave. */
function accepted(asked: readonly Asked[]): number {
  const range: TagRange = [1, TAGS];
  const link: Link = {
    site1: 'be-gent1',
    site2: 'pl-poznan1',
    // Tags alone are scarce.
    bandwidth: REQUESTS,
    site1_s_tags: range,
    site1_c_tags: range,
    site2_s_tags: range,
    site2_c_tags: range,
  };
  const calendar = new LinkCalendar(link);
  let count = 0;
  for (const { at, start, end } of asked) {
    const decision = calendar.plan({ start, end, bandwidth: 1 }, at);
    if (!decision.accepted) continue;
    calendar.put(String(count), { start, end, bandwidth: 1, tags: decision.tags });
    count += 1;
  }
  return count;
}

/**
 * The most that anyone could have accepted who knew every request beforehand: by starts, and where more overlap than
 * there are tags, without the one that ends last (Faigle and Nawijn 1995).
 */
function optimum(asked: readonly Asked[]): number {
  let running: Asked[] = [];
  let count = 0;
  for (const next of asked.toSorted((one, other) => one.start - other.start)) {
    running = running.filter(({ end }) => end > next.start);
    running.push(next);
    count += 1;
    if (running.length <= TAGS) continue;
    const last = running.reduce((one, other) => (other.end > one.end ? other : one));
    running.splice(running.indexOf(last), 1);
    count -= 1;
  }
  return count;
}

/** How much of what could be had is given out by best fit, which must decide at once and can't move a tag. */
export const optimumOf: Benchmark = {
  name: 'optimum',
  method: `LinkCalendar of ${TAGS} tags, ${REQUESTS} requests for a day on average, made up to a week ahead, ${PRESSURE} times what fits; the same requests given to the offline optimum (Faigle and Nawijn); the same in every run; the median of ${SEEDS} seeds.`,
  async run() {
    const found = Array.from({ length: SEEDS }, (_, seed) => {
      const asked = requests(seeded(seed));
      return { ours: accepted(asked), best: optimum(asked) };
    });
    const [ours, best] = [median(found.map((run) => run.ours)), median(found.map((run) => run.best))];
    return [
      {
        name: 'optimum',
        what: 'requests accepted ÷ the offline optimum, which knows all of them beforehand',
        ratio: median(found.map((run) => run.ours / run.best)),
        // First fit has 0.874 here, a tag at random 0.858.
        limit: 0.88,
        bound: 'atLeast',
        measured: `${ours} ÷ ${best} of ${REQUESTS}`,
      },
    ];
  },
};
