import { setTimeout as sleep } from 'node:timers/promises';
import type { Rows } from '../allocator/sweep.ts';
import { newDatabase, type RunningPostgres } from '../fixtures/postgres-server.ts';
import type { TcpProxy } from '../fixtures/proxy.ts';
import { CONNECTIVITY_PATH } from './addresses.ts';
import type { Answer } from './caller.ts';
import { CLIENTS, type Fleet, startFleet } from './fleet.ts';
import { Journal } from './journal.ts';
import { acknowledged } from './load.ts';
import type { Finding, Report } from './report.ts';
import { type ProofOptions, runProof } from './run.ts';

/** A server that has lost its database says so within this, in milliseconds (THREATS.md 41). */
const ANSWER_LIMIT = 10_000;
/** How long a commit may take to come before it is killed without, in milliseconds. */
const IMPATIENCE = 5000;
/** Once the database is back, a server uses it again within this, in milliseconds. */
const RECOVERY_LIMIT = 15_000;

/**
 * Row 39: PostgreSQL is killed under the load of two replicas, as a whole or one of its processes, which it answers by
 * starting all of them anew. Nobody touches the replicas: they say 503 with Retry-After in time, and recover.
 */
export async function killDatabase(
  server: RunningPostgres,
  options: Omit<ProofOptions, 'postgres'>,
): Promise<Report> {
  const postgres = (await newDatabase(server.url)).url;
  return runProof('kill -9 of the database', { ...options, postgres }, async (run) => {
    const { place, report, chance, round } = run;
    const journal = new Journal();
    const fleet = await startFleet(run, 2);
    const { servers, proxies } = fleet;
    const pids = (): string => servers.map((server) => (server.isRunning ? server.pid : 'gone')).join();
    const before = pids();
    const { inspect, note } = inspector();
    while (round()) {
      const load = await fleet.load(journal, { inspect, mayBreak: () => false });
      await acknowledged(report, CLIENTS);
      await sleep(chance.below(300));
      report.kills += 1;
      if (chance.is(60)) {
        if (chance.is(50)) await killAtCommit(server, chance.of(proxies), 1 + chance.below(10));
        else server.kill();
        await sleep(chance.of([0, 0, 1000]) ?? 0);
        await server.start();
      } else await killBackend(place.rows, chance.below(1000));
      report.findings.push(...(await recovered(fleet)));
      await load.stop();
      await fleet.check(journal);
    }
    if (pids() !== before) report.findings.push({ kind: 'wrong', what: 'a server ended with its database' });
    await fleet.finish(journal);
    report.notes.push(note());
  });
}

/** Looks at each answer while the database may be away: in time, and with Retry-After where nothing was done. */
export function inspector() {
  let away = 0;
  let slowest = 0;
  return {
    inspect({ status, headers, text, took }: Answer, request: string): Finding | undefined {
      slowest = Math.max(slowest, took);
      if (took > ANSWER_LIMIT) return { kind: 'wrong', what: `${request} took ${took.toFixed(0)} ms` };
      if (status !== 503) return undefined;
      away += 1;
      // Nobody is told to try again what may have been done.
      const unknown = text.includes('"outcome_unknown"');
      if (Number(headers.get('retry-after')) > 0 === !unknown) return undefined;
      return {
        kind: 'wrong',
        what: `${request} was answered with 503 ${unknown ? 'and' : 'without'} Retry-After`,
      };
    },
    note: (): string => `503 ${away} times; the slowest answer took ${slowest.toFixed(0)} ms`,
  };
}

/** Kills it after a commit whose acknowledgement is not passed on. */
async function killAtCommit(
  server: RunningPostgres,
  proxy: TcpProxy | undefined,
  after: number,
): Promise<void> {
  const late = new AbortController();
  const killed = new Promise<void>((resolve) => {
    proxy?.arm('COMMIT', after, 'when its answer came', () => {
      server.kill();
      resolve();
    });
  });
  const waited = sleep(IMPATIENCE, 'late', { signal: late.signal }).catch(() => undefined);
  if ((await Promise.race([killed, waited])) === 'late') {
    proxy?.disarm();
    server.kill();
  }
  late.abort();
}

/** Kills one of the processes that serve the replicas. */
async function killBackend(rows: Rows, drawn: number): Promise<void> {
  const backends = await rows(
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'slices-conn' ORDER BY xact_start NULLS LAST",
  );
  const pid = Number(backends[drawn % Math.max(1, backends.length)]?.['pid']);
  if (pid > 0) process.kill(pid, 'SIGKILL');
}

/** Waits until every replica answers from the database again. */
export async function recovered({ servers, headers }: Fleet): Promise<Finding[]> {
  const carried = await retried(headers);
  const late = await Promise.all(
    servers.map(async ({ caller }): Promise<Finding[]> => {
      const limit = performance.now() + RECOVERY_LIMIT;
      while (performance.now() < limit) {
        const answer = await caller
          .send('GET', CONNECTIVITY_PATH, { headers: carried })
          .catch(() => undefined);
        if (answer?.status === 200) return [];
        await sleep(20);
      }
      return [{ kind: 'wrong', what: `${caller.port} did not recover within ${RECOVERY_LIMIT} ms` }];
    }),
  );
  return late.flat();
}

/** A token can't be had while the database is away. */
async function retried<Answered>(ask: () => Promise<Answered>): Promise<Answered> {
  for (const limit = performance.now() + RECOVERY_LIMIT; ; ) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > limit) throw error;
      await sleep(50);
    }
  }
}
