import { describe, expect, test } from 'vitest';
import { builtInTopology } from '../../../src/allocator/network.ts';
import type { Rect } from '../../../src/page/map/labels.ts';
import { DOT, layOut, type MapLayout, type MapSite, type Scene } from '../../../src/page/map/layout.ts';
import { project, WORLD } from '../../../src/page/map/projection.ts';

const topology = builtInTopology();
const SITES: MapSite[] = topology.sites.map((name) => ({ name, place: topology.places?.[name] ?? null }));
const textWidth = (text: string) => text.length * 8;

const lay = (sites: readonly MapSite[], width: number): MapLayout =>
  layOut(sites, topology.links, width, textWidth);

function touch(one: Rect, other: Rect): boolean {
  return (
    one.x < other.x + other.width &&
    other.x < one.x + one.width &&
    one.y < other.y + other.height &&
    other.y < one.y + one.height
  );
}

/** The names that lie on another name, on a dot or on an inset, or that leave their picture. */
function collisions(scene: Scene, bounds: Rect, taken: readonly Rect[]): string[] {
  const dots = scene.sites.flatMap((name) => {
    const { x, y } = scene.at.get(name) ?? { x: 0, y: 0 };
    return [{ x: x - DOT, y: y - DOT, width: 2 * DOT, height: 2 * DOT }];
  });
  return [...scene.labels].flatMap(([name, box]) => {
    const others = [...scene.labels.values()].filter((other) => other !== box);
    const leaves =
      box.x < bounds.x ||
      box.y < bounds.y ||
      box.x + box.width > bounds.x + bounds.width ||
      box.y + box.height > bounds.y + bounds.height;
    return leaves || [...others, ...dots, ...taken].some((other) => touch(box, other)) ? [name] : [];
  });
}

