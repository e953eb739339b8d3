import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { KEY_LIFETIME, type KeyedRequest } from '../../src/allocator/decide.ts';
import type { Demand } from '../../src/allocator/demand.ts';
import { yieldToEventLoop } from '../../src/allocator/event-loop.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import type { ReservationStore, StoreTransaction, WrittenChange } from '../../src/allocator/store.ts';
import { linkId } from '../../src/contract/links.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type OpenedStore, openSqlite } from '../store/opened-store.ts';
import { Allocator, type Outcome, type Replay } from './allocator.ts';
import { smallLink } from './small-link.ts';
import { sweep } from './sweep.ts';

const AB = smallLink();
/** Its C-tags at `a` differ from those of the link to `b`. */
const AC = smallLink({ site2: 'c', site1_c_tags: [4, 6] });
const ALL: Demand = { start: 10, end: 20, bandwidth: 1000 };
const SOME: Demand = { start: 10, end: 20, bandwidth: 100 };

type Asked = Partial<KeyedRequest> & { to?: 'b' | 'c' };
type Booked = Outcome | Replay;

let folder: string;
let path: string;
let opened: OpenedStore;
let clock: number;
let ids: number;

beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder, 'links.db');
  opened = await openSqlite(path);
  clock = 0;
  ids = 0;
});
afterEach(async () => {
  await opened.close();
});

describe('a failure during a request under a key', () => {
  const steps = ['findKey', 'write'] as const;

  test.each(steps)(
    'at %s leaves neither a key nor a reservation, and the request can be sent again',
    async (step) => {
      const faults = { next: true };
      const allocator = start(failsAt(opened.store, step, faults));
      await expect(create(allocator, ALL)).rejects.toThrow('on purpose');
      expect(await keyRows()).toEqual([]);
      expect(await liveIds()).toEqual([]);
      expect(await create(allocator, ALL)).toMatchObject({ ok: true });
      expect(await liveIds()).toHaveLength(1);
      expect(await sweep(opened, linkId('a', 'b'), AB)).toEqual([]);
    },
  );

  test('at the commit leaves neither', async () => {
    const faults = { next: true };
    const allocator = start({
      ...opened.store,
      changeLinks: (links, work) =>
        opened.store.changeLinks(links, async (transaction) => {
          const answer = await work(transaction);
          failOnce(faults);
          return answer;
        }),
    });
    await expect(create(allocator, ALL)).rejects.toThrow('on purpose');
    expect(await keyRows()).toEqual([]);
    expect(await create(allocator, ALL)).toMatchObject({ ok: true });
    expect(await liveIds()).toHaveLength(1);
  });

  test('after the commit leaves both: the replay gets the reservation whose answer was lost', async () => {
    const faults = { next: true };
    const allocator = start({
      ...opened.store,
      changeLinks: async (links, work) => {
        const answer = await opened.store.changeLinks(links, work);
        failOnce(faults);
        return answer;
      },
    });
    await expect(create(allocator, ALL)).rejects.toThrow('on purpose');
    expect(await create(allocator, ALL)).toMatchObject({ ok: true, replayed: true, record: { id: 'r0' } });
    expect(await liveIds()).toEqual(['r0']);
  });
});

