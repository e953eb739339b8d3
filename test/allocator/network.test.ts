import { describe, expect, test } from 'vitest';
import { builtInTopology, createNetwork, TopologyError } from '../../src/allocator/network.ts';
import { type Link, linkId, type TagRange } from '../../src/contract/links.ts';
import { SITES } from '../../src/contract/sites.ts';
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

  test('leaves some pairs of sites unconnected', () => {
    const pairs = SITES.flatMap((site1, index) => SITES.slice(index + 1).map((site2) => ({ site1, site2 })));
    const unconnected = pairs.filter(({ site1, site2 }) => !network.between(site1, site2));
    expect(unconnected.length).toBeGreaterThan(0);
    expect(unconnected.length).toBe(pairs.length - network.links.length);
  });

  test('has a place for each site, and those that lie close together are told apart', () => {
    const places = network.sites.map((site) => network.placeOf(site)?.join());
    expect(new Set(places).size).toBe(SITES.length);
    expect(places).not.toContain(undefined);
    expect(network.placeOf('be-gent1')).toEqual([3.72, 51.05]);
  });

  test('is a new object on every call, so that one caller can’t change it for others', () => {
    builtInTopology().links.pop();
    expect(builtInTopology().links).toHaveLength(network.links.length);
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

  test('a link is found by its id and by its sites in either order', () => {
    expect(network.between('a', 'b')).toEqual(network.between('b', 'a'));
    expect(network.byId(linkId('b', 'a'))).toEqual(network.between('a', 'b'));
    expect(linkId('b', 'a')).toBe(linkId('a', 'b'));
  });

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

  test.each([
    ['a', 'c'],
    ['a', 'd'],
    ['a', 'a'],
    ['a', 'unknown'],
    ['', ''],
  ])('there is no link between %j and %j', (site1, site2) => {
    expect(network.between(site1, site2)).toBeUndefined();
    expect(network.byId(linkId(site1, site2))).toBeUndefined();
  });
});

describe('a wrong topology is refused with each violation', () => {
  const toC = smallLink({ site1: 'a', site2: 'c', site1_c_tags: [4, 6] });
  test.each<{ rule: string; topology: unknown; named: RegExp[] }>([
    { rule: 'it is an object', topology: 'sites', named: [/object/i] },
    { rule: 'it has sites and links', topology: {}, named: [/sites/, /links/] },
    { rule: 'it has at least one site', topology: { sites: [], links: [] }, named: [/sites/] },
    {
      rule: 'a site has a name of the right form',
      topology: { sites: ['A b'], links: [] },
      named: [/sites\.0/],
    },
    {
      rule: 'a site is listed once',
      topology: { sites: ['a', 'b', 'a'], links: [] },
      named: [/a is listed twice/],
    },
    {
      rule: 'a link is between known sites',
      topology: on({ site2: 'x' }, { site1: 'y' }),
      named: [/names x,/, /names y,/],
    },
    {
      rule: 'a link does not connect a site with itself',
      topology: on({ site2: 'a' }),
      named: [/a – a .*itself/],
    },
    {
      rule: 'a pair of sites has one link',
      topology: on({}, { site1_c_tags: [7, 8], site2_c_tags: [7, 8] }),
      named: [/two links between a and b/],
    },
    {
      rule: 'a pair of sites has one link, whichever way round',
      topology: on({}, { site1: 'b', site2: 'a', site1_c_tags: [7, 8], site2_c_tags: [7, 8] }),
      named: [/two links between b and a/],
    },
    {
      rule: 'a capacity is at least 1 Mbps',
      topology: on({ bandwidth: 0 }),
      named: [/Link a – b, bandwidth/],
    },
    { rule: 'a capacity is whole', topology: on({ bandwidth: 1.5 }), named: [/Link a – b, bandwidth/] },
    {
      rule: 'a tag is at least 1',
      topology: on({ site1_s_tags: [0, 3] }),
      named: [/Link a – b, site1_s_tags/],
    },
    {
      rule: 'a tag is at most 4094',
      topology: on({ site2_s_tags: [1, 4095] }),
      named: [/Link a – b, site2_s_tags/],
    },
    { rule: 'a tag is whole', topology: on({ site2_c_tags: [1.5, 4] }), named: [/Link a – b, site2_c_tags/] },
    {
      rule: 'a range does not end before it starts',
      topology: on({ site1_c_tags: [4, 3] }),
      named: [/Link a – b, site1_c_tags.*ends before it starts/],
    },
    {
      rule: 'C-tag ranges of the links at a site are disjoint',
      topology: { sites: ['a', 'b', 'c'], links: [smallLink(), { ...toC, site1_c_tags: [3, 6] }] },
      named: [/At a the C-tags of a – b \(1–3\) and a – c \(3–6\) overlap/],
    },
    {
      rule: 'C-tag ranges are disjoint where a range lies within another, and at second ends',
      topology: {
        sites: ['a', 'b', 'c'],
        links: [smallLink({ site2_c_tags: [1, 100] }), { ...toC, site1: 'b', site1_c_tags: [50, 51] }],
      },
      named: [/At b the C-tags of a – b \(1–100\) and b – c \(50–51\) overlap/],
    },
    {
      rule: 'a place is that of a known site',
      topology: { sites: ['a'], links: [], places: { a: [3.72, 51.05], b: [0, 0], 'A b': [0, 0] } },
      named: [/Places names b, which is not a site/, /Places names A b, which is not a site/],
    },
    {
      rule: 'a place is [longitude, latitude] within the bounds of both',
      topology: {
        sites: ['a', 'b', 'c', 'd'],
        links: [],
        places: { a: [180.1, 0], b: [0, -90.5], c: [1], d: '3,51' },
      },
      named: [/places\.a\.0: .*180/, /places\.b\.1: .*-90/, /places\.c/, /places\.d/],
    },
    {
      rule: 'all that is wrong is said at once, of form and of content',
      topology: {
        sites: ['a', 'a', 'b', 'c'],
        links: [smallLink({ bandwidth: -1 }), { ...toC, site2: 'x' }, { ...toC, site1: 'c' }],
      },
      named: [/Link a – b, bandwidth/, /a is listed twice/, /names x,/, /connects a site with itself/],
    },
    {
      rule: 'all that is wrong is said at once',
      topology: {
        sites: ['a', 'a', 'b', 'c'],
        links: [smallLink(), { ...toC, site1_c_tags: [1, 1] }, { ...toC, site2: 'x', site1_c_tags: [2, 4] }],
      },
      named: [
        /a is listed twice/,
        /names x,/,
        /At a the C-tags of a – b .* and a – c/,
        /At a the C-tags of a – b .* and a – x/,
      ],
    },
  ])('$rule', ({ topology, named }) => {
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

  test.each<{ rule: string; links: Link[] }>([
    { rule: 'no links', links: [] },
    { rule: 'C-tag ranges that lie next to each other', links: [smallLink(), toC] },
    {
      rule: 'S-tag ranges that overlap, since they are told apart by link',
      links: [smallLink(), { ...toC, site1_s_tags: [1, 3] }],
    },
    {
      rule: 'C-tag ranges that overlap at different sites',
      links: [smallLink({ site2_c_tags: [4, 6] }), toC],
    },
    { rule: 'a range of one tag', links: [smallLink({ site1_c_tags: [4094, 4094] })] },
    { rule: 'all tags', links: [smallLink({ site1_c_tags: [1, 4094] })] },
  ])('a topology may have $rule', ({ links }) => {
    expect(createNetwork({ sites: ['a', 'b', 'c'], links }).links).toEqual(links);
  });
});

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
