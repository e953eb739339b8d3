import { describe, expect, test } from 'vitest';
import { builtInTopology, createNetwork, TopologyError } from '../../src/allocator/network.ts';
import { type Link, SITES, type TagRange } from '../../src/contract/links.ts';
import { smallLink } from './small-link.ts';

describe('the built-in topology', () => {
  const network = createNetwork(builtInTopology());

  test('covers the sites of the specification, each with a link', () => {
    expect(network.sites.toSorted()).toEqual(SITES.toSorted());
    expect(network.sites.filter((site) => network.neighbours(site).length === 0)).toEqual([]);
  });

  test('be-gent1 – pl-poznan1 has 100 Gbps and at least 1,000 tags of each kind at each end', () => {
    const link = network.between('be-gent1', 'pl-poznan1');
    expect(link?.bandwidth).toBe(100_000);
    const ranges = [link?.site1_s_tags, link?.site1_c_tags, link?.site2_s_tags, link?.site2_c_tags];
    for (const range of ranges) expect(size(range)).toBeGreaterThanOrEqual(1000);
  });

  test('has a place for each site, and those that lie close together are told apart', () => {
    const places = network.sites.map((site) => network.placeOf(site)?.join());
    expect(new Set(places).size).toBe(SITES.length);
    expect(places).not.toContain(undefined);
    expect(network.placeOf('be-gent1')).toEqual([3.72, 51.05]);
  });
});

describe('Network', () => {
  const link = smallLink({
    site1: 'b',
    site2: 'a',
    site1_s_tags: [1, 2],
    site1_c_tags: [3, 4],
    site2_s_tags: [5, 6],
    site2_c_tags: [7, 8],
  });
  const other = smallLink({ site1: 'b', site2: 'c', site1_c_tags: [5, 9] });
  const network = createNetwork({ sites: ['c', 'b', 'a', 'd'], links: [other, link] });

  test('sites stand in alphabetical order, and each tag range follows its site', () => {
    expect(network.between('b', 'a')).toEqual({
      site1: 'a',
      site2: 'b',
      bandwidth: 1000,
      site1_s_tags: [5, 6],
      site1_c_tags: [7, 8],
      site2_s_tags: [1, 2],
      site2_c_tags: [3, 4],
    });
    expect(network.links.map(({ site1, site2 }) => `${site1}${site2}`)).toEqual(['bc', 'ab']);
  });

  test('neighbours are in alphabetical order, wherever a link names them', () => {
    expect(['a', 'b', 'c', 'd', 'e'].map((site) => network.neighbours(site))).toEqual([
      ['b'],
      ['a', 'c'],
      ['b'],
      [],
      [],
    ]);
  });
});

