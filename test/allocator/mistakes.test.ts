import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Demand, TAG_PLACES, type Tags } from '../../src/allocator/demand.ts';
import { yieldToEventLoop } from '../../src/allocator/event-loop.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import type { Decided, ReservationRecord, ReservationStore } from '../../src/allocator/store.ts';
import { type Link, linkId, type TagRange } from '../../src/contract/links.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type OpenedStore, openSqlite } from '../store/opened-store.ts';
import { Allocator, type OneOutcome, type Outcome } from './allocator.ts';
import { race, tally } from './race.ts';
import type { RaceAnswer } from './race-process.ts';
import { smallLink } from './small-link.ts';
import { sweep } from './sweep.ts';

const ID = linkId('a', 'b');
const EXPIRY = 1000;

let folder: string;
let path: string;
let opened: OpenedStore;
/** The time of every allocator's clock. */
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

describe('mistake: equal deltas at one instant counted once', () => {
  test('400 + 400 Mbps that start together are 800; of 1000, 201 more are refused', async () => {
    const allocator = start();
    await book(allocator, { start: 10, end: 20, bandwidth: 400 });
    await book(allocator, { start: 10, end: 20, bandwidth: 400 });
    expect(await book(allocator, { start: 10, end: 20, bandwidth: 201 })).toMatchObject({
      ok: false,
      refusals: [{ limit: 'bandwidth', free: 200, start: 10, end: 20 }],
    });
    expect(await book(allocator, { start: 10, end: 20, bandwidth: 200 })).toMatchObject({ ok: true });
  });
});

describe('mistake: closed intervals that refuse back-to-back', () => {
  const whole = { start: 10, end: 20, bandwidth: 1000 };
  const oneTag = smallLink({
    site1_s_tags: [7, 7],
    site1_c_tags: [7, 7],
    site2_s_tags: [7, 7],
    site2_c_tags: [7, 7],
  });

  test.each([
    { rule: 'touches the start', start: 5, end: 10, accepted: true },
    { rule: 'touches the end', start: 20, end: 25, accepted: true },
    { rule: 'overlaps the start by a millisecond', start: 5, end: 11, accepted: false },
    { rule: 'overlaps the end by a millisecond', start: 19, end: 25, accepted: false },
  ])('all bandwidth and the only tags, next to 10 to 20, which it $rule', async ({ accepted, ...period }) => {
    const allocator = start({ link: oneTag });
    await book(allocator, whole);
    const outcome = await book(allocator, { ...whole, start: period.start, end: period.end });
    if (outcome.ok)
      expect({ accepted, tags: outcome.record.hops[0].tags }).toEqual({ accepted: true, tags: tags(7) });
    else
      expect([accepted, outcome.refusals.map(({ limit }) => limit)]).toEqual([
        false,
        ['bandwidth', ...TAG_PLACES.map(() => 'tags')],
      ]);
  });
});

describe('mistake: check and insert in separate transactions', () => {
  const all: Demand = { start: 10, end: 20, bandwidth: 100 };
  const limits = [
    { last: 'bandwidth', link: wide({ bandwidth: 1099 }), winners: 10, why: 'bandwidth' },
    { last: 'tags', link: wide({ bandwidth: 1_000_000, site2_c_tags: [100, 106] }), winners: 7, why: 'tags' },
  ];

  test.each(limits)(
    '24 bookings of two processes race for the last $last',
    async ({ link, winners, why }) => {
      const order = { path, link, book: Array.from({ length: 12 }, () => all) };
      const answers = await race([
        { ...order, name: 'one' },
        { ...order, name: 'other' },
      ]);
      expect(tally(answers)).toEqual({ won: winners, [why]: 24 - winners });
      expect(await sweep(opened, ID, link)).toEqual([]);
      const kept = await opened.rows('SELECT id FROM reservation WHERE deleted_ms IS NULL');
      expect(kept.map(({ id }) => id).toSorted()).toEqual(
        answers.flatMap((each) => (each.ok ? [each.id] : [])).toSorted(),
      );
    },
  );

  test.each(limits)(
    '24 bookings of two allocators race for the last $last',
    async ({ link, winners, why }) => {
      expect(tally(await raceHere(link, opened.store))).toEqual({ won: winners, [why]: 24 - winners });
      expect(await sweep(opened, ID, link)).toEqual([]);
    },
  );

  test.each(limits)(
    'a store with this mistake overbooks in the same race for the last $last',
    async ({ link, winners, why }) => {
      const answers = tally(await raceHere(link, checkThenInsert(opened.store)));
      expect(answers).not.toEqual({ won: winners, [why]: 24 - winners });
    },
  );

  async function raceHere(link: Link, store: ReservationStore): Promise<RaceAnswer[]> {
    const allocators = [start({ link, store }), start({ link, store })];
    return Promise.all(
      Array.from({ length: 12 }, () => allocators)
        .flat()
        .map((allocator) => answerOf(book(allocator, all))),
    );
  }
});

