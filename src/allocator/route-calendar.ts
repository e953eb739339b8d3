import type { Link } from '../contract/links.ts';
import { type Budget, BudgetSpentError } from './budget.ts';
import type { Free, LinkCalendar, Refusal } from './calendar.ts';
import type { Demand, Period } from './demand.ts';
import { fastestOver } from './fastest.ts';
import { mostWithin } from './most-bandwidth.ts';
import {
  bestRoute,
  eachOnce,
  earliestStart,
  type Route,
  type StartSearch,
  sitesOf,
  widest,
} from './routes.ts';
import type { Hop } from './store.ts';

/** How a demand would be met: over these hops; or the link that stands in the way, and every limit of its that it breaks. */
export type RoutePlan =
  | { accepted: true; hops: [Hop, ...Hop[]] }
  | { accepted: false; link: Link; refusals: [Refusal, ...Refusal[]] };

/** A link with its id and its calendar. */
export interface CalendarOfLink {
  id: string;
  link: Link;
  calendar: LinkCalendar;
}

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
  /** Milliseconds; see {@link LinkCalendar.plan}. */
  now: number;
  /** Whose share counts; undefined for an update that asks for no more than before. */
  tenant?: string;
  /** The hops of the reservation that is being updated: their tags are kept where they are free. */
  keep?: readonly Hop[];
}

/** A question that has a budget, to a calendar of routes. */
export interface AskedFor {
  budget: Budget;
  /** Names the state of the links: under it and what is asked, the budget keeps what was found. */
  state: string;
}

/** Among how many routes the one is looked for over which a transfer ends first. Each costs a search through its links' time. */
const ROUTES_OF_A_TRANSFER = 64;

/**
 * The use and the free capacity between two sites, over all routes that may be taken. Of one link, it answers as the link's
 * calendar does.
 *
 * @example
 * // a – b has 1000 Mbps and b – c has 400, all free: 400 can be had from a to c, with tags on both links.
 */
export class RouteCalendar {
  readonly #links: ReadonlyMap<Link, CalendarOfLink>;
  readonly #routes: readonly Route[];
  /** Where there is one link, there is one route. */
  readonly #only: CalendarOfLink | undefined;
  readonly #asked: AskedFor | undefined;

  /**
   * @param links those of the routes
   * @param routes one or more, by the number of their hops
   * @param asked where a question has a budget, its searches throw as {@link Budget.pause} does
   */
  constructor(links: readonly CalendarOfLink[], routes: readonly Route[], asked?: AskedFor) {
    this.#asked = asked;
    this.#links = new Map(links.map((each) => [each.link, each]));
    this.#routes = routes;
    this.#only = links.length === 1 ? links[0] : undefined;
  }

  /** Some link of a route, for what is about none. */
  get first(): Link {
    return this.#widest(({ link }) => link.bandwidth).route[0];
  }

  /** A link as the way between two sites leads over it. */
  wayOver(link: Link, { site1, site2 }: { site1: string; site2: string }): WayOver {
    const route = this.#routes.find((each) => each.length > 1 && each.includes(link));
    const [from, to] = route ? sitesOf(route, site1).slice(route.indexOf(link)) : [];
    const isHop = from !== undefined && to !== undefined;
    return { link, sites: isHop ? [from, to] : [site1, site2], isHop };
  }

  /** The most that one route could carry if nothing were held, in Mbps. */
  get capacity(): number {
    return this.#widest(({ link }) => link.bandwidth).width;
  }

