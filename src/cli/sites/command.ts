import { Command } from 'commander';
import type { Invoke } from '../context.ts';

/** `slices-conn sites [SITE1 SITE2]`: the names, and the links where the service tells; or the routes between two. */
export function sitesCommand(invoke: Invoke): Command {
  return new Command('sites')
    .summary('list the sites with their links, or the routes between two of them')
    .argument('[site1]', 'one end of a route; with the other, the routes that a reservation may take')
    .argument('[site2]', 'the other end')
    .addHelpText(
      'after',
      `
Examples:
  slices-conn sites
  slices-conn sites be-gent1 gr-uth
  slices-conn sites --json | jq -r '.links[] | [.site1, .site2, .bandwidth] | @tsv'`,
    )
    .action(invoke(async () => (await import('./run.ts')).sites));
}
