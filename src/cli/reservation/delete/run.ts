import { Failure } from '../../../contract/failure.ts';
import { shellWord } from '../../../contract/shell-word.ts';
import type { Invocation } from '../../invocation.ts';
import { reservationId } from '../../reservation-id.ts';
import { confirmed, deleteEach, summary } from './confirm.ts';

/** The flags of the command, as typed. */
export interface DeleteFlags {
  asAdministrator?: boolean;
  reason?: string;
}

/** Deletes reservations, one after the other, after asking. */
export async function remove(
  invocation: Invocation,
  args: readonly string[],
  flags: DeleteFlags,
): Promise<void> {
  // Commander hands a variadic argument over as one list.
  const ids = [...new Set(args.flat().map(reservationId))];
  if (flags.asAdministrator) {
    const { release } = await import('./release.ts');
    return release(invocation, ids, flags.reason);
  }
  if (flags.reason !== undefined) {
    throw new Failure('usage', '--reason is for administrators.', {
      why: 'Nobody asks why you delete a reservation of your own experiment.',
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
    await session.bookings.delete(id);
  });
  if (failures.size > 0) throw summary(ids, failures);
  const items = ids.map((id) => ({ id, deleted: true }));
  await invocation.output.result({ items }, ({ paint }) =>
    ids.map((id) => `${paint.green('Deleted')} ${id}\n`).join(''),
  );
}
