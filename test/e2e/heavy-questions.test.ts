import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { MAX_ITEMS } from '../../src/contract/batch.ts';
import { HOUR } from '../../src/contract/durations.ts';
import { formatInstant } from '../../src/contract/instants.ts';
import { routePath } from '../../src/contract/routes.ts';
import { type SignedIn, signIn } from '../bench/serving.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { type Started, startCommand } from '../fixtures/program.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

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
let server: Started;
let base = '';
let lead: SignedIn;
const agent = new Agent({ keepAlive: true, maxSockets: 64 });

beforeAll(async () => {
  const home = temporaryFolder();
  const [ready, topology] = [join(home, 'ready.json'), join(home, 'topology.json')];
  writeFileSync(topology, JSON.stringify({ sites: SITES, links: GRID }));
  const where = ['--port', '0', '--data', home, '--topology', topology, '--ready-file', ready];
  server = startCommand(['serve', '--max-changes', '1000000', ...where], {
    home,
    env: { NODE_OPTIONS: '--max-old-space-size=512' },
  });
  base = await vi.waitFor(() => String(JSON.parse(readFileSync(ready, 'utf8')).base_url), {
    timeout: PATIENCE,
    interval: 20,
  });
  lead = await signIn(home, base);
  for (let from = 0; from < 1600; from += 64) {
    await Promise.all(
      Array.from({ length: 64 }, (_, at) => {
        const { site1, site2 } = GRID[(from + at) % GRID.length] ?? {};
        const start = START + (((from * 7) / 64 + at) % 40) * HOUR;
        const bandwidth = String(700 + (at % 3) * 100);
        return post(lead, 'createReservation', { site1, site2, bandwidth, ...dates(start, 1 + (at % 3)) });
      }),
    );
  }
});
afterAll(async () => {
  agent.destroy();
  server.signal('SIGKILL');
  await server.ended;
});

const dates = (start: number, hours: number) => ({
  start_date: formatInstant(start),
  end_date: formatInstant(start + hours * HOUR),
});

/** Sends a request, and leaves after so many milliseconds. @returns the status, and the text; 0 where it left */
function send(
  who: SignedIn,
  method: string,
  path: string,
  { body, leaves }: { body?: object | undefined; leaves?: number | undefined } = {},
): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const headers = { ...who.headers, accept: 'application/json' };
    const sent = request(`${base}${path}`, { method, headers, ...(leaves ? {} : { agent }) }, (reply) => {
      let text = '';
      reply.setEncoding('utf8');
      reply.on('data', (part: string) => {
        text += part;
      });
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text }));
      reply.on('error', () => resolve({ status: 0, text: '' }));
    });
    // The server may close an idle connection as it is used again.
    sent.on('error', () =>
      resolve(sent.reusedSocket ? send(who, method, path, { body, leaves }) : { status: 0, text: '' }),
    );
    if (leaves !== undefined) setTimeout(() => sent.destroy(), leaves);
    sent.end(body && JSON.stringify(body));
  });
}

function post(who: SignedIn, route: 'createReservation' | 'batchReservations', body: object, query = '') {
  return send(who, 'POST', routePath(route) + query, { body: { ...body, tokens: who.tokens } });
}

/** The processor time of the server so far, in milliseconds; and what it has in memory, in MB. */
function taken(): { processor: number; memory: number } {
  const [, stat = ''] = readFileSync(`/proc/${server.child.pid}/stat`, 'utf8').split(') ');
  const fields = stat.split(' ');
  const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
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
const ask = () => post(lead, 'batchReservations', list(), '?dry_run=true&earliest=true');

test.runIf(hasProc)(
  'row 117: 270 requests for the use of all links, whose connections close after 3 s, leave the server alive, small and idle',
  async () => {
    const path = `${routePath('linkUse')}?points=595`;
    let memory = 0;
    const watch = setInterval(() => {
      memory = Math.max(memory, taken().memory);
    }, 50);
    await Promise.all(Array.from({ length: 270 }, () => send(lead, 'GET', path, { leaves: 3000 })));
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
    expect((await send(lead, 'GET', '/readyz')).status).toBe(200);
  },
);

test.runIf(hasProc)(
  'row 81: 60 lists whose common time one user looks for keep a booking waiting for less than 0.2 s of processor time, and the server is ready',
  async () => {
    const lists = Array.from({ length: 60 }, ask);
    await sleep(300);
    const waited: number[] = [];
    for (let day = 0; day < 5; day += 1) {
      const before = taken().processor;
      const { site1, site2 } = GRID[day] ?? {};
      const period = dates(START + (50 + day) * 24 * HOUR, 1);
      const booked = await post(lead, 'createReservation', { site1, site2, bandwidth: '1', ...period });
      waited.push(taken().processor - before);
      expect(booked.status).toBe(201);
      expect((await send(lead, 'GET', '/readyz')).status).toBe(200);
    }
    expect(waited.toSorted((one, another) => one - another)[2]).toBeLessThan(200);
    server.signal('SIGTERM');
    // Those that still go on end then, and not as a bug.
    const answers = await Promise.all(lists);
    expect(answers.map(({ status }) => status)).toContain(503);
    for (const { status } of answers) expect([0, 422, 503]).toContain(status);
    await server.ended;
    expect(`${server.output.stdout}${server.output.stderr}`).not.toContain('"bug"');
  },
);
