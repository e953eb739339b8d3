import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CommitUnknownError, StoreUnavailableError } from '../../../src/allocator/store.ts';
import {
  createKeyRing,
  type KeyRing,
  type KeyRingOptions,
  type KeyStore,
  newKey,
  READ_EVERY,
  READ_PAUSE,
  rotateByHand,
} from '../../../src/server/keys/key-ring.ts';
import {
  expiryToNote,
  isRotationDue,
  type KeyRecord,
  PUBLISHED_AFTER,
  PUBLISHED_AHEAD,
  planKeys,
  publishedUntil,
} from '../../../src/server/keys/rotation-rules.ts';
import { noLog } from '../../../src/server/log.ts';
import { openStores, type Stores } from '../../../src/store/stores.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { DAY, HOUR, NOW } from '../../fixtures/service.ts';

const postgres = usePostgres();

describe.each(postgres.engines)('the keys of replicas on %s', (_, newDatabase) => {
  let stores: Stores[];
  let clock: number;

  beforeEach(async () => {
    const database = await newDatabase();
    stores = await Promise.all([openStores(database), openStores(database)]);
    clock = NOW;
  });
  afterEach(async () => {
    for (const one of stores) await one.close();
  });

  const storeOf = (replica: number): KeyStore => {
    const found = stores[replica];
    if (!found) throw new RangeError(`there is no replica ${replica}`);
    return found.keys;
  };
  const ring = (replica: number, changes: Partial<KeyRingOptions> = {}): KeyRing =>
    createKeyRing({ service: 'portal', store: storeOf(replica), now: () => clock, log: noLog, ...changes });
  const numbers = async (keys: KeyRing): Promise<number[]> => (await keys.keys()).map(({ number }) => number);
  const rotate = (retireNow = false, replica = 0) =>
    rotateByHand('portal', storeOf(replica), { retireNow, now: clock });

  test('begin with one key when all start at once', async () => {
    const rings = Array.from({ length: 10 }, (_each, index) => ring(index % 2));
    const read = await Promise.all(rings.map((each) => each.keys()));
    expect(new Set(read.map((keys) => JSON.stringify(keys))).size).toBe(1);
    expect(read[0]).toMatchObject([{ number: 1, signsFrom: NOW, lastExpiry: 0 }]);
    expect(await storeOf(0).keys('identity')).toEqual([]);
  });

  test('get one new key when many rotate at once, by age and by hand', async () => {
    const rings = Array.from({ length: 6 }, (_each, index) => ring(index % 2, { rotateEvery: 90 * DAY }));
    for (const each of rings) expect(await numbers(each)).toEqual([1]);
    clock += 90 * DAY - PUBLISHED_AHEAD - 1;
    for (const each of rings) expect(await numbers(each)).toEqual([1]);
    clock += READ_EVERY;
    await Promise.all([...rings.map((each) => each.keys()), rotate(false, 0), rotate(false, 1)]);
    const kept = await storeOf(0).keys('portal');
    expect(kept.map(({ number }) => number)).toEqual([1, 2]);
    expect(kept[1]?.signsFrom).toBe(clock + PUBLISHED_AHEAD);
    // A key that waits to sign gets no successor.
    await rotate();
    expect(await storeOf(0).keys('portal')).toEqual(kept);
    clock += PUBLISHED_AHEAD;
    await rotate();
    expect((await storeOf(0).keys('portal')).at(-1)).toMatchObject({ number: 3 });
    // By age again and again; keys that are not needed are removed.
    for (let day = 1; day <= 3; day += 1) {
      clock += 90 * DAY;
      await rings[0]?.keys();
    }
    expect((await storeOf(0).keys('portal')).map(({ number }) => number)).toEqual([5, 6]);
  });

  test('are not removed when a longer validity was noted meanwhile', async () => {
    const store = storeOf(0);
    await store.add('portal', await newKey(1, NOW));
    const [seen] = await store.keys('portal');
    if (!seen) throw new Error('no key');
    expect(await storeOf(1).note('portal', 1, NOW + DAY)).toBe(true);
    await store.forget('portal', seen);
    // A replica that has not read it yet notes less: the longer one stays.
    expect(await store.note('portal', 1, NOW + HOUR)).toBe(true);
    expect(await store.keys('portal')).toMatchObject([{ lastExpiry: NOW + DAY }]);
    await store.forget('portal', { ...seen, lastExpiry: NOW + DAY });
    expect(await store.keys('portal')).toEqual([]);
    expect(await storeOf(1).note('portal', 1, NOW + DAY)).toBe(false);
  });

  test('are all removed by a retirement; two retirements at once make one new key', async () => {
    await ring(0).keys();
    await rotate();
    clock += HOUR;
    // Both replicas have read the second as the newest.
    const next = await Promise.all([newKey(3, clock), newKey(3, clock)]);
    await Promise.all(next.map((key, replica) => storeOf(replica).replace('portal', key)));
    expect(await storeOf(0).keys('portal')).toMatchObject([{ number: 3, signsFrom: clock }]);
    // Two retirements in turn make two keys.
    expect(await rotate(true)).toMatchObject([{ state: 'signing', signsFrom: clock }]);
    expect(await storeOf(0).keys('portal')).toMatchObject([{ number: 4 }]);
  });

  test('a key is added after the newest one only; a retirement during a rotation by age lets the new key sign at once', async () => {
    const store = storeOf(0);
    await store.add('portal', await newKey(2, NOW));
    await store.add('portal', await newKey(3, NOW + PUBLISHED_AHEAD));
    // What comes after an old reading is too late.
    await storeOf(1).add('portal', await newKey(3, NOW));
    await storeOf(1).replace('portal', await newKey(2, NOW));
    expect(await store.keys('portal')).toMatchObject([{ number: 2 }, { number: 3 }]);
    await storeOf(1).replace('portal', await newKey(3, NOW));
    expect(await store.keys('portal')).toMatchObject([{ number: 3, signsFrom: NOW }]);
    await store.add('identity', await newKey(1, NOW));
    expect(await store.keys('portal')).toHaveLength(1);
  });

  test('row 43: an expiry whose commit is unknown is not reported as the caller’s unknown outcome', async () => {
    const note: KeyStore['note'] = async () => {
      throw new CommitUnknownError('lost');
    };
    const one = ring(0, { store: { ...storeOf(0), note } });
    const [key] = await one.keys();
    if (!key) throw new Error('there is no key');
    const error = await one.note(key, clock + DAY).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error).not.toBeInstanceOf(CommitUnknownError);
  });

  test('keep their last copy while the database is away; without a copy the store is unavailable', async () => {
    let away = false;
    const store = storeOf(0);
    const keys: KeyStore['keys'] = async (service) => {
      if (away) throw new StoreUnavailableError('away');
      return store.keys(service);
    };
    const one = ring(0, { store: { ...store, keys } });
    await one.keys();
    away = true;
    await rotate();
    clock += DAY;
    expect(await numbers(one)).toEqual([1]);
    await expect(ring(0, { store: { ...store, keys } }).keys()).rejects.toThrow(StoreUnavailableError);
    away = false;
    clock += READ_PAUSE;
    expect(await numbers(one)).toEqual([1, 2]);
  });
});

