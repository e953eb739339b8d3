import { spawnSync } from 'node:child_process';
import { cpSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COMPILED } from '../fixtures/compiled.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const program = join(import.meta.dirname, '../../bin/slices-conn.js');

/** Node's own modules that a process has loaded at its end. */
function loadedBy(...args: string[]): Set<string> {
  const print = `process.on('exit', () => process._rawDebug(process.moduleLoadList.join(' ')))`;
  const { stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(print)}`, ...args],
    {
      encoding: 'utf8',
      env: { ...COMPILED, SLICES_CONN_USER_TOKEN: 'a', SLICES_CONN_PORTAL_URL: 'http://127.0.0.1:1' },
    },
  );
  return new Set([...stderr.matchAll(/NativeModule (\S+)/g)].map(([, name = '']) => name));
}

// Each of them takes a tenth to twice of the time that Node itself takes to start (test/bench/README.md).
test('a request loads neither the platform’s fetch, nor TLS, nor HTTP/2, nor a line editor', () => {
  const loaded = loadedBy(program, 'project', 'list');
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
  expect(first.length).toBeGreaterThan(1);
  help();
  expect(inodes()).toEqual(first);
});

// Any damage: test/main/compiled-main.test.ts.
test('damaged compiled code, and code of another source, is made anew (THREATS.md 107)', () => {
  const { help, kept, source } = installed();
  const whole = help();
  const size = kept().map((file) => statSync(file).size);
  const expectAnew = (text: string): void => {
    expect(help()).toBe(text);
    for (const [at, name] of kept().entries())
      expect(statSync(name).size).toBeGreaterThan(0.9 * (size[at] ?? 0));
  };
  for (const file of kept()) {
    const code = readFileSync(file);
    code.writeUInt8(code.readUInt8(code.length >> 1) ^ 1, code.length >> 1);
    writeFileSync(file, code);
  }
  expectAnew(whole);
  const edited = readFileSync(source, 'latin1').replace('Books network links', 'Hooks network links');
  writeFileSync(source, edited, 'latin1');
  expectAnew(whole.replace('Books', 'Hooks'));
});

/** The program in a folder of its own, with an own folder of compiled code. */
function installed(): { help(): string; kept(): string[]; source: string } {
  const folder = temporaryFolder();
  for (const name of ['bin', 'dist/cli']) {
    cpSync(join(import.meta.dirname, '../..', name), join(folder, name), { recursive: true });
  }
  const compiled = join(folder, 'compiled');
  return {
    help: () => {
      const args = [join(folder, 'bin/slices-conn.js'), '--help'];
      const env = { NODE_COMPILE_CACHE: compiled };
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
      expect([status, stderr]).toEqual([0, '']);
      return stdout;
    },
    kept: () => globSync(join(compiled, 'slices-conn', '*', '*', '*.cjs')).toSorted(),
    source: globSync(join(folder, 'dist/cli/start-*.cjs'))[0] ?? '',
  };
}
