import { expect, test } from 'vitest';
import type { AskedRoute, Reservation } from '../../src/contract/reservation.ts';
import { contradictionText, linkEnds, linkName } from '../../src/words/links.ts';

test('a link has one name, and its ends one order, whichever site was typed first', () => {
  const tags = { site1_s_tag: 1, site1_c_tag: 2, site2_s_tag: 3, site2_c_tag: 4 };
  const [kth, gent] = ['se-kth', 'be-gent1'];
  expect(linkName({ site1: kth, site2: gent })).toBe('be-gent1 – se-kth');
  expect(linkName({ site1: gent, site2: kth })).toBe('be-gent1 – se-kth');
  expect(linkEnds({ site1: kth, site2: gent, ...tags } as Reservation)).toEqual([
    { site: gent, sTag: 3, cTag: 4 },
    { site: kth, sTag: 1, cTag: 2 },
  ]);
});

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
