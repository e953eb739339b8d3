import { join } from 'node:path';
import { builtInTopology } from '../../src/allocator/network.ts';
import { MAX_ITEMS } from '../../src/contract/batch.ts';
import { formatInstant } from '../../src/contract/instants.ts';
import { routePath } from '../../src/contract/routes.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import type { Benchmark, Result } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { horizonOf, makeDatabase } from './live-rows.ts';
import { median } from './measure.ts';
import { DATABASE_FILE, signIn } from './serving.ts';

const HOUR = 3_600_000;
const LIVE = 10_000;
/** How long the event loop may be held, in milliseconds. */
const LIMIT = 15;
/** The sites that are furthest apart, and two that every route passes a ring between. */
const FAR = { site1: 'es-upvehu', site2: 'gr-uth' };
const RING = { site1: 'be-gent1', site2: 'fr-slices' };

/** A request: its path below the base address, and a body where it has one, anew each time. */
interface Question {
  name: string;
  path: string;
  body?: (time: number) => unknown;
}

/**
 * Requests that need much work: questions over a window in which little more than what they ask for is free; the largest batch over
 * the longest route; and the list of all that was booked before it.
 */
function questions(window: { start: number; end: number }): Question[] {
  const [start, end] = [formatInstant(window.start), formatInstant(window.end)];
  const dates = `start=${encodeURIComponent(start)}&end=${encodeURIComponent(end)}`;
  const dry = `${routePath('createReservation')}?dry_run=true`;
  const period = { start_date: start, end_date: end };
  // What a link has beyond this is now free and now not: on average its reservations hold 2,187 Mbps, and 95 more or less.
  const scarce = ({ bandwidth }: { bandwidth: number }): string => String(Math.max(1, bandwidth - 2300));
  const hour = formatInstant(window.start + HOUR);
  const batch = (items: readonly object[]) => ({
    items: items.map((item) => ({ action: 'create', ...item })),
    tokens: [],
  });
  /** As many as a batch may have, at an hour after all others. */
  const longest = (time: number) => {
    const from = window.end + time * HOUR;
    const dates = { start_date: formatInstant(from), end_date: formatInstant(from + HOUR) };
    return batch(Array.from({ length: MAX_ITEMS }, () => ({ ...FAR, ...dates, bandwidth: '1' })));
  };
  return [
    { name: 'columns', path: `${routePath('linkAvailability', FAR)}?${dates}&points=800` },
    { name: 'exact steps', path: `${routePath('linkAvailability', RING)}?${dates}` },
    { name: 'slots', path: `${routePath('linkSlots', RING)}?${dates}&bandwidth=37700&duration=PT1H` },
    { name: 'volume', path: dry, body: () => ({ ...FAR, ...period, volume: String(10 ** 15), tokens: [] }) },
    { name: 'refusal', path: dry, body: () => ({ ...FAR, ...period, bandwidth: '1000', tokens: [] }) },
    {
      name: 'batch, earliest',
      path: `${routePath('batchReservations')}?dry_run=true&earliest=true`,
      body: () =>
        batch(
          builtInTopology().links.map((link) => ({
            ...{ site1: link.site1, site2: link.site2, bandwidth: scarce(link) },
            ...{ start_date: start, end_date: hour },
          })),
        ),
    },
    { name: 'batch, dry run', path: `${routePath('batchReservations')}?dry_run=true`, body: longest },
    { name: 'batch', path: routePath('batchReservations'), body: longest },
    { name: 'list', path: `${routePath('listReservations')}?limit=1000` },
  ];
}

/**
 * The longest time from one turn of the event loop to the next, in milliseconds. By the clock: some kernels count a thread's
 * processor time in ticks of 4 ms.
 */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  let isOver = false;
  const turn = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(turn);
  };
  turn();
  await work();
  isOver = true;
  // The last turn counts too.
  await new Promise((resolve) => setImmediate(resolve));
  return longest;
}

/** For how long heavy questions keep everybody else waiting. */
export const eventLoop: Benchmark = {
  name: 'event-loop',
  method: `the server as a function of a Request, on a SQLite file with ${LIVE} live on each of the built-in links: the longest turn of the event loop while one question is answered, the median of several times`,
  async run({ quick }) {
    const folder = folderOnDisk();
    const live = quick ? LIVE / 4 : LIVE;
    const from = Date.now() + HOUR;
    const held = builtInTopology().links.map((link) => ({
      ...{ link, live, from },
      most: link.bandwidth < 10_000 ? 1 : 9,
    }));
    const [first] = held;
    if (!first) throw new RangeError('there is no link');
    const database = join(folder, DATABASE_FILE);
    await makeDatabase(database, held);
    const baseUrl = 'http://bench.localhost';
    const { headers } = await signIn(folder, baseUrl);
    const server = await createReferenceServer({ baseUrl, database });
    let asked = 0;
    const ask = async ({ name, path, body }: Question): Promise<void> => {
      asked += 1;
      const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body(asked)) };
      const json = { ...headers, accept: 'application/json' };
      const reply = await server.fetch(new Request(`${baseUrl}${path}`, { ...init, headers: json }));
      const text = await reply.text();
      if (![200, 422].includes(reply.status)) throw new Error(`${name}: ${reply.status} ${text}`);
    };
    const window = { start: from, end: from + horizonOf(first) };
    const results: Result[] = [];
    for (const question of questions(window)) {
      await ask(question);
      const holds: number[] = [];
      const began = performance.now();
      const times = quick ? 3 : 11;
      for (let time = 0; time < times; time += 1) holds.push(await longestTurn(() => ask(question)));
      const whole = (performance.now() - began) / times;
      results.push({
        name: `event-loop, ${question.name}`,
        what: `the longest turn of the event loop while it is answered ÷ ${LIMIT} ms`,
        ratio: median(holds) / LIMIT,
        limit: 1,
        bound: 'atMost',
        measured: `${median(holds).toFixed(1)} ms of ${whole.toFixed(0)} ms`,
      });
    }
    await server.close();
    return results;
  },
};
