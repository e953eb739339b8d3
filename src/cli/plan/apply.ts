import { Failure, ownCommand } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { inOneText, Sentence, sentence } from '../../contract/said.ts';
import type { CommandDeclaration } from '../command.ts';
import { renamed } from '../command-line.ts';
import type { Context } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { ALLOW_UNSIGNED } from '../global-options.ts';
import { checkConfirmable, confirm } from '../questions.ts';
import { linkAndPeriod } from '../reservation/reservation-argument.ts';
import { apply, earliestStart, effectOf, NotApplied } from './applier.ts';
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

/** How often what exists is compared, where something else changes it at the same time. */
const ATTEMPTS = 3;

/** Makes what exists as the file says, all or none. */
export async function run(given: Context, [path = '']: readonly string[], flags: Flags): Promise<void> {
  const plan = await openPlan(given, path, flags);
  const { context } = plan;
  const confirmed = new Set<string>();
  for (let attempt = 1; ; attempt += 1) {
    const compared = await compare(plan);
    await confirmLosses(context, compared.changes, confirmed);
    try {
      return await printPlan(plan, await apply(compared.changes, compared.how));
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
  const [updates, deletions] = [
    losses.filter(({ action }) => action === 'update'),
    losses.filter(({ action }) => action === 'delete'),
  ];
  const times = await clock.times();
  const asked = async (
    verb: string,
    losing: typeof losses,
    about: string,
    unasked: string,
  ): Promise<void> => {
    if (flags.yes) return;
    output.prompt(`${about} (times in ${times.zone}):`);
    for (const { current, request } of losing) {
      output.prompt(`  ${linkAndPeriod({ reservation: current, requested: null }, times)}`);
      const requested = request && { ...request, name: undefined };
      if (requested) output.prompt(`    → ${linkAndPeriod({ reservation: null, requested }, times)}`);
    }
    const which = losing.length === 1 ? 'this reservation' : `these ${losing.length} reservations`;
    await confirm(context, `${verb} ${which}?`, { unasked, declined: 'Nothing was changed.' });
  };
  if (updates.length > 0 && terminal.ask)
    await asked('Update', updates, 'To be moved, or made shorter or narrower', '');
  if (deletions.length > 0) {
    const unasked = `--prune deletes ${deletions.map(({ name }) => name).join(', ')}, which was not confirmed.`;
    checkConfirmable(context, unasked);
    await asked('Delete', deletions, 'Not in the file, to be deleted', unasked);
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
