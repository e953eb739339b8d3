import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { compiledFolder, createProgram, type Program } from '../../src/main/compiled-main.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const root = temporaryFolder();

let home = '';
let drawn = 0;
beforeEach(() => {
  drawn += 1;
  home = join(root, String(drawn));
});

const folderOf = (build = 'build', command = 'list'): string => {
  const folder = compiledFolder(build, command, { SLICES_CONN_CACHE_DIR: home });
  if (folder === undefined) throw new Error('there is no folder');
  return folder;
};
const sizeOf = (name: string): number => statSync(join(folderOf(), name)).size;

/**
 * A program of two files, each time in another folder: V8 compiles what this process has loaded already in no other.
 *
 * @param letter one of its sources has it, so that their lengths are the same
 */
function newProgram(kept: string | undefined, letter = 'a'): Program {
  drawn += 1;
  const folder = join(home, `installed-${drawn}`);
  mkdirSync(folder, { recursive: true });
  const write = (name: string, text: string): void =>
    writeFileSync(
      join(folder, name),
      `(function (exports, require, __filename) { "use strict"; ${text}\n})\n`,
    );
  write(
    'main.cjs',
    `exports.first = (n) => require('./other.cjs').half(n) + [1, 2, 3].map((each) => each * n).length;
     exports.second = (n) => { const { sep } = require('node:path'); return sep.repeat(n) + '${letter}nd more'.slice(n - 1); };
     exports.where = __filename;`,
  );
  write('other.cjs', `exports.half = (n) => n / 2;`);
  return createProgram(folder, kept);
}

interface Main {
  first(n: number): number;
  second(n: number): string;
  where: string;
}
const mainOf = (program: Program): Main => program.require('./main.cjs') as Main;

describe('a program whose compiled code is kept', () => {
  test('loads its files once, and Node’s modules', () => {
    const program = newProgram(undefined);
    const main = mainOf(program);
    expect(main).toBe(mainOf(program));
    expect([main.first(4), main.second(1)]).toEqual([5, '/and more']);
    expect(main.where).toMatch(/installed-\d+\/main\.cjs$/);
    program.keep();
  });

  test('keeps the functions that were called, and is written again only where a file was loaded without its code', () => {
    const one = newProgram(folderOf());
    mainOf(one).second(1);
    one.keep();
    const { ino, size } = statSync(join(folderOf(), 'main.cjs'));

    const same = newProgram(folderOf());
    mainOf(same).second(1);
    same.keep();
    expect(statSync(join(folderOf(), 'main.cjs')).ino).toBe(ino);

    const more = newProgram(folderOf());
    mainOf(more).first(4);
    more.keep();
    expect(sizeOf('main.cjs')).toBeGreaterThan(size);
    expect(readdirSync(folderOf())).toEqual(['main.cjs', 'other.cjs']);
  });

  test('is made anew where its code is damaged, or is that of another source (THREATS.md 107)', () => {
    const some = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    const damage = fc.oneof(
      fc.record({ kind: fc.constant('flip' as const), at: fc.array(some, { minLength: 1, maxLength: 20 }) }),
      fc.record({ kind: fc.constant('cut' as const), at: some }),
      fc.record({ kind: fc.constant('swap' as const) }),
      fc.record({ kind: fc.constant('edit' as const), letter: fc.constantFrom(...'bcdhlt') }),
    );
    const ran = (letter: string): void => {
      const program = newProgram(folderOf(), letter);
      const main = mainOf(program);
      expect([main.first(4), main.second(1)]).toEqual([5, `/${letter}nd more`]);
      program.keep();
    };
    ran('a');
    const sizes = ['main.cjs', 'other.cjs'].map(sizeOf);
    fc.assert(
      fc.property(damage, fc.nat(7), (done, bit) => {
        const [file, other] = ['main.cjs', 'other.cjs'].map((name) => join(folderOf(), name));
        if (file === undefined || other === undefined) throw new RangeError('there are two');
        const code = readFileSync(file);
        if (done.kind === 'flip') {
          for (const part of done.at) {
            const at = Math.floor(part * code.length);
            code.writeUInt8(code.readUInt8(at) ^ (1 << bit), at);
          }
          writeFileSync(file, code);
        } else if (done.kind === 'cut') writeFileSync(file, code.subarray(0, done.at * code.length));
        else if (done.kind === 'swap') {
          copyFileSync(other, file);
          writeFileSync(other, code);
        }
        ran(done.kind === 'edit' ? done.letter : 'a');
        for (const [at, name] of ['main.cjs', 'other.cjs'].entries())
          expect(sizeOf(name)).toBeGreaterThan(0.9 * (sizes[at] ?? 0));
      }),
    );
  });

  test('runs where nothing can be kept', () => {
    const folder = folderOf();
    rmSync(folder, { recursive: true });
    writeFileSync(folder, 'a file in the place of the folder');
    const program = newProgram(folder);
    expect(mainOf(program).first(4)).toBe(5);
    program.keep();
    expect(readFileSync(folder, 'utf8')).toBe('a file in the place of the folder');
  });
});

describe('the folder of compiled code', () => {
  test('is another one for most other commands, of 32 at most', () => {
    const folders = Array.from({ length: 500 }, (_, at) => folderOf('build', `command-${at}`));
    expect(new Set(folders).size).toBe(32);
    expect(folderOf('build', 'list')).toBe(folderOf('build', 'list'));
  });

  test('has four builds at most', () => {
    for (let build = 1; build <= 4; build += 1) folderOf(`build-${build}`);
    folderOf('build-1');
    const builds = (): string[] => readdirSync(join(home, 'compiled')).map((name) => name.slice(0, 7));
    expect(builds()).toEqual([1, 2, 3, 4].map((build) => `build-${build}`));
    folderOf('build-5');
    expect(builds()).toEqual(['build-5']);
  });

  test.each([
    ['a file', (folder: string) => join(folder, 'main.cjs')],
    ['its folder', (folder: string) => folder],
    ['the folder above it', (folder: string) => join(folder, '..')],
  ])('row 51: nothing is read where others could write to %s', (_, open) => {
    const folder = folderOf();
    const file = join(folder, 'main.cjs');
    writeFileSync(file, 'planted', { mode: 0o600 });
    folderOf();
    expect(existsSync(file)).toBe(true);
    chmodSync(open(folder), 0o777);
    folderOf();
    expect(existsSync(file)).toBe(false);
  });

  test('is where the environment says, if it can be made there', () => {
    const own = join(`b-node-${process.versions.node}-${process.arch}`, String(crc32('list') % 32));
    const cache = join(home, 'cache');
    expect(compiledFolder('b', 'list', { SLICES_CONN_CACHE_DIR: cache })).toBe(join(cache, 'compiled', own));
    const given = join(home, 'given');
    expect(compiledFolder('b', 'list', { NODE_COMPILE_CACHE: given })).toBe(join(given, 'slices-conn', own));
    expect(
      compiledFolder('b', 'list', { SLICES_CONN_CACHE_DIR: cache, NODE_DISABLE_COMPILE_CACHE: '1' }),
    ).toBeUndefined();
    writeFileSync(join(home, 'file'), '');
    expect(compiledFolder('b', 'list', { SLICES_CONN_CACHE_DIR: join(home, 'file') })).toBeUndefined();
  });
});
