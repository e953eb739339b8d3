import { expect, test } from 'vitest';
import type { AskedRoute } from '../../src/contract/reservation.ts';
import { contradictionText } from '../../src/words/links.ts';

test.each<[AskedRoute, string | undefined]>([
  [{}, undefined],
  [{ via: ['c', 'd'], avoid: ['e'] }, undefined],
  [{ avoid: ['c', 'c'], direct: true }, undefined],
  [{ via: ['c'], direct: true }, '--direct and --via contradict each other: a direct link passes no site.'],
  [{ via: ['c', 'b'] }, '--via names b, which is one of the two ends.'],
  [{ avoid: ['a'] }, '--avoid names a, which is one of the two ends.'],
  [{ via: ['c', 'd'], avoid: ['d'] }, '--via and --avoid both name d.'],
  [{ via: ['c', 'd', 'c'] }, '--via names c twice, and a route passes a site once.'],
])('a route from a to b that is asked for as %j', (asked, says) => {
  const request = { site1: 'a', site2: 'b', ...asked };
  expect(contradictionText(request, (member) => `--${member}`)).toBe(says);
});
