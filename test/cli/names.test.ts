import { describe, expect, test } from 'vitest';
import { nearestSite, siteName } from '../../src/cli/names.ts';
import { SITES } from '../../src/contract/sites.ts';
import { failureOf } from '../fixtures/failures.ts';

describe('the nearest site', () => {
  test.each([
    ['pl-poznan', 'pl-poznan1'],
    ['pl-poznan2', 'pl-poznan1'],
    ['poznan', 'pl-poznan1'],
    ['POZNAN', 'pl-poznan1'],
    ['be-gent', 'be-gent1'],
    ['be-gnet1', 'be-gent1'],
    ['BE-GENT1', 'be-gent1'],
    ['be_gent1', 'be-gent1'],
    ['gent', 'be-gent1'],
    ['fr-lile', 'fr-lille'],
    ['frlille', 'fr-lille'],
    ['kth', 'se-kth'],
    ['sztaki', 'hu-sztaki'],
    ['es-upvehy', 'es-upvehu'],
  ])('to %s is %s', (typed, site) => {
    expect(nearestSite(typed)).toBe(site);
  });

  test.each(['', 'x', 'kt', 'fr', 'fr-', 'london', 'de-berlin', 'a-site-with-a-long-name'])(
    'to %j does not exist: it is too different from every site',
    (typed) => {
      expect(nearestSite(typed)).toBeUndefined();
    },
  );
});

describe('a typed site', () => {
  test.each([...SITES, 'de-berlin', 'a', '1', 'x'.repeat(63)])('%s has the form of a site', (name) => {
    expect(siteName(name)).toBe(name);
  });

  test.each([
    '',
    ' ',
    'BE-GENT1',
    'be_gent1',
    'be gent1',
    ' be-gent1',
    'be-gent1\n',
    '-be-gent1',
    'be-gent1-',
    'be.gent1',
    'gënt',
    'x'.repeat(64),
    '../etc',
  ])('%j is refused as usage', async (name) => {
    const failure = await failureOf(() => siteName(name));
    expect(failure.code).toBe('usage');
    expect(failure.message).toBe(`${JSON.stringify(name)} is not a site name.`);
    expect(failure.facts.fix).toBe('slices-conn sites');
  });

  test('the refusal names the nearest site, else all sites', async () => {
    expect((await failureOf(() => siteName('BE-GENT1'))).facts.why).toBe('Did you mean be-gent1?');
    const { why } = (await failureOf(() => siteName('London!'))).facts;
    for (const site of SITES) expect(why).toContain(site);
  });
});
