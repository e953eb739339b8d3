import { setImmediate as nextRound } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Demand } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import type { ChangeItem } from '../../src/allocator/decide.ts';
import {
  CommitUnknownError,
  type LinkReading,
  type ReservationStore,
  RolledBackError,
  StoreUnavailableError,
} from '../../src/allocator/store.ts';
import { linkId } from '../../src/contract/links.ts';
import type { Problem } from '../../src/contract/problems.ts';
import { type OpenedStore, openSqlite } from '../store/opened-store.ts';
import { Allocator, type Outcome } from './allocator.ts';
import { smallLink } from './small-link.ts';
import { sweep } from './sweep.ts';

const LINK = smallLink({
  site1_s_tags: [1, 40],
  site1_c_tags: [1, 40],
  site2_s_tags: [1, 40],
  site2_c_tags: [1, 40],
});
const BESIDE = { ...LINK, site1: 'c', site2: 'd' };
const ID = linkId('a', 'b');
const HOUR = 3_600_000;
/** What a caller's own check says. */
const SHORTER: readonly Problem[] = [{ code: 'date_invalid', msg: 'shorter' }];
const SOME: Demand = { start: 10, end: 20, bandwidth: 100 };

let opened: OpenedStore;
let clock: number;
let ids: number;
/** Counts the transactions. */
let transactions: number;
let counted: ReservationStore;

beforeEach(async () => {
  opened = await openSqlite();
  clock = 0;
  ids = 0;
  transactions = 0;
  counted = {
    ...opened.store,
    changeLinks: (links, work) => {
      transactions += 1;
      return opened.store.changeLinks(links, work);
    },
  };
});
afterEach(async () => {
  expect(await sweep(opened, ID, LINK)).toEqual([]);
  await opened.close();
});

function start(store = counted): Allocator {
  return new Allocator({
    network: createNetwork({ sites: ['a', 'b', 'c', 'd'], links: [LINK, BESIDE] }),
    store,
    now: () => clock,
    newId: () => `r${String(ids++).padStart(3, '0')}`,
  });
}

function book(allocator: Allocator, demand: Partial<Demand> = {}, dryRun = false): Promise<Outcome> {
  const who = { experiment: 'exp', createdBy: 'user', expiry: 100 * HOUR };
  return allocator.create({ site1: 'a', site2: 'b', ...SOME, ...demand, ...who }, dryRun);
}

async function booked(allocator: Allocator, demand: Partial<Demand> = {}): Promise<string> {
  const outcome = await book(allocator, demand);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.refusals));
  return outcome.record.id;
}

const liveIds = async (): Promise<unknown[]> =>
  (await opened.rows('SELECT id FROM reservation WHERE deleted_ms IS NULL ORDER BY id')).map(({ id }) => id);

function wrapped(
  store: ReservationStore,
  wrap: (reading: LinkReading) => Partial<LinkReading>,
): ReservationStore {
  return {
    ...store,
    changeLinks: (links, work) =>
      store.changeLinks(links, (inner) =>
        work({ ...inner, links: inner.links.map((link) => ({ ...link, ...wrap(link) })) }),
      ),
    readLinks: (work) =>
      store.readLinks((snapshot) =>
        work({
          ...snapshot,
          look: async (link) => snapshot.look(link).then((inner) => ({ ...inner, ...wrap(inner) })),
        }),
      ),
  };
}

