import { fork } from 'node:child_process';
import { join } from 'node:path';
import { openStores } from '../../src/store/stores.ts';
import { newDatabase, startPostgres } from '../fixtures/postgres-server.ts';
import type { Benchmark, Result, RunOptions } from './benchmark.ts';
import { checkDisk, folderOnDisk } from './disk.ts';
import { alternate } from './measure.ts';
import { answer, checkDurable, dismiss } from './postgres.ts';
import { LINKS, TOGETHER, type Turn } from './postgres-writers.ts';

/** How many clients there are, each with one request at a time. */
const CLIENTS = 8;

/** What all-or-none costs: batches over several links, beside as many single bookings on the same links. */
export const batches: Benchmark = {
  name: 'batches',
  method: `${CLIENTS} clients, each with one request at a time, in turns of seconds: a booking on one of ${LINKS.length} links, or a batch of ${TOGETHER} of them, drawn at random; counted in reservations. SQLite: one process; PostgreSQL: an own one, fsync on, two processes with half of the clients each`,
  async run({ quick }) {
    const file = join(folderOnDisk(), 'batches.sqlite');
    const sqlite = await measured('SQLite', { database: file, processes: 1, quick });
    checkDisk();
    const server = await startPostgres({ durable: true });
    await checkDurable(server.url);
    const { url } = await newDatabase(server.url);
    const postgres = await measured('PostgreSQL', { database: url, processes: 2, quick });
    await server.close();
    return [sqlite, postgres];
  },
};

async function measured(
  engine: string,
  { database, processes, quick }: RunOptions & { database: string; processes: number },
): Promise<Result> {
  await (await openStores(database)).close();
  const script = new URL('postgres-process.ts', import.meta.url);
  const children = Array.from({ length: processes }, (_, index) =>
    fork(script, [database, '', String(index * 100)]),
  );
  await Promise.all(children.map(answer));
  const rate = (how: Turn['how']) => async (): Promise<number> => {
    const answers = children.map(answer);
    const turn: Turn = { how, links: 'spread', seconds: quick ? 1 : 2, inFlight: CLIENTS / processes };
    for (const child of children) child.send(turn);
    return (await Promise.all(answers)).reduce((sum, found) => sum + (found.rate ?? Number.NaN), 0);
  };
  const rounds = await alternate(quick ? 3 : 7, [
    ['single', rate('ours')],
    ['batch', rate('batch')],
  ]);
  await Promise.all(children.map(dismiss));
  return {
    name: `batches, ${engine}`,
    what: `reservations per second by batches of ${TOGETHER} ÷ by single bookings`,
    ratio: rounds.ratio('batch', 'single'),
    limit: 0.334,
    bound: 'atLeast',
    measured: `${rounds.median('batch').toFixed(0)}/s ÷ ${rounds.median('single').toFixed(0)}/s`,
  };
}