describe('many requests at once under one key', () => {
  test('for two links book one of them, and the others learn that the key is taken', async () => {
    const answers = await forTwoLinks(opened.store);
    expect(answers.filter(({ ok }) => ok)).toHaveLength(10);
    expect(answers.filter((answer) => !answer.ok && answer.reason === 'key_taken')).toHaveLength(10);
    expect(new Set(answers.flatMap((answer) => (answer.ok ? [idIn(answer)] : [])))).toEqual(
      new Set(await liveIds()),
    );
    expect(await liveIds()).toHaveLength(1);
  });

  test('without the lock on keys, the database refuses the second insert', async () => {
    // A database with row locks can show this state: the key is free for all, and nothing is committed yet.
    const blind = wrapped(opened.store, (transaction) => ({
      ...transaction,
      findKey: async () => undefined,
    }));
    const answers = await Promise.allSettled(
      (['b', 'c'] as const).map((to) => create(start(blind), SOME, { to })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(await liveIds()).toHaveLength(1);
  });

  test('a store that writes keys in a transaction of their own makes several reservations', async () => {
    const answers = await forTwoLinks(remembersLater(opened.store));
    expect(answers.filter(({ ok }) => ok).length).toBeGreaterThan(1);
    expect((await liveIds()).length).toBeGreaterThan(1);
  });

  async function forTwoLinks(store: ReservationStore): Promise<Booked[]> {
    return Promise.all(
      twenty([start(store), start(store)]).map((allocator, index) =>
        create(allocator, SOME, { to: index % 4 < 2 ? 'b' : 'c' }),
      ),
    );
  }
});

function start(store = opened.store): Allocator {
  return new Allocator({
    network: createNetwork({ sites: ['a', 'b', 'c'], links: [AB, AC] }),
    store,
    now: () => clock,
    newId: () => `r${ids++}`,
  });
}

function keyed(demand: Demand, { to = 'b', ...asked }: Asked = {}): KeyedRequest {
  const fingerprint = JSON.stringify([to, demand]);
  return { createdBy: 'user', experiment: 'exp', key: 'key', fingerprint, ...asked };
}

function create(allocator: Allocator, demand: Demand, asked: Asked = {}): Promise<Booked> {
  const { to = 'b' } = asked;
  const expiry = KEY_LIFETIME * 100;
  return allocator.create({ site1: 'a', site2: to, ...demand, expiry, ...keyed(demand, asked) });
}

function twenty(allocators: readonly Allocator[]): Allocator[] {
  return Array.from({ length: 20 / allocators.length }, () => allocators).flat();
}

function idIn(answer: Booked): string {
  if (!answer.ok) throw new Error(answer.reason);
  return answer.record.id;
}

async function liveIds(): Promise<unknown[]> {
  const rows = await opened.rows('SELECT id FROM reservation WHERE deleted_ms IS NULL ORDER BY id');
  return rows.map(({ id }) => id);
}

function keyRows(): Promise<unknown[]> {
  return opened.rows('SELECT * FROM idempotency_key');
}

/** When `next` is set, the next step fails once. */
interface Faults {
  next: boolean;
}

function failOnce(faults: Faults): void {
  if (!faults.next) return;
  faults.next = false;
  throw new Error('on purpose');
}

function wrapped(
  store: ReservationStore,
  wrap: (transaction: StoreTransaction) => StoreTransaction,
): ReservationStore {
  return { ...store, changeLinks: (links, work) => store.changeLinks(links, (inner) => work(wrap(inner))) };
}

/** A store that fails once after a step. */
function failsAt(store: ReservationStore, step: 'findKey' | 'write', faults: Faults): ReservationStore {
  const failing =
    <Arguments extends unknown[], Answer>(work: (...given: Arguments) => Promise<Answer>) =>
    async (...given: Arguments): Promise<Answer> => {
      const answer = await work(...given);
      failOnce(faults);
      return answer;
    };
  return wrapped(store, (inner) => ({ ...inner, [step]: failing<never[], unknown>(inner[step]) }));
}

/** A store with the mistake: it books in one transaction and writes the key in another. */
function remembersLater(store: ReservationStore): ReservationStore {
  return {
    ...store,
    changeLinks: async (links, work) => {
      const later: [WrittenChange, number][] = [];
      const answer = await store.changeLinks(links, (inner) =>
        work({
          ...inner,
          write: async ({ changes, audit }, now) => {
            later.push(...changes.map((change): [WrittenChange, number] => [change, now]));
            await inner.write({ changes: changes.map(({ key: _, ...change }) => change), audit }, now);
          },
        }),
      );
      // The other allocator decides meanwhile.
      await yieldToEventLoop();
      await store.changeLinks(links, async (inner) => {
        for (const [change, now] of later) {
          const taken = change.key && (await inner.findKey(change.key, now));
          if (!taken) await inner.write({ changes: [{ ...change, action: 'update' }], audit: [] }, now);
        }
      });
      return answer;
    },
  };
}
