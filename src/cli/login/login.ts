import type { DeviceLogin, IssuedTokens } from '../../client/identity.ts';
import { isLoopback, isProtected } from '../../contract/addresses.ts';
import { Failure, failureOrThrow } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { formatInstant } from '../../contract/instants.ts';
import { inOneText } from '../../contract/said.ts';
import type { Login } from '../../session/login/connection.ts';
import { noProvider, OFFICIAL_CLIENT } from '../../session/login/token-source.ts';
import type { Session } from '../../session/session.ts';
import type { CommandDeclaration } from '../command.ts';
import { retyped } from '../command-line.ts';
import type { Context } from '../context.ts';
import { variablesOf } from '../directory/ci-rules.ts';
import { openProfiles, waitSeconds } from '../global-options.ts';
import { chooseProfile } from '../profile/profile.ts';
import { confirm } from '../questions.ts';
import { timeTeller } from '../times.ts';
import { membershipsOf, userOf } from '../user/user.ts';
import { officialProfile, serviceProfile } from './service-profile.ts';
import { loginTokenOf, showStatus, userTokenOf } from './status.ts';

/** `slices-conn login [ADDRESS] [--with-slices] [--no-browser] [--force] [--wait SECONDS] [--ci]`: OAuth 2.0 device login (RFC 8628). */
export const command = {
  about: [
    'Prints an address and a code, and waits until the code was entered there, in any browser that reaches the address.',
    'Needs no terminal. Ctrl-C gives up.',
    'With the address of a service, it asks the service for its portal and its identity provider, and keeps them, once you have',
    'accepted them (--yes does), in a profile that is named after the service. Without one it logs in to the profile in use.',
  ].join('\n'),
  args: { '[address]': 'the service, such as conn.example.org; https, and http on this machine' },
  options: {
    withSlices: {
      flags: '--with-slices',
      help: 'use the login of the official client: its tokens, and no other login',
      conflicts: ['ci', 'wait'],
    },
    browser: { flags: '--no-browser', help: 'open no browser' },
    force: { flags: '--force', help: 'ask nothing where somebody is logged in already' },
    wait: { flags: '--wait <seconds>', help: 'give up with exit code 8 after this long', parse: waitSeconds },
    ci: {
      flags: '--ci',
      help: 'print a refresh token for a CI job that experiment ci add can’t let in, once, and store nothing; the job gets it as SLICES_CONN_REFRESH_TOKEN',
    },
  },
  examples: [
    'slices-conn login conn.example.org',
    'slices-conn login conn.example.org --with-slices',
    'slices-conn login',
    'slices-conn login --no-browser',
    'slices-conn login --wait 60 --json',
    'slices-conn login --ci | gh secret set SLICES_CONN_REFRESH_TOKEN',
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/** Logs in by a device code: a person on this machine, or with `--ci` a machine elsewhere. */
export async function run(context: Context, [address]: readonly string[], flags: Flags): Promise<void> {
  if (flags.withSlices) return loginWithSlices(context, address);
  const profile = address === undefined ? undefined : await serviceProfile(context, address);
  const unused = profile === undefined ? undefined : await aboutUnused(context, profile);
  if (unused !== undefined) context.processes.ifStopped({ why: unused, fix: retyped(context.typed, {}) });
  const session = await context.session(profile);
  if (flags.ci) return loginForMachine(context, session, flags);
  const account = loginOf(session);
  if (!flags.force) await confirmAgain(context, session, account);
  const tokens = await loggedIn(context, session, flags, () => account.startLogin()).catch((error) => {
    if (unused === undefined || !(error instanceof Failure)) throw error;
    const { why, fix = retyped(context.typed, {}) } = error.facts;
    throw error.with({ why: inOneText(why, unused), fix });
  });
  await account.keep(tokens);
  context.processes.ifStopped({ why: 'You are logged in.' });
  if (profile !== undefined) await chooseProfile(context.output, await openProfiles(context), profile);
  const { userToken } = session.connection;
  if (userToken.origin !== 'login') {
    context.output.notice(`Warning: commands use ${userToken.where} instead of this login.`);
  }
  const now = context.clock.now();
  const told = await membershipsOf(session).catch(failureOrThrow);
  // The login succeeded, whatever keeps the other source from giving a token.
  const used = await userTokenOf(session, now).catch(failureOrThrow);
  await showStatus(context, session, told, used instanceof Failure ? loginTokenOf(session, now) : used);
}

/** What is said where the login at an address is not finished; undefined where its profile is in use already. */
async function aboutUnused(context: Context, name: string): Promise<string | undefined> {
  const used = (await openProfiles(context)).activeName(undefined);
  if (used === name) return undefined;
  return `Profile ${name} is saved, and not in use: until you have logged in there, commands use profile ${used}.`;
}

/** Says who is logged in already, and asks whether to log in again. @throws Declined */
async function confirmAgain(context: Context, { profile }: Session, account: Login): Promise<void> {
  const stored = account.read();
  if (!stored || (stored.refreshToken === undefined && (stored.expiresAt ?? 0) <= context.clock.now()))
    return;
  const { name, sub } = userOf(stored.accessToken.reveal());
  context.output.notice(`A login to ${profile.baseUrl} as ${name ?? sub ?? 'a user'} is kept here.`);
  if (!context.terminal.ask) return;
  const declined = 'You stay logged in.';
  await confirm(context, 'Log in again?', { unasked: declined, declined, isExpected: true });
}

/** Uses the login of the official client, whose tokens the profile's commands ask for. */
async function loginWithSlices(context: Context, address: string | undefined): Promise<void> {
  const session = await context.session(await officialProfile(context, address));
  const told = await membershipsOf(session).catch(failureOrThrow);
  await showStatus(context, session, told, await userTokenOf(session, context.clock.now()));
  if (session.profile.experiment === undefined && context.flags.experiment === undefined) {
    context.output.notice(
      `Each reservation needs an experiment: name yours by --experiment, or in SLICES_EXPERIMENT. To see them: ${OFFICIAL_CLIENT} experiment list`,
    );
  }
}

/** Prints a machine's refresh token, once (cli/README.md, "Environment"). The login here stays as it is. */
async function loginForMachine(context: Context, session: Session, flags: Flags): Promise<void> {
  const { output, clock } = context;
  const { machineLogin: machine } = session.connection;
  if (!machine) throw needsNoLogin(session);
  const tokens = await loggedIn(context, session, flags, () => machine.start());
  const { refreshToken, expiresAt } = await output.waitFor(hostOf(session), () => machine.check(tokens));
  const token = refreshToken.reveal();
  const until = expiresAt === undefined ? 'it expires' : timeTeller(await clock.times())(expiresAt);
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
  output.notice('The job needs these variables too, which are no secrets:');
  for (const [name, value] of Object.entries(variablesOf(session.profile)))
    output.notice(`  ${name}=${value}`);
}

/**
 * The login of a session's person.
 *
 * @throws Failure `usage` where the profile has no identity provider, and for the built-in server, which needs no login
 */
export function loginOf(session: Session): Login {
  if (session.connection.login) return session.connection.login;
  throw needsNoLogin(session);
}

/** The identity provider, for people who wait for it. */
export function hostOf({ profile: { authUrl, baseUrl } }: Session): string {
  return new URL(authUrl ?? baseUrl).host;
}

function needsNoLogin({ profile }: Session): Failure {
  if (profile.authUrl === undefined) return noProvider(profile);
  return new Failure('usage', 'The built-in server needs no login.', {
    why: 'With --offline you are its lead already.',
  });
}

/** Starts a login, and waits until its code was entered. */
async function loggedIn(
  context: Context,
  session: Session,
  { browser, wait }: Flags,
  start: () => Promise<DeviceLogin>,
): Promise<IssuedTokens> {
  const { output, typed } = context;
  const started = await output.waitFor(hostOf(session), start);
  await announce(context, started, browser);
  const signal = wait === undefined ? new AbortController().signal : AbortSignal.timeout(wait * 1000);
  try {
    return await output.waitFor('the code to be entered', () => started.wait(signal));
  } catch (error) {
    if (signal.aborted) {
      const says = `The code was not entered within ${wait} s.`;
      throw new Failure('login_pending', says, { retryable: true, fix: { wait: undefined } });
    }
    // The profile of an address that was typed is not in use yet.
    const isToLogIn = error instanceof Failure && error.facts.fix === 'slices-conn login';
    throw isToLogIn ? error.with({ fix: retyped(typed, {}) }) : error;
  }
}

/** Prints the address and the code on stderr, with `--quiet` too: without them the user can't log in. */
async function announce(
  { output, terminal: { openBrowser }, clock: { times } }: Context,
  { userCode, verificationUri, verificationUriComplete, expiresAt }: DeviceLogin,
  browser: Flags['browser'],
): Promise<void> {
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
