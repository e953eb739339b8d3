import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, globSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
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

test('damaged compiled code, and code of another source, is made anew (THREATS.md 107)', () => {
  const { help, kept, source } = installed();
  const whole = help();
  const size = kept().map((file) => statSync(file).size);
  const some = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const damage = fc.oneof(
    fc.record({ kind: fc.constant('flip' as const), bits: fc.array(some, { minLength: 1, maxLength: 20 }) }),
    fc.record({ kind: fc.constant('cut' as const), at: some }),
    fc.record({ kind: fc.constant('swap' as const) }),
    fc.record({ kind: fc.constant('edit' as const), letter: fc.constantFrom(...'BCDHLT') }),
  );
  fc.assert(
    fc.property(damage, fc.nat(), (done, place) => {
      const files = kept();
      const file = files[place % files.length] ?? '';
      const code = readFileSync(file);
      if (done.kind === 'flip') {
        for (const bit of done.bits) {
          const at = Math.floor(bit * code.length);
          code.writeUInt8(code.readUInt8(at) ^ (1 << (place % 8)), at);
        }
        writeFileSync(file, code);
      } else if (done.kind === 'cut') truncateSync(file, Math.floor(done.at * code.length));
      else if (done.kind === 'swap') {
        const other = files[(place + 1) % files.length] ?? '';
        copyFileSync(other, file);
        writeFileSync(other, code);
      } else {
        const text = readFileSync(source, 'latin1');
        writeFileSync(source, text.replace(/.ooks network links/, `${done.letter}ooks network links`));
      }
      const [, letter = ''] = /(.)ooks network links/.exec(readFileSync(source, 'latin1')) ?? [];
      expect(help()).toBe(whole.replace('Books', `${letter}ooks`));
      for (const [at, name] of kept().entries())
        expect(statSync(name).size).toBeGreaterThan(0.9 * (size[at] ?? 0));
    }),
    { numRuns: 40 },
  );
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
