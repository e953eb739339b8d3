import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COMPILED } from '../fixtures/compiled.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';

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

test('what one process has compiled serves the next, and is replaced where it can’t', () => {
  const folder = mkdtempSync(join(tmpdir(), 'slices-conn-start-up-'));
  atEndOfFile(() => rmSync(folder, { recursive: true }));
  const kept = (): string[] => globSync(join(folder, 'slices-conn', '*', '*.cjs')).toSorted();
  const help = (): unknown => {
    const { status, stderr } = spawnSync(process.execPath, [program, '--help'], {
      encoding: 'utf8',
      env: { NODE_COMPILE_CACHE: folder },
    });
    expect([status, stderr]).toEqual([0, '']);
    return kept().map((file) => statSync(file).ino);
  };
  const first = help();
  expect(kept().length).toBeGreaterThan(1);
  expect(help()).toEqual(first);
  for (const file of kept()) writeFileSync(file, 'no compiled code');
  help();
  expect(kept().filter((file) => statSync(file).size < 100)).toEqual([]);
});
