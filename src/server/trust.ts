import {
  issuerName,
  issuerProblem,
  issuersFor,
  missingKind,
  TRUSTED_KINDS,
  type TrustedIssuer,
  type TrustedKind,
} from '../contract/addresses.ts';
import { CI_NAMES, CI_SYSTEMS, type CiIssuers } from '../contract/ci-rules.ts';
import { KEY_SET_PATH } from '../contract/routes.ts';
import type { KeySet } from '../tokens/key-set.ts';
import { remoteKeySet } from '../tokens/remote-key-set.ts';
import { VerifiedTokens } from '../tokens/verified-tokens.ts';
import type { Trust } from '../tokens/verify.ts';
import type { ServiceTrust } from './credentials.ts';
import { CLIENT_ID } from './identity/user-token.ts';
import type { Service } from './keys/key-ring.ts';
import type { ServiceIssuer } from './keys/service-issuer.ts';
import type { Log } from './log.ts';

/** Trust in this server's own portal and identity provider, whose keys are at hand. */
export function ownTrust(
  issuers: Record<Service, ServiceIssuer>,
  audience: string,
  now: () => number,
): ServiceTrust {
  const verified = new VerifiedTokens();
  const by = ({ issuer, keys }: ServiceIssuer) => ({ issuers: new Map([[issuer, keys]]), now, verified });
  const portal = by(issuers.portal);
  return {
    user: { ...by(issuers.identity), audience },
    project: portal,
    experiment: portal,
    scopeRequired: true,
  };
}

/** The issuers that a server without users of its own trusts (contract/README.md, "The reference server"). */
export interface ForeignIssuers {
  /**
   * Each accepted `iss`: `https:`, or `http:` on loopback; a slash at its end makes no difference. Its keys are fetched
   * from `/.well-known/jwks.json` below it. A plain address may issue user, project and experiment tokens.
   */
  issuers: readonly (string | TrustedIssuer)[];
  /** Must be named by the `aud` of a user token, and of any other token that has an `aud`. Default: not checked. */
  audience?: string;
  /**
   * Fetches the key sets, and sends the page's requests to identity provider and portal, within 5 s and 1 MiB each; must not
   * follow redirects. Default: as `RemoteKeySetOptions` has it, and for the page the platform's.
   */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
}

/** Further options of {@link foreignTrust}. */
export interface ForeignTrustContext {
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Records that an issuer's keys can't be fetched and a cached copy is used. */
  log: Log;
  /** Ids of clients besides the command line's: a token that is for one of them is an ID token, which opens nothing. */
  clients?: readonly string[];
  /** Called with the address of a key set for each fetch that failed. */
  keySetFailed?: (url: string) => void;
}

/** The issuers with what they are trusted for. */
export function trustedIssuers({ issuers }: Pick<ForeignIssuers, 'issuers'>): TrustedIssuer[] {
  return issuers.map((each) => (typeof each === 'string' ? { issuer: each } : each));
}

/**
 * Trust in external issuers, each for its kinds of tokens, by their published keys: fetched when needed, at most once
 * per cooldown, and used for a day while the issuer is away (THREATS.md 25 to 27, 50).
 *
 * @throws RangeError for an issuer whose address is not https, and when no issuer is trusted for users or for experiments:
 *   nothing could be reserved
 */
export function foreignTrust(
  options: ForeignIssuers,
  { now, log, keySetFailed, clients = [] }: ForeignTrustContext,
): ServiceTrust {
  const { audience, fetch } = options;
  const issuers = trustedIssuers(options);
  const missing = missingKind(issuers);
  if (missing !== undefined) throw new RangeError(`trust needs an issuer of ${missing} tokens`);
  // An issuer that is named twice, once for each kind, has one key set.
  const keySets = new Map(
    issuers.map(({ issuer }) => [
      issuerName(issuer),
      keysOf(issuer, KEY_SET_PATH, { now, log, keySetFailed, fetch }),
    ]),
  );
  const verified = new VerifiedTokens();
  const trustFor = (kind: TrustedKind): Trust => ({
    issuers: new Map(
      issuersFor(kind, issuers).flatMap((issuer) => {
        const keys = keySets.get(issuerName(issuer));
        return keys ? [[issuer, keys]] : [];
      }),
    ),
    now,
    verified,
    clients: [CLIENT_ID, ...clients],
    audience,
  });
  return {
    user: trustFor('user'),
    project: trustFor('project'),
    experiment: trustFor('experiment'),
    scopeRequired: false,
  };
}

/**
 * An issuer's keys, which are fetched below its address.
 *
 * @throws RangeError for an issuer whose address is not https
 */
function keysOf(
  issuer: string,
  path: string,
  { now, log, keySetFailed, fetch }: ForeignTrustContext & Pick<ForeignIssuers, 'fetch'>,
): KeySet {
  const problem = issuerProblem(issuer);
  if (problem !== undefined) throw new RangeError(`${issuer} can't be trusted as an issuer. ${problem}`);
  return remoteKeySet({
    url: issuerName(issuer) + path,
    timeout: ISSUER_TIMEOUT,
    now,
    onStale: (_url, age) => log('error', 'keys_stale', { issuer, ms: age }),
    fetch,
    ...(keySetFailed ? { onFailure: keySetFailed } : {}),
  });
}

/** The issuers of the ID tokens of CI jobs, and how their keys are fetched: see {@link ForeignIssuers}. */
export interface CiOptions extends Pick<ForeignIssuers, 'fetch'> {
  issuers: CiIssuers;
}

/**
 * Trust in the ID tokens of CI jobs, by the published keys of their issuers (THREATS.md 25 to 27).
 *
 * @param audience `{auth_url}`, which their `aud` must name
 * @throws RangeError for an issuer whose address is not https
 */
export function ciTrust(
  { issuers, fetch }: CiOptions,
  audience: string,
  context: ForeignTrustContext,
): Trust {
  const keySets = CI_NAMES.flatMap((name): [string, KeySet][] => {
    const issuer = issuers[name];
    if (issuer === undefined) return [];
    return [[issuer, keysOf(issuer, CI_SYSTEMS[name].keySetPath, { ...context, fetch })]];
  });
  return { issuers: new Map(keySets), audience, now: context.now };
}

/** The only issuer of user tokens; undefined where there are several. */
export function soleIssuer(options: ForeignIssuers): string | undefined {
  const [issuer, another] = new Set(issuersFor('user', trustedIssuers(options)).map(issuerName));
  return another === undefined ? issuer : undefined;
}

/**
 * The addresses of portal and identity provider when other issuers are trusted, without a slash at the end: the last issuer of
 * project or experiment tokens, and the first of user tokens.
 */
export function foreignAddresses(options: ForeignIssuers): { portal: string; identity: string } {
  const issuers = trustedIssuers(options);
  const portals = issuers.filter(({ kinds = TRUSTED_KINDS }) => kinds.some((kind) => kind !== 'user'));
  const [identity = ''] = issuersFor('user', issuers);
  const plain = (address: string): string => address.replace(/\/+$/, '');
  return {
    portal: plain(portals.at(-1)?.issuer ?? ''),
    identity: plain(identity),
  };
}

/** How long a trusted issuer may take for an answer, in milliseconds: requests wait for it. */
export const ISSUER_TIMEOUT = 5000;

/** The largest answer of an issuer to the page that is read, in bytes. */
export const MAX_ISSUER_REPLY = 1_048_576;
