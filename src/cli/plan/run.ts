import { describedFeatures } from '../../client/features.ts';
import { withinTime } from '../../contract/bounded-reading.ts';
import { Failure, ownCommand, undefinedIfGone } from '../../contract/failure.ts';
import { textsOf } from '../../contract/reservation-texts.ts';
import { inOneText, Sentence, sentence } from '../../contract/said.ts';
import type { ExperimentAccess } from '../../session/login/experiment-access.ts';
import { nameOf } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import { claimedExperimentExpiry } from '../../tokens/claimed.ts';
import { givenUpText } from '../../words/problems.ts';
import type { Context, Outcome } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { onServiceTime } from '../period.ts';
import { requestResult } from '../print/cards.ts';
import { folded } from '../print/folded.ts';
import { captionOf } from '../print/reservation-table.ts';
import { checkConfirmable, confirm, confirmIfAsked } from '../questions.ts';
import { linkAndPeriod } from '../reservation/reservation-argument.ts';
import { shortTime } from '../times.ts';
import {
  type Applier,
  type ChangeOutcome,
  type CommonStart,
  createApplier,
  isLosing,
  NotApplied,
  requestedBy,
} from './applier.ts';
import { type NamedReservation, type PlannedChange, plannedChanges } from './difference.ts';
import { type PlanContent, readPlan } from './plan-file.ts';
import { appliedSummary, planSummary, planTable } from './plan-table.ts';

/** The flags of `apply`, as typed. */
export interface ApplyFlags {
  prune?: boolean;
  earliest?: boolean;
  move?: boolean;
  allowUnsigned?: boolean;
}

/** The flags of `plan`, as typed. */
export interface PlanFlags extends ApplyFlags {
  exitCode?: boolean;
}

/** Says what `apply` would do. */
export async function plan(
  given: Context,
  [path = '']: readonly string[],
  flags: PlanFlags,
): Promise<Outcome> {
  const { output } = given;
  const { context, ...acting } = await open(given, path, flags);
  const { changes, needed, applier, others, canRehearse } = await compare(acting, context);
  const outcomes = needed.length === 0 ? [] : await applier.rehearse(needed);
  const fits = outcomes.every(({ failure }) => failure === undefined);
  const start = fits || output.json ? undefined : await applier.earliestStart(needed);
  const isKnown = needed.length === 0 || canRehearse;
  await print(context, acting, { changes, outcomes, others, start, fits: isKnown ? fits : null });
  if (!fits) return 6;
  return flags.exitCode && needed.length > 0 ? 11 : 0;
}