  /**
   * Finds a route and its tags for a demand, or what stands in the way on the route that comes closest. It changes nothing.
   */
  plan(demand: Demand, terms: PlanTerms): RoutePlan {
    const [route, another] = this.#routes;
    if (!route || another) return planOver(this.#routeFor(demand, terms.tenant), demand, terms);
    // What the links of the only route have is measured where one of them does not fit.
    const plan = planOver(this.#linksOf(route), demand, terms);
    if (plan.accepted || this.#only) return plan;
    return planOver(this.#routeFor(demand, terms.tenant), demand, terms);
  }

  /** When a question was asked first; without a budget, `now`. @param now milliseconds */
  firstAsked(now: number): number {
    return this.#asked?.budget.firstAsked(now) ?? now;
  }

  /** Runs `ask` as if a reservation were on none of the links, and puts it back whatever happens. */
  without<Answer>(id: string, ask: () => Answer): Answer {
    const calendars = [...this.#links.values()].map(({ calendar }) => calendar);
    return calendars.reduceRight<() => Answer>((rest, calendar) => () => calendar.without(id, rest), ask)();
  }

  /** The best route for a demand. Where none has enough, the widest, up to its narrowest link. */
  #routeFor(demand: Demand, tenant: string | undefined): CalendarOfLink[] {
    const free = eachOnce((link) => this.#at(link).calendar.freeBandwidth(demand, tenant));
    const left = eachOnce((link) => this.#at(link).calendar.freeBandwidth(demand));
    const best = bestRoute(this.#routes, { fits: (link) => free(link) >= demand.bandwidth, left });
    if (best) return this.#linksOf(best);
    const closest = this.#widest(({ link }) => free(link)).route;
    const [narrow] = closest.toSorted((one, other) => free(one) - free(other));
    return narrow ? [this.#at(narrow)] : [];
  }

  /**
   * The free capacity in each of `count` columns of a period, on the route that has most throughout the column. Of several links,
   * `bandwidthMax` is a bound: they need not be free at the same instant.
   *
   * @param count see {@link LinkCalendar.columns}
   */
  columns(period: Period, count: number): FreeOnRoute[] {
    const { start, end } = period;
    if (this.#only) return this.#only.calendar.columns(period, count);
    const columns = new Map(
      [...this.#links].map(([link, { id, calendar }]) => [
        link,
        this.#once(['columns', id, start, end, count], () => calendar.columns(period, count)),
      ]),
    );
    const [some = []] = columns.values();
    return some.map((column, index) =>
      this.#once(['column', start, end, count, index], () => {
        const freeOf = (link: Link): Free => columns.get(link)?.[index] ?? column;
        const { width: bandwidthMax } = this.#widest(({ link }) => freeOf(link).bandwidthMax);
        return { ...this.#freeOn(column, freeOf), bandwidthMax };
      }),
    );
  }

  /** The free capacity over a period, in stretches over which nothing changes on any link. */
  *steps(period: Period): Generator<FreeOnRoute> {
    if (this.#only) return yield* this.#paused(this.#only.calendar.steps(period));
    const open = [...this.#links].map(([link, { calendar }]) => {
      const steps = calendar.steps(period);
      return { link, steps, step: steps.next().value as Free };
    });
    for (let start = period.start; start < period.end; ) {
      const end = Math.min(...open.map(({ step }) => step.end));
      const steps = new Map(open.map(({ link, step }) => [link, step]));
      const free = this.#freeOn({ start, end }, (link) => steps.get(link) as Free);
      yield { ...free, bandwidthMax: free.bandwidth };
      this.#pause();
      for (const each of open) if (each.step.end === end) each.step = each.steps.next().value as Free;
      start = end;
    }
  }

  /** The free capacity of the route that has most, of routes with a free tag, from that of each link. */
  #freeOn({ start, end }: Period, freeOf: (link: Link) => Free): Omit<FreeOnRoute, 'bandwidthMax'> {
    const least = (route: Route, measure: 'bandwidth' | 'tags'): number =>
      Math.min(...route.map((link) => freeOf(link)[measure]));
    const { route } = this.#widest(({ link }) => (freeOf(link).tags > 0 ? freeOf(link).bandwidth : 0));
    return { start, end, bandwidth: least(route, 'bandwidth'), tags: least(route, 'tags'), route };
  }

  /** As {@link LinkCalendar.slots}: a start is in a run where any route is free from it on. */
  *slots(window: Demand & { duration: number }, tenant?: string): Generator<{ first: number; last: number }> {
    if (this.#only) return yield* this.#paused(this.#only.calendar.slots(window, tenant));
    const { start, end, bandwidth, duration } = window;
    const latest = end - duration;
    for (let from = start; ; ) {
      const first = this.earliest(from, duration, bandwidth, tenant, latest);
      if (first === undefined) return;
      let last = this.#lastStart({ ...window, start: first }, tenant);
      while (last < latest && this.earliest(last + 1, duration, bandwidth, tenant, last + 1) === last + 1) {
        last = this.#lastStart({ ...window, start: last + 1 }, tenant);
      }
      yield { first, last };
      this.#pause();
      from = last + 1;
    }
  }

  /** The answer of each link's calendar, with a pause after each. */
  *#paused<Item>(items: Iterable<Item>): Generator<Item> {
    for (const item of items) {
      yield item;
      this.#pause();
    }
  }

  /** The last start up to which one route stays free from `start` on, at which it is. */
  #lastStart(window: Demand & { duration: number }, tenant: string | undefined): number {
    const { start, end, bandwidth, duration } = window;
    return this.#once(['last', start, end, bandwidth, duration, tenant], () => {
      const route = this.#routeFor({ start, end: start + duration, bandwidth }, tenant);
      const lasts = route.map(({ calendar }) => calendar.slots(window, tenant).next().value?.last ?? start);
      return Math.min(...lasts);
    });
  }

  /** As {@link LinkCalendar.freeBandwidth}, of the route that has most. */
  freeBandwidth(period: Period, tenant?: string): number {
    return this.#widest(({ calendar }) => calendar.freeBandwidth(period, tenant)).width;
  }

  /** As {@link LinkCalendar.earliest}, over the route that is free first. */
  earliest(
    from: number,
    duration: number,
    bandwidth: number,
    tenant?: string,
    latest?: number,
  ): number | undefined {
    const asked = [from, duration, bandwidth, tenant, latest];
    const free = (calendar: LinkCalendar, at: number) =>
      calendar.earliest(at, duration, bandwidth, tenant, latest);
    return this.#once(['earliest', ...asked], () => {
      if (this.#only) return free(this.#only.calendar, from);
      const search = this.#once(['search', ...asked], (): StartSearch => ({ start: from, known: new Map() }));
      try {
        return earliestStart(this.#routes, search, {
          latest,
          free: (link, at) => free(this.#at(link).calendar, at),
          pause: () => this.#pause(),
        });
      } catch (error) {
        if (error instanceof BudgetSpentError) throw new BudgetSpentError(error.message, search.start);
        throw error;
      }
    });
  }

  /** As {@link LinkCalendar.freeUntil}, over the route that is free longest. */
  freeUntil(start: number, bandwidth: number, latest: number, tenant?: string): number | undefined {
    const until = ({ calendar }: CalendarOfLink): number =>
      calendar.freeUntil(start, bandwidth, latest, tenant) ?? start;
    const { width } = this.#widest(until);
    return width > start ? width : undefined;
  }

  /** As {@link LinkCalendar.mostBandwidth}, over any route. */
  mostBandwidth(window: Period & { duration: number }, tenant?: string): number {
    if (this.#only) return this.#only.calendar.mostBandwidth(window, tenant);
    const { end, duration } = window;
    return mostWithin(window, this.capacity, {
      earliest: (from, bandwidth) => this.earliest(from, duration, bandwidth, tenant, end - duration),
      free: (period) => this.freeBandwidth(period, tenant),
    });
  }

  /** As {@link fastestOver}, over one of the {@link ROUTES_OF_A_TRANSFER} routes with the fewest hops. */
  fastest(window: Demand & { volume: number }, tenant?: string): Demand | undefined {
    const { start, end, bandwidth, volume } = window;
    let best: Demand | undefined;
    for (const [index, route] of this.#routes.slice(0, ROUTES_OF_A_TRANSFER).entries()) {
      const found = this.#once(['fastest', start, end, bandwidth, volume, tenant, index], () => {
        const calendars = this.#linksOf(route).map(({ calendar }) => calendar);
        // One that ends no earlier is of no use.
        return fastestOver(calendars, { ...window, end: best?.end ?? window.end }, tenant);
      });
      if (found && (!best || found.end < best.end)) best = found;
    }
    return best;
  }

  /** The route that has most on each of its links. */
  #widest(measure: (each: CalendarOfLink) => number): { route: Route; width: number } {
    const found = widest(this.#routes, (link) => measure(this.#at(link)));
    if (!found) throw new RangeError('there is no route');
    return found;
  }

  /** Counts a look, and ends this turn's part where its time is over. */
  #pause(): void {
    this.#asked?.budget.look();
    this.#asked?.budget.pause();
  }

