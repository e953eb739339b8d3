import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import { givenToken } from '../../../src/session/login/token-source.ts';

const folder = mkdtempSync(join(tmpdir(), 'slices-conn-tokens-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe.each(['SLICES_CONN_USER_TOKEN', 'SLICES_CONN_EXPERIMENT_TOKEN'] as const)('%s', (variable) => {
  const twin = `${variable}_FILE`;
  const given = (env: Readonly<Record<string, string>>) => givenToken(env, variable);

  test('gives its text, without the white space around it', async () => {
    const source = given({ [variable]: ' canary\n' });
    expect(source).toMatchObject({ origin: 'environment', where: variable });
    expect((await source?.get())?.reveal()).toBe('canary');
  });

  test.each(['canary', 'canary\n', '\n canary\r\n'])('its twin names a file that holds %j', async (text) => {
    const path = file('good', text);
    const source = given({ [twin]: path });
    expect(source).toMatchObject({ origin: 'file', where: path });
    expect((await source?.get())?.reveal()).toBe('canary');
  });

  test('goes before its twin', () => {
    expect(given({ [variable]: 'canary', [twin]: '/nowhere' })).toMatchObject({ origin: 'environment' });
  });

  test.each(['', ' ', '\n'])('that holds %j counts as unset', (empty) => {
    expect(given({ [variable]: empty })).toBeUndefined();
    expect(given({ [variable]: empty, [twin]: '/nowhere' })).toMatchObject({ origin: 'file' });
  });

  test('is unset, and so is its twin', () => {
    expect(given({})).toBeUndefined();
    expect(given({ [twin]: '' })).toBeUndefined();
  });

  test.each<[string, () => string, RegExp]>([
    ['missing', () => join(folder, 'missing'), /can't be read/],
    ['a folder', () => folder, /can't be read/],
    ['empty', () => file('empty', ''), /is empty/],
    ['white space', () => file('blank', ' \n'), /is empty/],
  ])('its twin names a file that is %s: a failure that names both', async (_, make, says) => {
    const path = make();
    const error = await given({ [twin]: path })
      ?.get()
      .catch((found: unknown) => found);
    expect(error).toBeInstanceOf(Failure);
    expect(error).toMatchObject({ code: 'file_unusable', message: expect.stringMatching(says) });
    expect(String(error)).toContain(path);
    expect(String(error)).toContain(twin);
  });

  test('is not another’s', () => {
    const other =
      variable === 'SLICES_CONN_USER_TOKEN' ? 'SLICES_CONN_EXPERIMENT_TOKEN' : 'SLICES_CONN_USER_TOKEN';
    expect(given({ [other]: 'canary' })).toBeUndefined();
  });
});
