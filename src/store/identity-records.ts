import type { IdentityRecord, IdentityRecords } from '../server/identity/records.ts';
import { returnsRow, type SqlDatabase } from './sql.ts';

const RECORD = `model, key, payload, grant_key AS "grant", user_code AS "userCode", decided, consumed_ms AS "consumedAt",
  grace_ms AS "graceUntil", expires_ms AS "expiresAt", account, used_ms AS "usedAt"`;

/** The effect of saving a record again: a device code is decided once, a refresh token has one successor, an ID token is used once. */
const ON_CONFLICT: Readonly<Record<string, string>> = {
  DeviceCode: `DO UPDATE SET payload = excluded.payload, grant_key = excluded.grant_key, decided = excluded.decided
    WHERE identity_record.decided = 0 AND identity_record.consumed_ms IS NULL`,
  RefreshToken: 'DO NOTHING',
  IdToken: 'DO NOTHING',
};

/** The identity provider's records. One statement redeems a code or token, so that one of many concurrent requests wins. */
export function identityRecordStore(database: SqlDatabase): IdentityRecords {
  const found = async (where: string, values: object): Promise<IdentityRecord[]> =>
    (
      await database.reader.all<RecordRow>(`SELECT ${RECORD} FROM identity_record WHERE ${where}`, values)
    ).map((row) => ({ ...row, payload: JSON.parse(row.payload), decided: row.decided === 1 }));
  return {
    async save(record) {
      const onConflict =
        ON_CONFLICT[record.model] ??
        'DO UPDATE SET payload = excluded.payload, grant_key = excluded.grant_key, expires_ms = excluded.expires_ms';
      return returnsRow(
        database,
        `INSERT INTO identity_record (model, key, payload, grant_key, user_code, decided, expires_ms, account)
         VALUES ($model, $key, $payload, $grant, $userCode, $decided, $expiresAt, $account)
         ON CONFLICT (model, key) ${onConflict} RETURNING key`,
        { ...record, payload: JSON.stringify(record.payload), decided: record.decided ? 1 : 0 },
      );
    },

    find: async (model, key) => (await found('model = $model AND key = $key', { model, key }))[0],
    findByUserCode: async (userCode) => (await found('user_code = $userCode', { userCode }))[0],
    loginsOf: (account, now) =>
      found(
        `account = $account AND model IN ('Grant', 'RefreshToken') AND consumed_ms IS NULL AND expires_ms > $now`,
        { account, now },
      ),

    use: (key, now) =>
      database.run(
        `UPDATE identity_record SET used_ms = $now
         WHERE model = 'RefreshToken' AND key = $key AND (used_ms IS NULL OR used_ms < CAST($now AS BIGINT) - 60000)`,
        { key, now },
      ),

    prolong: (model, key, until) =>
      database.run(
        'UPDATE identity_record SET expires_ms = $until WHERE model = $model AND key = $key AND expires_ms < $until',
        { model, key, until },
      ),

    remove: (model, key) =>
      database.run('DELETE FROM identity_record WHERE model = $model AND key = $key', { model, key }),
    removeGrant: (model, grant) =>
      database.run('DELETE FROM identity_record WHERE model = $model AND grant_key = $grant', {
        model,
        grant,
      }),
    purge: (expiredBefore, beganBefore) =>
      database.transaction(async (sql) => {
        await sql.run('DELETE FROM identity_record WHERE expires_ms < $expiredBefore', { expiredBefore });
        await sql.run('DELETE FROM attempt WHERE began_ms < $beganBefore', { beganBefore });
      }),

    ...redemptions(database),
    ...countedAttempts(database),
  };
}

/** Codes and tokens are redeemed once, and a device code is polled no faster than its pace. */
function redemptions(database: SqlDatabase): Pick<IdentityRecords, 'redeem' | 'rotate' | 'pace'> {
  return {
    redeem: (model, key, now) =>
      returnsRow(
        database,
        `UPDATE identity_record SET consumed_ms = $now
         WHERE model = $model AND key = $key AND consumed_ms IS NULL RETURNING key`,
        { model, key, now },
      ),

    rotate: (key, now, grace) =>
      database.transaction(async (sql) => {
        const used = await sql.first(
          `UPDATE identity_record SET consumed_ms = $now, grace_ms = $until
           WHERE model = 'RefreshToken' AND key = $key AND consumed_ms IS NULL RETURNING grant_key`,
          { key, now, until: now + grace },
        );
        if (used) {
          // The client has this token, so the reply that carried it arrived: its predecessor needs no grace any more.
          await sql.run(
            `UPDATE identity_record SET grace_ms = 0
             WHERE model = 'RefreshToken' AND grant_key = $grant AND key <> $key AND grace_ms > 0`,
            { grant: used['grant_key'], key },
          );
          return true;
        }
        return returnsRow(
          sql,
          "SELECT 1 FROM identity_record WHERE model = 'RefreshToken' AND key = $key AND grace_ms >= $now",
          { key, now },
        );
      }),

    pace: (key, now, interval) =>
      returnsRow(
        database,
        `UPDATE identity_record SET polled_ms = CAST($interval AS BIGINT) +
           CASE WHEN polled_ms > $now THEN polled_ms ELSE CAST($now AS BIGINT) END
         WHERE model = 'DeviceCode' AND key = $key
           AND (polled_ms IS NULL OR polled_ms <= CAST($now AS BIGINT) + CAST($interval AS BIGINT) / 2)
         RETURNING key`,
        { key, now, interval },
      ),
  };
}

/** Shared secrets, and attempts that are counted for all replicas. */
function countedAttempts(
  database: SqlDatabase,
): Pick<IdentityRecords, 'secret' | 'count' | 'attempts' | 'uncount'> {
  return {
    secret: (name, candidate) =>
      database.transaction(async (sql) => {
        const value = Buffer.from(candidate).toString('base64url');
        await sql.run(
          'INSERT INTO shared_secret (name, value) VALUES ($name, $value) ON CONFLICT DO NOTHING',
          {
            name,
            value,
          },
        );
        const kept = await sql.first('SELECT value FROM shared_secret WHERE name = $name', { name });
        return Buffer.from(String(kept?.['value']), 'base64url');
      }),

    async count(key, now, window) {
      const row = await database.first(
        `INSERT INTO attempt (key, began_ms, attempts) VALUES ($key, $now, 1) ON CONFLICT (key) DO UPDATE SET
           attempts = CASE WHEN attempt.began_ms + $window <= $now THEN 1 ELSE attempt.attempts + 1 END,
           began_ms = CASE WHEN attempt.began_ms + $window <= $now THEN $now ELSE attempt.began_ms END
         RETURNING began_ms, attempts`,
        { key, now, window },
      );
      return { attempts: Number(row?.['attempts']), began: Number(row?.['began_ms']) };
    },

    async attempts(key, now, window) {
      const row = await database.reader.first(
        'SELECT began_ms, attempts FROM attempt WHERE key = $key AND began_ms > $since',
        { key, since: now - window },
      );
      return { attempts: Number(row?.['attempts'] ?? 0), began: Number(row?.['began_ms'] ?? now) };
    },

    uncount: (key) =>
      database.run('UPDATE attempt SET attempts = attempts - 1 WHERE key = $key AND attempts > 0', { key }),
  };
}

type RecordRow = Omit<IdentityRecord, 'payload' | 'decided'> & { payload: string; decided: number };