const at = (time: string): number => Date.parse(`2026-11-01T${time}Z`);

const key1: KeyRecord = { number: 1, signsFrom: at('00:00:00'), lastExpiry: at('13:00:00') };
const key2: KeyRecord = { number: 2, signsFrom: at('12:20:00'), lastExpiry: 0 };

/** The state of each key at an instant: `1 signs, 2 published`. */
function plan(keys: readonly KeyRecord[], now: number): string {
  const { signing, published, gone } = planKeys(keys, now);
  return [...published, ...gone]
    .toSorted((one, other) => one.number - other.number)
    .map((key) => {
      if (gone.includes(key)) return `${key.number} gone`;
      if (key === signing) return `${key.number} signs`;
      return `${key.number} ${key.number > signing.number ? 'published' : 'verifies'}`;
    })
    .join(', ');
}

test('a key is published longer than clients and caches keep a key set', () => {
  const [client, caches, replicas] = [10 * 60_000, 300_000, 10_000];
  expect(PUBLISHED_AHEAD).toBeGreaterThan(client + caches + replicas);
  expect(PUBLISHED_AHEAD).toBe(20 * 60_000);
  expect(PUBLISHED_AFTER).toBe(20 * 60_000);
});

describe('key1, whose last token expires at 13:00, and key2, made at 12:00', () => {
  test.each([
    ['12:00:00', '1 signs, 2 published'],
    ['12:19:59.999', '1 signs, 2 published'],
    ['12:20:00', '1 verifies, 2 signs'],
    ['13:00:00', '1 verifies, 2 signs'],
    ['13:19:59.999', '1 verifies, 2 signs'],
    ['13:20:00', '1 gone, 2 signs'],
  ])('at %s: %s', (time, due) => {
    expect(plan([key1, key2], at(time))).toBe(due);
  });

  test('key1 alone signs without an end', () => {
    expect(plan([key1], at('23:59:59'))).toBe('1 signs');
    expect(publishedUntil([key1], key1)).toBe(Number.POSITIVE_INFINITY);
  });

  test.each([
    ['a month later', at('12:00:00') + 30 * DAY, at('12:20:00') + 30 * DAY],
    ['before it was followed', at('12:05:00'), at('12:40:00')],
    ['never, having signed nothing', 0, at('12:40:00')],
  ])('when its last token expires %s', (_, lastExpiry, until) => {
    const keys = [{ ...key1, lastExpiry }, key2];
    expect(plan(keys, until - 1)).toBe('1 verifies, 2 signs');
    expect(plan(keys, until)).toBe('1 gone, 2 signs');
  });

  test('a key with two successors stays as long as its tokens', () => {
    const key3 = { number: 3, signsFrom: at('20:00:00'), lastExpiry: 0 };
    const old = { ...key1, lastExpiry: at('22:00:00') };
    expect(plan([old, key2, key3], at('19:59:00'))).toBe('1 verifies, 2 signs, 3 published');
    expect(plan([old, key2, key3], at('20:20:00'))).toBe('1 verifies, 2 gone, 3 signs');
    expect(plan([old, key3], at('22:20:00'))).toBe('1 gone, 3 signs');
  });

  test('the first key signs when the clock is before all keys', () => {
    expect(plan([key1, key2], at('00:00:00') - DAY)).toBe('1 signs, 2 published');
  });

  test('a service without a key is an error', () => {
    expect(() => planKeys([], 0)).toThrow(RangeError);
  });
});

