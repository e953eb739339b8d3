import { Command } from 'commander';
import type { Invoke } from '../invocation.ts';

/** `slices-conn user show | token`. */
export function userCommand(invoke: Invoke): Command {
  const command = new Command('user').summary('show who is logged in; get the access token for other tools');
  command.addCommand(
    new Command('show')
      .summary('show your name, id and roles')
      .action(invoke(async () => (await import('./run.ts')).showUser)),
  );
  command.addCommand(
    new Command('token')
      .summary('print the access token')
      .description(
        'Prints the access token, for other tools. It is renewed first when it is almost over.\nWho has it can act as you until it expires.',
      )
      .action(invoke(async () => (await import('./run.ts')).userToken)),
  );
  return command.addHelpText(
    'after',
    `
Examples:
  slices-conn user show
  slices-conn user token --json | jq .claims
  curl -H "Authorization: Bearer $(slices-conn user token)" http://127.0.0.1:4280/portal/apis/projects/v1alpha1/projects/`,
  );
}