describe('the map', () => {
  test.each([343, 560, 720, 1100])('%i pixels wide: every name is there, upon nothing else', (width) => {
    const layout = lay(SITES, width);
    const names = [layout, ...layout.insets].flatMap(({ labels }) => [...labels.keys()]);
    expect(names.toSorted()).toEqual(topology.sites.toSorted());
    expect(collisions(layout, layout, layout.insets)).toEqual([]);
    for (const inset of layout.insets) expect(collisions(inset, inset, [])).toEqual([]);
  });

  test.each([
    [343, ['be-antwerp', 'be-gent1', 'fr-lille', 'fr-slices']],
    [720, ['be-antwerp', 'be-gent1', 'fr-lille']],
  ])(
    '%i pixels wide: sites that lie close together are enlarged, and no inset hides a site',
    (width, close) => {
      const { insets, at, links } = lay(SITES, width);
      expect(insets.map(({ sites }) => sites.toSorted())).toEqual([close]);
      const [inset] = insets;
      for (const [, { x, y }] of at)
        expect(touch(inset ?? NOWHERE, { x, y, width: 1, height: 1 })).toBe(false);
      const [gent, antwerp] = [inset?.at.get('be-gent1'), inset?.at.get('be-antwerp')];
      expect(
        Math.hypot((gent?.x ?? 0) - (antwerp?.x ?? 0), (gent?.y ?? 0) - (antwerp?.y ?? 0)),
      ).toBeGreaterThan(24);
      // Each link is in the map or in the inset; one that leaves the inset is in both.
      const pairs = (scene: Pick<Scene, 'links'> | undefined) =>
        scene?.links.map(({ site1, site2 }) => `${site1} ${site2}`);
      expect(new Set([...(pairs({ links }) ?? []), ...(pairs(inset) ?? [])]).size).toBe(
        topology.links.length,
      );
      expect(pairs({ links })).not.toContain('be-antwerp be-gent1');
      expect(pairs({ links })).toContain('be-gent1 pl-poznan1');
      expect(pairs(inset)).toContain('be-gent1 pl-poznan1');
    },
  );

  test.each([790, 1110])(
    '%i pixels wide: the inset lies beside the sites, and no name seems to be of another dot',
    (width) => {
      const layout = lay(SITES, width);
      const [inset] = layout.insets;
      const xs = [...layout.at.values()].map(({ x }) => x);
      expect(inset).toBeDefined();
      expect((inset?.x ?? 0) + (inset?.width ?? 0)).toBeLessThan(Math.min(...xs) - 40);
      // The names that are nearest to a dot are its own.
      for (const { labels, at, sites } of layout.insets) {
        for (const [name, { x, y, width: wide, height }] of labels) {
          const away = (site: string): number => {
            const point = at.get(site) ?? { x: 0, y: 0 };
            const [dx, dy] = [
              Math.max(x - point.x, 0, point.x - x - wide),
              Math.max(y - point.y, 0, point.y - y - height),
            ];
            return Math.hypot(dx, dy);
          };
          expect(sites.toSorted((one, other) => away(one) - away(other))[0]).toBe(name);
        }
      }
    },
  );

  test('drawn larger it has no inset, which would lie out of sight, and all names', () => {
    const { insets, labels } = layOut(SITES, topology.links, 720, textWidth, 2);
    expect(insets).toEqual([]);
    expect([...labels.keys()].toSorted()).toEqual(topology.sites.toSorted());
  });

  test('two sites in one place can be told apart', () => {
    const twins: MapSite[] = ['a', 'b', 'c'].map((name) => ({ name, place: [3.72, 51.05] }));
    const { insets } = lay([...twins, { name: 'd', place: [16.9, 52.4] }], 700);
    const points = insets[0]?.sites.map((name) => insets[0]?.at.get(name));
    expect(points).toHaveLength(3);
    for (const [index, one] of points?.entries() ?? []) {
      for (const other of points?.slice(index + 1) ?? []) {
        expect(Math.hypot((one?.x ?? 0) - (other?.x ?? 0), (one?.y ?? 0) - (other?.y ?? 0))).toBeGreaterThan(
          20,
        );
      }
    }
  });

  test('is cut where no site is: the Pacific is not crossed the long way round', () => {
    const { at } = lay(
      [
        { name: 'tokyo', place: [139.7, 35.7] },
        { name: 'seattle', place: [-122.3, 47.6] },
      ],
      700,
    );
    expect(at.get('tokyo')?.x).toBeLessThan(at.get('seattle')?.x ?? 0);
  });

  test('sites without a place are left out, with their links; where none has one, all stand in a ring', () => {
    const some = lay(
      SITES.map((site) => (site.name === 'fr-slices' ? { ...site, place: null } : site)),
      700,
    );
    expect(some.at.has('fr-slices')).toBe(false);
    expect(some.links.filter(({ site1, site2 }) => [site1, site2].includes('fr-slices'))).toEqual([]);
    const ring = lay(
      SITES.map(({ name }) => ({ name, place: null })),
      700,
    );
    expect(ring.land).toBeNull();
    expect([...ring.labels.keys()].toSorted()).toEqual(topology.sites.toSorted());
    expect(ring.links).toHaveLength(topology.links.length);
    expect(collisions(ring, ring, [])).toEqual([]);
  });

  test('one site, or two hundred: names never lie upon each other, and those without room are left out', () => {
    expect(lay(SITES.slice(0, 1), 343).labels.size).toBe(1);
    const many = Array.from({ length: 200 }, (_, index): MapSite => {
      const [x, y] = [(index * 7919) % 211, (index * 104_729) % 199];
      return { name: `site-${index}`, place: [-9 + x / 6, 37 + y / 9] };
    });
    const layout = lay(many, 900);
    expect(layout.labels.size).toBeGreaterThan(20);
    expect(collisions(layout, layout, layout.insets)).toEqual([]);
    // Enlarged, more of them have room, and no inset covers the map.
    const enlarged = layOut(many, [], 900, textWidth, 4);
    expect([layout.insets, enlarged.width, enlarged.height]).toEqual([[], 3600, 4 * layout.height]);
    expect(enlarged.labels.size).toBeGreaterThan(2 * layout.labels.size);
  });
});

const NOWHERE: Rect = { x: 0, y: 0, width: 0, height: 0 };

test('the projection is Mercator: the equator in the middle, a degree as wide everywhere, the poles not there', () => {
  expect(project([0, 0])).toEqual([WORLD / 2, expect.closeTo(WORLD / 2, 6)]);
  expect(project([180, 0])[0]).toBe(WORLD);
  // EPSG:3857 of Ghent is 414,108 m east and 6,630,010 m north, of 20,037,508 m.
  const [x, y] = project([3.72, 51.05]);
  expect(x).toBeCloseTo(WORLD * (0.5 + 414_108 / 40_075_017), 1);
  expect(y).toBeCloseTo(WORLD * (0.5 - 6_630_010 / 40_075_017), 1);
  expect(project([0, 90])).toEqual(project([0, 84]));
});
