import { describedFeatures } from '../../client/features.ts';
import { Failure, undefinedIfGone } from '../../contract/failure.ts';
import type { OptionsOf, OptionTable } from '../../contract/flags.ts';
import { textsOf } from '../../contract/reservation.ts';
import type { ExperimentAccess } from '../../session/login/experiment-access.ts';
import { nameOf } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import { claimedExperimentExpiry } from '../../tokens/claimed.ts';
import { givenUpText } from '../../words/problems.ts';
import type { Context } from '../context.ts';
import type { ALLOW_UNSIGNED } from '../global-options.ts';
import { onServiceTime } from '../period.ts';
import { requestResult } from '../print/cards.ts';
import { folded } from '../print/folded.ts';
import { captionOf } from '../print/reservation-table.ts';
import { shortTime } from '../times.ts';
import type { Applying, ChangeOutcome, CommonStart } from './applier.ts';
import { type NamedReservation, type PlannedChange, plannedChanges } from './difference.ts';
import { type PlanContent, readPlan } from './plan-file.ts';
import { planSummary, planTable } from './plan-table.ts';

/** The flags of `plan` and `apply`. */
export const PLAN_OPTIONS = {
  prune: { flags: '--prune', help: "delete the experiment's other reservations that have a name" },
  earliest: {
    flags: '--earliest',
    help: 'start all new ones later, by the same time, as soon as all fit',
  },
  move: { flags: '--move', help: "move those that start later than the file says to the file's times" },
} as const satisfies OptionTable;
type ApplyFlags = OptionsOf<typeof PLAN_OPTIONS & typeof ALLOW_UNSIGNED>;

/** The argument of `plan` and `apply`. */
export const PLAN_FILE = { '<file>': 'a plan file in YAML or JSON; - for standard input' } as const;

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
export async function openPlan(given: Context, path: string, flags: ApplyFlags): Promise<Plan> {
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
export interface Compared {
  /** The change of each name. */
  changes: readonly PlannedChange[];
  /** Whether anything is to be done. */
  isNeeded: boolean;
  how: Applying;
}

/** Compares what exists with a file. */
export async function compare({ context, session, experiment, wanted, flags }: Plan): Promise<Compared> {
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
export function togetherFrom(start: CommonStart, text: (instant: number) => string): string {
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
export async function printPlan(
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
export function itemsOf(
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
