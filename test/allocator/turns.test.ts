import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { Allocator, type AllocatorOptions } from '../../src/allocator/allocator.ts';
import { movedBy } from '../../src/allocator/common-offset.ts';
import { LoopTurns } from '../../src/allocator/event-loop.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import type { ChangeItem } from '../../src/allocator/operations.ts';
import { AbandonedError, type AskedBy, UserLines } from '../../src/allocator/user-lines.ts';
import type { Link } from '../../src/contract/links.ts';
import { type OpenedStore, openSqlite } from '../store/opened-store.ts';
import { smallLink } from './small-link.ts';

/** A ring of six sites: two routes of three links between those that face each other. */
const SITES = ['a', 'b', 'c', 'd', 'e', 'f'];
const RING = SITES.map((site1, index): Link => {
  const tags: [number, number] = [1 + 100 * index, 100 * (index + 1)];
  const site2 = SITES[(index + 1) % SITES.length] ?? '';
  const [site1_s_tags, site2_s_tags] = [tags, tags];
  return {
    ...smallLink({ site1_s_tags, site2_s_tags }),
    site1,
    site2,
    site1_c_tags: tags,
    site2_c_tags: tags,
  };
});
/** How many periods are taken on one link of each route in turn. */
const COUNT = 20;
const FAR = 1_000_000;

let opened: OpenedStore;
beforeEach(async () => {
  opened = await openSqlite();
});
afterEach(() => opened.close());

function start(options: Partial<AllocatorOptions> = {}): Allocator {
  let ids = 0;
  const network = createNetwork({ sites: SITES, links: RING });
  return new Allocator({ network, store: opened.store, now: () => 0, newId: () => `r${ids++}`, ...options });
}

function create(
  site1: string,
  site2: string,
  [from, to]: readonly [number, number],
  bandwidth = 1000,
): ChangeItem {
  const who = { experiment: 'exp', createdBy: 'user', expiry: FAR };
  return { action: 'create', request: { ...who, site1, site2, start: from, end: to, bandwidth } };
}

/** Until `20 * COUNT`, one of the two routes is taken at any time, so two of them never fit together. */
async function taken(allocator: Allocator): Promise<void> {
  for (let index = 0; index < COUNT; index += 1) {
    const items = [
      create('a', 'b', [20 * index + 10, 20 * index + 20]),
      create('e', 'f', [20 * index + 20, 20 * index + 30]),
    ];
    expect((await allocator.change(items)).ok).toBe(true);
  }
}

/** A clock that goes on by a millisecond with each look at it: a turn has time for eight looks. */
function counted() {
  let [now, most, since] = [0, 0, 0];
  const turns = new LoopTurns(() => {
    since += 1;
    most = Math.max(most, since);
    now += 1;
    return now;
  });
  let isOver = false;
  const nextTurn = (): void => {
    since = 0;
    if (!isOver) setImmediate(nextTurn);
  };
  nextTurn();
  return {
    turns,
    /** How often questions looked at the clock in a turn of the event loop at most. */
    end: () => {
      isOver = true;
      return most;
    },
  };
}

const BOTH = [create('a', 'd', [10, 20]), create('a', 'd', [10, 20])];
const DRY = { dryRun: true, earliest: { until: FAR } };

test('a batch that looks for its time goes on in many turns of the event loop, and bookings on its links go on between them (THREATS.md 81)', async () => {
  const clock = counted();
  const allocator = start({ turns: clock.turns });
  await taken(allocator);
  let isOver = false;
  const search = allocator.change(BOTH, DRY).finally(() => {
    isOver = true;
  });
  // On one of the links that are searched.
  const booked = await allocator.change([create('b', 'c', [100_000, 100_010])]);
  expect([booked.ok, isOver]).toEqual([true, false]);
  expect(await search).toMatchObject({ ok: true, offset: 20 * COUNT });
  expect(clock.end()).toBeLessThan(20);
  // What it found can be booked.
  expect(await start().change(BOTH, { earliest: { until: FAR } })).toMatchObject({ offset: 20 * COUNT });
});