describe('a rotation by age', () => {
  const since = Date.parse('2026-01-01T00:00:00Z');
  const key = { number: 1, signsFrom: since, lastExpiry: 0 };

  test.each([
    ['2026-03-31T23:39:59.999Z', false],
    ['2026-03-31T23:40:00Z', true],
    ['2027-01-01T00:00:00Z', true],
  ])('every 90 days, is due at %s: %s', (time, due) => {
    expect(isRotationDue([key], Date.parse(time), 90 * DAY)).toBe(due);
  });

  test('is not due while a key waits to sign', () => {
    const now = Date.parse('2026-04-01T00:00:00Z');
    const next = { number: 2, signsFrom: now + 1, lastExpiry: 0 };
    expect(isRotationDue([key, next], now, 90 * DAY)).toBe(false);
    expect(isRotationDue([key, { ...next, signsFrom: now }], now, 90 * DAY)).toBe(false);
    expect(isRotationDue([], now, 90 * DAY)).toBe(false);
    // For any age: otherwise every look would make another key.
    expect(isRotationDue([key, next], now, 60_000)).toBe(false);
    expect(isRotationDue([key, next], now + 1, 60_000)).toBe(true);
  });
});

test.each([
  ['12:00:00', '12:00:00'],
  ['12:00:00.001', '13:00:00'],
  ['12:59:59.999', '13:00:00'],
  ['13:00:00', '13:00:00'],
])('an expiry at %s is noted as %s', (expiry, noted) => {
  expect(expiryToNote(at(expiry))).toBe(at(noted));
});
