import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Client } from 'pg';
import { linkId } from '../../src/contract/links.ts';
import { openStores } from '../../src/store/stores.ts';
import { ask, newDatabase, startPostgres } from '../fixtures/postgres-server.ts';
import type { Benchmark } from './benchmark.ts';
import { checkDisk } from './disk.ts';
import { alternate } from './measure.ts';
import { BARE_SCHEMA, IN_FLIGHT, LINKS, type Turn } from './postgres-writers.ts';

const PROCESSES = 2;

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
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(BARE_SCHEMA);
  for (const { site1, site2 } of LINKS) {
    await client.query('INSERT INTO link (id, version) VALUES ($1, 0)', [linkId(site1, site2)]);
  }
  await client.end();
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

/** What several processes book on one PostgreSQL, by what bare transactions of the same size do. */
export const postgres: Benchmark = {
  name: 'postgres',
  method: `an own PostgreSQL with its default settings, fsync on; ${PROCESSES} processes, each with an Allocator and ${IN_FLIGHT} bookings in flight, in turns of seconds with the same processes on ${IN_FLIGHT} connections each: BEGIN, three inserts, an update of the link's row, COMMIT; both start empty`,
  async run({ quick }) {
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
    const rounds = await alternate(quick ? 3 : 7, [
      ['bare hot', rate('bare', 'hot')],
      ['hot', rate('ours', 'hot')],
      ['bare spread', rate('bare', 'spread')],
      ['spread', rate('ours', 'spread')],
    ]);
    await Promise.all(children.map(dismiss));
    await server.close();
    const measured = (links: Turn['links']): string =>
      `${rounds.median(links).toFixed(0)}/s ÷ ${rounds.median(`bare ${links}`).toFixed(0)}/s`;
    return [
      {
        name: 'postgres, one link',
        what: 'bookings per second on one link ÷ bare transactions that update its row',
        ratio: rounds.ratio('hot', 'bare hot'),
        limit: 1.5,
        bound: 'atLeast',
        measured: measured('hot'),
      },
      {
        name: 'postgres, spread',
        what: `bookings per second spread over ${LINKS.length} links ÷ bare transactions that update their rows`,
        ratio: rounds.ratio('spread', 'bare spread'),
        limit: 0.6,
        bound: 'atLeast',
        measured: measured('spread'),
      },
    ];
  },
};
