import { Command } from 'commander';
import type { Invoke } from '../context.ts';
import { ALLOW_UNSIGNED } from '../global-options.ts';
import type { ApplyFlags, PlanFlags } from './run.ts';

/** `slices-conn plan FILE [--prune] [--earliest] [--move] [--exit-code]`. */
export function planCommand(invoke: Invoke): Command {
  return withFile(new Command('plan'))
    .summary('say what apply would do, and whether it fits')
    .description(
      'Compares a plan file with the reservations that exist under its names, and says what apply would create, update or delete. Nothing is changed.\nExits with 6 when something does not fit.',
    )
    .option('--exit-code', 'exit with 11 where it fits and would change something')
    .addHelpText(
      'after',
      `
A plan file is YAML or JSON:
  version: 1
  experiment: demo
  defaults: {start: now, for: 8h}
  reservations:
    gent-poznan: {sites: [be-gent1, pl-poznan1], bandwidth: 1G}
    budapest: {sites: [hu-sztaki, pl-poznan1], bandwidth: 500M}

At most 64 changes are made together; what exists already as the file says does not count.
Each reservation has sites, bandwidth, start, and end or for, of its own or from defaults. Times are absolute, or start: now with for; each names its zone, as 09:00:00Z does behind a date, or the file does, once: tz: Europe/Brussels.
via and avoid (sites) and direct: true say what is asked of its route.
Editors know these keys from plan.schema.json, which is in the package: node_modules/slices-conn/dist/plan.schema.json, in a checkout dist/plan.schema.json.

Examples:
  slices-conn plan demo.yaml
  slices-conn plan demo.yaml --earliest
  slices-conn plan demo.yaml --exit-code --json`,
    )
    .action(invoke<PlanFlags>(async () => (await import('./run.ts')).plan));
}

/** `slices-conn apply FILE [--prune] [--earliest] [--move] [--allow-unsigned]`. */
export function applyCommand(invoke: Invoke): Command {
  return withFile(new Command('apply'))
    .option(...ALLOW_UNSIGNED)
    .summary('create, update and delete reservations as a plan file says, all or none')
    .description(
      'Makes the reservations of a plan file, all or none. What is as the file says stays, so that a second run changes nothing; slices-conn plan --help shows such a file.\nWhat is later than the file says, as --earliest may have put it, stays without --move.\nOn a terminal it asks before an update that shrinks or moves a reservation; before --prune deletes it always asks.',
    )
    .addHelpText(
      'after',
      `
Examples:
  slices-conn apply demo.yaml
  slices-conn apply demo.yaml --earliest
  slices-conn apply demo.yaml --prune --yes`,
    )
    .action(invoke<ApplyFlags>(async () => (await import('./run.ts')).apply));
}

/** Adds what both commands take. */
function withFile(command: Command): Command {
  return command
    .argument('<file>', 'a plan file in YAML or JSON; - for standard input')
    .option('--prune', "delete the experiment's other reservations that have a name")
    .option('--earliest', 'start all new ones later, by the same time, as soon as all fit')
    .option('--move', "move those that start later than the file says to the file's times");
}
