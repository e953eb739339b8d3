import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { type Environment, foldersFor, privateFolder } from '../../src/session/folders.ts';
import { failureOf } from '../fixtures/failures.ts';

describe('where things are kept', () => {
  test.each<[string, Environment, [config: string, state: string, cache: string]]>([
    [
      'below the home folder',
      {},
      ['/home/ada/.config/slices-conn', '/home/ada/.local/state/slices-conn', '/home/ada/.cache/slices-conn'],
    ],
    [
      'in the XDG folders',
      { XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s', XDG_CACHE_HOME: '/k' },
      ['/c/slices-conn', '/s/slices-conn', '/k/slices-conn'],
    ],
    [
      'a relative or empty XDG folder counts as unset, as its specification asks',
      { XDG_CONFIG_HOME: 'c', XDG_STATE_HOME: './s', XDG_CACHE_HOME: '' },
      ['/home/ada/.config/slices-conn', '/home/ada/.local/state/slices-conn', '/home/ada/.cache/slices-conn'],
    ],
    [
      'the program’s own variables go before XDG, and name the folder itself',
      {
        XDG_CONFIG_HOME: '/c',
        XDG_STATE_HOME: '/s',
        XDG_CACHE_HOME: '/k',
        SLICES_CONN_CONFIG_DIR: '/own/c',
        SLICES_CONN_STATE_DIR: '/own/s',
        SLICES_CONN_CACHE_DIR: '/own/k',
      },
      ['/own/c', '/own/s', '/own/k'],
    ],
    [
      'the program’s own variables count as unset when they are empty',
      { XDG_STATE_HOME: '/s', SLICES_CONN_STATE_DIR: '' },
      ['/home/ada/.config/slices-conn', '/s/slices-conn', '/home/ada/.cache/slices-conn'],
    ],
  ])('%s', (_, env, [config, state, cache]) => {
    expect(foldersFor(env, '/home/ada')).toEqual({ config, state, cache });
  });
});

const root = mkdtempSync(join(tmpdir(), 'slices-conn-folders-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = '';
let drawn = 0;
beforeEach(() => {
  drawn += 1;
  folder = join(root, String(drawn), 'own');
});

const modeOf = (path: string): number => statSync(path).mode & 0o777;

describe('row 16: a private folder', () => {
  test('is made for its owner only, and so is what is above it', () => {
    const below = join(folder, 'below');
    expect(privateFolder(below)).toBe(below);
    expect(modeOf(below)).toBe(0o700);
    expect(modeOf(folder)).toBe(0o700);
  });

  test.each([0o755, 0o777, 0o770, 0o701, 0o750])('of mode %o is closed to others', (mode) => {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, mode);
    privateFolder(folder);
    expect(modeOf(folder)).toBe(0o700);
  });

  test('keeps what is in it', () => {
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    writeFileSync(join(folder, 'kept'), 'kept');
    privateFolder(folder);
    expect(statSync(join(folder, 'kept')).size).toBe(4);
  });

  test.each<[string, (path: string) => void]>([
    [
      'a symbolic link to a folder',
      (path) => {
        mkdirSync(join(path, '..', 'elsewhere'), { recursive: true, mode: 0o755 });
        symlinkSync(join(path, '..', 'elsewhere'), path);
      },
    ],
    [
      'a symbolic link to nowhere',
      (path) => {
        mkdirSync(join(path, '..'), { recursive: true });
        symlinkSync(join(path, '..', 'nowhere'), path);
      },
    ],
    [
      'a file',
      (path) => {
        mkdirSync(join(path, '..'), { recursive: true });
        writeFileSync(path, 'x');
      },
    ],
  ])('is refused where %s stands in its place', async (_, plant) => {
    plant(folder);
    const failure = await failureOf(() => privateFolder(folder));
    expect(failure.code).toBe('state_unusable');
    expect(failure.message).toContain(folder);
    expect(failure.facts.why).toMatch(/\S/);
  });

  test('is not reached through a symbolic link that it refused: the target keeps its mode', async () => {
    const target = join(folder, '..', 'target');
    mkdirSync(target, { recursive: true });
    chmodSync(target, 0o755);
    symlinkSync(target, folder);
    await failureOf(() => privateFolder(folder));
    expect(modeOf(target)).toBe(0o755);
  });

  test('that can’t be made is a clear failure', async () => {
    const failure = await failureOf(() => privateFolder('/dev/null/below'));
    expect(failure.code).toBe('state_unusable');
    expect(failure.facts.why).toMatch(/\S/);
  });

  // Only root can give a folder away.
  test.runIf(process.getuid?.() === 0)('is refused when it belongs to someone else', async () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chownSync(folder, 12_345, 12_345);
    const failure = await failureOf(() => privateFolder(folder));
    expect(failure).toMatchObject({ code: 'state_unusable', facts: { why: 'It belongs to another user.' } });
  });
});
