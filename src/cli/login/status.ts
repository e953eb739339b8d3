import { claimedExpiry, claimedSubject } from '../../client/claimed.ts';
import { Failure } from '../../contract/failure.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Secret } from '../../contract/secret.ts';
import { notLoggedIn } from '../../session/login/login-tokens.ts';
import type { TokenOrigin } from '../../session/login/token-source.ts';
import type { Session } from '../../session/session.ts';
import type { Invocation } from '../invocation.ts';
import type { CardLine } from '../print/output.ts';
import { formatTime } from '../times.ts';

/** A token as `status` shows it, without the token itself. Times in milliseconds. */
interface KnownToken {
  kind: 'user' | 'project' | 'experiment';
  source: TokenOrigin;
  /** For people: the variable, the file, the program, the address. */
  where: string;
  sub: string | null;
  expiresAt: number | undefined;
  /** What happens when it expires. */
  afterwards?: string;
}

/** Shows who is logged in, and each token: where it is from, whose it is, how long it lasts. */
export async function status(invocation: Invocation): Promise<void> {
  await showStatus(invocation, await invocation.session());
}

/** See {@link status}. @throws Failure `not_logged_in`, `token_expired` */
export async function showStatus(invocation: Invocation, session: Session): Promise<void> {
  const { profile } = session;
  const { now } = invocation.times();
  const tokens = [await userToken(session, now), ...(await otherTokens(session))];
  const addresses = {
    base_url: profile.baseUrl,
    portal_url: profile.portalUrl,
    auth_url: profile.authUrl,
  };
  const told = tokens.map(({ kind, source, sub, expiresAt }) => ({
    kind,
    source,
    sub,
    expires_at: expiresAt === undefined ? null : formatInstant(expiresAt),
  }));
  await invocation.output.result({ profile: profile.name, addresses, tokens: told }, (print) => {
    const lines: CardLine[] = [['profile', profile.name], ...tokens.flatMap((token) => linesOf(token, now))];
    return print.card(`Logged in to ${print.paint.bold(profile.baseUrl)}`, lines);
  });
}

async function userToken(session: Session, now: number): Promise<KnownToken> {
  const { profile, login, userToken: source } = session;
  const { origin, where } = source;
  if (origin !== 'login') {
    const known = { kind: 'user', source: origin, where, ...claimed(await source.get()) } as const;
    if (known.expiresAt !== undefined && known.expiresAt <= now) throw expired(known);
    return known;
  }
  const stored = login?.read();
  if (!stored) throw notLoggedIn(profile);
  const { accessToken, refreshToken, expiresAt } = stored;
  const ends = refreshToken === undefined;
  const known: KnownToken = {
    kind: 'user',
    source: origin,
    where,
    ...claimed(accessToken),
    expiresAt,
    afterwards: ends ? 'the session ends with it' : 'the session is prolonged by itself',
  };
  if (ends && expiresAt !== undefined && expiresAt <= now) throw expired(known);
  return known;
}

async function otherTokens(session: Session): Promise<KnownToken[]> {
  const { givenExperimentToken: given } = session;
  const kept = [...session.keptTokens()].map(([id, token]): KnownToken => {
    const kind = id.startsWith('proj_') ? 'project' : 'experiment';
    return { kind, source: 'portal', where: session.profile.portalUrl, ...claimed(token) };
  });
  if (!given) return kept;
  const { origin: source, where } = given;
  return [{ kind: 'experiment', source, where, ...claimed(await given.get()) }, ...kept];
}

function claimed(token: Secret): Pick<KnownToken, 'sub' | 'expiresAt'> {
  const text = token.reveal();
  return { sub: claimedSubject(text) ?? null, expiresAt: claimedExpiry(text) };
}

function expired({ where, expiresAt = 0 }: KnownToken): Failure {
  return new Failure('token_expired', `The user token expired at ${formatInstant(expiresAt)}.`, {
    why: `It is from ${where}.`,
    fix: 'slices-conn login',
  });
}

function linesOf({ kind, source, where, sub, expiresAt, afterwards }: KnownToken, now: number): CardLine[] {
  const lasts = expiresAt === undefined ? 'no expiry known' : `until ${formatTime(expiresAt, now)}`;
  const told = [lasts, ...(afterwards === undefined ? [] : [afterwards])].join('; ');
  return [
    [kind, sub ?? 'unknown: the token is opaque'],
    ['  lasts', told],
    ['  from', source === 'environment' || source === 'offline' ? where : `${source}, ${where}`],
  ];
}
