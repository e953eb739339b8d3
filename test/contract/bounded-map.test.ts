import { expect, test } from 'vitest';
import { setBounded } from '../../src/contract/bounded.ts';

test('the entry that was set the longest ago goes first, also where another one was added before it', () => {
  const map = new Map(Object.entries({ a: 1, b: 2 }));
  setBounded(map, 'a', 3, 2);
  setBounded(map, 'c', 4, 2);
  expect([...map]).toEqual(Object.entries({ a: 3, c: 4 }));
});
