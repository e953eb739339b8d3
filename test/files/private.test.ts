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

/** A folder of mode 0700 in the test's own, and the paths of what may be in it. */
let [above, folder, file] = ['', '', ''];
beforeEach(() => {
  above = join(temporaryFolder(), 'above');
  folder = join(above, 'own');
  file = join(folder, 'file');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(file, 'kept', { mode: 0o600 });
});

const modeOf = (path: string): number => statSync(path).mode & 0o7777;
/** Another user's number. Only root can change an owner. */
const OTHER = 12_345;
const isRoot = process.getuid?.() === 0;
const giveAway = (path: string): void => chownSync(path, OTHER, OTHER);

/** What is said of a refusal. */
async function refusal(act: () => unknown): Promise<string> {
  const { code, message, facts } = await failureOf(act);
  expect(code).toBe('state_unusable');
  return `${message} ${facts.why} ${facts.fix}`;
}

describe.each([
  ['row 16: a private folder', privateFolder],
  ['row 51: a folder that a person chose for data', dataFolder],
])('%s', (_, use) => {
  test('is made for its owner only, as are the folders above it, with any umask', () => {
    const umask = process.umask(0);
    try {
      expect(use(join(folder, 'new', 'below'))).toBe(join(folder, 'new', 'below'));
    } finally {
      process.umask(umask);
    }
    expect([modeOf(join(folder, 'new', 'below')), modeOf(join(folder, 'new'))]).toEqual([0o700, 0o700]);
  });

  test.each([
    ['a link to a folder', '', () => symlinkSync(folder, join(above, 'link'))],
    ['a link to a folder', '/', () => symlinkSync(folder, join(above, 'link'))],
    ['a link to nowhere', '', () => symlinkSync(join(above, 'nowhere'), join(above, 'link'))],
    ['a file', '', () => writeFileSync(join(above, 'link'), 'x')],
  ])('is refused when %s is in its place, with "%s" after its name', async (_what, end, plant) => {
    plant();
    chmodSync(folder, 0o755);
    expect(await refusal(() => use(`${join(above, 'link')}${end}`))).toMatch(
      /link\/? can't be used\. It (?:is not a folder|exists already)/,
    );
    expect(modeOf(folder)).toBe(0o755);
  });

  test('is a clear failure when it can’t be made', async () => {
    expect(await refusal(() => use('/dev/null/below'))).toContain('A part of its path is a file');
  });

  test.runIf(isRoot)('is refused when it belongs to someone else', async () => {
    giveAway(folder);
    expect(await refusal(() => use(folder))).toContain('It belongs to another user.');
  });

  test.each([0o777, 0o757, 0o722])(
    'below one of mode %o is refused: others could replace ours',
    async (mode) => {
      chmodSync(above, mode);
      const said = await refusal(() => use(join(folder, 'below')));
      expect(said).toContain(`Others can write to ${above}, so they could replace what is in it.`);
      expect(said).toContain(`chmod go-w ${above}`);
    },
  );

  test('below a sticky folder such as /tmp is allowed', () => {
    chmodSync(above, 0o1777);
    expect(use(folder)).toBe(folder);
  });

  test.runIf(isRoot)(
    'below one that its group can write to is allowed when the group is the user’s own',
    async () => {
      chmodSync(above, 0o770);
      expect(use(folder)).toBe(folder);
      chownSync(above, 0, OTHER);
      expect(await refusal(() => use(folder))).toContain(above);
    },
  );
});

test.each([0o755, 0o777, 0o770, 0o701])(
  'row 16: a private folder of mode %o is closed to others, and keeps its content',
  (mode) => {
    chmodSync(folder, mode);
    privateFolder(folder);
    expect([modeOf(folder), existsSync(file)]).toEqual([0o700, true]);
  },
);

test.each([0o777, 0o775, 0o702, 0o1777])(
  'row 51: a folder for data of mode %o is refused with the next step, and left unchanged',
  async (mode) => {
    chmodSync(folder, mode);
    expect(await refusal(() => dataFolder(folder))).toMatch(
      `Others can write to it, so they could have put files there. chmod go-w ${folder}`,
    );
    expect(modeOf(folder)).toBe(mode);
  },
);

test('row 51: a folder for data keeps its mode when others can only read it: it can have other uses', () => {
  chmodSync(folder, 0o755);
  expect(dataFolder(folder)).toBe(folder);
  expect(modeOf(folder)).toBe(0o755);
});

describe('row 51: a file', () => {
  test('that is missing stays missing', () => expect(makePrivate(join(folder, 'none'))).toBe(false));

  test.each([0o600, 0o644, 0o640, 0o700])('of mode %o is closed to others', (mode) => {
    chmodSync(file, mode);
    expect(makePrivate(file)).toBe(true);
    expect(modeOf(file)).toBe(0o600);
  });

  test.each([0o666, 0o602, 0o620])('of mode %o is refused and left unchanged', async (mode) => {
    chmodSync(file, mode);
    expect(await refusal(() => makePrivate(file))).toMatch(/could have changed it.*chmod 600/);
    expect(modeOf(file)).toBe(mode);
  });

  test.runIf(isRoot)('of another user is refused', async () => {
    giveAway(file);
    expect(await refusal(() => makePrivate(file))).toContain('another user');
  });

  test('that is a symbolic link is refused, with any target', async () => {
    const link = join(folder, 'link');
    for (const target of [file, join(folder, 'nowhere')]) {
      symlinkSync(target, link);
      expect(await refusal(() => makePrivate(link))).toContain('symbolic link');
      rmSync(link);
    }
  });
});

describe('row 51: a folder with compiled code', () => {
  const below = (): string => join(folder, 'v24');
  beforeEach(() => mkdirSync(below(), { mode: 0o700 }));

  test('of the user’s own is kept', () => {
    expect(cacheFolder(folder)).toBe(folder);
    expect(existsSync(file)).toBe(true);
  });

  const foreign: [string, () => void][] = [
    ['someone else’s file', () => giveAway(file)],
    ['someone else’s folder', () => giveAway(below())],
  ];
  test.each<[string, () => void]>([
    ['a folder that others can write to', () => chmodSync(folder, 0o777)],
    ['a folder below it that others can write to', () => chmodSync(below(), 0o770)],
    ['a file that others can write to', () => chmodSync(file, 0o606)],
    ['a symbolic link', () => symlinkSync('/dev/null', join(folder, 'link'))],
    ...(isRoot ? foreign : []),
  ])('with %s is removed before any code runs', (_, plant) => {
    plant();
    expect(cacheFolder(folder)).toBe(folder);
    expect([existsSync(file), modeOf(folder)]).toEqual([false, 0o700]);
  });
});
