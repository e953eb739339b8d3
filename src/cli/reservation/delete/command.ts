import { Command } from 'commander';
import type { Invoke } from '../../context.ts';
import type { DeleteFlags } from './run.ts';

/** `slices-conn delete ID... | delete --all [--everyone]`. */
export function deleteCommand(invoke: Invoke): Command {
  return new Command('delete')
    .summary('delete reservations')
    .description(
      'Deletes reservations: their VLANs and bandwidth are free again at once. Asks first, unless --yes is given.',
    )
    .argument(
      '[id...]',
      'names, ids, or four characters or more of the last part of each; asked for when left out',
    )
    .option('--all', 'all that you created in the experiment and that have not ended')
    .option('--everyone', "with --all: other users' too")
    .option('--if-exists', 'no failure for what is gone or not known')
    .option('--as-administrator', 'delete any reservation, as an administrator of the service')
    .option('--reason <text>', 'why it is deleted; the service keeps the reason')
    .addHelpText(
      'after',
      `
Examples:
  slices-conn delete con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q
  slices-conn delete --all
  slices-conn delete con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --as-administrator --reason 'its job died'`,
    )
    .action(invoke<DeleteFlags>(async () => (await import('./run.ts')).deleteReservations));
}
