import { Failure, failureOrThrow } from '../../contract/failure.ts';
import { formatInstant } from '../../contract/instants.ts';
import { instant, sentence } from '../../contract/said.ts';
import type { Secret } from '../../contract/secret.ts';
import { notLoggedIn } from '../../session/login/login-tokens.ts';
import type { TokenOrigin } from '../../session/login/token-source.ts';
import type { Session } from '../../session/session.ts';
import { claimedExpiry } from '../../tokens/claimed.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { onServiceTime } from '../period.ts';
import { type CardLine, escapeText } from '../print/output.ts';
import { timeTeller } from '../times.ts';
import { type Memberships, membershipsOf, roleLines, rolesIn, userOf } from '../user/user.ts';
import { experimentInUse, inUseLine } from './experiment-in-use.ts';

/** `slices-conn status`. */
export const command: CommandDeclaration = {
  about: 'Shows the profile, its services and the tokens. Exits with 4 when you are not logged in.',
};

/** A token as `status` shows it, without the token itself. Times in milliseconds. */
export interface KnownToken {
  kind: 'user' | 'project' | 'experiment';
  source: TokenOrigin;
  /** Its variable, file, program or address, for people. */
  where: string;
  sub: string | null;
  name: string | null;
  expiresAt: number | undefined;
  /** The consequence of its expiry, in words. */
  afterwards?: string;
}

/** Shows who is logged in, and the source, user and expiry of each token. */
export async function run(given: Context): Promise<void> {
  const session = await given.session();
  const context = await onServiceTime(given, session, { isLook: true });
  // The stored login is read first: without one, its message is clearer than the portal's.
  const { now } = await context.clock.times();
  await userTokenOf(session, now);
  // Or why the portal does not tell.
  const told = await membershipsOf(session).catch(failureOrThrow);
  if (told instanceof Failure && EXIT_CODE_OF[told.code] === EXIT_CODE_OF.not_logged_in) throw told;
  // Read again: the portal may have been asked with a token that was renewed for it.
  await showStatus(context, session, told, await userTokenOf(session, now));
}

/** See {@link run}. */
export async function showStatus(
  context: Context,
  session: Session,
  told: Memberships | Failure,
  user: KnownToken,
): Promise<void> {
  const { profile } = session;
  const times = await context.clock.times();
  const tokens = [user, ...(await otherTokens(session))];
  const addresses = {
    base_url: profile.baseUrl,
    portal_url: profile.portalUrl ?? null,
    auth_url: profile.authUrl ?? null,
  };
  const listed = tokens.map(({ kind, source, sub, expiresAt }) => {
    return { kind, source, sub, expires_at: expiresAt === undefined ? null : formatInstant(expiresAt) };
  });
  const { sub, name } = user;
  const roles = told instanceof Failure ? null : rolesIn(told);
  const used = told instanceof Failure ? told : await experimentInUse(context, session, told.experiments);
  const experiment = used instanceof Failure ? null : used;
  // Without a portal the experiment's token says when it ends.
  const ends =
    profile.portalUrl === undefined && !(told instanceof Failure) && told.experiments[0]?.expires_at;
  const value = { profile: profile.name, addresses, sub, name, roles, experiment, tokens: listed };
  await context.output.result(value, (print) => {
    const tell = timeTeller(times);
    const lines: CardLine[] = [
      ['profile', profile.name],
      ...(told instanceof Failure
        ? [['roles', `not known: ${told.message}`] as const]
        : roleLines(rolesIn(told), context)),
      ...(used === told ? [] : [inUseLine(used)]),
      ...(ends ? [['  until', tell(Date.parse(ends))] as const] : []),
      ...tokens.flatMap((token) => linesOf(token, tell)),
    ];
    const as = name === null ? '' : ` as ${print.paint.bold(escapeText(name))}`;
    return print.card(`Logged in to ${print.paint.bold(profile.baseUrl)}${as}`, lines);
  });
}

/** The user token, wherever it is from. @throws Failure `token_expired`, `not_logged_in` */
export async function userTokenOf(session: Session, now: number): Promise<KnownToken> {
  const { userToken: source } = session.connection;
  const { origin, where } = source;
  if (origin === 'login') return loginTokenOf(session, now);
  const known = { kind: 'user', source: origin, where, ...claimed(await source.get()) } as const;
  if (known.expiresAt !== undefined && known.expiresAt <= now) throw expired(known);
  return known;
}

/** The token of the stored login. @throws Failure `not_logged_in`, `token_expired` */
export function loginTokenOf({ profile, connection }: Session, now: number): KnownToken {
  const { login } = connection;
  const stored = login?.read();
  if (!stored) throw notLoggedIn(profile);
  const { accessToken, refreshToken, expiresAt } = stored;
  const ends = refreshToken === undefined;
  const known: KnownToken = {
    kind: 'user',
    source: 'login',
    where: login?.path ?? '',
    ...claimed(accessToken),
    expiresAt,
    afterwards: ends ? 'the session ends with it' : 'the session is prolonged by itself',
  };
  if (ends && expiresAt !== undefined && expiresAt <= now) throw expired(known);
  return known;
}

async function otherTokens(session: Session): Promise<KnownToken[]> {
  const { experimentToken: given, experimentTokenFrom, portalTokens } = session.connection;
  const kept = [...(portalTokens?.all() ?? [])].map(([id, token]): KnownToken => {
    const kind = id.startsWith('proj_') ? 'project' : 'experiment';
    return { kind, source: 'portal', where: session.profile.portalUrl ?? '', ...claimed(token) };
  });
  if (given) {
    const { origin: source, where } = given;
    return [{ kind: 'experiment', source, where, ...claimed(await given.get()) }, ...kept];
  }
  const access = experimentTokenFrom && (await session.access().catch(failureOrThrow));
  if (!access || access instanceof Failure) return kept;
  const { origin: source, where, token } = access;
  return [{ kind: 'experiment', source, where, ...claimed(token) }, ...kept];
}

function claimed(token: Secret): Pick<KnownToken, 'sub' | 'name' | 'expiresAt'> {
  const text = token.reveal();
  return { ...userOf(text), expiresAt: claimedExpiry(text) };
}

function expired({ expiresAt = 0 }: KnownToken): Failure {
  return new Failure('token_expired', sentence`The user token expired at ${instant(expiresAt)}.`, {
    fix: 'slices-conn login',
  });
}

function linesOf(
  { kind, source, where, sub, expiresAt, afterwards }: KnownToken,
  tell: (instant: number) => string,
): CardLine[] {
  const lasts = expiresAt === undefined ? 'no expiry known' : `until ${tell(expiresAt)}`;
  const told = [lasts, ...(afterwards === undefined ? [] : [afterwards])].join('; ');
  return [
    [`${kind} token`, sub ?? 'unknown: the token is opaque'],
    ['  lasts', told],
    ['  from', source === 'environment' || source === 'offline' ? where : `${source}, ${where}`],
  ];
}
