import { Command } from 'commander';
import type { Invoke } from '../../context.ts';
import { ALLOW_UNSIGNED } from '../../global-options.ts';
import type { ShowFlags } from './run.ts';

/** `slices-conn show ID [--token] [--save FILE [--with-key]]`. */
export function showCommand(invoke: Invoke): Command {
  return new Command('show')
    .summary('show a reservation, verified')
    .argument(
      '[id]',
      'its name, its id, or four characters or more of the last part; asked for when left out',
    )
    .option('--token', 'print the signed reservation itself')
    .option('--save <file>', 'write the signed reservation to a file, for verify')
    .option(
      '--with-key',
      'with --save: write its public key beside it, and print its thumbprint (verify --key)',
    )
    .option(...ALLOW_UNSIGNED)
    .addHelpText(
      'after',
      `
Examples:
  slices-conn show con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q
  slices-conn show con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --save link.jwt`,
    )
    .action(invoke<ShowFlags>(async () => (await import('./run.ts')).show));
}
