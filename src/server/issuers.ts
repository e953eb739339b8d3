import { VerifiedTokens } from '../tokens/verified-tokens.ts';
import type { ServiceTrust } from './credentials.ts';
import { createKeyRing, type KeyRingOptions, SERVICES, type Service } from './keys/key-ring.ts';
import { createServiceIssuer, type ServiceIssuer } from './keys/service-issuer.ts';

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
  options: Omit<KeyRingOptions, 'service'>,
): Promise<Record<Service, ServiceIssuer>> {
  const issuerOf = async (service: Service): Promise<ServiceIssuer> => {
    const ring = createKeyRing({ ...options, service });
    await ring.keys();
    return createServiceIssuer(addresses[service], ring, options.now);
  };
  const [connectivity, portal, identity] = await Promise.all(SERVICES.map(issuerOf));
  if (!connectivity || !portal || !identity) throw new RangeError('an issuer is missing');
  return { connectivity, portal, identity };
}

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
