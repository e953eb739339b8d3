import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { routePath } from '../../src/contract/routes.ts';
import type { Benchmark } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { CONNECTIONS, LoadGenerator } from './load-generator.ts';
import { alternate } from './measure.ts';
import { seeded } from './seeded.ts';
import { CONNECTED, signIn, startServe, startServer } from './serving.ts';

const bareServer = new URL('bare-server.ts', import.meta.url).pathname;
/** So many reservations are in the list. */
const LISTED = 100;
const Listed = v.object({ items: v.array(v.object({ id: v.string() })) });

/** What a read over HTTP costs beside a server that has the bytes of the answer in memory, and asks nobody for a token. */
export const httpReads: Benchmark = {
  name: 'http-reads',
  method: `${CONNECTIONS} keep-alive connections from one process, in turns of seconds, to \`serve\` on a SQLite file (user token and experiment token verified) and to a bare node:http server that answers the same bytes from memory`,
  async run({ quick }) {
    const folder = folderOnDisk();
    const [ours, bare] = [join(folder, 'ours'), join(folder, 'bare')];
    mkdirSync(ours);
    mkdirSync(bare);
    const serve = await startServe(ours);
    const other = await startServer(bare, (ready) => [bareServer, join(bare, 'bare.sqlite'), ready]);
    const who = await signIn(ours, serve.url);
    const [toOurs, toBare] = [
      new LoadGenerator(serve.url, who, seeded(6)),
      new LoadGenerator(other.url, who, seeded(6)),
    ];
    for (let booked = 0; booked < LISTED; booked += 1)
      await toOurs.book(CONNECTED[booked % CONNECTED.length]);
    const list = routePath('listReservations');
    const { items } = v.parse(Listed, JSON.parse(await toOurs.ask('GET', list)));
    const one = routePath('readReservation', { id: items[0]?.id ?? '' });
    for (const path of [list, one]) await toBare.ask('PUT', path, await toOurs.ask('GET', path));
    const seconds = quick ? 1 : 2;
    const rounds = await alternate(quick ? 3 : 7, [
      ['bareOne', () => toBare.reads(one, seconds)],
      ['one', () => toOurs.reads(one, seconds)],
      ['bareList', () => toBare.reads(list, seconds)],
      ['list', () => toOurs.reads(list, seconds)],
    ]);
    await Promise.all([toOurs.close(), toBare.close()]);
    await Promise.all([serve.stop(), other.stop()]);
    const perSecond = (name: Parameters<typeof rounds.median>[0]): string =>
      `${rounds.median(name).toFixed(0)}/s`;
    return [
      {
        name: 'http-reads, one',
        what: 'reads of a reservation per second ÷ what a bare node:http server answers',
        ratio: rounds.ratio('one', 'bareOne'),
        limit: 0.7,
        bound: 'atLeast',
        measured: `${perSecond('one')} ÷ ${perSecond('bareOne')}`,
      },
      {
        name: 'http-reads, list',
        what: `lists of ${items.length} reservations per second ÷ what a bare node:http server answers`,
        ratio: rounds.ratio('list', 'bareList'),
        limit: 0.7,
        bound: 'atLeast',
        measured: `${perSecond('list')} ÷ ${perSecond('bareList')}`,
      },
    ];
  },
};
