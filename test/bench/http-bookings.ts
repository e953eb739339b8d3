import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Benchmark } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { CONNECTIONS, LoadGenerator } from './load-generator.ts';
import { alternate } from './measure.ts';
import { seeded } from './seeded.ts';
import { CONNECTED, signIn, startServe, startServer } from './serving.ts';

const bareServer = new URL('bare-server.ts', import.meta.url).pathname;

/** What a booking over HTTP costs beside the least that any service must do for it. */
export const httpBookings: Benchmark = {
  name: 'http-bookings',
  method: `${CONNECTIONS} keep-alive connections from one process, in turns of seconds, to \`serve\` on a new SQLite file (signed replies; user token and experiment token verified; all on one link) and to a bare node:http server (parses the same body, one durable single-row insert, one ES256 signature; same disk)`,
  async run({ quick }) {
    const folder = folderOnDisk();
    const [ours, bare] = [join(folder, 'ours'), join(folder, 'bare')];
    mkdirSync(ours);
    mkdirSync(bare);
    const serve = await startServe(ours);
    const other = await startServer(bare, (ready) => [bareServer, join(bare, 'bare.sqlite'), ready]);
    const who = await signIn(ours, serve.url);
    const [hot] = CONNECTED;
    if (!hot) throw new RangeError('there is no link');
    const [toOurs, toBare] = [
      new LoadGenerator(serve.url, who, seeded(5)),
      new LoadGenerator(other.url, who, seeded(5)),
    ];
    await toOurs.hold(hot);
    const seconds = quick ? 1 : 2;
    const rounds = await alternate(quick ? 3 : 7, [
      ['bare', () => toBare.rate([hot], seconds)],
      ['hot', () => toOurs.rate([hot], seconds)],
      ['refused', () => toOurs.refusals(hot, seconds)],
      ['spread', () => toOurs.rate(CONNECTED, seconds)],
    ]);
    await Promise.all([toOurs.close(), toBare.close()]);
    await Promise.all([serve.stop(), other.stop()]);
    const perSecond = (name: 'bare' | 'hot' | 'refused' | 'spread'): string =>
      `${rounds.median(name).toFixed(0)}/s`;
    return [
      {
        name: 'http-bookings',
        what: 'signed bookings per second ÷ what a bare node:http server answers',
        ratio: rounds.ratio('hot', 'bare'),
        limit: 0.85,
        bound: 'atLeast',
        measured: `${perSecond('hot')} ÷ ${perSecond('bare')}; spread over ${CONNECTED.length} links ${perSecond('spread')}`,
      },
      {
        name: 'http-bookings, refused',
        what: 'the time of a refusal with what is free instead ÷ of a booking',
        ratio: rounds.ratio('hot', 'refused'),
        limit: 1.5,
        bound: 'atMost',
        measured: `${perSecond('refused')} refused, ${perSecond('hot')} booked`,
      },
    ];
  },
};
