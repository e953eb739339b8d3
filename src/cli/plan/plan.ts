import { describedFeatures } from '../../client/features.ts';
import { Failure, ownCommand, undefinedIfGone } from '../../contract/failure.ts';
import type { OptionsOf, OptionTable } from '../../contract/flags.ts';
import { textsOf } from '../../contract/reservation.ts';
import { inOneText, Sentence, sentence } from '../../contract/said.ts';
import type { ExperimentAccess } from '../../session/login/experiment-access.ts';
import { nameOf } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import { claimedExperimentExpiry } from '../../tokens/claimed.ts';
import { givenUpText } from '../../words/problems.ts';
import type { CommandDeclaration, CommandFile } from '../command.ts';
import { renamed } from '../command-line.ts';
import type { Context, Outcome } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { ALLOW_UNSIGNED } from '../global-options.ts';
import { onServiceTime } from '../period.ts';
import { requestResult } from '../print/cards.ts';
import { folded } from '../print/folded.ts';
import { captionOf } from '../print/reservation-table.ts';
import { checkConfirmable, confirm } from '../questions.ts';
import { linkAndPeriod } from '../reservation/reservation-argument.ts';
import { shortTime } from '../times.ts';
import {
  type Applying,
  apply as applyAll,
  type ChangeOutcome,
  type CommonStart,
  earliestStart,
  effectOf,
  NotApplied,
  rehearse,
} from './applier.ts';
import { type NamedReservation, type PlannedChange, plannedChanges } from './difference.ts';
import { type PlanContent, readPlan } from './plan-file.ts';
import { planSummary, planTable } from './plan-table.ts';

/** The flags of `plan` and `apply`. */
const PLAN_OPTIONS = {
  prune: { flags: '--prune', help: "delete the experiment's other reservations that have a name" },
  earliest: {
    flags: '--earliest',
    help: 'start all new ones later, by the same time, as soon as all fit',
  },
  move: { flags: '--move', help: "move those that start later than the file says to the file's times" },
} as const satisfies OptionTable;

/** The argument of `plan` and `apply`. */
const PLAN_FILE = { '<file>': 'a plan file in YAML or JSON; - for standard input' } as const;

