import { setTimeout as sleep } from 'node:timers/promises';
import type { Rows } from '../allocator/sweep.ts';
import { headersWith } from '../e2e/wire-caller.ts';
import { freePort } from '../fixtures/postgres-server.ts';
import { openProxy, type TcpProxy } from '../fixtures/proxy.ts';
import { logIn } from './caller.ts';
import { watchHalves } from './halves.ts';
import { type Journal, unansweredNote } from './journal.ts';
import { sweepAll } from './links.ts';
import { type Load, type LoadOptions, startLoad } from './load.ts';
import { deadlocks } from './place.ts';
import { replayAll } from './replay.ts';
import { dawn, type Run } from './run.ts';
import { ServedProcess } from './served-process.ts';

/** So many clients ask a fleet. */
export const CLIENTS = 16;
/** An experiment token lasts 15 minutes. */
const TOKEN_RENEWAL = 300_000;

/** Servers on one database, as processes. */
export interface Fleet {
  readonly servers: readonly ServedProcess[];
  /** The proxy of each before its database, on PostgreSQL. */
  readonly proxies: readonly TcpProxy[];
  /** Fresh enough for the next minutes. */
  headers(): Promise<Record<string, string>>;
  /** Starts clients, who are watched for halves of batches until the load is stopped. */
  load(journal: Journal, more?: Partial<LoadOptions>): Promise<Load>;
  /** Holds the rows against what was answered, once nothing is under way, and sweeps them. */
  check(journal: Journal): Promise<void>;
  /** What the rows tell at the end: all decisions again, and what became of requests without an answer. */
  finish(journal: Journal): Promise<void>;
}

/** Starts one server on SQLite, or replicas on PostgreSQL, each with a proxy of its own before it. */
export async function startFleet(
  { place, report, chance, atEnd, serveFlags }: Run,
  replicas: number,
): Promise<Fleet> {
  const { rows, database, folder: home } = place;
  const proxies: TcpProxy[] = [];
  const servers: ServedProcess[] = [];
  atEnd(async () => {
    await Promise.all(servers.map((server) => server.close()));
    for (const proxy of proxies) proxy.close();
  });
  let base: string | undefined;
  for (let count = 0; count < replicas; count += 1) {
    const port = await freePort();
    base ??= `http://127.0.0.1:${port}`;
    const proxy = place.engine === 'PostgreSQL' ? await openProxy(database) : undefined;
    if (proxy) proxies.push(proxy);
    const where = proxy && ['--database', proxy.url];
    const server = new ServedProcess({ port, base, home, args: serveFlags(undefined, where) });
    servers.push(server);
    await server.start();
  }
  const [first] = servers;
  if (!first) throw new RangeError('a fleet has at least one server');
  const userToken = await logIn(first.caller);
  let renewed = Number.NEGATIVE_INFINITY;
  let headers: Record<string, string> = {};
  const own: Fleet = {
    servers,
    proxies,
    async headers() {
      if (performance.now() - renewed > TOKEN_RENEWAL) {
        headers = await headersWith(first.caller, userToken);
        renewed = performance.now();
      }
      return headers;
    },
    async load(journal, more) {
      const stopWatching = watchHalves(rows);
      const { stop } = startLoad({
        callers: servers.map(({ caller }) => caller),
        headers: await own.headers(),
        ...{ journal, report, chance, clients: CLIENTS },
        dawn: dawn(),
        name: `load${report.requests}`,
        ...more,
      });
      return {
        async stop() {
          await stop();
          report.findings.push(...(await stopWatching()).findings);
        },
      };
    },
    async check(journal) {
      if (place.engine === 'PostgreSQL') await quiet(rows);
      report.findings.push(...(await journal.check(rows)), ...(await sweepAll(rows)));
    },
    async finish(journal) {
      report.findings.push(...(await replayAll(rows)), ...(await deadlocks(place)));
      report.notes.push(unansweredNote(journal));
    },
  };
  return own;
}

/** Waits until PostgreSQL has finished what a killed server had begun. */
export async function quiet(rows: Rows): Promise<void> {
  const busy = `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
    AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`;
  while ((await rows(busy)).length > 0) await sleep(20);
}
