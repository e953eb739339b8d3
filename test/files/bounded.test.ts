import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { MAX_FILE, readBounded, readBoundedStream, readBytes } from '../../src/files/bounded.ts';
import { newMachine } from '../e2e/command.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { claimsOf, makeKey, makeToken } from '../fixtures/tokens.ts';

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

const marked = (bytes: Buffer) => {
  writeFileSync(file, bytes);
  return [() => readBounded(file), () => readBoundedStream(Readable.from([bytes]))];
};

test.each(['', 'x', '\ufeff{}'])('a byte order mark before %j is skipped, once', async (text) => {
  for (const read of marked(Buffer.from(`\ufeff${text}`)))
    expect(String(Buffer.from(await read()))).toBe(text);
  expect(String(readBytes(file))).toBe(`\ufeff${text}`);
});

test.each([[[0xff, 0xfe]], [[0xfe, 0xff]]])('UTF-16 is named, with what to do: %j', async (mark) => {
  for (const read of marked(Buffer.from([...mark, 0x61, 0]))) {
    await expect(async () => read()).rejects.toThrow(/^It is in UTF-16, .* Out-File -Encoding utf8 FILE\.$/);
  }
});

test('config.json, a key set and a token may begin with a byte order mark', async () => {
  const machine = newMachine();
  const write = (path: string, text: string, encoding: BufferEncoding = 'utf8') =>
    writeFileSync(path, `\ufeff${text}`, { encoding, mode: 0o600 });
  const [token, config] = [join(machine.home, 'token'), join(machine.config, 'config.json')];
  const key = makeKey('ES256');
  mkdirSync(machine.config, { recursive: true, mode: 0o700 });
  write(config, '{"profile":"local","profiles":{}}');
  write(join(machine.home, 'keys.json'), JSON.stringify({ keys: [key.jwk] }));
  write(token, `"Bearer ${makeToken(key, claimsOf('experiment', { exp: 4_000_000_000 }))}"\r\n`);
  const verify = ['verify', 'token', '--jwks', 'keys.json'];
  expect(await machine.run(verify)).toMatchObject({ exitCode: 0 });
  write(token, 'x', 'utf16le');
  const refused = { exitCode: 2, stderr: expect.stringContaining('UTF-16') };
  expect(await machine.run(verify)).toMatchObject(refused);
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
