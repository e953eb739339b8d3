import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type Ended, reportOf } from './command.ts';
import { LAUNCHER } from './served.ts';

/** The stand-in for the official client, which finds slices-conn on the PATH as the real one does. */
const OFFICIAL = new URL('../fixtures/official-client.js', import.meta.url).pathname;
const BOOK = ['reserve', 'be-gent1', 'pl-poznan1', '--start-now', '--for', '2h', '--json'];

const folder = temporaryFolder();

const bin = join(folder, 'a folder of programs');
const path = [bin, '/usr/bin', '/bin', join(folder, 'missing')].join(':');

function slices(args: readonly string[]): Ended {
  const { status, stdout, stderr } = spawnSync(process.execPath, [OFFICIAL, ...args], {
    cwd: folder,
    env: { HOME: join(folder, 'home'), PATH: path },
    encoding: 'utf8',
  });
  return { exitCode: status, stdout, stderr };
}

beforeAll(() => {
  mkdirSync(join(folder, 'home'));
  mkdirSync(bin);
  // As npm installs it: a link to the launcher, whose first line looks for node on the PATH.
  symlinkSync(LAUNCHER, join(bin, 'slices-conn'));
  symlinkSync(process.execPath, join(bin, 'node'));
  // Not executable.
  writeFileSync(join(bin, 'slices-notes'), 'what I must not forget\n');
  chmodSync(join(bin, 'slices-notes'), 0o644);
});

describe('slices-conn as a sub-command of the official client', () => {
  test('slices --help lists conn with its help line', () => {
    const { exitCode, stdout, stderr } = slices(['--help']);
    expect(stderr).toBe('');
    expect(stdout.split('\n').slice(2)).toEqual([
      'Commands:',
      `  conn            Book network links between research sites (v${manifest.version})`,
      '',
    ]);
    expect(exitCode).toBe(0);
  });

  test('slices conn --version is the one line', () => {
    const answered = { exitCode: 0, stdout: `v${manifest.version}\n`, stderr: '' };
    expect(slices(['conn', '--version'])).toEqual(answered);
  });

  test('arguments with blanks arrive as they were given, and a failure keeps its exit code', () => {
    const saved = slices(['conn', '--offline', ...BOOK, '--bandwidth', '1', '--save', 'a link.jwt']);
    expect(saved.exitCode).toBe(0);
    expect(readFileSync(join(folder, 'a link.jwt'), 'utf8')).toMatch(/^eyJ/);
    const refused = slices(['conn', '--offline', ...BOOK, '--bandwidth', '999999G']);
    expect(reportOf(refused)).toMatchObject({ exitCode: 6, code: 'bandwidth_unavailable' });
  });
});
