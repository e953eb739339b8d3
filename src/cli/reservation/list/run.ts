import { shellWord } from '../../../contract/failure.ts';
import type { ListedReservation } from '../../../session/reservations/joined-list.ts';
import { withServices } from '../../advice.ts';
import type { ServiceFlags } from '../../global-options.ts';
import type { Invocation } from '../../invocation.ts';
import type { Printer } from '../../print/output.ts';
import { formatBandwidth } from '../../values.ts';

/** The flags of the command, as typed. */
export interface ListFlags {
  all?: boolean;
}

/** Lists the experiment's reservations: the service's list joined with the ledger. */
export async function list(
  invocation: Invocation,
  _args: readonly string[],
  { all }: ListFlags,
): Promise<void> {
  const { output } = invocation;
  const { reservations } = await invocation.session();
  const { items: found, hasList } = await reservations.list({ current: all !== true });
  const isOver = ({ state }: ListedReservation) => state === 'ended' || state === 'deleted';
  const shown = found.filter((item) => all === true || !isOver(item));
  if (!hasList) {
    output.notice('This service does not list reservations. The list shows what this machine asked for.');
  }
  const items = shown.map(({ entry: _entry, ...item }) => item);
  await output.result({ items }, (print) => {
    if (shown.length > 0) return table(print, shown);
    return all
      ? 'No reservations yet.\n'
      : 'No reservation is scheduled or active; --all shows those that ended or were deleted.\n';
  });
  for (const item of shown) if (item.state === 'unknown') output.notice(whatToDo(item, invocation.flags));
}

function table(print: Printer, items: readonly ListedReservation[]): string {
  return print.table(
    ['id', 'state', 'link', 'bandwidth', 'from', 'until'],
    items.map(({ id, state, reservation, requested }) => {
      const known = reservation ?? requested;
      return [
        id ?? '–',
        state,
        known ? `${known.site1} – ${known.site2}` : '–',
        known ? formatBandwidth(known.bandwidth) : '–',
        known ? (known.start_date ?? 'now') : '–',
        known?.end_date ?? '–',
      ];
    }),
  );
}

/** Explains an unknown outcome, with the command that settles it. */
function whatToDo({ id, requested, entry }: ListedReservation, flags: ServiceFlags): string {
  const asked = entry ? new Date(entry.askedAt).toISOString() : '';
  if (id !== null) {
    const shows = withServices(flags, `slices-conn show ${shellWord(id)}`);
    return `The service never answered the last request about ${id}, sent at ${asked}. To see its state: ${shows}`;
  }
  const link = requested ? `${requested.site1} – ${requested.site2}` : 'a link';
  const again =
    requested && entry ? ` To settle it: ${withServices(flags, reserveAgain(requested, entry.key))}` : '';
  return `${link}: the service never answered the request of ${asked}, so the link may be booked.${again}`;
}

function reserveAgain(requested: NonNullable<ListedReservation['requested']>, key: string): string {
  const { site1, site2, bandwidth, start_date, end_date } = requested;
  const start = start_date === null ? ['--start-now'] : ['--start', start_date];
  const words = ['--bandwidth', String(bandwidth), ...start, '--end', end_date, '--idempotency-key', key];
  return ['slices-conn', 'reserve', site1, site2, ...words].map(shellWord).join(' ');
}
