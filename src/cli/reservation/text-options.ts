import type { ProvenReservation } from '../../client/proof.ts';
import { RESERVATION_NAME } from '../../contract/fields.ts';
import type { OptionDeclaration } from '../../contract/flags.ts';
import {
  RESERVATION_TEXTS,
  type ReservationText,
  type ReservationTexts,
} from '../../contract/reservation.ts';
import type { Output } from '../print/output.ts';

/** The flag of each text of a reservation, whose value is that text. */
export const TEXT_OPTIONS = {
  name: {
    flags: '--name <name>',
    help: 'a name to be used in place of its id: lower-case letters, digits and -',
    parse: reservationName,
  },
  description: {
    flags: '--description <text>',
    help: "what it is for, up to 200 characters; '' for nothing",
  },
} as const satisfies Record<ReservationText, OptionDeclaration>;

/** Says which texts were asked for that the service does not keep. */
export function noticeTextsNotKept(
  output: Pick<Output, 'notice'>,
  asked: ReservationTexts,
  { reservation }: Pick<ProvenReservation, 'reservation'>,
): void {
  // An empty description takes it away.
  const left = RESERVATION_TEXTS.filter((text) => asked[text] && reservation[text] === undefined);
  if (left.length === 0) return;
  const names = left.map((text) => `${text}s`).join(' and no ');
  output.notice(
    `This service keeps no ${names}: only this machine knows ${left.length > 1 ? 'these' : 'this one'}.`,
  );
}

/** Says that the file of `--save` was not written: a service that signs nothing has no token for it. */
export function noticeUnsaved(
  output: Pick<Output, 'notice'>,
  save: string | undefined,
  { token }: Pick<ProvenReservation, 'token'>,
): void {
  if (save === undefined || token !== null) return;
  output.notice(`Warning: ${save} was not written, since this service signs nothing.`);
}

/** Checks the form of a name. */
function reservationName(text: string): string {
  if (RESERVATION_NAME.test(text)) return text;
  throw new RangeError('It must be 1 to 64 of a to z, 0 to 9 and -, a letter first.');
}
