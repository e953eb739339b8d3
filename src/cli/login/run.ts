import type { DeviceLogin, IssuedTokens } from '../../client/identity.ts';
import { Failure } from '../../contract/failure.ts';
import { isProtected } from '../../contract/loopback.ts';
import type { Login } from '../../session/login/connection.ts';
import type { Session } from '../../session/session.ts';
import type { Invocation } from '../invocation.ts';
import { formatTime } from '../times.ts';
import { showStatus } from './status.ts';

/** The flags of the command, as typed. */
export interface LoginFlags {
  /** False with `--no-browser`. */
  browser: boolean;
  qr?: boolean;
  /** Seconds. */
  wait?: number;
}

/** Logs in by a device code. */
export async function login(
  invocation: Invocation,
  _args: readonly string[],
  flags: LoginFlags,
): Promise<void> {
  const session = await invocation.session();
  const account = loginOf(session);
  // An unusable credentials file fails here, before the user enters a code.
  account.read();
  const { host } = new URL(session.profile.authUrl);
  const started = await invocation.waitFor(host, () => account.startLogin());
  await announce(invocation, started, flags);
  await account.keep(await invocation.waitFor('the code to be entered', () => decided(started, flags.wait)));
  const { userToken } = session;
  if (userToken.origin !== 'login') {
    invocation.output.notice(`Warning: commands use ${userToken.where} instead of this login.`);
  }
  await showStatus(invocation, session);
}

/** Ends the session, here and at the identity provider. */
export async function logout(invocation: Invocation): Promise<void> {
  const session = await invocation.session();
  const account = loginOf(session);
  const wasLoggedIn = account.read() !== undefined;
  const { problem, aliveUntil } = await account.end();
  if (problem !== undefined) invocation.output.notice(problem);
  if (aliveUntil !== undefined) {
    const until = formatTime(aliveUntil, invocation.times().now);
    invocation.output.notice(
      `A copy of the access token can be valid until ${until}: not every service checks that its login has ended.`,
    );
  }
  const { name, baseUrl } = session.profile;
  await invocation.output.result({ profile: name, loggedIn: false }, () =>
    wasLoggedIn ? `Logged out of ${baseUrl}.\n` : '',
  );
}

function loginOf({ login: account }: Session): Login {
  if (account) return account;
  throw new Failure('usage', 'The built-in server needs no login.', {
    why: 'With --offline you are its lead already.',
  });
}

/** Prints the address and the code on stderr, with `--quiet` too: without them the user can't log in. */
async function announce(
  { output, openBrowser, times }: Invocation,
  login: DeviceLogin,
  { browser, qr }: LoginFlags,
): Promise<void> {
  const { userCode, verificationUri, verificationUriComplete, expiresAt } = login;
  output.prompt('To log in, open this address in a browser, on any machine:');
  output.prompt(`  ${verificationUri}`);
  output.prompt('and enter the code');
  output.prompt(`  ${userCode}`);
  output.prompt(`It expires at ${formatTime(expiresAt, times().now)}.`);
  const address = webAddress(verificationUriComplete ?? verificationUri);
  if (address === undefined) return;
  if (qr) {
    const { renderUnicodeCompact } = await import('uqr');
    for (const line of renderUnicodeCompact(address, { border: 2 }).split('\n')) output.prompt(line);
  }
  if (browser && (await openBrowser(address))) output.notice('Your browser was opened.');
}

/**
 * The address to hand to the person's browser, or to draw; undefined for one that is only shown (HOSTILE.md 6): it must
 * be https, or http on this machine, without user and password, and without white space or control characters, which a
 * URL's reader drops but a browser's launcher need not.
 */
function webAddress(text: string): string | undefined {
  if (/[\s\p{C}]/u.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return isProtected(url) && url.username === '' && url.password === '' ? url.href : undefined;
}

async function decided(login: DeviceLogin, wait: number | undefined): Promise<IssuedTokens> {
  const signal = wait === undefined ? new AbortController().signal : AbortSignal.timeout(wait * 1000);
  try {
    return await login.wait(signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Failure('login_pending', `The code was not entered within ${wait} s.`, {
      retryable: true,
      fix: 'slices-conn login',
    });
  }
}
