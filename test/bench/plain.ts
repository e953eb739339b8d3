import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Pool } from 'undici';
import * as v from 'valibot';
import { DAY, MINUTE } from '../../src/contract/durations.ts';
import { routePath } from '../../src/contract/routes.ts';
import type { Benchmark, Result } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { alternate } from './measure.ts';
import { type Random, seeded } from './seeded.ts';
import { CONNECTED, type ServerProcess, type SignedIn, signIn, startServe, startServer } from './serving.ts';

const plainServer = new URL('plain-server.ts', import.meta.url).pathname;
/** Connections that are kept alive, each with one request at a time. */
const CONNECTIONS = 16;
/** How many reservations are in the list. */
const LISTED = 100;
/** Reservations start within so long, in milliseconds. */
const HORIZON = 60 * DAY;

/** A body that creates 1 to 3 Mbps for 15 to 90 minutes on some link. */
function body({ tokens }: SignedIn, random: Random): string {
  const pair = CONNECTED[Math.floor(random() * CONNECTED.length)];
  const start = Date.now() + MINUTE + Math.floor(random() * HORIZON);
  const end = start + MINUTE * (15 + Math.floor(random() * 75));
  const [start_date, end_date] = [start, end].map((instant) => new Date(instant).toISOString());
  return JSON.stringify({
    ...pair,
    bandwidth: String(1 + Math.floor(random() * 3)),
    start_date,
    end_date,
    tokens,
  });
}

/** Processor time of a process so far, in microseconds: of its threads that run (proc(5), `schedstat`). */
function processorTime(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const times = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'));
  return times.reduce((sum, time) => sum + Number(time.split(' ')[0]) / 1000, 0);
}

/** The requests that are made of one server. */
function requestsTo({ url, pid }: ServerProcess, who: SignedIn) {
  const random = seeded(6);
  const pool = new Pool(url, { connections: CONNECTIONS, pipelining: 1 });
  const headers = { ...who.headers, accept: 'application/json' };
  const send = async (method: 'GET' | 'POST', path: string): Promise<string> => {
    const reply = await pool.request({
      ...{ path, method, headers, body: method === 'POST' ? body(who, random) : null },
    });
    const text = await reply.body.text();
    if (reply.statusCode !== (method === 'POST' ? 201 : 200))
      throw new Error(`${path}: ${reply.statusCode} ${text}`);
    return text;
  };
  return {
    send,
    /** Sends a request so many times. @returns the server's processor time for each, in microseconds */
    async cost(count: number, method: 'GET' | 'POST', path: string): Promise<number> {
      const before = processorTime(pid);
      let left = count;
      const worker = async (): Promise<void> => {
        while (left-- > 0) await send(method, path);
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, worker));
      return (processorTime(pid) - before) / count;
    },
    close: () => pool.close(),
  };
}

const Listed = v.object({ items: v.array(v.looseObject({ id: v.string() })) });

/**
 * What a create and a read cost beside a plain stack: processor time of the server's process for a request, over connections that
 * are kept alive, from one process, in turns. One is `serve` as it is built, on a SQLite file, the other plain-server.ts. Linux only.
 */
export const plain: Benchmark = async ({ quick }) => {
  const folder = folderOnDisk();
  const [ours, theirs] = [join(folder, 'ours'), join(folder, 'plain')];
  mkdirSync(ours);
  mkdirSync(theirs);
  const serve = await startServe(ours);
  const other = await startServer(theirs, (ready) => [
    plainServer,
    join(theirs, 'plain.sqlite'),
    ready,
    serve.url,
  ]);
  const who = await signIn(ours, serve.url);
  const sides = await Promise.all(
    [serve, other].map(async (server) => {
      const requests = requestsTo(server, who);
      const [create, list] = [routePath('createReservation'), routePath('listReservations')];
      for (let created = 0; created < LISTED; created += 1) await requests.send('POST', create);
      const listed = await requests.send('GET', list);
      const { items } = v.parse(Listed, JSON.parse(listed));
      const one = routePath('readReservation', { id: items[0]?.id ?? '' });
      const few = quick ? 4 : 1;
      return {
        form: [Object.keys(items[0] ?? {}).join(), items.length],
        close: requests.close,
        create: () => requests.cost(2000 / few, 'POST', create),
        one: () => requests.cost(2000 / few, 'GET', one),
        list: () => requests.cost(1000 / few, 'GET', list),
      };
    }),
  );
  const [own, bare] = sides;
  if (!own || !bare || String(own.form) !== String(bare.form))
    throw new Error('the answers are not the same');
  const results: Result[] = [];
  for (const [name, what, limit] of CASES) {
    const compare = await alternate(quick ? 3 : 9, [
      ['own', own[name]],
      ['bare', bare[name]],
    ]);
    const about = { name: `plain, ${name}`, what: `${what} ÷ with the plain stack`, limit } as const;
    results.push(
      compare('own', 'bare', { ...about, bound: 'atMost' }, (figure) => `${figure.toFixed(0)} µs`),
    );
  }
  await Promise.all(sides.map(({ close }) => close()));
  await Promise.all([serve.stop(), other.stop()]);
  return results;
};

const CASES = [
  ['one', 'a reservation read', 2.5],
  ['list', `a list of ${LISTED} read`, 1.5],
  ['create', 'a reservation created', 1.3],
] as const;