describe('mistake: updates that skip the check, or count their own use against themselves', () => {
  test.each([
    { rule: 'stays as it is', change: {} },
    { rule: 'is shortened at its end', change: { end: 15 } },
    { rule: 'is shortened at its start', change: { start: 15 } },
    { rule: 'gives bandwidth back', change: { bandwidth: 1 } },
  ])('on a full link an update that $rule is accepted and keeps its tags', async ({ change }) => {
    const allocator = start();
    const record = await booked(allocator, { start: 10, end: 20, bandwidth: 600 });
    await book(allocator, { start: 5, end: 25, bandwidth: 200 });
    await book(allocator, { start: 15, end: 30, bandwidth: 200 });
    expect(await update(allocator, record.id, change)).toEqual({
      ok: true,
      record: { ...record, ...change, version: expect.any(Number) },
    });
    expect(await opened.store.find(record.id)).toEqual({ ...record, ...change, version: expect.any(Number) });
  });
});

describe('mistake: concurrent updates of one reservation that overwrite each other', () => {
  test('updates by two allocators have one order: each sees the result of the one before', async () => {
    const allocators = [start(), start()];
    const record = await booked(start(), { start: 10, end: 20, bandwidth: 1 });
    const seen: { current: ReservationRecord; amended: Demand }[] = [];
    const changes = Array.from({ length: 10 }, (_, index) => [
      { end: 21 + index },
      { bandwidth: 2 + index },
    ]).flat();
    const outcomes = await Promise.all(
      changes.map((change, index) =>
        allocators[index % 2]?.update(record.id, change, {
          by: 'user',
          expiry: EXPIRY,
          check: (current, amended) => {
            seen.push({ current, amended });
            return undefined;
          },
        }),
      ),
    );
    expect(outcomes.every((outcome) => outcome?.ok)).toBe(true);
    expect(seen).toHaveLength(changes.length);
    for (const [index, { current }] of seen.entries()) {
      expect(current).toMatchObject(seen[index - 1]?.amended ?? { start: 10, end: 20, bandwidth: 1 });
    }
    expect(await opened.store.find(record.id)).toMatchObject({ start: 10, end: 30, bandwidth: 11 });
  });
});

describe('mistake: state kept only in memory', () => {
  const more: Demand = { start: 10, end: 20, bandwidth: 600 };

  test('a long-lived allocator sees what others created, updated and deleted meanwhile', async () => {
    const [one, other] = [start(), start()];
    const first = await booked(one, { start: 10, end: 20, bandwidth: 500 });
    const second = await booked(other, { start: 10, end: 20, bandwidth: 500 });
    expect(await book(one, { ...more, bandwidth: 1 })).toMatchObject({ ok: false, refusals: [{ free: 0 }] });
    await update(other, second.id, { bandwidth: 400 });
    expect(await book(one, more)).toMatchObject({ ok: false, refusals: [{ free: 100 }] });
    expect(await other.delete(first.id, { by: 'user' })).toBe(true);
    expect(await book(one, more)).toMatchObject({ ok: true, record: { hops: [{ tags: tags(1) }] } });
  });
});

