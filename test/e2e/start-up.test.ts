import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { COMPILED } from '../fixtures/compiled.ts';
import { LAUNCHER } from '../fixtures/program.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** Node's own modules that a process has loaded at its end. */
function loadedBy(...args: string[]): Set<string> {
  const print = `process.on('exit', () => process._rawDebug(process.moduleLoadList.join(' ')))`;
  const first = ['--import', `data:text/javascript,${encodeURIComponent(print)}`];
  const env = { ...COMPILED, SLICES_CONN_USER_TOKEN: 'a', SLICES_CONN_PORTAL_URL: 'http://127.0.0.1:1' };
  const { stderr } = spawnSync(process.execPath, [...first, ...args], { encoding: 'utf8', env });
  return new Set([...stderr.matchAll(/NativeModule (\S+)/g)].map(([, name = '']) => name));
}

// Each of them takes a tenth to twice of the time that Node itself takes to start (test/bench/README.md).
test('a request loads neither the platform’s fetch, nor TLS, nor HTTP/2, nor a line editor', () => {
  const loaded = loadedBy(LAUNCHER, 'project', 'list');
  expect(loaded).toContain('net');
  for (const name of [
    ...['internal/deps/undici/undici', '_http_client', 'http2', 'tls', 'child_process'],
    ...['internal/readline/interface', 'internal/fs/promises', 'worker_threads'],
  ]) {
    expect(loaded).not.toContain(name);
  }
});

test('compiled code of one process serves the next', () => {
  const { help, kept } = installed();
  const inodes = (): number[] => kept().map((file) => statSync(file).ino);
  help();
  const first = inodes();
  expect(first.length).toBeGreaterThan(0);
  help();
  expect(inodes()).toEqual(first);
});

test('damaged compiled code, and code of another source, is made anew (THREATS.md 107)', () => {
  const { help, kept, source } = installed();
  const whole = help();
  for (const file of kept()) {
    const code = readFileSync(file);
    code.writeUInt8(code.readUInt8(code.length >> 1) ^ 1, code.length >> 1);
    writeFileSync(file, code);
  }
  expect(help()).toBe(whole);
  const edited = readFileSync(source, 'latin1').replace('Books network links', 'Hooks network links');
  writeFileSync(source, edited, 'latin1');
  expect(help()).toBe(whole.replace('Books', 'Hooks'));
});

test('compiled code is in this user’s cache folder, which others can’t write to (THREATS.md 51)', () => {
  const { help, kept, cache } = installed();
  const whole = help();
  const [first = ''] = kept();
  const folder = dirname(first);
  expect(statSync(dirname(folder)).mode & 0o077).toBe(0);
  // What could have been planted is thrown away.
  for (const open of [folder, dirname(folder)]) {
    writeFileSync(join(open, 'planted'), 'planted');
    chmodSync(open, 0o777);
    expect(help()).toBe(whole);
    expect(globSync(join(cache, '**', 'planted'))).toEqual([]);
  }
  writeFileSync(join(cache, 'slices-conn', 'compiled', 'file'), 'no folder');
  expect(help()).toBe(whole);
});

test.each([
  ['NODE_DISABLE_COMPILE_CACHE', '1'],
  ['XDG_CACHE_HOME', '/dev/null/none'],
])('with %s=%s the program runs, and keeps no code', (name, value) => {
  const { help, kept } = installed({ [name]: value });
  expect(help()).toContain('Books network links');
  expect(kept()).toEqual([]);
});

/** The program in a folder of its own, with an own cache folder. */
function installed(variables: Readonly<Record<string, string>> = {}) {
  const folder = temporaryFolder();
  for (const name of ['bin', 'dist/cli']) {
    cpSync(join(import.meta.dirname, '../..', name), join(folder, name), { recursive: true });
  }
  const cache = join(folder, 'cache');
  return {
    cache,
    help(): string {
      const args = [join(folder, 'bin/slices-conn.js'), '--help'];
      const env = { XDG_CACHE_HOME: cache, ...variables };
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
      expect([status, stderr]).toEqual([0, '']);
      return stdout;
    },
    kept: () => globSync(join(cache, 'slices-conn', 'compiled', '*', '*')).toSorted(),
    source: globSync(join(folder, 'dist/cli/start-*.cjs'))[0] ?? '',
  };
}
