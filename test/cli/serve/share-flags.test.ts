import { expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import { commandWorld, NO_SERVICE, serverCommands } from '../../fixtures/command-world.ts';

/** The options that `serve` starts with, for these flags. */
async function served(...flags: readonly string[]): Promise<{ exitCode: number; settings: object[] }> {
  const settings: object[] = [];
  const connection = NO_SERVICE;
  const { run } = commandWorld(connection, {
    server: serverCommands({
      async serve(asked) {
        settings.push(asked);
        throw new Failure('network', 'It starts no further.');
      },
    }),
    stopSignal: () => new Promise(() => undefined),
  });
  return { exitCode: (await run('serve', ...flags)).exitCode, settings };
}

test('row 59: serve accepts the limits of one experiment, and has no limits by default', async () => {
  const { settings } = await served('--max-share', '25', '--max-live', '10');
  expect(settings).toMatchObject([{ maxShare: 25, maxLive: 10 }]);
  const [plain] = (await served()).settings;
  expect(plain).not.toHaveProperty('maxShare');
  expect(plain).not.toHaveProperty('maxLive');
});

test.each([
  ['--max-share', '0'],
  ['--max-share', '101'],
  ['--max-share', '12.5'],
  ['--max-share', '50%'],
  ['--max-live', '0'],
  ['--max-live', '-1'],
  ['--max-live', 'many'],
])('%s %s: exit 2', async (flag, value) => {
  expect(await served(flag, value)).toEqual({ exitCode: 2, settings: [] });
});
