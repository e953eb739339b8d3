import { Command } from 'commander';
import type { Invoke } from '../../context.ts';

/** `slices-conn watch [ID]`. */
export function watchCommand(invoke: Invoke): Command {
  return new Command('watch')
    .summary('show what happens to reservations, as it happens')
    .description(
      "Prints a line when a reservation has started or was updated, when it ends within 10 minutes, and when it has ended or was deleted. The service tells it at once; one that can't is asked every 15 s.\nWithout an id it watches the experiment's reservations until Ctrl-C; with one it ends when the reservation has ended or was deleted.\nWith --json each line is an object.",
    )
    .argument(
      '[id]',
      'its name, its id, or four characters or more of the last part; all reservations when left out',
    )
    .option(
      '--exec <command>',
      'run a command of the shell for each event, one after the other, with the event as JSON on its standard input',
    )
    .addHelpText(
      'after',
      `
Examples:
  slices-conn watch
  slices-conn watch con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q
  slices-conn watch --exec ./changed.sh
  slices-conn watch --json | jq -r '[.at, .event, .reservation.id] | @tsv'`,
    )
    .action(invoke(async () => (await import('./run.ts')).watch));
}