test('a refusal’s alternatives and what is free over routes are found in short turns too (THREATS.md 81)', async () => {
  const clock = counted();
  const allocator = start({ turns: clock.turns });
  await taken(allocator);
  const asked = create('a', 'd', [10, 5010], 900);
  const whole = await start().change([asked], { dryRun: true });
  expect(await allocator.change([asked], { dryRun: true })).toEqual(whole);
  expect(whole).toMatchObject({
    ok: false,
    items: [{ offers: [{ kind: 'earliest' }, { kind: 'longest' }] }],
  });
  const window = { start: 0, end: 2000 };
  const columns = await allocator.ask({ site1: 'a', site2: 'd' }, 0, (calendar) =>
    calendar.columns(window, 100),
  );
  expect(columns).toEqual(
    await start().ask({ site1: 'a', site2: 'd' }, 0, (calendar) => calendar.columns(window, 100)),
  );
  expect(clock.end()).toBeLessThan(20);
});

test('a question goes on with what it has found while time goes on (THREATS.md 81)', async () => {
  const clock = counted();
  let now = 10;
  const allocator = start({ turns: clock.turns, now: () => now++ });
  await taken(allocator);
  now = 10;
  // Both begin now: a start that has passed is not offered.
  const refused = create('a', 'd', [10, 5010], 900);
  expect(await allocator.change([refused], { dryRun: true })).toMatchObject({
    ok: false,
    items: [{ offers: [{ kind: 'earliest', start: 20 * COUNT }] }],
  });
  now = 10;
  const found = { start: 20 * COUNT, end: 20 * COUNT + 100 };
  const searched = create('a', 'd', [10, FAR], 900);
  if (searched.action === 'create') searched.request.duration = 100;
  expect(await allocator.change([searched], { dryRun: true })).toMatchObject({
    ok: true,
    records: [found],
  });
  clock.end();
});

test('the largest batch over routes is decided on, written and listed in many turns of the event loop (THREATS.md 81)', async () => {
  const allocator = start();
  const count = 64;
  const items = Array.from({ length: count }, () => create('a', 'd', [10, 20], 1));
  await allocator.change(items.slice(0, 1), { dryRun: true });
  // Each look at the clock is as long as a slice.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 15;
    return now;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const turnsOf = async (work: () => Promise<unknown>): Promise<number> => {
    let [turns, isOver] = [0, false];
    const turn = (): void => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    turn();
    await work();
    isOver = true;
    return turns;
  };
  // A turn for each reservation, and one to take it back.
  const rehearsed = await turnsOf(() => allocator.change(items, { dryRun: true }));
  expect(rehearsed).toBeGreaterThan(2 * count - 2);
  // And one for each row that is written: of the reservation, its hops, and their tags.
  const booked = await turnsOf(async () => {
    expect(await allocator.change(items)).toMatchObject({ ok: true });
  });
  expect(booked).toBeGreaterThan(count + count * (1 + 3 + 3 * 4));
  const query = { experiment: 'exp', now: 0, limit: 1000 };
  for (let from = 1; from <= 2; from += 1)
    await allocator.change(items.map((item) => movedBy(item, 100 * from)));
  expect(await opened.store.list(query)).toHaveLength(3 * count);
  const few = await turnsOf(() => opened.store.list({ ...query, limit: count }));
  expect(await turnsOf(() => opened.store.list(query))).toBeGreaterThan(few);
});

/** Somebody whose request can go. */
function person(user: string): AskedBy & { leave: () => void } {
  const controller = new AbortController();
  return { user, request: { signal: controller.signal }, leave: () => controller.abort() };
}

test('of one user, one long question goes on at a time; others do not wait for it (THREATS.md 116)', async () => {
  const lines = new UserLines();
  const begun: string[] = [];
  const leave = await lines.enter(person('one'));
  const second = lines.enter(person('one')).then((end) => {
    begun.push('second');
    return end;
  });
  const other = await lines.enter(person('two'));
  other();
  expect(begun).toEqual([]);
  leave();
  (await second)();
  (await lines.enter(person('one')))();
});

test('a question whose request has gone is given up: while it goes on, and while it waits (THREATS.md 117)', async () => {
  const allocator = start({ turns: new LoopTurns(() => performance.now() * 1e9) });
  await taken(allocator);
  const [first, second, last] = [person('one'), person('one'), person('one')];
  const [gone, waiting, answered] = [first, second, last].map((askedBy) =>
    allocator.change(BOTH, { ...DRY, askedBy }),
  );
  const both = Promise.all([
    expect(gone).rejects.toThrow(AbandonedError),
    expect(waiting).rejects.toThrow(AbandonedError),
  ]);
  await new Promise((resolve) => setTimeout(resolve, 0));
  second.leave();
  first.leave();
  await both;
  expect(await answered).toMatchObject({ ok: true, offset: 20 * COUNT });
});
