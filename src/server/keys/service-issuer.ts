import type { JWTPayload } from 'jose';
import { StoreUnavailableError } from '../../allocator/store.ts';
import { DAY } from '../../contract/durations.ts';
import { createIssuer, DEFAULT_TTL, type Issuer } from '../../tokens/issuer.ts';
import { type KeySet, localKeySet } from '../../tokens/key-set.ts';
import { importSigningKey } from '../../tokens/signing-key.ts';
import { TokenError } from '../../tokens/token-error.ts';
import { jsonReply } from '../json-reply.ts';
import {
  createKeyRing,
  type KeyRing,
  type KeyRingOptions,
  pastOf,
  READ_PAUSE,
  type Service,
  type StoredKey,
} from './key-ring.ts';
import { planKeys } from './rotation-rules.ts';

/** A service's issuer, whose keys rotate while it runs. */
export type ServiceIssuer = ReturnType<typeof createServiceIssuer>;

/** For how long the public part of a key is published that signs no more, in milliseconds: two years. */
const KEPT_PAST = 2 * 365 * DAY;

/** The keys as they were at one instant. */
interface Snapshot {
  /** Two snapshots with the same name have the same keys. */
  name: string;
  signing: StoredKey;
  published: readonly StoredKey[];
  issuer: Issuer;
  keys: KeySet;
}

/**
 * An issuer over a ring of keys: signs with the current signing key; publishes, and verifies with, all published keys
 * (`rotation-rules.ts`).
 *
 * @param address its `iss`, without a trailing slash
 * @param now milliseconds since the Unix epoch
 * @throws StoreUnavailableError from signing, when the expiry must be noted and the database is unavailable
 */
export function createServiceIssuer(address: string, ring: KeyRing, now: () => number) {
  let last: Snapshot | undefined;

  async function snapshot(maxAge?: number): Promise<Snapshot> {
    const { signing, published } = planKeys(await ring.keys(maxAge), now());
    const name = [signing, ...published].map(({ jwk: { kid, x } }) => `${kid} ${x}`).join();
    if (last?.name === name) {
      Object.assign(last, { signing, published });
      return last;
    }
    const others = published.filter((key) => key !== signing);
    const issuer = createIssuer({
      issuer: address,
      key: await importSigningKey(signing.jwk),
      otherKeys: others.map(({ jwk }) => ({ ...jwk, kty: 'EC' })),
      now,
    });
    last = { name, signing, published, issuer, keys: localKeySet(issuer.keySet) };
    return last;
  }

  /** Notes the expiry for the signing key. If that key was removed meanwhile, the next one signs. */
  async function forSigning(expiry: number): Promise<Snapshot> {
    for (let turn = 0; turn < 2; turn += 1) {
      const current = await snapshot();
      if (await ring.note(current.signing, expiry * 1000)) return current;
    }
    throw new StoreUnavailableError('The signing keys are being changed at the moment.');
  }

  const expiryOf = ({ exp }: JWTPayload): number => exp ?? Math.floor(now() / 1000) + DEFAULT_TTL;

  return {
    issuer: address,
    /** The keys that its tokens verify with, as they change. */
    keys: {
      async find(kid, algorithm) {
        const before = await snapshot();
        try {
          return await before.keys.find(kid, algorithm);
        } catch (error) {
          if (!(error instanceof TokenError) || error.code !== 'key_unknown') throw error;
          // Another replica may sign already with a key that this one has not read yet.
          const after = await snapshot(READ_PAUSE);
          if (after.name === before.name) throw error;
          return after.keys.find(kid, algorithm);
        }
      },
    } satisfies KeySet,
    /** Answers a request for the key set. */
    async publish(request: Request): Promise<Response> {
      const { issuer } = await snapshot();
      return issuer.fetch(request) ?? jsonReply(issuer.keySet);
    },
    /** Answers with the keys of the last two years, each with the time of its use. */
    async publishHistory(): Promise<Response> {
      const { published } = await snapshot();
      const present = published.flatMap((key) => pastOf(key, published) ?? []);
      const since = (now() - KEPT_PAST) / 1000;
      const past = (await ring.past()).filter(({ exp = since }) => exp > since);
      return jsonReply(
        { keys: [...present, ...past.filter(({ kid }) => present.every((key) => key.kid !== kid))] },
        { headers: { 'cache-control': 'public, max-age=300' } },
      );
    },
    /** See {@link Issuer.issue}. */
    async issue(claims: JWTPayload = {}, form?: Parameters<Issuer['issue']>[1]): Promise<string> {
      const exp = expiryOf(claims);
      return (await forSigning(exp)).issuer.issue({ ...claims, exp }, form);
    },
    /** See {@link Issuer.reply}. */
    async reply(claims: JWTPayload = {}, init?: Parameters<Issuer['reply']>[1]): Promise<Response> {
      const exp = expiryOf(claims);
      return (await forSigning(exp)).issuer.reply({ ...claims, exp }, init);
    },
    /**
     * The key that signs now, for a library that signs by itself.
     *
     * @param expiry the latest expiry of the token that is about to be signed, in seconds; the key ring notes it
     */
    signingKey: async (expiry: number): Promise<StoredKey> => (await forSigning(expiry)).signing,
  };
}

/** The services' addresses, without a trailing slash. Each is its service's issuer. */
export interface ServiceAddresses extends Record<Service, string> {
  /** `{base_url}`. */
  connectivity: string;
  /** `{portal_url}`. */
  portal: string;
  /** `{auth_url}`. */
  identity: string;
}

/** The addresses below one base address: the portal at `/portal`, the identity provider at `/auth`. */
export function addressesBelow(baseUrl: string): ServiceAddresses {
  const base = baseUrl.replace(/\/+$/, '');
  return { connectivity: base, portal: `${base}/portal`, identity: `${base}/auth` };
}

/** Makes the three issuers, with keys from the store or, the first time, new ones (ES256). */
export async function createIssuers(
  addresses: ServiceAddresses,
  options: Omit<KeyRingOptions, 'service'>,
): Promise<Record<Service, ServiceIssuer>> {
  const issuerOf = async (service: Service): Promise<ServiceIssuer> => {
    const ring = createKeyRing({ ...options, service });
    await ring.keys();
    return createServiceIssuer(addresses[service], ring, options.now);
  };
  const [connectivity, portal, identity] = await Promise.all([
    issuerOf('connectivity'),
    issuerOf('portal'),
    issuerOf('identity'),
  ]);
  return { connectivity, portal, identity };
}
