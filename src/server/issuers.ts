import { createIssuer, type Issuer } from '../tokens/issuer.ts';
import { localKeySet } from '../tokens/key-set.ts';
import { generateSigningKey, importSigningKey, type PrivateJwk } from '../tokens/signing-key.ts';
import { VerifiedTokens } from '../tokens/verified-tokens.ts';
import type { ServiceTrust } from './credentials.ts';

/** The three services, each an issuer with a key of its own (DESIGN.md, "The reference server"). */
export const SERVICES = ['connectivity', 'portal', 'identity'] as const;
/** One of {@link SERVICES}. */
export type Service = (typeof SERVICES)[number];

/** Where signing keys are kept. */
export interface KeyStore {
  /** The service's key; `candidate` is kept as it where there was none. Of two at once, one wins for both. */
  signingKey(service: Service, candidate: PrivateJwk): Promise<PrivateJwk>;
  /** The service's key where there is one. */
  existingKey(service: Service): Promise<PrivateJwk | undefined>;
}

/** The services' addresses, without a trailing slash. Each is its service's issuer. */
export type Addresses = Record<Service, string>;

/** The addresses below one base address: the portal at `/portal`, the identity provider at `/auth`. */
export function addressesBelow(baseUrl: string): Addresses {
  const base = baseUrl.replace(/\/+$/, '');
  return { connectivity: base, portal: `${base}/portal`, identity: `${base}/auth` };
}

/** Makes the three issuers, with keys from the store or, the first time, new ones (ES256, kid `key1`). */
export async function createIssuers(
  addresses: Addresses,
  keys: KeyStore,
  now: () => number,
): Promise<Record<Service, Issuer>> {
  const issuerOf = async (service: Service): Promise<Issuer> => {
    const key = await importSigningKey(await keptKey(service, keys));
    return createIssuer({ issuer: addresses[service], key, now });
  };
  const [connectivity, portal, identity] = await Promise.all(SERVICES.map(issuerOf));
  if (!connectivity || !portal || !identity) throw new RangeError('an issuer is missing');
  return { connectivity, portal, identity };
}

/** A service's private key: the one that is kept, or a new one. */
export async function keptKey(service: Service, keys: KeyStore): Promise<PrivateJwk> {
  return (await keys.existingKey(service)) ?? keys.signingKey(service, await generateSigningKey());
}

/** Trust in this server's own portal and identity provider, whose keys are at hand. */
export function trustIn(issuers: Record<Service, Issuer>, audience: string, now: () => number): ServiceTrust {
  const of = ({ issuer, keySet }: Issuer) => new Map([[issuer, localKeySet(keySet)]]);
  const verified = new VerifiedTokens();
  return {
    identity: { issuers: of(issuers.identity), audience, now, verified },
    portal: { issuers: of(issuers.portal), now, verified },
  };
}
