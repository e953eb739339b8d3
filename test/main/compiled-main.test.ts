import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { CompileCache, compileCache } from '../../src/main/compile-cache.ts';
import { Program } from '../../src/main/compiled-main.ts';

const root = mkdtempSync(join(tmpdir(), 'slices-conn-compiled-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let home = '';
let drawn = 0;
beforeEach(() => {
  drawn += 1;
  home = join(root, String(drawn));
});

const cacheOf = (build = 'build'): CompileCache => new CompileCache(join(home, 'compiled'), build);
const sizeOf = (name: string): number => statSync(join(cacheOf().folder, name)).size;

/** A program of two files, each time in another folder: V8 compiles what this process has loaded already in no other. */
function newProgram(cache: CompileCache | undefined): Program {
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
     exports.second = (n) => { const { sep } = require('node:path'); return sep.repeat(n) + 'and more'.slice(n); };
     exports.where = __filename;`,
  );
  write('other.cjs', `exports.half = (n) => n / 2;`);
  return new Program(folder, cache);
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
    expect([main.first(4), main.second(1)]).toEqual([5, '/nd more']);
    expect(main.where).toMatch(/installed-\d+\/main\.cjs$/);
    program.keep('nothing without a cache');
  });

  test('keeps what was called, and learns each purpose once', () => {
    const one = newProgram(cacheOf());
    mainOf(one).first(4);
    one.keep('one');
    const learned = sizeOf('main.cjs');

    const again = newProgram(cacheOf());
    mainOf(again).first(4);
    mainOf(again).second(1);
    again.keep('one');
    expect(sizeOf('main.cjs')).toBe(learned);

    const two = newProgram(cacheOf());
    mainOf(two).second(1);
    two.keep('two');
    expect(sizeOf('main.cjs')).toBeGreaterThan(learned);
    expect(cacheOf().knows('one 2')).toBe(true);
    expect(cacheOf().knows('two 1')).toBe(true);
  });

  test('is written again only where something is new in it', () => {
    const one = newProgram(cacheOf());
    mainOf(one).first(4);
    one.keep('one');
    const { ino } = statSync(join(cacheOf().folder, 'main.cjs'));
    const same = newProgram(cacheOf());
    mainOf(same).first(4);
    same.keep('same');
    expect(cacheOf().knows('same 2')).toBe(true);
    expect(statSync(join(cacheOf().folder, 'main.cjs')).ino).toBe(ino);
  });

  test.each([
    ['what is no compiled code', Buffer.from('planted')],
    ['half of it', undefined],
  ])('replaces %s', (_, content) => {
    const one = newProgram(cacheOf());
    mainOf(one).first(4);
    one.keep('one');
    const file = join(cacheOf().folder, 'main.cjs');
    const whole = readFileSync(file);
    writeFileSync(file, content ?? whole.subarray(0, whole.length / 2));
    const program = newProgram(cacheOf());
    expect(mainOf(program).first(4)).toBe(5);
    program.keep('one');
    expect(readFileSync(file).length).toBeGreaterThan(whole.length / 2);
  });

  test('runs where nothing can be kept', () => {
    const cache = cacheOf();
    rmSync(cache.folder, { recursive: true });
    writeFileSync(cache.folder, 'a file in the place of the folder');
    const program = newProgram(cache);
    expect(mainOf(program).first(4)).toBe(5);
    program.keep('one');
    expect(cache.knows('one 2')).toBe(false);
    expect(readdirSync(join(home, 'compiled'))).toEqual(['build']);
  });
});

describe('the folder of compiled code', () => {
  test('keeps the four builds that were made last', () => {
    for (let build = 1; build <= 6; build += 1) {
      const cache = cacheOf(`build-${build}`);
      expect(cache.write('main.cjs', Buffer.from('compiled'))).toBe(true);
      utimesSync(cache.folder, build, build);
    }
    expect(readdirSync(join(home, 'compiled')).toSorted()).toEqual(
      [3, 4, 5, 6].map((build) => `build-${build}`),
    );
  });

  test.each([
    ['a file', (folder: string) => join(folder, 'main.cjs')],
    ['its folder', (folder: string) => folder],
    ['the folder above it', (folder: string) => join(folder, '..')],
  ])('row 51: nothing is read where others could write to %s', (_, open) => {
    const { folder } = cacheOf();
    writeFileSync(join(folder, 'main.cjs'), 'planted', { mode: 0o600 });
    expect(cacheOf().read('main.cjs')).toBeDefined();
    chmodSync(open(folder), 0o777);
    expect(cacheOf().read('main.cjs')).toBeUndefined();
  });

  test('remembers so many lessons', () => {
    const cache = cacheOf();
    for (let lesson = 0; lesson < 3; lesson += 1) expect(cache.learned(`lesson ${lesson}`)).toBe(true);
    writeFileSync(
      join(cache.folder, 'learned.json'),
      JSON.stringify(Array.from({ length: 200 }, (_, lesson) => `lesson ${lesson}`)),
    );
    cache.learned('the last');
    expect(['lesson 0', 'lesson 1', 'the last'].map((lesson) => cache.knows(lesson))).toEqual([
      false,
      true,
      true,
    ]);
  });

  test('is where the environment says, if it can be made there', () => {
    const folderFor = (env: Record<string, string>): string | undefined => compileCache('b', env)?.folder;
    const own = `b-node-${process.versions.node}-${process.arch}`;
    const cache = join(home, 'cache');
    expect(folderFor({ SLICES_CONN_CACHE_DIR: cache })).toBe(join(cache, 'compiled', own));
    const given = join(home, 'given');
    expect(folderFor({ NODE_COMPILE_CACHE: given })).toBe(join(given, 'slices-conn', own));
    expect(folderFor({ SLICES_CONN_CACHE_DIR: cache, NODE_DISABLE_COMPILE_CACHE: '1' })).toBeUndefined();
    writeFileSync(join(home, 'file'), '');
    expect(folderFor({ SLICES_CONN_CACHE_DIR: join(home, 'file') })).toBeUndefined();
  });
});
