/**
 * The clients of the services alone, over a `fetch`: for browsers, workers and every other runtime with WebCrypto. No `node:`
 * module and no other package is imported. The package's main entry exports the same names.
 *
 * @module
 */

export type { ChangeOptions, ChangeResult, ChangeResults } from './client/changes.ts';
export {
  type AvailabilityQuestion,
  type ConnectivityClient,
  createConnectivityClient,
  type LinkWindow,
  type RoutesQuestion,
  type SlotsQuestion,
} from './client/connectivity.ts';
export type { TokenInput, TokenText } from './client/exchange.ts';
export { createPortalClient, type PortalClient, type PortalClientOptions } from './client/portal.ts';
export type { ProofOptions, ProvenReservation } from './client/proof.ts';
export type { ConnectivityClientOptions, TokenPlacement } from './client/service-requests.ts';
export type { Availability, AvailablePart, RouteItem, Slot } from './contract/availability.ts';
export type { Experiment, ExperimentRequestBody, Project } from './contract/directory.ts';
export { Failure, type FailureCode, type FailureDetail, type FailureFacts } from './contract/failure.ts';
export { type Link, SITES } from './contract/links.ts';
export type {
  Alternative,
  AlternativeKind,
  FreePart,
  Limit,
  ProblemBody,
  ProblemCode,
  ProblemDetail,
} from './contract/problems.ts';
export {
  asRequest,
  asUpdate,
  type ChangeItem,
  type ReservationRequest,
} from './contract/reservation-request.ts';
export type { Role } from './contract/roles.ts';
export { Secret } from './contract/secret.ts';
export type { Fetch } from './contract/sending.ts';