/** Makes what exists as the file says, all or none. */
export async function apply(
  given: Context,
  [path = '']: readonly string[],
  flags: ApplyFlags,
): Promise<void> {
  const { context, ...acting } = await open(given, path, flags);
  const confirmed = new Set<string>();
  for (let attempt = 1; ; attempt += 1) {
    const compared = await compare(acting, context);
    const { changes, needed, applier } = compared;
    await confirmUpdates(context, needed, confirmed);
    await confirmDeletions(context, needed, confirmed);
    try {
      const outcomes = needed.length === 0 ? [] : await applier.apply(needed);
      return await print(context, acting, { changes, outcomes, others: compared.others });
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

/** How often what exists is compared, where something else changes it at the same time. */
const ATTEMPTS = 3;

/** A plan file that was read, and the experiment that it is for. */
interface Acting {
  session: Session;
  experiment: ExperimentAccess;
  wanted: PlanContent;
  flags: ApplyFlags;
}

/** How long a service may take to tell its sites where the file has errors already, in milliseconds. */
const SOON = 1500;

/** @returns the context too, by the service's clock; see {@link onServiceTime} */
async function open(given: Context, path: string, flags: ApplyFlags): Promise<Acting & { context: Context }> {
  const bytes = await given.files.read(path);
  const read = async ({ clock: { times } }: Context, sites?: readonly string[]): Promise<PlanContent> =>
    readPlan(bytes, path === '-' ? '<stdin>' : path, await times(), sites);
  const parsed = await read(given).catch(async (error: unknown) => {
    // Told all at once: also the sites that there are not, where the service tells them soon.
    await read(
      given,
      await withinTime(SOON, async () => (await given.session()).connectivity.sites()).catch(() => undefined),
    );
    throw error;
  });
  const session = await given.session();
  const context = await onServiceTime(given, session);
  const wanted = context === given ? parsed : await read(context);
  const experiment = await actIn(session, wanted, context.flags.experiment);
  return { context, session, experiment, wanted, flags };
}

/** How what exists differs from a file. */
interface Compared {
  /** All names. */
  changes: readonly PlannedChange[];
  /** Those about which something is to be done. */
  needed: readonly PlannedChange[];
  applier: Applier;
  /** How many named reservations of the experiment the file does not have. */
  others: number;
  /** Whether `plan` can say what would fit. */
  canRehearse: boolean;
}

async function compare(
  { session, experiment, wanted, flags }: Acting,
  { clock: { now } }: Context,
): Promise<Compared> {
  const { earliest = false, allowUnsigned = false } = flags;
  const { existing, pending } = await namedIn(session, wanted, now());
  const changes = plannedChanges(wanted.reservations, existing, { ...flags, now: now() });
  const needed = changes.filter(({ action }) => action !== 'none');
  const expiry = claimedExperimentExpiry(experiment.token.reveal());
  const asked = needed.length > 0 ? await describedFeatures(session.connectivity.features) : undefined;
  const { batch = false, dryRun = false } = asked ?? {};
  const canRehearse = batch || dryRun;
  const how = { earliest, hasBatches: batch, canRehearse, allowUnsigned, pending, all: changes };
  const applier = createApplier({ session, now, expiry, ...how });
  const names = new Set(wanted.reservations.map(({ name }) => name));
  const others = existing.filter(({ name }) => !names.has(name)).length;
  return { changes, needed, applier, canRehearse, others };
}

/**
 * The experiment of the file, where it names one. It goes before the environment and the profile; a flag that names
 * another is a mistake.
 *
 * @throws Failure `usage` where flag and file name two
 */
async function actIn(
  session: Session,
  { experiment }: PlanContent,
  flag: string | undefined,
): Promise<ExperimentAccess> {
  if (experiment !== undefined && flag === undefined) session.actIn(experiment);
  const access = await session.signedIn();
  if (experiment === undefined || experiment === access.id || experiment === access.name) return access;
  throw new Failure(
    'usage',
    `The file is for the experiment ${experiment}, and not for ${access.name ?? access.id}.`,
    {
      why: 'Its reservations would be made in another experiment than the file says.',
      fix: `--experiment ${experiment}`,
    },
  );
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

/**
 * Asks before anything is deleted, once about each.
 *
 * @param confirmed the ids about which the answer was yes; added to here
 * @throws Declined; Failure `usage` without a terminal
 */
async function confirmDeletions(
  context: Context,
  needed: readonly PlannedChange[],
  confirmed: Set<string>,
): Promise<void> {
  const asked = needed.flatMap((change) =>
    change.action === 'delete' && !confirmed.has(change.current.id) ? [change] : [],
  );
  if (asked.length === 0) return;
  const names = asked.map(({ name }) => name).join(', ');
  const unasked = `--prune deletes ${names}, which was not confirmed.`;
  checkConfirmable(context, unasked);
  if (!context.flags.yes) {
    const { output } = context;
    const times = await context.clock.times();
    output.prompt(`Not in the file, to be deleted (times in ${times.zone}):`);
    for (const { current } of asked) {
      output.prompt(`  ${linkAndPeriod({ reservation: current, requested: null }, times)}`);
    }
  }
  const what = asked.length === 1 ? 'this reservation' : `these ${asked.length} reservations`;
  await confirm(context, `Delete ${what}?`, { unasked, declined: 'Nothing was changed.' });
  for (const { current } of asked) confirmed.add(current.id);
}

/**
 * Asks a person before updates that shrink or move reservations, once about each. Without a terminal, and with `--yes`, it goes on.
 *
 * @param confirmed as of {@link confirmDeletions}
 * @throws Declined
 */
async function confirmUpdates(
  context: Context,
  needed: readonly PlannedChange[],
  confirmed: Set<string>,
): Promise<void> {
  const asked = needed.flatMap((change) =>
    change.action === 'update' && isLosing(change) && !confirmed.has(change.current.id) ? [change] : [],
  );
  if (asked.length === 0 || !context.terminal.ask || context.flags.yes) return;
  const { output } = context;
  const times = await context.clock.times();
  output.prompt(`To be moved, or made shorter or narrower (times in ${times.zone}):`);
  for (const { current, request } of asked) {
    const after = { reservation: null, requested: { ...request, name: undefined } };
    output.prompt(`  ${linkAndPeriod({ reservation: current, requested: null }, times)}`);
    output.prompt(`    → ${linkAndPeriod(after, times)}`);
  }
  const what = asked.length === 1 ? 'this reservation' : `these ${asked.length} reservations`;
  await confirmIfAsked(context, `Update ${what}?`, 'Nothing was changed.');
  for (const { current } of asked) confirmed.add(current.id);
}

/** A failure of `apply`, with what it means for each change (cli/README.md, "Output", `error.items`). */
async function asTold(
  failed: NotApplied,
  { changes, needed, applier, canRehearse }: Compared,
  { typed }: Context,
  path: string,
): Promise<Failure> {
  const { outcomes, undone, left, code, says, facts } = failed;
  const items = itemsOf(changes, outcomes, { isApplied: false });
  const told = outcomes.flatMap(({ change, failure }) =>
    failure ? [sentence`${change.name}: ${inOneText(failure.says, failure.facts.why) ?? ''}`] : [],
  );
  // What failed may have been made itself, such as without a signature.
  const isOwn = undone > outcomes.findIndex(({ failure }) => failure !== undefined);
  const [which, were] = undone === 1 ? ['The one', 'was'] : [`The ${undone}`, 'were'];
  const made = isOwn ? `that ${were} made` : 'made before it';
  const before = undone > 0 ? `${which} ${made} ${were} deleted again.` : '';
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
  if (EXIT_CODE_OF[code] !== 6) {
    const why = inOneText(facts.why, before);
    if (code !== 'unsigned') return new Failure(code, says, { ...facts, why, items });
    return new Failure(code, says, { ...facts, why, items, fix: ownCommand(...typed, '--allow-unsigned') });
  }
  const count = told.length === 1 ? '1 of the changes does' : `${told.length} of the changes do`;
  // Alternatives of one reservation would not be all or none.
  const { alternatives: _other, fix: _fix, why: _why, ...rest } = facts;
  const start = path === '-' ? undefined : await applier.earliestStart(needed);
  const later = start === undefined ? [] : [new Sentence((times) => togetherFrom(start, times.instant))];
  const fix =
    start === 'never'
      ? availabilityOf(outcomes)
      : typeof start === 'number'
        ? ownCommand(...typed, '--earliest')
        : canRehearse
          ? ownCommand(...typed.map((word) => (word === 'apply' ? 'plan' : word)))
          : undefined;
  return new Failure(code, `${count} not fit; nothing was changed.`, {
    ...rest,
    why: inOneText(before),
    lines: [...told, ...later],
    items,
    ...(path === '-' ? {} : { fix }),
  });
}

/** A sentence that says what `--earliest` would do. @param start see `Applier.earliestStart` */
function togetherFrom(start: CommonStart, text: (instant: number) => string): string {
  if (start === 'never') {
    return 'They do not all fit together at a later time either: ask for less, or for different times.';
  }
  if (typeof start === 'number') return `All fit together from ${text(start)} (--earliest).`;
  return givenUpText(start.notBefore === undefined ? undefined : text(start.notBefore));
}

/** The command that shows what is free of the first link that has too little. */
function availabilityOf(outcomes: readonly ChangeOutcome[]): string {
  const refused = outcomes.flatMap(({ change, failure }) =>
    failure && change.action !== 'delete' ? [change.wanted] : [],
  );
  return ownCommand('availability', ...refused.slice(0, 1).flatMap(({ site1, site2 }) => [site1, site2]));
}

/** The result of a command. */
interface Result {
  changes: readonly PlannedChange[];
  outcomes: readonly ChangeOutcome[];
  /** See {@link Compared}. */
  others: number;
  /** Of `plan`: whether all fits; null where the service can't be asked. Undefined: it was applied. */
  fits?: boolean | null;
  /** Of `plan`: see `Applier.earliestStart`. */
  start?: CommonStart;
}

async function print(
  { output, clock: { times } }: Context,
  { experiment }: Acting,
  { changes, outcomes, others, fits, start }: Result,
): Promise<void> {
  const context = await times();
  const isApplied = fits === undefined;
  const items = itemsOf(changes, outcomes, { isApplied, isKnown: fits !== null });
  await output.result({ items, applies: fits === undefined ? true : fits }, (printer) => {
    const outcomeOf = new Map(outcomes.map((outcome) => [outcome.change, outcome]));
    const rows = changes.flatMap((change): ChangeOutcome[] => {
      const isKept = change.action === 'none' && change.keptAt !== undefined;
      return [
        outcomeOf.get(change) ?? (isKept ? { change, reservation: null, failure: undefined } : []),
      ].flat();
    });
    const caption =
      rows.length > 0 ? captionOf(printer, { experiments: [experiment], times: context, known: [] }) : '';
    const told = { times: context, isApplied, isKnown: fits !== null };
    const table = planTable(printer, rows, { ...told, columns: output.columns });
    const kept = rows.length - outcomes.length;
    const untouched = { unchanged: changes.length - rows.length, kept, others };
    const summary = (isApplied ? appliedSummary : planSummary)(outcomes, untouched);
    const sentences = [
      summary,
      ...(fits === null ? ["This service can't be asked whether they fit: apply tells."] : []),
      ...(start === undefined ? [] : [togetherFrom(start, (at) => shortTime(at, context, true))]),
    ];
    const lines = printer.isTerminal ? sentences.flatMap((text) => folded(text, output.columns)) : sentences;
    return caption + table + lines.map((line) => `${line}\n`).join('');
  });
}

/** The items of the JSON result (cli/README.md, "Output"): in the order of the file, then what is deleted. */
function itemsOf(
  changes: readonly PlannedChange[],
  outcomes: readonly ChangeOutcome[],
  { isApplied, isKnown = true }: { isApplied: boolean; isKnown?: boolean },
): object[] {
  const outcomeOf = new Map(outcomes.map((outcome) => [outcome.change, outcome]));
  return changes.map((change) => {
    const { name, action } = change;
    const { failure, reservation = null } = outcomeOf.get(change) ?? {};
    const current = change.action === 'create' ? null : change.current;
    const isDone = isApplied && action !== 'none';
    const requested = requestedBy(change);
    return {
      name,
      action,
      fits: isKnown || action === 'none' ? failure === undefined : null,
      kept: 'keptAt' in change && change.keptAt !== undefined,
      reservation: isDone ? reservation : current,
      requested: requested && requestResult(requested),
      error: failure ? errorOf(failure) : null,
    };
  });
}

function errorOf({ code, message, facts }: Failure): object {
  const { why = null, details = [], limits = [], free = [], alternatives = [] } = facts;
  return { code, message, why, details, limits, free, alternatives };
}
