import { setTimeout as sleep } from 'node:timers/promises';
import type { Rows } from '../allocator/sweep.ts';
import { newDatabase, type RunningPostgres } from '../fixtures/postgres-server.ts';
import { CONNECTIVITY_PATH } from './addresses.ts';
import { chanceFrom } from './chance.ts';
import type { Answer } from './door.ts';
import { watchBatches } from './half-batches.ts';
import { Journal, unansweredNote } from './journal.ts';
import type { ProofLine } from './line.ts';
import { sweepAll } from './links.ts';
import { acknowledged, startLoad } from './load.ts';
import { newPlace } from './place.ts';
import { replayAll } from './replay.ts';
import { type Finding, goesOn, newReport, type Report, type Until } from './report.ts';
import { type Fleet, quiet, startFleet } from './server-kills.ts';

const CLIENTS = 16;
const HOUR = 3_600_000;
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
  { until, seed }: { until: Until; seed: number },
): Promise<Report> {
  const place = newPlace((await newDatabase(server.url)).url);
  const report = newReport('kill -9 of the database', place.engine, seed);
  const began = performance.now();
  const more = goesOn(report, until);
  const chance = chanceFrom(seed);
  const journal = new Journal();
  const fleet = await startFleet(place, 2);
  const pids = fleet.servers.map(({ pid }) => pid).join();
  const { inspect, note } = inspector();
  try {
    while (more()) {
      report.rounds += 1;
      const stopWatching = watchBatches(place.rows);
      const load = startLoad({
        doors: fleet.servers.map(({ door }) => door),
        headers: await fleet.headers(),
        journal,
        report,
        chance,
        dawn: HOUR * Math.ceil(Date.now() / HOUR + 1),
        name: `round${report.rounds}`,
        clients: CLIENTS,
        inspect,
        mayBreak: () => false,
      });
      await acknowledged(report, CLIENTS);
      await sleep(chance.below(300));
      report.kills += 1;
      if (chance.is(60)) {
        if (chance.is(50)) await killAtCommit(server, chance.of(fleet.lines), 1 + chance.below(10));
        else server.kill();
        await sleep(chance.of([0, 0, 1000]) ?? 0);
        await server.start();
      } else await killBackend(place.rows, chance.below(1000));
      report.findings.push(...(await recovered(fleet)));
      await load.stop();
      report.findings.push(...(await stopWatching()).findings);
      await quiet(place.rows);
      report.findings.push(...(await journal.check(place.rows)), ...(await sweepAll(place.rows)));
    }
    if (
      fleet.servers.some(({ isRunning }) => !isRunning) ||
      fleet.servers.map(({ pid }) => pid).join() !== pids
    ) {
      report.findings.push({ kind: 'wrong', what: 'a server ended with its database' });
    }
    report.findings.push(...(await replayAll(place.rows)));
  } finally {
    await fleet.close();
    place.close();
  }
  report.seconds = (performance.now() - began) / 1000;
  report.notes.push(unansweredNote(journal));
  report.notes.push(note());
  return report;
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
      if (Number(headers['retry-after']) > 0 === !unknown) return undefined;
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
  line: ProofLine | undefined,
  after: number,
): Promise<void> {
  const late = new AbortController();
  const killed = new Promise<void>((resolve) => {
    line?.arm('COMMIT', after, 'when its answer came', () => {
      server.kill();
      resolve();
    });
  });
  const waited = sleep(IMPATIENCE, 'late', { signal: late.signal }).catch(() => undefined);
  if ((await Promise.race([killed, waited])) === 'late') {
    line?.disarm();
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
    servers.map(async ({ door }): Promise<Finding[]> => {
      const limit = performance.now() + RECOVERY_LIMIT;
      while (performance.now() < limit) {
        const answer = await door.send('GET', CONNECTIVITY_PATH, { headers: carried }).catch(() => undefined);
        if (answer?.status === 200) return [];
        await sleep(20);
      }
      return [{ kind: 'wrong', what: `${door.port} did not recover within ${RECOVERY_LIMIT} ms` }];
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
