import { builtInTopology, createNetwork, type Network } from '../../src/allocator/network.ts';
import { allowedRoutes, routesBetween } from '../../src/allocator/routes.ts';
import type { Link, TagRange, Topology } from '../../src/contract/links.ts';
import { MAX_HOPS } from '../../src/contract/request-limits.ts';
import { openStores } from '../../src/store/stores.ts';
import { Allocator } from '../allocator/allocator.ts';
import type { Benchmark, Result } from './benchmark.ts';
import { mostFlow } from './most-flow.ts';
import { type Random, seeded } from './seeded.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const DETOURS = [0, 1, 2, MAX_HOPS - 1];
const LOADS = [0.8, 1, 1.2];
/** How long the network is asked for in a run, and how many runs there are. */
const [SPAN, SEEDS] = [3 * DAY, 8];
/** How many reservations of a pair there are at any instant on average, if all that fits is asked for and accepted. */
const AT_ONCE = 2;
/** How long a reservation is on average. */
const LENGTH = 6 * HOUR;

/** A network, and how what is asked for is spread over it. */
interface Setting {
  name: string;
  topology: Topology;
  /** Whether each pair asks for as much as fits; else for a random multiple of it, which is new in each run. */
  isEven: boolean;
  /** Of the share of the bound that is accepted, for each load. */
  limits: readonly number[];
}

/** Five links more, by which the built-in network gets five rings more. */
const MORE_LINKS = [
  ['pl-poznan1', 'se-kth', 10],
  ['es-upvehu', 'fr-nantes', 10],
  ['fr-sophia', 'hu-sztaki', 10],
  ['fr-sophia', 'gr-uth', 1],
  ['be-antwerp', 'fr-lille', 40],
] as const;

const SETTINGS: readonly Setting[] = [
  { name: 'built-in', topology: builtInTopology(), isEven: true, limits: [0.75, 0.7, 0.65] },
  { name: 'built-in, uneven', topology: builtInTopology(), isEven: false, limits: [0.65, 0.65, 0.6] },
  { name: 'meshed', topology: meshed(builtInTopology()), isEven: true, limits: [0.7, 0.65, 0.6] },
  { name: 'meshed, uneven', topology: meshed(builtInTopology()), isEven: false, limits: [0.6, 0.55, 0.55] },
];

function meshed({ sites, links }: Topology): Topology {
  const tags: TagRange = [1, 240];
  const more = MORE_LINKS.map(([site1, site2, gbps]) => ({ site1, site2, bandwidth: 1000 * gbps }));
  return {
    sites,
    links: [...links, ...more].map((link, index): Link => {
      const own: TagRange = [1 + 240 * index, 240 * (index + 1)];
      return { ...link, site1_s_tags: tags, site1_c_tags: own, site2_s_tags: tags, site2_c_tags: own };
    }),
  };
}

/** Two sites, and the routes between them by hops, as indexes of links. */
interface Pair {
  site1: string;
  site2: string;
  routes: number[][];
  /** The shortest one; of several the widest. */
  main: number[];
}

function pairsOf(network: Network): Pair[] {
  const capacity = (route: readonly number[]): number =>
    Math.min(...route.map((link) => network.links[link]?.bandwidth ?? 0));
  return network.sites.flatMap((site1, index) =>
    network.sites.slice(index + 1).map((site2) => {
      const routes = [...routesBetween(network, { site1, site2 })].map((route) =>
        route.map((link) => network.links.indexOf(link)),
      );
      const shortest = routes.filter(({ length }) => length === routes[0]?.length);
      const [main = []] = shortest.toSorted((one, other) => capacity(other) - capacity(one));
      return { site1, site2, routes, main };
    }),
  );
}

/**
 * What fits: the max-min fair share of each pair if all take their main routes, by progressive filling. All pairs grow alike until a
 * link is full, then those go on that do not use it. Every link is full in the end, since its own two sites are a pair.
 */
function fairShares(pairs: readonly Pair[], links: readonly Link[]): Map<Pair, number> {
  const shares = new Map<Pair, number>();
  const left = links.map(({ bandwidth }) => bandwidth);
  while (shares.size < pairs.length) {
    const growing = pairs.filter((pair) => !shares.has(pair));
    const [full] = left
      .map((_, link) => growing.filter(({ main }) => main.includes(link)))
      .map((users, link) => ({ users, share: Math.max(0, left[link] ?? 0) / users.length }))
      .filter(({ users }) => users.length > 0)
      .toSorted((one, other) => one.share - other.share);
    if (!full) throw new RangeError('a pair has no route');
    for (const pair of full.users) {
      shares.set(pair, full.share);
      for (const link of pair.main) left[link] = (left[link] ?? 0) - full.share;
    }
  }
  return shares;
}

/** A request of a pair, made at an instant. Milliseconds and Mbps. */
interface Asked {
  pair: Pair;
  at: number;
  start: number;
  end: number;
  bandwidth: number;
}

