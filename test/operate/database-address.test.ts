import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { readServerAudit } from '../../src/operate/audit.ts';
import type { AuditOptions, RotateKeysOptions, ServeOptions } from '../../src/operate/options.ts';
import { rotateKeys } from '../../src/operate/rotate-keys.ts';
import { serve } from '../../src/operate/serve.ts';
import { commandWorld, serverCommands } from '../fixtures/command-world.ts';

const connection = {
  fetch: () => Promise.reject(new Error('no service is asked')),
  userToken: { origin: 'offline', where: 'a test', get: () => Promise.reject(new Error('no token')) },
  close: async () => undefined,
} as const;
const place = { defaultFolder: tmpdir(), now: Date.now, random: Math.random, write: () => undefined };
/** The real commands; no address here gets as far as a database. */
const server = serverCommands({
  serve: (options: ServeOptions) => serve(options, place),
  rotateKeys: (options: RotateKeysOptions, confirm) => rotateKeys(options, { ...place, confirm }),
  readAudit: (options: AuditOptions, take) => readServerAudit(options, tmpdir(), take),
});
const world = () => commandWorld(connection, { server, stopSignal: () => new Promise(() => undefined) });

describe('row 52: a password in the address of a database', () => {
  const COMMANDS = [
    ['serve'],
    ['serve', 'audit'],
    ['serve', 'rotate-keys'],
    ['serve', 'rotate-keys', '--retire-now'],
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
    '%s --database %s: exit 2 before anything is opened, and the password is not printed',
    async (command, address) => {
      const { run } = world();
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

  test.each(ADDRESSES.slice(0, 3))('%s: the refusal says where a password can be given', async (address) => {
    const { stderr } = await world().run('serve', '--database', address);
    for (const place of ['PGPASSWORD', 'PGPASSFILE']) expect(stderr).toContain(place);
  });
});
