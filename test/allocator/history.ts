import fc from 'fast-check';
import { expect } from 'vitest';
import type { UpdateRequest } from '../../src/allocator/decide.ts';
import type { Demand } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import type { Offer } from '../../src/allocator/offers.ts';
import type { Search } from '../../src/allocator/search.ts';
import type { ReservationRecord } from '../../src/allocator/store.ts';
import { type Link, linkId, type TagRange } from '../../src/contract/links.ts';
import type { Problem } from '../../src/contract/problems.ts';
import { WITH_HOPS } from '../store/one-link.ts';
import type { OpenedStore } from '../store/opened-store.ts';
import { Allocator, type OneOutcome, type Outcome } from './allocator.ts';
import { Oracle } from './oracle.ts';
import { sweep } from './sweep.ts';

/** The first of the instants that times are drawn from. */
const DAWN = 1_800_000_000_000;

/** How often each kind of answer came up: histories without refusals prove nothing. The reader clears it. */
export const seen = new Map<string, number>();

/** A small link, which refuses often. */
export interface Shape {
  bandwidth: number;
  ranges: readonly [TagRange, TagRange, TagRange, TagRange];
  /** How much of it one project, or an experiment without one, may have, in percent. */
  share: number;
  /** Every time is a multiple of so many milliseconds. */
  unit: number;
}

/** One event of a history. */
export interface Step {
  kind: 'create' | 'update' | 'delete';
  /** How far the clock moves before. */
  pause: number;
  /** Which allocator is asked. */
  asked: number;
  /** Whether that allocator is restarted first, and so knows only the database. */
  restart: boolean;
  dryRun: boolean;
  /** The reservation to amend or cancel, of those that are held. */
  pick: number;
  /** Picks from all former reservations and an unknown id instead. */
  gone: boolean;
  /** The start and the length: about twenty instants in all. */
  start: number;
  length: number;
  bandwidth: number;
  reversed: boolean;
  /** The first two are in one project. */
  experiment: 'one' | 'two' | 'other';
  /** Whether the request says `start_now`. */
  startsNow: boolean;
  /** What a booking searches for, within a window. */
  search: 'duration' | 'volume' | undefined;
  /** How much longer than needed the window is. */
  slack: number;
  /** The most that the transfer of a volume may use, in Mbps, and how much less than whole the volume is, in bytes. */
  most: number | undefined;
  crumb: number;
  /** What an update changes. */
  moves: boolean;
  resizes: boolean;
  rescales: boolean;
}

/** Whose share a step counts in. */
function tenantOf({ experiment }: Pick<Step, 'experiment'>): string {
  return experiment === 'other' ? 'other' : 'project';
}

const range = fc
  .tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 2, max: 4 }))
  .map(([from, size]): TagRange => [from, from + size - 1]);

/** Links of a history's own. */
export const shapes: fc.Arbitrary<Shape> = fc.record({
  bandwidth: fc.integer({ min: 3, max: 12 }),
  ranges: fc.tuple(range, range, range, range),
  share: fc.constantFrom(100, 100, 60, 35),
  // Alternatives are whole minutes, none of under ten; a tenth of 14 of the last is more. The dawn is a multiple of each.
  unit: fc.constantFrom(1, 500, 150_000, 625_000, 625_000, 625_000),
});

const mostly = (weight: number): fc.Arbitrary<boolean> =>
  fc.oneof({ arbitrary: fc.constant(false), weight: 1 }, { arbitrary: fc.constant(true), weight });
const seldom = (weight: number): fc.Arbitrary<boolean> => mostly(weight).map((yes) => !yes);

/** What happens in a history. */
export const steps: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    'create',
    'create',
    'create',
    'create',
    'create',
    'create',
    'update',
    'update',
    'update',
    'delete',
  ),
  pause: fc.constantFrom(0, 0, 0, 1, 1, 2),
  asked: fc.nat(1),
  restart: seldom(12),
  dryRun: seldom(6),
  pick: fc.nat(20),
  gone: seldom(8),
  start: fc.nat(20),
  length: fc.integer({ min: 1, max: 14 }),
  bandwidth: fc.integer({ min: 1, max: 4 }),
  reversed: fc.boolean(),
  experiment: fc.constantFrom('one', 'two', 'other'),
  startsNow: fc.boolean(),
  search: fc.constantFrom(undefined, undefined, undefined, undefined, 'duration', 'volume', 'volume'),
  slack: fc.nat(8),
  most: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
  crumb: fc.nat(124),
  moves: fc.boolean(),
  resizes: mostly(3),
  rescales: fc.boolean(),
});

