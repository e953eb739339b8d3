import { Command } from 'commander';
import { KEY_NAMES, PROFILE_KEYS } from '../../session/profiles/profile-keys.ts';
import type { Invoke } from '../context.ts';

/** `slices-conn profile list | show [NAME] | use NAME | set NAME KEY=VALUE... | remove NAME`. */
export function profileCommand(invoke: Invoke): Command {
  const command = new Command('profile')
    .summary('list, show, choose and change profiles: which services to use')
    .description(
      'A profile says which services to use, and how. These commands send nothing to a service.\nThe built-in profiles are local (slices-conn serve on this machine), offline (the built-in server) and slices.',
    );
  command
    .command('list')
    .summary('list the profiles; the one in use is marked')
    .action(invoke(async () => (await import('./run.ts')).listProfiles));
  command
    .command('show')
    .summary('show every key of a profile, and where its value comes from')
    .argument('[name]', 'the one in use when left out')
    .action(invoke(async () => (await import('./run.ts')).showProfile));
  command
    .command('use')
    .summary('choose the profile for later commands')
    .argument('<name>')
    .action(invoke(async () => (await import('./run.ts')).useProfile));
  addSet(command, invoke);
  command
    .command('remove')
    .summary('remove what you have set of a profile')
    .description(
      'Removes what you have set of a profile. A built-in profile returns to its defaults.\nThe login is not removed: run slices-conn logout before.',
    )
    .argument('<name>')
    .action(invoke(async () => (await import('./run.ts')).removeProfile));
  return command.addHelpText('after', EXAMPLES);
}

function addSet(command: Command, invoke: Invoke): void {
  command
    .command('set')
    .summary('set keys of a profile, or make a new one')
    .description('Sets keys of a profile. When one value is refused, nothing is changed. KEY= unsets a key.')
    .argument('<name>', 'a new one may have lower-case letters, digits, dots, dashes, underscores')
    .argument('<key=value...>', 'of the keys below')
    .addHelpText('after', () => `\nKeys:\n${keyLines()}${EXAMPLES}`)
    .action(invoke(async () => (await import('./run.ts')).setProfile));
}

/** One key after the other, as help lists flags. */
function keyLines(): string {
  const width = Math.max(...KEY_NAMES.map((key) => key.length));
  return KEY_NAMES.map((key) => `  ${key.padEnd(width)}  ${PROFILE_KEYS[key].about}\n`).join('');
}

const EXAMPLES = `
Examples:
  slices-conn profile set lab baseUrl=https://conn.example.org portalUrl=https://portal.example.org authUrl=https://login.example.org
  slices-conn profile set lab 'experimentTokenCommand=["slices","experiment","jwt","{experiment}"]'
  slices-conn profile use lab
  slices-conn profile show --json | jq .sources`;
