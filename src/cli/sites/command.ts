import { Command } from 'commander';
import type { Invoke } from '../invocation.ts';

/** `slices-conn sites`: the names, and the links where the service tells. */
export function sitesCommand(invoke: Invoke): Command {
  return new Command('sites')
    .summary('list the sites, and the links if the service lists them')
    .addHelpText(
      'after',
      `
Examples:
  slices-conn sites
  slices-conn sites --json | jq -r '.links[] | [.site1, .site2, .bandwidth] | @tsv'`,
    )
    .action(invoke(async () => (await import('./run.ts')).sites));
}
