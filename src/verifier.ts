/**
 * The verifier alone, for browsers, workers and every other runtime with WebCrypto: no `node:` module and no other
 * package is imported. The package's main entry exports the same names.
 *
 * @module
 */

export type {
  ConnectivityClaims,
  ExperimentClaims,
  KeySetDocument,
  ProjectClaims,
  PublicJwk,
  ServiceClaims,
  UserClaims,
} from './contract/claims.ts';
export type { Reservation } from './contract/reservation.ts';
export { type Algorithm, type KeySet, localKeySet } from './tokens/key-set.ts';
export {
  type KeySetCopy,
  type KeySetStore,
  type RemoteKeySet,
  type RemoteKeySetOptions,
  remoteKeySet,
} from './tokens/remote-key-set.ts';
export type { TokenStatus } from './tokens/status-list.ts';
export { TokenError, type TokenFault } from './tokens/token-error.ts';
export {
  type Authentication,
  type CheckedToken,
  createVerifier,
  type Verifier,
  type VerifierOptions,
} from './tokens/verifier.ts';
export {
  type TokenKind,
  type Trust,
  type VerifiedToken,
  verifyConnectivityToken,
  verifyExperimentToken,
  verifyProjectToken,
  verifyServiceToken,
  verifyUserToken,
} from './tokens/verify.ts';
