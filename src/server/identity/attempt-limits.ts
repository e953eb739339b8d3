import type { IncomingMessage, ServerResponse } from 'node:http';
import { StoreUnavailableError } from '../../allocator/store.ts';
import { addressBlock, addressBlocks } from '../client-address.ts';
import type { IdentityRecords } from './records.ts';

/** The requests to an endpoint that are allowed within {@link ATTEMPT_WINDOW}. */
export interface EndpointLimit {
  /** From one address, or one /64 of IPv6; see {@link addressBlock}. Where every request counts, see {@link addressLimits} too. */
  address: number;
  /** From everywhere. */
  global: number;
  /** Whether every request counts, or only those with a wrong code or token. */
  counts: 'every' | 'wrong';
  /** The error in a refusal (RFC 6749 §5.2; RFC 8628 §3.5 while polling). */
  error: 'temporarily_unavailable' | 'slow_down';
}

/**
 * The limits of the identity provider's endpoints within 10 minutes (THREATS.md 29; RFC 8628 §5.1, RFC 6819 §4.4.1.11).
 *
 * | endpoint            | counted                  | an address | in all |
 * |---------------------|--------------------------|------------|--------|
 * | `/device/auth`      | every code made          |        600 |  6,000 |
 * | `/token`            | wrong codes and tokens   |      1,200 | 24,000 |
 * | `/token/revocation` | tokens that are unknown  |      1,200 | 24,000 |
 *
 * Codes are counted for the blocks around an address too ({@link addressLimits}), so that no block makes all 6,000.
 *
 * A lab of 100 people behind one address, each of whom starts three logins, makes 300 codes: half of the limit. A farm
 * whose jobs log in by device code can do so once a second. Right polls, refreshes and logouts are not counted; 1,000 jobs
 * that all start with one revoked refresh token make 1,000 wrong requests and then stop.
 *
 * An address over its limit is refused before the database looks for its code or token. The limit for all addresses bounds
 * the table of codes. It does not refuse right tokens: a token has 256 bits and can't be guessed, and an attacker with many
 * addresses must not lock out everyone else.
 */
export const ENDPOINT_LIMITS: Readonly<Record<string, EndpointLimit>> = {
  '/device/auth': { address: 600, global: 6000, counts: 'every', error: 'temporarily_unavailable' },
  '/token': { address: 1200, global: 24_000, counts: 'wrong', error: 'slow_down' },
  '/token/revocation': { address: 1200, global: 24_000, counts: 'wrong', error: 'temporarily_unavailable' },
};

/** A request that is refused until its window ends. */
export interface TooMany {
  error: EndpointLimit['error'];
  /** Seconds, at least one. */
  retryAfter: number;
}

/** Counts requests to the identity provider's endpoints, in the database that replicas share. */
export interface EndpointGuard {
  /**
   * Counts a request before it is answered, so that parallel requests are counted too.
   *
   * @param address the client's
   * @returns undefined when it may be answered
   */
  admit(request: IncomingMessage, path: string, address: string): Promise<TooMany | undefined>;
  /** Takes the count of a right request back. @returns the refusal that replaces the answer to a wrong one */
  settle(request: IncomingMessage, isRight: boolean): Promise<TooMany | undefined>;
}

/** A request that was admitted and is not answered yet. */
type Admitted = { attempt: CountedAttempt & { ok: true }; all: string } | { refusal: TooMany };

/** @param now milliseconds since the Unix epoch */
export function createEndpointGuard(
  records: IdentityRecords,
  now: () => number,
  limits: Readonly<Record<string, EndpointLimit>> = ENDPOINT_LIMITS,
): EndpointGuard {
  const attempts = createAttemptCounter(records, now);
  const admitted = new WeakMap<IncomingMessage, Admitted>();

  return {
    async admit(request, path, address) {
      const limit = limits[path];
      if (!limit) return undefined;
      const { error } = limit;
      const own: readonly AttemptLimit[] =
        limit.counts === 'every'
          ? addressLimits(path, address, limit.address)
          : [[`${path} ${addressBlock(address)}`, limit.address]];
      const all: AttemptLimit = [`${path} all`, limit.global];
      const wait = await attempts.wait(all);
      if (wait !== undefined) {
        const refusal = { error, retryAfter: wait };
        if (limit.counts === 'every') return refusal;
        admitted.set(request, { refusal });
        return undefined;
      }
      const attempt = await attempts.count(limit.counts === 'every' ? [...own, all] : own);
      if (!attempt.ok) return { error, retryAfter: attempt.retryAfter };
      if (limit.counts === 'wrong') admitted.set(request, { attempt, all: all[0] });
      return undefined;
    },

    async settle(request, isRight) {
      const found = admitted.get(request);
      admitted.delete(request);
      if (!found) return undefined;
      if ('refusal' in found) return isRight ? undefined : found.refusal;
      try {
        if (isRight) await found.attempt.takeBack();
        else await attempts.count([[found.all, Number.POSITIVE_INFINITY]]);
      } catch (cause) {
        // The request has its answer; a count that is too high ends with the window.
        if (!(cause instanceof StoreUnavailableError)) throw cause;
      }
      return undefined;
    },
  };
}

