import { type Adapter, type AdapterPayload, errors, Provider } from 'oidc-provider';
import { StoreUnavailableError } from '../../allocator/store.ts';
import { hash, type IdentityRecords } from './records.ts';

/** How long a rotated refresh token may be used once more, after a reply that was lost, in milliseconds. */
const REFRESH_GRACE = 30_000;

/** Marks an id that is a hash already, from `findByUserCode`. Codes and tokens don't hold a colon. */
const HASHED = 'sha256:';

/** The models that are stored. The others (sessions, interactions) are never made. */
const STORED_MODELS: readonly string[] = ['DeviceCode', 'AuthorizationCode', 'RefreshToken', 'Grant'];

/** A device code that was approved or denied already. */
export class AlreadyDecided extends Error {
  override readonly name = 'AlreadyDecided';
}

/** Options of {@link createAdapter}. */
export interface AdapterOptions {
  records: IdentityRecords;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Least time between two polls with one device code, in milliseconds. */
  interval: number;
}

/**
 * oidc-provider's storage over our records. It keeps hashes only, lets one redemption of a code win, gives a rotated
 * refresh token a short grace, and answers polls that come too fast (src/README.md, "The identity provider").
 */
export function createAdapter(model: string, { records, now, interval }: AdapterOptions): Adapter {
  return {
    upsert: guarded(async (id: string, payload: AdapterPayload) => {
      const { jti: _value, userCode, grantId, exp, ...rest } = payload;
      const saved = await records.save({
        model,
        key: keyOf(id),
        payload: { ...rest, exp, grantId },
        account: model.endsWith('Code') ? null : (payload.accountId ?? null),
        grant: grantId ?? null,
        userCode: userCode === undefined ? null : hash(userCode),
        decided: payload.accountId !== undefined || payload['error'] !== undefined,
        expiresAt: (exp ?? 0) * 1000,
      });
      if (!saved && model === 'DeviceCode') throw new AlreadyDecided();
    }),

    find: guarded(async (value: string) => {
      if (!STORED_MODELS.includes(model)) return undefined;
      // Always hash the value: a stored hash, sent as a token, must not be accepted.
      const record = await records.find(model, hash(value));
      if (!record) return undefined;
      const payload: AdapterPayload = { ...record.payload, jti: value };
      // It may have been prolonged since it was saved.
      if (model === 'Grant') payload.exp = Math.floor(record.expiresAt / 1000);
      const used = { ...payload, consumed: 1 };
      if (Provider.ctx?.oidc.route !== 'token') return record.consumedAt === null ? payload : used;
      if (model === 'DeviceCode') {
        // If the provider saw it as consumed, it would revoke the grant of the redemption that won.
        if (record.consumedAt !== null) throw new errors.InvalidGrant('device code already redeemed');
        if (!record.decided && !(await records.pace(record.key, now(), interval)))
          throw new errors.SlowDown('polled faster than the interval');
      }
      const reused = record.consumedAt !== null && (record.graceUntil ?? 0) < now();
      return model !== 'DeviceCode' && reused ? used : payload;
    }),

    findByUserCode: guarded(async (userCode: string) => {
      const record = await records.findByUserCode(hash(userCode));
      if (!record) return undefined;
      const consumed = record.consumedAt === null ? {} : { consumed: 1 };
      return { ...record.payload, userCode, jti: HASHED + record.key, ...consumed };
    }),

    findByUid: async () => undefined,

    consume: guarded(async (id: string) => {
      const won =
        model === 'RefreshToken'
          ? await records.rotate(keyOf(id), now(), REFRESH_GRACE)
          : await records.redeem(model, keyOf(id), now());
      if (!won) throw new errors.InvalidGrant('already used');
    }),

    destroy: guarded(async (id: string) => records.remove(model, keyOf(id))),
    revokeByGrantId: guarded(async (grant: string) => records.removeGrant(model, grant)),
  };
}

function keyOf(id: string): string {
  return id.startsWith(HASHED) ? id.slice(HASHED.length) : hash(id);
}

/** Turns an unavailable database into a 503 in the provider's own form. */
function guarded<Args extends unknown[], Answer>(
  work: (...args: Args) => Promise<Answer>,
): (...args: Args) => Promise<Answer> {
  return async (...args) => {
    try {
      return await work(...args);
    } catch (error) {
      throw error instanceof StoreUnavailableError ? unavailable(error) : error;
    }
  };
}

/** A 503 in the provider's own form, which says why. */
export function unavailable(cause: Error): Error {
  const error = new errors.OIDCProviderError(503, 'temporarily_unavailable');
  error.error_description = cause.message;
  error.expose = true;
  error.cause = cause;
  return error;
}
