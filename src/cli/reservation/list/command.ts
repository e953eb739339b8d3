import { Command, Option } from 'commander';
import type { Invoke } from '../../context.ts';
import type { ListFlags } from './run.ts';

/** The values of `--state`. */
const STATES = ['scheduled', 'active', 'ended', 'deleted', 'unknown'] as const;

/** `slices-conn list [--all] [--all-experiments] [--mine] [--site SITE] [--state STATE] [--start T] [--end T]
 * [--timeline | --ics] [--forget KEY]`. */
export function listCommand(invoke: Invoke): Command {
  return new Command('list')
    .summary("list the experiment's reservations")
    .description(
      "Lists the experiment's reservations that have not ended: the service's list, joined with what this machine asked for.",
    )
    .option('--all', 'also reservations that have ended or were deleted')
    .option('--all-experiments', 'of every experiment of yours that has not expired')
    .option('--mine', 'only those that you created')
    .option('--site <site>', 'only links that end at this site')
    .addOption(new Option('--state <state>', 'only those in this state').choices(STATES))
    .option('--start <time>', 'only those that last longer than until then')
    .option('--end <time>', 'only those that start before then')
    .option('--timeline', 'draw them as bars over time')
    .option('--ics', 'print them as a calendar (RFC 5545)')
    .option(
      '--forget <key>',
      'settle by hand a request that was never answered, by its idempotency key: it made nothing',
    )
    .addHelpText(
      'after',
      `
Examples:
  slices-conn list
  slices-conn list --mine --site be-gent1 --state active
  slices-conn list --all --timeline
  slices-conn list --start today --end +1w --timeline
  slices-conn list --all --ics > links.ics
  slices-conn list --all --json | jq -r '.items[].reservation.id'`,
    )
    .action(invoke<ListFlags>(async () => (await import('./run.ts')).list));
}
