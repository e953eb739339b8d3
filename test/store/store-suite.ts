import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Holding, TAG_PLACES, type Tags } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import {
  type AuditEntry,
  EXPIRED_KEYS_AT_ONCE,
  type HeldReservation,
  type IdempotencyKey,
  type IdempotencyRecord,
  type ReservationQuery,
  type ReservationRecord,
  type ReservationStore,
  type WrittenChange,
} from '../../src/allocator/store.ts';
import { READ_AT_ONCE } from '../../src/store/reservation-records.ts';
import { Allocator } from '../allocator/allocator.ts';
import { smallLink } from '../allocator/small-link.ts';
import { changeLink, type LinkTransaction, type OneHop, oneHop } from './one-link.ts';
import type { OpenedStore } from './opened-store.ts';
import { bookUnder, cancel, put } from './written.ts';

const LINK = 'a~b';
const DAWN = 1_800_000_000_000;

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
      change(async (transaction) => (await transaction.read([id]))[0], link);
    const ending = (after: number, until = Number.MAX_SAFE_INTEGER): Promise<unknown[]> =>
      change((transaction) => transaction.endingBetween(after, until));
    const loaded = async (from: number): Promise<{ version: number; held: HeldReservation[] }> => {
      const held: HeldReservation[] = [];
      const { version } = await store.loadLink(LINK, from, (portion) => held.push(...portion));
      return { version, held };
    };
    const version = (link = LINK): Promise<number> =>
      change(async (transaction) => transaction.version, link);

    describe('a reservation', () => {
      test.each([true, false])('is found as it was put (reversed: %s)', async (reversed) => {
        const full = record('r1', {
          reversed,
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
        expect(await opened.rows('SELECT count(*) AS n FROM tag_hold')).toEqual([{ n: 12 }]);
      });

      test('that is put again takes the place of what it was, tags and all', async () => {
        await write(record('r1', { tags: tags(1) }));
        const moved = record('r1', { start: 200, end: 300, bandwidth: 7, tags: tags(2) });
        await write(moved);
        expect(await store.find('r1')).toEqual(moved);
        await write(record('r2', { tags: tags(1) }));
        await expect(write(record('r3', { start: 200, end: 300, tags: tags(2) }))).rejects.toThrow();
      });

      test('that is put again may keep its own tags', async () => {
        await write(record('r1', { start: 100, end: 200 }));
        await write(record('r1', { start: 150, end: 250 }));
        expect(await store.find('r1')).toMatchObject({ start: 150, end: 250 });
      });

      test('is read whichever link is locked, and without any', async () => {
        await write(record('r1'));
        expect(await readBack('r1', 'c~d')).toEqual(record('r1'));
        expect(await store.readLinks(({ read }) => read(['unknown', 'r1']))).toEqual([record('r1')]);
      });

      test('that never was is not found', async () => {
        expect(await store.find('unknown')).toBeUndefined();
        expect(await readBack('unknown')).toBeUndefined();
      });

      test('that was deleted is found nowhere, and its tags are free', async () => {
        await write(record('r1'));
        await withdraw('r1');
        expect(await store.find('r1')).toBeUndefined();
        expect(await readBack('r1')).toBeUndefined();
        expect(await ending(0)).toEqual([]);
        expect(await store.list(query())).toEqual([]);
        await write(record('r2'));
        expect(ids(await store.list(query()))).toEqual(['r2']);
      });

      test.each([
        { rule: 'no time', start: 100, end: 100 },
        { rule: 'less than no time', start: 101, end: 100 },
      ])('of $rule is refused', async (period) => {
        await expect(write(record('r1', period))).rejects.toThrow();
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

      test('of no bandwidth is refused', async () => {
        await expect(write(record('r1', { bandwidth: 0 }))).rejects.toThrow();
      });
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
        store.changeLinks(ROUTE.toReversed(), async (transaction) => {
          expect(transaction.links.map(({ id }) => id)).toEqual(ROUTE);
          const { id, experiment, createdBy: by, hops, ...demand } = reservation;
          const entry = { at: DAWN, action, by, experiment, reservation: id, demand, why: null };
          const audit = hops.map((hop) => ({ ...entry, ...hop }));
          await transaction.write({ changes: [{ action, record: reservation }], audit }, DAWN);
        });
      const versions = (): Promise<number[]> => Promise.all(ROUTE.map((link) => version(link)));
      const changes = (from: number): Promise<unknown[]> =>
        store.readLinks(async ({ look }) => {
          const seen: unknown[] = [];
          for (const link of ROUTE) seen.push(await (await look(link)).changesSince(from));
          return seen;
        });
      const onEachLink = ({ id, hops, ...held }: ReservationRecord): unknown[][] => {
        const { start, end, bandwidth, tenant } = held;
        return hops.map(({ tags }) => [
          { id, deleted: false, holding: { start, end, bandwidth, tags, tenant } },
        ]);
      };
      const count = async (table: string): Promise<unknown> =>
        Number((await opened.rows(`SELECT count(*) AS n FROM ${table}`))[0]?.['n']);

      test('is written, read, listed, changed and deleted in one transaction over its links', async () => {
        const booked = routed('r1', { name: 'long', description: 'over two sites' });
        await changeRoute('create', booked);
        expect(await versions()).toEqual([1, 1, 1]);
        expect(await store.find('r1')).toEqual(booked);
        expect(await readBack('r1', 'e~f')).toEqual(booked);
        await write(record('r0', { tags: tags(2) }), record('r2', { tags: tags(3) }));
        expect(await store.list(query())).toEqual([
          record('r0', { tags: tags(2) }),
          booked,
          record('r2', { tags: tags(3) }),
        ]);
        // A page counts reservations, not hops.
        expect(ids(await store.list(query({ limit: 2 })))).toEqual(['r0', 'r1']);
        expect(await store.readLinks(({ countLive }) => countLive(['proj_1'], 0))).toEqual(
          new Map([['proj_1', 3]]),
        );
        const beside = [[], ['a~b'], ROUTE].map((known) => store.countBeside(known, 0));
        expect(await Promise.all(beside)).toEqual([3, 1, 0]);
        expect(await changes(0)).toMatchObject([[{}, {}, {}], ...onEachLink(booked).slice(1)]);

        const changed = routed('r1', { start: 150, end: 250, bandwidth: 7 }, 4);
        await changeRoute('update', changed);
        expect(await versions()).toEqual([4, 2, 2]);
        expect(await store.find('r1')).toEqual(changed);
        expect(await changes(1)).toMatchObject([
          [{ id: 'r0' }, { id: 'r2' }, ...(onEachLink(changed)[0] ?? [])],
          ...onEachLink(changed).slice(1),
        ]);
        // The tags that it held are free, and those that it holds are not.
        await changeRoute('create', routed('r3', {}, 1));
        await expect(changeRoute('create', routed('r4', {}, 4))).rejects.toThrow();

        await changeRoute('delete', changed);
        expect(await versions()).toEqual([6, 4, 4]);
        expect(await store.find('r1')).toBeUndefined();
        expect(ids(await store.list(query()))).toEqual(['r0', 'r2', 'r3']);
        const gone = [{ id: 'r1', deleted: true }];
        expect(await changes(3)).toEqual([[...(onEachLink(routed('r3'))[0] ?? []), ...gone], gone, gone]);
        await changeRoute('create', routed('r4', {}, 4));
      });

      test('is read by its versions with all of its route, each once and as it stands now', async () => {
        await changeRoute('create', routed('r1'));
        await write(record('r0', { tags: tags(2), experiment: 'exp_2' }));
        const updated = routed('r1', { bandwidth: 7 }, 4);
        await changeRoute('update', updated);
        const look = (link: string, since: number, of?: { experiment: string; most: number }) =>
          store.readLinks(async ({ changedSince, links }) => [
            await links(),
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
        expect(await store.links()).toMatchObject([{ version: 4 }, { version: 3 }, { version: 3 }]);
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

      test.each(ROUTE)('is refused as a whole for a tag that is held on %s', async (link) => {
        const held = (routed('r1').hops.find((hop) => hop.link === link) ?? { tags: tags(1) }).tags;
        const holder = record('r0', { link, tags: { ...tags(99), site2_c_tag: held.site2_c_tag } });
        await change((transaction) => put(transaction, holder), link);
        const before = await versions();
        await expect(changeRoute('create', routed('r1'))).rejects.toThrow();
        expect(await store.find('r1')).toBeUndefined();
        expect(await versions()).toEqual(before);
        for (const [table, rows] of Object.entries({ reservation: 1, hop: 1, tag_hold: 4, audit: 0 })) {
          expect(`${table} ${await count(table)}`).toBe(`${table} ${rows}`);
        }

        const elsewhere = routed('r1', {}, 5);
        await changeRoute('create', elsewhere);
        await expect(changeRoute('update', routed('r1', { bandwidth: 9 }))).rejects.toThrow();
        expect(await store.find('r1')).toEqual(elsewhere);
        await change((transaction) => cancel(transaction, holder, DAWN), link);
        await changeRoute('update', routed('r1', { bandwidth: 9 }));
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

    describe('the version of a link', () => {
      test('starts at 0 and counts every change', async () => {
        expect(await version()).toBe(0);
        await write(record('r1'));
        expect(await version()).toBe(1);
        await write(record('r1', { bandwidth: 2 }));
        expect(await version()).toBe(2);
        await withdraw('r1');
        expect(await version()).toBe(3);
        await write(record('r2'), record('r3', { tags: tags(2) }));
        expect(await version()).toBe(5);
      });

      test('is the one that was locked, throughout the transaction', async () => {
        const seen = await change(async (transaction) => {
          await put(transaction, record('r1'));
          return transaction.version;
        });
        expect(seen).toBe(0);
      });

      test('is each link’s own', async () => {
        await write(record('r1'));
        expect(await version('c~d')).toBe(0);
        await change((transaction) => put(transaction, record('r2', { link: 'c~d' })), 'c~d');
        expect(await version('c~d')).toBe(1);
        expect(await version()).toBe(1);
      });
    });

    describe('the changes since a version', () => {
      const since = (from: number, link = LINK): Promise<unknown> =>
        change((transaction) => transaction.changesSince(from), link);

      test('are those that came later, each reservation once, as it stands now', async () => {
        await write(record('r1', { tags: tags(1) }));
        await write(record('r2', { tags: tags(2) }));
        await write(record('r3', { tags: tags(3) }));
        const changed = record('r1', { bandwidth: 9, tags: tags(4) });
        await write(record('r1', { bandwidth: 8, tags: tags(5) }));
        await write(changed);
        await withdraw('r2');
        const r3 = { id: 'r3', deleted: false, holding: holdingOf(record('r3', { tags: tags(3) })) };
        const r1 = { id: 'r1', deleted: false, holding: holdingOf(changed) };
        const r2 = { id: 'r2', deleted: true };
        expect(await since(0)).toEqual([r3, r1, r2]);
        expect(await since(2)).toEqual([r3, r1, r2]);
        expect(await since(3)).toEqual([r1, r2]);
        expect(await since(4)).toEqual([r1, r2]);
        expect(await since(5)).toEqual([r2]);
        expect(await since(6)).toEqual([]);
      });

      test('hold what was created and deleted between', async () => {
        await write(record('r1'));
        await withdraw('r1');
        expect(await since(0)).toEqual([{ id: 'r1', deleted: true }]);
      });

      test('are one link’s alone', async () => {
        await write(record('r1'));
        expect(await since(0, 'c~d')).toEqual([]);
      });
    });

    describe('what ends after an instant', () => {
      const periods: Record<string, [start: number, end: number]> = {
        ended: [0, 90],
        'ends now': [85, 100],
        'ends in a millisecond': [85, 101],
        running: [60, 130],
        'starts now': [100, 120],
        scheduled: [140, 150],
      };

      test.each([
        { from: -1, ending: Object.keys(periods) },
        { from: 89, ending: Object.keys(periods) },
        { from: 90, ending: Object.keys(periods).filter((id) => id !== 'ended') },
        { from: 99, ending: ['ends now', 'ends in a millisecond', 'running', 'starts now', 'scheduled'] },
        { from: 100, ending: ['ends in a millisecond', 'running', 'starts now', 'scheduled'] },
        { from: 101, ending: ['running', 'starts now', 'scheduled'] },
        { from: 149, ending: ['scheduled'] },
        { from: 150, ending: [] },
      ])('from $from on: $ending', async ({ from, ending: due }) => {
        for (const [index, [id, [start, end]]] of Object.entries(periods).entries()) {
          await write(record(id, { start, end, tags: tags(index + 1) }));
        }
        const { version, held } = await loaded(from);
        expect(version).toBe(6);
        expect(held.map(({ id }) => id).toSorted()).toEqual(due.toSorted());
        expect(held.map(({ end }) => end)).toEqual(held.map(({ end }) => end).toSorted((a, b) => a - b));
        expect(await ending(from)).toHaveLength(due.length);
      });

      test('and by another', async () => {
        await write(record('r1', { end: 110 }), record('r2', { end: 120, tags: tags(2) }));
        expect(await ending(109, 119)).toHaveLength(1);
        expect(await ending(110, 120)).toEqual([
          { id: 'r2', ...holdingOf(record('r2', { end: 120, tags: tags(2) })) },
        ]);
        expect(await ending(120, 130)).toEqual([]);
      });

      test('is of one link alone, whole, without deleted reservations', async () => {
        const kept = record('r1', { tags: tags(1) });
        await write(kept, record('r2', { tags: tags(2) }));
        await withdraw('r2');
        await change((transaction) => put(transaction, record('r3', { link: 'c~d' })), 'c~d');
        expect(await ending(0)).toEqual([{ id: 'r1', ...holdingOf(kept) }]);
        expect(await loaded(0)).toEqual({ version: 3, held: [{ id: 'r1', ...holdingOf(kept) }] });
      });

      test('of a link that nobody has asked for yet is nothing, at version 0', async () => {
        expect(await loaded(0)).toEqual({ version: 0, held: [] });
      });
    });

    describe('the audit', () => {
      const entry: AuditEntry = {
        link: LINK,
        at: DAWN,
        action: 'create',
        by: 'user_1',
        experiment: 'exp_1',
        reservation: 'r1',
        demand: { start: 100, end: 200, bandwidth: 1 },
        tags: tags(1),
        why: null,
      };
      const refused: AuditEntry = {
        ...entry,
        reservation: null,
        tags: null,
        why: 'bandwidth: 0 of 1 Mbps free',
      };

      test('and deleted reservations from before an instant are removed, with their keys; the link knows', async () => {
        const later = { ...entry, at: DAWN + 10 };
        await change((transaction) => bookUnder(transaction, record('r1'), keyFor('r1'), 0));
        await change((transaction) => cancel(transaction, record('r1'), DAWN));
        await change((transaction) => cancel(transaction, record('r2', { tags: tags(2) }), DAWN + 10));
        await change((transaction) =>
          transaction.write({ changes: [], audit: [entry, later, refused] }, DAWN),
        );
        await write(record('r3'));
        expect(await store.forget(DAWN)).toEqual({ audit: 0, deleted: 0 });
        expect(await store.forget(DAWN + 1)).toEqual({ audit: 2, deleted: 1 });
        expect(await store.forget(DAWN + 1)).toEqual({ audit: 0, deleted: 0 });
        expect(await opened.rows('SELECT id FROM reservation ORDER BY id')).toEqual([
          { id: 'r2' },
          { id: 'r3' },
        ]);
        expect(await opened.rows('SELECT reservation FROM hop ORDER BY reservation')).toEqual([
          { reservation: 'r2' },
          { reservation: 'r3' },
        ]);
        expect(await opened.rows('SELECT at_ms FROM audit')).toEqual([{ at_ms: DAWN + 10 }]);
        expect(await opened.rows('SELECT key FROM idempotency_key')).toEqual([]);
        const known = await change(async ({ version, forgotten }) => ({ version, forgotten }));
        expect(known).toEqual({ version: 4, forgotten: 2 });
      });
    });

    describe('a transaction that rejects', () => {
      const failure = new Error('on purpose');

      test('leaves nothing of a booking, and passes its error on', async () => {
        const failing = change(async (transaction) => {
          await put(transaction, record('r1'));
          throw failure;
        });
        await expect(failing).rejects.toBe(failure);
        expect(await store.find('r1')).toBeUndefined();
        expect(await version()).toBe(0);
        expect(await change((transaction) => transaction.changesSince(0))).toEqual([]);
        await write(record('r2'));
      });

      test('leaves an update and a cancellation undone', async () => {
        const before = record('r1', { tags: tags(1) });
        await write(before);
        const failing = change(async (transaction) => {
          await transaction.write(
            {
              changes: [
                { action: 'update', record: record('r1', { tags: tags(2), bandwidth: 9 }) },
                { action: 'delete', record: before },
              ],
              audit: [],
            },
            DAWN,
          );
          throw failure;
        });
        await expect(failing).rejects.toBe(failure);
        expect(await store.find('r1')).toEqual(before);
        expect(await version()).toBe(1);
        await expect(write(record('r2', { tags: tags(1) }))).rejects.toThrow();
        await write(record('r2', { tags: tags(2) }));
      });

      test('lets the next one through', async () => {
        const failing = [1, 2, 3].map(() => change(async () => Promise.reject(failure)));
        await Promise.allSettled(failing);
        await write(record('r1'));
        expect(await version()).toBe(1);
      });
    });

    test('transactions on one link wait for each other', async () => {
      const order: string[] = [];
      const versions = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          change(async (transaction) => {
            order.push(`in ${index}`);
            await put(transaction, record(`r${index}`, { tags: tags(index + 1) }));
            await transaction.read(['r0']);
            order.push(`out ${index}`);
            return transaction.version;
          }),
        ),
      );
      expect(versions.toSorted((one, other) => one - other)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
      for (let at = 0; at < order.length; at += 2) {
        expect(order[at + 1]).toBe(order[at]?.replace('in', 'out'));
      }
    });

    describe('the guard, which does not depend on a decision being right, refuses a tag that is held', () => {
      test.each(TAG_PLACES)(
        '%s: a millisecond of overlap on either side; touching is allowed',
        async (place) => {
          const other = (id: string, start: number, end: number): ReservationRecord =>
            record(id, { start, end, tags: { ...tags(2), [place]: 1 } });
          await write(record('held', { start: 100, end: 200 }));
          for (const [start, end] of [
            [50, 101],
            [199, 250],
            [120, 130],
            [50, 250],
            [100, 200],
          ] as const) {
            await expect(write(other('refused', start, end))).rejects.toThrow();
          }
          expect(await store.find('refused')).toBeUndefined();
          await write(other('before', 50, 100), other('after', 200, 250));
          expect(await version()).toBe(3);
        },
      );

      test('on an update, too, and leaves the reservation as it was', async () => {
        const before = record('r2', { start: 200, end: 300 });
        await write(record('r1', { start: 100, end: 200 }), before);
        await expect(write(record('r2', { start: 199, end: 300 }))).rejects.toThrow();
        expect(await store.find('r2')).toEqual(before);
        await expect(write(record('r3', { start: 299, end: 301 }))).rejects.toThrow();
      });

      test('at one place of one link only: other places and links have tags of their own', async () => {
        await write(
          record('r1', { tags: { site1_s_tag: 1, site1_c_tag: 2, site2_s_tag: 3, site2_c_tag: 4 } }),
        );
        await write(
          record('r2', { tags: { site1_s_tag: 2, site1_c_tag: 3, site2_s_tag: 4, site2_c_tag: 1 } }),
        );
        await change((transaction) => put(transaction, record('r3', { link: 'c~d' })), 'c~d');
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

      test('count on every link, and no longer than an hour', async () => {
        await refuse(1000, DAWN);
        await refuse(4, DAWN, {}, 'c~d');
        expect(await opened.rows("SELECT link, times FROM audit WHERE link = 'c~d'")).toEqual([
          { link: 'c~d', times: 4 },
        ]);
        await refuse(2, DAWN + 60 * MINUTE);
        expect(await counts()).toEqual([
          [1002, 1],
          [1, 4],
        ]);
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

      test('by a replica is kept by no other one, whatever their clocks', async () => {
        const link = smallLink();
        const replica = (clock: number): Allocator =>
          new Allocator({
            network: createNetwork({ sites: ['a', 'b'], links: [link] }),
            store,
            now: () => clock,
            newId: () => `r${++ids}`,
          });
        let ids = 0;
        const who = { experiment: 'exp_1', createdBy: 'user_1', expiry: DAWN * 2 };
        const book = (allocator: Allocator, bandwidth: number) =>
          allocator.create({ site1: 'a', site2: 'b', start: DAWN * 1.5, end: DAWN * 1.6, bandwidth, ...who });
        const [early, late, other] = [replica(DAWN), replica(DAWN + 600_000), replica(DAWN)];
        const half = link.bandwidth / 2;
        await book(late, half);
        await book(late, half);
        await late.delete('r1', { by: 'user_1' });
        // It knows the link now: r2 has the other half.
        expect(await book(other, link.bandwidth)).toMatchObject({ ok: false });
        await early.delete('r2', { by: 'user_1' });
        await store.forget(DAWN + 1);
        await store.forget(DAWN + 600_001);
        expect(await book(other, link.bandwidth)).toMatchObject({ ok: true });
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
        expect(listed[1]).toEqual(record('r2', { link: 'c~d' }));
        expect(ids(await store.list(query({ experiment: 'exp_2' })))).toEqual(['other']);
        expect(await store.list(query({ experiment: 'exp_3' }))).toEqual([]);
      });

      test('comes in pages that miss nothing and repeat nothing, though others cancel between', async () => {
        for (let index = 0; index < 7; index += 1)
          await write(record(`r${index}`, { tags: tags(index + 1) }));
        const pages: string[][] = [];
        for (const after of [undefined, 'r2', 'r5', 'r6']) {
          pages.push(ids(await store.list(query({ limit: 3, ...(after !== undefined && { after }) }))));
          await withdraw('r2');
        }
        expect(pages).toEqual([['r0', 'r1', 'r2'], ['r3', 'r4', 'r5'], ['r6'], []]);
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

      test.each([
        { now: 99, scheduled: ['r1', 'r2'], active: [], ended: [] },
        { now: 100, scheduled: ['r2'], active: ['r1'], ended: [] },
        { now: 199, scheduled: ['r2'], active: ['r1'], ended: [] },
        { now: 200, scheduled: [], active: ['r2'], ended: ['r1'] },
        { now: 300, scheduled: [], active: [], ended: ['r1', 'r2'] },
      ])('by state at $now: 100 to 200 and 200 to 300 are half-open', async ({ now, ...states }) => {
        await write(record('r1', { start: 100, end: 200 }), record('r2', { start: 200, end: 300 }));
        for (const state of ['scheduled', 'active', 'ended'] as const) {
          expect(ids(await store.list(query({ state, now })))).toEqual(states[state]);
        }
        expect(ids(await store.list(query({ now })))).toEqual(['r1', 'r2']);
      });

      test('counts its pages in the state that is asked for', async () => {
        await write(
          record('r1', { start: 0, end: 10 }),
          record('r2', { start: 90, end: 110 }),
          record('r3', { start: 20, end: 30 }),
          record('r4', { start: 40, end: 50 }),
        );
        const ended = (after?: string): Promise<ReservationRecord[]> =>
          store.list(query({ state: 'ended', now: 100, limit: 2, ...(after !== undefined && { after }) }));
        expect(ids(await ended())).toEqual(['r1', 'r3']);
        expect(ids(await ended('r3'))).toEqual(['r4']);
      });
    });

    describe('a key', () => {
      /** Books under a key as an allocator does; what is told of a key that is taken comes back. */
      const book = (
        booking: IdempotencyRecord,
        { now = 0, link = LINK } = {},
      ): Promise<IdempotencyRecord | undefined> =>
        change(async (transaction) => {
          const [earlier] = await transaction.lockKeys([booking], now);
          const booked = record(booking.reservations[0] ?? '', { link, tags: tags(nextTag()) });
          if (!earlier) await bookUnder(transaction, booked, booking, now);
          return earlier;
        }, link);
      const locked = (booking: IdempotencyKey, now: number, link = LINK): Promise<unknown[]> =>
        change((transaction) => transaction.lockKeys([booking], now), link);
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
          for (const link of [LINK, 'c~d']) {
            expect(await locked(booking, now, link)).toEqual([booking]);
          }
        }
        for (const now of [100, 101]) {
          expect(await store.findKey(booking, now)).toBeUndefined();
          expect(await locked(booking, now)).toEqual([]);
        }
      });

      test.each<[string, Partial<IdempotencyKey>]>([
        ['user', { createdBy: 'user_2' }],
        ['experiment', { experiment: 'exp_2' }],
        ['text', { key: 'other' }],
        ['case', { key: 'KEY' }],
        ['length', { key: 'key ' }],
      ])('of another %s is another key', async (_, difference) => {
        const one = keyFor('r1');
        const other = keyFor('r2', difference);
        await book(one);
        expect(await store.findKey(other, 0)).toBeUndefined();
        expect(await book(other)).toBeUndefined();
        expect(await store.findKey(one, 0)).toEqual(one);
        expect(await store.findKey(other, 0)).toEqual(other);
      });

      test.each([
        ['of 255 characters', 'k'.repeat(255)],
        [
          'of every character that it may hold',
          Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at)).join(''),
        ],
      ])('may be a text %s', async (_, key) => {
        const booking = keyFor('r1', { key });
        await book(booking);
        expect(await store.findKey(booking, 0)).toEqual(booking);
      });

      test.each([
        ['on its link', LINK],
        ['on another link', 'c~d'],
      ])('that is taken stays what it is, and says so: asked for %s', async (_, link) => {
        const first = keyFor('r1', { expires: 100 });
        await book(first);
        const second = keyFor('r2', { fingerprint: 'other', expires: 200 });
        expect(await book(second, { now: 99, link })).toEqual(first);
        expect(await store.findKey(first, 0)).toEqual(first);
        expect(await store.find('r2')).toBeUndefined();
      });

      test('that expired is free, and is the newcomer’s from then on', async () => {
        await book(keyFor('r1', { expires: 100 }));
        const second = keyFor('r2', { fingerprint: 'other', expires: 200 });
        expect(await book(second, { now: 100 })).toBeUndefined();
        expect(await store.findKey(second, 100)).toEqual(second);
        expect(await keptKeys()).toEqual(['key']);
      });

      test('stays when its reservation is updated, and when it is deleted', async () => {
        const booking = keyFor('r1');
        await book(booking);
        await write(record('r1', { bandwidth: 9 }));
        expect(await store.findKey(booking, 0)).toEqual(booking);
        await withdraw('r1');
        expect(await store.findKey(booking, 0)).toEqual(booking);
      });

      test('is not kept when the transaction rejects, nor is the reservation', async () => {
        const booking = keyFor('r1');
        const failing = change(async (transaction) => {
          await bookUnder(transaction, record('r1'), booking, 0);
          throw new Error('on purpose');
        });
        await expect(failing).rejects.toThrow('on purpose');
        expect(await store.findKey(booking, 0)).toBeUndefined();
        expect(await store.find('r1')).toBeUndefined();
        expect(await book(booking)).toBeUndefined();
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

      test('of many at once on links of their own, one is kept, and all are told which', async () => {
        const rivals = Array.from({ length: 10 }, (_, at) => keyFor(`r${at}`, { fingerprint: `f${at}` }));
        const told = await Promise.all(rivals.map((rival, at) => book(rival, { link: `a~${at}` })));
        const winners = rivals.filter((_, at) => told[at] === undefined);
        expect(winners).toHaveLength(1);
        for (const earlier of told) expect([undefined, winners[0]]).toContainEqual(earlier);
        expect(ids(await store.list(query()))).toEqual(winners.flatMap(({ reservations }) => reservations));
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

function holdingOf({ start, end, bandwidth, tenant, hops: [{ tags }] }: ReservationRecord): Holding {
  return { start, end, bandwidth, tags, tenant };
}

function tags(tag: number): Tags {
  return { site1_s_tag: tag, site1_c_tag: tag, site2_s_tag: tag, site2_c_tag: tag };
}

function query(shape: Partial<ReservationQuery> = {}): ReservationQuery {
  return { experiment: 'exp_1', now: 0, limit: 100, ...shape };
}

function ids(records: readonly ReservationRecord[]): string[] {
  return records.map(({ id }) => id);
}
