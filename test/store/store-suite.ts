import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { answerOf } from '../../src/allocator/answer.ts';
import type { Period, Tags } from '../../src/allocator/demand.ts';
import {
  type AuditEntry,
  EXPIRED_KEYS_AT_ONCE,
  type HeldReservation,
  type Hop,
  type IdempotencyKey,
  type IdempotencyRecord,
  type ListedReservation,
  type ReservationQuery,
  type ReservationRecord,
  type ReservationStore,
  type WrittenChange,
} from '../../src/allocator/store.ts';
import { READ_AT_ONCE } from '../../src/store/reservation-records.ts';
import { changeLink, type LinkTransaction, type OneHop, oneHop } from './one-link.ts';
import type { OpenedStore } from './opened-store.ts';
import { bookUnder, cancel, put } from './written.ts';

const LINK = 'a~b';
const DAWN = 1_800_000_000_000;
const EVER: Period = { start: 0, end: Number.POSITIVE_INFINITY };

/**
 * What every store keeps to (`src/allocator/store.ts`), whatever the engine.
 *
 * @param open opens a store on an empty database
 */
export function describeStore(name: string, open: () => Promise<OpenedStore>): void {
  describe(`reservations on ${name}`, () => {
    let opened: OpenedStore;
    let store: ReservationStore;

    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(async () => {
      await opened.close();
    });

    const change = <Answer>(
      work: (transaction: LinkTransaction) => Promise<Answer>,
      link = LINK,
    ): Promise<Answer> => changeLink(store, link, work);
    const write = (...records: ReservationRecord[]): Promise<void> =>
      change((transaction) => put(transaction, ...records));
    const withdraw = (id: string): Promise<void> =>
      change((transaction) => cancel(transaction, record(id), DAWN));
    const readBack = (id: string, link = LINK): Promise<ReservationRecord | undefined> =>
      change((transaction) => transaction.find(id), link);
    const held = (period: Period, link = LINK): Promise<HeldReservation[]> => store.overlapping(link, period);
    const version = (link = LINK): Promise<number> =>
      change(async (transaction) => transaction.version, link);

    describe('a reservation', () => {
      test('is found as it was put, with its sites in the order in which they were asked for', async () => {
        const full = record('r1', {
          reversed: true,
          start: DAWN,
          end: DAWN + 1,
          bandwidth: 100_000,
          tags: { site1_s_tag: 1, site1_c_tag: 4094, site2_s_tag: 17, site2_c_tag: 300 },
          experiment: 'exp_1',
          createdBy: 'user_1',
          createdAt: DAWN - 12_345,
        });
        await write(full);
        expect(await store.find('r1')).toEqual(full);
        expect(await readBack('r1')).toEqual(full);
      });

      test('that was booked and changed in one transaction stands as it was left, at its last version', async () => {
        const last = record('r1', { bandwidth: 9, tags: tags(2) });
        await change((transaction) =>
          transaction.write(
            {
              changes: [
                { action: 'create', record: record('r1') },
                { action: 'create', record: record('r2', { tags: tags(3) }) },
                { action: 'update', record: last },
                { action: 'delete', record: record('r2', { tags: tags(3) }) },
                // What the others gave up is free for whoever comes later.
                { action: 'create', record: record('r3', { tags: tags(1) }) },
                { action: 'create', record: record('r4', { tags: tags(3) }) },
              ],
              audit: [],
            },
            DAWN,
          ),
        );
        expect(await version()).toBe(6);
        expect(await store.find('r1')).toEqual(last);
        expect(ids(await store.list(query()))).toEqual(['r1', 'r3', 'r4']);
        expect(await opened.rows('SELECT reservation AS id, version FROM hop ORDER BY id')).toEqual([
          { id: 'r1', version: 3 },
          { id: 'r2', version: 4 },
          { id: 'r3', version: 5 },
          { id: 'r4', version: 6 },
        ]);
      });

      test.each([
        { rule: 'no time', start: 100, end: 100 },
        { rule: 'less than no time', start: 101, end: 100 },
        { rule: 'no bandwidth', bandwidth: 0 },
      ])('of $rule is refused', async ({ rule: _, ...shape }) => {
        await expect(write(record('r1', shape))).rejects.toThrow();
        expect(await store.find('r1')).toBeUndefined();
      });

      test.each(['DELETE FROM reservation', "UPDATE hop SET reservation = 'r2'"])(
        'and its hop can’t be parted: %s',
        async (parting) => {
          await write(record('r1'));
          await expect(opened.rows(parting)).rejects.toThrow();
          expect(await store.find('r1')).toEqual(record('r1'));
        },
      );
    });

    describe('a reservation of three hops', () => {
      /** From a over b and d to c: the last link is passed from its second site. */
      const ROUTE = ['a~b', 'b~d', 'c~d'] as const;
      const routed = (id: string, shape: Partial<OneHop> = {}, tag = 1): ReservationRecord => {
        const [first, second, third] = ROUTE;
        return {
          ...record(id, shape),
          site1: 'a',
          site2: 'c',
          hops: [
            { link: first, tags: tags(tag) },
            { link: second, tags: tags(tag + 10) },
            { link: third, tags: tags(tag + 20) },
          ],
        };
      };
      const changeRoute = (action: WrittenChange['action'], reservation: ReservationRecord): Promise<void> =>
        store.changeLinks({ links: ROUTE }, async (transaction) => {
          const { id, experiment, createdBy: by, hops, ...demand } = reservation;
          const entry = { at: DAWN, action, by, experiment, reservation: id, demand, why: null };
          const audit = hops.map((hop) => ({ ...entry, ...hop }));
          await transaction.write({ changes: [{ action, record: reservation }], audit }, DAWN);
        });
      const versions = (): Promise<number[]> => Promise.all(ROUTE.map((link) => version(link)));
      const held = (): Promise<unknown[]> =>
        Promise.all(ROUTE.map((link) => store.overlapping(link, { start: 110, end: 190 })));
      const onEachLink = (reservation: ReservationRecord): unknown[] =>
        reservation.hops.map((_, at) => heldBy(reservation, at));
      const count = async (table: string): Promise<unknown> =>
        Number((await opened.rows(`SELECT count(*) AS n FROM ${table}`))[0]?.['n']);

      test('is written, read, listed, changed and deleted in one transaction over its links', async () => {
        const booked = routed('r1', { name: 'long', description: 'over two sites' });
        await changeRoute('create', booked);
        expect(await versions()).toEqual([1, 1, 1]);
        expect(await store.find('r1')).toEqual(booked);
        expect(await readBack('r1', 'e~f')).toEqual(booked);
        await write(record('r0', { tags: tags(2) }), record('r2', { tags: tags(3) }));
        expect(await store.list(query())).toEqual(
          [record('r0', { tags: tags(2) }), booked, record('r2', { tags: tags(3) })].map(listedOf),
        );
        // A page counts reservations, not hops.
        expect(ids(await store.list(query({ limit: 2 })))).toEqual(['r0', 'r1']);
        expect(await store.readLinks(({ countLive }) => countLive('proj_1', 0))).toBe(3);
        const beside = [[], ['a~b'], ROUTE].map((known) => store.countBeside(known, 0));
        expect(await Promise.all(beside)).toEqual([3, 1, 0]);
        const [first, second, third] = onEachLink(booked);
        const others = [heldBy(record('r0', { tags: tags(2) })), heldBy(record('r2', { tags: tags(3) }))];
        expect(await held()).toEqual([expect.arrayContaining([first, ...others]), [second], [third]]);

        const changed = routed('r1', { start: 150, end: 250, bandwidth: 7 }, 4);
        await changeRoute('update', changed);
        expect((await store.list(query()))[1]).toEqual(listedOf(changed));
        expect(await versions()).toEqual([4, 2, 2]);
        expect(await store.find('r1')).toEqual(changed);
        expect((await held()).slice(1)).toEqual(
          onEachLink(changed)
            .slice(1)
            .map((each) => [each]),
        );
        // The tags that it held are free.
        await changeRoute('create', routed('r3', {}, 1));

        await changeRoute('delete', changed);
        expect(await versions()).toEqual([6, 4, 4]);
        expect(await store.find('r1')).toBeUndefined();
        expect(ids(await store.list(query()))).toEqual(['r0', 'r2', 'r3']);
        expect((await held()).slice(1)).toEqual(
          onEachLink(routed('r3'))
            .slice(1)
            .map((each) => [each]),
        );
        await changeRoute('create', routed('r4', {}, 4));
      });

      test('is read by its versions with all of its route, each once and as it stands now', async () => {
        await changeRoute('create', routed('r1'));
        await write(record('r0', { tags: tags(2), experiment: 'exp_2' }));
        const updated = routed('r1', { bandwidth: 7 }, 4);
        await changeRoute('update', updated);
        const look = (link: string, since: number, of?: { experiment: string; most: number }) =>
          store.readLinks(async ({ changedSince, versions }) => [
            await versions(),
            await changedSince(link, since, of),
          ]);
        const rows = [
          { id: 'a~b', version: 3, forgotten: 0 },
          { id: 'b~d', version: 2, forgotten: 0 },
          { id: 'c~d', version: 2, forgotten: 0 },
        ];
        const [r0, r1] = [record('r0', { tags: tags(2), experiment: 'exp_2' }), updated].map((each) => ({
          record: each,
          deleted: false,
        }));
        expect(await look('a~b', 0)).toEqual([rows, [r0, r1]]);
        expect(await look('a~b', 2)).toEqual([rows, [r1]]);
        expect(await look('a~b', 0, { experiment: 'exp_2', most: 2 })).toEqual([rows, [r0]]);
        expect(await look('a~b', 3)).toEqual([rows, []]);
        expect(await look('c~d', 1)).toEqual([rows, [r1]]);
        await changeRoute('delete', updated);
        expect(await store.versions()).toMatchObject([{ version: 4 }, { version: 3 }, { version: 3 }]);
        expect(await store.versions(['c~d', 'e~f'])).toEqual([
          { id: 'c~d', version: 3, forgotten: 0 },
          { id: 'e~f', version: 0, forgotten: 0 },
        ]);
        expect((await look('b~d', 2))[1]).toEqual([{ record: updated, deleted: true }]);
        await write(record('r5', { tags: tags(5), experiment: 'exp_2' }));
        for (const most of [1, 2]) {
          expect((await look('a~b', 0, { experiment: 'exp_2', most }))[1]).toHaveLength(most);
        }
      });

      test('is among those of its experiment that end after an instant', async () => {
        await changeRoute('create', routed('r1', { end: 200 }));
        await write(
          record('r0', { tags: tags(2), end: 300 }),
          record('r2', { tags: tags(3), experiment: 'exp_2' }),
        );
        const ending = (experiment: string, after: number) =>
          store.readLinks(async ({ endingAfter }) => ids(await endingAfter(experiment, after)));
        expect(await ending('exp_1', 199)).toEqual(['r0', 'r1']);
        expect(await ending('exp_1', 200)).toEqual(['r0']);
        await changeRoute('delete', routed('r1'));
        expect(await ending('exp_1', 0)).toEqual(['r0']);
      });

      test('tells its listeners after the commit', async () => {
        const told: unknown[] = [];
        const end = store.onCommit(() => told.push(1));
        await changeRoute('create', routed('r1'));
        expect(told).toEqual([1]);
        end();
        await changeRoute('delete', routed('r1'));
        expect(told).toEqual([1]);
      });

      test('has a row in the audit for each link, at the version that it made there', async () => {
        await write(record('r0', { tags: tags(2) }));
        await changeRoute('create', routed('r1'));
        await changeRoute('delete', routed('r1'));
        expect(await opened.rows('SELECT link, action, version FROM audit ORDER BY link, seq')).toEqual([
          { link: 'a~b', action: 'create', version: 2 },
          { link: 'a~b', action: 'delete', version: 3 },
          { link: 'b~d', action: 'create', version: 1 },
          { link: 'b~d', action: 'delete', version: 2 },
          { link: 'c~d', action: 'create', version: 1 },
          { link: 'c~d', action: 'delete', version: 2 },
        ]);
      });

      test('is refused as a whole for one of its hops', async () => {
        const { hops, ...rest } = routed('r1');
        const nowhere: Hop = { link: 'not~there', tags: tags(1) };
        await expect(changeRoute('create', { ...rest, hops: [...hops, nowhere] })).rejects.toThrow();
        expect(await versions()).toEqual([0, 0, 0]);
        for (const table of ['reservation', 'hop', 'audit']) expect(await count(table)).toBe(0);
      });

      test('that is deleted is forgotten link by link, and goes with its last hop', async () => {
        await changeRoute('create', routed('r1'));
        await change((transaction) =>
          bookUnder(transaction, record('r2', { tags: tags(2) }), keyFor('r2'), 0),
        );
        await changeRoute('delete', routed('r1'));
        // As if the rows of the last link were not reached.
        await opened.rows('UPDATE hop SET deleted_ms = $1 WHERE link = $2', DAWN + 10, 'c~d');
        const forgotten = () =>
          opened.rows("SELECT id, forgotten FROM link WHERE id IN ('a~b', 'b~d', 'c~d') ORDER BY id");
        expect(await store.forget(DAWN)).toEqual({ audit: 0, deleted: 0 });
        expect(await store.forget(DAWN + 1)).toEqual({ audit: 6, deleted: 0 });
        expect(await opened.rows("SELECT link FROM hop WHERE reservation = 'r1'")).toEqual([{ link: 'c~d' }]);
        expect(await forgotten()).toEqual([
          { id: 'a~b', forgotten: 3 },
          { id: 'b~d', forgotten: 2 },
          { id: 'c~d', forgotten: 0 },
        ]);
        expect(await store.find('r1')).toBeUndefined();
        expect(await store.forget(DAWN + 11)).toEqual({ audit: 0, deleted: 1 });
        expect(await forgotten()).toMatchObject([{}, {}, { id: 'c~d', forgotten: 2 }]);
        expect(await opened.rows('SELECT id FROM reservation')).toEqual([{ id: 'r2' }]);
        expect(await opened.rows('SELECT reservation FROM hop')).toEqual([{ reservation: 'r2' }]);

        // All at once it counts once.
        await changeRoute('create', routed('r3'));
        await changeRoute('delete', routed('r3'));
        expect(await store.forget(DAWN + 1)).toEqual({ audit: 6, deleted: 1 });
        expect(await count('reservation')).toBe(1);
      });
    });

    describe('what overlaps a period', () => {
      const YEAR = 365 * 86_400_000;
      test.each([1, 2 ** 16, 2 ** 16 + 1, 2 ** 30, YEAR, 100 * YEAR])(
        'of %i ms is found from its first millisecond to its last, and not beside',
        async (length) => {
          const last = DAWN + length - 1;
          await write(record('r1', { start: DAWN, end: last + 1 }));
          const at = async (instant: number) => (await held({ start: instant, end: instant + 1 })).length;
          expect(await Promise.all([DAWN - 1, DAWN, last, last + 1].map(at))).toEqual([0, 1, 1, 0]);
        },
      );

      test('is of one link alone, whole, without deleted reservations, wherever it is asked', async () => {
        const kept = record('r1', {
          tags: { site1_s_tag: 1, site1_c_tag: 2, site2_s_tag: 3, site2_c_tag: 4 },
        });
        await write(kept, record('r2', { tags: tags(5) }));
        await withdraw('r2');
        await change((transaction) => put(transaction, record('r3', { link: 'c~d' })), 'c~d');
        for (const found of [
          await held(EVER),
          await change(({ overlapping }) => overlapping(LINK, EVER), 'c~d'),
          await store.readLinks(({ overlapping }) => overlapping(LINK, EVER)),
        ]) {
          expect(found).toEqual([heldBy(kept)]);
        }
        expect(await held(EVER, 'e~f')).toEqual([]);
      });
    });

    describe('row 59: refusals', () => {
      const MINUTE = 60_000;
      const refusal = (at: number, shape: Partial<AuditEntry> = {}): AuditEntry => ({
        ...{ link: LINK, at, action: 'create', by: 'user_1', experiment: 'exp_1', reservation: null },
        ...{ demand: { start: 1, end: 2, bandwidth: 3 }, tags: null, why: 'tags' },
        ...shape,
      });
      const refuse = (
        count: number,
        at: number,
        shape: Partial<AuditEntry> = {},
        link = LINK,
      ): Promise<void> =>
        change(
          (transaction) =>
            transaction.write(
              { changes: [], audit: Array.from({ length: count }, () => refusal(at, { ...shape, link })) },
              at,
            ),
          link,
        );
      const counts = async (experiment = 'exp_1'): Promise<unknown[]> =>
        (
          await opened.rows(
            'SELECT count(*) AS n, times FROM audit WHERE experiment = $1 GROUP BY times ORDER BY times',
            experiment,
          )
        ).map(({ n, times }) => [n, times]);

      test('of one experiment beyond 1,000 in an hour are one row each minute, with how many they are', async () => {
        await refuse(990, DAWN);
        await refuse(20, DAWN);
        expect(await counts()).toEqual([
          [1000, 1],
          [1, 10],
        ]);
        await refuse(5, DAWN + MINUTE - 1);
        await refuse(1, DAWN + MINUTE);
        await refuse(7, DAWN + MINUTE + 1);
        expect(await counts()).toEqual([
          [1000, 1],
          [1, 8],
          [1, 15],
        ]);
        // Others, and what is accepted, have rows of their own.
        await refuse(3, DAWN + MINUTE, { experiment: 'exp_2' });
        await refuse(3, DAWN + MINUTE, { tags: tags(1), reservation: 'r1' });
        expect(await counts('exp_2')).toEqual([[3, 1]]);
        expect(await counts()).toContainEqual([1003, 1]);
      });

      test('that are counted keep the version of the link, and its history its order', async () => {
        await refuse(1000, DAWN);
        const booked = record('r1');
        const accepted = refusal(DAWN, { tags: tags(1), reservation: 'r1', why: null });
        await change((transaction) =>
          transaction.write(
            {
              changes: [{ action: 'create', record: booked }],
              audit: [refusal(DAWN), accepted, refusal(DAWN), refusal(DAWN)],
            },
            DAWN,
          ),
        );
        expect(
          await opened.rows('SELECT version, accepted, times FROM audit WHERE seq > 1000 ORDER BY seq'),
        ).toEqual([
          { version: 0, accepted: 0, times: 3 },
          { version: 1, accepted: 1, times: 1 },
        ]);
      });
    });

    describe('row 63: what is forgotten', () => {
      test('only moves forward, though replicas with other clocks removed the later ones earlier', async () => {
        const cancelAt = (id: string, at: number): Promise<void> =>
          change((transaction) => cancel(transaction, record(id), at));
        const forgotten = (): Promise<number> => change(async (transaction) => transaction.forgotten);
        await write(record('r1', { tags: tags(1) }), record('r2', { tags: tags(2) }));
        await cancelAt('r1', DAWN + 600_000);
        await cancelAt('r2', DAWN);
        expect(await store.forget(DAWN + 1)).toMatchObject({ deleted: 1 });
        expect(await forgotten()).toBe(4);
        expect(await store.forget(DAWN + 600_001)).toMatchObject({ deleted: 1 });
        expect(await forgotten()).toBe(4);
      });
    });

    describe('a list', () => {
      test('is sorted by id and holds one experiment', async () => {
        await write(
          record('r3', { tags: tags(3) }),
          record('r1', { tags: tags(1) }),
          record('other', { tags: tags(4), experiment: 'exp_2' }),
        );
        await change((transaction) => put(transaction, record('r2', { link: 'c~d' })), 'c~d');
        const listed = await store.list(query());
        expect(ids(listed)).toEqual(['r1', 'r2', 'r3']);
        expect(listed[1]).toEqual(listedOf(record('r2', { link: 'c~d' })));
        expect(ids(await store.list(query({ experiment: 'exp_2' })))).toEqual(['other']);
        expect(await store.list(query({ experiment: 'exp_3' }))).toEqual([]);
      });

      test('of many, which are read in parts, misses nothing and repeats nothing', async () => {
        const all = Array.from({ length: 3 * READ_AT_ONCE }, (_, index) =>
          record(`r${String(index).padStart(4, '0')}`, { tags: tags(index + 1), end: 200 + (index % 2) }),
        );
        await write(...all);
        for (const limit of [READ_AT_ONCE, READ_AT_ONCE + 1, 2 * READ_AT_ONCE, all.length, 1000]) {
          expect(ids(await store.list(query({ limit })))).toEqual(ids(all.slice(0, limit)));
        }
        const after = await store.readLinks((snapshot) => snapshot.endingAfter('exp_1', 200));
        expect(ids(after)).toEqual(ids(all.filter(({ end }) => end > 200)));
      });
    });

    describe('a key', () => {
      /** Books under a key as an allocator does; what is told of a key that is taken comes back. */
      const book = (
        booking: IdempotencyRecord,
        { now = 0, link = LINK } = {},
      ): Promise<IdempotencyRecord | undefined> =>
        store.changeLinks({ links: [link], keys: [booking] }, async (transaction) => {
          const earlier = await transaction.findKey(booking, now);
          const booked = record(booking.reservations[0] ?? '', { link, tags: tags(nextTag()) });
          if (!earlier) await bookUnder(transaction, booked, booking, now);
          return earlier;
        });
      const found = (key: IdempotencyKey, now: number, link = LINK): Promise<unknown> =>
        store.changeLinks({ links: [link], keys: [key] }, (transaction) => transaction.findKey(key, now));
      const keptKeys = async (): Promise<unknown[]> =>
        (await opened.rows('SELECT key FROM idempotency_key ORDER BY expires_ms, key')).map(({ key }) => key);
      let lastTag: number;
      const nextTag = (): number => {
        lastTag += 1;
        return lastTag;
      };
      beforeEach(() => {
        lastTag = 0;
      });

      test('is found as it was written, outside and inside, through any link, until it expires', async () => {
        const booking = keyFor('r1', { expires: 100 });
        expect(await book(booking)).toBeUndefined();
        for (const now of [0, 99]) {
          expect(await store.findKey(booking, now)).toEqual(booking);
          for (const link of [LINK, 'c~d']) expect(await found(booking, now, link)).toEqual(booking);
        }
        for (const now of [100, 101]) {
          expect(await store.findKey(booking, now)).toBeUndefined();
          expect(await found(booking, now)).toBeUndefined();
        }
      });

      test('that is taken is refused though no transaction locked it, and nothing is written', async () => {
        const first = keyFor('r1');
        await book(first);
        const second = keyFor('r2', { fingerprint: 'other' });
        const unlocked = change((transaction) =>
          bookUnder(transaction, record('r2', { tags: tags(2) }), second, 0),
        );
        await expect(unlocked).rejects.toThrow();
        expect(await store.findKey(first, 0)).toEqual(first);
        expect(ids(await store.list(query()))).toEqual(['r1']);
      });

      test(`each write of a key deletes ${EXPIRED_KEYS_AT_ONCE} expired ones, the oldest first`, async () => {
        const many = EXPIRED_KEYS_AT_ONCE + 50;
        const name = (at: number): string => `k${String(at).padStart(4, '0')}`;
        const old = record('r0', { tags: tags(nextTag()) });
        await change((transaction) =>
          transaction.write(
            {
              changes: Array.from({ length: many }, (_, at) => ({
                action: 'update',
                record: old,
                key: keyFor('r0', { key: name(at), expires: 1000 + at }),
              })),
              audit: [],
            },
            0,
          ),
        );
        const expiring = (from: number): string[] =>
          Array.from({ length: many - from }, (_, index) => name(from + index));
        expect(await keptKeys()).toEqual(expiring(0));

        const later = { expires: 100_000 };
        await book(keyFor('r1', { key: 'l1', ...later }), { now: 999 });
        expect(await keptKeys()).toEqual([...expiring(0), 'l1']);
        await book(keyFor('r2', { key: 'l2', ...later }), { now: 1000 });
        expect(await keptKeys()).toEqual([...expiring(1), 'l1', 'l2']);
        // All but the last have expired.
        const now = 1000 + many - 2;
        await book(keyFor('r3', { key: 'l3', ...later }), { now });
        expect(await keptKeys()).toEqual([...expiring(1 + EXPIRED_KEYS_AT_ONCE), 'l1', 'l2', 'l3']);
        await book(keyFor('r4', { key: 'l4', ...later }), { now });
        expect(await keptKeys()).toEqual([name(many - 1), 'l1', 'l2', 'l3', 'l4']);
      });
    });
  });
}