/** Gives one link's events to the allocators and to the oracle. A difference is a failed expectation. */
export class History {
  readonly #opened: OpenedStore;
  readonly #link: Link;
  readonly #id: string;
  readonly #oracle: Oracle;
  readonly #allocators: Allocator[];
  readonly #share: number;
  readonly #unit: number;
  readonly #created: string[] = [];
  #now = DAWN;
  #ids = 0;

  /**
   * @param number distinguishes it from the database's other histories
   */
  constructor(
    opened: OpenedStore,
    { bandwidth, ranges, share, unit }: Shape,
    { allocators, number }: { allocators: number; number: number },
  ) {
    const [site1_s_tags, site1_c_tags, site2_s_tags, site2_c_tags] = ranges;
    const sites = { site1: `a${number}`, site2: `b${number}` };
    this.#link = { ...sites, bandwidth, site1_s_tags, site1_c_tags, site2_s_tags, site2_c_tags };
    this.#id = linkId(sites.site1, sites.site2);
    this.#opened = opened;
    this.#share = share;
    this.#unit = unit;
    this.#oracle = new Oracle(this.#link, share, unit);
    this.#allocators = Array.from({ length: allocators }, () => this.#allocator());
  }

  async take(step: Step): Promise<void> {
    this.#now += step.pause * this.#unit;
    const asked = step.asked % this.#allocators.length;
    if (step.restart) this.#allocators[asked] = this.#allocator();
    const allocator = this.#allocators[asked] ?? this.#allocator();
    if (step.kind === 'create')
      await (step.search ? this.#search(allocator, step) : this.#create(allocator, step));
    if (step.kind === 'update') await this.#update(allocator, step);
    if (step.kind === 'delete') await this.#delete(allocator, step);
  }

  /** Checks the database without the allocator. */
  async conclude(): Promise<void> {
    expect(await sweep(this.#opened, this.#id, this.#link)).toEqual([]);
    const rows = await this.#opened.rows(
      `${WITH_HOPS} WHERE link = $1 AND r.deleted_ms IS NULL ORDER BY id`,
      this.#id,
    );
    expect(rows.map(({ id }) => id)).toEqual([...this.#oracle.held.keys()].toSorted());
  }

  async #create(allocator: Allocator, step: Step): Promise<void> {
    const start = this.#startOf(step);
    const { bandwidth, startsNow } = step;
    const tenant = tenantOf(step);
    const demand = { start, end: start + step.length * this.#unit, bandwidth };
    const before = await this.#rows();
    const outcome = await allocator.create({ ...this.#who(step), ...demand, startsNow }, step.dryRun);
    this.#oracle.tenant = tenant;
    const due = this.#oracle.plan(demand, undefined, tenant);
    note('create', outcome);
    if (outcome.ok) {
      expect({ accepted: true, tags: outcome.record.hops[0].tags }).toEqual(due);
      this.#check(outcome.record, demand, step);
      return;
    }
    expect(await this.#rows()).toEqual(before);
    const asked = { now: this.#now, expiry: this.#expiry, startsNow };
    const free = this.#oracle.parts(demand);
    expect(outcome).toEqual({
      ...{ ok: false, reason: 'refused', ...this.#way(step.reversed), tenant, demand, free },
      refusals: due.accepted ? [] : due.refusals,
      offers: this.#oracle.offers(demand, asked),
    });
    await this.#askFor(outcome.offers, allocator, step);
  }

  /** A booking for which the service finds the period, or the rate. */
  async #search(allocator: Allocator, drawn: Step): Promise<void> {
    // What a volume takes lasts for any number of milliseconds.
    const step = { ...drawn, dryRun: drawn.dryRun || (drawn.search === 'volume' && this.#unit > 1) };
    const { bandwidth, startsNow, search: what, most } = step;
    const tenant = tenantOf(step);
    const [start, duration] = [this.#startOf(step), step.length * this.#unit];
    const end = start + duration + step.slack * this.#unit;
    const search: Search =
      what === 'volume' ? { volume: 125 * bandwidth * duration - step.crumb } : { duration };
    const request = { ...search, bandwidth: 'volume' in search ? most : bandwidth };
    const before = await this.#rows();
    const outcome = await allocator.create(
      { ...this.#who(step), start, end, ...request, startsNow },
      step.dryRun,
    );
    this.#oracle.tenant = tenant;
    const window = { start, end, bandwidth: request.bandwidth ?? this.#link.bandwidth };
    const first =
      what === 'duration' ? this.#oracle.earliest({ start, end, bandwidth, duration }) : undefined;
    const due =
      'volume' in search
        ? this.#oracle.fastest({ ...window, ...search })
        : first !== undefined && { start: first, end: first + duration, bandwidth };
    count(`search ${what}: ${due ? 'found' : 'nothing'}`);
    if (outcome.ok) {
      const { start, end, bandwidth, hops } = outcome.record;
      const [{ tags }] = hops;
      expect({ start, end, bandwidth }).toEqual(due);
      const plan = this.#oracle.plan(outcome.record, undefined, tenant);
      expect({ accepted: true, tags }).toEqual(plan);
      this.#check(outcome.record, { start, end, bandwidth }, step);
      return;
    }
    expect(due || undefined).toBeUndefined();
    expect(await this.#rows()).toEqual(before);
    const plan = this.#oracle.plan(outcome.demand, undefined, tenant);
    const capacity = this.#link.bandwidth;
    const parts = this.#oracle.parts(window);
    const free = Math.min(...parts.map(({ bandwidth }) => bandwidth));
    const limited = { limit: 'bandwidth', capacity, free, start, end };
    // A transfer may be limited to less than it needs.
    const isTooLow =
      'volume' in search && window.bandwidth < capacity && window.bandwidth < outcome.demand.bandwidth;
    const asked = { now: this.#now, expiry: this.#expiry, startsNow };
    expect(outcome).toEqual({
      ...{
        ok: false,
        reason: 'refused',
        ...this.#way(step.reversed),
        tenant,
        demand: outcome.demand,
      },
      refusals: plan.accepted ? [limited] : plan.refusals,
      tooLow: isTooLow ? { volume: search.volume, most: window.bandwidth } : undefined,
      free: parts,
      offers: this.#oracle.searchOffers(window, search, asked),
    });
    expect(outcome.demand.start >= start && outcome.demand.end <= end).toBe(true);
    await this.#askFor(outcome.offers, allocator, step);
  }

  /** Checks a reservation that was made, and keeps it. */
  #check(made: ReservationRecord, demand: Demand, { dryRun, reversed, experiment }: Step): void {
    const { id, hops, ...record } = made;
    const [{ tags }] = hops;
    const { site1, site2 } = this.#sites(reversed);
    expect(hops).toEqual([{ link: this.#id, tags }]);
    expect(record).toMatchObject({
      site1,
      site2,
      ...demand,
      experiment,
      tenant: tenantOf({ experiment }),
    });
    if (dryRun) return;
    this.#created.push(id);
    this.#oracle.hold(id, { ...demand, tags, tenant: record.tenant });
  }

  /** Asks for each alternative to a refused booking. One that does not start now is asked for a second later too. */
  async #askFor(offers: readonly Offer[], allocator: Allocator, step: Step): Promise<void> {
    for (const offer of offers) {
      count(`offer: ${offer.kind}${offer.startsNow ? ' now' : ''}`);
      await this.#after(step.startsNow ? [0, 1000] : [0], async () => {
        const demand = this.#demandOf(offer);
        const answer = await allocator.create({ ...this.#who(step), ...demand }, true);
        expect(answer).toMatchObject({ ok: true, record: demand });
      });
    }
  }

  async #update(allocator: Allocator, step: Step): Promise<void> {
    const id = this.#pick(step);
    const current = this.#oracle.held.get(id);
    const start = step.moves ? this.#startOf(step) : undefined;
    const end = step.resizes ? (start ?? current?.start ?? 0) + step.length * this.#unit : undefined;
    const change = {
      ...(start !== undefined && { start, startsNow: step.startsNow }),
      ...(end !== undefined && { end }),
      ...(step.rescales && { bandwidth: step.bandwidth }),
    };
    const ask = (request: UpdateRequest, dryRun: boolean): Promise<OneOutcome | undefined> =>
      allocator.update(id, request, {
        by: 'user',
        expiry: this.#expiry,
        check: (...both) => this.#fault(...both),
        dryRun,
      });

    const before = await this.#rows();
    const outcome = await ask(change, step.dryRun);
    note('update', outcome);
    if (step.dryRun || !outcome?.ok) expect(await this.#rows()).toEqual(before);
    if (!current) {
      expect(outcome).toBeUndefined();
      return;
    }
    const demand = {
      start: start ?? current.start,
      end: end ?? current.end,
      bandwidth: step.rescales ? step.bandwidth : current.bandwidth,
    };
    const fault = this.#fault(current, demand);
    if (fault !== undefined) {
      expect(outcome).toEqual({ ok: false, reason: 'rule', problems: fault });
      return;
    }
    const { tenant } = current;
    this.#oracle.tenant = tenant;
    const grows =
      demand.start < current.start || demand.end > current.end || demand.bandwidth > current.bandwidth;
    const due = this.#oracle.plan(demand, id, grows ? tenant : undefined);
    if (outcome?.ok) {
      const [{ tags }] = outcome.record.hops;
      expect({ accepted: true, tags }).toEqual(due);
      expect(outcome.record).toMatchObject({ id, hops: [{ link: this.#id }], ...demand });
      if (!step.dryRun) this.#oracle.hold(id, { ...current, ...demand, tags });
    } else if (outcome?.reason === 'refused') {
      const startsNow = step.moves && step.startsNow;
      const movable = step.moves && current.start > this.#now;
      const asked = { now: this.#now, expiry: this.#expiry, own: id, movable, startsNow };
      expect(outcome).toEqual({
        ...{ ok: false, reason: 'refused', link: this.#link, isHop: false, tenant, demand },
        sites: expect.any(Array),
        refusals: due.accepted ? [] : due.refusals,
        free: this.#oracle.parts(demand, id),
        offers: this.#oracle
          .offers(demand, asked)
          .filter((offer) => this.#fault(current, offer) === undefined),
      });
      for (const offer of outcome.offers) {
        count(`update offer: ${offer.kind}${offer.startsNow ? ' now' : ''}`);
        await this.#after(startsNow ? [0, 1000] : [0], async () => {
          const next = this.#demandOf(offer);
          expect(await ask(next, true)).toMatchObject({ ok: true, record: next });
        });
      }
    } else expect.unreachable('an update that is right was called a fault');
  }

  async #delete(allocator: Allocator, step: Step): Promise<void> {
    const id = this.#pick(step);
    const done = await allocator.delete(id, { by: 'user' });
    expect(done).toBe(this.#oracle.held.has(id));
    this.#oracle.drop(id);
    count(`delete: ${done ? 'done' : 'gone'}`);
  }

  /** A server's rules about dates: an ended reservation is not updated, and a new one does not start in the past. */
  #fault(current: Demand, { start, end }: Demand): readonly Problem[] | undefined {
    const problem = (msg: string): readonly Problem[] => [{ code: 'date_invalid', msg }];
    if (current.end <= this.#now) return problem('it has ended');
    if (start !== current.start && start < this.#now) return problem('it would start in the past');
    if (end <= this.#now || end <= start) return problem('it would end too early');
    return undefined;
  }

  get #expiry(): number {
    return DAWN + 30 * this.#unit;
  }

  #startOf({ start, startsNow }: Step): number {
    return startsNow ? this.#now : Math.max(this.#now, DAWN + start * this.#unit);
  }

  /** An alternative as it is asked for now. */
  #demandOf({ startsNow, start, end, bandwidth }: Offer): Demand {
    return { start: startsNow ? this.#now : start, end, bandwidth };
  }

  /** Does something now, and later. */
  async #after(delays: readonly number[], ask: () => Promise<void>): Promise<void> {
    const now = this.#now;
    for (const delay of delays) {
      this.#now = now + delay;
      await ask();
    }
    this.#now = now;
  }

  #pick({ pick, gone }: Step): string {
    const known = gone ? this.#created : [...this.#oracle.held.keys()];
    return known[pick % (known.length + (gone ? 1 : 0))] ?? 'unknown';
  }

  #sites(reversed: boolean): { site1: string; site2: string } {
    const { site1, site2 } = this.#link;
    return reversed ? { site1: site2, site2: site1 } : { site1, site2 };
  }

  /** The link as a demand between its sites passes it. */
  #way(reversed: boolean) {
    const { site1, site2 } = this.#sites(reversed);
    return { link: this.#link, sites: [site1, site2], isHop: false };
  }

  /** Who books between which sites. */
  #who({ reversed, experiment }: Step) {
    return {
      ...this.#sites(reversed),
      experiment,
      tenant: tenantOf({ experiment }),
      createdBy: 'user',
      expiry: this.#expiry,
    };
  }

  /** All rows of this link. */
  async #rows(): Promise<unknown> {
    return {
      reservations: await this.#opened.rows(
        `SELECT * FROM reservation WHERE id IN (SELECT reservation FROM hop WHERE link = $1) ORDER BY id`,
        this.#id,
      ),
      hops: await this.#opened.rows('SELECT * FROM hop WHERE link = $1 ORDER BY reservation', this.#id),
    };
  }

  #allocator(): Allocator {
    return new Allocator({
      network: createNetwork({ sites: [this.#link.site1, this.#link.site2], links: [this.#link] }),
      store: this.#opened.store,
      now: () => this.#now,
      newId: () => `${this.#id}-${String(this.#ids++).padStart(3, '0')}`,
      maxShare: this.#share,
    });
  }
}

function note(kind: string, outcome: Outcome | OneOutcome | undefined): void {
  if (!outcome) count(`${kind}: gone`);
  else if (outcome.ok) count(`${kind}: accepted`);
  else if (outcome.reason !== 'refused') count(`${kind}: ${outcome.reason}`);
  else count(`${kind}: ${[...new Set(outcome.refusals.map(({ limit }) => limit))].join(' and ')}`);
}

function count(kind: string): void {
  seen.set(kind, (seen.get(kind) ?? 0) + 1);
}
