import { addressBlock, addressBlocks } from '../client-address.ts';
import type { IdentityRecords } from './records.ts';

/**
 * The limits of the identity provider's endpoints within 10 minutes (THREATS.md 29; RFC 8628 §5.1, RFC 6819 §4.4.1.11).
 *
 * | endpoint            | counted                  | an address | in all |
 * |---------------------|--------------------------|------------|--------|
 * | `/device/auth`      | every code made          |        600 |  6,000 |
 * | `/token`            | wrong codes and tokens   |      1,200 |        |
 * | `/token/revocation` | tokens that are unknown  |      1,200 |        |
 *
 * Codes are counted for the blocks around an address too ({@link addressLimits}), so that no block makes all 6,000: that
 * limit bounds the table of codes. Wrong tokens have no limit for all addresses: a token has 256 bits and can't be guessed,
 * and an attacker with many addresses must not lock out everyone else.
 *
 * A lab of 100 people behind one address, each of whom starts three logins, makes 300 codes: half of the limit. A farm
 * whose jobs log in by device code can do so once a second. Right polls, refreshes and logouts are not counted; 1,000 jobs
 * that all start with one revoked refresh token make 1,000 wrong requests and then stop.
 *
 * An address over its limit is refused before the database looks for its code or token, with this error (RFC 6749 §5.2; RFC
 * 8628 §3.5 while polling).
 */
export const ENDPOINT_LIMITS = {
  '/device/auth': { address: 600, all: 6000, error: 'temporarily_unavailable' },
  '/token': { address: 1200, error: 'slow_down' },
  '/token/revocation': { address: 1200, error: 'temporarily_unavailable' },
} as const;

/** An endpoint whose requests are counted. */
export type CountedEndpoint = keyof typeof ENDPOINT_LIMITS;

/** The path of the metadata of OAuth (RFC 8414). */
export const OAUTH_METADATA_PATH = '/.well-known/oauth-authorization-server';

/** The provider's endpoints that are only read, by path. Its own router accepts other spellings of them; this server does not. */
export const READ_ENDPOINTS: readonly string[] = ['/.well-known/openid-configuration', OAUTH_METADATA_PATH];

/** Whether the provider answers a path below the issuer. */
export function isProviderPath(path: string): boolean {
  return READ_ENDPOINTS.includes(path) || Object.hasOwn(ENDPOINT_LIMITS, path);
}

/** Whether a path below the issuer is that of a page on which people log in; only a server with a page of its own serves the second. */
export function isLoginPage(path: string): boolean {
  return path === '/device' || path === AUTHORIZATION_PATH;
}

/** The path of the page on which a person logs in to this server's own page, below the issuer; see `authorization-page.ts`. */
export const AUTHORIZATION_PATH = '/authorize';

/** The limits that a request to an endpoint counts against. */
export function endpointLimits(path: CountedEndpoint, address: string): AttemptLimit[] {
  if (path === '/device/auth') return loginLimits(path, address);
  return [[`${path} ${addressBlock(address)}`, ENDPOINT_LIMITS[path].address]];
}

/** The limits of logins that begin at a path: of an address, of the blocks around it, and in all. */
export function loginLimits(path: string, address: string): AttemptLimit[] {
  const { address: most, all } = ENDPOINT_LIMITS['/device/auth'];
  return [...addressLimits(path, address, most), [`${path} all`, all]];
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

/**
 * Counts an attempt under each key, in this order, before anything is looked up: parallel attempts are counted too. An
 * attempt beyond a limit is not counted under any key, so that it neither lengthens the wait nor uses up the limits that come
 * later in the list. Where a limit has been reached already, nothing is written.
 */
export type AttemptCounter = (limits: readonly AttemptLimit[]) => Promise<CountedAttempt>;

/**
 * Counts attempts in windows of {@link ATTEMPT_WINDOW}, in the database that replicas share.
 *
 * @param now milliseconds since the Unix epoch
 */
export function createAttemptCounter(records: IdentityRecords, now: () => number): AttemptCounter {
  const refused = (began: number): CountedAttempt => ({
    ok: false,
    retryAfter: Math.max(1, Math.ceil((began + ATTEMPT_WINDOW - now()) / 1000)),
  });
  return async (limits) => {
    const before = await Promise.all(limits.map(([key]) => records.attempts(key, now(), ATTEMPT_WINDOW)));
    const reached = before.find(({ attempts }, index) => attempts >= (limits[index]?.[1] ?? 0));
    if (reached) return refused(reached.began);
    const counted: string[] = [];
    const takeBack = async (): Promise<void> => {
      for (const key of counted) await records.uncount(key);
    };
    for (const [key, most] of limits) {
      const { attempts, began } = await records.count(key, now(), ATTEMPT_WINDOW);
      counted.push(key);
      if (attempts <= most) continue;
      await takeBack();
      return refused(began);
    }
    return { ok: true, takeBack };
  };
}
