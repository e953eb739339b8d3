import { expect, test } from 'vitest';
import { finish, type Steps, TooMuchError } from '../../src/allocator/steps.ts';

/** Goes on until it was told so often that it takes too much, and then to its end in some more steps. */
function* endless(times: number): Steps<string> {
  for (let told = 0; told < times; ) {
    try {
      yield;
    } catch (error) {
      expect(error).toBeInstanceOf(TooMuchError);
      told += 1;
    }
  }
  for (let step = 0; step < 10; step += 1) yield;
  return 'what it has';
}

test.each([1, 2])(
  'work that takes too long is told so, %i times, and ends with what it has',
  async (times) => {
    const began = performance.now();
    expect(await finish(endless(times), { most: 40 })).toBe('what it has');
    expect(performance.now() - began).toBeGreaterThan(times === 1 ? 40 : 50);
  },
);

test('work is told of the failure of what it waits for', async () => {
  const lost = new Error('lost');
  function* waits(): Steps<unknown> {
    try {
      yield Promise.reject(lost);
    } catch (error) {
      return error;
    }
    return undefined;
  }
  expect(await finish(waits(), { most: 1000 })).toBe(lost);
});
