import type { IdentityRecords } from './records.ts';

/** How long attempts are counted together, in milliseconds: 10 minutes, the lifetime of a device code. */
export const ATTEMPT_WINDOW = 600_000;

/** A key that attempts are counted under, and how many a window allows. */
export type AttemptLimit = readonly [key: string, most: number];

/** A counted attempt, which can be taken back; or how many seconds to wait, at least one. */
export type Attempt = { ok: true; takeBack: () => Promise<void> } | { ok: false; retryAfter: number };

/** Counts attempts in windows of {@link ATTEMPT_WINDOW}, in the database that replicas share. */
export interface AttemptCounter {
  /**
   * Counts an attempt under each key, in this order, before anything is looked up: parallel attempts are counted too.
   * An attempt beyond a limit is not counted under any key, so that it neither lengthens the wait nor uses up the limits
   * that come later in the list.
   */
  count(limits: readonly AttemptLimit[]): Promise<Attempt>;
  /** Seconds until a key that has reached its limit is free again; undefined below the limit. Counts nothing. */
  wait(limit: AttemptLimit): Promise<number | undefined>;
}

/** @param now milliseconds since the Unix epoch */
export function createAttemptCounter(records: IdentityRecords, now: () => number): AttemptCounter {
  const secondsLeft = (began: number): number =>
    Math.max(1, Math.ceil((began + ATTEMPT_WINDOW - now()) / 1000));

  return {
    async count(limits) {
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
    async wait([key, most]) {
      const { attempts, began } = await records.attempts(key, now(), ATTEMPT_WINDOW);
      return attempts >= most ? secondsLeft(began) : undefined;
    },
  };
}
