import type { DeviceLogin, IssuedTokens } from '../../client/identity.ts';
import { Failure, failureOrThrow } from '../../contract/failure.ts';
import { formatInstant } from '../../contract/instants.ts';
import { isLoopback, isProtected } from '../../contract/loopback.ts';
import { instant, sentence } from '../../contract/said.ts';
import type { Secret } from '../../contract/secret.ts';
import type { Login } from '../../session/login/connection.ts';
import { notLoggedIn } from '../../session/login/login-tokens.ts';
import { noProvider, OFFICIAL_CLIENT, type TokenOrigin } from '../../session/login/token-source.ts';
import type { Session } from '../../session/session.ts';
import { claimedExpiry } from '../../tokens/claimed.ts';
import { retyped } from '../advice.ts';
import type { Context } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { openProfiles } from '../global-options.ts';
import { conflict, onServiceTime } from '../period.ts';
import { type CardLine, escapeText } from '../print/output.ts';
import { chooseProfile } from '../profile/run.ts';
import { confirm } from '../questions.ts';
import { timeTeller } from '../times.ts';
import { type Memberships, membershipsOf, roleLines, rolesIn, userOf } from '../user/run.ts';
import { experimentInUse, inUseLine } from './experiment-in-use.ts';
import { officialProfile, serviceProfile } from './service-profile.ts';

/** The flags of the command, as typed. */
export interface LoginFlags {
  /** False with `--no-browser`. */
  browser: boolean;
  /** Seconds. */
  wait?: number;
  ci?: boolean;
  /** Whether nothing is asked where somebody is logged in. */
  force?: boolean;
  /** Whether the official client logs in. */
  withSlices?: boolean;
}

/** Logs in by a device code: a person on this machine, or with `--ci` a machine elsewhere. */
export async function login(
  context: Context,
  [address]: readonly string[],
  flags: LoginFlags,
): Promise<void> {
  if (flags.withSlices) return loginWithSlices(context, address, flags);
  const profile = address === undefined ? undefined : await serviceProfile(context, address);
  const session = await context.session(profile);
  if (flags.ci) return loginForMachine(context, session, flags);
  const account = loginOf(session);
  if (!flags.force) await confirmAgain(context, session, account);
  const host = hostOf(session);
  const started = await context.output.waitFor(host, () => account.startLogin());
  await announce(context, started, flags);
  const tokens = await context.output.waitFor('the code to be entered', () =>
    decided(started, flags.wait, context.typed),
  );
  await account.keep(tokens);
  context.processes.ifStopped({ why: 'You are logged in.' });
  if (profile !== undefined) await chooseProfile(context.output, await openProfiles(context), profile);
  const { userToken } = session.connection;
  if (userToken.origin !== 'login') {
    context.output.notice(`Warning: commands use ${userToken.where} instead of this login.`);
  }
  const { now } = await context.clock.times();
  // The login succeeded, whatever keeps the other source from giving a token.
  const ofUser = async (): Promise<KnownToken> => {
    try {
      return await userTokenOf(session, now);
    } catch (error) {
      if (!(error instanceof Failure) || userToken.origin === 'login') throw error;
      context.output.notice(`Warning: that gives no token now. ${error.message}`);
      return loginTokenOf(session, now);
    }
  };
  await showStatus(context, session, await membershipsOf(session).catch(failureOrThrow), ofUser);
}

/** Says who is logged in already, and asks whether to log in again. @throws Declined */
async function confirmAgain(context: Context, { profile }: Session, account: Login): Promise<void> {
  const stored = account.read();
  if (!stored || (stored.refreshToken === undefined && (stored.expiresAt ?? 0) <= context.clock.now()))
    return;
  const { name, sub } = userOf(stored.accessToken.reveal());
  context.output.notice(`You are logged in to ${profile.baseUrl} as ${name ?? sub ?? 'a user'}.`);
  if (!context.terminal.ask) return;
  const declined = 'You stay logged in.';
  await confirm(context, 'Log in again?', { unasked: declined, declined, isExpected: true });
}

/** Uses the login of the official client, whose tokens the profile's commands ask for. */
async function loginWithSlices(
  context: Context,
  address: string | undefined,
  { ci, wait }: LoginFlags,
): Promise<void> {
  for (const [flag, value] of Object.entries({ '--ci': ci, '--wait': wait })) {
    if (value !== undefined) throw conflict(flag, '--with-slices');
  }
  const session = await context.session(await officialProfile(context, address));
  const { now } = await context.clock.times();
  await showStatus(context, session, await membershipsOf(session).catch(failureOrThrow), () =>
    userTokenOf(session, now),
  );
  if (session.profile.experiment === undefined && context.flags.experiment === undefined) {
    context.output.notice(
      `Each reservation needs an experiment: name yours by --experiment, or in SLICES_EXPERIMENT. To see them: ${OFFICIAL_CLIENT} experiment list`,
    );
  }
}

