import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { timeTeller } from '../times.ts';
import { hostOf, loginOf } from './login.ts';

/** `slices-conn logout`. */
export const command: CommandDeclaration = {};

/** Ends the session, here and at the identity provider. */
export async function run(context: Context): Promise<void> {
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
