/**
 * Names a booking, so that it can be asked for again and is made once: an extension
 * (draft-ietf-httpapi-idempotency-key-header; DESIGN.md, "List, links, …"). A client finds out from the OpenAPI
 * document whether a service honours it: among the parameters of POST.
 */
export const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key';
/** Says `true` in the answer to a request that was answered before under its {@link IDEMPOTENCY_KEY_HEADER}. */
export const IDEMPOTENCY_REPLAYED_HEADER = 'Idempotency-Replayed';
/** The longest {@link IDEMPOTENCY_KEY_HEADER}, in characters, of ASCII that prints. */
export const MAX_IDEMPOTENCY_KEY = 255;

/** A query parameter or a header of a route; none is required. */
export interface Parameter {
  description: string;
  type: 'boolean' | 'string' | 'integer';
  /** Not in SPEC.md: an extension of the reference server. */
  extension?: boolean;
}

/** `start_now` (SPEC.md, "POST"). */
export const START_NOW: Parameter = {
  description: 'Start at the time of the request; start_date is then null.',
  type: 'boolean',
};
/** `dry_run`: an extension (DESIGN.md, "List, links, …"). */
export const DRY_RUN: Parameter = {
  description:
    'Decide and answer as if it were done, and leave nothing behind: 200 with the reservation, JSON only.',
  type: 'boolean',
  extension: true,
};
/** See {@link IDEMPOTENCY_KEY_HEADER}. */
export const IDEMPOTENCY_KEY: Parameter = {
  description: `Text of the client's own, 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters, such as a UUID. For 24 hours the same request by the same user in the same experiment is answered with the same reservation, so that it can be sent again when the answer was lost; another request under the same key is 409. A refused request leaves its key free. A dry run does not look at it.`,
  type: 'string',
  extension: true,
};
/** The longest `reason` of an administrator's release, in characters. */
export const MAX_REASON = 200;
/** `reason` of DELETE: an extension. Administrators must give it; for others it is ignored. */
export const RELEASE_REASON: Parameter = {
  description: `Why an administrator of this server releases the reservation, 1 to ${MAX_REASON} characters; it is kept in the server's log. An administrator, whom the server's operator names, may read and delete any reservation with the user token alone; for everyone else it says nothing.`,
  type: 'string',
  extension: true,
};
