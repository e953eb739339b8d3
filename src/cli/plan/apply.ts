import { Failure, ownCommand } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { inOneText, Sentence, sentence } from '../../contract/said.ts';
import type { CommandDeclaration } from '../command.ts';
import { renamed } from '../command-line.ts';
import type { Context } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { ALLOW_UNSIGNED } from '../global-options.ts';
import { checkConfirmable, confirm, confirmIfAsked } from '../questions.ts';
import { linkAndPeriod } from '../reservation/reservation-argument.ts';
import { type ChangeOutcome, isLosing, NotApplied } from './applier.ts';
import {
  type Compared,
  compare,
  itemsOf,
  openPlan,
  PLAN_FILE,
  PLAN_OPTIONS,
  printPlan,
  togetherFrom,
} from './comparison.ts';
import type { PlannedChange } from './difference.ts';

/** `slices-conn apply FILE [--prune] [--earliest] [--move] [--allow-unsigned]`. */
export const command = {
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
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/** Makes what exists as the file says, all or none. */
export async function run(given: Context, [path = '']: readonly string[], flags: Flags): Promise<void> {
  const { context, ...acting } = await openPlan(given, path, flags);
  const confirmed = new Set<string>();
  for (let attempt = 1; ; attempt += 1) {
    const compared = await compare(acting, context);
    const { changes, needed, applier } = compared;
    await confirmLosses(context, needed, confirmed);
    try {
      const outcomes = needed.length === 0 ? [] : await applier.apply(needed);
      return await printPlan(context, acting, { changes, outcomes, others: compared.others });
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

/**
 * Asks before updates that shrink or move reservations, and before anything is deleted, once about each. Without a terminal an
 * update goes on, and a deletion needs `--yes`.
 *
 * @param confirmed the ids about which the answer was yes; added to here
 * @throws Declined; Failure `usage` without a terminal
 */
async function confirmLosses(
  context: Context,
  needed: readonly PlannedChange[],
  confirmed: Set<string>,
): Promise<void> {
  const { output, clock, flags, terminal } = context;
  const asked = needed.flatMap((change) =>
    change.action === 'create' || change.action === 'none' || confirmed.has(change.current.id)
      ? []
      : [change],
  );
  const updates = asked.filter((change) => change.action === 'update' && isLosing(change));
  const deletions = asked.filter(({ action }) => action === 'delete');
  const times = await clock.times();
  const shown = (losing: typeof asked, about: string): string => {
    if (!flags.yes) output.prompt(`${about} (times in ${times.zone}):`);
    for (const change of flags.yes ? [] : losing) {
      output.prompt(`  ${linkAndPeriod({ reservation: change.current, requested: null }, times)}`);
      if (change.action !== 'update') continue;
      const after = { reservation: null, requested: { ...change.request, name: undefined } };
      output.prompt(`    → ${linkAndPeriod(after, times)}`);
    }
    return losing.length === 1 ? 'this reservation' : `these ${losing.length} reservations`;
  };
  const declined = 'Nothing was changed.';
  if (updates.length > 0 && terminal.ask && !flags.yes) {
    await confirmIfAsked(context, `Update ${shown(updates, UPDATED)}?`, declined);
  }
  if (deletions.length > 0) {
    const unasked = `--prune deletes ${deletions.map(({ name }) => name).join(', ')}, which was not confirmed.`;
    checkConfirmable(context, unasked);
    await confirm(context, `Delete ${shown(deletions, DELETED)}?`, { unasked, declined });
  }
  for (const { current } of [...updates, ...deletions]) confirmed.add(current.id);
}

const UPDATED = 'To be moved, or made shorter or narrower';
const DELETED = 'Not in the file, to be deleted';

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
    return new Failure(code, says, { ...facts, why, items, fix: { allowUnsigned: true } });
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
        ? { earliest: true as const }
        : canRehearse
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

/** The command that shows what is free of the first link that has too little. */
function availabilityOf(outcomes: readonly ChangeOutcome[]): string {
  const refused = outcomes.flatMap(({ change, failure }) =>
    failure && change.action !== 'delete' ? [change.wanted] : [],
  );
  return ownCommand('availability', ...refused.slice(0, 1).flatMap(({ site1, site2 }) => [site1, site2]));
}
