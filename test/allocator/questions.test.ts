import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChangeItem } from '../../src/allocator/decide.ts';
import type { Demand } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import { QuestionEndedError, Questions } from '../../src/allocator/questions.ts';
import type { FreeOnRoute } from '../../src/allocator/route-use.ts';
import { atOnce, type Steps, TooMuchError } from '../../src/allocator/steps.ts';
import { type ReservationStore, StoreUnavailableError } from '../../src/allocator/store.ts';
import { type Link, linkId } from '../../src/contract/links.ts';
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
const MINUTE = 60_000;
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
function free(allocator: Allocator): Promise<[number, number]> {
  return allocator.ask({ site1: 'b', site2: 'a' }, function* (use, { versions: [version = -1] }) {
    return [yield* use.freeBandwidth({ start: 10, end: 20 }), version];
  });
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
        await sql.all('SELECT id FROM link WHERE id = $id FOR UPDATE', { id: ID });
        await sql.run('SELECT pg_advisory_xact_lock(hashtextextended($name, 0))', {
          name: JSON.stringify(['live', 'exp']),
        });
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
    for (const asked of [allocator, start(opened.store, { maxLive: 5 })]) {
      expect(await free(asked)).toEqual([400, 1]);
      expect(await book(asked, { bandwidth: 400 }, true)).toMatchObject({ ok: true });
      expect(await book(asked, { bandwidth: 401 }, true)).toMatchObject({
        ok: false,
        refusals: [{ limit: 'bandwidth', free: 400 }],
        offers: [
          { kind: 'most_bandwidth', bandwidth: 400 },
          { kind: 'earliest', start: MINUTE },
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

  test('between changes sees each of them whole', async () => {
    const allocators = [start(), start()] as const;
    const seen: Promise<[number, number]>[] = [];
    const made: Promise<Outcome>[] = [];
    for (let round = 0; round < 10; round += 1) {
      const [one, other] = round % 2 === 0 ? allocators : allocators.toReversed();
      if (!one || !other) throw new Error('there are two');
      made.push(book(one, { start: round * 20, end: round * 20 + 20, bandwidth: 100 }));
      seen.push(
        other.ask(LINK, function* (use, { versions: [version = -1] }) {
          const found: FreeOnRoute[] = [];
          yield* use.steps({ start: 0, end: 200 }, found, 100);
          const taken = found.filter(({ bandwidth }) => bandwidth < 1000);
          return [taken.reduce((sum, { start, end }) => sum + end - start, 0), version];
        }),
      );
      await seen.at(-1);
    }
    await Promise.all(made);
    // The rows are not older than the version, which may be.
    for (const [taken, version] of await Promise.all(seen))
      expect(taken).toBeGreaterThanOrEqual(20 * version);
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
});

describe('questions', () => {
  beforeEach(async () => {
    opened = await openSqlite();
    [clock, ids] = [0, 0];
  });
  afterEach(() => opened.close());

  test('that throw, or find the database away, fail alone', async () => {
    let away = false;
    const allocator = start({
      ...opened.store,
      overlapping: (link, period) =>
        away ? Promise.reject(new StoreUnavailableError('away')) : opened.store.overlapping(link, period),
    });
    await booked(allocator);
    const failing = allocator.ask(LINK, () => {
      throw new TypeError('a bug of one caller');
    });
    const answers = await Promise.allSettled([failing, free(allocator)]);
    expect(answers).toMatchObject([
      { status: 'rejected', reason: { message: 'a bug of one caller' } },
      { status: 'fulfilled', value: [900, 1] },
    ]);
    away = true;
    const lost = await Promise.allSettled([free(allocator), book(allocator), free(allocator)]);
    expect(lost.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected']);
    away = false;
    expect(await free(allocator)).toEqual([800, 2]);
  });

  test('over several links read those again that change meanwhile', async () => {
    const other = { ...LINK, site1: 'b', site2: 'c', site1_c_tags: [4, 6], site2_c_tags: [4, 6] } as Link;
    const options = { network: createNetwork({ sites: ['a', 'b', 'c'], links: [LINK, other] }) };
    const reads: string[] = [];
    let isChanging = true;
    const booking = start(opened.store, options);
    const asking = start(
      {
        ...opened.store,
        async overlapping(link, period) {
          reads.push(link);
          const rows = await opened.store.overlapping(link, period);
          // While the second link is read, the first one is taken.
          if (link === 'b~c' && isChanging) {
            isChanging = false;
            await booked(booking, { bandwidth: 1000 });
          }
          return rows;
        },
      },
      options,
    );
    const who = { experiment: 'exp', createdBy: 'user', expiry: 1000 * HOUR };
    const outcome = await asking.create({ site1: 'a', site2: 'c', ...SOME, ...who }, true);
    expect(outcome).toMatchObject({ ok: false, refusals: [{ limit: 'bandwidth', free: 0 }] });
    expect(reads.slice(0, 3)).toEqual(['a~b', 'b~c', 'a~b']);
  });

  test('of a search that is refused are settled: what was free at each instant is found', async () => {
    const booking = start();
    const first = await booked(booking, { start: 10, end: 20, bandwidth: 1000 });
    let reads = 0;
    const searching = start({
      ...opened.store,
      async overlapping(link, period) {
        reads += 1;
        // Before the second part is read, the first becomes free, and then the second is taken.
        if (reads === 2) {
          await booking.delete(first, { by: 'user' });
          await booked(booking, { start: 20, end: 30, bandwidth: 1000 });
        }
        return opened.store.overlapping(link, period);
      },
    });
    const who = { site1: 'a', site2: 'b', experiment: 'exp', createdBy: 'user', expiry: 1000 };
    const sought = { ...who, start: 10, end: 30, bandwidth: 1000, duration: 10 };
    expect(await searching.create(sought)).toMatchObject({ ok: true, record: { start: 10 } });
  });

  test.each([1, 2])('that fail leave a refusal of %i changes as it is: it is in the audit', async (count) => {
    await booked(start(), { bandwidth: 1000 });
    const away = start({
      ...opened.store,
      overlapping: () => Promise.reject(new StoreUnavailableError('away')),
    });
    const who = { site1: 'a', site2: 'b', experiment: 'exp', createdBy: 'user', expiry: 1000 };
    const items = Array.from({ length: count }, (): ChangeItem => {
      return { action: 'create', request: { ...who, ...SOME } };
    });
    expect(await away.change(items)).toMatchObject({ ok: false, reason: 'refused' });
    expect(await opened.rows('SELECT count(*) AS n FROM audit WHERE accepted = 0')).toEqual([{ n: count }]);
  });
});

describe('long questions', () => {
  const gone = new AbortController();
  const by = (user: string, signal = new AbortController().signal) => ({ user, request: { signal } });
  function* endless(): Steps<never> {
    for (;;) yield;
  }
  const idle = () => new Promise((resolve) => setImmediate(resolve));

  test('of two users keep no third one waiting, and are given up after their own time', async () => {
    const questions = new Questions(300);
    const ends = ['one', 'other'].map((user) =>
      questions.ask(endless(), by(user)).catch((error: unknown) => error),
    );
    for (let asked = 0; asked < 20; asked += 1) {
      const began = performance.now();
      expect(await questions.ask(atOnce(asked), by('third'))).toBe(asked);
      expect(performance.now() - began).toBeLessThan(2000);
    }
    expect(await Promise.all(ends)).toEqual([expect.any(TooMuchError), expect.any(TooMuchError)]);
  });

  test('of one user go on one after the other, and leave when their request goes', async () => {
    const questions = new Questions();
    const taken: number[] = [];
    function* busy(number: number): Steps<number> {
      for (let step = 0; step < 100; step += 1) {
        for (const until = performance.now() + 0.3; performance.now() < until; );
        if (taken.at(-1) !== number) taken.push(number);
        yield;
      }
      return number;
    }
    const first = questions.ask(busy(1), by('user'));
    const second = questions.ask(busy(2), by('user', gone.signal));
    const third = questions.ask(busy(3), by('user'));
    for (let turn = 0; turn < 5; turn += 1) await idle();
    taken.length = 0;
    gone.abort();
    await expect(second).rejects.toThrow(QuestionEndedError);
    expect(await Promise.all([first, third])).toEqual([1, 3]);
    // After their first slices, one goes on at a time.
    expect(taken.toSorted()).toEqual([1, 3]);
  });

  test('are refused where 64 go on or wait, and end when the server stops', async () => {
    const questions = new Questions();
    const ends = Array.from({ length: 70 }, (_, index) =>
      questions.ask(endless(), by(`user ${index % 3}`)).catch((error: unknown) => error),
    );
    const full = await Promise.race(ends);
    expect(full).toEqual(new QuestionEndedError('Too many long questions are asked at once.'));
    questions.stop();
    for (const error of await Promise.all(ends)) expect(error).toBeInstanceOf(QuestionEndedError);
  });
});
