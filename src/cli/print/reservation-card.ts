import type { ProvenReservation } from '../../client/proof.ts';
import { parseInstant } from '../../contract/instants.ts';
import { type Reservation, type ReservationState, stateAt } from '../../contract/reservation.ts';
import { formatBandwidth } from '../bandwidth.ts';
import { formatTime, shownZone, type TimeContext } from '../times.ts';
import type { CardLine, Printer } from './output.ts';
import { escapeText } from './terminal-text.ts';

/** The shape that `--json` gives a reservation (CLI.md, "Output"). */
export function reservationResult({ reservation, verified, token, claims }: ProvenReservation): object {
  return { reservation, verified, token, claims, source: 'service' };
}

/** A reservation's state at an instant. */
export function reservationState(reservation: Reservation, now: number): ReservationState {
  return stateAt(now, periodOf(reservation));
}

/** A reservation's period in milliseconds. */
export function periodOf(reservation: Reservation): { start: number; end: number } {
  return {
    start: parseInstant(reservation.start_date, 'utc-if-absent') ?? 0,
    end: parseInstant(reservation.end_date, 'utc-if-absent') ?? 0,
  };
}

/**
 * A reservation for people: what was booked, its four tags, and whether it is proven.
 *
 * @param verb what happened, such as "Reserved"
 */
export function reservationCard(
  print: Printer,
  verb: string,
  proven: ProvenReservation,
  context: { times: TimeContext; experimentName?: string },
): string {
  const { reservation, verified, claims } = proven;
  const { times, experimentName } = context;
  const { paint } = print;
  const { site1, site2, bandwidth } = reservation;
  const { start, end } = periodOf(reservation);
  const title = `${verb} ${paint.bold(escapeText(`${site1} – ${site2}`))}, ${formatBandwidth(bandwidth)}`;
  const id = reservation.experiment_id;
  const lines: CardLine[] = [
    ['id', reservation.id],
    ['from', formatTime(start, times.now, shownZone(times))],
    ['until', formatTime(end, times.now, shownZone(times))],
    [site1, `S-tag ${reservation.site1_s_tag}   C-tag ${reservation.site1_c_tag}`],
    [site2, `S-tag ${reservation.site2_s_tag}   C-tag ${reservation.site2_c_tag}`],
    ['experiment', experimentName ? `${experimentName} (${id})` : id],
  ];
  const proof = verified
    ? `  ${paint.green('verified')}: signed by ${escapeText(claims?.iss ?? '')}\n`
    : `  ${paint.yellow('not verified')}: the service did not sign it\n`;
  return print.card(title, lines) + proof;
}

/** The result of a dry run for people, without id and tags: a later booking can get others. */
export function rehearsalCard(print: Printer, reservation: Reservation, times: TimeContext): string {
  const { site1, site2, bandwidth } = reservation;
  const { start, end } = periodOf(reservation);
  const title = `Would be accepted: ${print.paint.bold(escapeText(`${site1} – ${site2}`))}, ${formatBandwidth(bandwidth)}`;
  const lines: CardLine[] = [
    ['from', formatTime(start, times.now, shownZone(times))],
    ['until', formatTime(end, times.now, shownZone(times))],
  ];
  return `${print.card(title, lines)}  nothing was booked\n`;
}
