import fc from 'fast-check';
import { expect } from 'vitest';
import { Allocator } from '../../src/allocator/allocator.ts';
import type { Demand } from '../../src/allocator/demand.ts';
import { createNetwork, linkId } from '../../src/allocator/network.ts';
import type { CreateRequest, Outcome, UpdateOutcome } from '../../src/allocator/operations.ts';
import type { Link, TagRange } from '../../src/contract/links.ts';
import type { MakeSubject, Subject } from '../proof/subject.ts';
import type { OpenedStore } from '../store/opened-store.ts';
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
}

/** One event of a history. */
export interface Step {
  kind: 'book' | 'amend' | 'cancel';
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
  /** What an amendment changes. */
  moves: boolean;
  resizes: boolean;
  rescales: boolean;
}

const range = fc
  .tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 2, max: 4 }))
  .map(([from, size]): TagRange => [from, from + size - 1]);

/** Links of a history's own. */
export const shapes: fc.Arbitrary<Shape> = fc.record({
  bandwidth: fc.integer({ min: 3, max: 12 }),
  ranges: fc.tuple(range, range, range, range),
});

const mostly = (weight: number): fc.Arbitrary<boolean> =>
  fc.oneof({ arbitrary: fc.constant(false), weight: 1 }, { arbitrary: fc.constant(true), weight });
const seldom = (weight: number): fc.Arbitrary<boolean> => mostly(weight).map((yes) => !yes);

