import type { Network } from '../../allocator/network.ts';
import { CommitUnknownError, type ReservationRecord, StoreUnavailableError } from '../../allocator/store.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { DEFAULT_TTL } from '../../tokens/issuer.ts';
import { acceptsJwt } from '../content-negotiation.ts';
import type { ServiceIssuer } from '../keys/service-issuer.ts';

/** A reservation as the service shows it: the sites in the request's order, each tag with its site. */
export function reservationReply(record: ReservationRecord, network: Network): Reservation {
  const { id, reversed, bandwidth, tags } = record;
  const link = network.byId(record.link);
  const [first, second] = link ? [link.site1, link.site2] : record.link.split('~');
  const { site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag } = tags;
  return {
    id,
    site1: (reversed ? second : first) ?? '',
    site2: (reversed ? first : second) ?? '',
    bandwidth,
    start_date: formatInstant(record.start),
    end_date: formatInstant(record.end),
    experiment_id: record.experiment,
    created_at: formatInstant(record.createdAt),
    created_by: record.createdBy,
    site1_s_tag: reversed ? site2_s_tag : site1_s_tag,
    site1_c_tag: reversed ? site2_c_tag : site1_c_tag,
    site2_s_tag: reversed ? site1_s_tag : site2_s_tag,
    site2_c_tag: reversed ? site1_c_tag : site2_c_tag,
  };
}

/** What turns a reservation into a reply. */
export interface ReplyOptions {
  network: Network;
  issuer: ServiceIssuer;
  now: () => number;
}

/**
 * Answers with a reservation: as a signed connectivity token when the request asks for `application/jwt`, else as
 * JSON (SPEC.md, "POST", "Signed connectivity token"). The token lasts until the reservation's end, and 900 s at
 * least, so that a saved proof lasts as long as its link.
 */
export async function answerReservation(
  request: Request,
  record: ReservationRecord,
  { network, issuer, now }: ReplyOptions,
  init: { status?: number; headers?: Record<string, string> } = {},
): Promise<Response> {
  const connectivity = reservationReply(record, network);
  if (!acceptsJwt(request)) {
    return Response.json(connectivity, {
      ...init,
      headers: { 'cache-control': 'no-store', ...init.headers },
    });
  }
  return issuer.reply({ sub: record.id, connectivity, exp: expiryOf(record.end, now()) }, init);
}

/** When a reservation's token expires, in seconds. @param end of the reservation, in milliseconds, as `now` */
function expiryOf(end: number, now: number): number {
  return Math.max(Math.ceil(end / 1000), Math.floor(now / 1000) + DEFAULT_TTL);
}

/**
 * Notes what the signature of an answer needs before anything is booked or changed: a database that fails at it, or has
 * no room left, then has done nothing, and the answer after the commit needs no write.
 *
 * @param end that the reservation will have, in milliseconds
 * @throws StoreUnavailableError
 */
export async function prepareAnswer(
  request: Request,
  end: number,
  { issuer, now }: Pick<ReplyOptions, 'issuer' | 'now'>,
): Promise<void> {
  if (acceptsJwt(request)) await issuer.signingKey(expiryOf(end, now()));
}

/**
 * Answers with a reservation that this request has booked or changed. A database that is lost now, when another key
 * than {@link prepareAnswer} expected has to sign, leaves that done: nobody is told that nothing was changed.
 *
 * @throws CommitUnknownError
 */
export async function answerChange(...args: Parameters<typeof answerReservation>): Promise<Response> {
  try {
    return await answerReservation(...args);
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
    throw new CommitUnknownError(error.message, { cause: error.cause ?? error });
  }
}
