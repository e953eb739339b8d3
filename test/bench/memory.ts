import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { KEY_SET_PATH } from '../../src/contract/routes.ts';
import type { Benchmark, Result } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { makeDatabase, WIDE_LINKS } from './live-rows.ts';
import { LoadGenerator } from './load-generator.ts';
import { median } from './measure.ts';
import { seeded } from './seeded.ts';
import { DATABASE_FILE, signIn, startServe } from './serving.ts';

const LINKS = 10;
/** How long a server has nothing to do before it is looked at, in milliseconds. */
const IDLE = 5000;
/** MiB. */
const LIMIT_IDLE = 140;
const LIMIT_LOADED = 600;

/** A process's memory now or at its highest, in MiB (proc_pid_status(5)). @throws Error where there is no /proc */
export function memoryOf(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kib = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no ${field}`);
  return Number(kib) / 1024;
}

async function idle(): Promise<number> {
  const server = await startServe(folderOnDisk());
  await (await request(`${server.url}${KEY_SET_PATH}`)).body.text();
  await sleep(IDLE);
  const rss = memoryOf(server.pid, 'VmRSS');
  await server.stop();
  return rss;
}

async function loaded(live: number): Promise<{ rss: number; peak: number }> {
  const folder = folderOnDisk();
  const links = WIDE_LINKS.slice(0, LINKS);
  const from = Date.now() + 3_600_000;
  const reservations = links.map((link) => ({ link, live: live / LINKS, from }));
  await makeDatabase(join(folder, DATABASE_FILE), reservations);
  const server = await startServe(folder);
  const generator = new LoadGenerator(server.url, await signIn(folder, server.url), seeded(7));
  for (const { site1, site2 } of links) await generator.book({ site1, site2 });
  await generator.close();
  await sleep(IDLE);
  const found = { rss: memoryOf(server.pid, 'VmRSS'), peak: memoryOf(server.pid, 'VmHWM') };
  await server.stop();
  return found;
}

/** How much memory a server takes, with nothing and with very much in it. */
export const memory: Benchmark = {
  name: 'memory',
  method: `VmRSS of \`serve\` on SQLite after ${IDLE / 1000} s without a request: after its first one, for the key set (median of three starts); and after one booking on each of ${LINKS} links, which loads all that lives on them`,
  async run({ quick }) {
    const live = quick ? 100_000 : 1_000_000;
    const starts: number[] = [];
    for (let start = 0; start < (quick ? 1 : 3); start += 1) starts.push(await idle());
    const { rss, peak } = await loaded(live);
    const result = (name: string, what: string, mib: number, limit: number): Omit<Result, 'measured'> => ({
      name: `memory, ${name}`,
      what: `${what} ÷ ${limit} MiB`,
      ratio: mib / limit,
      limit: 1,
      bound: 'atMost',
    });
    return [
      {
        ...result('idle', 'memory of an idle server', median(starts), LIMIT_IDLE),
        measured: `${median(starts).toFixed(0)} MiB`,
      },
      {
        ...result(
          'loaded',
          `memory with ${live.toExponential(0)} live reservations loaded`,
          rss,
          LIMIT_LOADED,
        ),
        measured: `${rss.toFixed(0)} MiB; ${peak.toFixed(0)} MiB at its highest`,
      },
    ];
  },
};
