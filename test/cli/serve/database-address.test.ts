import { describe, expect, test } from 'vitest';
import { commandWorld } from '../../fixtures/command-world.ts';

const connection = {
  fetch: () => Promise.reject(new Error('nobody is asked')),
  userToken: { origin: 'offline', where: 'a test', get: () => Promise.reject(new Error('no token')) },
  close: async () => undefined,
} as const;

describe('row 52: a password in the address of a database', () => {
  const COMMANDS = [
    ['serve'],
    ['serve', 'audit'],
    ['serve', 'rotate-keys'],
    ['serve', 'backup', 'copy.sqlite'],
  ];
  const ADDRESSES = [
    'postgres://someone:hunter2@db.example.org/slices',
    'postgresql://:hunter2@127.0.0.1/slices',
    'postgres://someone@db.example.org/slices?password=hunter2',
    'postgres://someone:hunter2@slices?service=%',
    'mysql://someone:hunter2@db.example.org/slices',
    'host=db.example.org password=hunter2',
  ];
  const cases = COMMANDS.flatMap((command) =>
    ADDRESSES.map((address) => [command.join(' '), address] as const),
  );

  test.each(cases)(
    '%s --database %s: exit 2 before anything is opened, and it is not told',
    async (command, address) => {
      const { run } = commandWorld(connection);
      for (const format of [[], ['--json']]) {
        const { exitCode, stdout, stderr } = await run(
          ...command.split(' '),
          '--database',
          address,
          ...format,
        );
        expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
        expect(stderr).not.toContain('hunter2');
      }
    },
  );

  test.each(ADDRESSES.slice(0, 3))('%s: the refusal says where else it may stand', async (address) => {
    const { stderr } = await commandWorld(connection).run('serve', '--database', address);
    for (const place of ['PGPASSWORD', 'PGPASSFILE', 'PGSERVICE']) expect(stderr).toContain(place);
  });
});
