import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { refusedValue, systemReason } from '../../src/contract/foreign-errors.ts';

function reading(path: string): unknown {
  try {
    return readFileSync(path);
  } catch (error) {
    return error;
  }
}
const full = Object.assign(new Error('database or disk is full'), { errcode: 13 });
const unsupported = { code: 'ERR_OSSL_UNSUPPORTED' };

test.each([
  [reading('/nowhere/x'), 'It does not exist.'],
  [reading('/'), 'It is a folder.'],
  [reading(`${import.meta.filename}/x`), 'A part of its path is a file, not a folder.'],
  [Object.assign(new Error('error:1E08010C:DECODER'), unsupported), 'It is not in PEM, or it is damaged.'],
  [full, 'The disk is full.'],
  [new Error('It failed.', { cause: full }), 'The disk is full.'],
  [new Error('It is not a file.'), 'It is not a file.'],
  ['gone', 'gone'],
])('why something failed, for people: %s', (error, reason) => {
  expect(systemReason(error)).toBe(reason);
});

test.each([
  ['--state foo', 'Allowed choices are a, b.', '--state foo: it must be one of a, b.'],
  ['id', 'Invalid key: Expected "id" but received undefined', 'id: it is missing'],
  ['id', 'Invalid type: Expected string but received 5', 'id: it must be string, and is 5'],
  ['id', 'It must be short.', 'id: it must be short.'],
])('a value that a library refuses: %s', (place, text, said) => {
  expect(refusedValue(place, text)).toBe(said);
});
