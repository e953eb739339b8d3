import { expect, test } from 'vitest';
import { mostFlow } from './most-flow.ts';

test.each([
  ['no more than is asked for', [{ demand: 2, routes: [[0]] }], [5], 2],
  ['no more than a link carries', [{ demand: 9, routes: [[0, 1]] }], [5, 3], 3],
  ['a flow is split', [{ demand: 9, routes: [[0], [1, 2]] }], [2, 4, 3], 5],
  [
    'one goes round, so that two that have one route only fit',
    [
      { demand: 3, routes: [[0], [1, 2]] },
      { demand: 2, routes: [[0]] },
      { demand: 1, routes: [[1]] },
    ],
    [3, 3, 2],
    6,
  ],
  [
    'of two that exclude a third, the two',
    [
      { demand: 1, routes: [[0]] },
      { demand: 1, routes: [[1]] },
      { demand: 1, routes: [[0, 1]] },
    ],
    [1, 1],
    2,
  ],
])('%s', (_, flows, capacities, due) => {
  expect(mostFlow(flows, capacities)).toBeCloseTo(due, 9);
});
