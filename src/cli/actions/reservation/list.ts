import { Failure } from '../../../contract/failure.ts';
import type { Reservation } from '../../../contract/reservation.ts';
import { formatBandwidth } from '../../bandwidth.ts';
import type { Invocation } from '../../invocation.ts';
import type { Printer } from '../../output.ts';
import { reservationState } from '../../reservation-card.ts';

/** The flags of the command, as typed. */
export interface ListFlags {
  all?: boolean;
}

/** Lists the experiment's reservations. */
export async function list(
  invocation: Invocation,
  _args: readonly string[],
  { all }: ListFlags,
): Promise<void> {
  const { connectivity } = await invocation.session();
  const found = await connectivity.list();
  if (!found) {
    throw new Failure('request_rejected', 'This service does not list reservations.', {
      why: 'It knows them by id only.',
      fix: 'slices-conn show ID',
    });
  }
  const { now } = invocation.times();
  const items = found
    .map((reservation) => ({ reservation, state: reservationState(reservation, now) }))
    .filter(({ state }) => all === true || state !== 'ended');
  const joined = items.map((item) => ({ ...item, source: 'service', requested: null }));
  await invocation.output.result({ items: joined }, (print) => {
    if (items.length > 0) return table(print, items);
    return found.length > 0 ? 'Every reservation has ended; --all shows them.\n' : 'No reservations yet.\n';
  });
}

function table(print: Printer, items: readonly { reservation: Reservation; state: string }[]): string {
  return print.table(
    ['id', 'state', 'link', 'bandwidth', 'from', 'until'],
    items.map(({ reservation, state }) => [
      reservation.id,
      state,
      `${reservation.site1} – ${reservation.site2}`,
      formatBandwidth(reservation.bandwidth),
      reservation.start_date,
      reservation.end_date,
    ]),
  );
}
