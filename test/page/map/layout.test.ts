import { describe, expect, test } from 'vitest';
import { builtInTopology } from '../../../src/allocator/network.ts';
import {
  DOT,
  type Dot,
  GROUP,
  LARGEST,
  layOut,
  type MapLayout,
  type MapSite,
  type Rect,
  timesToOpen,
} from '../../../src/page/map/layout.ts';
import { project, WORLD } from '../../../src/page/map/projection.ts';

const topology = builtInTopology();
const SITES: MapSite[] = topology.sites.map((name) => ({ name, place: topology.places?.[name] ?? null }));
const roomOf = (width: number, times = 1) => ({
  ...{ width, height: 232, times, textWidth: (text: string) => text.length * 7 },
});
const lay = (sites: readonly MapSite[], width: number, times = 1): MapLayout =>
  layOut(sites, topology.links, roomOf(width, times));
const dotOf = ({ dots }: MapLayout, site: string): Dot | undefined =>
  dots.find(({ sites }) => sites.includes(site));

function touch(one: Rect, other: Rect): boolean {
  return (
    one.x < other.x + other.width &&
    other.x < one.x + one.width &&
    one.y < other.y + other.height &&
    other.y < one.y + one.height
  );
}

/** The names that lie on another name or on a dot, or that leave the picture. */
function collisions({ width, height, dots, labels }: MapLayout): string[] {
  const round = dots.map(({ x, y, sites }) => {
    const radius = sites.length > 1 ? GROUP : DOT;
    return { x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius };
  });
  return [...labels].flatMap(([{ sites }, box]) => {
    const others = [...labels.values()].filter((other) => other !== box);
    const leaves = box.x < 0 || box.y < 0 || box.x + box.width > width || box.y + box.height > height;
    return leaves || [...others, ...round].some((other) => touch(box, other)) ? sites : [];
  });
}

describe('the map', () => {
  test.each([343, 628, 940])(
    '%i pixels wide: names lie upon nothing else, and most sites have theirs',
    (width) => {
      const layout = lay(SITES, width);
      expect(layout.dots.flatMap(({ sites }) => sites).toSorted()).toEqual(topology.sites.toSorted());
      expect([...layout.labels.keys()].flatMap(({ sites }) => sites).length).toBeGreaterThan(9);
      expect(collisions(layout)).toEqual([]);
    },
  );

  test('sites that lie together are one dot, which lie apart where it is opened; their links beside each other', () => {
    const layout = lay(SITES, 628);
    const close = dotOf(layout, 'be-gent1');
    expect(close?.sites.toSorted()).toEqual(['be-antwerp', 'be-gent1', 'fr-lille']);
    const names = ({ lines }: MapLayout) => lines.map(({ link }) => `${link.site1} ${link.site2}`);
    // What is within a dot has no line.
    expect(names(layout)).not.toContain('be-antwerp be-gent1');
    expect(names(layout)).toContain('be-gent1 pl-poznan1');
    const times = timesToOpen(SITES, close ?? { sites: [], x: 0, y: 0 }, roomOf(628));
    const opened = lay(SITES, 628, times);
    expect(times).toBeLessThan(LARGEST);
    expect(dotOf(opened, close?.sites[0] ?? '')?.sites).toEqual([close?.sites[0]]);
    expect(names(lay(SITES, 628, LARGEST)).toSorted()).toEqual(
      topology.links.map(({ site1, site2 }) => `${site1} ${site2}`).toSorted(),
    );
    const twins = ['a', 'b'].map((name) => ({ name, place: [3.72, 51.05] as const }));
    const far = { name: 'c', place: [16.9, 52.4] as const };
    const links = twins.map(({ name }) => ({ site1: 'c', site2: name, bandwidth: 1 }));
    const [one, other] = layOut([...twins, far], links, roomOf(628)).lines;
    expect(
      Math.hypot((one?.from.x ?? 0) - (other?.from.x ?? 0), (one?.from.y ?? 0) - (other?.from.y ?? 0)),
    ).toBeCloseTo(7);
  });

  test('drawn largest, two sites in one place can be told apart', () => {
    const twins: MapSite[] = ['a', 'b', 'c'].map((name) => ({ name, place: [3.72, 51.05] }));
    const sites = [...twins, { name: 'd', place: [16.9, 52.4] as const }];
    const times = timesToOpen(sites, { sites: ['a', 'b', 'c'], x: 0, y: 0 }, roomOf(628));
    expect(times).toBe(LARGEST);
    const { dots } = lay(sites, 628, times);
    expect(dots).toHaveLength(4);
    for (const one of dots)
      for (const other of dots)
        if (one !== other) expect(Math.hypot(one.x - other.x, one.y - other.y)).toBeGreaterThan(20);
  });

  test('is cut where no site is: the Pacific is not crossed the long way round', () => {
    const layout = lay(
      [
        { name: 'tokyo', place: [139.7, 35.7] },
        { name: 'seattle', place: [-122.3, 47.6] },
      ],
      700,
    );
    expect(dotOf(layout, 'tokyo')?.x).toBeLessThan(dotOf(layout, 'seattle')?.x ?? 0);
  });

  test('sites without a place are left out, with their links; where none has one, all stand in a ring', () => {
    const some = lay(
      SITES.map((site) => (site.name === 'fr-slices' ? { ...site, place: null } : site)),
      700,
    );
    expect(dotOf(some, 'fr-slices')).toBeUndefined();
    expect(some.lines.filter(({ link }) => [link.site1, link.site2].includes('fr-slices'))).toEqual([]);
    const ring = lay(
      SITES.map(({ name }) => ({ name, place: null })),
      700,
    );
    expect(ring.land).toBeNull();
    expect(ring.dots.every(({ sites }) => sites.length === 1)).toBe(true);
    expect(ring.lines).toHaveLength(topology.links.length);
    expect(collisions(ring)).toEqual([]);
  });

  test('one site, or two hundred: no dot lies on another, and enlarged there are more of them with more names', () => {
    expect(lay(SITES.slice(0, 1), 343).labels.size).toBe(1);
    const many = Array.from({ length: 200 }, (_, index): MapSite => {
      const [x, y] = [(index * 7919) % 211, (index * 104_729) % 199];
      return { name: `site-${index}`, place: [-9 + x / 6, 37 + y / 9] };
    });
    const layout = lay(many, 900);
    expect(layout.labels.size).toBeGreaterThan(5);
    expect(collisions(layout)).toEqual([]);
    const enlarged = lay(many, 900, 4);
    expect([enlarged.width, enlarged.height]).toEqual([3600, 4 * layout.height]);
    expect(enlarged.dots.length).toBeGreaterThan(layout.dots.length);
    expect(enlarged.labels.size).toBeGreaterThan(2 * layout.labels.size);
  });
});

test('the projection is Mercator: the equator in the middle, a degree as wide everywhere, the poles not there', () => {
  expect(project([0, 0])).toEqual([WORLD / 2, expect.closeTo(WORLD / 2, 6)]);
  expect(project([180, 0])[0]).toBe(WORLD);
  // EPSG:3857 of Ghent is 414,108 m east and 6,630,010 m north, of 20,037,508 m.
  const [x, y] = project([3.72, 51.05]);
  expect(x).toBeCloseTo(WORLD * (0.5 + 414_108 / 40_075_017), 1);
  expect(y).toBeCloseTo(WORLD * (0.5 - 6_630_010 / 40_075_017), 1);
  expect(project([0, 90])).toEqual(project([0, 84]));
});