function record(id: string, shape: Partial<OneHop> = {}): ReservationRecord {
  return oneHop({
    id,
    link: LINK,
    start: 100,
    end: 200,
    bandwidth: 1,
    tags: tags(1),
    experiment: 'exp_1',
    tenant: 'proj_1',
    createdBy: 'user_1',
    createdAt: 0,
    // The store says which it gets.
    version: expect.any(Number),
    ...shape,
  });
}

function keyFor(reservation: string, shape: Partial<IdempotencyRecord> = {}): IdempotencyRecord {
  return {
    createdBy: 'user_1',
    experiment: 'exp_1',
    key: 'key',
    fingerprint: 'f',
    reservations: [reservation],
    expires: 1_000_000,
    ...shape,
  };
}

/** What a reservation holds of a link, by the place of its hop. */
function heldBy({ id, start, end, bandwidth, tenant, hops }: ReservationRecord, at = 0): HeldReservation {
  return { id, start, end, bandwidth, tags: hops[at]?.tags ?? tags(0), tenant };
}

function tags(tag: number): Tags {
  return { site1_s_tag: tag, site1_c_tag: tag, site2_s_tag: tag, site2_c_tag: tag };
}

function query(shape: Partial<ReservationQuery> = {}): ReservationQuery {
  return { experiment: 'exp_1', now: 0, limit: 100, ...shape };
}

function listedOf(record: ReservationRecord): ListedReservation {
  return { id: record.id, answer: JSON.stringify(answerOf(record)) };
}

function ids(records: readonly { id: string }[]): string[] {
  return records.map(({ id }) => id);
}
