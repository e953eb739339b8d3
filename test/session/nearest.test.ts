import { describe, expect, test } from 'vitest';
import { nearest } from '../../src/session/nearest.ts';

const KNOWN = ['local', 'offline', 'slices', 'baseUrl', 'authUrl'];

describe('the nearest known word', () => {
  test.each<[string, string]>([
    ['slcies', 'slices'],
    ['slice', 'slices'],
    ['ofline', 'offline'],
    ['LOCAL', 'local'],
    ['lcal', 'local'],
    ['baseurl', 'baseUrl'],
    ['base', 'baseUrl'],
  ])('to %s is %s', (word, near) => {
    expect(nearest(word, KNOWN)).toBe(near);
  });

  test.each(['', 'l', 'lo', 'lab', 'url', 'production', 'local', 'x'.repeat(1_000_000)])(
    'to case %# is none: it is known, ambiguous, or no slip of the keyboard',
    (word) => {
      expect(nearest(word, KNOWN)).toBeUndefined();
    },
  );

  test('where nothing is known there is none', () => {
    expect(nearest('local', [])).toBeUndefined();
  });
});
