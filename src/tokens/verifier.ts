import { issuerName } from '../contract/addresses.ts';
import type { KeySetDocument } from '../contract/claims.ts';
import { MINUTE } from '../contract/durations.ts';
import { PROBLEMS, problemBody } from '../contract/problems.ts';
import { KEY_SET_PATH } from '../contract/routes.ts';
import { sendFrom } from '../contract/sending.ts';
import { type KeySet, localKeySet } from './key-set.ts';
import { fetchDirectly } from './loopback.ts';
import { type RemoteKeySetOptions, remoteKeySet } from './remote-key-set.ts';
import { statusLists, type TokenStatus } from './status-list.ts';
import { TokenError } from './token-error.ts';
import { kindText, type TokenKind, type Trust, type VerifiedToken, verifyToken } from './verify.ts';

/** Which issuers a verifier trusts, and for which tokens. */
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
  /**
   * Whether a connectivity token's issuer is asked if the token still stands (draft-ietf-oauth-status-list). One that was deleted or
   * replaced is `revoked`; where the list can't be had, the answer has no `status`. Default: not asked.
   */
  status?: boolean;
}

/** A token that verified, and with {@link VerifierOptions.status} whether it stands. */
export type CheckedToken = VerifiedToken & { status?: TokenStatus };

/** The result for a request: a token that verified, or the 403 to answer. */
export type Authentication = { ok: true; token: CheckedToken } | { ok: false; response: Response };

/** Checks tokens for a service; see {@link createVerifier}. */
export interface Verifier {
  /** @throws TokenError with the reason */
  verify(token: string): Promise<CheckedToken>;
  /**
   * Checks a request's `Authorization` as the example server does (contract/README.md, "Errors" 4): a missing credential, a
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
  const { issuers, kinds, audience, fetch: send, timeout = MINUTE / 6, now = Date.now } = options;
  const keySets = Object.entries(issuers).map(([issuer, source]): [string, KeySet] => [
    issuer,
    typeof source === 'object'
      ? localKeySet(source)
      : remoteKeySet({
          url: source === true ? issuerName(issuer) + KEY_SET_PATH : source,
          ...(send ? { fetch: send } : {}),
          timeout,
          now,
        }),
  ]);
  const trust: Trust = {
    issuers: new Map(keySets),
    audience,
    now,
  };

  const statusOf = options.status
    ? statusLists({ send: sendFrom({ fetch: send ?? fetchDirectly }), timeout, now })
    : undefined;

  const verify = async (token: string): Promise<CheckedToken> => {
    const verified = await verifyToken(token, trust);
    if (!kinds || kinds.includes(verified.kind)) {
      if (!statusOf || verified.kind !== 'connectivity') return verified;
      const status = await statusOf(verified.claims, trust).catch((error: unknown) => {
        if (error instanceof TokenError) return undefined;
        throw error;
      });
      if (status?.stands === false) {
        throw new TokenError('revoked', 'The reservation was deleted, or changed after this was signed.');
      }
      return { ...verified, ...(status ? { status } : {}) };
    }
    throw new TokenError(
      'kind',
      `This is ${kindText(verified.kind)}, which is not accepted here; due is: ${kinds.join(', ')}.`,
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

/** Reads an `Authorization` header: the bearer token, or the problem with it (RFC 6750 §2.1). */
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

/** The problem code for a rejected token. When the issuer's keys can't be fetched it is `unavailable`: not the bearer's fault. */
export function tokenProblem(error: TokenError): 'token_expired' | 'token_invalid' | 'unavailable' {
  if (error.code === 'expired') return 'token_expired';
  const isOfKeys = error.code === 'keys_unreachable' || error.code === 'keys_invalid';
  return isOfKeys ? 'unavailable' : 'token_invalid';
}

function refuse(code: 'token_missing' | ReturnType<typeof tokenProblem>, msg: string): Response {
  return Response.json(problemBody([{ code, msg }]), { status: PROBLEMS[code].status });
}
