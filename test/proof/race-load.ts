import { text } from 'node:stream/consumers';
import { TAG_PLACES } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import { type ReservationRecord, StoreUnavailableError } from '../../src/allocator/store.ts';
import {
  Allocator,
  type ChangeOutcome,
  type Item,
  type OneOutcome,
  type Replay,
} from '../allocator/allocator.ts';
import { openEither } from '../store/opened-store.ts';
import { chanceFrom } from './chance.ts';
import { nameInBatch } from './halves.ts';
import { isRouted, markedBandwidth, PAIRS, type Pair, TOPOLOGY } from './links.ts';

/** What a racing process is to do once it is told to begin. */
export interface RaceLoadOrder {
  database: string;
  /** Comes before the ids of what it books. */
  name: string;
  seed: number;
  connections: number;
  /** Requests that each connection makes. */
  requests: number;
  /** Of the pairs of sites, the first so many. */
  pairs: number;
  /** Sites that no route passes; with any, all other routes may be taken. */
  avoid: readonly string[];
  /** The first instant that is booked: another for each round, so that what an earlier one left does not fill it. */
  dawn: number;
}

/** What one of its reservations became. */
export interface RaceHolding {
  id: string;
  start: number;
  end: number;
  bandwidth: number;
  /** Each link with its four tags, in the route's order. */
  hops: readonly (readonly unknown[])[];
  deleted: boolean;
}

/** What came of it. */
export interface RaceLoadResult {
  requests: number;
  /** How many of them were batches, and how many of those were made. */
  batches: number;
  made: number;
  acknowledged: number;
  refused: number;
  unanswered: number;
  holdings: RaceHolding[];
  /** Ids of which the last answer got lost. */
  unsure: string[];
  /** Errors that are not a database's being busy. */
  errors: string[];
}

// Run as a process of its own: the order as JSON in argv; `ready` once every connection is open; it begins when stdin ends.
const order: RaceLoadOrder = JSON.parse(process.argv[2] ?? '');
const opened = await Promise.all(Array.from({ length: order.connections }, () => openEither(order.database)));
const result: RaceLoadResult = {
  requests: 0,
  batches: 0,
  made: 0,
  acknowledged: 0,
  refused: 0,
  unanswered: 0,
  holdings: [],
  unsure: [],
  errors: [],
};
/** So many instants, that back-to-back and equal ends are common. */
const INSTANTS = 24;
/**
 * Items of a batch, at most. Each takes instants of its own, so that what one is refused, it would be refused alone: so
 * the replay can tell, which does not know of batches.
 */
