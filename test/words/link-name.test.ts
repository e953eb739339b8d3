import { expect, test } from 'vitest';
import type { Reservation } from '../../src/contract/reservation.ts';
import { linkEnds, linkName } from '../../src/words/links.ts';

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
