import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { newMachine } from './command.ts';
import { serveHere } from './served.ts';

/** What the README and the pages that it links show besides tours: the first command, and programs that use the package. */
const root = new URL('../..', import.meta.url).pathname;
const read = (page: string): string => readFileSync(join(root, page), 'utf8');
const readme = read('README.md');
const programs = [...read('src/client/README.md').matchAll(/```ts\n([\s\S]*?)```/g)].map(
  ([, program = '']) => program,
);
const folder = temporaryFolder();

beforeAll(() => {
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules', 'slices-conn'));
  symlinkSync(join(root, 'node_modules/jose'), join(folder, 'node_modules', 'jose'));
});

test('the first command of the README books a link on a machine that has never seen it', async () => {
  const [, command = ''] = /^ {4}npm ci && npx slices-conn (.*)$/m.exec(readme) ?? [];
  const { exitCode, stdout } = await newMachine({ ownProcess: true }).run(command.split(' '));
  expect(stdout).toContain('verified: signed by http://offline.localhost');
  expect(stdout.match(/[SC]-tag \d+/g)).toHaveLength(4);
  // The card that stands in the README has the same lines, whatever ids and times they hold.
  const [, shown = ''] = /\$ npx slices-conn .*\n(Reserved[\s\S]*?)```/.exec(readme) ?? [];
  const labels = (card: string) => card.split('\n').map((line) => line.trim().split(/ {2}|:/)[0]);
  expect(labels(stdout)).toEqual(labels(shown));
  expect(exitCode).toBe(0);
});

test('of the programs of the page on programs of your own the one that needs no socket lists the demo project', () => {
  const file = join(folder, 'server.ts');
  writeFileSync(file, programs.find((program) => program.includes('createReferenceServer')) ?? '');
  const { stdout, stderr, status } = spawnSync(process.execPath, [file], { cwd: folder, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain("name: 'demo'");
});

describe('a program of ten lines with a library of others', async () => {
  const page = read('src/tokens/README.md');
  const hasPyJwt = spawnSync('python3', ['-c', 'import jwt, cryptography']).status === 0;
  const server = await serveHere('--auto-approve', 'lead');
  const machine = newMachine();
  await machine.run(['login', '--quiet'], { env: server.env });
  const file = join(folder, 'link.jwt');
  const link = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '1h'];
  const { stdout } = await machine.run([...link, '--save', file, '--json'], { env: server.env });
  const { reservation, token } = JSON.parse(stdout);
  const forged = join(folder, 'forged.jwt');
  writeFileSync(forged, token.replace('.e', '.f'));

  test.each([
    ['js', process.execPath, 'verify.mjs', true],
    ['python', 'python3', 'verify.py', hasPyJwt],
  ] as const)('verifies a reservation: %s', async (language, program, name, isThere) => {
    const [, text = ''] = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(page) ?? [];
    expect(text.trim().split('\n').length).toBeLessThanOrEqual(10);
    writeFileSync(join(folder, name), text);
    if (!isThere) return;
    const run = (...args: string[]) =>
      promisify(execFile)(program, [join(folder, name), ...args]).then(
        ({ stdout: printed }) => printed.trim(),
        () => 'refused',
      );
    expect(await run(file, server.base)).toBe(reservation.id);
    expect(await run(forged, server.base)).toBe('refused');
    expect(await run(file, server.base.replace('127.0.0.1', 'localhost'))).toBe('refused');
  });
});
