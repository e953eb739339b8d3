import type { Service } from './key-ring.ts';
import { type KeyStore, newKey, type StoredKey } from './key-ring.ts';
import { newestOf, PUBLISHED_AHEAD, planKeys, publishedUntil } from './rotation-rules.ts';

/** A key's state, for people. Times are milliseconds since the Unix epoch. */
export interface KeyStatus {
  service: Service;
  kid: string;
  /** `next` is published and will sign; `old` is published and verifies what it has signed. */
  state: 'signing' | 'next' | 'old';
  signsFrom: number;
  /** For an old key: when it goes. */
  publishedUntil: number | undefined;
}

/**
 * Makes a service's next key, which signs 20 minutes later; one that is under way already is left to that. With
 * `retireNow` a new key signs at once, and every earlier one is removed: no token signed by one of them verifies
 * any more.
 *
 * @param now milliseconds since the Unix epoch
 * @returns the service's keys after that; none where no server has ever run on the database
 */
export async function rotateByHand(
  service: Service,
  store: KeyStore,
  { retireNow, now }: { retireNow: boolean; now: number },
): Promise<KeyStatus[]> {
  const newest = newestOf(await store.keys(service));
  if (!newest) return [];
  const next = newest.number + 1;
  if (retireNow) await store.replace(service, await newKey(next, now));
  else if (newest.signsFrom <= now) await store.add(service, await newKey(next, now + PUBLISHED_AHEAD));
  return statusOf(service, await store.keys(service), now);
}

function statusOf(service: Service, keys: readonly StoredKey[], now: number): KeyStatus[] {
  const { signing, published } = planKeys(keys, now);
  return published.map((key) => {
    const state = key === signing ? 'signing' : key.number > signing.number ? 'next' : 'old';
    return {
      service,
      kid: key.jwk.kid,
      state,
      signsFrom: key.signsFrom,
      publishedUntil: state === 'old' ? publishedUntil(keys, key) : undefined,
    };
  });
}
