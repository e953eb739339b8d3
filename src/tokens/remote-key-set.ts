import { bodyOf, readUpTo, TimeLimitError, withinTime, withoutMark } from '../contract/bounded.ts';
import type { KeySetDocument } from '../contract/claims.ts';
import { MINUTE } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import { readJson } from '../contract/json.ts';
import { type Fetch, type ReplyHeaders, type Send, sendFrom } from '../contract/sending.ts';
import { type KeySet, localKeySet, readKeySet } from './key-set.ts';
import { fetchDirectly } from './loopback.ts';
import { type Copy, sharedCopy } from './shared-copy.ts';
import { TokenError } from './token-error.ts';

/** Where a remote key set comes from, and how long a fetched copy is used. Times in milliseconds. */
export interface RemoteKeySetOptions {
  /** The address of the key set, `{issuer}/.well-known/jwks.json` (contract/README.md, "Endpoints"). */
  url: string;
  /**
   * Default: the platform's, but straight to this machine's own addresses, past every proxy and DNS (THREATS.md 46).
   * Must not follow redirects: they are an error here.
   */
  fetch?: Fetch;
  /** How long a fetch may take, to the end of its reply; `Infinity` where `fetch` has a limit of its own. Default 10 seconds. */
  timeout?: number;
  /** Default: the machine's clock. Milliseconds since the Unix epoch. */
  now?: () => number;
  /** Age up to which no fetch is made; past it, one caller waits for a fetch while others use the copy. Default 10 minutes. */
  freshFor?: number;
  /** Age up to which a copy stands in for a set that can't be reached. Default 24 hours. */
  staleFor?: number;
  /** Least time between two fetches, for an unknown `kid`, a wrong signature or after a failure. Default 30 seconds. */
  cooldown?: number;
  /** Told when a stale copy is used, once per failed fetch. */
  onStale?: (url: string, age: number) => void;
  /** Told of each fetch that failed. */
  onFailure?: (url: string) => void;
  /** Where copies outlive the process. Default: nowhere. */
  store?: KeySetStore;
}

/** A key set as it was fetched, and when, in milliseconds. */
export interface KeySetCopy {
  /** The key set, as it was answered. */
  document: KeySetDocument;
  /** When it was fetched, in milliseconds since the Unix epoch. */
  at: number;
  /** How far the issuer's clock was ahead of this one then, see {@link RemoteKeySet.clockAhead}; absent: it is not known. */
  ahead?: number;
}

/** Stores the last copy of one key set. */
export interface KeySetStore {
  /** The copy, if any. */
  read(): KeySetCopy | undefined;
  /** Keeps a copy in place of the one before. */
  write(copy: KeySetCopy): void;
}

/** A key set as it was fetched, with its keys. */
interface Fetched extends Omit<KeySetCopy, 'at'> {
  keys: KeySet;
}

/** An issuer's published keys, and its clock. */
export interface RemoteKeySet extends KeySet {
  /**
   * How far the issuer's clock is ahead of this one, in milliseconds, negative where it is behind: by the `Date` of the copy
   * in use (RFC 9110 §6.6.1), which is fetched unless it is fresh. Of all offsets that the reply allows, the one nearest
   * to zero.
   *
   * @returns undefined where the key set can't be had, and where its reply has no date
   * @throws Failure `timeout` where the issuer does not answer in time
   */
  clockAhead(): Promise<number | undefined>;
}

/**
 * An issuer's published keys, fetched when needed and kept in memory.
 *
 * A fresh copy is used as it is. An unknown `kid`, or a signature that is not the key's, causes one fetch, and then none
 * for the cooldown, so that made-up tokens can't make this service flood the issuer with requests. When the set can't be had, a copy up to a day old
 * stands in; with no copy, every caller within the cooldown gets the same error without a fetch (THREATS.md 25 to
 * 27). When an issuer does not answer, only the caller that needs the fetch waits, until the time limit; callers whose key
 * is in a usable copy do not wait (THREATS.md 53).
 */
