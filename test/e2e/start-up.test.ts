import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COMPILED } from '../fixtures/compiled.ts';

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
