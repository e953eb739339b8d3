import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import { allCommands, offlineWorld } from '../fixtures/command-world.ts';
import { claimsOf, makeKey, makeToken } from '../fixtures/tokens.ts';

/** Secrets that a person can paste in the wrong place. */
const SECRETS: Readonly<Record<string, string>> = {
  'a JWT': makeToken(makeKey(), claimsOf('user')),
  'a refresh token': 'nOt7Zq3vXkW_1mB-8sLpD4yRcT6hJgFa0EuIoQxVb2K',
};

/** Every command with every place for a value: `TOKEN` stands for the secret. */
function* places(command: Command, path: readonly string[] = []): Generator<readonly string[]> {
  for (const child of command.commands) yield* places(child, [...path, child.name()]);
  const args = command.registeredArguments.map(() => 'TOKEN');
  if (command.commands.length === 0 || args.length > 0) yield [...path, ...args];
  const placeholders = command.registeredArguments.filter(({ required }) => required).map(() => 'x');
  for (const { long, required, optional } of command.options) {
    if (long && (required || optional)) yield [...path, ...placeholders, long, 'TOKEN'];
    else if (long) yield [...path, ...placeholders, `${long}=TOKEN`];
  }
  yield [...path, 'TOKEN', 'TOKEN', 'TOKEN', 'TOKEN'];
  yield [...path, '--TOKEN'];
}

const program = await allCommands();
const ALL = [...places(program)];

/** Flags for scripts, and none. */
const FORMS = [['--offline', '--json', '--debug'], []];

/** The environment's variables that do not take a token. */
const VARIABLES = [
  ...['EXPERIMENT', 'PROJECT', 'PROFILE', 'BASE_URL', 'PORTAL_URL', 'AUTH_URL', 'CLIENT_ID', 'CONFIG_DIR'],
  ...['API_GROUPS', 'USER_TOKEN_FILE', 'EXPERIMENT_TOKEN_FILE', 'REFRESH_TOKEN_FILE'],
].map((name) => `SLICES_CONN_${name}`);

describe.each(Object.entries(SECRETS))('row 54: %s in the wrong place is never printed back', (_, secret) => {
  let world: Awaited<ReturnType<typeof offlineWorld>>;
  const env: Record<string, string> = {};
  beforeAll(async () => {
    world = await offlineWorld({
      variables: env,
      stopSignal: async () => 'terminated',
      // Whoever waits, as `watch --exec` does, would wait for ever.
      sleep: async () => {
        throw new Failure('timeout', 'Nobody waits here.');
      },
    });
  });
  afterAll(() => world.server.close());

  async function leaks(words: readonly string[], forms = FORMS): Promise<string[]> {
    const found: string[] = [];
    for (const flags of forms) {
      const { stdout, stderr } = await world.run(
        ...flags,
        ...words.map((word) => word.replace('TOKEN', secret)),
      );
      if (`${stdout}${stderr}`.includes(secret.slice(0, 20))) found.push([...flags, ...words].join(' '));
    }
    return found;
  }

  test('as any argument, or as the value of any flag, of any command', async () => {
    expect(ALL.length).toBeGreaterThan(150);
    const leaking: string[] = [];
    // Each place with both secrets, and in both forms: one form for each secret.
    const turn = Object.values(SECRETS).indexOf(secret);
    for (const [index, words] of ALL.entries()) {
      leaking.push(...(await leaks(words, FORMS.slice((index + turn) % 2).slice(0, 1))));
    }
    // `token issue` signs the claims that it gets, and `user token` prints the login's own, whose header is the same.
    expect(leaking.filter((words) => !/token issue|user token$/.test(words))).toEqual([]);
  });

  test.each(VARIABLES)('in %s', async (name) => {
    env[name] = secret;
    const leaking: string[] = [];
    for (const words of [
      ['status'],
      ['list'],
      ['experiment', 'list'],
      ['profile', 'show'],
      ['profile', 'list'],
    ]) {
      leaking.push(...(await leaks(words)));
    }
    delete env[name];
    expect(leaking).toEqual([]);
  });
});
