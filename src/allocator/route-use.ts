import type { Link } from '../contract/links.ts';
import type { Demand, Period } from './demand.ts';
import { fastest, inUnits, narrowest, roundUp } from './fastest.ts';
import type { Free, LinkUse, Slot, Sought } from './link-use.ts';
import type { Refusal } from './refusals.ts';
import { type Route, sitesOf, widest } from './routes.ts';
import { type Steps, TooMuchError } from './steps.ts';
import type { Hop } from './store.ts';

/** How a demand would be met: over this route; or the link that stands in the way, and every limit of its that it breaks. */
export type RoutePlan =
  | { accepted: true; route: Route; hops: [Hop, ...Hop[]] }
  | { accepted: false; link: Link; refusals: [Refusal, ...Refusal[]] };

/** The link that stands in the way of a demand: of a route, the narrowest. */
export interface WayOver {
  link: Link;
  /** Its sites, in the order in which they are passed. */
  sites: readonly [string, string];
  /** Whether it is one of several hops. */
  isHop: boolean;
}

/** The free capacity over a part of a period, and its route; undefined where there is but one link. */
export interface FreeOnRoute extends Free {
  route?: Route;
}

/** The terms of a plan. */
export interface PlanTerms {
  /** Whose share counts; undefined for an update that asks for no more than before. */
  tenant?: string | undefined;
  /** The hops of the reservation that is being updated: their tags are kept where they are free. */
  keep?: readonly Hop[];
}

/** A transfer of `volume` bytes at `bandwidth` Mbps at most, within a window. `unit`: its times are multiples of so many milliseconds. */
export type Sending = Demand & { volume: number; unit?: number | undefined };

/** Among how many routes the one is looked for over which a transfer ends first. Each costs a search through its links' time. */
const ROUTES_OF_A_TRANSFER = 64;
/** To how much of the time up to its deadline a transfer is looked for first; then to four times as much. */
const FIRST_PART = 1 / 64;

/**
 * The use and the free capacity between two sites, over all routes that may be taken. Of one link, it answers as
 * {@link LinkUse} does.
 *
 * @example
 * // a – b has 1000 Mbps and b – c has 400, all free: 400 can be had from a to c, with tags on both links.
 */
export class RouteUse {
  readonly #links: ReadonlyMap<Link, LinkUse>;
  readonly #routes: readonly Route[];
  /** Where there is one link, there is one route. */
  readonly #only: LinkUse | undefined;

  /** @param links those of the routes @param routes one or more, by the number of their hops */
  constructor(links: readonly LinkUse[], routes: readonly Route[]) {
    this.#links = new Map(links.map((each) => [each.link, each]));
    this.#routes = routes;
    this.#only = links.length === 1 ? links[0] : undefined;
  }

