import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newClient } from './served.ts';

/** What Windows lacks, taken from a Node.js of this system: user numbers; and the platform is said to be Windows. */
const AS_WINDOWS = `
  Object.defineProperty(process, 'platform', { value: 'win32' });
  for (const name of ['getuid', 'geteuid', 'getgid', 'getegid', 'getgroups']) delete process[name];`;

test('where the system has no user numbers and passes on no signals, as on Windows, a command runs with its link', async () => {
  const client = newClient({
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(AS_WINDOWS)}`,
  });
  const run = ['--offline', 'run', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--for', '1h', '--'];
  const program = join(client.home, 'node.exe');
  symlinkSync(process.execPath, program);
  const { exitCode, stderr } = await client.start(...run, program, '-e', 'process.exit(3)').ended;
  expect(exitCode, stderr).toBe(3);
  expect(stderr).toMatch(/^Reserved be-gent1 – pl-poznan1/m);
  expect(stderr).toMatch(/^Deleted con_/m);
  const missing = await client.start(...run, 'no-such-program').ended;
  expect(missing.exitCode).toBe(127);
  expect((await client.result('--offline', 'list'))['items']).toEqual([]);
});
