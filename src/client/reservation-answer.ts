import * as v from 'valibot';
import { Failure } from '../contract/failure.ts';
import { ReservationId } from '../contract/ids.ts';
import { isObject, readJson } from '../contract/json.ts';
import { type Reservation, ReservationReply } from '../contract/reservation.ts';
import { readAs } from './exchange.ts';
import type { Reply } from './reply-failure.ts';

/**
 * The reservation in a reply that no token proves.
 *
 * @param id the reservation that must not be lost when the reply can't be read
 * @throws Failure `reply_invalid`; what was asked may have been done all the same
 */
export function readReservation(reply: Reply, id?: string): Reservation {
  try {
    return readAs(ReservationReply, reply, 'reservation');
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw error.with({ maybeDone: true, ...(id === undefined ? {} : { reservation: id }) });
  }
}

/** The id in a reply that may be wrong in every other way: what it names must not be lost. */
export function claimedId({ text }: Reply): string | undefined {
  const reading = readJson(text);
  const id = reading.ok && isObject(reading.value) ? reading.value['id'] : undefined;
  return v.is(ReservationId, id) ? id : undefined;
}