  /** See {@link Budget.once}. */
  #once<Found>(asked: readonly unknown[], find: () => Found): Found {
    if (!this.#asked) return find();
    const { budget, state } = this.#asked;
    return budget.once([state, ...asked].join(' '), () => {
      budget.look();
      return find();
    });
  }

  #linksOf(route: Route): CalendarOfLink[] {
    return route.map((link) => this.#at(link));
  }

  #at(link: Link): CalendarOfLink {
    const found = this.#links.get(link);
    if (!found) throw new RangeError('the route may not use this link');
    return found;
  }
}

/** The tags of a demand on each of some links, or the first one's refusals that does not fit. */
function planOver(
  links: readonly CalendarOfLink[],
  demand: Demand,
  { now, tenant, keep }: PlanTerms,
): RoutePlan {
  const hops: Hop[] = [];
  for (const { id, link, calendar } of links) {
    const kept = keep?.find((hop) => hop.link === id)?.tags;
    const plan = calendar.plan(demand, now, { keep: kept, tenant });
    if (!plan.accepted) return { accepted: false, link, refusals: plan.refusals };
    hops.push({ link: id, tags: plan.tags });
  }
  const [first, ...rest] = hops;
  if (!first) throw new RangeError('a route has a hop');
  return { accepted: true, hops: [first, ...rest] };
}
