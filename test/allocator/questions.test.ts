import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Demand } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import { type ReservationStore, StoreUnavailableError } from '../../src/allocator/store.ts';
import { linkId } from '../../src/contract/links.ts';
import { PostgresDatabase } from '../../src/store/postgres/database.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type OpenedStore, openPostgres, openSqlite } from '../store/opened-store.ts';
import { Allocator, type AllocatorOptions, type OneOutcome, type Outcome } from './allocator.ts';
import { smallLink } from './small-link.ts';

const postgres = usePostgres();
const LINK = smallLink();
const ID = linkId('a', 'b');
const HOUR = 3_600_000;
const SOME: Demand = { start: 10, end: 20, bandwidth: 100 };

let opened: OpenedStore;
let clock: number;
let ids: number;

function start(store: ReservationStore = opened.store, options: Partial<AllocatorOptions> = {}): Allocator {
  return new Allocator({
    network: createNetwork({ sites: ['a', 'b'], links: [LINK] }),
    store,
    now: () => clock,
    newId: () => `r${String(ids++).padStart(3, '0')}`,
    ...options,
  });
}

function book(allocator: Allocator, demand: Partial<Demand> = {}, dryRun = false): Promise<Outcome> {
  const who = { experiment: 'exp', createdBy: 'user', expiry: 1000 * HOUR };
  return allocator.create({ site1: 'a', site2: 'b', ...SOME, ...demand, ...who }, dryRun);
}

async function booked(allocator: Allocator, demand: Partial<Demand> = {}): Promise<string> {
  const outcome = await book(allocator, demand);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.refusals));
  return outcome.record.id;
}

function update(allocator: Allocator, id: string, change: Partial<Demand>): Promise<OneOutcome | undefined> {
  const terms = { by: 'user', expiry: 1000 * HOUR, dryRun: true, check: () => undefined };
  return allocator.update(id, change, terms);
}

/** What is free from 10 to 20, and the version of the link that says so. */
function free(allocator: Allocator, from = 10): Promise<[number, number]> {
  return allocator.ask({ site1: 'b', site2: 'a' }, from, (calendar, { versions: [version = -1] }) => [
    calendar.freeBandwidth({ start: 10, end: 20 }),
    version,
  ]);
}