/** A calendar in memory evicts ended reservations. A decision about that time has to read them again. */
describe('mistake: deciding about a time that has passed without what ended since', () => {
  test('a create whose start passed while it waited counts the reservations of that time', async () => {
    await booked(start(), { start: 10, end: 18, bandwidth: 600 });
    clock = 20;
    const outcome = await book(start(), { start: 17, end: 30, bandwidth: 400 });
    expect(outcome).toMatchObject({ ok: true, record: { hops: [{ tags: tags(2) }] } });
    expect(await book(start(), { start: 17, end: 30, bandwidth: 401 })).toMatchObject({ ok: false });
    expect(await sweep(opened, ID, smallLink())).toEqual([]);
  });
});

describe('a topology that became smaller', () => {
  const narrow = smallLink({ bandwidth: 500, site1_s_tags: [2, 3] });

  test('keeps a link with older reservations usable: it allocates tags that are in the new ranges and free', async () => {
    const { id } = await booked(start(), { start: 10, end: 20, bandwidth: 800 });
    const allocator = start({ link: narrow });
    expect(await book(allocator, { start: 20, end: 30, bandwidth: 500 })).toMatchObject({
      ok: true,
      record: { hops: [{ tags: { ...tags(1), site1_s_tag: 2 } }] },
    });
    const refused = await book(allocator, { start: 10, end: 20, bandwidth: 1 });
    expect(refused).toMatchObject({ ok: false, refusals: [{ limit: 'bandwidth', capacity: 500, free: 0 }] });
    expect(await allocator.delete(id, { by: 'user' })).toBe(true);
    expect(await book(allocator, { start: 10, end: 20, bandwidth: 500 })).toMatchObject({ ok: true });
  });
});

function start({ link = smallLink(), store = opened.store } = {}): Allocator {
  return new Allocator({
    network: createNetwork({ sites: [link.site1, link.site2], links: [link] }),
    store,
    now: () => clock,
    newId: () => `r${String(ids++).padStart(3, '0')}`,
  });
}

function book(allocator: Allocator, demand: Demand, dryRun = false): Promise<Outcome> {
  const who = { experiment: 'exp', createdBy: 'user', expiry: EXPIRY };
  return allocator.create({ site1: 'a', site2: 'b', ...demand, ...who }, dryRun);
}

async function booked(allocator: Allocator | undefined, demand: Demand): Promise<ReservationRecord> {
  const outcome = allocator && (await book(allocator, demand));
  if (!outcome?.ok) throw new Error(`refused: ${JSON.stringify(outcome)}`);
  return outcome.record;
}

async function update(
  allocator: Allocator | undefined,
  id: string,
  change: Partial<Demand>,
): Promise<OneOutcome | undefined> {
  return allocator?.update(id, change, { by: 'user', expiry: EXPIRY, check: () => undefined });
}

async function answerOf(outcome: Promise<Outcome>): Promise<RaceAnswer> {
  try {
    const answer = await outcome;
    if (answer.ok) return { ok: true, id: answer.record.id };
    return { ok: false, why: answer.refusals.map(({ limit }) => limit).join(' ') };
  } catch (error) {
    return { ok: false, why: String(error) };
  }
}

function wide(shape: Partial<Link>): Link {
  const range: TagRange = [100, 199];
  return smallLink({
    site1_s_tags: range,
    site1_c_tags: range,
    site2_s_tags: range,
    site2_c_tags: range,
    ...shape,
  });
}

function tags(tag: number): Tags {
  return { site1_s_tag: tag, site1_c_tag: tag, site2_s_tag: tag, site2_c_tag: tag };
}

/** A store with the mistake: it reads and decides in one transaction, and writes in another. */
function checkThenInsert(store: ReservationStore): ReservationStore {
  return {
    ...store,
    changeLinks: async (links, work) => {
      const written: [Decided, number][] = [];
      const answer = await store.changeLinks(links, (transaction) =>
        work({ ...transaction, write: async (...given) => void written.push(given) }),
      );
      // The other allocator decides meanwhile.
      await yieldToEventLoop();
      for (const given of written) await store.changeLinks(links, (later) => later.write(...given));
      return answer;
    },
  };
}
