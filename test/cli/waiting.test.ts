import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { OpenProgressLine } from '../../src/cli/print/progress.ts';
import { Secret } from '../../src/contract/secret.ts';
import type { Connection } from '../../src/session/login/connection.ts';
import { type Changes, commandWorld, serverCommands, tokenOf } from '../fixtures/command-world.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const folder = temporaryFolder();
const temporary = { config: folder, state: folder, cache: folder };
const never = (): Promise<never> => new Promise(() => undefined);
const token = tokenOf(async () => 'token');
const STUCK = { origin: 'command', where: 'slices experiment jwt demo', get: never } as const;
/** What a service says whose clock is asked for. */
const keys = async (): Promise<Response> => Response.json({ keys: [] });
/** A connection's parts, with one way in place of two. */
type Parts = Omit<Connection, 'fetch' | 'send'> & { fetch: () => Promise<Response> };
const usable = { fetch: never, userToken: token, close: async () => undefined };

test.each<[string, Partial<Parts>, Changes, string[]]>([
  ['127.0.0.1:4280', {}, {}, ['sites']],
  ["the built-in server's data", {}, {}, ['--offline', 'sites']],
  ['the user token', { userToken: { ...token, get: never } }, {}, ['sites']],
  ['the user token of x y', { userToken: { origin: 'command', where: 'x y', get: never } }, {}, ['sites']],
  [`the experiment token of ${STUCK.where}`, { fetch: keys, experimentToken: STUCK }, {}, ['list']],
  [
    'the list of what this machine asked for',
    { fetch: keys, experimentToken: { ...token, get: async () => new Secret('token') } },
    { openLedger: never },
    ['list'],
  ],
  [
    'another slices-conn command to finish',
    {},
    { underLock: never, folders: temporary },
    ['profile', 'use', 'offline'],
  ],
  ['the database', {}, { server: serverCommands({ readAudit: never }) }, ['serve', 'audit']],
  ['the database', {}, { server: serverCommands({ backUp: never }) }, ['serve', 'backup', 'x']],
])('a wait for %s is shown on a terminal', async (what, connection, changes, args) => {
  const progressLine = vi.fn<OpenProgressLine>(async () => ({
    start: () => undefined,
    stop: () => undefined,
  }));
  const world = commandWorld({ ...usable, ...connection }, { progressLine, now: Date.now, ...changes });
  void world.run(...args);
  // The code of the command is loaded first.
  await vi.waitFor(async () => {
    await vi.advanceTimersByTimeAsync(2000);
    expect(progressLine).toHaveBeenCalled();
  }, PATIENCE);
  expect(progressLine.mock.lastCall?.[0]()).toMatch(new RegExp(`^${what} \\(\\d+ s\\)$`));
});

test('a token that a person types is asked for, and nothing is drawn over it', async () => {
  const start = vi.fn<() => void>();
  const world = commandWorld(usable, {
    stdinIsTerminal: true,
    progressLine: async () => ({ start, stop: () => undefined }),
  });
  world.files.set('-', '');
  for (const args of [['verify'], ['verify', '-'], ['token', 'inspect'], ['verify', '--quiet']]) {
    const { exitCode, stderr } = await world.run(...args);
    expect(exitCode).toBe(9);
    expect(stderr).toMatch(/^Paste the token, then press Enter and Ctrl-D\. Ctrl-C gives up\.\nerror: /);
  }
  world.files.set('x', '');
  expect((await world.run('verify', 'x')).stderr).not.toContain('Paste');
  expect(start).not.toHaveBeenCalled();
});
