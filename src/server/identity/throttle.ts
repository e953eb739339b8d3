import { hash } from './adapter.ts';
import { addressBlock } from './address-block.ts';
import type { IdentityRecords } from './records.ts';

/** How many wrong user codes are taken within a window (RFC 8628 §5.1). */
export interface ThrottleLimits {
  session: number;
  address: number;
  global: number;
  /** Milliseconds. */
  window: number;
}

/**
 * Eight letters of twenty make 34 bits of code; with a thousand guesses in ten minutes, the life of a code, the chance
 * to hit one of a hundred open codes is about one in 250,000.
 */
export const DEFAULT_LIMITS: ThrottleLimits = { session: 5, address: 20, global: 1000, window: 600_000 };

/** Whether a guess may be made; then what takes it back when it was right. */
export type Attempt = { ok: true; takeBack: () => Promise<void> } | { ok: false; retryAfter: number };

/** How long a window that began then still lasts, in whole seconds, at least one; the rest in milliseconds. */
export function secondsLeft(began: number, window: number, now: number): number {
  return Math.max(1, Math.ceil((began + window - now) / 1000));
}

/** Counts guesses of user codes. */
export type Throttle = (session: string, address: string) => Promise<Attempt>;

/**
 * Counts guesses by browser session, by address (of IPv6 by /64) and in all, in the database that replicas share (HOSTILE.md 29). A
 * guess is counted before it is looked at, so that many at once are counted too. The address comes first, so that it can
 * neither use up what is for all nor fill the table with sessions.
 *
 * @param now milliseconds since the Unix epoch
 */
export function createThrottle(
  records: IdentityRecords,
  now: () => number,
  limits: ThrottleLimits = DEFAULT_LIMITS,
): Throttle {
  return async (session, address) => {
    const keys: [string, number][] = [
      [`address ${addressBlock(address)}`, limits.address],
      [`session ${hash(session)}`, limits.session],
      ['all', limits.global],
    ];
    const counted: string[] = [];
    const takeBack = async (): Promise<void> => {
      for (const key of counted) await records.uncount(key);
    };
    for (const [key, limit] of keys) {
      const { attempts, began } = await records.count(key, now(), limits.window);
      counted.push(key);
      if (attempts <= limit) continue;
      await takeBack();
      return { ok: false, retryAfter: secondsLeft(began, limits.window, now()) };
    }
    return { ok: true, takeBack };
  };
}
