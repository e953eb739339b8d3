import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { refusedValue, systemReason } from '../../src/contract/foreign-errors.ts';

describe('why something failed, for people', () => {
  test.each([
    ['/nowhere/x', 'It does not exist.'],
    ['/', 'It is a folder.'],
    [`${import.meta.filename}/x`, 'A part of its path is a file, not a folder.'],
  ])('reading %s', (path, reason) => {
    let found: unknown;
    try {
      readFileSync(path);
    } catch (error) {
      found = error;
    }
    expect(systemReason(found)).toBe(reason);
  });

  test('an error of OpenSSL names none of its routines', () => {
    const error = Object.assign(new Error('error:1E08010C:DECODER routines::unsupported'), {
      code: 'ERR_OSSL_UNSUPPORTED',
    });
    expect(systemReason(error)).toBe('It is not in PEM, or it is damaged.');
  });

  test('an error of SQLite that is about the disk is named as one, behind an error of ours too', () => {
    const full = Object.assign(new Error('database or disk is full'), { errcode: 13 });
    const found = [full, new Error('It failed.', { cause: full })].map(systemReason);
    expect(found).toEqual(['The disk is full.', 'The disk is full.']);
  });

  test('any other has its own message', () => {
    expect(systemReason(new Error('It is not a file.'))).toBe('It is not a file.');
    expect(systemReason('gone')).toBe('gone');
  });
});

test.each([
  ['--state foo', 'Allowed choices are a, b.', '--state foo: it must be one of a, b.'],
  ['id', 'Invalid key: Expected "id" but received undefined', 'id: it is missing'],
  ['id', 'Invalid type: Expected string but received 5', 'id: it must be string, and is 5'],
  ['id', 'It must be short.', 'id: it must be short.'],
])('a value that a library refuses: %s', (place, text, said) => {
  expect(refusedValue(place, text)).toBe(said);
});
