import type { IdentityClient } from '../client/identity.ts';
import { Failure } from '../contract/failure.ts';
import type { Credentials, StoredCredentials } from './credentials.ts';
import type { Profile } from './profiles.ts';

/** What the user token of a login is had from. */
export interface UserTokenOptions {
  profile: Profile;
  credentials: Credentials;
  identity: () => Promise<IdentityClient>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

const MINUTE = 60_000;

/**
 * The user token of the profile's login, refreshed when less than a minute or a tenth of its lifetime is left,
 * whichever is less. The one place where a token is refreshed.
 *
 * @throws Failure `not_logged_in` with what to type
 */
export async function loginToken(options: UserTokenOptions): Promise<string> {
  const { profile, credentials, identity, now } = options;
  const stored = credentials.read(profile);
  if (!stored) throw notLoggedIn(profile);
  if (!isAlmostOver(stored, now())) return stored.accessToken;
  if (stored.refreshToken === undefined) {
    throw new Failure('token_expired', `Your login to ${profile.baseUrl} has expired.`, {
      fix: 'slices-conn login',
    });
  }
  const tokens = await (await identity()).refresh(stored.refreshToken);
  const refreshToken = tokens.refreshToken ?? stored.refreshToken;
  credentials.write(profile, {
    accessToken: tokens.accessToken,
    refreshToken,
    issuedAt: now(),
    ...(tokens.expiresAt === undefined ? {} : { expiresAt: tokens.expiresAt }),
  });
  return tokens.accessToken;
}

/** The failure of a command that needs a login. */
export function notLoggedIn({ baseUrl }: Profile): Failure {
  return new Failure('not_logged_in', `You are not logged in to ${baseUrl}.`, { fix: 'slices-conn login' });
}

/** Whether the token of a login must be refreshed before it is used. */
export function isAlmostOver({ issuedAt, expiresAt }: StoredCredentials, now: number): boolean {
  if (expiresAt === undefined) return false;
  return expiresAt - now < Math.min(MINUTE, (expiresAt - issuedAt) / 10);
}
