import { calculateJwkThumbprint } from 'jose';
import { notBegun, StoreUnavailableError } from '../../allocator/store.ts';
import type { PastJwk } from '../../contract/claims.ts';
import { MINUTE } from '../../contract/durations.ts';
import { isWithin } from '../../contract/instants.ts';
import { publicPartOf } from '../../tokens/key-set.ts';
import { generateSigningKey, type PrivateJwk } from '../../tokens/signing-key.ts';
import type { Log } from '../log.ts';
import { onceIn } from '../once-in.ts';
import {
  expiryToNote,
  followedFrom,
  isRotationDue,
  type KeyRecord,
  PUBLISHED_AHEAD,
  planKeys,
  publishedUntil,
} from './rotation-rules.ts';

/** The three services, each an issuer with a key of its own (contract/README.md, "The reference server"). */
export const SERVICES = ['connectivity', 'portal', 'identity'] as const;
/** One of {@link SERVICES}. */
export type Service = (typeof SERVICES)[number];

/** A signing key as it is kept. */
export interface StoredKey extends KeyRecord {
  jwk: PrivateJwk;
}

/** Where signing keys are kept. Each method is one atomic step, so that replicas on one database agree. */
export interface KeyStore {
  /** A service's keys, sorted by number. */
  keys(service: Service): Promise<StoredKey[]>;
  /** Adds a key, unless there is one of its number or a higher one: of several at once, one wins. */
  add(service: Service, key: StoredKey): Promise<void>;
  /**
   * Stores the expiry of a token that a key signs, in milliseconds, unless a later one is stored.
   *
   * @returns false when the key was removed
   */
  note(service: Service, number: number, expiry: number): Promise<boolean>;
  /**
   * Removes a key, unless a later expiry was noted for it meanwhile.
   *
   * @param past what is kept of it
   */
  forget(service: Service, key: KeyRecord, past?: PastJwk): Promise<void>;
  /** The public parts of removed keys, with the time of their use. */
  past(service: Service): Promise<PastJwk[]>;
  /**
   * Adds a key and removes all earlier ones. A stored key of the same number stays, and signs from the earlier time.
   *
   * @param pastOf the public part that is kept of a removed key
   */
  replace(
    service: Service,
    key: StoredKey,
    pastOf?: (gone: StoredKey, all: readonly StoredKey[]) => PastJwk | undefined,
  ): Promise<void>;
}

/** Options of {@link createKeyRing}. */
export interface KeyRingOptions {
  service: Service;
  store: KeyStore;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** The age at which a key is followed by another, in milliseconds. Default: never. */
  rotateEvery?: number;
  /** Names the history of the database: keys of another one are read again. Default: it has one history. */
  history?: () => string;
  log: Log;
}

/** A service's keys, as the replicas on one database share them. */
export type KeyRing = ReturnType<typeof createKeyRing>;

/**
 * How old the copy of the keys may be, in milliseconds. Within this time every replica knows which keys another one
 * made or removed, so that a retired key signs no longer than this. Keys are read when they are needed; no timer runs.
 */
export const READ_EVERY = 1000;

/** The least time between two reads, in milliseconds: tokens with made-up kids must not cause a query each. */
export const READ_PAUSE = 200;

/**
 * Reads a service's keys from the database that the replicas share, makes the first one, later ones by age, and
 * removes those that are not needed any more (`rotation-rules.ts`). While the database is unavailable, the keys that were
 * read last are used.
 *
 * @throws StoreUnavailableError from its methods while the database is unavailable and no keys were read before
 */
