import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test, vi } from 'vitest';
import { HOUR } from '../../src/contract/durations.ts';
import { formatInstant } from '../../src/contract/instants.ts';
import { MAX_ITEMS } from '../../src/contract/reservation.ts';
import { routePath } from '../../src/contract/routes.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { HttpCaller } from '../proof/caller.ts';
import { type ServedProcess, serveWith } from './served.ts';
import { logIn } from './wire-caller.ts';

/** A grid of 7 by 7 sites, of which each link has 100 tags at each end. */
const SIDE = 7;
const siteAt = (row: number, column: number): string => `site-${row}${column}`;
const SITES = Array.from({ length: SIDE * SIDE }, (_, at) => siteAt(Math.floor(at / SIDE), at % SIDE));
const nextTags = new Map<string, number>();
const tagsOf = (site: string): [number, number] => {
  const from = nextTags.get(site) ?? 1;
  nextTags.set(site, from + 100);
  return [from, from + 99];
};
const GRID = SITES.flatMap((site1, at) => {
  const [row, column] = [Math.floor(at / SIDE), at % SIDE];
  return [
    [row + 1, column],
    [row, column + 1],
  ].flatMap(([down = 0, right = 0]) => {
    if (down === SIDE || right === SIDE) return [];
    const site2 = siteAt(down, right);
    const s: [number, number] = [1, 100];
    const c = { site1_c_tags: tagsOf(site1), site2_c_tags: tagsOf(site2) };
    return [{ site1, site2, bandwidth: 1000, site1_s_tags: s, site2_s_tags: s, ...c }];
  });
});

const hasProc = existsSync('/proc/self/stat');
const START = Math.ceil(Date.now() / HOUR) * HOUR + HOUR;
let server: ServedProcess;
let caller: HttpCaller;
let headers: Readonly<Record<string, string>>;
/** The id of the server's process. */
let pid = 0;

beforeAll(async () => {
  const topology = join(temporaryFolder(), 'topology.json');
  writeFileSync(topology, JSON.stringify({ sites: SITES, links: GRID }));
  const where = ['--port', '0', '--data', temporaryFolder(), '--topology', topology];
  server = await serveWith('--max-changes', '1000000', '--auto-approve', 'lead', ...where);
  pid = server.addresses.pid;
  caller = new HttpCaller(server.port, server.base);
  atEndOfFile(() => caller.close());
  headers = { ...(await logIn(server)), accept: 'application/json', 'content-type': 'application/json' };
  for (let from = 0; from < 1600; from += 64) {
    await Promise.all(
      Array.from({ length: 64 }, (_, at) => {
        const start = START + (((from * 7) / 64 + at) % 40) * HOUR;
        return book(GRID[(from + at) % GRID.length], 700 + (at % 3) * 100, start, 1 + (at % 3));
      }),
    );
  }
});

const dates = (start: number, hours: number) => ({
  start_date: formatInstant(start),
  end_date: formatInstant(start + hours * HOUR),
});
const post = (path: string, body: object) =>
  caller.send('POST', path, { headers, body: JSON.stringify({ ...body, tokens: [] }) });
const book = (link: (typeof GRID)[number] | undefined, bandwidth: number, start: number, length: number) =>
  post(routePath('createReservation'), {
    ...{ site1: link?.site1, site2: link?.site2, bandwidth: String(bandwidth) },
    ...dates(start, length),
  });

/** Asks, and leaves after so long, in milliseconds. */
const askAndLeave = (path: string, milliseconds: number) =>
  fetch(`${server.base}${path}`, { headers, signal: AbortSignal.timeout(milliseconds) })
    .then((reply) => reply.text())
    .catch(() => undefined);

/** The processor time of the server so far, in milliseconds; and what it has in memory, in MB. */
function taken(): { processor: number; memory: number } {
  const [, stat = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  const fields = stat.split(' ');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return {
    processor: 10 * (Number(fields[11]) + Number(fields[12])),
    memory: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1000,
  };
}

/** A list whose common time is looked for: each create has many routes of 8 links, none of which is free soon. */
const list = () => ({
  items: Array.from({ length: MAX_ITEMS }, (_, at) => ({
    action: 'create',
    site1: siteAt(at % 3, at % 2),
    site2: siteAt(4 + (at % 3), 4 + (at % 2)),
    bandwidth: '300',
    ...dates(START, 8),
  })),
});
const ask = () => post(`${routePath('batchReservations')}?dry_run=true&earliest=true`, list());

test.runIf(hasProc)(
  'row 117: 270 requests for the use of all links, whose connections close after 3 s, leave the server alive, small and idle',
  async () => {
    const path = `${routePath('linkUse')}?points=595`;
    let memory = 0;
    const watch = setInterval(() => {
      memory = Math.max(memory, taken().memory);
    }, 50);
    await Promise.all(Array.from({ length: 270 }, () => askAndLeave(path, 3000)));
    clearInterval(watch);
    const left = taken().processor;
    await vi.waitFor(
      async () => {
        const before = taken().processor;
        await sleep(250);
        expect(taken().processor - before).toBeLessThanOrEqual(30);
      },
      { timeout: PATIENCE, interval: 1 },
    );
    expect(taken().processor - left).toBeLessThan(5000);
    expect(memory).toBeLessThan(350);
    expect((await caller.send('GET', '/readyz')).status).toBe(200);
  },
);

test.runIf(hasProc)(
  'row 81: 60 lists whose common time one user looks for keep a booking waiting for less than 0.2 s of processor time, and the server is ready',
  async () => {
    // Whose connection breaks has no answer.
    const lists = Array.from({ length: 60 }, () => ask().catch(() => ({ status: 0 })));
    await sleep(300);
    const waited: number[] = [];
    for (let day = 0; day < 5; day += 1) {
      const before = taken().processor;
      const booked = await book(GRID[day], 1, START + (50 + day) * 24 * HOUR, 1);
      waited.push(taken().processor - before);
      expect(booked.status).toBe(201);
      expect((await caller.send('GET', '/readyz')).status).toBe(200);
    }
    expect(waited.toSorted((one, another) => one - another)[2]).toBeLessThan(200);
    server.process.signal('SIGTERM');
    // Those that still go on end then, and not as a bug.
    const answers = await Promise.all(lists);
    expect(answers.map(({ status }) => status)).toContain(503);
    for (const { status } of answers) expect([0, 422, 503]).toContain(status);
    const { stdout, stderr } = await server.process.ended;
    expect(`${stdout}${stderr}`).not.toContain('"bug"');
  },
);
