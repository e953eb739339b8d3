import { createHash } from 'node:crypto';

/** A stored record of the identity provider, under the hash of its code or token, never the value (THREATS.md 33). */
export interface IdentityRecord {
  /** `DeviceCode`, `AuthorizationCode`, `RefreshToken`, `Grant`, or `IdToken` for a CI job's that was used. */
  model: string;
  /** SHA-256 of the code or token, base64url. */
  key: string;
  /** The provider's own data, without the code or token. */
  payload: Record<string, unknown>;
  /** The id of its user, of a `RefreshToken` or a `Grant`. */
  account: string | null;
  /** The grant that it belongs to; revoking that removes it. */
  grant: string | null;
  /** SHA-256 of the user code, base64url. */
  userCode: string | null;
  /** Whether a device code was approved or denied. */
  decided: boolean;
  /** When it was redeemed or rotated, in milliseconds. */
  consumedAt: number | null;
  /** Until when a rotated refresh token may be used once more, in milliseconds. */
  graceUntil: number | null;
  /** When a refresh token that is not rotated was used last, in milliseconds. */
  usedAt: number | null;
  /** Milliseconds. */
  expiresAt: number;
}

/** A record as it is saved; the store sets the other members. */
export type NewIdentityRecord = Omit<IdentityRecord, 'consumedAt' | 'graceUntil' | 'usedAt'>;

/**
 * Where the identity provider's records are. Each method is one atomic step, so that replicas on one database agree
 * (THREATS.md 29, 31).
 */
export interface IdentityRecords {
  /**
   * Saves a record. A device code is decided once, a refresh token's successor is made once, and an ID token is used once:
   * a second time changes nothing.
   *
   * @returns whether anything was changed
   */
  save(record: NewIdentityRecord): Promise<boolean>;
  find(model: string, key: string): Promise<IdentityRecord | undefined>;
  findByUserCode(userCode: string): Promise<IdentityRecord | undefined>;
  /** A user's grants and refresh tokens that have not expired, without tokens that were rotated. */
  loginsOf(account: string, now: number): Promise<IdentityRecord[]>;
  /** Notes that a refresh token was used, to the minute: jobs that run side by side don't wait for each other. */
  use(key: string, now: number): Promise<void>;
  /** Redeems a code, once. @returns whether this call redeemed it */
  redeem(model: string, key: string, now: number): Promise<boolean>;
  /**
   * Uses a refresh token. The first use starts its grace and ends its predecessor's; within the grace it may be used
   * again.
   *
   * @param grace milliseconds
   * @returns false when it was used before and the grace is over
   */
  rotate(key: string, now: number, grace: number): Promise<boolean>;
  /**
   * Records a poll with a device code (RFC 8628 §3.5). The first is always accepted; later ones may come up to half an
   * interval early, as a jittery client's do, but not more often on the whole.
   *
   * @param interval milliseconds
   * @returns false when it came too early
   */
  pace(key: string, now: number, interval: number): Promise<boolean>;
  /** Makes a record last until an instant, in milliseconds, where it would end before. */
  prolong(model: string, key: string, until: number): Promise<void>;
  remove(model: string, key: string): Promise<void>;
  removeGrant(model: string, grant: string): Promise<void>;
  /** Removes records that expired before one instant, and attempts whose window began before another, in milliseconds. */
  purge(expiredBefore: number, beganBefore: number): Promise<void>;
  /** A random secret that all replicas share. Stores `candidate` when there is none yet. */
  secret(name: string, candidate: Uint8Array): Promise<Uint8Array>;
  /**
   * Counts an attempt within a window.
   *
   * @param window milliseconds
   * @returns how many there are in it now, and when it began
   */
  count(key: string, now: number, window: number): Promise<{ attempts: number; began: number }>;
  /** The attempts that are counted within a window, without counting one. */
  attempts(key: string, now: number, window: number): Promise<{ attempts: number; began: number }>;
  /** Takes an attempt back. */
  uncount(key: string): Promise<void>;
}

/** SHA-256 of a code or token, base64url: they are random enough that no salt is needed. */
export function hash(value: string): string {
  return createHash('sha256').update(value).digest('base64url');
}