/** The body of a refusal, in the form that OAuth clients read (RFC 6749 §5.2). */
export function tooManyBody({ error, retryAfter }: TooMany): { error: string; error_description: string } {
  const from = 'Too many requests came from your address, or from all together';
  return { error, error_description: `${from}. Try again in ${retryAfter} s.` };
}

/** Refuses a request with 429 (RFC 6585 §4), without waiting for the rest of its body. */
export function answerTooMany(request: IncomingMessage, response: ServerResponse, refusal: TooMany): void {
  response.writeHead(429, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'retry-after': String(refusal.retryAfter),
    ...(request.complete ? {} : { connection: 'close' }),
  });
  response.end(JSON.stringify(tooManyBody(refusal)));
}

/** How long attempts are counted together, in milliseconds: 10 minutes, the lifetime of a device code. */
export const ATTEMPT_WINDOW = 600_000;

/** A key that attempts are counted under, and how many a window allows. */
export type AttemptLimit = readonly [key: string, most: number];

/** The factor by which a block of addresses may do more than each block within it. */
const BLOCK_GROWTH = 2;

/**
 * The limits of an address and of the blocks around it, since a customer of a network may have a /56 or a /48 of IPv6, or
 * many addresses of one /24: each block may do twice as much as the one within it.
 *
 * | attempts allowed            | of IPv4       | of IPv6 |
 * |-----------------------------|---------------|---------|
 * | `most`                      | an address    | a /64   |
 * | twice as many               | a /24         | a /56   |
 * | four times as many          |               | a /48   |
 *
 * @param name of what is counted
 */
export function addressLimits(name: string, address: string, most: number): AttemptLimit[] {
  return addressBlocks(address).map((block, index) => [`${name} ${block}`, most * BLOCK_GROWTH ** index]);
}

/** A counted attempt, which can be taken back; or how many seconds to wait, at least one. */
export type CountedAttempt = { ok: true; takeBack: () => Promise<void> } | { ok: false; retryAfter: number };

/** Counts attempts in windows of {@link ATTEMPT_WINDOW}, in the database that replicas share. */
export interface AttemptCounter {
  /**
   * Counts an attempt under each key, in this order, before anything is looked up: parallel attempts are counted too.
   * An attempt beyond a limit is not counted under any key, so that it neither lengthens the wait nor uses up the limits
   * that come later in the list. Where a limit has been reached already, nothing is written.
   */
  count(limits: readonly AttemptLimit[]): Promise<CountedAttempt>;
  /** Seconds until a key that has reached its limit is free again; undefined below the limit. Counts nothing. */
  wait(limit: AttemptLimit): Promise<number | undefined>;
}

/** @param now milliseconds since the Unix epoch */
export function createAttemptCounter(records: IdentityRecords, now: () => number): AttemptCounter {
  const secondsLeft = (began: number): number =>
    Math.max(1, Math.ceil((began + ATTEMPT_WINDOW - now()) / 1000));

  async function wait([key, most]: AttemptLimit): Promise<number | undefined> {
    const { attempts, began } = await records.attempts(key, now(), ATTEMPT_WINDOW);
    return attempts >= most ? secondsLeft(began) : undefined;
  }

  return {
    wait,
    async count(limits) {
      const waits = await Promise.all(limits.map(wait));
      const reached = waits.find((seconds) => seconds !== undefined);
      if (reached !== undefined) return { ok: false, retryAfter: reached };
      const counted: string[] = [];
      const takeBack = async (): Promise<void> => {
        for (const key of counted) await records.uncount(key);
      };
      for (const [key, most] of limits) {
        const { attempts, began } = await records.count(key, now(), ATTEMPT_WINDOW);
        counted.push(key);
        if (attempts <= most) continue;
        await takeBack();
        return { ok: false, retryAfter: secondsLeft(began) };
      }
      return { ok: true, takeBack };
    },
  };
}