/** Requests in the order of their making: at random, up to a week ahead, exponentially long, and of any bandwidth. */
function requests(
  network: Network,
  { load, isEven }: { load: number; isEven: boolean },
  { random, span }: { random: Random; span: number },
): Asked[] {
  const pairs = pairsOf(network);
  const fair = fairShares(pairs, network.links);
  const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);
  // Log-normal, nearly: two thirds of the pairs ask for 0.37 to 2.7 times their share.
  const normal = (): number => 1.73 * (random() + random() + random() + random() - 2);
  const wanted = new Map(
    pairs.map((pair) => [pair, (fair.get(pair) ?? 0) * (isEven ? 1 : Math.exp(normal()))]),
  );
  const scale = sum(fair.values()) / sum(wanted.values());
  const count = Math.round((pairs.length * AT_ONCE * load * span) / LENGTH);
  const asked = Array.from({ length: count }, (): Asked => {
    const pair = pairs[Math.floor(random() * pairs.length)] as Pair;
    const start = 7 * DAY + HOUR * Math.floor((random() * span) / HOUR);
    const hours = Math.max(1, Math.round((-Math.log(1 - random()) * LENGTH) / HOUR));
    const mean = ((wanted.get(pair) ?? 0) * scale) / AT_ONCE;
    const most = Math.min(...pair.main.map((link) => network.links[link]?.bandwidth ?? 0));
    const bandwidth = Math.min(most, Math.ceil(2 * random() * mean));
    return { pair, at: start - Math.floor(random() * 7 * DAY), start, end: start + HOUR * hours, bandwidth };
  });
  return asked.toSorted((one, other) => one.at - other.at);
}

/**
 * More than anyone could accept who knew every request beforehand, in Mbps·h: in each hour as much as the links carry of what is
 * asked for then, where a request may be cut, split over all routes, and moved to others in the next hour.
 */
function boundOf(asked: readonly Asked[], { links }: Network): number {
  const capacities = links.map(({ bandwidth }) => bandwidth);
  const hours = new Map<number, Map<Pair, number>>();
  for (const { pair, start, end, bandwidth } of asked) {
    for (let hour = start; hour < end; hour += HOUR) {
      const demands = hours.get(hour) ?? new Map<Pair, number>();
      demands.set(pair, (demands.get(pair) ?? 0) + bandwidth);
      hours.set(hour, demands);
    }
  }
  let sum = 0;
  for (const demands of hours.values()) {
    sum += mostFlow(
      [...demands].map(([{ routes }, demand]) => ({ demand, routes })),
      capacities,
    );
  }
  return sum;
}

/** What the allocator accepts, in Mbps·h. */
async function acceptedOf(asked: readonly Asked[], network: Network): Promise<number> {
  const stores = await openStores(':memory:');
  let clock = 0;
  let ids = 0;
  const allocator = new Allocator({
    network,
    store: stores.reservations,
    now: () => clock,
    newId: () => `con_bench_${String(ids++).padStart(26, '0')}`,
  });
  const who = { experiment: 'exp_bench', createdBy: 'user_bench', expiry: Number.MAX_SAFE_INTEGER };
  let sum = 0;
  for (const { pair, at, start, end, bandwidth } of asked) {
    clock = at;
    const { site1, site2 } = pair;
    const outcome = await allocator.create({ ...who, site1, site2, start, end, bandwidth });
    if (outcome.ok) sum += (bandwidth * (end - start)) / HOUR;
  }
  await stores.close();
  return sum;
}

/** How many routes there are of all pairs: where a longer detour adds none, all answers are the same. */
function routesIn(network: Network): number {
  const counts = pairsOf(network).map((sites) => allowedRoutes(network, sites)?.length ?? 0);
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Mean and standard error. */
function meanOf(values: readonly number[]): { mean: number; error: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, error: Math.sqrt(squares / Math.max(1, values.length - 1) / values.length) };
}

async function resultsOf(setting: Setting, seeds: number, span: number): Promise<Result[]> {
  const networks = DETOURS.map((detour) => createNetwork(setting.topology, detour));
  const [shortest] = networks as [Network];
  const counts = networks.map(routesIn);
  const results: Result[] = [];
  for (const [index, load] of LOADS.entries()) {
    /** The share of the bound for each detour, run by run. */
    const shares: number[][] = DETOURS.map(() => []);
    for (let seed = 0; seed < seeds; seed += 1) {
      const asked = requests(shortest, { ...setting, load }, { random: seeded(seed), span });
      const bound = boundOf(asked, shortest);
      for (const [which, network] of networks.entries()) {
        const same = counts.indexOf(counts[which] ?? 0);
        shares[which]?.push(
          same < which ? (shares[same]?.[seed] ?? 0) : (await acceptedOf(asked, network)) / bound,
        );
      }
    }
    const [none = []] = shares;
    const own = meanOf(none);
    const others = shares.slice(1).map((found, at) => {
      const { mean, error } = meanOf(found.map((share, seed) => share - (none[seed] ?? 0)));
      return `${DETOURS[at + 1]}: ${mean < 0 ? '−' : '+'}${Math.abs(mean).toFixed(3)} ± ${error.toFixed(3)}`;
    });
    results.push({
      name: `detours, ${setting.name}, ${load}`,
      what: `Gbps·h accepted without detours ÷ the bound by links, at ${load} of what fits`,
      ratio: own.mean,
      limit: setting.limits[index] ?? 0,
      bound: 'atLeast',
      measured: `${own.mean.toFixed(3)} ± ${own.error.toFixed(3)}; with a detour of ${others.join(', ')}`,
    });
  }
  return results;
}

/** Whether it is worth it to let a reservation take a longer way where the shortest ones are full. */
export const detours: Benchmark = {
  name: 'detours',
  method: `Allocator on a store in memory, ${SPAN / DAY} days of random requests in each of ${SEEDS} runs, the same for each detour; means with their standard errors, of a detour the difference`,
  async run({ quick }) {
    const [seeds, span] = quick ? [2, DAY] : [SEEDS, SPAN];
    const results: Result[] = [];
    for (const setting of SETTINGS) results.push(...(await resultsOf(setting, seeds, span)));
    return results;
  },
};
