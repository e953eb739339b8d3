import { mkdirSync } from 'node:fs';
import { type ClientRequest, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EventParser } from '../../src/client/event-parser.ts';
import { routePath } from '../../src/contract/routes.ts';
import type { Fetch } from '../../src/contract/sending.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { idIn, send, signedBy } from '../fixtures/asked-server.ts';
import { newDatabase, startPostgres } from '../fixtures/postgres-server.ts';
import type { Benchmark, Result } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { LoadGenerator } from './load-generator.ts';
import { alternate } from './measure.ts';
import { memoryOf } from './memory.ts';
import { seeded } from './seeded.ts';
import { CONNECTED, DATABASE_FILE, signIn, startServe } from './serving.ts';

const EVENTS = routePath('events');
/** The streams of each user: as many as one may have. */
const OF_EACH = 20;
/** The streams that are open while others book. */
const BESIDE = 100;
/** The streams of a whole server. */
const MOST = 1000;
/** How long a server has nothing to do before its memory is looked at, in milliseconds. */
const SETTLED = 10_000;

/** A stream, read as it comes. */
interface Reading {
  /** When each reservation's event came, in milliseconds of `performance.now`. */
  came: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

async function follow(
  fetch: Fetch,
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<Reading> {
  const reply = await fetch(new Request(url, { headers }));
  if (!reply.ok) throw new Error(`a stream is answered with ${reply.status}`);
  const reader = reply.body?.getReader();
  const parser = new EventParser();
  const came = new Map<string, number>();
  const read = async (): Promise<boolean> => {
    const part = await reader?.read();
    if (!part?.value) return false;
    for (const { event, data } of parser.push(part.value)) {
      if (event === 'reservation') came.set(JSON.parse(data).reservation.id, performance.now());
    }
    return true;
  };
  await read();
  const pump = async (): Promise<void> => {
    while (await read());
  };
  pump().catch(() => undefined);
  return { came, close: async () => void (await reader?.cancel().catch(() => undefined)) };
}

/** How long events take from the answer to a booking on, in milliseconds, in order. */
async function delays(count: number, book: () => Promise<string>, { came }: Reading): Promise<number[]> {
  const [found, random]: [number[], () => number] = [[], seeded(7)];
  for (let booked = 0; booked < count; booked += 1) {
    // At no fixed distance from the last one: replicas look at fixed ones.
    await new Promise((resolve) => setTimeout(resolve, 200 * random()));
    const id = await book();
    const answered = performance.now();
    while (!came.has(id)) await new Promise((resolve) => setTimeout(resolve, 1));
    found.push(Math.max(0, (came.get(id) ?? 0) - answered));
  }
  return found.toSorted((one, other) => one - other);
}

/** The two limits of a row of delays. */
function limits(engine: string, sorted: readonly number[]): Result[] {
  const at = (part: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
  const measured = `median ${at(0.5).toFixed(0)} ms, p99 ${at(0.99).toFixed(0)} ms of ${sorted.length}`;
  const row = (name: string, what: string, ratio: number, limit: number): Result => {
    return { name: `events-${name}-${engine}`, what, ratio, limit, bound: 'atMost', measured };
  };
  return [
    row('median', 'ms from the answered booking to its event, median', at(0.5), 50),
    row('p99', 'ms from the answered booking to its event, p99', at(0.99), 500),
  ];
}

function body(index: number): Record<string, unknown> {
  const [start, end] = [2, 3].map((hours) =>
    new Date(Date.now() + (hours + index / 60) * 3_600_000).toISOString(),
  );
  const { site1, site2 } = CONNECTED[0] ?? { site1: '', site2: '' };
  return { site1, site2, bandwidth: '1', start_date: start, end_date: end, tokens: [] };
}

/** A booking at one replica, its event at the other: both in this process, so without sockets. */
async function onPostgres(count: number): Promise<Result[]> {
  const postgres = await startPostgres({ durable: true });
  const { url: database } = await newDatabase(postgres.url);
  const [one, other] = [await createReferenceServer({ database }), await createReferenceServer({ database })];
  const headers = await signedBy(one);
  const base = one.addresses.connectivity;
  const reading = await follow((request) => other.fetch(request), base + EVENTS, headers);
  let booked = 0;
  const book = async (): Promise<string> => {
    booked += 1;
    const path = routePath('createReservation');
    return idIn((await send(one, 'POST', path, { headers, body: body(booked) })).text);
  };
  const found = await delays(count, book, reading);
  await reading.close();
  await Promise.all([one.close(), other.close()]);
  await postgres.close();
  return limits('postgres', found);
}

/** Over HTTP, at a server in a process of its own; and what many streams cost those who book. */
async function onSqlite(count: number, quick: boolean): Promise<Result[]> {
  const folder = join(folderOnDisk(), 'events');
  mkdirSync(folder);
  const serve = await startServe(folder);
  const who = await signIn(folder, serve.url);
  const reading = await follow(fetch, serve.url + EVENTS, { ...who.headers, accept: 'text/event-stream' });
  let booked = 0;
  const book = async (): Promise<string> => {
    booked += 1;
    const reply = await fetch(serve.url + routePath('createReservation'), {
      method: 'POST',
      headers: { ...who.headers, accept: 'application/json' },
      body: JSON.stringify(body(booked)),
    });
    return idIn(await reply.text());
  };
  const found = await delays(count, book, reading);
  await reading.close();
  const load = new LoadGenerator(serve.url, who, seeded(5));
  const seconds = quick ? 1 : 3;
  const open = await streamsOf(BESIDE, folder, serve.url);
  const rounds = await alternate(quick ? 3 : 9, [
    ['without', () => load.rate(CONNECTED, seconds)],
    [
      'with',
      async () => {
        const streams = await open();
        const rate = await load.rate(CONNECTED, seconds);
        for (const stream of streams) stream.destroy();
        return rate;
      },
    ],
  ]);
  await load.close();
  await serve.stop();
  return [
    ...limits('sqlite', found),
    {
      name: 'events-bookings',
      what: `bookings per second with ${BESIDE} streams of all links' changes ÷ without`,
      ratio: rounds.ratio('with', 'without'),
      limit: 0.95,
      bound: 'atLeast',
      measured: `${rounds.median('with').toFixed(0)}/s ÷ ${rounds.median('without').toFixed(0)}/s`,
    },
  ];
}

/** Opens a stream and reads on, from an address of its own: one address may have 100 connections. */
async function opened(url: string, authorization: string, localAddress: string): Promise<ClientRequest> {
  const asked = get(url, { localAddress, headers: { authorization, accept: 'text/event-stream' } });
  await new Promise<void>((resolve, reject) => {
    asked.once('error', reject);
    asked.once('response', (reply) => {
      if (reply.statusCode !== 200) reject(new Error(`a stream is answered with ${reply.statusCode}`));
      reply.on('error', () => undefined).once('data', resolve);
    });
  });
  return asked;
}

/**
 * Makes users of a server, as many as it takes, and opens so many streams of all links' changes.
 *
 * @returns opens them; they are read until they are destroyed
 */
async function streamsOf(
  count: number,
  folder: string,
  baseUrl: string,
): Promise<() => Promise<ClientRequest[]>> {
  const users = Array.from({ length: count / OF_EACH }, (_, index) => ({ name: `user${index}` }));
  const directory = { users, projects: [], experiments: [] };
  const database = join(folder, DATABASE_FILE);
  const server = await createReferenceServer({ baseUrl, database, directory });
  const tokens = await Promise.all(users.map(({ name }) => server.signIn(name)));
  await server.close();
  return () =>
    Promise.all(
      tokens.flatMap((token, user) =>
        Array.from({ length: OF_EACH }, () =>
          opened(baseUrl + EVENTS, `Bearer ${token}`, `127.0.1.${1 + Math.floor(user / 4)}`),
        ),
      ),
    );
}

/** The memory that streams take of which nobody hears anything: as many as a server has, after as many were open once. */
async function idleStreams(): Promise<Result> {
  const folder = join(folderOnDisk(), 'streams');
  mkdirSync(folder);
  const serve = await startServe(folder);
  const open = await streamsOf(MOST, folder, serve.url);
  const settled = async (): Promise<number> => {
    await sleep(SETTLED);
    return memoryOf(serve.pid, 'VmRSS');
  };
  for (const stream of await open()) stream.destroy();
  const before = await settled();
  const streams = await open();
  const after = await settled();
  for (const stream of streams) stream.destroy();
  await serve.stop();
  const each = ((after - before) * 1024) / MOST;
  return {
    name: 'events-memory',
    what: 'KiB that an idle stream takes',
    ratio: each,
    limit: 64,
    bound: 'atMost',
    measured: `${before.toFixed(0)} MiB, ${after.toFixed(0)} MiB with ${MOST} streams`,
  };
}

/** How soon what is booked is told, and what telling costs. */
export const events: Benchmark = {
  name: 'events',
  method: `from the answer to a booking until its event was read, one booking at a time: two replicas on an own PostgreSQL, booked at one and read at the other, in this process; \`serve\` on a new SQLite file, over HTTP. Then bookings from a process's connections, in turns of seconds without streams, and with ${BESIDE} that this process reads. Memory: VmRSS after ${SETTLED / 1000} s in which nothing happens, without streams, once ${MOST} had been open, and with ${MOST} of 50 users`,
  async run({ quick }) {
    const count = quick ? 40 : 300;
    return [...(await onPostgres(count)), ...(await onSqlite(count, quick)), await idleStreams()];
  },
};
