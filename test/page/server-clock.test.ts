import { expect, test } from 'vitest';
import { createServerClock } from '../../src/page/server-clock.ts';

const TOLD = 'Mon, 23 Nov 2026 09:00:00 GMT';
const SERVER = Date.parse(TOLD);

test.each([
  ['an hour ahead', 3_600_000],
  ['a day behind', -86_400_000],
])('a clock that is %s is put right by an answer, to its whole second and the time it took', (_, wrong) => {
  let browser = SERVER + wrong;
  const clock = createServerClock(() => browser);
  expect([clock.ahead, clock.now()]).toEqual([0, browser]);
  const hear = clock.ask();
  browser += 400;
  hear(TOLD);
  expect(Math.abs(clock.now() - SERVER)).toBeLessThanOrEqual(1400);
  expect(Math.abs(clock.ahead - wrong)).toBeLessThanOrEqual(1400);
});

test('a clock that may be right is left alone, also by an answer that took long or says no time', () => {
  let browser = SERVER - 500;
  const clock = createServerClock(() => browser);
  const late = clock.ask();
  browser = SERVER + 900;
  clock.ask()(TOLD);
  browser = SERVER + 20_000;
  late(TOLD);
  for (const none of [null, 'soon']) clock.ask()(none);
  expect([clock.ahead, clock.now()]).toEqual([0, browser]);
});