const ITEMS = 3;
const APART = 9;
const UPDATING = { by: 'user', expiry: 1_000_000, check: () => undefined };
let ids = 0;
process.stdout.write('ready');
await text(process.stdin);
await Promise.all(
  opened.map(async ({ store }, connection) => {
    const chance = chanceFrom(order.seed + connection);
    const allocator = new Allocator({
      network: createNetwork(TOPOLOGY),
      store,
      now: () => 0,
      newId: () => `${order.name}-${connection}-${String(ids++).padStart(8, '0')}`,
    });
    const own = new Map<string, RaceHolding>();

    const keep = ({ id, start, end, bandwidth, hops }: ReservationRecord): void => {
      const held = hops.map(({ link, tags }) => [link, ...TAG_PLACES.map((place) => tags[place])]);
      own.set(id, { id, start, end, bandwidth, hops: held, deleted: false });
    };
    const drop = (id: string): void => {
      const held = own.get(id);
      if (held) held.deleted = true;
    };

    /** Asks. @param ids of what nobody knows if the answer gets lost @returns undefined where it did */
    const ask = async <Answer>(
      ids: readonly string[],
      work: () => Promise<Answer>,
    ): Promise<{ answer: Answer } | undefined> => {
      result.requests += 1;
      try {
        return { answer: await work() };
      } catch (error) {
        result.unanswered += 1;
        if (!(error instanceof StoreUnavailableError)) result.errors.push(String(error));
        result.unsure.push(...ids);
        for (const id of ids) own.delete(id);
        return undefined;
      }
    };

    /** Takes the answer to a single request over. */
    const take = (id: string, outcome: OneOutcome | Replay | OneOutcome | boolean | undefined): void => {
      if (outcome === undefined || outcome === false) result.errors.push(`${id} was gone`);
      else if (outcome === true) {
        drop(id);
        result.acknowledged += 1;
      } else if (outcome.ok) {
        if (outcome.record) keep(outcome.record);
        result.acknowledged += 1;
      } else if (outcome.reason === 'refused') result.refused += 1;
      else result.errors.push(`${id}: ${outcome.reason}`);
    };

    /** Takes the answer to a batch over: all of it, or nothing. */
    const takeAll = (items: readonly Item[], outcome: ChangeOutcome): void => {
      result.batches += 1;
      if (outcome.ok) {
        result.acknowledged += 1;
        result.made += 1;
        for (const record of outcome.records) if (record) keep(record);
        for (const item of items) if (item.action === 'delete') drop(item.id);
      } else if (outcome.reason !== 'refused') result.errors.push(`a batch: ${outcome.reason}`);
      else {
        result.refused += 1;
        const others = outcome.items.filter((item) => !item.ok && item.reason !== 'refused');
        if (others.length > 0) result.errors.push(`a batch: ${JSON.stringify(others)}`);
      }
    };

    const drawPair = (): Pair => {
      const { site1, site2 } = PAIRS[chance.below(order.pairs)] ?? PAIRS[0];
      return { site1, site2 };
    };
    const isOnSnapshot = (pair: Pair): boolean => order.avoid.length > 0 || isRouted(pair);
    const who = { experiment: 'exp', createdBy: 'user', expiry: 1_000_000, avoid: [...order.avoid] };

    const batch = async (name: string): Promise<void> => {
      const free = [...own.values()].filter(({ deleted }) => !deleted);
      const bandwidth = (): number => 10 + chance.below(120);
      const drawn = Array.from({ length: 2 + chance.below(ITEMS - 1) }, (_, index) => {
        const start = order.dawn + index * APART + chance.below(APART - 4);
        const terms = { start, end: start + 1 + chance.below(4), bandwidth: bandwidth() };
        const id = chance.is(60) ? undefined : free.splice(chance.below(free.length), 1)[0]?.id;
        return { id, terms, isDeletion: chance.is(50), pair: drawPair() };
      });
      const created = drawn.filter(({ id }) => id === undefined);
      // One of them has all of the batch decided on a snapshot first.
      const isMarked = created.some(({ pair }) => isOnSnapshot(pair));
      let index = 0;
      const items = drawn.map(({ id, pair, isDeletion, ...each }): Item => {
        const terms = { ...each.terms, bandwidth: markedBandwidth(each.terms.bandwidth, isMarked) };
        if (id !== undefined) {
          if (isDeletion) return { action: 'delete', id, terms: { by: 'user' } };
          return { action: 'update', id, update: terms, terms: UPDATING };
        }
        const request = { ...pair, ...terms, ...who, name: nameInBatch(name, created.length, index++) };
        return { action: 'create', request };
      });
      const keyed = { key: name, fingerprint: name, createdBy: 'user', experiment: 'exp' };
      const ids = drawn.flatMap(({ id }) => id ?? []);
      const asked = await ask(ids, () => allocator.batch(items, chance.is(50) ? { keyed } : {}));
      if (asked) takeAll(items, asked.answer);
    };

    for (let made = 0; made < order.requests; made += 1) {
      const start = order.dawn + chance.below(INSTANTS);
      const pair = drawPair();
      const bandwidth = 10 + chance.below(240);
      const terms = { start, end: start + 1 + chance.below(6), bandwidth: markedBandwidth(bandwidth, false) };
      const live = chance.of([...own.values()].filter(({ deleted }) => !deleted));
      const action = chance.below(100);
      const key = `${order.name}-${connection}-${made}`;
      if (action < 25) await batch(key);
      else if (!live || action < 55) {
        const marked = markedBandwidth(bandwidth, isOnSnapshot(pair));
        const request = { ...pair, ...terms, bandwidth: marked, ...who };
        const keyed = { ...request, key, fingerprint: key };
        const asked = await ask([], () =>
          action % 2 === 0 ? allocator.create(request) : allocator.create(keyed),
        );
        if (asked) take(key, asked.answer);
      } else if (action < 80) {
        const asked = await ask([live.id], () => allocator.update(live.id, terms, UPDATING));
        if (asked) take(live.id, asked.answer);
      } else {
        const asked = await ask([live.id], () => allocator.delete(live.id, { by: 'user' }));
        if (asked) take(live.id, asked.answer);
      }
    }
    result.holdings.push(...own.values());
  }),
);
await Promise.all(opened.map(({ close }) => close()));
process.stdout.write(JSON.stringify(result));
