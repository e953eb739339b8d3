import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import * as v from 'valibot';
import { folderOnDisk } from './disk.ts';
import { LoadGenerator } from './load-generator.ts';
import { seeded } from './seeded.ts';
import { CONNECTED, signIn, startServe } from './serving.ts';

const source = new URL('serve-source.ts', import.meta.url).pathname;
const SECONDS = 10;
const SHOWN = 25;

/** As `--cpu-prof` writes it: samples of nodes, each with the time since the one before in microseconds. */
const Profile = v.object({
  nodes: v.array(
    v.object({
      id: v.number(),
      callFrame: v.object({ functionName: v.string(), url: v.string(), lineNumber: v.number() }),
    }),
  ),
  samples: v.array(v.number()),
  timeDeltas: v.array(v.number()),
});

/** Microseconds spent in each function itself. */
function selfTimes(profile: v.InferOutput<typeof Profile>): Map<string, number> {
  const names = new Map(
    profile.nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
      const place = url === '' ? '' : ` ${basename(url)}:${lineNumber + 1}`;
      return [id, `${functionName || '(anonymous)'}${place}`];
    }),
  );
  const times = new Map<string, number>();
  for (const [index, id] of profile.samples.entries()) {
    const name = names.get(id) ?? '';
    times.set(name, (times.get(name) ?? 0) + (profile.timeDeltas[index] ?? 0));
  }
  return times;
}

/** Books on one link (or `spread` over all) for some seconds, and prints where the server's own time went. */
const folder = folderOnDisk();
const profiles = join(folder, 'profiles');
mkdirSync(profiles);
const serve = await startServe(folder, ['--cpu-prof', '--cpu-prof-dir', profiles, source]);
const generator = new LoadGenerator(serve.url, await signIn(folder, serve.url), seeded(8));
const pairs = process.argv[2] === 'spread' ? CONNECTED : CONNECTED.slice(0, 1);
const rate = await generator.rate(pairs, SECONDS);
await generator.close();
await serve.stop();
const [file = ''] = readdirSync(profiles);
const times = selfTimes(v.parse(Profile, JSON.parse(readFileSync(join(profiles, file), 'utf8'))));
const total = [...times.values()].reduce((sum, time) => sum + time, 0);
console.log(`${rate.toFixed(0)} bookings per second over ${pairs.length} links. Share of the server's time:`);
for (const [name, time] of [...times].toSorted(([, one], [, other]) => other - one).slice(0, SHOWN)) {
  console.log(`${((time / total) * 100).toFixed(1).padStart(5)} %  ${name}`);
}
