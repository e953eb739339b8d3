import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TAG_PLACES, type Tags } from '../../src/allocator/calendar.ts';
import {
  type BookingKey,
  KEYS_LET_GO,
  type LinkTransaction,
  type RememberedBooking,
  type ReservationQuery,
  type ReservationRecord,
  type ReservationStore,
} from '../../src/allocator/store.ts';
import type { OpenedStore } from './opened-store.ts';

const LINK = 'a~b';
const DAWN = 1_800_000_000_000;

/**
 * What every store keeps to (`src/allocator/store.ts`), whatever the engine.
 *
 * @param open opens a store on a database of its own, which is new
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
    ): Promise<Answer> => store.changeLink(link, work);
    const put = (...records: ReservationRecord[]): Promise<void> =>
      change(async (transaction) => {
        for (const each of records) await transaction.put(each);
      });
    const cancel = (id: string): Promise<void> => change((transaction) => transaction.cancel(id, DAWN));
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
        await put(full);
        expect(await store.find('r1')).toEqual(full);
        expect(await change((transaction) => transaction.read('r1'))).toEqual(full);
      });

      test('is read within the transaction that put it', async () => {
        const read = await change(async (transaction) => {
          await transaction.put(record('r1'));
          return transaction.read('r1');
        });
        expect(read).toEqual(record('r1'));
      });

      test('that is put again takes the place of what it was, tags and all', async () => {
        await put(record('r1', { tags: tags(1) }));
        const moved = record('r1', { start: 200, end: 300, bandwidth: 7, tags: tags(2) });
        await put(moved);
        expect(await store.find('r1')).toEqual(moved);
        await put(record('r2', { tags: tags(1) }));
        await expect(put(record('r3', { start: 200, end: 300, tags: tags(2) }))).rejects.toThrow();
      });

      test('that is put again may keep its own tags', async () => {
        await put(record('r1', { start: 100, end: 200 }));
        await put(record('r1', { start: 150, end: 250 }));
        expect(await store.find('r1')).toMatchObject({ start: 150, end: 250 });
      });

      test('is not read through another link', async () => {
        await put(record('r1'));
        expect(await change((transaction) => transaction.read('r1'), 'c~d')).toBeUndefined();
      });

      test('that never was is not found', async () => {
        expect(await store.find('unknown')).toBeUndefined();
        expect(await change((transaction) => transaction.read('unknown'))).toBeUndefined();
      });

      test('that was cancelled is found nowhere, and its tags are free', async () => {
        await put(record('r1'));
        await cancel('r1');
        expect(await store.find('r1')).toBeUndefined();
        expect(await change((transaction) => transaction.read('r1'))).toBeUndefined();
        expect(await change((transaction) => transaction.endingAfter(0))).toEqual([]);
        expect(await store.list(query())).toEqual([]);
        await put(record('r2'));
        expect(ids(await store.list(query()))).toEqual(['r2']);
      });

      test.each([
        { rule: 'no time', start: 100, end: 100 },
        { rule: 'less than no time', start: 101, end: 100 },
      ])('of $rule is refused', async (period) => {
        await expect(put(record('r1', period))).rejects.toThrow();
        expect(await store.find('r1')).toBeUndefined();
      });

      test('of no bandwidth is refused', async () => {
        await expect(put(record('r1', { bandwidth: 0 }))).rejects.toThrow();
      });
    });

    describe('the version of a link', () => {
      test('starts at 0 and counts every change', async () => {
        expect(await version()).toBe(0);
        await put(record('r1'));
        expect(await version()).toBe(1);
        await put(record('r1', { bandwidth: 2 }));
        expect(await version()).toBe(2);
        await cancel('r1');
        expect(await version()).toBe(3);
        await put(record('r2'), record('r3', { tags: tags(2) }));
        expect(await version()).toBe(5);
      });

      test('is the one that was locked, throughout the transaction', async () => {
        const seen = await change(async (transaction) => {
          await transaction.put(record('r1'));
          return transaction.version;
        });
        expect(seen).toBe(0);
      });

      test('is each link’s own', async () => {
        await put(record('r1'));
        expect(await version('c~d')).toBe(0);
        await change((transaction) => transaction.put(record('r2', { link: 'c~d' })), 'c~d');
        expect(await version('c~d')).toBe(1);
        expect(await version()).toBe(1);
      });
    });

    describe('the changes since a version', () => {
      const since = (from: number, link = LINK): Promise<unknown> =>
        change((transaction) => transaction.changesSince(from), link);

      test('are those that came later, each reservation once, as it stands now', async () => {
        await put(record('r1', { tags: tags(1) }));
        await put(record('r2', { tags: tags(2) }));
        await put(record('r3', { tags: tags(3) }));
        const changed = record('r1', { bandwidth: 9, tags: tags(4) });
        await put(record('r1', { bandwidth: 8, tags: tags(5) }));
        await put(changed);
        await cancel('r2');
        const r3 = { id: 'r3', cancelled: false, record: record('r3', { tags: tags(3) }) };
        const r1 = { id: 'r1', cancelled: false, record: changed };
        const r2 = { id: 'r2', cancelled: true };
        expect(await since(0)).toEqual([r3, r1, r2]);
        expect(await since(2)).toEqual([r3, r1, r2]);
        expect(await since(3)).toEqual([r1, r2]);
        expect(await since(4)).toEqual([r1, r2]);
        expect(await since(5)).toEqual([r2]);
        expect(await since(6)).toEqual([]);
      });

      test('hold what was booked and cancelled between', async () => {
        await put(record('r1'));
        await cancel('r1');
        expect(await since(0)).toEqual([{ id: 'r1', cancelled: true }]);
      });

      test('are one link’s alone', async () => {
        await put(record('r1'));
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
      ])('from $from on: $ending', async ({ from, ending }) => {
        for (const [index, [id, [start, end]]] of Object.entries(periods).entries()) {
          await put(record(id, { start, end, tags: tags(index + 1) }));
        }
        const found = await change((transaction) => transaction.endingAfter(from));
        expect(ids(found).toSorted()).toEqual(ending.toSorted());
      });

      test('is one link’s alone, without what was cancelled, and whole', async () => {
        const kept = record('r1', { tags: tags(1) });
        await put(kept, record('r2', { tags: tags(2) }));
        await cancel('r2');
        await change((transaction) => transaction.put(record('r3', { link: 'c~d' })), 'c~d');
        expect(await change((transaction) => transaction.endingAfter(0))).toEqual([kept]);
      });
    });

    describe('a transaction that rejects', () => {
      const failure = new Error('on purpose');

      test('leaves nothing of a booking, and passes its error on', async () => {
        const failing = change(async (transaction) => {
          await transaction.put(record('r1'));
          throw failure;
        });
        await expect(failing).rejects.toBe(failure);
        expect(await store.find('r1')).toBeUndefined();
        expect(await version()).toBe(0);
        expect(await change((transaction) => transaction.changesSince(0))).toEqual([]);
        await put(record('r2'));
      });

      test('leaves an update and a cancellation undone', async () => {
        const before = record('r1', { tags: tags(1) });
        await put(before);
        const failing = change(async (transaction) => {
          await transaction.put(record('r1', { tags: tags(2), bandwidth: 9 }));
          await transaction.cancel('r1', DAWN);
          throw failure;
        });
        await expect(failing).rejects.toBe(failure);
        expect(await store.find('r1')).toEqual(before);
        expect(await version()).toBe(1);
        await expect(put(record('r2', { tags: tags(1) }))).rejects.toThrow();
        await put(record('r2', { tags: tags(2) }));
      });

      test('lets the next one through', async () => {
        const failing = [1, 2, 3].map(() => change(async () => Promise.reject(failure)));
        await Promise.allSettled(failing);
        await put(record('r1'));
        expect(await version()).toBe(1);
      });
    });

    test('transactions on one link wait for each other', async () => {
      const order: string[] = [];
      const versions = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          change(async (transaction) => {
            order.push(`in ${index}`);
            await transaction.put(record(`r${index}`, { tags: tags(index + 1) }));
            await transaction.read('r0');
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
          await put(record('held', { start: 100, end: 200 }));
          for (const [start, end] of [
            [50, 101],
            [199, 250],
            [120, 130],
            [50, 250],
            [100, 200],
          ] as const) {
            await expect(put(other('refused', start, end))).rejects.toThrow();
          }
          expect(await store.find('refused')).toBeUndefined();
          await put(other('before', 50, 100), other('after', 200, 250));
          expect(await version()).toBe(3);
        },
      );

      test('on an update, too, and leaves the reservation as it was', async () => {
        const before = record('r2', { start: 200, end: 300 });
        await put(record('r1', { start: 100, end: 200 }), before);
        await expect(put(record('r2', { start: 199, end: 300 }))).rejects.toThrow();
        expect(await store.find('r2')).toEqual(before);
        await expect(put(record('r3', { start: 299, end: 301 }))).rejects.toThrow();
      });

      test('at one place of one link only: other places and links have tags of their own', async () => {
        await put(record('r1', { tags: { site1_s_tag: 1, site1_c_tag: 2, site2_s_tag: 3, site2_c_tag: 4 } }));
        await put(record('r2', { tags: { site1_s_tag: 2, site1_c_tag: 3, site2_s_tag: 4, site2_c_tag: 1 } }));
        await change((transaction) => transaction.put(record('r3', { link: 'c~d' })), 'c~d');
      });
    });

    describe('a list', () => {
      test('is sorted by id and holds one experiment', async () => {
        await put(
          record('r3', { tags: tags(3) }),
          record('r1', { tags: tags(1) }),
          record('other', { tags: tags(4), experiment: 'exp_2' }),
        );
        await change((transaction) => transaction.put(record('r2', { link: 'c~d' })), 'c~d');
        const listed = await store.list(query());
        expect(ids(listed)).toEqual(['r1', 'r2', 'r3']);
        expect(listed[1]).toEqual(record('r2', { link: 'c~d' }));
        expect(ids(await store.list(query({ experiment: 'exp_2' })))).toEqual(['other']);
        expect(await store.list(query({ experiment: 'exp_3' }))).toEqual([]);
      });

      test('comes in pages that miss nothing and repeat nothing, though others cancel between', async () => {
        for (let index = 0; index < 7; index += 1) await put(record(`r${index}`, { tags: tags(index + 1) }));
        const pages: string[][] = [];
        for (const after of [undefined, 'r2', 'r5', 'r6']) {
          pages.push(ids(await store.list(query({ limit: 3, ...(after !== undefined && { after }) }))));
          await cancel('r2');
        }
        expect(pages).toEqual([['r0', 'r1', 'r2'], ['r3', 'r4', 'r5'], ['r6'], []]);
      });

      test.each([
        { now: 99, scheduled: ['r1', 'r2'], active: [], ended: [] },
        { now: 100, scheduled: ['r2'], active: ['r1'], ended: [] },
        { now: 199, scheduled: ['r2'], active: ['r1'], ended: [] },
        { now: 200, scheduled: [], active: ['r2'], ended: ['r1'] },
        { now: 300, scheduled: [], active: [], ended: ['r1', 'r2'] },
      ])('by state at $now: 100 to 200 and 200 to 300 are half-open', async ({ now, ...states }) => {
        await put(record('r1', { start: 100, end: 200 }), record('r2', { start: 200, end: 300 }));
        for (const state of ['scheduled', 'active', 'ended'] as const) {
          expect(ids(await store.list(query({ state, now })))).toEqual(states[state]);
        }
        expect(ids(await store.list(query({ now })))).toEqual(['r1', 'r2']);
      });

      test('counts its pages in the state that is asked for', async () => {
        await put(
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
      const bookUnder = (
        booking: RememberedBooking,
        { now = 0, link = LINK } = {},
      ): Promise<RememberedBooking | undefined> =>
        change(async (transaction) => {
          const earlier = await transaction.remember(booking, now);
          if (!earlier) await transaction.put(record(booking.reservation, { link, tags: tags(nextTag()) }));
          return earlier;
        }, link);
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

      test('is recalled as it was remembered, outside and inside, through any link, until it expires', async () => {
        const booking = remembered('r1', { expires: 100 });
        expect(await bookUnder(booking)).toBeUndefined();
        for (const now of [0, 99]) {
          expect(await store.recall(booking, now)).toEqual(booking);
          for (const link of [LINK, 'c~d']) {
            expect(await change((transaction) => transaction.recall(booking, now), link)).toEqual(booking);
          }
        }
        for (const now of [100, 101]) {
          expect(await store.recall(booking, now)).toBeUndefined();
          expect(await change((transaction) => transaction.recall(booking, now))).toBeUndefined();
        }
      });

      test('is recalled within the transaction that remembered it', async () => {
        const booking = remembered('r1');
        const recalled = await change(async (transaction) => {
          await transaction.remember(booking, 0);
          await transaction.put(record('r1'));
          return transaction.recall(booking, 0);
        });
        expect(recalled).toEqual(booking);
      });

      test.each<[string, Partial<BookingKey>]>([
        ['user', { createdBy: 'user_2' }],
        ['experiment', { experiment: 'exp_2' }],
        ['text', { key: 'other' }],
        ['case', { key: 'KEY' }],
        ['length', { key: 'key ' }],
      ])('of another %s is another key', async (_, difference) => {
        const one = remembered('r1');
        const other = remembered('r2', difference);
        await bookUnder(one);
        expect(await store.recall(other, 0)).toBeUndefined();
        expect(await bookUnder(other)).toBeUndefined();
        expect(await store.recall(one, 0)).toEqual(one);
        expect(await store.recall(other, 0)).toEqual(other);
      });

      test.each([
        ['of 255 characters', 'k'.repeat(255)],
        [
          'of every character that it may hold',
          Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at)).join(''),
        ],
      ])('may be a text %s', async (_, key) => {
        const booking = remembered('r1', { key });
        await bookUnder(booking);
        expect(await store.recall(booking, 0)).toEqual(booking);
      });

      test.each([
        ['on its link', LINK],
        ['on another link', 'c~d'],
      ])('that is taken stays what it is, and says so: asked for %s', async (_, link) => {
        const first = remembered('r1', { expires: 100 });
        await bookUnder(first);
        const second = remembered('r2', { fingerprint: 'other', expires: 200 });
        expect(await bookUnder(second, { now: 99, link })).toEqual(first);
        expect(await store.recall(first, 0)).toEqual(first);
        expect(await store.find('r2')).toBeUndefined();
      });

      test('that expired is free, and is the newcomer’s from then on', async () => {
        await bookUnder(remembered('r1', { expires: 100 }));
        const second = remembered('r2', { fingerprint: 'other', expires: 200 });
        expect(await bookUnder(second, { now: 100 })).toBeUndefined();
        expect(await store.recall(second, 100)).toEqual(second);
        expect(await keptKeys()).toEqual(['key']);
      });

      test('stays when its reservation is changed, and when it is cancelled', async () => {
        const booking = remembered('r1');
        await bookUnder(booking);
        await put(record('r1', { bandwidth: 9 }));
        expect(await store.recall(booking, 0)).toEqual(booking);
        await cancel('r1');
        expect(await store.recall(booking, 0)).toEqual(booking);
      });

      test('is not kept when the transaction rejects, nor is the reservation', async () => {
        const booking = remembered('r1');
        const failing = change(async (transaction) => {
          await transaction.remember(booking, 0);
          await transaction.put(record('r1'));
          throw new Error('on purpose');
        });
        await expect(failing).rejects.toThrow('on purpose');
        expect(await store.recall(booking, 0)).toBeUndefined();
        expect(await store.find('r1')).toBeUndefined();
        expect(await bookUnder(booking)).toBeUndefined();
      });

      test('is not kept without its reservation: the transaction can’t be committed', async () => {
        const booking = remembered('r1');
        await expect(change((transaction) => transaction.remember(booking, 0))).rejects.toThrow();
        expect(await keptKeys()).toEqual([]);
        expect(await bookUnder(booking)).toBeUndefined();
      });

      test('of many at once on links of their own, one is kept, and all are told which', async () => {
        const rivals = Array.from({ length: 10 }, (_, at) => remembered(`r${at}`, { fingerprint: `f${at}` }));
        const told = await Promise.all(rivals.map((rival, at) => bookUnder(rival, { link: `a~${at}` })));
        const winners = rivals.filter((_, at) => told[at] === undefined);
        expect(winners).toHaveLength(1);
        for (const earlier of told) expect([undefined, winners[0]]).toContainEqual(earlier);
        expect(ids(await store.list(query()))).toEqual(winners.map(({ reservation }) => reservation));
      });

      test(`${KEYS_LET_GO} that expired are let go by each that is remembered, the oldest first`, async () => {
        const many = KEYS_LET_GO + 50;
        const name = (at: number): string => `k${String(at).padStart(4, '0')}`;
        await change(async (transaction) => {
          for (let at = 0; at < many; at += 1) {
            await transaction.remember(remembered('r0', { key: name(at), expires: 1000 + at }), 0);
          }
          await transaction.put(record('r0', { tags: tags(nextTag()) }));
        });
        const expiring = (from: number): string[] =>
          Array.from({ length: many - from }, (_, index) => name(from + index));
        expect(await keptKeys()).toEqual(expiring(0));

        const later = { expires: 100_000 };
        await bookUnder(remembered('r1', { key: 'l1', ...later }), { now: 999 });
        expect(await keptKeys()).toEqual([...expiring(0), 'l1']);
        await bookUnder(remembered('r2', { key: 'l2', ...later }), { now: 1000 });
        expect(await keptKeys()).toEqual([...expiring(1), 'l1', 'l2']);
        // All but the last have expired.
        const now = 1000 + many - 2;
        await bookUnder(remembered('r3', { key: 'l3', ...later }), { now });
        expect(await keptKeys()).toEqual([...expiring(1 + KEYS_LET_GO), 'l1', 'l2', 'l3']);
        await bookUnder(remembered('r4', { key: 'l4', ...later }), { now });
        expect(await keptKeys()).toEqual([name(many - 1), 'l1', 'l2', 'l3', 'l4']);
      });
    });
  });
}

function record(id: string, shape: Partial<ReservationRecord> = {}): ReservationRecord {
  return {
    id,
    link: LINK,
    reversed: false,
    start: 100,
    end: 200,
    bandwidth: 1,
    tags: tags(1),
    experiment: 'exp_1',
    createdBy: 'user_1',
    createdAt: 0,
    ...shape,
  };
}

function remembered(reservation: string, shape: Partial<RememberedBooking> = {}): RememberedBooking {
  return {
    createdBy: 'user_1',
    experiment: 'exp_1',
    key: 'key',
    fingerprint: 'f',
    reservation,
    expires: 1_000_000,
    ...shape,
  };
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
