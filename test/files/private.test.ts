import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { cacheFolder, dataFolder, makePrivate, privateFolder } from '../../src/files/private.ts';
import { failureOf } from '../fixtures/failures.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const root = temporaryFolder();

let folder = '';
let drawn = 0;
beforeEach(() => {
  drawn += 1;
  folder = join(root, String(drawn), 'own');
});

const modeOf = (path: string): number => statSync(path).mode & 0o777;

describe('row 16: a private folder', () => {
  test('is made for its owner only, as are the folders above it', () => {
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

  test('keeps its content', () => {
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
  ])('is refused when %s is in its place', async (_, plant) => {
    plant(folder);
    const failure = await failureOf(() => privateFolder(folder));
    expect(failure.code).toBe('state_unusable');
    expect(failure.message).toContain(folder);
    expect(failure.facts.why).toMatch(/\S/);
  });

  test('leaves the mode of a refused symbolic link’s target', async () => {
    const target = join(folder, '..', 'target');
    mkdirSync(target, { recursive: true });
    chmodSync(target, 0o755);
    symlinkSync(target, folder);
    await failureOf(() => privateFolder(folder));
    expect(modeOf(target)).toBe(0o755);
  });

  test('is a clear failure when it can’t be made', async () => {
    const failure = await failureOf(() => privateFolder('/dev/null/below'));
    expect(failure.code).toBe('state_unusable');
    expect(failure.facts.why).toMatch(/\S/);
  });

  // Only root can change a folder's owner.
  test.runIf(process.getuid?.() === 0)('is refused when it belongs to someone else', async () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chownSync(folder, 12_345, 12_345);
    const failure = await failureOf(() => privateFolder(folder));
    expect(failure).toMatchObject({ code: 'state_unusable', facts: { why: 'It belongs to another user.' } });
  });
});

/** Another user's number. Only root can change a file's owner. */
const OTHER = 12_345;
const isRoot = process.getuid?.() === 0;

describe('row 51: a folder that a person chose for data', () => {
  test('is made for its owner only, with any umask', () => {
    const umask = process.umask(0);
    try {
      dataFolder(folder);
    } finally {
      process.umask(umask);
    }
    expect([modeOf(folder), modeOf(join(folder, '..'))]).toEqual([0o700, 0o700]);
  });

  test.each([0o777, 0o775, 0o702, 0o1777])(
    'of mode %o is refused with the next step, and left unchanged',
    async (mode) => {
      mkdirSync(folder, { recursive: true });
      chmodSync(folder, mode);
      const failure = await failureOf(() => dataFolder(folder));
      expect(failure).toMatchObject({ code: 'state_unusable', facts: { fix: `chmod go-w ${folder}` } });
      expect(failure.facts.why).toContain('Others can write');
      expect(statSync(folder).mode & 0o7777).toBe(mode);
    },
  );

  test('keeps its mode when others can only read it: it can have other uses', () => {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o755);
    expect(dataFolder(folder)).toBe(folder);
    expect(modeOf(folder)).toBe(0o755);
  });

  test.each(['', '/'])('is refused when it is a symbolic link, with "%s" after its name', async (end) => {
    mkdirSync(join(folder, '..', 'elsewhere'), { recursive: true, mode: 0o700 });
    symlinkSync(join(folder, '..', 'elsewhere'), folder);
    const failure = await failureOf(() => dataFolder(`${folder}${end}`));
    expect(failure.facts.why).toContain('symbolic link');
  });

  test.runIf(isRoot)('is refused when it belongs to someone else', async () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chownSync(folder, OTHER, OTHER);
    const failure = await failureOf(() => dataFolder(folder));
    expect(failure.facts.why).toContain('another user');
  });
});

describe.each([
  ['a private folder', privateFolder],
  ['a folder for data', dataFolder],
])('row 51: above %s', (_, use) => {
  const above = (): string => join(folder, '..');
  beforeEach(() => void mkdirSync(folder, { recursive: true, mode: 0o700 }));

  test.each([0o777, 0o757, 0o722])(
    'a folder of mode %o is refused: others could replace ours',
    async (mode) => {
      chmodSync(above(), mode);
      const failure = await failureOf(() => use(join(folder, 'below')));
      expect(failure).toMatchObject({ code: 'state_unusable', facts: { fix: `chmod go-w ${above()}` } });
      expect(failure.facts.why).toContain(above());
    },
  );

  test('a sticky folder such as /tmp is allowed', () => {
    chmodSync(above(), 0o1777);
    expect(use(folder)).toBe(folder);
  });

  test.runIf(isRoot)(
    'a folder that its group can write to is allowed when the group is the user’s own',
    async () => {
      chmodSync(above(), 0o770);
      expect(use(folder)).toBe(folder);
      chownSync(above(), 0, OTHER);
      expect((await failureOf(() => use(folder))).facts.why).toContain(above());
    },
  );
});

describe('row 51: a file', () => {
  const file = (): string => join(folder, 'file');
  beforeEach(() => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(file(), 'kept', { mode: 0o600 });
  });

  test('that is missing stays missing', () => {
    expect(makePrivate(join(folder, 'none'))).toBe(false);
  });

  test.each([0o600, 0o644, 0o640, 0o700])('of mode %o is closed to others', (mode) => {
    chmodSync(file(), mode);
    expect(makePrivate(file())).toBe(true);
    expect(modeOf(file())).toBe(0o600);
  });

  test.each([0o666, 0o602, 0o620])('of mode %o is refused and left unchanged', async (mode) => {
    chmodSync(file(), mode);
    const failure = await failureOf(() => makePrivate(file()));
    expect(failure.facts.why).toContain('could have changed it');
    expect(`${failure.facts.why} ${failure.facts.fix}`).toContain('chmod 600');
    expect(modeOf(file())).toBe(mode);
  });

  test.runIf(isRoot)('of another user is refused', async () => {
    chownSync(file(), OTHER, OTHER);
    expect((await failureOf(() => makePrivate(file()))).facts.why).toContain('another user');
  });

  test('that is a symbolic link is refused, with any target', async () => {
    for (const target of [file(), join(folder, 'nowhere')]) {
      const link = join(folder, 'link');
      symlinkSync(target, link);
      expect((await failureOf(() => makePrivate(link))).facts.why).toContain('symbolic link');
      rmSync(link);
    }
  });
});

describe('row 51: a folder with compiled code', () => {
  const code = (): string => join(folder, 'code');
  beforeEach(() => {
    mkdirSync(join(folder, 'v24'), { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
    writeFileSync(code(), 'compiled', { mode: 0o600 });
  });

  test('of the user’s own is kept', () => {
    expect(cacheFolder(folder)).toBe(folder);
    expect(existsSync(code())).toBe(true);
  });

  test.each<[string, () => void]>([
    ['a folder that others can write to', () => chmodSync(folder, 0o777)],
    ['a folder below it that others can write to', () => chmodSync(join(folder, 'v24'), 0o770)],
    ['a file that others can write to', () => chmodSync(code(), 0o606)],
    ['a symbolic link', () => symlinkSync('/dev/null', join(folder, 'link'))],
    ...(isRoot
      ? ([
          ['someone else’s file', () => chownSync(code(), OTHER, OTHER)],
          ['someone else’s folder', () => chownSync(join(folder, 'v24'), OTHER, OTHER)],
        ] satisfies [string, () => void][])
      : []),
  ])('with %s is removed before any code runs', (_, plant) => {
    plant();
    expect(cacheFolder(folder)).toBe(folder);
    expect(existsSync(code())).toBe(false);
    expect(modeOf(folder)).toBe(0o700);
  });
});
