import { issuerProblem } from '../contract/issuer-address.ts';
import { KEY_SET_PATH } from '../contract/routes.ts';
import { remoteKeySet } from '../tokens/remote-key-set.ts';
import { VerifiedTokens } from '../tokens/verified-tokens.ts';
import type { Trust } from '../tokens/verify.ts';
import type { ServiceTrust } from './credentials.ts';
import type { Log } from './log.ts';

/** Whom a server believes that has no users of its own (DESIGN.md, "The reference server"). */
export interface ForeignIssuers {
  /**
   * Each accepted `iss`, exactly as it stands in the tokens: `https:`, or `http:` on loopback. Its keys are fetched from
   * `/.well-known/jwks.json` below it. Each may issue user, project and experiment tokens.
   */
  issuers: readonly string[];
  /** What the `aud` of a user token must name, and of another token that has one. Default: not checked. */
  audience?: string;
  /** `{portal_url}`, to tell clients. Default: the last issuer. */
  portalUrl?: string;
  /** `{auth_url}`, to tell clients. Default: the first issuer. */
  authUrl?: string;
  /** Fetches the key sets, within 5 s each; must not follow redirects. Default: as `RemoteKeySetOptions` has it. */
  fetch?: (request: Request) => Promise<Response>;
}

/** What {@link foreignTrust} needs besides. */
export interface ForeignTrustContext {
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Told when an issuer's keys can't be had and a kept copy stands in. */
  log: Log;
  /** Told of each fetch that failed, by its address. */
  keySetFailed?: (url: string) => void;
}

/**
 * Trust in issuers elsewhere, by their published keys: fetched when needed, at most once per cooldown, and believed for
 * a day while the issuer is away (HOSTILE.md 25 to 27).
 *
 * @throws RangeError for an issuer that is no https address, and for none at all
 */
export function foreignTrust(
  options: ForeignIssuers,
  { now, log, keySetFailed }: ForeignTrustContext,
): ServiceTrust {
  const { issuers, audience, fetch } = options;
  if (issuers.length === 0) throw new RangeError('trust needs an issuer');
  const keySets = issuers.map((issuer) => {
    const problem = issuerProblem(issuer);
    if (problem !== undefined) throw new RangeError(`${issuer} is no issuer. ${problem}`);
    const url = issuer.replace(/\/$/, '') + KEY_SET_PATH;
    const onStale = (_url: string, age: number): void => log('error', 'keys_stale', { issuer, ms: age });
    return [
      issuer,
      remoteKeySet({
        url,
        timeout: KEY_SET_TIMEOUT,
        now,
        onStale,
        ...(fetch ? { fetch } : {}),
        ...(keySetFailed ? { onFailure: keySetFailed } : {}),
      }),
    ] as const;
  });
  const verified = new VerifiedTokens();
  const trust: Trust = {
    issuers: new Map(keySets),
    now,
    verified,
    ...(audience === undefined ? {} : { audience }),
  };
  return { identity: trust, portal: trust };
}

/** How long an issuer may take for its key set, in milliseconds: requests wait for it. */
const KEY_SET_TIMEOUT = 5000;
