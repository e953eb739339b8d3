import { Command, Option } from 'commander';
import type { Invoke } from '../../context.ts';
import { ALLOW_UNSIGNED, waitSeconds } from '../../global-options.ts';
import { addRouteOptions } from '../route-options.ts';
import type { RunFlags } from './run.ts';

/** The hidden command that is the guardian of a `run`. */
export const GUARDIAN = '__guardian';

/**
 * `slices-conn run SITE1 SITE2 --bandwidth B --for D [--earliest] [--wait D] [--extend]
 * [--on-lost warn|term] -- COMMAND [ARG...]`.
 */
export function runCommand(invoke: Invoke): Command {
  const command = new Command('run')
    .summary('book a link for as long as a command runs')
    .description(
      "Books a link, runs a command, and deletes the reservation when the command ends, however it ends.\nWith --earliest or --wait the command waits for its turn, where the link is not free now.\nThe command has this program's input and output, and finds the VLAN tags in its environment (slices-conn help environment).\nExits with the command's own code; with 126 or 127 when the command can't be started, and with 124 when the link was lost and --on-lost term ended the command.",
    )
    .usage('<site1> <site2> --bandwidth <rate> --for <duration> [flags] -- <command> [arguments]')
    .argument('<site1>', 'one end, such as be-gent1')
    .argument('<site2>', 'the other end')
    .argument('<command...>', 'what to run, with its arguments')
    .requiredOption('--bandwidth <rate>', '100 (Mbps), 100M, 1G, 2.5G')
    .requiredOption('--for <duration>', 'how long to book: 90m, 2h, 3d')
    .option('--earliest', 'book the earliest time that fits, and wait until it starts')
    .option(
      '--wait <seconds>',
      'the same, but wait at most so long, such as 30m: where nothing starts by then, nothing is booked',
      waitSeconds,
    )
    .option(...ALLOW_UNSIGNED)
    .option('--extend', 'when a third of the time is left, book as much again, while the command runs')
    .option(
      '--with-token',
      "hand on the tokens of this program's environment, for a command that calls slices-conn; else it gets none",
    )
    .addOption(
      new Option(
        '--on-lost <action>',
        'when the link is lost, which is noticed within a minute: warn, or end the command with SIGTERM',
      )
        .choices(['warn', 'term'] satisfies RunFlags['onLost'][])
        .default('warn'),
    );
  return addRouteOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  slices-conn run be-gent1 pl-poznan1 --bandwidth 1G --for 2h -- ./measure.sh
  slices-conn run be-gent1 pl-poznan1 --bandwidth 1G --for 2h --extend --on-lost term -- iperf3 -c 10.0.0.2
  slices-conn run be-gent1 pl-poznan1 --bandwidth 9G --for 1h --wait 8h -- ./measure.sh
  slices-conn run be-gent1 pl-poznan1 --bandwidth 500M --for 30m -- sh -c 'echo tag $SLICES_CONN_SITE1_S_TAG'`,
    )
    .action(invoke<RunFlags>(async () => (await import('./run.ts')).run));
}

/**
 * The hidden command that `run` starts beside itself, and that deletes its reservation if `run` is killed.
 */
export function guardianCommand(invoke: Invoke): Command {
  return new Command(GUARDIAN)
    .summary('delete the reservation of a run that was killed')
    .action(invoke(async () => (await import('./guardian.ts')).guard));
}
