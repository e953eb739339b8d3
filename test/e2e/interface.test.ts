import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { newMachine, reportOf, reservationIn } from './command.ts';

const LATER = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '+1h', '--for', '2h'];

/** The machine of most tests, with a reservation. */
const own = newMachine();
let id: string;
beforeAll(async () => {
  id = reservationIn(await own.json(...LATER)).id;
  await own.json('token', 'keygen');
});

describe('--json', () => {
  /** Every timestamp in a value, however deep. */
  function timestamps(value: unknown): string[] {
    if (typeof value === 'string') return /^\d{4}-\d\d-\d\dT/.test(value) ? [value] : [];
    return typeof value === 'object' && value !== null ? Object.values(value).flatMap(timestamps) : [];
  }

  test.each<[string, string[]]>([
    [LATER.join(' '), ['reservation', 'verified', 'token', 'claims', 'source']],
    ['list', ['items']],
    ['list --all', ['items']],
    ['show ID', ['reservation', 'verified', 'token', 'claims', 'source']],
    ['show ID --token', ['token', 'claims']],
    ['update ID --extend 1m', ['reservation', 'verified', 'token', 'claims', 'source']],
    ['sites', ['items', 'links', 'source']],
    ['project list', ['items']],
    ['project show', ['project']],
    ['project use demo', ['project']],
    ['project token', ['token', 'claims']],
    ['experiment list', ['items']],
    ['experiment show', ['experiment']],
    ['experiment use demo', ['experiment']],
    ['experiment token', ['token', 'claims']],
    ['experiment create another --end +1d', ['experiment']],
    ['token keygen --out other', ['kid', 'key', 'jwks']],
    ['token issue --key key.json --issuer https://svc.example.org', ['token', 'claims']],
    ['delete --yes ID', ['items']],
  ])('%s prints one object', async (command, members) => {
    const args = command.replace('ID', id).split(' ');
    const { exitCode, stdout } = await own.run(['--offline', '--json', ...args]);
    expect(exitCode).toBe(0);
    const printed: unknown = JSON.parse(stdout);
    expect(stdout.startsWith('{') && stdout.endsWith('}\n')).toBe(true);
    expect(Object.keys(Object(printed))).toEqual(members);
    for (const timestamp of timestamps(printed)) {
      expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
  });
});

test('a misspelt site: the error names the closest one', async () => {
  const args = ['reserve', 'be-gent1', 'pl-poznan', '--bandwidth', '1G', '--start-now', '--for', '2h'];
  const { code, message, why, fix } = reportOf(await own.run(['--offline', '--json', ...args]));
  expect(code).toBe('site_unknown');
  expect(`${why} ${fix}`).toContain('pl-poznan1');
  expect(`${message} ${why}`).not.toContain('Did you mean be-gent1');
});

describe('a closed stream', () => {
  test.each(['--help', '--version', '--offline list --json'])(
    'stdout: %s exits with 0 and prints no error',
    async (command) => {
      const ended = await own.run(command.split(' '), { closed: 'stdout' });
      expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
    },
  );

  test('the command still takes effect', async () => {
    const args = ['--offline', '--json', ...LATER];
    const unread = await own.run([...args, '--save', 'unread.jwt'], { closed: 'stdout' });
    expect(unread.exitCode).toBe(0);
    expect(readFileSync(join(own.home, 'unread.jwt'), 'utf8')).toMatch(/^eyJ/);
    const { exitCode, stdout } = await own.run(args, { closed: 'stderr' });
    expect([exitCode, reservationIn(JSON.parse(stdout)).bandwidth]).toEqual([0, 1000]);
  });

  test('stderr: a failure keeps its exit code', async () => {
    const args = ['--offline', 'show', 'con_offline.localhost_none'];
    expect((await own.run(args, { closed: 'stderr' })).exitCode).toBe(3);
  });
});

test.each([
  'be-gent1 pl-poznan1 --bandwidth 1G --for 2h --json',
  'be-gent1 pl-poznan1 --bandwidth 1G --for 2h true --nope --json',
  'be-gent1 pl-poznan1 --bandwidth --json --for 2h -- true',
  'be-gent1 pl-poznan1 --bandwidth x --for 2h --json -- true',
])('run %s: 2, with an error object', async (words) => {
  const ended = await newMachine().run(['--offline', 'run', ...words.split(' ')]);
  expect(reportOf(ended)).toMatchObject({ exitCode: 2 });
});

describe('standard output on a full disk (THREATS.md 112)', () => {
  test.each(['--version', 'help times', '--offline list'])(
    '%s: 2, without a stack trace',
    async (command) => {
      const { exitCode, stderr } = await newMachine().run(command.split(' '), { onFullDisk: true });
      expect(exitCode).toBe(2);
      expect(stderr).toMatch(
        /^error: The result can't be written to standard output\.\n {2}why: The disk is full\..*\n$/,
      );
    },
  );

  test('a booking is told as sent, and stays', async () => {
    const machine = newMachine();
    const ended = await machine.run(['--offline', '--json', ...LATER], { onFullDisk: true });
    expect(reportOf(ended)).toMatchObject({
      ...{ code: 'file_unusable', exitCode: 2, maybeDone: true, fix: 'slices-conn --offline list' },
      why: expect.stringMatching(/^The disk is full\. The request was sent and may have taken effect\.$/),
    });
    expect((await machine.json('list'))['items']).toHaveLength(1);
  });
});
