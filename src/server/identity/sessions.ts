import { createHash } from 'node:crypto';
import { keptPromises } from '../once-in.ts';
import type { CiRules } from './ci-rules.ts';
import { hash, type IdentityRecord, type IdentityRecords } from './records.ts';
import { ACCESS_TOKEN_TTL } from './user-token.ts';

/** How long the answer about a session is cached, in milliseconds. */
export const SESSION_CHECK_TTL = 5000;

/** The most sessions that are cached: some megabytes. */
const MAX_CACHED_SESSIONS = 10_000;

/** Whether a login is still live. @param sid the claim of its tokens that names it: the key of its grant's record, or a rule's id */
export type SessionCheck = (sid: string) => Promise<boolean>;

/** The check, and records that tell it at once when a session ends in this process. */
export type Sessions = ReturnType<typeof createSessions>;

/**
 * Looks up whether the login that a token belongs to was revoked (THREATS.md 57): an access token verifies until it
 * expires, even if its login was revoked. The database is asked once in {@link SESSION_CHECK_TTL} for each session, not
 * for each request. So a revocation takes effect at once in this process, and within 5 s in the others.
 *
 * @param now milliseconds since the Unix epoch
 */
export function createSessions(records: IdentityRecords, rules: Pick<CiRules, 'isLive'>, now: () => number) {
  const known = keptPromises<boolean>(MAX_CACHED_SESSIONS, now);

  // A CI job's token has the id of its rule.
  const lookUp = async (sid: string): Promise<boolean> =>
    (await records.find('Grant', sid)) !== undefined || rules.isLive(sid, now());

  return {
    isLive: (async (sid) =>
      known.get(sid, SESSION_CHECK_TTL) ?? known.keep(sid, lookUp(sid))) satisfies SessionCheck,
    records: {
      ...records,
      async remove(model: string, key: string): Promise<void> {
        await records.remove(model, key);
        if (model === 'Grant') known.delete(key);
      },
    },
    /** Asks the database about a session again. */
    forget: (sid: string): void => known.delete(sid),
  };
}

/** A user's login, on one machine. Times in milliseconds. */
export interface UserSession {
  /** Names it to its user: 16 hexadecimal digits. */
  id: string;
  clientId: string;
  createdAt: number;
  /** When it gave an access token last; for a machine's token to the minute. */
  lastUsedAt: number;
  /** When it ends if it is not used before, or for a machine at the latest. */
  expiresAt: number;
}

/** The logins of this server's users, as they see and end them (cli/README.md, "Commands"). */
export type UserSessions = ReturnType<typeof createUserSessions>;

/**
 * The id of a login.
 *
 * @param sid the claim that names it in tokens. It is not used as the id itself: it looks like a secret, and messages mask it
 */
export function sessionId(sid: string): string {
  return createHash('sha256').update(sid).digest('hex').slice(0, 16);
}

/**
 * See {@link UserSessions}.
 *
 * @param records those of {@link createSessions}, so that an end takes effect at once in this process
 * @param now milliseconds since the Unix epoch
 * @param accessTokenTtl seconds: a login without a refresh token lasts as long as its access token
 */
export function createUserSessions(
  records: Pick<IdentityRecords, 'loginsOf' | 'remove' | 'removeGrant'>,
  now: () => number,
  accessTokenTtl = ACCESS_TOKEN_TTL,
) {
  async function read(user: string) {
    const found = await records.loginsOf(user, now());
    const tokens = new Map(
      found.flatMap((record) => (record.grant === null ? [] : [[hash(record.grant), record] as const])),
    );
    return found
      .filter(({ model }) => model === 'Grant')
      .map((grant) => {
        const token = tokens.get(grant.key);
        const createdAt = issued(grant);
        const session: UserSession = {
          id: sessionId(grant.key),
          clientId: String(grant.payload['clientId']),
          createdAt,
          lastUsedAt: Math.max(createdAt, token ? issued(token) : 0, token?.usedAt ?? 0),
          expiresAt: token?.expiresAt ?? createdAt + accessTokenTtl * 1000,
        };
        return { session, grant, token };
      })
      .filter(({ session }) => session.expiresAt > now())
      .toSorted((one, other) => other.session.createdAt - one.session.createdAt);
  }
  return {
    /** The latest first. */
    list: async (user: string): Promise<UserSession[]> => (await read(user)).map(({ session }) => session),
    /** Ends one. @returns false where the user has no such login */
    async end(user: string, id: string): Promise<boolean> {
      const found = (await read(user)).find(({ session }) => session.id === id);
      if (!found) return false;
      const { grant, token } = found;
      // First what the services look up: its access tokens end with it.
      await records.remove('Grant', grant.key);
      if (token && token.grant !== null) await records.removeGrant('RefreshToken', token.grant);
      return true;
    },
  };
}

function issued({ payload }: IdentityRecord): number {
  return Number(payload['iat'] ?? 0) * 1000;
}
