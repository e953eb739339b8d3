import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { builtInTopology } from '../../src/allocator/network.ts';
import { linkId } from '../../src/contract/links.ts';
import { openStores } from '../../src/store/stores.ts';
import { ask, newDatabase, startPostgres } from '../fixtures/postgres-server.ts';
import type { Benchmark } from './benchmark.ts';
import { checkDisk } from './disk.ts';
import { alternate } from './measure.ts';

/** What a process is told: how to write, to which links, and for how long. */
export interface Turn {
  how: 'ours' | 'bare';
  links: 'hot' | 'spread';
  seconds: number;
}

/** How many connections or bookings are under way in one process. */
export const IN_FLIGHT = 8;
/** The links of the built-in topology that a booking of a benchmark always finds room on. */
export const LINKS = builtInTopology().links;
const PROCESSES = 2;

/** The tables of the bare writers: rows that are as long as a reservation's, and a row for each link. */
const BARE_SCHEMA = `
  CREATE TABLE link (id TEXT PRIMARY KEY, version BIGINT NOT NULL);
  CREATE TABLE booking (
    id TEXT, part INTEGER, link TEXT NOT NULL, start_ms BIGINT NOT NULL, end_ms BIGINT NOT NULL, who TEXT NOT NULL,
    PRIMARY KEY (id, part)
  )`;

/** The next thing that a process says. @throws Error when it ends instead */
function answer(child: ChildProcess): Promise<{ rate?: number }> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a process ended with ${code}`));
    child.once('exit', ended);
    child.once('message', (message) => {
      child.off('exit', ended);
      resolve(message as { rate?: number });
    });
  });
}

/** Ends a process, whose connections are closed when this resolves. */
async function dismiss(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.disconnect();
  await ended;
}

async function makeBareTables(url: string): Promise<void> {
  const rows = LINKS.map(({ site1, site2 }) => `('${linkId(site1, site2)}', 0)`);
  await ask(url, `${BARE_SCHEMA}; INSERT INTO link (id, version) VALUES ${rows.join()}`);
}

/** @throws Error when what is written would not be on the disk before it is acknowledged */
async function checkDurable(url: string): Promise<void> {
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const [row] = await ask(url, `SHOW ${setting}`);
    if (row?.[setting] !== 'on') {
      throw new Error(`PostgreSQL has ${setting} = ${row?.[setting]}, so nothing durable is measured.`);
    }
  }
}

/**
 * What several processes book on one PostgreSQL with its default settings, fsync on, each with an Allocator; by what bare transactions
 * of the same size do, in turns of seconds with the same processes and as many connections: BEGIN, three inserts, an update of the
 * link's row, COMMIT. Both start empty.
 */
export const postgres: Benchmark = async ({ quick }) => {
  checkDisk();
  const server = await startPostgres({ durable: true });
  await checkDurable(server.url);
  const [{ url: ours }, { url: bare }] = [await newDatabase(server.url), await newDatabase(server.url)];
  await (await openStores(ours)).close();
  await makeBareTables(bare);
  const script = new URL('postgres-process.ts', import.meta.url);
  const children = Array.from({ length: PROCESSES }, (_, index) =>
    fork(script, [ours, bare, String(index * 100)]),
  );
  await Promise.all(children.map(answer));
  const seconds = quick ? 1 : 2;
  const rate = (how: Turn['how'], links: Turn['links']) => async (): Promise<number> => {
    const answers = children.map(answer);
    for (const child of children) child.send({ how, links, seconds } satisfies Turn);
    return (await Promise.all(answers)).reduce((sum, found) => sum + (found.rate ?? Number.NaN), 0);
  };
  const compare = await alternate(quick ? 3 : 7, [
    ['bare hot', rate('bare', 'hot')],
    ['hot', rate('ours', 'hot')],
    ['bare spread', rate('bare', 'spread')],
    ['spread', rate('ours', 'spread')],
  ]);
  await Promise.all(children.map(dismiss));
  await server.close();
  const shown = (figure: number): string => `${figure.toFixed(0)}/s`;
  const hot = 'bookings per second on one link ÷ bare transactions that update its row';
  const spread = `bookings per second spread over ${LINKS.length} links ÷ bare transactions that update their rows`;
  const bound = 'atLeast';
  return [
    compare('hot', 'bare hot', { name: 'postgres, one link', what: hot, limit: 1.5, bound }, shown),
    compare('spread', 'bare spread', { name: 'postgres, spread', what: spread, limit: 0.6, bound }, shown),
  ];
};
