import { Command } from 'commander';
import type { Invoke } from '../context.ts';

/** `slices-conn user show | token | sessions [list | revoke ID]`. */
export function userCommand(invoke: Invoke): Command {
  const command = new Command('user').summary(
    'show who is logged in; get the access token for other tools; list and end logins',
  );
  command
    .command('show')
    .summary('show your name, id and roles')
    .action(invoke(async () => (await import('./run.ts')).showUser));
  command
    .command('token')
    .summary('print the access token')
    .description(
      'Prints the access token, for other tools. It is renewed first when it is almost over.\nWho has it can act as you until it expires.',
    )
    .action(invoke(async () => (await import('./run.ts')).userToken));
  addSessions(command, invoke);
  return command.addHelpText(
    'after',
    `
Examples:
  slices-conn user show
  slices-conn user token --json | jq .claims
  slices-conn user sessions
  curl -H "Authorization: Bearer $(slices-conn user token)" http://127.0.0.1:4280/portal/apis/projects/v1alpha1/projects/`,
  );
}

/** The logins of the user, of CI jobs too (`login --ci`). */
function addSessions(user: Command, invoke: Invoke): void {
  const command = user.command('sessions').summary('list your logins on all machines, and end them');
  command
    .command('list', { isDefault: true })
    .summary('list your logins that have not ended')
    .action(invoke(async () => (await import('./sessions.ts')).listSessions));
  command
    .command('revoke')
    .summary('end a login, such as the one of a CI job')
    .argument('<login-id>', 'its id, or a part of it that is in no other id')
    .action(invoke(async () => (await import('./sessions.ts')).revokeSession));
  command.addHelpText(
    'after',
    `
Examples:
  slices-conn user sessions
  slices-conn user sessions revoke 3f9a0c17`,
  );
}
