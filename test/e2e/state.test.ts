import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Machine, newMachine, reportOf } from './command.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '+1h', '--for', '2h'];

const RUN = 'be-gent1 pl-poznan1 --bandwidth 1G --for 2h -- true';

/** The files that a reservation at the built-in server leaves, with their modes. */
const KEPT = ['. 700', 'ledger.sqlite 600', 'offline 700', 'offline/reservations.sqlite 600'];

let own: Machine;
beforeEach(async () => {
  own = newMachine();
  await own.json(...LINK);
});

/** The mode of a folder and of everything in it, as text. */
function modes(folder: string): string[] {
  const below = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return ['.', ...below].map((name) => {
    const { mode } = statSync(join(folder, name));
    return `${name} ${(mode & 0o777).toString(8)}`;
  });
}

describe('row 16: kept files are private to their owner', () => {
  test('under any umask: folders 0700, files 0600', async () => {
    const { run, state, config } = newMachine();
    await run(['--offline', ...LINK], { withoutUmask: true });
    await run(['--offline', 'experiment', 'use', 'demo'], { withoutUmask: true });
    expect(modes(state)).toEqual(KEPT);
    expect(modes(config)).toEqual(['. 700', 'config.json 600', 'config.lock 600']);
  });

  test('row 51: files named by the user and compiled code are private under any umask', async () => {
    const { run, home } = newMachine();
    for (const args of [
      ['--offline', ...LINK, '--save', 'link.jwt'],
      ['token', 'keygen', '--out', 'keys/lab'],
    ]) {
      expect(await run(args, { withoutUmask: true })).toMatchObject({ exitCode: 0 });
    }
    expect(modes(join(home, 'keys'))).toEqual(['. 700', 'lab 700', 'lab/jwks.json 644', 'lab/key.json 600']);
    expect(statSync(join(home, 'link.jwt')).mode & 0o777).toBe(0o600);
    const compiled = modes(join(home, 'cache', 'slices-conn'));
    expect(compiled.length).toBeGreaterThan(3);
    expect(compiled.filter((line) => !/ [67]00$/.test(line))).toEqual([]);
  });
});

describe('row 17: an unusable state gives a clear message and stays unchanged', () => {
  test.each<[string, (database: string) => void]>([
    ['cut', (database) => truncateSync(database, 5000)],
    [
      'of a newer version',
      (database) => {
        const opened = new DatabaseSync(database);
        opened.exec('PRAGMA user_version = 99');
        opened.close();
      },
    ],
  ])('a database that is %s', async (_, damage) => {
    damage(own.database);
    const before = readFileSync(own.database);
    for (const args of [['list'], LINK]) {
      const report = reportOf(await own.run(['--offline', '--json', ...args]));
      expect(report).toMatchObject({ code: 'state_unusable', exitCode: 2 });
      expect(`${report.message} ${report.why}`).toContain(own.database);
    }
    expect(readFileSync(own.database).equals(before)).toBe(true);
  });

  test.each(['STATE', 'CONFIG'])(
    'a file in place of the %s folder is named: 2 (THREATS.md 113)',
    async (name) => {
      const file = join(own.home, 'a-file');
      writeFileSync(file, 'kept');
      const env = { [`SLICES_CONN_${name}_DIR`]: file };
      for (const command of ['list', 'login', 'logout', `run ${RUN}`, '--offline list']) {
        const report = reportOf(await own.run(['--json', ...command.split(' ')], { env }));
        expect([command, report.code, report.message]).toEqual([
          command,
          'state_unusable',
          `The folder ${file} can't be used.`,
        ]);
      }
      expect(readFileSync(file, 'utf8')).toBe('kept');
    },
  );
});
