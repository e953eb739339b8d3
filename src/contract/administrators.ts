import * as v from 'valibot';
import { UserId } from './fields.ts';

/** A user of one issuer who may read and release any reservation of a server: named by its operator, never by a role. */
export interface Administrator {
  /** The user token's `sub`. */
  user: string;
  /** The user token's `iss`; undefined stands for the identity provider that the server has of its own. */
  issuer?: string;
}

/**
 * Reads how an administrator is named: `USER_ID`, or `USER_ID@ISSUER_URL` for a user of an issuer that the server
 * trusts. With a user id alone, any trusted issuer could claim to speak for that user.
 *
 * @returns undefined when it is neither
 * @example readAdministrator('user_h_1@https://login.example.org') // { user: 'user_h_1', issuer: 'https://login.example.org' }
 */
export function readAdministrator(text: string): Administrator | undefined {
  const at = text.indexOf('@');
  const [user, issuer] = at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
  if (!v.is(UserId, user)) return undefined;
  if (issuer === undefined) return { user };
  return URL.canParse(issuer) && /^https?:$/.test(new URL(issuer).protocol) ? { user, issuer } : undefined;
}
