import type { JWTPayload } from 'jose';
import type { Tags } from '../../allocator/demand.ts';
import { sitesOf } from '../../allocator/routes.ts';
import {
  CommitUnknownError,
  type Hop,
  type ListedReservation,
  type ReservationRecord,
  StoreUnavailableError,
} from '../../allocator/store.ts';
import { formatInstant } from '../../contract/instants.ts';
import { sitesOfLink } from '../../contract/links.ts';
import type { Reservation, RouteHop } from '../../contract/reservation.ts';
import { textsOf } from '../../contract/reservation-texts.ts';
import { DEFAULT_TTL } from '../../tokens/issuer.ts';
import { jsonReply } from '../json-reply.ts';
import type { ServiceIssuer } from '../keys/service-issuer.ts';
import { acceptsJwt } from '../request-reading.ts';
import { placeInList } from './status-lists.ts';

/** A reservation as the service returns it: the tags are those of its ends, the others are the provider's. */
export function reservationReply(record: ListedReservation): Reservation {
  const { id, site1, site2, bandwidth, hops } = record;
  const [first] = hops;
  return {
    id,
    site1,
    site2,
    bandwidth,
    start_date: formatInstant(record.start),
    end_date: formatInstant(record.end),
    experiment_id: record.experiment,
    created_at: formatInstant(record.createdAt),
    created_by: record.createdBy,
    ...tagsOf({ site1, site2 }, first, hops.at(-1)),
    via: hops.length > 1 ? sitesAlong(record).slice(1, -1) : undefined,
    ...textsOf(record),
  };
}

/** The links of a reservation's route in order, each with its four tags: for administrators. */
function hopsReply(record: ReservationRecord): RouteHop[] {
  const sites = sitesAlong(record);
  return record.hops.map((hop, at) => {
    const [site1 = '', site2 = ''] = sites.slice(at, at + 2);
    return { site1, site2, ...tagsOf({ site1, site2 }, hop) };
  });
}

/** All sites of a reservation's route, from its first end to its second. */
function sitesAlong({ site1: from, hops }: ListedReservation): string[] {
  const links = hops.map(({ link }) => {
    const [site1, site2] = sitesOfLink(link);
    return { site1, site2 };
  });
  return sitesOf(links, from);
}

/** The tags at two sites, each at the end of a hop. */
function tagsOf({ site1, site2 }: Pick<RouteHop, 'site1' | 'site2'>, first: Hop, last = first): Tags {
  const [s1, c1] = tagsAt(site1, first);
  const [s2, c2] = tagsAt(site2, last);
  return { site1_s_tag: s1, site1_c_tag: c1, site2_s_tag: s2, site2_c_tag: c2 };
}

/** The S-tag and the C-tag of a hop at one of its sites. */
function tagsAt(site: string, { link, tags }: Hop): [number, number] {
  return link.startsWith(`${site}~`)
    ? [tags.site1_s_tag, tags.site1_c_tag]
    : [tags.site2_s_tag, tags.site2_c_tag];
}

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
    const hops = withHops ? hopsReply(record) : undefined;
    return jsonReply(
      { ...reservationReply(record), hops },
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
    connectivity: reservationReply(record),
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
