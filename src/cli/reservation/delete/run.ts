import type { ProvenReservation } from '../../../client/proof.ts';
import { Failure, type FailureFacts, shellWord } from '../../../contract/failure.ts';
import { MAX_REASON } from '../../../contract/routes.ts';
import { EXIT_CODE_OF } from '../../exit-codes.ts';
import type { Invocation } from '../../invocation.ts';
import { reservationCard } from '../../print/cards.ts';
import { escapeText } from '../../print/output.ts';
import { confirm } from '../../questions.ts';
import { formatBandwidth, reservationId } from '../../values.ts';

/** The flags of the command, as typed. */
export interface DeleteFlags {
  asAdministrator?: boolean;
  reason?: string;
}

/** Deletes reservations, one after the other, after asking. */
export async function deleteReservations(
  invocation: Invocation,
  args: readonly string[],
  flags: DeleteFlags,
): Promise<void> {
  // Commander hands a variadic argument over as one list.
  const ids = [...new Set(args.flat().map(reservationId))];
  if (flags.asAdministrator) {
    return releaseEach(invocation, ids, flags.reason);
  }
  if (flags.reason !== undefined) {
    throw new Failure('usage', '--reason is for administrators.', {
      why: 'Deleting a reservation of your own experiment needs no reason.',
      fix: ['slices-conn', 'delete', ...ids].map(shellWord).join(' '),
    });
  }
  await confirmed(invocation, {
    question: `Delete ${ids.join(', ')}?`,
    command: ['delete', '--yes', ...ids],
  });
  const session = await invocation.session();
  const failures = await deleteEach(ids, async (id) => {
    await session.actFor(id);
    await session.reservations.delete(id);
  });
  if (failures.size > 0) throw summary(ids, failures);
  const items = ids.map((id) => ({ id, deleted: true }));
  await invocation.output.result({ items }, ({ paint }) =>
    ids.map((id) => `${paint.green('Deleted')} ${id}\n`).join(''),
  );
}

/** Deletes reservations of any experiment as an administrator; the question names their users. */
async function releaseEach(
  invocation: Invocation,
  ids: readonly string[],
  given: string | undefined,
): Promise<void> {
  const reason = checkedReason(given);
  const { administration } = await invocation.session();
  const found = new Map<string, ProvenReservation>();
  const unread = await deleteEach(ids, async (id) => void found.set(id, await administration.show(id)));
  if (unread.size > 0) throw summary(ids, unread, () => false);
  await confirmed(invocation, {
    question: `Release ${[...found.values()].map(described).join(', and ')}?`,
    command: ['delete', '--yes', '--as-administrator', '--reason', reason, ...ids],
  });
  const failures = await deleteEach(ids, (id) => administration.release(id, reason));
  if (failures.size > 0) throw summary(ids, failures);
  const items = [...found].map(([id, { reservation }]) => ({ id, deleted: true, reason, reservation }));
  await invocation.output.result({ items }, (print) =>
    [...found.values()]
      .map((proven) => {
        const { reservation } = proven;
        const card = reservationCard(print, print.paint.green('Released'), proven, {
          times: invocation.times(),
        });
        return `${card}  ${escapeText(`booked by ${reservation.created_by}; reason: ${reason}`)}\n`;
      })
      .join(''),
  );
}

function checkedReason(reason = ''): string {
  const text = reason.trim();
  if (text !== '' && [...text].length <= MAX_REASON) return text;
  throw new Failure('usage', 'A release needs a reason.', {
    why: `--reason takes 1 to ${MAX_REASON} characters, which the service keeps.`,
    fix: "slices-conn delete ID --as-administrator --reason 'left behind by a job that died'",
  });
}

/** A reservation and its user, for the question. */
function described({ reservation }: ProvenReservation): string {
  const { id, site1, site2, bandwidth, end_date, created_by, experiment_id } = reservation;
  const link = `${site1} – ${site2}, ${formatBandwidth(bandwidth)} until ${end_date}`;
  return escapeText(`${id} (${link}), booked by ${created_by} for ${experiment_id}`);
}

/** Asks before anything is deleted; see {@link confirm}. @param command the same with `--yes` */
async function confirmed(
  invocation: Invocation,
  { question, command }: { question: string; command: readonly string[] },
): Promise<void> {
  await confirm(invocation, question, {
    declined: 'Nothing was deleted.',
    unasked: {
      message: 'The deletion was not confirmed.',
      why: 'Without a terminal, a deletion needs --yes.',
      command,
    },
  });
}

/** Does the work for each reservation, one after the other. @returns the failures, by id */
async function deleteEach(
  ids: readonly string[],
  work: (id: string) => Promise<void>,
): Promise<Map<string, Failure>> {
  const failures = new Map<string, Failure>();
  for (const id of ids) {
    try {
      await work(id);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      failures.set(id, error);
    }
  }
  return failures;
}

/**
 * One failure for several deletions. The failure of a single deletion stays as it is. When all have failed with the same
 * exit code, the code is that of the first; otherwise it is `partly_done`.
 *
 * @param deletes whether the reservation with this id was deleted
 */
export function summary(
  ids: readonly string[],
  failures: ReadonlyMap<string, Failure>,
  deletes = (id: string): boolean => !failures.has(id),
): Failure {
  const [first, ...rest] = failures.values();
  if (!first) throw new RangeError('A summary needs a failure.');
  if (ids.length === 1) return first;
  const why = [...failures].map(([id, { message }]) => `${id}: ${message}`).join(' ');
  const alike = rest.every(({ code }) => EXIT_CODE_OF[code] === EXIT_CODE_OF[first.code]);
  const deleted = ids.filter(deletes);
  const maybeDone = [...failures.values()].some(({ facts }) => facts.maybeDone);
  const facts: FailureFacts = { why, ...(maybeDone ? { maybeDone, retryable: false } : {}) };
  const message = `${ids.length - deleted.length} of ${ids.length} reservations were not deleted${deleted.length > 0 ? `; deleted: ${deleted.join(', ')}` : ''}.`;
  return alike && deleted.length === 0
    ? new Failure(first.code, message, { ...first.facts, ...facts })
    : new Failure('partly_done', message, facts);
}