export function createKeyRing({ service, store, now, rotateEvery, history = () => '', log }: KeyRingOptions) {
  let copy: { keys: StoredKey[]; readAt: number; of: string } | undefined;
  let triedAt = Number.NEGATIVE_INFINITY;
  let underWay: Promise<void> | undefined;
  const notes = new Map<string, Promise<boolean>>();
  const past = onceIn(MINUTE, now, () => asUnavailable(() => store.past(service)));

  async function kept(): Promise<StoredKey[]> {
    const keys = await store.keys(service);
    const newest = keys.at(-1);
    const first = newest === undefined;
    if (!first && (rotateEvery === undefined || !isRotationDue(keys, now(), rotateEvery))) return keys;
    await store.add(service, await newKey((newest?.number ?? 0) + 1, now() + (first ? 0 : PUBLISHED_AHEAD)));
    const after = await store.keys(service);
    const made = after.at(-1);
    if (!first && made) log('info', 'key_made', { service, kid: made.jwk.kid, by: 'age' });
    return after;
  }

  async function read(): Promise<void> {
    triedAt = now();
    const of = history();
    try {
      const keys = await asUnavailable(kept);
      for (const gone of planKeys(keys, now()).gone)
        await asUnavailable(() => store.forget(service, gone, pastOf(gone, keys)));
      copy = { keys, readAt: triedAt, of };
    } catch (error) {
      if (!copy || !(error instanceof StoreUnavailableError)) throw error;
      // Keys of another history are used until the database answers; it is asked every second.
      if (copy.of !== of) copy = { keys: copy.keys, readAt: Number.NEGATIVE_INFINITY, of };
    }
  }

  return {
    /**
     * The keys as they were read at most {@link READ_EVERY} ago.
     *
     * @param maxAge milliseconds, where less is wanted; never less than {@link READ_PAUSE}
     */
    async keys(maxAge = READ_EVERY): Promise<readonly StoredKey[]> {
      const isFresh =
        copy?.of === history() &&
        (isWithin(copy.readAt, maxAge, now()) || isWithin(triedAt, READ_PAUSE, now()));
      if (!isFresh || underWay) {
        underWay ??= read().finally(() => {
          underWay = undefined;
        });
        await underWay;
      }
      if (!copy) throw new RangeError('the keys were not read');
      return copy.keys;
    },
    /** The public parts of removed keys, as they were read a minute ago at most. */
    past: (): Promise<PastJwk[]> => past(history()),
    /**
     * Stores the expiry of a token, in milliseconds. Call it before the key signs that token.
     *
     * @returns false when the key was removed and must not sign
     */
    async note(key: StoredKey, expiry: number): Promise<boolean> {
      if (expiry <= key.lastExpiry) return true;
      const noted = expiryToNote(expiry);
      // Many tokens at once share one write.
      const name = `${key.number} ${noted}`;
      const writing =
        notes.get(name) ??
        asUnavailable(() => store.note(service, key.number, noted)).finally(() => notes.delete(name));
      notes.set(name, writing);
      if (await writing) {
        key.lastExpiry = Math.max(key.lastExpiry, noted);
        return true;
      }
      // The next caller reads the keys from the database.
      triedAt = Number.NEGATIVE_INFINITY;
      if (copy) copy.readAt = Number.NEGATIVE_INFINITY;
      return false;
    },
  };
}

/**
 * Runs a read or write of the key ring. An unknown commit is reported as unavailable: the caller's own change has not begun,
 * and the ring repeats its write the next time.
 *
 * @throws StoreUnavailableError
 */
async function asUnavailable<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof StoreUnavailableError ? notBegun(error) : error;
  }
}

/**
 * A new key pair of that number, as it is kept. Its kid is its thumbprint (RFC 7638): a service that begins anew at its
 * address has other kids, so that clients with a copy of the earlier key set fetch it again.
 */
export async function newKey(number: number, signsFrom: number): Promise<StoredKey> {
  const jwk = await generateSigningKey();
  return { number, signsFrom, lastExpiry: 0, jwk: { ...jwk, kid: await calculateJwkThumbprint(jwk) } };
}

/**
 * The public part of a key with the time of its use; undefined for a key that never signed.
 *
 * @param revoked from when on it proves nothing, in milliseconds
 */
export function pastOf(key: StoredKey, all: readonly StoredKey[], revoked?: number): PastJwk | undefined {
  const [from, until] = [key.signsFrom, followedFrom(all, key)];
  if (from >= until) return undefined;
  const past: PastJwk = { ...publicPartOf({ ...key.jwk, kty: 'EC' }), nbf: Math.floor(from / 1000) };
  if (Number.isFinite(until)) past.exp = Math.floor(until / 1000);
  if (revoked !== undefined) past.revoked = Math.floor(revoked / 1000);
  return past;
}

/** A key's state, for people. Times are milliseconds since the Unix epoch. */
export type KeyStatus = ReturnType<typeof statusOf>[number];

/**
 * Makes a service's next key, which signs 20 minutes later. If a next key is waiting already, no other is made. With
 * `retireNow` a new key signs at once and all earlier ones are removed: tokens that they signed stop verifying.
 *
 * @param now milliseconds since the Unix epoch
 * @returns the service's keys after that; none when no server has run on the database
 */
export async function rotateByHand(
  service: Service,
  store: KeyStore,
  { retireNow, now }: { retireNow: boolean; now: number },
): Promise<KeyStatus[]> {
  const newest = (await store.keys(service)).at(-1);
  if (!newest) return [];
  const next = newest.number + 1;
  if (retireNow) {
    const key = await newKey(next, now);
    await store.replace(service, key, (gone, all) => pastOf(gone, [...all, key], now));
  }
  if (!retireNow && newest.signsFrom <= now)
    await store.add(service, await newKey(next, now + PUBLISHED_AHEAD));
  return statusOf(service, await store.keys(service), now);
}

function statusOf(service: Service, keys: readonly StoredKey[], now: number) {
  const { signing, published } = planKeys(keys, now);
  return published.map((key) => {
    // `next` is published and will sign; `old` is published and verifies what it has signed, until it is removed.
    const state = key === signing ? 'signing' : key.number > signing.number ? 'next' : ('old' as const);
    const until = state === 'old' ? publishedUntil(keys, key) : undefined;
    return { service, kid: key.jwk.kid, state, signsFrom: key.signsFrom, publishedUntil: until };
  });
}
