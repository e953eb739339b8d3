import type { JWTPayload } from 'jose';
import { answerOf, hopsOf } from '../../allocator/answer.ts';
import { CommitUnknownError, type ReservationRecord, StoreUnavailableError } from '../../allocator/store.ts';
import { DEFAULT_TTL } from '../../tokens/issuer.ts';
import { jsonReply } from '../json-reply.ts';
import type { ServiceIssuer } from '../keys/service-issuer.ts';
import { acceptsJwt } from '../request-reading.ts';
import { placeInList } from './status-lists.ts';

/** What {@link answerReservation} needs. */
export interface ReplyOptions {
  issuer: ServiceIssuer;
  now: () => number;
}

/** The status and headers of a reply, by default 200 and none. */
export interface ReplyInit {
  status?: number;
  headers?: Record<string, string>;
  /** Whether this request has created or updated the reservation. Default false. */
  committed?: boolean;
  /** Whether JSON has the tags of each hop too. Signed they never are: a token is handed on. Default false. */
  withHops?: boolean;
}

/**
 * Answers with a reservation: as a signed connectivity token when the request asks for `application/jwt`, else as
 * JSON (contract/README.md, "POST", "Signed connectivity token"). The token lasts until the reservation's end, and 900 s at
 * least, so that a saved proof lasts as long as its link.
 *
 * @throws CommitUnknownError when the database fails after the commit, because another key than {@link prepareToken}
 *   expected has to sign: the answer must not say that nothing was changed
 */
export async function answerReservation(
  request: Request,
  record: ReservationRecord,
  { issuer, now }: ReplyOptions,
  { committed = false, withHops = false, ...init }: ReplyInit = {},
): Promise<Response> {
  if (!acceptsJwt(request)) {
    const hops = withHops ? hopsOf(record) : undefined;
    return jsonReply(
      { ...answerOf(record), hops },
      {
        ...init,
        headers: { 'cache-control': 'no-store', ...init.headers },
      },
    );
  }
  const sign = () => issuer.reply(claimsOf(record, { issuer, now }), init);
  return committed ? afterCommit(sign) : sign();
}

/**
 * The connectivity token of a reservation that was just created or updated, for an answer that holds several.
 *
 * @throws CommitUnknownError as {@link answerReservation} does
 */
export async function signReservation(
  record: ReservationRecord,
  { issuer, now }: ReplyOptions,
): Promise<string> {
  return afterCommit(() => issuer.issue(claimsOf(record, { issuer, now })));
}

function claimsOf(record: ReservationRecord, { issuer, now }: ReplyOptions): JWTPayload {
  return {
    sub: record.id,
    connectivity: answerOf(record),
    status: { status_list: placeInList(record, issuer.issuer) },
    exp: expiryOf(record.end, now()),
  };
}

/** Signs after a commit: a failure of the database must not say that nothing was changed. */
async function afterCommit<Answer>(sign: () => Promise<Answer>): Promise<Answer> {
  try {
    return await sign();
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
    throw new CommitUnknownError(error.message, { cause: error.cause ?? error });
  }
}

/** When a reservation's token expires, in seconds. @param end of the reservation, in milliseconds, as `now` */
function expiryOf(end: number, now: number): number {
  return Math.max(Math.ceil(end / 1000), Math.floor(now / 1000) + DEFAULT_TTL);
}

/**
 * Notes the expiry of an answer's token before its reservation is created or updated. If the database fails here, or is full,
 * nothing was changed; and signing after the commit needs no write.
 *
 * @param end that the reservation will have, of several the last, in milliseconds
 * @throws StoreUnavailableError
 */
export async function prepareToken(end: number, { issuer, now }: ReplyOptions): Promise<void> {
  await issuer.signingKey(expiryOf(end, now()));
}
