import type {
  ConnectivityClaims,
  ExperimentClaims,
  KeySetDocument,
  ProjectClaims,
  ServiceClaims,
  UserClaims,
} from '../contract/claims.ts';
import { PROBLEM_STATUS, problemBody } from '../contract/problems.ts';
import { KEY_SET_PATH } from '../contract/routes.ts';
import { readCompact } from './compact.ts';
import { type KeySet, localKeySet } from './key-set.ts';
import { type RemoteKeySetOptions, remoteKeySet } from './remote-key-set.ts';
import { TokenError } from './token-error.ts';
import {
  claimedKind,
  type TokenKind,
  type Trust,
  verifyConnectivityToken,
  verifyExperimentToken,
  verifyProjectToken,
  verifyServiceToken,
  verifyUserToken,
} from './verify.ts';

/** A token that verified, told apart by its kind. */
export type VerifiedToken =
  | { kind: 'user'; claims: UserClaims }
  | { kind: 'project'; claims: ProjectClaims }
  | { kind: 'experiment'; claims: ExperimentClaims }
  | { kind: 'connectivity'; claims: ConnectivityClaims }
  | { kind: 'service'; claims: ServiceClaims };

/** Verifies a token of the kind that its subject claims. @throws TokenError with the reason */
export async function verifyToken(token: string, trust: Trust): Promise<VerifiedToken> {
  const kind = claimedKind(readCompact(token).claims);
  switch (kind) {
    case 'user':
      return { kind, claims: await verifyUserToken(token, trust) };
    case 'project':
      return { kind, claims: await verifyProjectToken(token, trust) };
    case 'experiment':
      return { kind, claims: await verifyExperimentToken(token, trust) };
    case 'connectivity':
      return { kind, claims: await verifyConnectivityToken(token, trust) };
    case 'service':
      return { kind, claims: await verifyServiceToken(token, trust) };
  }
}

/** Whom a verifier believes and for what. */
export interface VerifierOptions {
  /**
   * Each accepted issuer with its keys: `true` for its `/.well-known/jwks.json`, the address of its key set, or the
   * key set itself.
   */
  issuers: Readonly<Record<string, true | string | KeySetDocument>>;
  /** Which kinds are accepted. Default: all. */
  kinds?: readonly TokenKind[];
  /** When set, `aud` must name it. */
  audience?: string;
  /** Fetches key sets; must not follow redirects. Default: see {@link RemoteKeySetOptions}. */
  fetch?: RemoteKeySetOptions['fetch'];
  /** How long the fetch of a key set may take, in milliseconds. Default 10,000. */
  timeout?: number;
  /** Milliseconds since the Unix epoch. Default: the machine's clock. */
  now?: () => number;
}

/** What a request carried: a token that verified, or the 403 to answer. */
export type Authentication = { ok: true; token: VerifiedToken } | { ok: false; response: Response };

/** Checks tokens for a service; see {@link createVerifier}. */
export interface Verifier {
  /** @throws TokenError with the reason */
  verify(token: string): Promise<VerifiedToken>;
  /**
   * Checks a request's `Authorization` as SPEC.md's example server does ("Errors" 4): a missing credential, a
   * scheme other than Bearer, and an invalid or expired token are each answered with 403 and the validation error
   * body. A key set that can't be reached is 503.
   */
  authenticate(request: Request): Promise<Authentication>;
}

/**
 * A verifier for the developers of other services: the code that this project's own server and client use.
 *
 * @example
 * const verifier = createVerifier({ issuers: { 'https://portal.example.org': true }, kinds: ['project'] });
 * const found = await verifier.authenticate(request);
 * if (!found.ok) return found.response;
 */
export function createVerifier(options: VerifierOptions): Verifier {
  const { issuers, kinds, audience, fetch: send, timeout, now } = options;
  const keySets = Object.entries(issuers).map(([issuer, source]): [string, KeySet] => [
    issuer,
    typeof source === 'object'
      ? localKeySet(source)
      : remoteKeySet({
          url: source === true ? issuer.replace(/\/$/, '') + KEY_SET_PATH : source,
          ...(send ? { fetch: send } : {}),
          ...(timeout === undefined ? {} : { timeout }),
          ...(now ? { now } : {}),
        }),
  ]);
  const trust: Trust = {
    issuers: new Map(keySets),
    ...(audience === undefined ? {} : { audience }),
    ...(now ? { now } : {}),
  };

  const verify = async (token: string): Promise<VerifiedToken> => {
    const verified = await verifyToken(token, trust);
    if (!kinds || kinds.includes(verified.kind)) return verified;
    throw new TokenError(
      'kind',
      `A ${verified.kind} token is not accepted here; due is: ${kinds.join(', ')}.`,
    );
  };

  return {
    verify,
    async authenticate(request) {
      const credential = readBearer(request.headers.get('authorization'));
      if (!credential.ok) return { ok: false, response: refuse(credential.code, credential.msg) };
      try {
        return { ok: true, token: await verify(credential.token) };
      } catch (error) {
        if (!(error instanceof TokenError)) throw error;
        return { ok: false, response: refuse(tokenProblem(error), error.message) };
      }
    },
  };
}

/** What an `Authorization` header holds: a bearer token, or what is wrong with it (RFC 6750 §2.1). */
export function readBearer(
  header: string | null,
): { ok: true; token: string } | { ok: false; code: 'token_missing' | 'token_invalid'; msg: string } {
  if (!header) {
    return { ok: false, code: 'token_missing', msg: 'The request has no Authorization: Bearer <token>.' };
  }
  const [, scheme = '', token = ''] = /^(\S+)[ ]*(.*)$/.exec(header.trim()) ?? [];
  if (scheme.toLowerCase() !== 'bearer') {
    return { ok: false, code: 'token_invalid', msg: 'The Authorization scheme must be Bearer.' };
  }
  if (token === '') return { ok: false, code: 'token_missing', msg: 'The bearer token is empty.' };
  return { ok: true, token };
}

/** The problem code that a rejected token is answered with: its issuer's keys being away is not its bearer's fault. */
export function tokenProblem(error: TokenError): 'token_expired' | 'token_invalid' | 'unavailable' {
  if (error.code === 'expired') return 'token_expired';
  return error.code === 'keys_unreachable' ? 'unavailable' : 'token_invalid';
}

function refuse(code: 'token_missing' | ReturnType<typeof tokenProblem>, msg: string): Response {
  return Response.json(problemBody([{ code, msg }]), { status: PROBLEM_STATUS[code] });
}
