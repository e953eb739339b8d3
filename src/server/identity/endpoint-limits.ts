import type { IncomingMessage, ServerResponse } from 'node:http';
import { StoreUnavailableError } from '../../allocator/store.ts';
import { addressBlock } from './address-block.ts';
import type { IdentityRecords } from './records.ts';
import { secondsLeft } from './throttle.ts';

/** How many requests to an endpoint are taken within a window. */
export interface EndpointLimit {
  /** From one address, or one /64 of IPv6; see {@link addressBlock}. */
  address: number;
  /** From everywhere. */
  global: number;
  /** Whether every request counts, or those alone that turn out wrong. */
  counts: 'every' | 'wrong';
  /** The error in a refusal (RFC 6749 §5.2; RFC 8628 §3.5 for those who poll). */
  error: 'temporarily_unavailable' | 'slow_down';
}

/** How long the window is, in milliseconds: 10 minutes, the life of a device code. */
export const LIMIT_WINDOW = 600_000;

/**
 * The limits of the identity provider's endpoints within 10 minutes (HOSTILE.md 29; RFC 8628 §5.1, RFC 6819 §4.4.1.11).
 *
 * | endpoint            | counted                  | an address | in all |
 * |---------------------|--------------------------|------------|--------|
 * | `/device/auth`      | every code made          |        600 |  6,000 |
 * | `/token`            | wrong codes and tokens   |      1,200 | 24,000 |
 * | `/token/revocation` | tokens that are unknown  |      1,200 | 24,000 |
 *
 * A lab of 100 people behind one address, of whom each starts three logins, makes 300 codes: half of what is taken. A farm
 * whose jobs log in by device code can do so once a second. Polls, refreshes and logouts that are right count nowhere;
 * 1,000 jobs that all start with one refresh token that has been revoked make 1,000 wrong requests and then stop.
 *
 * An address that is over its limit is refused before anything is looked at. What is for all bounds the table of codes;
 * wrong tokens it merely slows down: they have 256 bits, which nobody guesses, so that a right one is taken even then, and
 * nobody can lock all others out by asking for nonsense from many addresses.
 */
export const ENDPOINT_LIMITS: Readonly<Record<string, EndpointLimit>> = {
  '/device/auth': { address: 600, global: 6000, counts: 'every', error: 'temporarily_unavailable' },
  '/token': { address: 1200, global: 24_000, counts: 'wrong', error: 'slow_down' },
  '/token/revocation': { address: 1200, global: 24_000, counts: 'wrong', error: 'temporarily_unavailable' },
};

/** A request that is refused for now. */
export interface TooMany {
  error: EndpointLimit['error'];
  /** Seconds, at least one. */
  retryAfter: number;
}

/** Counts requests to the identity provider's endpoints, in the database that replicas share. */
export interface EndpointGuard {
  /**
   * Counts a request before it is looked at, so that many at once are counted too.
   *
   * @param address the client's
   * @returns undefined when it may be looked at
   */
  admit(request: IncomingMessage, path: string, address: string): Promise<TooMany | undefined>;
  /** Gives a request back that was right. @returns what to answer to a wrong one in place of its own answer */
  settle(request: IncomingMessage, isRight: boolean): Promise<TooMany | undefined>;
}

/** A request that was let in and is not answered yet. */
type Admitted = { own: string; all: string } | { refusal: TooMany };

/** @param now milliseconds since the Unix epoch */
export function createEndpointGuard(
  records: IdentityRecords,
  now: () => number,
  limits: Readonly<Record<string, EndpointLimit>> = ENDPOINT_LIMITS,
): EndpointGuard {
  const admitted = new WeakMap<IncomingMessage, Admitted>();

  const waitFrom = (began: number): number => secondsLeft(began, LIMIT_WINDOW, now());

  /** Counts one more unless that is one too many. @returns seconds to wait then */
  async function count(key: string, limit: number): Promise<number | undefined> {
    const { attempts, began } = await records.count(key, now(), LIMIT_WINDOW);
    if (attempts <= limit) return undefined;
    await records.uncount(key);
    return waitFrom(began);
  }

  return {
    async admit(request, path, address) {
      const limit = limits[path];
      if (!limit) return undefined;
      const { error } = limit;
      const [own, all] = [`${path} ${addressBlock(address)}`, `${path} all`];
      const before = await records.attempts(all, now(), LIMIT_WINDOW);
      if (before.attempts >= limit.global) {
        const refusal = { error, retryAfter: waitFrom(before.began) };
        if (limit.counts === 'every') return refusal;
        admitted.set(request, { refusal });
        return undefined;
      }
      const ownWait = await count(own, limit.address);
      if (ownWait !== undefined) return { error, retryAfter: ownWait };
      if (limit.counts === 'wrong') {
        admitted.set(request, { own, all });
        return undefined;
      }
      const wait = await count(all, limit.global);
      if (wait === undefined) return undefined;
      await records.uncount(own);
      return { error, retryAfter: wait };
    },

    async settle(request, isRight) {
      const found = admitted.get(request);
      admitted.delete(request);
      if (!found) return undefined;
      if ('refusal' in found) return isRight ? undefined : found.refusal;
      try {
        if (isRight) await records.uncount(found.own);
        else await records.count(found.all, now(), LIMIT_WINDOW);
      } catch (cause) {
        // The request has its answer; what was counted ends with the window.
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

/** Refuses a request with 429 (RFC 6585 §4). What is still being sent is not waited for. */
export function answerTooMany(request: IncomingMessage, response: ServerResponse, refusal: TooMany): void {
  response.writeHead(429, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'retry-after': String(refusal.retryAfter),
    ...(request.complete ? {} : { connection: 'close' }),
  });
  response.end(JSON.stringify(tooManyBody(refusal)));
}
