/**
 * What other programs need of slices-conn: the verifier, the issuer, the clients of the services, and the reference
 * server as a function.
 *
 * @module
 */

import type { ReferenceServer, ReferenceServerOptions } from './reference-server.ts';

export { TopologyError } from './allocator/network.ts';
export { StoreUnavailableError } from './allocator/store.ts';
export * from './clients.ts';
export type { TrustedIssuer, TrustedKind } from './contract/addresses.ts';
export type { Topology } from './contract/links.ts';
export type { ReferenceServer, ReferenceServerOptions } from './reference-server.ts';
export { jsonLog, type Log } from './server/log.ts';
export {
  createServerMetrics,
  type ServerMetrics,
  type ServerMetricsOptions,
} from './server/metrics/server-metrics.ts';
export { DirectoryError, type DirectoryFile, type UserRoles } from './server/portal/directory.ts';
export type { ForeignIssuers } from './server/trust.ts';
export { DatabaseFormatError } from './store/sql.ts';
export { createIssuer, type Issuer, type IssuerOptions } from './tokens/issuer.ts';
export {
  generateSigningKey,
  importSigningKey,
  KeyFormatError,
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
