/**
 * What other programs need of slices-conn: the verifier, the issuer, the clients of the services, and the reference
 * server as a function.
 *
 * @module
 */

import type { ReferenceServer, ReferenceServerOptions } from './reference-server.ts';

export type { ChangeOptions, ChangeResult, ChangeResults } from './client/changes.ts';
export type {
  AvailabilityQuestion,
  LinkWindow,
  SlotsQuestion,
} from './client/connectivity.ts';
export { type ConnectivityClient, createConnectivityClient } from './client/connectivity.ts';
export type { TokenInput, TokenText } from './client/exchange.ts';
export { createPortalClient, type PortalClient, type PortalClientOptions } from './client/portal.ts';
export type { ProofOptions, ProvenReservation } from './client/proof.ts';
export type { ConnectivityClientOptions, TokenPlacement } from './client/service-requests.ts';
export type { Availability, AvailablePart, Slot } from './contract/availability.ts';
export type { Experiment, ExperimentRequestBody, Project } from './contract/directory.ts';
export { Failure, type FailureCode, type FailureDetail, type FailureFacts } from './contract/failure.ts';
export type { TrustedIssuer, TrustedKind } from './contract/issuer-address.ts';
export type { Link, Topology } from './contract/links.ts';
export type { ProblemCode } from './contract/problem-codes.ts';
export type {
  Alternative,
  AlternativeKind,
  AlternativeReply,
  FreePart,
  Limit,
  ProblemBody,
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
export { SITES } from './contract/sites.ts';
export type { ReferenceServer, ReferenceServerOptions } from './reference-server.ts';
export { jsonLog, type Log } from './server/log.ts';
export {
  createServerMetrics,
  type ServerMetrics,
  type ServerMetricsOptions,
} from './server/metrics/server-metrics.ts';
export { DirectoryError, type DirectoryFile, type UserRoles } from './server/portal/directory.ts';
export type { ForeignIssuers } from './server/trust.ts';
export { createIssuer, type Issuer, type IssuerOptions } from './tokens/issuer.ts';
export {
  generateSigningKey,
  importSigningKey,
  type PrivateJwk,
  type SigningKey,
} from './tokens/signing-key.ts';
export * from './verifier.ts';

/**
 * The server that the command line talks to, as a function of a Request: portal and connectivity service with an
 * allocator over SQLite or PostgreSQL (contract/README.md, "Endpoints"; contract/README.md, "The reference server"). Its code is loaded here:
 * most programs import this package for a client or a verifier, which take a fraction of the time.
 *
 * @example
 * const server = await createReferenceServer();
 * const token = await server.signIn('lead');
 * const url = `${server.addresses.portal}/apis/projects/v1alpha1/projects/`;
 * await server.fetch(new Request(url, { headers: { authorization: `Bearer ${token}` } }));
 *
 * @throws RangeError for an option that is out of its bounds, TopologyError for a topology that breaks a rule
 * @throws DatabaseFormatError, StoreUnavailableError, Failure when the database can't be used
 */
export async function createReferenceServer(options: ReferenceServerOptions = {}): Promise<ReferenceServer> {
  const { createReferenceServer: create } = await import('./reference-server.ts');
  return create(options);
}
