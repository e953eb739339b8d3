import { text } from 'node:stream/consumers';
import { Allocator } from '../../src/allocator/allocator.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import type { Outcome, Replay, UpdateOutcome } from '../../src/allocator/operations.ts';
import { StoreUnavailableError } from '../../src/allocator/store.ts';
import { openEither } from '../store/opened-store.ts';
import { chanceFrom } from './chance.ts';
import { LINKS, TOPOLOGY } from './links.ts';

/** What a racing process is to do once it is told to begin. */
export interface RaceLoadOrder {
  database: string;
  /** Comes before the ids of what it books. */
  name: string;
  seed: number;
  connections: number;
  /** Requests that each connection makes. */
  requests: number;
  /** Of the links, the first so many. */
  links: number;
  /** The first instant that is booked: another for each round, so that what an earlier one left does not fill it. */
  dawn: number;
}

/** What one of its reservations became. */
export interface RaceHolding {
  id: string;
  start: number;
  end: number;
  bandwidth: number;
  tags: readonly number[];
  deleted: boolean;
}

/** What came of it. */
export interface RaceLoadResult {
  requests: number;
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
  acknowledged: 0,
  refused: 0,
  unanswered: 0,
  holdings: [],
  unsure: [],
  errors: [],
};
/** So many instants, that back-to-back and equal ends are common. */
const INSTANTS = 24;
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

    /** Asks, and takes the answer over. */
    const ask = async (
      id: string | undefined,
      work: () => Promise<Outcome | Replay | UpdateOutcome<never> | boolean | undefined>,
    ): Promise<void> => {
      result.requests += 1;
      try {
        const outcome = await work();
        if (outcome === undefined || outcome === false) result.errors.push(`${id} was gone`);
        else if (outcome === true) {
          const held = own.get(id ?? '');
          if (held) held.deleted = true;
          result.acknowledged += 1;
        } else if (outcome.ok) {
          const { tags, ...record } = outcome.record;
          const { start, end, bandwidth } = record;
          const four = [tags.site1_s_tag, tags.site1_c_tag, tags.site2_s_tag, tags.site2_c_tag];
          own.set(record.id, { id: record.id, start, end, bandwidth, tags: four, deleted: false });
          result.acknowledged += 1;
        } else if (outcome.reason === 'refused') result.refused += 1;
        else result.errors.push(`${id}: ${outcome.reason}`);
      } catch (error) {
        result.unanswered += 1;
        if (!(error instanceof StoreUnavailableError)) result.errors.push(String(error));
        if (id === undefined) return;
        result.unsure.push(id);
        own.delete(id);
      }
    };

    for (let made = 0; made < order.requests; made += 1) {
      const start = order.dawn + chance.below(INSTANTS);
      const terms = { start, end: start + 1 + chance.below(6), bandwidth: 10 + chance.below(240) };
      const live = chance.of([...own.values()].filter(({ deleted }) => !deleted));
      const action = chance.below(100);
      if (!live || action < 40) {
        const { site1, site2 } = LINKS[chance.below(order.links)] ?? LINKS[0];
        const request = { site1, site2, ...terms, experiment: 'exp', createdBy: 'user', expiry: 1_000_000 };
        const key = `${order.name}-${connection}-${result.requests}`;
        const keyed = { ...request, key, fingerprint: key };
        await ask(undefined, () => (action % 2 === 0 ? allocator.create(request) : allocator.create(keyed)));
      } else if (action < 70) {
        await ask(live.id, () =>
          allocator.update<never>(live.id, terms, { by: 'user', expiry: 1_000_000, check: () => undefined }),
        );
      } else await ask(live.id, () => allocator.delete(live.id, { by: 'user' }));
    }
    result.holdings.push(...own.values());
  }),
);
await Promise.all(opened.map(({ close }) => close()));
process.stdout.write(JSON.stringify(result));
