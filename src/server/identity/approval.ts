import type { DeviceCode, Grant } from 'oidc-provider';
import { CI_CLIENT_ID } from '../../contract/ci-rules.ts';
import { AlreadyDecided } from './adapter.ts';
import type { LoginPageOptions } from './form-page.ts';
import { DEFAULT_SCOPE, type Person } from './user-token.ts';

/** The meaning of each scope, in the words of the confirmation page (RFC 8628 §5.4). */
export const SCOPE_MEANING: Readonly<Record<string, string>> = {
  openid: 'know who you are',
  userinfo: 'read your user name',
  projects: 'see your projects and experiments, and act in them',
  sessions: 'see and end your logins, and let others act as you',
  offline_access: 'stay logged in until you log out',
};

/** What a grant and a decision need of the identity provider. */
type Context = Pick<LoginPageOptions, 'provider' | 'audience' | 'now' | 'log'>;

/** Makes the grant of a login: the scopes that its client asked for and the server knows. */
export function grantOf(
  person: Person,
  clientId: string,
  scopes: readonly string[],
  { provider, audience }: Context,
): Grant {
  const grant = new provider.Grant({ accountId: person.id, clientId });
  grant.addOIDCScope(scopes.filter((scope) => scope === 'openid' || scope === 'offline_access').join(' '));
  grant.addResourceScope(audience, scopes.filter((scope) => scope !== 'offline_access').join(' '));
  return grant;
}

/**
 * Lets the client of a device code log in as a person. It is written straight into the provider's models: the provider's own
 * interactions would skip the choice of the user at a second login in one browser, and let the last of two decisions win.
 *
 * @returns false when the code was approved or denied before
 */
export async function approve(code: DeviceCode, person: Person, context: Context): Promise<boolean> {
  const { audience, now, log } = context;
  const granted = grantedScopes(code);
  const client = String(code.clientId);
  const grant = grantOf(person, client, granted, context);
  const grantId = await grant.save();
  const isFirst = await decide(code, {
    accountId: person.id,
    grantId,
    scope: granted.join(' '),
    resource: audience,
    authTime: Math.floor(now() / 1000),
  });
  if (isFirst) log('info', 'login', { by: person.id, name: person.name, client });
  else await grant.destroy();
  return isFirst;
}

/** Denies the login of a device code. @returns false when the code was approved or denied before */
export function deny(code: DeviceCode): Promise<boolean> {
  return decide(code, { error: 'access_denied', errorDescription: 'the user denied the login' });
}

async function decide(code: DeviceCode, decision: object): Promise<boolean> {
  try {
    await Object.assign(code, decision).save();
    return true;
  } catch (error) {
    if (error instanceof AlreadyDecided) return false;
    throw error;
  }
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
