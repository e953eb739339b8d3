import * as v from 'valibot';
import { ExperimentId, ProjectId, ReservationId, UserId } from './fields.ts';
import { Reservation, ReservationReply } from './reservation.ts';

/** The last second that a date can hold; what lies beyond is no time. */
export const LAST_SECOND = 8_640_000_000_000;

const seconds = v.pipe(
  v.number(),
  v.finite(),
  v.minValue(0),
  v.maxValue(LAST_SECOND),
  v.description('Unix timestamp, seconds.'),
);

/**
 * The claims that every token must have: its issuer, its time of issue and its expiry (contract/README.md, "Authentication" 5
 * and 6). A service's own token, as in the spec's issuer, needs no others.
 */
export const ServiceClaims = v.looseObject({
  iss: v.string(),
  iat: seconds,
  exp: seconds,
  nbf: v.optional(seconds),
});
/** See {@link ServiceClaims}. */
export type ServiceClaims = v.InferOutput<typeof ServiceClaims>;

const act = v.looseObject({ sub: UserId, role: v.string() });

/** The user token's claims (contract/README.md, "User token"); those that a verifier does not need may be absent. */
export const UserClaims = v.looseObject({
  ...ServiceClaims.entries,
  sub: UserId,
  aud: v.optional(v.union([v.string(), v.array(v.string())])),
  auth_time: v.optional(seconds),
  scope: v.optional(v.string()),
  preferred_username: v.optional(v.string()),
  /** The only experiment that the token opens: of a CI job (contract/README.md, "Jobs of a CI"). */
  limited_to: v.optional(ExperimentId),
});
/** See {@link UserClaims}. */
export type UserClaims = v.InferOutput<typeof UserClaims>;

/** The project token's claims (contract/README.md, "Project token"). */
export const ProjectClaims = v.looseObject({
  ...ServiceClaims.entries,
  sub: ProjectId,
  name: v.optional(v.string()),
  proj_exp: v.string(),
  act,
});
/** See {@link ProjectClaims}. */
export type ProjectClaims = v.InferOutput<typeof ProjectClaims>;

/** The experiment token's claims (contract/README.md, "Getting an experiment token"). */
export const ExperimentClaims = v.looseObject({
  ...ServiceClaims.entries,
  sub: ExperimentId,
  name: v.optional(v.string()),
  exp_exp: v.string(),
  proj: v.optional(ProjectId),
  proj_name: v.optional(v.string()),
  act,
  /** Of a CI job's, as in its user token. */
  limited_to: v.optional(ExperimentId),
});
/** See {@link ExperimentClaims}. */
export type ExperimentClaims = v.InferOutput<typeof ExperimentClaims>;

/**
 * How many versions of a link have one status list. A token with such a list, of which any half are set, has fewer characters than
 * a verifier reads.
 */
export const STATUSES_IN_LIST = 2 ** 17;

/** Where a token's status stands: the place in a list of its issuer's (draft-ietf-oauth-status-list §6.2). */
export const StatusClaim = v.looseObject({
  status_list: v.looseObject({
    idx: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
    uri: v.string(),
  }),
});

/** The claims of a status list's token (draft-ietf-oauth-status-list §5.1). */
export const StatusListClaims = v.looseObject({
  ...ServiceClaims.entries,
  sub: v.string(),
  ttl: v.optional(seconds),
  status_list: v.looseObject({ bits: v.picklist([1, 2, 4, 8]), lst: v.string() }),
});
/** See {@link StatusListClaims}. */
export type StatusListClaims = v.InferOutput<typeof StatusListClaims>;

/**
 * The signed connectivity token's claims (contract/README.md, "Signed connectivity token"); `connectivity` comes out as a
 * Reservation. A signed route is a list of sites, or the token does not verify: what is signed is not left out.
 */
export const ConnectivityClaims = v.looseObject({
  ...ServiceClaims.entries,
  sub: ReservationId,
  connectivity: v.object({ ...ReservationReply.entries, via: Reservation.entries.via }),
  /** See {@link StatusClaim}; another service may mean something else by it. */
  status: v.optional(v.unknown()),
});
/** See {@link ConnectivityClaims}. */
export type ConnectivityClaims = v.InferOutput<typeof ConnectivityClaims>;

/** A public key as it stands in a key set (RFC 7517 §4). Members that are not named here are kept. */
export const PublicJwk = v.looseObject({
  kty: v.string(),
  kid: v.optional(v.string()),
  alg: v.optional(v.string()),
  use: v.optional(v.string()),
  key_ops: v.optional(v.array(v.string())),
  crv: v.optional(v.string()),
});
/** See {@link PublicJwk}. */
export type PublicJwk = v.InferOutput<typeof PublicJwk>;

/** A JSON Web Key Set (RFC 7517 §5; contract/README.md, "Endpoints"). */
export const KeySetDocument = v.looseObject({ keys: v.array(PublicJwk) });
/**
 * A key of a service's past or present, with the time of its use, in seconds: it signed from `nbf` on until `exp`. A key that was
 * retired as leaked proves nothing that was signed from `revoked` on.
 */
export const PastJwk = v.looseObject({
  ...PublicJwk.entries,
  nbf: seconds,
  exp: v.optional(seconds),
  revoked: v.optional(seconds),
});
/** See {@link PastJwk}. */
export type PastJwk = v.InferOutput<typeof PastJwk>;

/** The keys of a service of the last two years (contract/README.md, "Extensions"). */
export const KeyHistoryDocument = v.looseObject({ keys: v.array(PastJwk) });

/** See {@link KeySetDocument}. */
export type KeySetDocument = v.InferOutput<typeof KeySetDocument>;