export function remoteKeySet(options: RemoteKeySetOptions & { send?: Send }): RemoteKeySet {
  const {
    url,
    send = sendFrom({ fetch: options.fetch ?? fetchDirectly }),
    timeout = options.send ? Number.POSITIVE_INFINITY : MINUTE / 6,
    now = Date.now,
    freshFor = 10 * MINUTE,
    staleFor = 24 * 60 * MINUTE,
    cooldown = MINUTE / 2,
    onStale,
    onFailure,
    store,
  } = options;
  const shared = sharedCopy<Fetched>({
    async load() {
      const sent = now();
      const { document, date } = await withinTime(timeout, (signal) => fetchKeySet(url, send, signal));
      const ahead = date === undefined ? undefined : aheadOf(date, sent, now());
      return { document, keys: localKeySet(document), ahead };
    },
    loaded: ({ value: { document, ahead }, at }) => store?.write({ document, at, ahead }),
    failed(cause) {
      onFailure?.(url);
      const age = shared.copy ? now() - shared.copy.at : staleFor;
      if (age >= freshFor && age < staleFor) onStale?.(url, age);
      const message = `The key set at ${url} can't be reached${reasonOf(cause)}`;
      return cause instanceof TokenError ? cause : new TokenError('keys_unreachable', message, { cause });
    },
    // Most commands need the keys of one issuer only, so a copy is read when it is needed.
    kept: () => keptCopy(store, now()),
    ...{ freshFor, staleFor, cooldown, now },
  });

  return {
    async clockAhead() {
      if (!shared.isYoungerThan(freshFor) || shared.copy?.value.ahead === undefined) await shared.refresh();
      const cause = shared.failure instanceof TokenError ? shared.failure.cause : undefined;
      if (cause instanceof Failure && cause.code === 'timeout') throw cause;
      return shared.copy?.value.ahead;
    },
    async find(kid, algorithm) {
      const before = await shared.usable();
      if (!before) {
        throw shared.failure ?? new TokenError('keys_unreachable', `The key set at ${url} can't be reached.`);
      }
      try {
        return await before.value.keys.find(kid, algorithm);
      } catch (error) {
        if (!(error instanceof TokenError) || error.code !== 'key_unknown') throw error;
        const seen = shared.copy;
        await shared.refresh();
        if (shared.copy === undefined || shared.copy === seen) throw error;
        return shared.copy.value.keys.find(kid, algorithm);
      }
    },
    async findOther(kid, algorithm, refused) {
      const find = async () => shared.copy?.value.keys.find(kid, algorithm);
      // Another caller may have fetched the keys meanwhile.
      if ((await find()) === refused) await shared.refresh();
      const found = await find();
      // A fetch imports each key anew, so a key that is still published may be another object.
      return found === refused ? undefined : found;
    },
  };
}

/** Why nothing came, as the end of a sentence: a time limit, or what a `fetch` of ours says. Other errors may hold anything. */
export function reasonOf(cause: unknown): string {
  if (cause instanceof TimeLimitError) return `: ${cause.message}`;
  return cause instanceof Failure && cause.facts.why !== undefined ? `: ${cause.facts.why}` : '.';
}

/** A copy from the future is ignored: a wrong clock wrote it, and it would never expire. */
function keptCopy(store: KeySetStore | undefined, now: number): Copy<Fetched> | undefined {
  const kept = store?.read();
  if (!kept || kept.at > now) return undefined;
  const { document, at, ahead } = kept;
  return { value: { document, keys: localKeySet(document), ahead }, at };
}

/**
 * How far a clock is ahead that said `date`, in whole seconds, between two instants of this one; 0 where it may be equal.
 * All in milliseconds.
 */
function aheadOf(date: number, sent: number, received: number): number {
  if (date > received) return date - received;
  return Math.min(0, date + 1000 - sent);
}

/** When a reply was made, in milliseconds; a cache on the way says how many seconds ago it got it (RFC 9111 §5.1). */
function dateOf(headers: ReplyHeaders): number | undefined {
  const [date, age] = [Date.parse(headers.get('date') ?? ''), headers.get('age') ?? ''];
  if (Number.isNaN(date)) return undefined;
  return date + (/^\d{1,9}$/.test(age) ? Number(age) * 1000 : 0);
}

/** Fetches a key set, and when its reply says that it was made, in milliseconds. @throws TokenError; what `send` throws */
export async function fetchKeySet(
  url: string,
  send: Send,
  signal?: AbortSignal,
): Promise<{ document: KeySetDocument; date: number | undefined }> {
  const response = await send({
    method: 'GET',
    url,
    headers: { accept: 'application/json' },
    ...(signal ? { signal } : {}),
  });
  if (response.status !== 200) {
    await bodyOf(response).return(undefined);
    const { status } = response;
    throw new TokenError(
      status >= 500 || status === 429 ? 'keys_unreachable' : 'keys_invalid',
      `The key set at ${url} can't be had: the reply's status is ${status}.`,
    );
  }
  const { bytes, whole } = await readUpTo(bodyOf(response), MAX_KEY_SET);
  if (!whole) throw new TokenError('keys_invalid', `What ${url} answers is too large.`);
  const reading = readJson(withoutMark(bytes));
  if (!reading.ok) throw new TokenError('keys_invalid', `What ${url} answers is not JSON.`);
  return { document: readKeySet(reading.value), date: dateOf(response.headers) };
}

/** The largest key set that is read, in bytes. */
const MAX_KEY_SET = 1_048_576;
