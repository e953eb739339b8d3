import type { DeviceCode, Grant, Provider } from 'oidc-provider';
import { CI_CLIENT_ID } from '../../contract/ci-rules.ts';
import type { Log } from '../log.ts';
import { AlreadyDecided } from './adapter.ts';
import { DEFAULT_SCOPE, type Person } from './user-token.ts';

/** The meaning of each scope, in the words of the confirmation page (RFC 8628 §5.4). */
export const SCOPE_MEANING: Readonly<Record<string, string>> = {
  openid: 'know who you are',
  userinfo: 'read your user name',
  projects: 'see your projects and experiments, and act in them',
  sessions: 'see and end your logins, and let others act as you',
  offline_access: 'stay logged in until you log out',
};

/**
 * Makes the grant of a login: the scopes that its client asked for and the server knows.
 *
 * @param audience `{base_url}`, for which the access token is granted
 */
export function grantOf(
  provider: Provider,
  {
    person,
    clientId,
    scopes,
    audience,
  }: {
    person: Person;
    clientId: string;
    scopes: readonly string[];
    audience: string;
  },
): Grant {
  const grant = new provider.Grant({ accountId: person.id, clientId });
  grant.addOIDCScope(scopes.filter((scope) => scope === 'openid' || scope === 'offline_access').join(' '));
  grant.addResourceScope(audience, scopes.filter((scope) => scope !== 'offline_access').join(' '));
  return grant;
}

/** Writes a person's decision on a device code. */
export interface Approval {
  /** Lets the client log in as a person. @returns false when the code was approved or denied before */
  approve(code: DeviceCode, person: Person): Promise<boolean>;
  /** Denies the login. @returns false when the code was approved or denied before */
  deny(code: DeviceCode): Promise<boolean>;
}

/**
 * Writes a person's decision straight into the provider's models. The provider's own interactions would skip the
 * choice of the user at a second login in one browser, and let the last of two decisions win.
 *
 * @param audience `{base_url}`, for which the access token is granted
 * @param now milliseconds since the Unix epoch
 */
export function createApproval(
  provider: Provider,
  audience: string,
  { now, log }: { now: () => number; log: Log },
): Approval {
  return {
    async approve(code, person) {
      const granted = grantedScopes(code);
      const grant = grantOf(provider, { person, clientId: String(code.clientId), scopes: granted, audience });
      const grantId = await grant.save();
      Object.assign(code, {
        accountId: person.id,
        grantId,
        scope: granted.join(' '),
        resource: audience,
        authTime: Math.floor(now() / 1000),
      });
      if (await decide(code)) {
        log('info', 'login', { by: person.id, name: person.name, client: String(code.clientId) });
        return true;
      }
      await grant.destroy();
      return false;
    },
    async deny(code) {
      Object.assign(code, { error: 'access_denied', errorDescription: 'the user denied the login' });
      return decide(code);
    },
  };
}

/** The known scopes among those that a device code asks for; never `sessions` for a machine (THREATS.md 149). */
export function grantedScopes({ params, clientId }: DeviceCode): string[] {
  const known = knownScopes(typeof params?.['scope'] === 'string' ? params['scope'] : DEFAULT_SCOPE);
  return clientId === CI_CLIENT_ID ? known.filter((scope) => scope !== 'sessions') : known;
}

/** The known scopes among those that a client asks for. */
export function knownScopes(asked: string): string[] {
  return [...new Set(asked.split(' '))].filter((scope) => Object.hasOwn(SCOPE_MEANING, scope));
}

async function decide(code: DeviceCode): Promise<boolean> {
  try {
    await code.save();
    return true;
  } catch (error) {
    if (error instanceof AlreadyDecided) return false;
    throw error;
  }
}