/** An engine, and a way to hold the lock of a link as another process would. */
interface Engine {
  open(): Promise<OpenedStore>;
  hold(): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

function sqlite(): Engine {
  let folder = '';
  const path = (): string => join(folder, 'links.db');
  return {
    async open() {
      folder = temporaryFolder();
      return openSqlite(path());
    },
    async hold() {
      const other = new DatabaseSync(path());
      other.exec('BEGIN IMMEDIATE');
      return async () => other.close();
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

function postgresql(): Engine {
  let url = '';
  return {
    async open() {
      url = await postgres.emptied();
      return openPostgres(url);
    },
    async hold() {
      const other = await PostgresDatabase.open(url);
      const [locked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const holding = other.transaction(async (sql) => {
        await sql.all('SELECT id FROM link WHERE id = $1 FOR UPDATE', ID);
        await sql.run(
          'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))',
          JSON.stringify(['live', 'exp']),
        );
        locked.resolve();
        await release.promise;
      });
      await locked.promise;
      return async () => {
        release.resolve();
        await holding;
        await other.close();
      };
    },
    async close() {
      // The database belongs to the test file.
    },
  };
}

describe.each([
  ['SQLite', sqlite],
  ['PostgreSQL', postgresql],
] as const)('on %s, a question', (_, engine) => {
  let { open, hold, close } = engine();
  beforeEach(async () => {
    ({ open, hold, close } = engine());
    opened = await open();
    [clock, ids] = [0, 0];
  });
  afterEach(async () => {
    await opened.close();
    await close();
  });

  test('is answered while another process holds the link’s lock and a create waits for it; so is a dry run', async () => {
    await opened.store.prepareCounts();
    const allocator = start(opened.store, { maxLive: 5 });
    const id = await booked(allocator, { bandwidth: 600 });
    const release = await hold();
    let isBooked = false;
    const waiting = book(allocator, { bandwidth: 400 }).then((outcome) => {
      isBooked = true;
      return outcome;
    });
    // Also where the calendar must be read first.
    for (const asked of [allocator, start(opened.store, { maxLive: 5 })]) {
      expect(await free(asked)).toEqual([400, 1]);
      expect(await book(asked, { bandwidth: 400 }, true)).toMatchObject({ ok: true });
      expect(await book(asked, { bandwidth: 401 }, true)).toMatchObject({
        ok: false,
        refusals: [{ limit: 'bandwidth', free: 400 }],
        offers: [
          { kind: 'most_bandwidth', bandwidth: 400 },
          { kind: 'earliest', start: 20 },
        ],
      });
      expect(await update(asked, id, { bandwidth: 1000 })).toMatchObject({ ok: true });
      expect(await update(asked, id, { bandwidth: 1001 })).toMatchObject({ ok: false });
    }
    expect(isBooked).toBe(false);
    await release();
    expect(await waiting).toMatchObject({ ok: true });
    expect(await free(allocator)).toEqual([0, 2]);
  });

  test('knows what other processes booked, updated and deleted, and makes no row', async () => {
    const [one, other] = [start(), start()];
    expect(await free(one)).toEqual([1000, 0]);
    expect(await opened.rows('SELECT id FROM link')).toEqual([]);
    const id = await booked(other, { bandwidth: 300 });
    expect(await free(one)).toEqual([700, 1]);
    await other.update(id, { bandwidth: 200 }, { by: 'user', expiry: HOUR, check: () => undefined });
    expect(await free(one)).toEqual([800, 2]);
    expect(await other.delete(id, { by: 'user' })).toBe(true);
    expect(await update(one, id, { bandwidth: 1 })).toBeUndefined();
    expect(await free(one)).toEqual([1000, 3]);
    expect(await opened.store.forget(HOUR)).toMatchObject({ deleted: 1 });
    // Its calendar shows a version from before what was forgotten.
    expect(await free(other)).toEqual([1000, 3]);
  });

  test('about an earlier time counts what has ended', async () => {
    const allocator = start();
    await booked(allocator, { bandwidth: 900 });
    clock = 3 * HOUR;
    expect(await free(start(), 20)).toEqual([1000, 1]);
    const late = start();
    await booked(late, { start: 4 * HOUR, end: 5 * HOUR });
    expect(await free(late)).toEqual([100, 2]);
    // Each question evicts what ended long ago, and the next one reads it again.
    expect(await free(late)).toEqual([100, 2]);
  });

  test('goes on when a transaction runs out of time while it waits for the calendar', async () => {
    const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let late: Promise<unknown> = Promise.resolve();
    const allocator = start({
      ...opened.store,
      readLinks: (work) =>
        opened.store.readLinks((snapshot) =>
          work({
            ...snapshot,
            look: async (link) => {
              asked.resolve();
              await answered.promise;
              return snapshot.look(link);
            },
          }),
        ),
      changeLinks: async (links, work) => {
        // The transaction goes on alone, as on a connection that was given up.
        const transaction = await opened.store.changeLinks(links, async (inner) => inner);
        late = work({ ...transaction, write: () => Promise.reject(new Error('given up')) });
        late.catch(() => undefined);
        throw new StoreUnavailableError('out of time');
      },
    });
    await opened.store.changeLinks({ links: [ID] }, async () => undefined);
    const question = free(allocator);
    await asked.promise;
    await expect(book(allocator)).rejects.toThrow('out of time');
    answered.resolve();
    expect(await question).toEqual([1000, 0]);
    await expect(late).rejects.toThrow();
    expect(await free(allocator)).toEqual([1000, 0]);
  });

  test('between changes sees each of them whole', async () => {
    const allocators = [start(), start()] as const;
    const seen: Promise<[number, number]>[] = [];
    const made: Promise<Outcome>[] = [];
    for (let round = 0; round < 10; round += 1) {
      const [one, other] = round % 2 === 0 ? allocators : allocators.toReversed();
      if (!one || !other) throw new Error('there are two');
      made.push(book(one, { start: round * 20, end: round * 20 + 20, bandwidth: 100 }));
      seen.push(
        other.ask(LINK, 0, (calendar, { versions: [version = -1] }) => [
          [...calendar.steps({ start: 0, end: 200 })].filter(({ bandwidth }) => bandwidth < 1000).length,
          version,
        ]),
      );
      await seen.at(-1);
    }
    await Promise.all(made);
    // Back-to-back reservations of one bandwidth are one step.
    for (const [steps, version] of await Promise.all(seen)) expect(steps > 0).toBe(version > 0);
    expect((await Promise.all(made)).every(({ ok }) => ok)).toBe(true);
  });
});

describe.each([
  ['SQLite', sqlite],
  ['PostgreSQL', postgresql],
] as const)('on %s, a create that searches', (_, engine) => {
  const { open, close } = engine();
  const who = { site1: 'a', site2: 'b', experiment: 'exp', createdBy: 'user', expiry: 1000 };
  beforeEach(async () => {
    opened = await open();
    await opened.store.prepareCounts();
    [clock, ids] = [0, 0];
  });
  afterEach(async () => {
    await opened.close();
    await close();
  });

  test('books the earliest period, each after those before it, also when they come together', async () => {
    const allocators = [start(), start()] as const;
    const asked = Array.from({ length: 6 }, (_, index) =>
      allocators[index % 2 === 0 ? 0 : 1].create({
        ...{ ...who, start: 10, end: 100, bandwidth: 400 },
        duration: 20,
      }),
    );
    const outcomes = await Promise.all(asked);
    const starts = outcomes.map((outcome) => outcome.ok && outcome.record.start);
    expect(starts.toSorted()).toEqual([10, 10, 30, 30, 50, 50]);
    const audit = await opened.rows('SELECT start_ms, end_ms, bandwidth FROM audit ORDER BY seq');
    expect(audit[2]).toEqual({ start_ms: 30, end_ms: 50, bandwidth: 400 });
  });

  test('books the transfer that ends first, with the link’s capacity as the most that it may use', async () => {
    const allocator = start();
    await booked(allocator, { start: 10, end: 20, bandwidth: 900 });
    const volume = 125 * 1000 * 10;
    expect(await allocator.create({ ...who, start: 10, end: 100, volume })).toMatchObject({
      ok: true,
      record: { start: 20, end: 30, bandwidth: 1000 },
    });
    expect(await allocator.create({ ...who, start: 10, end: 30, volume: 125 * 2000 })).toMatchObject({
      ok: false,
      demand: { start: 10, end: 30, bandwidth: 100 },
      free: { length: 20 },
    });
    // It may use 10 Mbps, and would need 100, which are free.
    const slow = { ...who, expiry: 2000, start: 30, end: 130, bandwidth: 10, volume };
    expect(await allocator.create(slow, true)).toMatchObject({
      demand: { start: 30, end: 130, bandwidth: 100 },
      tooLow: { volume, most: 10 },
      refusals: [{ limit: 'bandwidth', capacity: 1000, free: 1000, start: 30, end: 130 }],
      offers: [{ kind: 'earliest', start: 30, end: 1030, bandwidth: 10 }],
    });
  });

  test('under an idempotency key books once, and gives the same period again', async () => {
    const request = {
      ...{ ...who, start: 10, end: 100, bandwidth: 1000, duration: 20 },
      ...{ key: 'k', fingerprint: 'f' },
    };
    const [one, other] = [start(), start()];
    const [first, second] = await Promise.all([one.create(request), other.create(request)]);
    expect([first, second].filter((outcome) => 'replayed' in outcome)).toHaveLength(1);
    expect(first).toMatchObject({ ok: true, record: { start: 10, end: 30 } });
    expect(second).toMatchObject({ ok: true, record: { start: 10, end: 30 } });
    expect(await opened.rows('SELECT id FROM reservation')).toHaveLength(1);
  });

  test('row 59: is limited by the share, and by the live reservations, which leave no alternative', async () => {
    const half = start(opened.store, { maxShare: 50, maxLive: 2 });
    const ask = (experiment: string) =>
      half.create({ ...who, experiment, start: 10, end: 60, bandwidth: 300, duration: 20 });
    expect(await ask('mine')).toMatchObject({ record: { start: 10 } });
    expect(await ask('mine')).toMatchObject({ record: { start: 30 } });
    expect(await ask('other')).toMatchObject({ record: { start: 10 } });
    expect(await ask('mine')).toMatchObject({
      ok: false,
      refusals: [{ limit: 'share', of: 'live', held: 2, allowed: 2 }],
      offers: [],
    });
    const wider = start(opened.store, { maxShare: 50 });
    expect(
      await wider.create({
        ...who,
        experiment: 'mine',
        start: 10,
        end: 60,
        bandwidth: 300,
        duration: 20,
      }),
    ).toMatchObject({
      demand: { start: 10, end: 30 },
      refusals: [
        { limit: 'share', of: 'bandwidth', held: 300, allowed: 500 },
        { limit: 'share', of: 'tags', held: 1, allowed: 1 },
      ],
      offers: [{ kind: 'earliest', start: 50, end: 70, bandwidth: 300 }],
    });
  });

  test('is a dry run too, which books nothing; a window that is too short is an error', async () => {
    const request = { ...who, start: 10, end: 100, bandwidth: 1, duration: 20 };
    expect(await start().create(request, true)).toMatchObject({ ok: true, record: { start: 10, end: 30 } });
    expect(await opened.rows('SELECT id FROM reservation')).toEqual([]);
    await expect(start().create({ ...request, end: 29 })).rejects.toThrow(RangeError);
  });
});

describe('questions', () => {
  let snapshots: number;
  let counted: ReservationStore;
  beforeEach(async () => {
    opened = await openSqlite();
    [clock, ids, snapshots] = [0, 0, 0];
    counted = {
      ...opened.store,
      readLinks: (work) => {
        snapshots += 1;
        return opened.store.readLinks(work);
      },
    };
  });
  afterEach(() => opened.close());

  test('that come together share a snapshot', async () => {
    const allocator = start(counted);
    const answers = await Promise.all([free(allocator), book(allocator, {}, true), free(allocator)]);
    expect(answers).toMatchObject([[1000, 0], { ok: true }, [1000, 0]]);
    expect(snapshots).toBe(1);
  });

  test('and changes that come together agree, on a database with one connection too', async () => {
    const allocator = start(counted);
    const answers = await Promise.all([
      book(allocator),
      free(allocator),
      opened.store.find('none').then(() => book(allocator)),
      opened.store.find('none').then(() => free(allocator)),
    ]);
    expect(answers[0]).toMatchObject({ ok: true });
    expect(answers[2]).toMatchObject({ ok: true });
    for (const answer of [answers[1], answers[3]]) {
      if (!Array.isArray(answer)) throw new Error('not a question');
      expect(answer[0]).toBe(1000 - 100 * (answer[1] ?? 0));
    }
    expect(await free(allocator)).toEqual([800, 2]);
  });

  test('that throw fail alone, and the calendar stays in memory', async () => {
    let loads = 0;
    const allocator = start({
      ...counted,
      loadLink: (link, from, take) => {
        loads += 1;
        return counted.loadLink(link, from, take);
      },
    });
    await booked(allocator);
    const failing = allocator.ask(LINK, 0, () => {
      throw new TypeError('a bug of one caller');
    });
    const answers = await Promise.allSettled([failing, free(allocator)]);
    expect(answers).toMatchObject([
      { status: 'rejected', reason: { message: 'a bug of one caller' } },
      { status: 'fulfilled', value: [900, 1] },
    ]);
    expect(await free(allocator)).toEqual([900, 1]);
    expect(loads).toBe(1);
  });

  test('fail together while the database is away; changes go on, and the calendar stays', async () => {
    let away = true;
    const allocator = start({
      ...counted,
      readLinks: (work) =>
        away ? Promise.reject(new StoreUnavailableError('away')) : counted.readLinks(work),
    });
    const answers = await Promise.allSettled([free(allocator), book(allocator), free(allocator)]);
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected']);
    away = false;
    expect(await free(allocator)).toEqual([900, 1]);
  });

  test('after a change with an unknown outcome read what the database says', async () => {
    let isLost = true;
    const allocator = start({
      ...counted,
      changeLinks: async (links, work) => {
        const answer = await counted.changeLinks(links, work);
        if (isLost) throw new StoreUnavailableError('lost');
        return answer;
      },
    });
    await expect(book(allocator)).rejects.toThrow('lost');
    isLost = false;
    expect(await free(allocator)).toEqual([900, 1]);
  });

  test('about sites that are not connected are an error', async () => {
    await expect(start().ask({ site1: 'a', site2: 'c' }, 0, () => 0)).rejects.toThrow(RangeError);
  });
});