/** `slices-conn plan FILE [--prune] [--earliest] [--move] [--exit-code]`. */
const planCommand = {
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

/** `slices-conn apply FILE [--prune] [--earliest] [--move] [--allow-unsigned]`. */
const applyCommand = {
  about: [
    'Makes the reservations of a plan file, all or none. What is as the file says stays, so that a second run changes nothing; slices-conn plan --help shows such a file.',
    'What is later than the file says, as --earliest may have put it, stays without --move.',
    'On a terminal it asks before an update that shrinks or moves a reservation; before --prune deletes it always asks.',
  ].join('\n'),
  args: PLAN_FILE,
  options: { ...PLAN_OPTIONS, ...ALLOW_UNSIGNED },
  examples: [
    'slices-conn apply demo.yaml',
    'slices-conn apply demo.yaml --earliest',
    'slices-conn apply demo.yaml --prune --yes',
  ],
} as const satisfies CommandDeclaration;
type ApplyFlags = OptionsOf<typeof applyCommand.options>;

/** Says what `apply` would do. */
async function runPlan(
  given: Context,
  [path = '']: readonly string[],
  flags: OptionsOf<typeof planCommand.options>,
): Promise<Outcome> {
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

/** How often what exists is compared, where something else changes it at the same time. */
const ATTEMPTS = 3;

/** Makes what exists as the file says, all or none. */
async function runApply(given: Context, [path = '']: readonly string[], flags: ApplyFlags): Promise<void> {
  const plan = await openPlan(given, path, flags);
  const { context } = plan;
  const confirmed = new Set<string>();
  for (let attempt = 1; ; attempt += 1) {
    const compared = await compare(plan);
    await confirmLosses(context, compared.changes, confirmed);
    try {
      return await printPlan(plan, await applyAll(compared.changes, compared.how));
    } catch (error) {
      if (!(error instanceof NotApplied)) throw error;
      const { code, undone, left } = error;
      const isOutdated = undone === 0 && left.length === 0 && ['name_taken', 'not_found'].includes(code);
      // Names or reservations came or went after the list was read.
      if (attempt < ATTEMPTS && isOutdated) continue;
      throw await asTold(error, compared, context, path);
    }
  }
}

/**
 * Asks before updates that shrink or move reservations, and before anything is deleted, once about each. Without a terminal an
 * update goes on, and a deletion needs `--yes`.
 *
 * @param confirmed the ids about which the answer was yes; added to here
 * @throws Declined; Failure `usage` without a terminal
 */
async function confirmLosses(
  context: Context,
  changes: readonly PlannedChange[],
  confirmed: Set<string>,
): Promise<void> {
  const { output, clock, flags, terminal } = context;
  const losses = changes.flatMap((change) => {
    const isLoss = change.action === 'delete' || (change.action === 'update' && effectOf(change).loses);
    return isLoss && !confirmed.has(change.current.id) ? [change] : [];
  });
  const deleted = losses.flatMap(({ action, name }) => (action === 'delete' ? [name] : []));
  const unasked = `--prune deletes ${deleted.join(', ')}, which was not confirmed.`;
  if (deleted.length > 0) checkConfirmable(context, unasked);
  if (losses.length > 0 && terminal.ask && !flags.yes) {
    const times = await clock.times();
    output.prompt(`To be deleted or moved, or made shorter or narrower (times in ${times.zone}):`);
    for (const { current, request } of losses) {
      output.prompt(`  ${linkAndPeriod({ reservation: current, requested: null }, times)}`);
      const requested = request && { ...request, name: undefined };
      const after = requested ? linkAndPeriod({ reservation: null, requested }, times) : 'not in the file';
      output.prompt(`    → ${after}`);
    }
    const which = losses.length === 1 ? 'this change' : `these ${losses.length} changes`;
    await confirm(context, `Make ${which}?`, { unasked, declined: 'Nothing was changed.' });
  }
  for (const { current } of losses) confirmed.add(current.id);
}

/** A failure of `apply`, with what it means for each change (cli/README.md, "Output", `error.items`). */
async function asTold(
  { outcomes, undone, left, code, says, facts }: NotApplied,
  { changes, how }: Compared,
  { typed }: Context,
  path: string,
): Promise<Failure> {
  const items = itemsOf(outcomes, { isApplied: false });
  const refused = outcomes.flatMap(({ change, failure }) => (failure ? [{ change, failure }] : []));
  const told = refused.map(
    ({ change, failure }) => sentence`${change.name}: ${inOneText(failure.says, failure.facts.why) ?? ''}`,
  );
  if (left.length > 0) {
    return new Failure('partly_done', told[0] ?? says, {
      ...facts,
      why: `What was made before it could not all be deleted again: ${left.join(', ')}.`,
      maybeDone: true,
      retryable: false,
      items,
      fix: ownCommand('delete', ...left),
    });
  }
  const before =
    undone === 0
      ? ''
      : `${undone} ${undone === 1 ? 'that was made was' : 'that were made were'} deleted again.`;
  if (EXIT_CODE_OF[code] !== 6) {
    const fix = code === 'unsigned' ? { allowUnsigned: true as const } : facts.fix;
    return new Failure(code, says, { ...facts, why: inOneText(facts.why, before), items, fix });
  }
  const count = told.length === 1 ? '1 of the changes does' : `${told.length} of the changes do`;
  // Alternatives of one reservation would not be all or none.
  const { alternatives: _other, fix: _fix, why: _why, ...rest } = facts;
  const start = path === '-' ? undefined : await earliestStart(changes, how);
  const later = start === undefined ? [] : [new Sentence((times) => togetherFrom(start, times.instant))];
  const { site1 = '', site2 = '' } = refused[0]?.change.request ?? {};
  const fix =
    start === 'never'
      ? ownCommand('availability', site1, site2)
      : typeof start === 'number'
        ? { earliest: true as const }
        : how.canRehearse
          ? renamed(typed, new Map([['apply', 'plan']]))
          : undefined;
  return new Failure(code, `${count} not fit; nothing was changed.`, {
    ...rest,
    why: inOneText(before),
    lines: [...told, ...later],
    items,
    ...(path === '-' ? {} : { fix }),
  });
}

/** A plan file that was read, and the experiment that it is for. */
interface Plan {
  /** By the service's clock; see {@link onServiceTime}. */
  context: Context;
  session: Session;
  experiment: ExperimentAccess;
  wanted: PlanContent;
  flags: ApplyFlags;
}

/**
 * Reads a plan file, and opens its experiment, where it names one. That goes before the environment and the profile; a flag that
 * names another is a mistake.
 *
 * @throws Failure `usage` where flag and file name two
 */
async function openPlan(given: Context, path: string, flags: ApplyFlags): Promise<Plan> {
  const bytes = await given.files.read(path);
  const read = async ({ clock: { times } }: Context): Promise<PlanContent> =>
    readPlan(bytes, path === '-' ? '<stdin>' : path, await times());
  const parsed = await read(given);
  const session = await given.session();
  const context = await onServiceTime(given, session);
  const wanted = context === given ? parsed : await read(context);
  const { experiment } = wanted;
  if (experiment !== undefined && given.flags.experiment === undefined) session.actIn(experiment);
  const access = await session.signedIn();
  const { id, name = id } = access;
  if (experiment === undefined || experiment === id || experiment === name)
    return { context, session, experiment: access, wanted, flags };
  throw new Failure('usage', `The file is for the experiment ${experiment}, and not for ${name}.`, {
    why: 'Its reservations would be made in another experiment than the file says.',
    fix: { experiment },
  });
}

/** How what exists differs from a file. */
interface Compared {
  /** The change of each name. */
  changes: readonly PlannedChange[];
  /** Whether anything is to be done. */
  isNeeded: boolean;
  how: Applying;
}

/** Compares what exists with a file. */
async function compare({ context, session, experiment, wanted, flags }: Plan): Promise<Compared> {
  const { now } = context.clock;
  const { earliest = false, allowUnsigned = false } = flags;
  const { existing, pending } = await namedIn(session, wanted, now());
  const changes = plannedChanges(wanted.reservations, existing, { ...flags, now: now() });
  const isNeeded = changes.some(({ action }) => action !== 'none');
  const expiry = claimedExperimentExpiry(experiment.token.reveal());
  const asked = isNeeded ? await describedFeatures(session.connectivity.features) : undefined;
  const { batch = false, dryRun = false } = asked ?? {};
  const can = { hasBatches: batch, canRehearse: batch || dryRun };
  const how = { session, now, expiry, earliest, ...can, allowUnsigned, pending };
  return { changes, isNeeded, how };
}

/**
 * The reservations with a name: those that have not ended, and past ones too where the file is about the past. Of names
 * under which a request was sent whose answer is not known, its key. A service that keeps no texts leaves them to the ledger.
 *
 * @throws Failure `unavailable` where the service could not be asked for one of them
 */
async function namedIn(
  session: Session,
  { reservations }: PlanContent,
  now: number,
): Promise<{ existing: NamedReservation[]; pending: Map<string, string> }> {
  const isPast = reservations.some(({ end }) => end <= now);
  const wanted = new Set(reservations.map(({ name }) => name));
  const unasked: string[] = [];
  const { items, unasked: failures } = await session.reservations.list({ current: !isPast });
  const existing: NamedReservation[] = [];
  const pending = new Map<string, string>();
  for (const item of items) {
    const name = nameOf(item);
    if (name === undefined || item.state === 'deleted') continue;
    const failure = item.id === null ? undefined : failures.get(item.id);
    if (failure && wanted.has(name)) unasked.push(`${name}: ${failure.message}`);
    const texts = textsOf(item.entry?.requested ?? {});
    if (item.state !== 'unknown' && item.reservation) {
      existing.push({ name, reservation: { ...texts, ...item.reservation } });
    } else if (item.id !== null) {
      const found = await session.reservations.show(item.id, { allowUnsigned: true }).catch(undefinedIfGone);
      if (found) existing.push({ name, reservation: found.reservation });
    } else if (item.entry) pending.set(name, item.entry.key);
  }
  if (unasked.length > 0) {
    throw new Failure('unavailable', 'The service could not be asked for what the file names.', {
      lines: unasked,
      retryable: true,
    });
  }
  return { existing, pending };
}

/** A sentence that says what `--earliest` would do. @param start see {@link earliestStart} */
function togetherFrom(start: CommonStart, text: (instant: number) => string): string {
  if (start === 'never') {
    return 'They do not all fit together at a later time either: ask for less, or for different times.';
  }
  if (typeof start === 'number') return `All fit together from ${text(start)} (--earliest).`;
  return givenUpText(start.notBefore === undefined ? undefined : text(start.notBefore));
}

/**
 * Prints the result of a plan that was made or applied.
 *
 * @param made of `plan`: `fits`: whether all fits; null where the service can't be asked; `start`: see {@link earliestStart}
 */
async function printPlan(
  { context: { output, clock }, experiment }: Plan,
  outcomes: readonly ChangeOutcome[],
  { fits, start }: { fits?: boolean | null; start?: CommonStart | undefined } = {},
): Promise<void> {
  const times = await clock.times();
  const told = { times, isApplied: fits === undefined, isKnown: fits !== null };
  const items = itemsOf(outcomes, told);
  await output.result({ items, applies: fits === undefined ? true : fits }, (printer) => {
    const caption = captionOf(printer, { experiments: [experiment], times, known: [] });
    const table = planTable(printer, outcomes, told);
    const sentences = [
      planSummary(outcomes, told.isApplied),
      ...(fits === null ? ["This service can't be asked whether they fit: apply tells."] : []),
      ...(start === undefined ? [] : [togetherFrom(start, (at) => shortTime(at, times, true))]),
    ];
    const lines = printer.isTerminal ? sentences.flatMap((text) => folded(text, output.columns)) : sentences;
    return (table && caption + table) + lines.map((line) => `${line}\n`).join('');
  });
}

/** The items of the JSON result (cli/README.md, "Output"): in the order of the file, then what is deleted. */
function itemsOf(
  outcomes: readonly ChangeOutcome[],
  { isApplied, isKnown = true }: { isApplied: boolean; isKnown?: boolean },
): object[] {
  return outcomes.map(({ change, reservation, failure }) => {
    const { name, action, current, request } = change;
    return {
      name,
      action,
      fits: isKnown || action === 'none' ? failure === undefined : null,
      kept: 'keptAt' in change && change.keptAt !== undefined,
      reservation: isApplied && action !== 'none' ? reservation : current,
      requested: request && requestResult(request),
      error: failure ? errorOf(failure) : null,
    };
  });
}

function errorOf({ code, message, facts }: Failure): object {
  const { why = null, details = [], limits = [], free = [], alternatives = [] } = facts;
  return { code, message, why, details, limits, free, alternatives };
}

/** Says what `apply` would do. */
export const plan: CommandFile = { command: planCommand, run: runPlan };
/** Makes what exists as a plan file says, all or none. */
export const apply: CommandFile = { command: applyCommand, run: runApply };