describe('requests that wait for one link', () => {
  test('are decided in one transaction, each as if the earlier ones were committed', async () => {
    const allocator = start();
    const asked = Array.from({ length: 16 }, (_, index) =>
      book(allocator, { bandwidth: index < 8 ? 100 : 50 }),
    );
    const outcomes = await Promise.all(asked);
    expect(transactions).toBe(1);
    expect(outcomes.map(({ ok }) => ok)).toEqual(Array.from({ length: 16 }, (_, index) => index < 12));
    expect(outcomes[12]).toMatchObject({ refusals: [{ limit: 'bandwidth', free: 0 }] });
    expect(await liveIds()).toHaveLength(12);
    expect(await opened.rows('SELECT version FROM link WHERE id = $1', ID)).toEqual([{ version: 12 }]);
  });

  test('share a transaction with those that come until it has the link’s lock', async () => {
    const lock = Promise.withResolvers<void>();
    const allocator = start({
      ...counted,
      changeLinks: async (links, work) => {
        await lock.promise;
        return counted.changeLinks(links, work);
      },
    });
    const first = book(allocator, { bandwidth: 600 });
    await nextRound();
    const late = [600, 400].map((bandwidth) => book(allocator, { bandwidth }));
    lock.resolve();
    expect((await Promise.all([first, ...late])).map(({ ok }) => ok)).toEqual([true, false, true]);
    expect(transactions).toBe(1);
  });

  test('do not join a transaction that was given up, though it gets the lock in the end', async () => {
    const lock = Promise.withResolvers<void>();
    let late: Promise<unknown> | undefined;
    let asked = 0;
    const allocator = start({
      ...counted,
      changeLinks: async (links, work) => {
        asked += 1;
        if (asked === 2) await lock.promise;
        if (asked > 1) return counted.changeLinks(links, work);
        late = lock.promise.then(() => counted.changeLinks(links, work)).catch(() => undefined);
        throw new StoreUnavailableError('away');
      },
    });
    await expect(book(allocator)).rejects.toThrow('away');
    const second = book(allocator);
    await expect.poll(() => asked).toBe(2);
    const third = book(allocator);
    lock.resolve();
    await late;
    expect(await Promise.all([second, third])).toMatchObject([{ ok: true }, { ok: true }]);
    expect(await liveIds()).toHaveLength(2);
  });

  test('each get their own answer: creates, refusals, updates and deletes', async () => {
    const allocator = start();
    const [kept, gone] = [await booked(allocator), await booked(allocator)];
    transactions = 0;
    const change = (update: Partial<Demand>) =>
      allocator.update(kept, update, {
        by: 'user',
        expiry: HOUR,
        check: (current, { end }) => (end < current.end ? SHORTER : undefined),
      });
    // A change is looked up before it waits; so are these bookings, that all come in this order.
    const booking = (demand: Partial<Demand>): Promise<Outcome> =>
      opened.store.find('none').then(() => book(allocator, demand));
    const answers = await Promise.all([
      booking({ bandwidth: 900 }),
      change({ bandwidth: 200 }),
      allocator.delete(gone, { by: 'user' }),
      allocator.delete(gone, { by: 'user' }),
      change({ end: 15 }),
      booking({ bandwidth: 801 }),
      booking({ bandwidth: 800 }),
      change({ bandwidth: 201 }),
    ]);
    expect(transactions).toBe(1);
    expect(answers).toMatchObject([
      { ok: false, refusals: [{ free: 800 }] },
      { ok: true, record: { bandwidth: 200 } },
      true,
      false,
      { ok: false, reason: 'rule', problems: SHORTER },
      { ok: false, refusals: [{ free: 800 }] },
      { ok: true, record: { bandwidth: 800 } },
      { ok: false, refusals: [{ free: 200 }] },
    ]);
    // The audit has each decision in the order of the answers, without what decided nothing.
    const audit = await opened.rows('SELECT version, action, accepted FROM audit ORDER BY seq');
    expect(audit.slice(2).map(({ version, action, accepted }) => [version, action, accepted])).toEqual([
      [2, 'create', 0],
      [3, 'update', 1],
      [4, 'delete', 1],
      [4, 'create', 0],
      [5, 'create', 1],
      [5, 'update', 0],
    ]);
  });

  test('still succeed when one of them throws: only that one fails', async () => {
    const allocator = start();
    const id = await booked(allocator);
    const failing = (): never => {
      throw new TypeError('a bug of one caller');
    };
    const [one, bug, other] = await Promise.allSettled([
      book(allocator),
      allocator.update(id, { bandwidth: 1 }, { by: 'user', expiry: HOUR, check: failing }),
      book(allocator),
    ]);
    expect([one.status, bug.status, other.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(bug).toMatchObject({ reason: { message: 'a bug of one caller' } });
    expect(await liveIds()).toHaveLength(3);
    expect(await book(allocator, { bandwidth: 701 })).toMatchObject({ ok: false, refusals: [{ free: 700 }] });
  });

  test('still succeed when the database refuses one of them: only that one fails', async () => {
    const refusesThird: ReservationStore = {
      ...counted,
      changeLinks: (links, work) =>
        counted.changeLinks(links, (transaction) =>
          work({
            ...transaction,
            async write(decided, now) {
              await transaction.write(decided, now);
              if (decided.changes.some(({ record }) => record.bandwidth === 3))
                throw new Error('a tag is held');
            },
          }),
        ),
    };
    const allocator = start(refusesThird);
    const answers = await Promise.allSettled([1, 2, 3, 4].map((bandwidth) => book(allocator, { bandwidth })));
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(await opened.rows('SELECT bandwidth FROM reservation ORDER BY bandwidth')).toEqual(
      [1, 2, 4].map((bandwidth) => ({ bandwidth })),
    );
    expect(await book(allocator, { bandwidth: 994 })).toMatchObject({ ok: false, refusals: [{ free: 993 }] });
  });

  test('all get their answer when they are more than one group', async () => {
    const allocator = start();
    const outcomes = await Promise.all(
      Array.from({ length: 150 }, (_, index) => book(allocator, { start: index, end: index + 1 })),
    );
    expect(outcomes.every(({ ok }) => ok)).toBe(true);
    expect(transactions).toBe(3);
  });
});

describe('a database that fails', () => {
  test('fails all waiting requests at once while it is away, and nothing is changed', async () => {
    let asked = 0;
    let away = Promise.withResolvers<never>();
    const allocator = start({
      ...counted,
      changeLinks: (links, work) => {
        asked += 1;
        return asked === 1 ? away.promise : counted.changeLinks(links, work);
      },
    });
    const first = Array.from({ length: 3 }, () => book(allocator));
    await expect.poll(() => asked).toBe(1);
    const second = Array.from({ length: 3 }, () => book(allocator));
    away.reject(new StoreUnavailableError('away'));
    const answers = await Promise.allSettled([...first, ...second]);
    expect(answers.map((answer) => answer.status === 'rejected' && answer.reason.name)).toEqual(
      answers.map(() => 'StoreUnavailableError'),
    );
    expect(asked).toBe(1);
    away = Promise.withResolvers();
    expect(await book(allocator)).toMatchObject({ ok: true });
    expect(await liveIds()).toHaveLength(1);
  });

  test.each([
    ['is away', new StoreUnavailableError('away')],
    ['has rolled back', new RolledBackError('rolled back', { cause: new StoreUnavailableError('full') })],
  ])(
    'and %s, as changes over several links find: they and all behind them fail at once',
    async (_, error) => {
      let asked = 0;
      const failed = Promise.withResolvers<never>();
      const allocator = start({
        ...counted,
        changeLinks: () => {
          asked += 1;
          return failed.promise;
        },
      });
      const who = { experiment: 'exp', createdBy: 'user', expiry: 100 * HOUR };
      const beside = [LINK, BESIDE].map(({ site1, site2 }): ChangeItem => {
        return { action: 'create', request: { site1, site2, ...SOME, ...who } };
      });
      const changes = [1, 2, 3].map(() => allocator.change(beside));
      await expect.poll(() => asked).toBe(1);
      const behind = book(allocator);
      failed.reject(error);
      const answers = await Promise.allSettled([...changes, behind]);
      expect(answers.map((answer) => answer.status === 'rejected' && answer.reason.name)).toEqual(
        answers.map(() => 'StoreUnavailableError'),
      );
      expect(asked).toBe(1);
    },
  );

  test('leaves the outcome of a group unknown when its commit fails; later requests know that nothing was done', async () => {
    const lost = Promise.withResolvers<void>();
    let asked = 0;
    const allocator = start({
      ...counted,
      changeLinks: async (links, work) => {
        asked += 1;
        const answer = await counted.changeLinks(links, work);
        if (asked > 1) return answer;
        await lost.promise;
        throw new CommitUnknownError('lost');
      },
    });
    const first = [book(allocator), book(allocator)];
    await expect.poll(() => asked).toBe(1);
    const behind = book(allocator);
    lost.resolve();
    const answers = await Promise.allSettled([...first, behind]);
    expect(answers.map((answer) => answer.status === 'rejected' && answer.reason.name)).toEqual([
      'CommitUnknownError',
      'CommitUnknownError',
      'StoreUnavailableError',
    ]);
    expect(await liveIds()).toHaveLength(2);
    expect(await book(allocator, { bandwidth: 801 })).toMatchObject({ ok: false, refusals: [{ free: 800 }] });
  });
});

describe('row 64: one operation of a group throws, and then the database goes away', () => {
  const failing = (): never => {
    throw new TypeError('a bug of one caller');
  };

  /** Answers the group, and loses the `lost`th of the operations that are retried one by one. */
  async function askGroup(lost: number, error: StoreUnavailableError) {
    const id = await booked(start());
    let asked = 0;
    const allocator = start({
      ...counted,
      changeLinks: async (links, work) => {
        asked += 1;
        if (asked <= lost) return counted.changeLinks(links, work);
        throw error;
      },
    });
    const bug = allocator.update(id, { bandwidth: 1 }, { by: 'user', expiry: HOUR, check: failing });
    const others = Array.from({ length: 5 }, () => opened.store.find('none').then(() => book(allocator)));
    const answers = await Promise.allSettled([bug, ...others]);
    return { answers: answers.map((answer) => ('reason' in answer ? answer.reason.name : 'done')), asked };
  }

  test('the queue waits for it once: operations that were not retried know that nothing was done', async () => {
    const { answers, asked } = await askGroup(2, new StoreUnavailableError('away'));
    expect(answers).toEqual(['TypeError', ...Array.from({ length: 5 }, () => 'StoreUnavailableError')]);
    // The group, the one with the bug, and the one that found the database away.
    expect(asked).toBe(3);
    expect(await liveIds()).toHaveLength(1);
  });

  test('a lost commit of one operation leaves only that operation unknown', async () => {
    const { answers, asked } = await askGroup(3, new CommitUnknownError('lost'));
    expect(answers).toEqual([
      'TypeError',
      'done',
      'CommitUnknownError',
      ...Array.from({ length: 3 }, () => 'StoreUnavailableError'),
    ]);
    expect(asked).toBe(4);
  });

  test('the next operations are decided together again', async () => {
    let away = false;
    const allocator = start({
      ...counted,
      changeLinks: async (links, work) => {
        if (away) throw new StoreUnavailableError('away');
        return counted.changeLinks(links, work);
      },
    });
    const id = await booked(allocator);
    const gone = (): never => {
      away = true;
      return failing();
    };
    const bug = allocator.update(id, { bandwidth: 1 }, { by: 'user', expiry: HOUR, check: gone });
    const others = [1, 2].map(() => opened.store.find('none').then(() => book(allocator)));
    expect((await Promise.allSettled([bug, ...others])).map(({ status }) => status)).toEqual([
      'rejected',
      'rejected',
      'rejected',
    ]);
    away = false;
    transactions = 0;
    expect(await Promise.all([1, 2, 3].map(() => book(allocator)))).toMatchObject(
      [1, 2, 3].map(() => ({ ok: true })),
    );
    expect(transactions).toBe(1);
  });
});

describe('the calendar in memory', () => {
  test('is read for one link while other links answer', async () => {
    const loading = Promise.withResolvers<void>();
    const allocator = start({
      ...counted,
      async loadLink(link, from, take) {
        if (link === ID) await loading.promise;
        return counted.loadLink(link, from, take);
      },
    });
    const waiting = book(allocator);
    const who = { experiment: 'exp', createdBy: 'user', expiry: HOUR };
    expect(await allocator.create({ site1: 'c', site2: 'd', ...SOME, ...who })).toMatchObject({ ok: true });
    loading.resolve();
    expect(await waiting).toMatchObject({ ok: true });
  });

  test('evicts reservations that ended an hour ago, and reads them again for an update that reaches back', async () => {
    const read: [number, number][] = [];
    const watched = wrapped(counted, (reading) => ({
      endingBetween(after, until) {
        read.push([after, until]);
        return reading.endingBetween(after, until);
      },
    }));
    const allocator = start(watched);
    const long = await booked(allocator, { start: 1, end: 10 * HOUR });
    for (let index = 0; index < 30; index += 1)
      await booked(allocator, { start: 1, end: HOUR, bandwidth: 10 });
    clock = 3 * HOUR;
    // What comes after it ends is decided on without what ended.
    await booked(allocator, { start: 20 * HOUR, end: 21 * HOUR });
    expect(read).toEqual([]);
    // 600 Mbps were free while the thirty ran, which is when it began.
    const terms = { by: 'user', expiry: 100 * HOUR, check: () => undefined, dryRun: true };
    expect(await allocator.update(long, { bandwidth: 700 }, terms)).toMatchObject({ ok: true });
    expect(await allocator.update(long, { bandwidth: 701 }, terms)).toMatchObject({
      ok: false,
      refusals: [{ limit: 'bandwidth', free: 700, start: 1, end: HOUR }],
    });
    // Each time, as far as it was evicted.
    expect(read).toEqual([
      [1, HOUR],
      [1, HOUR],
    ]);
  });

  test('is read again when it is older than the link’s deleted rows', async () => {
    const [one, other] = [start(), start()];
    const id = await booked(one, { bandwidth: 1000 });
    expect(await book(one, {}, true)).toMatchObject({ ok: false });
    await other.delete(id, { by: 'user' });
    expect(await opened.store.forget(HOUR)).toMatchObject({ deleted: 1 });
    expect(await book(one, { bandwidth: 1000 })).toMatchObject({ ok: true });
  });
});
