import { Command } from 'commander';
import type { Invoke } from '../context.ts';
import { addRouteOptions } from '../reservation/route-options.ts';
import type { AvailabilityFlags } from './run.ts';

/** `slices-conn availability SITE1 [SITE2] [--start T] [--end T|--for D] [--bandwidth B --duration D] …`. */
export function availabilityCommand(invoke: Invoke): Command {
  const command = new Command('availability')
    .summary('show how much of a link is free, and when a reservation can start')
    .description(
      'Shows how much of a link is free over time, of all links of a site without <site2>: from now for a week, unless told otherwise.\nWith --bandwidth and --duration it also says when such a reservation can start.',
    )
    .argument('<site1>', 'one end, such as be-gent1')
    .argument('[site2]', 'the other end; left out: all links of site1')
    .option('--start <time>', 'from when on; default now')
    .option('--end <time>', 'until when')
    .option('--for <duration>', 'for how long: 6h, 1d, 52w; default 1w')
    .option('--bandwidth <rate>', '100 (Mbps), 100M, 1G, 2.5G; with --duration')
    .option('--duration <duration>', 'how long a reservation would last: 90m, 2h; with --bandwidth');
  return addRouteOptions(command)
    .option('--svg <file>', 'write the chart as a picture, for a paper or a page')
    .addHelpText(
      'after',
      `
Examples:
  slices-conn availability be-gent1 pl-poznan1 --for 1d
  slices-conn availability be-gent1 pl-poznan1 --bandwidth 1G --duration 2h
  slices-conn availability be-gent1
  slices-conn availability be-gent1 fr-slices --avoid fr-lille
  slices-conn availability be-gent1 pl-poznan1 --for 52w --svg year.svg`,
    )
    .action(invoke<AvailabilityFlags>(async () => (await import('./run.ts')).availability));
}
