import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { PROXY_POINTS, type TcpProxy } from '../fixtures/proxy.ts';
import type { Chance } from './chance.ts';
import { CLIENTS, startFleet } from './fleet.ts';
import { Journal } from './journal.ts';
import { acknowledged } from './load.ts';
import type { Report } from './report.ts';
import { type ProofOptions, runProof } from './run.ts';
import type { ServedProcess } from './served-process.ts';
import type { WriteWatch } from './write-watch.ts';

/**
 * Row 39: `serve` is killed with SIGKILL under load and started again, over and over; each time the database is held
 * against what was answered, and swept. On PostgreSQL two replicas share it, of which one is killed, or both.
 */
export async function killServers(options: ProofOptions): Promise<Report> {
  return runProof('kill -9 of the server', options, async (run) => {
    const { place, report, chance, round } = run;
    const journal = new Journal();
    const fleet = await startFleet(run, place.engine === 'SQLite' ? 1 : 2);
    const { servers, proxies } = fleet;
    const proxyOf = (server: ServedProcess): TcpProxy => {
      const proxy = proxies[servers.indexOf(server)];
      if (proxy) return proxy;
      throw new RangeError('the server has no proxy');
    };
    const kill = place.engine === 'SQLite' ? atWriteOf(`${place.database}-wal`) : atMessageOn(proxyOf);
    const times = new Map<string, number>();
    while (round()) {
      const load = await fleet.load(journal, { name: `round${report.rounds}` });
      await acknowledged(report, CLIENTS);
      const first = chance.below(servers.length);
      const killed = servers.filter((_, index) => index === first || chance.is(30));
      const killNow = report.rounds % 2 === 0 ? atAnyTime : kill;
      for (const when of await Promise.all(killed.map((server) => killNow(server, chance)))) {
        times.set(when, (times.get(when) ?? 0) + 1);
        report.kills += 1;
      }
      await load.stop();
      await Promise.all(killed.map((server) => server.start()));
      await fleet.check(journal);
    }
    await fleet.finish(journal);
    report.notes.push(...[...times].toSorted().map(([when, count]) => `killed ${count} times ${when}`));
  });
}

/** How long a point may take to come before the server is killed without, in milliseconds. */
const IMPATIENCE = 5000;

/** Kills a server at a point that is drawn, and waits until it is gone. @returns where that was, in words */
type Kill = (server: ServedProcess, chance: Chance) => Promise<string>;

const atAnyTime: Kill = async (server, chance) => {
  await sleep(chance.below(500));
  await server.kill();
  return 'at any time';
};

/** At a write to SQLite's log: each page of a transaction is one, and its end is not before the last. */
function atWriteOf(log: string): Kill {
  return async (server, chance) => {
    const workerData: WriteWatch = { file: log, pid: server.pid, after: 1 + chance.below(40) };
    const worker = new Worker(new URL('./write-watch.ts', import.meta.url), { workerData });
    await once(worker, 'message');
    const missed = await goneWithin(server);
    await worker.terminate();
    return missed ? 'at any time' : 'at a write to the log';
  };
}

/** At a message of a server to PostgreSQL: a statement or, every other time, the commit. */
function atMessageOn(proxyOf: (server: ServedProcess) => TcpProxy): Kill {
  return async (server, chance) => {
    const text = chance.is(50) ? 'COMMIT' : '';
    const point = chance.of(PROXY_POINTS) ?? 'before it is passed on';
    const { pid } = server;
    const proxy = proxyOf(server);
    proxy.arm(text, 1 + chance.below(text === '' ? 60 : 10), point, () => process.kill(pid, 'SIGKILL'));
    const missed = await goneWithin(server);
    proxy.disarm();
    return missed ? 'at any time' : `at a ${text === '' ? 'statement' : 'commit'}, ${point}`;
  };
}

/** @returns whether it had to be killed here, since the point did not come */
async function goneWithin(server: ServedProcess): Promise<boolean> {
  const late = new AbortController();
  const impatience = sleep(IMPATIENCE, 'late', { signal: late.signal }).catch(() => 'gone');
  const first = await Promise.race([server.gone(), impatience]);
  late.abort();
  if (first !== 'late') return false;
  await server.kill();
  return true;
}
