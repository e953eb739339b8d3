import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Chance } from './chance.ts';
import type { LinePoint, ProofLine } from './line.ts';
import type { ServedProcess } from './served-process.ts';
import type { WriteWatch } from './write-watch.ts';

/** How long a point may take to come before it is killed without, in milliseconds. */
const IMPATIENCE = 5000;

/** Kills a server at a moment that is drawn, and waits until it is gone. @returns what moment that was, in words */
export type Moment = (server: ServedProcess, chance: Chance) => Promise<string>;

/** At any time. */
export const atAnyTime: Moment = async (server, chance) => {
  await sleep(chance.below(500));
  await server.kill();
  return 'at any time';
};

/** At a write to SQLite's log: each page of a transaction is one, and its end is not before the last. */
export function atWriteOf(log: string): Moment {
  return async (server, chance) => {
    const workerData: WriteWatch = { file: log, pid: server.pid, after: 1 + chance.below(40) };
    const worker = new Worker(new URL('./write-watch.ts', import.meta.url), { workerData });
    await once(worker, 'message');
    const missed = await goneWithin(server);
    await worker.terminate();
    return missed ? 'at any time' : 'at a write to the log';
  };
}

const POINTS: readonly LinePoint[] = [
  'before it is passed on',
  'after it was passed on',
  'when its answer came',
];

/** At a message of a server to PostgreSQL: a statement or, every other time, the commit. */
export function atMessageOn(lineOf: (server: ServedProcess) => ProofLine): Moment {
  return async (server, chance) => {
    const text = chance.is(50) ? 'COMMIT' : '';
    const point = chance.of(POINTS) ?? 'before it is passed on';
    const { pid } = server;
    const line = lineOf(server);
    line.arm(text, 1 + chance.below(text === '' ? 60 : 10), point, () => process.kill(pid, 'SIGKILL'));
    const missed = await goneWithin(server);
    line.disarm();
    return missed ? 'at any time' : `at a ${text === '' ? 'statement' : 'commit'}, ${point}`;
  };
}

/** @returns whether it had to be killed here, since the moment did not come */
async function goneWithin(server: ServedProcess): Promise<boolean> {
  const late = new AbortController();
  const impatience = sleep(IMPATIENCE, 'late', { signal: late.signal }).catch(() => 'gone');
  const first = await Promise.race([server.gone(), impatience]);
  late.abort();
  if (first !== 'late') return false;
  await server.kill();
  return true;
}