/** Prints a machine's refresh token, once (cli/README.md, "Environment"). The login here stays as it is. */
async function loginForMachine(context: Context, session: Session, flags: LoginFlags): Promise<void> {
  const {
    output,
    typed,
    clock: { times },
  } = context;
  const { machineLogin: machine } = session.connection;
  if (!machine) throw needsNoLogin(session);
  const host = hostOf(session);
  const started = await output.waitFor(host, () => machine.start());
  await announce(context, started, flags);
  const tokens = await output.waitFor('the code to be entered', () => decided(started, flags.wait, typed));
  const { refreshToken, expiresAt } = await output.waitFor(host, () => machine.check(tokens));
  const token = refreshToken.reveal();
  const until = expiresAt === undefined ? 'it expires' : timeTeller(await times())(expiresAt);
  output.text(
    { refresh_token: token, expires_at: expiresAt === undefined ? null : formatInstant(expiresAt) },
    token,
  );
  output.notice(
    `Until ${until}, anyone who has this token can act as you. It is not stored here, and not shown again.`,
  );
  output.notice(
    'Give it to a job as the secret SLICES_CONN_REFRESH_TOKEN. To list and end such logins: slices-conn user sessions',
  );
}

/** Ends the session, here and at the identity provider. */
export async function logout(context: Context): Promise<void> {
  const session = await context.session();
  const { connection, profile } = session;
  connection.forget?.();
  if (!connection.login && profile.authUrl === undefined) {
    return context.output.result(
      { profile: profile.name, loggedIn: false },
      () =>
        `The tokens of profile ${profile.name} were forgotten. The program that gives them is still logged in.\n`,
    );
  }
  const account = loginOf(session);
  const wasLoggedIn = account.read() !== undefined;
  const { problem, aliveUntil } = await context.output.waitFor(hostOf(session), () => account.end());
  if (problem !== undefined) context.output.notice(problem);
  if (aliveUntil !== undefined) {
    const until = timeTeller(await context.clock.times())(aliveUntil);
    context.output.notice(
      `A copy of the access token can be valid until ${until}: not every service checks that its login has ended.`,
    );
  }
  const { name, baseUrl } = session.profile;
  await context.output.result({ profile: name, loggedIn: false }, () =>
    wasLoggedIn ? `Logged out of ${baseUrl}.\n` : '',
  );
}

function loginOf(session: Session): Login {
  if (session.connection.login) return session.connection.login;
  throw needsNoLogin(session);
}

/** The identity provider, for people who wait for it. */
function hostOf({ profile: { authUrl, baseUrl } }: Session): string {
  return new URL(authUrl ?? baseUrl).host;
}

function needsNoLogin({ profile }: Session): Failure {
  if (profile.authUrl === undefined) return noProvider(profile);
  return new Failure('usage', 'The built-in server needs no login.', {
    why: 'With --offline you are its lead already.',
  });
}

/** Prints the address and the code on stderr, with `--quiet` too: without them the user can't log in. */
async function announce(
  { output, terminal: { openBrowser }, clock: { times } }: Context,
  login: DeviceLogin,
  { browser }: LoginFlags,
): Promise<void> {
  const { userCode, verificationUri, verificationUriComplete, expiresAt } = login;
  const url = URL.canParse(verificationUri) ? new URL(verificationUri) : undefined;
  const where = url && isLoopback(url) ? 'on this machine' : 'on any machine';
  output.prompt(`To log in, open this address in a browser, ${where}:`);
  output.prompt(`  ${verificationUri}`);
  output.prompt('and enter the code');
  output.prompt(`  ${userCode}`);
  output.prompt(`It expires at ${timeTeller(await times())(expiresAt)}.`);
  const address = webAddress(verificationUriComplete ?? verificationUri);
  if (address === undefined) return;
  if (browser && (await openBrowser(address))) output.notice('Your browser was opened.');
}

/**
 * The address to open in a browser; undefined for an address that is only printed
 * (THREATS.md 6). It must be https, or http on this machine, without user and password, white space and
 * control characters: URL parsing drops the latter two, but the program that opens the browser may not.
 */
