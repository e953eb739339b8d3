import type { ProvenReservation } from '../../client/proof.ts';
import { RESERVATION_TEXTS, type ReservationTexts } from '../../contract/reservation.ts';
import { periodOf } from '../../contract/reservation-request.ts';
import type { Context } from '../context.ts';
import { type NewPeriod, shortfall } from '../period.ts';
import { type CardContext, reservationCard, reservationResult } from '../print/cards.ts';
import { escapeText, type Output } from '../print/output.ts';

/** What was asked for beside what is printed. */
interface Asked extends Omit<CardContext, 'times'> {
  request?: ReservationTexts;
  /** See {@link NewPeriod}. */
  lasting?: NewPeriod['lasting'];
  /** The file of `--save`. */
  save?: string | undefined;
}

/** Prints the reservation that a command left behind, and notices of what is not as it was asked for. */
export async function printChanged(
  { clock, output }: Context,
  verb: string,
  proven: ProvenReservation,
  { request = {}, lasting, save, ...about }: Asked,
): Promise<void> {
  const { reservation } = proven;
  const times = await clock.times();
  await output.result(
    reservationResult(proven),
    (print) => reservationCard(print, verb, proven, { times, ...about }) + savedText(save, proven),
  );
  const warning = shortfall(periodOf(reservation), lasting);
  if (warning !== undefined) output.notice(warning);
  // An empty description takes it away.
  const left = RESERVATION_TEXTS.filter((text) => request[text] && reservation[text] === undefined);
  if (left.length > 0) {
    const names = left.map((text) => `${text}s`).join(' and no ');
    output.notice(
      `This service keeps no ${names}: only this machine knows ${left.length > 1 ? 'these' : 'this one'}.`,
    );
  }
  noticeUnsaved(output, save, proven);
}

/** Says on a card that the file of `--save` was written. */
export function savedText(save: string | undefined, { token }: ProvenReservation): string {
  return save === undefined || token === null ? '' : `  saved to ${escapeText(save)}\n`;
}

/** Says that the file of `--save` was not written: a service that signs nothing has no token for it. */
export function noticeUnsaved(output: Output, save: string | undefined, { token }: ProvenReservation): void {
  if (save === undefined || token !== null) return;
  output.notice(`Warning: ${save} was not written, since this service signs nothing.`);
}
