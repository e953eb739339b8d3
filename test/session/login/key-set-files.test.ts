import {
  chmodSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { keySetFiles } from '../../../src/session/login/trust.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { keySetOf, makeKey, NOW } from '../../fixtures/tokens.ts';

const URL_OF_SET = 'https://conn.example.org/.well-known/jwks.json';
const document = keySetOf(makeKey());

let home: string;
let cache: string;
beforeEach(() => {
  home = temporaryFolder();
  cache = join(home, 'cache');
});

const store = (url = URL_OF_SET) => keySetFiles(cache)(url);
const folder = () => join(cache, 'key-sets');
/** The only stored file. */
function only(): string {
  const [name = '', ...others] = readdirSync(folder());
  expect(others).toEqual([]);
  return join(folder(), name);
}
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

test('the next process reads a stored key set with its age, by its own address only', () => {
  expect(store().read()).toBeUndefined();
  store().write({ document, at: NOW });
  expect(store().read()).toEqual({ document, at: NOW });
  expect(store(`${URL_OF_SET}2`).read()).toBeUndefined();
  expect([mode(cache), mode(folder()), mode(only())]).toEqual(['700', '700', '600']);
});

test('how far the issuer’s clock was ahead counts until this machine’s clock is set', () => {
  let bootedAt = NOW;
  const compared = () => keySetFiles(cache, () => bootedAt)(URL_OF_SET);
  compared().write({ document, at: NOW, ahead: -45_000 });
  for (const [moved, ahead] of [
    [0, -45_000],
    [5000, -45_000],
    [-5000, -45_000],
    [5001, undefined],
    [-3_600_000, undefined],
  ] as const) {
    bootedAt = NOW + moved;
    expect(compared().read()?.ahead).toBe(ahead);
  }
  expect(store().read()).toEqual({ document, at: NOW });
  // Keys without it are used as before.
  store().write({ document, at: NOW });
  expect(compared().read()).toEqual({ document, at: NOW });
});

test('folders that others can enter are closed', () => {
  store().write({ document, at: NOW });
  for (const path of [cache, folder()]) chmodSync(path, 0o777);
  store().read();
  expect([mode(cache), mode(folder())]).toEqual(['700', '700']);
});

describe('a file that others could have written is ignored without a failure', () => {
  const kept = () => JSON.parse(readFileSync(only(), 'utf8'));
  const rewrite = (changes: object) => writeFileSync(only(), JSON.stringify({ ...kept(), ...changes }));
  const linked = (path: string) => {
    renameSync(path, join(home, 'elsewhere'));
    symlinkSync(join(home, 'elsewhere'), path);
  };

  test.each<[string, () => void]>([
    ['garbage', () => writeFileSync(only(), 'garbage')],
    ['nothing', () => writeFileSync(only(), '')],
    ['cut', () => writeFileSync(only(), readFileSync(only(), 'utf8').slice(0, 60))],
    ['of a newer version', () => rewrite({ version: 2 })],
    ['of another address', () => rewrite({ url: 'https://evil.invalid/jwks.json' })],
    ['without an age', () => rewrite({ at: 'now' })],
    ['without keys', () => rewrite({ keys: {} })],
    ['writable by others', () => chmodSync(only(), 0o606)],
    ['a symbolic link', () => linked(only())],
    ['in a folder that is a symbolic link', () => linked(folder())],
    ['in a cache that is a symbolic link', () => linked(cache)],
  ])('%s', (_name, spoil) => {
    store().write({ document, at: NOW });
    spoil();
    expect(store().read()).toBeUndefined();
  });

  test('one that others can only read is closed to them', () => {
    store().write({ document, at: NOW });
    chmodSync(only(), 0o644);
    expect(store().read()).toEqual({ document, at: NOW });
    expect(mode(only())).toBe('600');
  });

  test.each([
    ['a key that is none', [{ kty: 'EC' }]],
    ['no object', ['key']],
    ['a private key', [makeKey().privateKey.export({ format: 'jwk' })]],
  ])('keys: %s', (_name, keys) => {
    store().write({ document, at: NOW });
    rewrite({ keys });
    // The file gives neither a key nor an error.
    expect(store().read()?.document.keys ?? []).not.toContainEqual(document.keys[0]);
  });

  test('a folder that can’t be written to is not a failure either', () => {
    writeFileSync(cache, 'a file');
    expect(() => store().write({ document, at: NOW })).not.toThrow();
    expect(store().read()).toBeUndefined();
    expect(readFileSync(cache, 'utf8')).toBe('a file');
  });
});
