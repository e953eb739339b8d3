import type { ProvenReservation } from '../../../client/proof.ts';
import { Failure } from '../../../contract/failure.ts';
import { MAX_REASON } from '../../../contract/parameters.ts';
import { formatBandwidth } from '../../bandwidth.ts';
import type { Invocation } from '../../invocation.ts';
import { reservationCard } from '../../print/reservation-card.ts';
import { escapeText } from '../../print/terminal-text.ts';
import { confirmed, deleteEach, summary } from './confirm.ts';

/** Deletes anybody's reservations as an administrator of the service, after telling whose they are. */
export async function release(
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
  throw new Failure('usage', 'An administrator says why a reservation is released.', {
    why: `--reason takes 1 to ${MAX_REASON} characters, which the service keeps.`,
    fix: "slices-conn delete ID --as-administrator --reason 'left behind by a job that died'",
  });
}

/** Whose it is, for the question. */
function described({ reservation }: ProvenReservation): string {
  const { id, site1, site2, bandwidth, end_date, created_by, experiment_id } = reservation;
  const link = `${site1} – ${site2}, ${formatBandwidth(bandwidth)} until ${end_date}`;
  return escapeText(`${id} (${link}), booked by ${created_by} for ${experiment_id}`);
}
