import { expect, test } from 'vitest';
import { randomPool } from '../../src/server/random-pool.ts';

/** Bytes that count up through all draws, so that one given twice shows; and how often was drawn. */
function counting() {
  const draws: number[] = [];
  let next = 0;
  const draw = (bytes: number) => {
    draws.push(bytes);
    return Uint8Array.from({ length: bytes }, () => next++ % 251);
  };
  return { draws, draw };
}

test('gives each byte once, in order, and draws thousands at a time', () => {
  const { draws, draw } = counting();
  const random = randomPool(draw);
  let at = 0;
  for (let round = 0; round < 1000; round += 1) {
    const bytes = random(10);
    expect(bytes).toHaveLength(10);
    // Six bytes are left of each draw of 4096.
    if (at % 4096 > 4086) at += 4096 - (at % 4096);
    expect([...bytes]).toEqual(Array.from({ length: 10 }, (_, index) => (at + index) % 251));
    at += 10;
  }
  expect(draws).toEqual([4096, 4096, 4096]);
});

test('what was given out is not touched by later draws', () => {
  const { draw } = counting();
  const random = randomPool(draw);
  const first = random(10);
  const copy = [...first];
  for (let round = 0; round < 1000; round += 1) random(10);
  expect([...first]).toEqual(copy);
});

test('gives as much as a whole draw, and no more', () => {
  const random = randomPool(counting().draw);
  expect(random(4096)).toHaveLength(4096);
  expect(() => random(4097)).toThrow(RangeError);
});
