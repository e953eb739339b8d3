import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { MAX_FILE, readBounded, readBoundedStream } from '../../src/files/bounded.ts';
import { newMachine } from '../e2e/command.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const folder = temporaryFolder();
const file = join(folder, 'file');

test.each([0, 1, 16_383, 16_384, 100_000])('a file of %i bytes is read whole', (size) => {
  const bytes = Buffer.alloc(size, 'abc');
  writeFileSync(file, bytes);
  expect(readBounded(file).equals(bytes)).toBe(true);
});

test('a file that does not tell its size is read whole', () => {
  expect(readBounded('/proc/self/status').toString()).toContain('VmRSS');
});

test('a file and a stream may have 16 MiB, and no byte more', async () => {
  writeFileSync(file, '');
  truncateSync(file, MAX_FILE);
  expect(readBounded(file)).toHaveLength(MAX_FILE);
  truncateSync(file, MAX_FILE + 1);
  expect(() => readBounded(file)).toThrow('It is larger than 16 MiB.');
  const parts = (last: number) => Readable.from([Buffer.alloc(MAX_FILE - 1), Buffer.alloc(last)]);
  expect(await readBoundedStream(parts(1))).toHaveLength(MAX_FILE);
  await expect(readBoundedStream(parts(2))).rejects.toThrow('It is larger than 16 MiB.');
});

test.each<[string[], Record<string, string>?]>([
  [['plan', '/dev/zero']],
  [['apply', '/dev/zero']],
  [['verify', '/dev/zero']],
  [['verify', 'a.b.c', '--jwks', '/dev/zero']],
  [['token', 'inspect', '/dev/zero']],
  [['token', 'issue', '--key', '/dev/zero', '--issuer', 'https://a.example']],
  [['vlan', '/dev/zero', '--site', 'be-gent1', '--dev', 'eth0']],
  [['probe', '/dev/zero', '--peer', '10.0.0.1', '--site', 'be-gent1', '--dev', 'eth0']],
  [['--ca-file', '/dev/zero', 'sites']],
  [['serve', '--memory', '--topology', '/dev/zero']],
  [['serve', '--memory', '--directory', '/dev/zero']],
  [['serve', '--memory', '--tls-cert', '/dev/zero', '--tls-key', '/dev/zero']],
  [['serve', '--database', 'postgres://u@127.0.0.1/d?sslrootcert=/dev/zero&sslmode=verify-ca']],
  [['user', 'token'], { SLICES_CONN_USER_TOKEN_FILE: '/dev/zero' }],
  [['experiment', 'token'], { SLICES_CONN_EXPERIMENT_TOKEN_FILE: '/dev/zero' }],
  [['sites'], { SLICES_CONN_REFRESH_TOKEN_FILE: '/dev/zero' }],
])('no more than 16 MiB of a file without an end is read: %j (THREATS.md 108)', async (args, env = {}) => {
  const machine = newMachine();
  writeFileSync(join(machine.home, 'a.b.c'), 'a.b.c');
  const { exitCode, stderr } = await machine.run(args, { env });
  expect(stderr).toContain('It is larger than 16 MiB.');
  expect(exitCode).toBe(2);
});

test('no more than 16 MiB of standard input is read (THREATS.md 108)', async () => {
  const machine = newMachine({ ownProcess: true });
  const { exitCode, stderr } = await machine.run(['verify', '-'], { stdin: 'x'.repeat(MAX_FILE + 1) });
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('It is larger than 16 MiB.')]);
});