  /** Some link of a route, for what is about none. */
  get first(): Link {
    return widest(this.#routes, ({ bandwidth }) => bandwidth).route[0];
  }

  /** The most that one route could carry if nothing were held, in Mbps. */
  get capacity(): number {
    return widest(this.#routes, ({ bandwidth }) => bandwidth).width;
  }

  /** A link as the way between two sites leads over it. */
  wayOver(link: Link, { site1, site2 }: { site1: string; site2: string }): WayOver {
    const route = this.#routes.find((each) => each.length > 1 && each.includes(link));
    const [from, to] = route ? sitesOf(route, site1).slice(route.indexOf(link)) : [];
    const isHop = from !== undefined && to !== undefined;
    return { link, sites: isHop ? [from, to] : [site1, site2], isHop };
  }

  /**
   * Finds a route and its tags for a demand, or what stands in the way on the route that comes closest. It changes nothing.
   */
  *plan(demand: Demand, terms: PlanTerms): Steps<RoutePlan> {
    const route = this.#only ? [this.#only] : yield* this.#routeFor(demand, terms.tenant);
    return yield* planOver(route, demand, terms);
  }

  /** Does work as if a reservation were on none of the links, and puts it back whatever happens. */
  *without<Answer>(id: string, work: Steps<Answer>): Steps<Answer> {
    const held = [...this.#links.values()].flatMap((use) => {
      const row = use.get(id);
      return row ? [{ use, row }] : [];
    });
    for (const { use } of held) use.remove(id);
    try {
      return yield* work;
    } finally {
      for (const { use, row } of held) use.put(row);
    }
  }

  /**
   * The best route for a demand: of those with the fewest hops that have enough, the one whose narrowest link has most left, and of
   * equal ones the first. Where none has enough, the narrowest link of the widest.
   */
  *#routeFor(demand: Demand, tenant: string | undefined): Steps<LinkUse[]> {
    const known = new Map<Link, number>();
    const free = (link: Link): number => known.get(link) ?? 0;
    for (const routes of byHops(this.#routes)) {
      yield* this.#measure(routes, known, (use) => use.freeBandwidth(demand, tenant));
      const fitting = routes.filter((route) => route.every((link) => free(link) >= demand.bandwidth));
      const [first, another] = fitting;
      if (!first) continue;
      if (!another) return this.#usesOf(first);
      const left = new Map(tenant === undefined ? known : []);
      yield* this.#measure(fitting, left, (use) => use.freeBandwidth(demand));
      return this.#usesOf(widest(fitting, (link) => left.get(link) ?? 0).route);
    }
    const [narrow] = widest(this.#routes, free).route.toSorted((one, other) => free(one) - free(other));
    return narrow ? [this.#at(narrow)] : [];
  }

  /**
   * The free capacity in each of `count` columns of a period, on the route that has most throughout the column; `bandwidthMax` is
   * the most that any one route has at an instant of it.
   *
   * @param count see {@link LinkUse.columns}
   */
  *columns(period: Period, count: number): Steps<FreeOnRoute[]> {
    if (this.#only) return yield* this.#only.columns(period, count);
    const columns = yield* this.#measured((use) => use.columns(period, count));
    const found: FreeOnRoute[] = [];
    for (const [index, column] of columns(this.first).entries()) {
      const freeOf = (link: Link): Free => columns(link)[index] ?? column;
      found.push({ ...this.#freeOn(column, freeOf), bandwidthMax: yield* this.#mostAtOnce(column, freeOf) });
      yield;
    }
    return found;
  }

  /** The most that one route has at an instant of a period. */
  *#mostAtOnce(period: Period, freeOf: (link: Link) => Free): Steps<number> {
    // No route has more than what each of its links has at its own best instant.
    const bounds = this.#routes.map((route) => ({
      route,
      bound: Math.min(...route.map((link) => freeOf(link).bandwidthMax)),
    }));
    let most = 0;
    for (const { route, bound } of bounds.toSorted((one, other) => other.bound - one.bound)) {
      if (bound <= most) break;
      const steps = [];
      for (const use of this.#usesOf(route)) steps.push(yield* use.freeSteps(period));
      for (const { free } of narrowest(steps)) most = Math.max(most, free);
    }
    return most;
  }

  /**
   * The free capacity over a period, in stretches over which nothing changes on any link.
   *
   * @param found is given them one by one @param most how many of them
   */
  *steps(period: Period, found: FreeOnRoute[], most: number): Steps<void> {
    if (this.#only) {
      found.push(...(yield* this.#only.steps(period, most)));
      return;
    }
    const steps = yield* this.#measured((use) => use.steps(period));
    const open = new Map([...this.#links.keys()].map((link) => [link, 0]));
    const freeOf = (link: Link): Free => steps(link)[open.get(link) ?? 0] as Free;
    for (let { start } = period; start < period.end && found.length < most; ) {
      const ends = [...open.keys()].map((link) => freeOf(link).end);
      const end = ends.reduce((one, other) => Math.min(one, other));
      const free = this.#freeOn({ start, end }, freeOf);
      found.push({ ...free, bandwidthMax: free.bandwidth });
      for (const [link, at] of open) if (freeOf(link).end === end) open.set(link, at + 1);
      start = end;
      yield;
    }
  }

  /** The free capacity of the route that has most, of routes with a free tag, from that of each link. */
  #freeOn({ start, end }: Period, freeOf: (link: Link) => Free): Omit<FreeOnRoute, 'bandwidthMax'> {
    const least = (route: Route, measure: 'bandwidth' | 'tags'): number =>
      Math.min(...route.map((link) => freeOf(link)[measure]));
    const { route } = widest(this.#routes, (link) => (freeOf(link).tags > 0 ? freeOf(link).bandwidth : 0));
    return { start, end, bandwidth: least(route, 'bandwidth'), tags: least(route, 'tags'), route };
  }

  /**
   * Every start at which a demand would be accepted within a window, as
   * runs from a first start to a last. A run is as long as it can be: a start beside it is refused on every route.
   *
   * @param found is given them one by one @param most how many of them
   * @throws TooMuchError with the instant before which nothing else fits
   */
  *slots(window: Sought, found: Slot[], most: number): Steps<void> {
    const latest = window.end - window.duration;
    for (let from = window.start; found.length < most; ) {
      const first = yield* this.earliest({ ...window, start: from });
      if (first === undefined) return;
      const last = yield* this.#lastOfRun({ ...window, start: first }, latest);
      found.push({ first, last });
      from = last + 1;
      yield;
    }
  }

  /** The last start of a run that begins a window. @throws TooMuchError with the first: it fits, and none before it does */
  *#lastOfRun({ duration, end, ...window }: Sought, latest: number): Steps<number> {
    try {
      for (let { start } = window; ; start += 1) {
        // A start as long as one route stays free, or the one route that is free so long.
        const until = yield* this.freeUntil({ ...window, start, end }, window.tenant);
        start = Math.max(start, (until ?? start) - duration);
        const next = { ...window, duration, start: start + 1, end: start + 1 + duration };
        if (start >= latest || (yield* this.earliest(next)) === undefined) return start;
      }
    } catch (error) {
      throw error instanceof TooMuchError ? new TooMuchError(window.start) : error;
    }
  }

  /** As {@link LinkUse.freeBandwidth}, of the route that has most. */
  *freeBandwidth(period: Period, tenant?: string): Steps<number> {
    return widest(this.#routes, yield* this.#measured((use) => use.freeBandwidth(period, tenant))).width;
  }

  /**
   * As {@link LinkUse.earliest}, over the route that is free first. Exact: before the next instant that it
   * looks at, each route has a link that is not free.
   *
   * @param sought `unit`: the start is a multiple of so many milliseconds. Default: 1
   * @throws TooMuchError with the instant before which nothing fits
   */
  *earliest(sought: Sought & { unit?: number | undefined }): Steps<number | undefined> {
    const { unit = 1 } = sought;
    const known = new Map<Link, number>();
    let start = roundUp(sought.start, unit);
    try {
      while (start + sought.duration <= sought.end) {
        for (const [link, use] of this.#links) {
          if ((known.get(link) ?? Number.NEGATIVE_INFINITY) >= start) continue;
          known.set(link, (yield* use.earliest({ ...sought, start })) ?? Number.POSITIVE_INFINITY);
          yield;
        }
        const next = Math.min(
          ...this.#routes.map((route) => Math.max(...route.map((link) => known.get(link) ?? 0))),
        );
        if (next === start) return start;
        start = roundUp(next, unit);
      }
      return undefined;
    } catch (error) {
      throw error instanceof TooMuchError ? new TooMuchError(start) : error;
    }
  }

  /** As {@link LinkUse.freeUntil}, over the route that is free longest. */
  *freeUntil(demand: Demand, tenant?: string): Steps<number | undefined> {
    const until = yield* this.#measured(function* (use) {
      return (yield* use.freeUntil(demand, tenant)) ?? demand.start;
    });
    const { width } = widest(this.#routes, until);
    return width > demand.start ? width : undefined;
  }

  /**
   * The most Mbps for which some period of `duration` milliseconds within a window would be accepted; 0 when none would.
   *
   * @param sought `unit`: see {@link earliest}
   */
  *mostBandwidth(
    { start, end, duration, unit }: Period & { duration: number; unit?: number | undefined },
    tenant?: string,
  ): Steps<number> {
    let [from, most, tooMuch] = [start, 0, this.capacity + 1];
    while (most + 1 < tooMuch) {
      const bandwidth = most === 0 ? 1 : Math.floor((most + tooMuch) / 2);
      const at = yield* this.earliest({ start: from, end, bandwidth, duration, tenant, unit });
      if (at === undefined) tooMuch = bandwidth;
      else {
        // A start that is too early for less is too early for more.
        from = at;
        most = yield* this.freeBandwidth({ start: at, end: at + duration }, tenant);
      }
    }
    return most;
  }

  /**
   * The demand that carries `volume` bytes at one constant rate, of at most `bandwidth` Mbps, over one of the
   * {@link ROUTES_OF_A_TRANSFER} routes with the fewest hops, and ends first; of those that end at the same instant, the slowest.
   * Undefined when none fits within a window.
   *
   * @param tenant whose share is a limit too
   */
  *fastest(window: Sending, tenant?: string): Steps<Demand | undefined> {
    const { start, end } = window;
    let best: Demand | undefined;
    for (const route of this.#routes.slice(0, ROUTES_OF_A_TRANSFER)) {
      const uses = this.#usesOf(route);
      // One that ends no earlier is of no use.
      const latest = best?.end ?? end;
      let found: Demand | undefined;
      for (let part = FIRST_PART; !found; part *= 4) {
        const until = Math.min(latest, start + Math.ceil((end - start) * part));
        found = yield* fastestOver(uses, { ...window, end: until }, tenant);
        if (until === latest) break;
      }
      if (found && (!best || found.end < best.end)) best = found;
      yield;
    }
    return best;
  }

  /** What each link has, with a pause after each. */
  *#measured<Measure>(measure: (use: LinkUse) => Steps<Measure>): Steps<(link: Link) => Measure> {
    const found = new Map<Link, Measure>();
    yield* this.#measure([[...this.#links.keys()]], found, measure);
    return (link) => found.get(link) as Measure;
  }

  /** Adds what each link of some routes has to what is known already. */
  *#measure<Measure>(
    routes: readonly (readonly Link[])[],
    known: Map<Link, Measure>,
    measure: (use: LinkUse) => Steps<Measure>,
  ): Steps<void> {
    for (const link of new Set(routes.flat())) {
      if (known.has(link)) continue;
      known.set(link, yield* measure(this.#at(link)));
      yield;
    }
  }

  #usesOf(route: Route): LinkUse[] {
    return route.map((link) => this.#at(link));
  }

  #at(link: Link): LinkUse {
    const found = this.#links.get(link);
    if (!found) throw new RangeError('the route may not use this link');
    return found;
  }
}

/** As {@link RouteUse.fastest}, over all of some links at the same time. */
function* fastestOver(
  uses: readonly LinkUse[],
  { start, end, bandwidth, volume, unit = 1 }: Sending,
  tenant: string | undefined,
): Steps<Demand | undefined> {
  const free = [];
  for (const use of uses) free.push(yield* use.freeSteps({ start, end }, tenant));
  return yield* fastest(inUnits(narrowest(free), unit), {
    most: bandwidth,
    volume,
    unit,
    tagsFrom(from, duration) {
      for (let at = from; ; ) {
        const next = uses.reduce((start, use) => use.tagsFrom(start, duration), at);
        if (next === at) return at;
        at = roundUp(next, unit);
      }
    },
    tagsSince: (until) => roundUp(Math.max(...uses.map((use) => use.tagsSince(until))), unit),
  });
}

/** The tags of a demand on each of some links, or the first one's refusals that does not fit. */
function* planOver(uses: readonly LinkUse[], demand: Demand, { tenant, keep }: PlanTerms): Steps<RoutePlan> {
  const hops: Hop[] = [];
  for (const use of uses) {
    const kept = keep?.find((hop) => hop.link === use.id)?.tags;
    const plan = yield* use.plan(demand, { keep: kept, tenant });
    if (!plan.accepted) return { accepted: false, link: use.link, refusals: plan.refusals };
    hops.push({ link: use.id, tags: plan.tags });
  }
  const [first, ...rest] = hops;
  const [link, ...links] = uses.map((use) => use.link);
  if (!first || !link) throw new RangeError('a route has a hop');
  return { accepted: true, route: [link, ...links], hops: [first, ...rest] };
}

/** Routes that are by hops already, in groups of as many hops. */
function byHops(routes: readonly Route[]): Iterable<readonly Route[]> {
  return Map.groupBy(routes, ({ length }) => length).values();
}