describe('a wrong topology is refused with each violation', () => {
  const toC = smallLink({ site1: 'a', site2: 'c', site1_c_tags: [4, 6] });
  const others = { site1_c_tags: [7, 8], site2_c_tags: [7, 8] } satisfies Partial<Link>;
  test.each<[rule: string, topology: unknown, ...named: RegExp[]]>([
    ['it is an object', 'sites', /object/i],
    ['it has sites and links', {}, /sites/, /links/],
    ['it has at least one site', { sites: [], links: [] }, /sites/],
    ['a site has a name of the right form', { sites: ['A b'], links: [] }, /sites\.0/],
    ['a site is listed once', { sites: ['a', 'b', 'a'], links: [] }, /a is listed twice/],
    ['a link is between known sites', on({ site2: 'x' }, { site1: 'y' }), /names x,/, /names y,/],
    ['a link does not connect a site with itself', on({ site2: 'a' }), /a – a .*itself/],
    ['a pair of sites has one link', on({}, others), /two links between a and b/],
    ['whichever way round', on({}, { site1: 'b', site2: 'a', ...others }), /two links between b and a/],
    ['a capacity is at least 1 Mbps', on({ bandwidth: 0 }), /Link a – b, bandwidth/],
    ['a capacity is whole', on({ bandwidth: 1.5 }), /Link a – b, bandwidth/],
    ['a tag is at least 1', on({ site1_s_tags: [0, 3] }), /Link a – b, site1_s_tags/],
    ['a tag is at most 4094', on({ site2_s_tags: [1, 4095] }), /Link a – b, site2_s_tags/],
    ['a tag is whole', on({ site2_c_tags: [1.5, 4] }), /Link a – b, site2_c_tags/],
    ['a range has a tag', on({ site1_c_tags: [4, 3] }), /Link a – b, site1_c_tags.*ends before it starts/],
    [
      'C-tag ranges of the links at a site are disjoint',
      abc(smallLink(), { ...toC, site1_c_tags: [3, 6] }),
      /At a the C-tags of a – b \(1–3\) and a – c \(3–6\) overlap/,
    ],
    [
      'C-tag ranges are disjoint where a range lies within another, and at second ends',
      abc(smallLink({ site2_c_tags: [1, 100] }), { ...toC, site1: 'b', site1_c_tags: [50, 51] }),
      /At b the C-tags of a – b \(1–100\) and b – c \(50–51\) overlap/,
    ],
    [
      'a place is that of a known site',
      { sites: ['a'], links: [], places: { a: [3.72, 51.05], b: [0, 0], 'A b': [0, 0] } },
      ...[/Places names b, which is not a site/, /Places names A b, which is not a site/],
    ],
    [
      'a place is [longitude, latitude] within the bounds of both',
      { ...abc(), places: { a: [180.1, 0], b: [0, -90.5], c: [1] } },
      ...[/places\.a\.0: .*180/, /places\.b\.1: .*-90/, /places\.c/],
    ],
    [
      'all that is wrong is said at once, of form and of content',
      {
        sites: ['a', 'a', 'b', 'c'],
        links: [smallLink({ bandwidth: -1 }), { ...toC, site2: 'x' }, { ...toC, site1: 'c' }],
      },
      ...[/Link a – b, bandwidth/, /a is listed twice/, /names x,/, /connects a site with itself/],
    ],
  ])('%s', (_, topology, ...named) => {
    const { violations, message } = refusal(topology);
    for (const [index, violation] of violations.entries()) {
      expect(message).toContain(violation);
      if (violations.length === named.length) expect(violation).toMatch(named[index] ?? /^$/);
    }
    for (const each of named) expect(violations.some((violation) => each.test(violation))).toBe(true);
  });

  test('a topology may have the places of some sites', () => {
    const { placeOf } = createNetwork({ sites: ['a', 'b'], links: [], places: { a: [-180, 90] } });
    expect([placeOf('a'), placeOf('b'), placeOf('toString')]).toEqual([[-180, 90], undefined, undefined]);
  });

  test.each<[rule: string, ...links: Link[]]>([
    ['no links'],
    ['C-tag ranges that lie next to each other', smallLink(), toC],
    [
      'S-tag ranges that overlap, since they are told apart by link',
      smallLink(),
      { ...toC, site1_s_tags: [1, 3] },
    ],
    ['C-tag ranges that overlap at different sites', smallLink({ site2_c_tags: [4, 6] }), toC],
    ['a range of one tag', smallLink({ site1_c_tags: [4094, 4094] })],
    ['all tags', smallLink({ site1_c_tags: [1, 4094] })],
  ])('a topology may have %s', (_, ...links) => {
    expect(createNetwork(abc(...links)).links).toEqual(links);
  });
});

function abc(...links: Link[]) {
  return { sites: ['a', 'b', 'c'], links };
}

function on(...shapes: Partial<Link>[]): unknown {
  return { sites: ['a', 'b'], links: shapes.map(smallLink) };
}

function refusal(topology: unknown): TopologyError {
  try {
    createNetwork(topology);
  } catch (error) {
    if (error instanceof TopologyError) return error;
    throw error;
  }
  throw new Error('the topology was taken');
}

function size(range: TagRange | undefined): number {
  return range ? range[1] - range[0] + 1 : 0;
}