function webAddress(text: string): string | undefined {
  if (/[\s\p{C}]/u.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return isProtected(url) && url.username === '' && url.password === '' ? url.href : undefined;
}

const isToLogIn = (error: unknown): error is Failure =>
  error instanceof Failure && error.facts.fix === 'slices-conn login';

async function decided(
  login: DeviceLogin,
  wait: number | undefined,
  typed: readonly string[],
): Promise<IssuedTokens> {
  const signal = wait === undefined ? new AbortController().signal : AbortSignal.timeout(wait * 1000);
  try {
    return await login.wait(signal);
  } catch (error) {
    // The profile of an address that was typed is not in use yet.
    if (!signal.aborted) throw isToLogIn(error) ? error.with({ fix: retyped(typed, []) }) : error;
    throw new Failure('login_pending', `The code was not entered within ${wait} s.`, {
      retryable: true,
      fix: retyped(typed, [{ flags: ['--wait'], words: [] }]),
    });
  }
}

/** A token as `status` shows it, without the token itself. Times in milliseconds. */
interface KnownToken {
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
export async function status(given: Context): Promise<void> {
  const session = await given.session();
  const context = await onServiceTime(given, session, { isLook: true });
  // The stored login is read first: without one, its message is clearer than the portal's.
  const { now } = await context.clock.times();
  const ofUser = () => userTokenOf(session, now);
  await ofUser();
  // Or why the portal does not tell.
  const told = await membershipsOf(session).catch(failureOrThrow);
  if (told instanceof Failure && EXIT_CODE_OF[told.code] === EXIT_CODE_OF.not_logged_in) throw told;
  await showStatus(context, session, told, ofUser);
}

/** See {@link status}. @throws Failure `not_logged_in`, `token_expired`, as `ofUser` does */
async function showStatus(
  context: Context,
  session: Session,
  told: Memberships | Failure,
  ofUser: () => Promise<KnownToken>,
): Promise<void> {
  const { profile } = session;
  const times = await context.clock.times();
  // Read again: the portal may have been asked with a token that was renewed for it.
  const tokens = [await ofUser(), ...(await otherTokens(session))];
  const addresses = {
    base_url: profile.baseUrl,
    portal_url: profile.portalUrl ?? null,
    auth_url: profile.authUrl ?? null,
  };
  const listed = tokens.map(({ kind, source, sub, expiresAt }) => ({
    kind,
    source,
    sub,
    expires_at: expiresAt === undefined ? null : formatInstant(expiresAt),
  }));
  const [first] = tokens;
  const { sub = null, name = null } = first ?? {};
  const roles = told instanceof Failure ? null : rolesIn(told);
  const used = told instanceof Failure ? told : await experimentInUse(context, session, told.experiments);
  const experiment = used instanceof Failure ? null : used;
  const value = { profile: profile.name, addresses, sub, name, roles, experiment, tokens: listed };
  await context.output.result(value, (print) => {
    const tell = timeTeller(times);
    const unknown = (reason: string): CardLine[] => [['roles', `not known: ${reason}`]];
    const lines: CardLine[] = [
      ['profile', profile.name],
      ...(told instanceof Failure ? unknown(told.message) : roleLines(rolesIn(told), context)),
      ...(used === told ? [] : [inUseLine(used)]),
      ...endLine(session, told, tell),
      ...tokens.flatMap((token) => linesOf(token, tell)),
    ];
    const as = name === null ? '' : ` as ${print.paint.bold(escapeText(name))}`;
    return print.card(`Logged in to ${print.paint.bold(profile.baseUrl)}${as}`, lines);
  });
}

/** Without a portal: when the experiment ends, as its token says. */
function endLine(
  { profile }: Session,
  told: Memberships | Failure,
  tell: (instant: number) => string,
): CardLine[] {
  const [only] = profile.portalUrl === undefined && !(told instanceof Failure) ? told.experiments : [];
  return only?.expires_at ? [['  until', tell(Date.parse(only.expires_at))]] : [];
}

async function userTokenOf(session: Session, now: number): Promise<KnownToken> {
  const { userToken: source } = session.connection;
  const { origin, where } = source;
  if (origin === 'login') return loginTokenOf(session, now);
  const known = { kind: 'user', source: origin, where, ...claimed(await source.get()) } as const;
  if (known.expiresAt !== undefined && known.expiresAt <= now) throw expired(known);
  return known;
}

function loginTokenOf({ profile, connection }: Session, now: number): KnownToken {
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
  if (!given && experimentTokenFrom) {
    const access = await session.access().catch(failureOrThrow);
    if (access instanceof Failure) return kept;
    const { origin, where, token } = access;
    return [{ kind: 'experiment', source: origin, where, ...claimed(token) }, ...kept];
  }
  if (!given) return kept;
  const { origin: source, where } = given;
  return [{ kind: 'experiment', source, where, ...claimed(await given.get()) }, ...kept];
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
