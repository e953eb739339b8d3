import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { Slices } from '../../src/allocator/event-loop.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { type CommandWorld, commandWorld, connectionTo } from '../fixtures/command-world.ts';
import { RING } from '../fixtures/ring.ts';
import { NOW } from '../fixtures/tokens.ts';

const AT = '2026-11-01T13:00:00Z';
/** So few that each of the commands below needs more. */
const STEPS = 20;
const MORE = 'The search was given up, since it took too long. More may fit than it found.';
const NOT_BEFORE =
  /The search was given up, since it took too long\. Nothing fits before (?:Sun )?1 Nov 1[3-6]:\d\d/;

/** What `run` needs of a machine before it books. */
const PROCESSES = {
  check: async () => undefined,
  startGuardian: async () => ({ tell: async () => undefined, close: () => undefined }),
  privatePath: async (name: string) => name,
};

let world: CommandWorld;
/** Two routes of which one is taken at any time for some hours, so that the search for an hour takes many looks. */
beforeAll(async () => {
  const server = await createReferenceServer({ topology: RING, now: () => NOW });
  world = commandWorld(connectionTo(server));
  for (let index = 0; index < 10; index += 1) {
    for (const [link, from] of [
      ['site-a site-b', 60 + 20 * index],
      ['site-e site-f', 70 + 20 * index],
    ] as const) {
      const taken = await run(`reserve ${link} --bandwidth 1G --start +${from}m --for 12m --direct`);
      expect(taken.exitCode).toBe(0);
    }
  }
  const mine = await run('reserve site-a site-d --bandwidth 1M --start +50m --for 5m --name mine');
  expect(mine.exitCode).toBe(0);
  const entry = `{ sites: [site-a, site-d], bandwidth: 1G, start: ${AT}, for: 1h }`;
  world.files.set('two.yaml', `version: 1\nreservations:\n  a: ${entry}\n  b: ${entry}\n`);
});

const run = (words: string) => world.runIn(PROCESSES, '--offline', '--tz', 'UTC', ...words.split(' '));

/** Lets a question take so many steps, in place of the seconds that a large network needs. */
function withSteps(most: number): void {
  const steps = new WeakMap<Slices, number>();
  const spent = vi.spyOn(Slices.prototype, 'spent', 'get').mockImplementation(function (this: Slices) {
    const all = (steps.get(this) ?? 0) + 1;
    steps.set(this, all);
    return all > most ? Number.POSITIVE_INFINITY : 0;
  });
  onTestFinished(() => spent.mockRestore());
}

const SHORTER = `${MORE} why: Ask for a shorter time.`;
/** What each command that searches says where the search takes too long, and what it advises. */
test.each<[string, string | RegExp, string?]>([
  ['reserve site-a site-d --bandwidth 1G --start +60m --for 1h', MORE, 'availability'],
  [
    'reserve site-a site-d --bandwidth 1G --earliest --for 1h --start +60m',
    NOT_BEFORE,
    '--start 2026-11-01T1',
  ],
  ['reserve site-a site-d --volume 10T --end +30h --start +60m', NOT_BEFORE, 'availability'],
  ['update mine --bandwidth 1G --extend 1h', MORE, 'availability'],
  ['plan two.yaml', NOT_BEFORE],
  ['apply two.yaml', NOT_BEFORE, 'plan two.yaml'],
  ['run site-a site-d --bandwidth 1G --for 2h --earliest -- true', /given up/, 'availability'],
  ['availability site-a site-d', SHORTER],
])('%s: the search was given up, and what was found until then', async (words, said, advised) => {
  withSteps(STEPS);
  const { exitCode, stdout, stderr } = await run(words);
  expect(exitCode).toBe(6);
  const all = `${stdout}${stderr}`.replaceAll(/\s+/g, ' ');
  expect(all).toMatch(said);
  if (advised !== undefined) expect(all).toMatch(new RegExp(`try: slices-conn .*${advised}`));
});

test('what is free in exact steps goes on in further pages: nothing is missing', async () => {
  const steps = () => run('availability site-a site-d --json');
  const whole = await steps();
  withSteps(STEPS);
  expect(await steps()).toEqual(whole);
});
