import { Failure } from '../../../contract/failure.ts';
import type { Bookings } from '../../../session/bookings.ts';
import { EXIT_CODE_OF } from '../../exit-codes.ts';
import type { Invocation } from '../../invocation.ts';
import { reservationId } from '../../reservation-id.ts';

/** Deletes reservations, one after the other, after asking. */
export async function remove(invocation: Invocation, args: readonly string[]): Promise<void> {
  // Commander hands a variadic argument over as one list.
  const ids = [...new Set(args.flat().map(reservationId))];
  await confirmed(invocation, ids);
  const { bookings } = await invocation.session();
  const failures = await deleteEach(bookings, ids);
  if (failures.size > 0) throw summary(ids, failures);
  const items = ids.map((id) => ({ id, deleted: true }));
  await invocation.output.result({ items }, ({ paint }) =>
    ids.map((id) => `${paint.green('Deleted')} ${id}\n`).join(''),
  );
}

async function confirmed({ flags, confirm }: Invocation, ids: readonly string[]): Promise<void> {
  if (flags.yes) return;
  const answer = await confirm(`Delete ${ids.join(', ')}?`);
  if (answer) return;
  if (answer === false) throw new Failure('usage', 'Nothing was deleted.');
  throw new Failure('usage', 'Nobody is there to confirm the deletion.', {
    why: 'Without a terminal nothing is deleted unless --yes is given.',
    fix: `slices-conn delete --yes ${ids.join(' ')}`,
  });
}

async function deleteEach(bookings: Bookings, ids: readonly string[]): Promise<Map<string, Failure>> {
  const failures = new Map<string, Failure>();
  for (const id of ids) {
    try {
      await bookings.delete(id);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      failures.set(id, error);
    }
  }
  return failures;
}

/** One failure is told as it is; several that are alike keep their code, others are `partly_done`. */
function summary(ids: readonly string[], failures: ReadonlyMap<string, Failure>): Failure {
  const [first, ...rest] = failures.values();
  if (!first) throw new RangeError('a summary of no failures');
  if (ids.length === 1) return first;
  const why = [...failures].map(([id, { message }]) => `${id}: ${message}`).join(' ');
  const alike = rest.every(({ code }) => EXIT_CODE_OF[code] === EXIT_CODE_OF[first.code]);
  const deleted = ids.filter((id) => !failures.has(id));
  const message = `${failures.size} of ${ids.length} reservations were not deleted${deleted.length > 0 ? `; deleted: ${deleted.join(', ')}` : ''}.`;
  return alike && deleted.length === 0
    ? new Failure(first.code, message, { ...first.facts, why })
    : new Failure('partly_done', message, { why });
}
