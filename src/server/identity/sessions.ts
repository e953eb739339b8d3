import type { IdentityRecords } from './records.ts';

/** How long the answer about a session is cached, in milliseconds. */
export const SESSION_CHECK_TTL = 5000;

/** How many sessions are cached: some megabytes. */
const REMEMBERED = 10_000;

/** Whether a login is still live. @param sid the claim of its tokens that names it: the key of its grant's record */
export type SessionCheck = (sid: string) => Promise<boolean>;

/** The check, and records that tell it at once when a session ends in this process. */
export interface Sessions {
  isLive: SessionCheck;
  records: IdentityRecords;
}

/**
 * Looks up whether the login that a token belongs to was revoked (HOSTILE.md 57): an access token verifies until it
 * expires, even if its login was revoked. The database is asked once in {@link SESSION_CHECK_TTL} for each session, not
 * for each request. So a revocation takes effect at once in this process, and within 5 s in the others.
 *
 * @param now milliseconds since the Unix epoch
 */
export function createSessions(records: IdentityRecords, now: () => number): Sessions {
  const known = new Map<string, { live: Promise<boolean>; until: number }>();

  const lookUp = async (grant: string): Promise<boolean> =>
    (await records.find('Grant', grant)) !== undefined;

  return {
    async isLive(sid) {
      const found = known.get(sid);
      if (found && now() < found.until) return found.live;
      const asked = { live: lookUp(sid), until: now() + SESSION_CHECK_TTL };
      if (known.size >= REMEMBERED) known.clear();
      known.set(sid, asked);
      // A failure is not kept: the database may be back for the next request.
      asked.live.catch(() => known.get(sid) === asked && known.delete(sid));
      return asked.live;
    },
    records: {
      ...records,
      async remove(model, key) {
        await records.remove(model, key);
        if (model === 'Grant') known.delete(key);
      },
    },
  };
}