/** What happens in a history. */
export const steps: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('book', 'book', 'book', 'book', 'amend', 'amend', 'amend', 'cancel'),
  pause: fc.constantFrom(0, 0, 0, 1, 1, 2),
  asked: fc.nat(1),
  restart: seldom(12),
  dryRun: seldom(6),
  pick: fc.nat(20),
  gone: seldom(8),
  start: fc.nat(20),
  length: fc.integer({ min: 1, max: 9 }),
  bandwidth: fc.integer({ min: 1, max: 4 }),
  reversed: fc.boolean(),
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
  readonly #allocators: Subject[];
  readonly #make: MakeSubject;
  readonly #booked: string[] = [];
  #now = DAWN;
  #ids = 0;

  /**
   * @param number distinguishes it from the database's other histories
   * @param make makes the allocators; default: the real one
   */
  constructor(
    opened: OpenedStore,
    { bandwidth, ranges }: Shape,
    { allocators, number, make }: { allocators: number; number: number; make?: MakeSubject },
  ) {
    this.#make = make ?? ((options) => new Allocator(options));
    const [site1_s_tags, site1_c_tags, site2_s_tags, site2_c_tags] = ranges;
    const sites = { site1: `a${number}`, site2: `b${number}` };
    this.#link = { ...sites, bandwidth, site1_s_tags, site1_c_tags, site2_s_tags, site2_c_tags };
    this.#id = linkId(sites.site1, sites.site2);
    this.#opened = opened;
    this.#oracle = new Oracle(this.#link);
    this.#allocators = Array.from({ length: allocators }, () => this.#allocator());
  }

  async take(step: Step): Promise<void> {
    this.#now += step.pause;
    const asked = step.asked % this.#allocators.length;
    if (step.restart) this.#allocators[asked] = this.#allocator();
    const allocator = this.#allocators[asked] ?? this.#allocator();
    if (step.kind === 'book') await this.#book(allocator, step);
    if (step.kind === 'amend') await this.#amend(allocator, step);
    if (step.kind === 'cancel') await this.#cancel(allocator, step);
  }

  /** Checks the database without the allocator. */
  async conclude(): Promise<void> {
    expect(await sweep(this.#opened, this.#id, this.#link)).toEqual([]);
    const rows = await this.#opened.rows(
      'SELECT id FROM reservation WHERE link = $1 AND cancelled_ms IS NULL ORDER BY id',
      this.#id,
    );
    expect(rows.map(({ id }) => id)).toEqual([...this.#oracle.held.keys()].toSorted());
  }

  async #book(allocator: Subject, step: Step): Promise<void> {
    const start = Math.max(this.#now, DAWN + step.start);
    const demand = { start, end: start + step.length, bandwidth: step.bandwidth };
    const before = await this.#rows();
    const outcome = await allocator.create(this.#request(demand, step.reversed), step.dryRun);
    const due = this.#oracle.plan(demand, this.#now);
    if (outcome.ok) {
      const { id, tags, reversed, ...record } = outcome.record;
      expect({ accepted: true, tags }).toEqual(due);
      expect({ reversed, ...record }).toMatchObject({ reversed: step.reversed, ...demand, link: this.#id });
      if (!step.dryRun) {
        this.#booked.push(id);
        this.#oracle.hold(id, { ...demand, tags });
      }
    } else {
      expect({ accepted: false, refusals: outcome.refusals }).toEqual(due);
      expect(outcome.free).toEqual(this.#oracle.parts(demand));
      expect(outcome.offers).toEqual(this.#oracle.offers(demand, { now: this.#now, expiry: this.#expiry }));
      for (const offer of outcome.offers) {
        const answer = await allocator.create(this.#request(offer, step.reversed), true);
        expect(answer).toMatchObject({ ok: true, record: toDemand(offer) });
        count(`offer: ${offer.kind}`);
      }
    }
    if (step.dryRun || !outcome.ok) expect(await this.#rows()).toEqual(before);
    note('book', outcome);
  }

  async #amend(allocator: Subject, step: Step): Promise<void> {
    const id = this.#pick(step);
    const current = this.#oracle.held.get(id);
    const start = step.moves ? Math.max(this.#now, DAWN + step.start) : undefined;
    const end = step.resizes ? (start ?? current?.start ?? 0) + step.length : undefined;
    const amendment = {
      ...(start !== undefined && { start }),
      ...(end !== undefined && { end }),
      ...(step.rescales && { bandwidth: step.bandwidth }),
    };
    const ask = (change: Partial<Demand>, dryRun: boolean): Promise<UpdateOutcome<string> | undefined> =>
      allocator.update(id, change, {
        by: 'user',
        expiry: this.#expiry,
        check: (...both) => this.#fault(...both),
        dryRun,
      });

    const before = await this.#rows();
    const outcome = await ask(amendment, step.dryRun);
    note('amend', outcome);
    if (step.dryRun || !outcome?.ok) expect(await this.#rows()).toEqual(before);
    if (!current) {
      expect(outcome).toBeUndefined();
      return;
    }
    const demand = { start: current.start, end: current.end, bandwidth: current.bandwidth, ...amendment };
    const fault = this.#fault(current, demand);
    if (fault !== undefined) {
      expect(outcome).toEqual({ ok: false, reason: 'fault', fault });
      return;
    }
    const due = this.#oracle.plan(demand, this.#now, id);
    if (outcome?.ok) {
      const { tags } = outcome.record;
      expect({ accepted: true, tags }).toEqual(due);
      expect(outcome.record).toMatchObject({ id, link: this.#id, ...demand });
      if (!step.dryRun) this.#oracle.hold(id, { ...demand, tags });
    } else if (outcome?.reason === 'refused') {
      expect({ accepted: false, refusals: outcome.refusals }).toEqual(due);
      const movable = start !== undefined && current.start > this.#now;
      const asked = { now: this.#now, expiry: this.#expiry, own: id, movable };
      expect(outcome.free).toEqual(this.#oracle.parts(demand, id));
      expect(outcome.offers).toEqual(this.#oracle.offers(demand, asked));
      for (const offer of outcome.offers) {
        expect(await ask(toDemand(offer), true)).toMatchObject({ ok: true, record: toDemand(offer) });
        count(`amendment offer: ${offer.kind}`);
      }
    } else expect.unreachable('an amendment that is right was called a fault');
  }

  async #cancel(allocator: Subject, step: Step): Promise<void> {
    const id = this.#pick(step);
    const done = await allocator.delete(id, { by: 'user' });
    expect(done).toBe(this.#oracle.held.has(id));
    this.#oracle.drop(id);
    count(`cancel: ${done ? 'done' : 'gone'}`);
  }

  /** A server's rules about dates: an ended reservation is not updated, and a new one does not start in the past. */
  #fault(current: Demand, { start, end }: Demand): string | undefined {
    if (current.end <= this.#now) return 'it has ended';
    if (start !== current.start && start < this.#now) return 'it would start in the past';
    if (end <= this.#now || end <= start) return 'it would end too early';
    return undefined;
  }

  get #expiry(): number {
    return DAWN + 30;
  }

  #pick({ pick, gone }: Step): string {
    const known = gone ? this.#booked : [...this.#oracle.held.keys()];
    return known[pick % (known.length + (gone ? 1 : 0))] ?? 'unknown';
  }

  #request(demand: Demand, reversed: boolean): CreateRequest {
    const { site1, site2 } = this.#link;
    const sites = reversed ? { site1: site2, site2: site1 } : { site1, site2 };
    return { ...sites, ...demand, experiment: 'exp', createdBy: 'user', expiry: this.#expiry };
  }

  /** All rows of this link. */
  async #rows(): Promise<unknown> {
    return {
      reservations: await this.#opened.rows(
        'SELECT * FROM reservation WHERE link = $1 ORDER BY id',
        this.#id,
      ),
      tags: await this.#opened.rows(
        'SELECT * FROM tag_hold WHERE link = $1 ORDER BY place, tag, start_ms',
        this.#id,
      ),
    };
  }

  #allocator(): Subject {
    return this.#make({
      network: createNetwork({ sites: [this.#link.site1, this.#link.site2], links: [this.#link] }),
      store: this.#opened.store,
      now: () => this.#now,
      newId: () => `${this.#id}-${String(this.#ids++).padStart(3, '0')}`,
    });
  }
}

function toDemand({ start, end, bandwidth }: Demand): Demand {
  return { start, end, bandwidth };
}

function note(kind: string, outcome: Outcome | UpdateOutcome<string> | undefined): void {
  if (!outcome) count(`${kind}: gone`);
  else if (outcome.ok) count(`${kind}: accepted`);
  else if (outcome.reason === 'fault') count(`${kind}: fault`);
  else count(`${kind}: ${[...new Set(outcome.refusals.map(({ limit }) => limit))].join(' and ')}`);
}

function count(kind: string): void {
  seen.set(kind, (seen.get(kind) ?? 0) + 1);
}
