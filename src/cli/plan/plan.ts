import type { OptionsOf } from '../../contract/flags.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context, Outcome } from '../context.ts';
import { earliestStart, rehearse } from './applier.ts';
import { compare, openPlan, PLAN_FILE, PLAN_OPTIONS, printPlan } from './comparison.ts';

/** `slices-conn plan FILE [--prune] [--earliest] [--move] [--exit-code]`. */
export const command = {
  about:
    'Compares a plan file with the reservations that exist under its names, and says what apply would create, update or delete. Nothing is changed.\nExits with 6 when something does not fit.',
  args: PLAN_FILE,
  options: {
    ...PLAN_OPTIONS,
    exitCode: { flags: '--exit-code', help: 'exit with 11 where it fits and would change something' },
  },
  notes: `A plan file is YAML or JSON:
  version: 1
  experiment: demo
  defaults: {start: now, for: 8h}
  reservations:
    gent-poznan: {sites: [be-gent1, pl-poznan1], bandwidth: 1G}
    budapest: {sites: [hu-sztaki, pl-poznan1], bandwidth: 500M}

At most 64 changes are made together; what exists already as the file says does not count.
Each reservation has sites, bandwidth, start, and end or for, of its own or from defaults. Times are absolute, or start: now with for; each names its zone, as 09:00:00Z does behind a date, or the file does, once: tz: Europe/Brussels.
via and avoid (sites) and direct: true say what is asked of its route.
Editors know these keys from plan.schema.json, which is in the package: node_modules/slices-conn/dist/plan.schema.json, in a checkout dist/plan.schema.json.`,
  examples: [
    'slices-conn plan demo.yaml',
    'slices-conn plan demo.yaml --earliest',
    'slices-conn plan demo.yaml --exit-code --json',
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/** Says what `apply` would do. */
export async function run(given: Context, [path = '']: readonly string[], flags: Flags): Promise<Outcome> {
  const plan = await openPlan(given, path, flags);
  const { changes, isNeeded, how } = await compare(plan);
  const outcomes = await rehearse(changes, how);
  const fits = outcomes.every(({ failure }) => failure === undefined);
  const start = fits || given.output.json ? undefined : await earliestStart(changes, how);
  const isKnown = !isNeeded || how.canRehearse;
  await printPlan(plan, outcomes, { start, fits: isKnown ? fits : null });
  if (!fits) return 6;
  return flags.exitCode && isNeeded ? 11 : 0;
}
