import type { PastJwk } from '../contract/claims.ts';
import type { KeyStore, Service, StoredKey } from '../server/keys/key-ring.ts';
import { returnsRow, type SqlDatabase, type SqlStatements } from './sql.ts';

const KEY = 'key_number AS "number", signs_ms AS "signsFrom", expiry_ms AS "lastExpiry", jwk';

/** The services' signing keys. The mode of the SQLite file, or the logins of PostgreSQL, keep them secret. */
export function signingKeyStore(database: SqlDatabase): KeyStore {
  return {
    async keys(service) {
      const rows = await database.reader.all<KeyRow>(
        `SELECT ${KEY} FROM signing_key WHERE issuer = $service ORDER BY key_number`,
        { service },
      );
      return rows.map(toKey);
    },

    add: (service, key) =>
      database.run(
        `${INSERT} WHERE NOT EXISTS (SELECT 1 FROM signing_key WHERE issuer = $service AND key_number >= $number)
         ON CONFLICT (issuer, key_number) DO NOTHING`,
        { ...key, service, jwk: JSON.stringify(key.jwk) },
      ),

    note: (service, number, expiry) =>
      returnsRow(
        database,
        `UPDATE signing_key SET expiry_ms = CASE WHEN expiry_ms > $expiry THEN expiry_ms ELSE $expiry END
         WHERE issuer = $service AND key_number = $number RETURNING key_number`,
        { service, number, expiry },
      ),

    forget: (service, { number, lastExpiry }, past) =>
      database.transaction(async (sql) => {
        const isDeleted = await returnsRow(
          sql,
          `DELETE FROM signing_key WHERE issuer = $service AND key_number = $number AND expiry_ms <= $lastExpiry
           RETURNING key_number`,
          { service, number, lastExpiry },
        );
        if (isDeleted) await keepPast(sql, service, number, past);
      }),

    async past(service) {
      const rows = await database.reader.all(
        'SELECT jwk FROM signing_key WHERE issuer = $past ORDER BY key_number',
        { past: besides(service) },
      );
      return rows.map(({ jwk }) => JSON.parse(String(jwk)));
    },

    replace: (service, key, pastOf = () => undefined) =>
      database.transaction(async (sql) => {
        const values = { ...key, service, jwk: JSON.stringify(key.jwk) };
        const rows = await sql.all<KeyRow>(
          `DELETE FROM signing_key WHERE issuer = $service AND key_number < $number
           RETURNING ${KEY}`,
          values,
        );
        const gone = rows.map(toKey);
        for (const each of gone) await keepPast(sql, service, each.number, pastOf(each, gone));
        // A key that another process made meanwhile, to sign later, signs now.
        await sql.run(
          `${INSERT} WHERE NOT EXISTS (SELECT 1 FROM signing_key WHERE issuer = $service AND key_number > $number)
           ON CONFLICT (issuer, key_number) DO UPDATE SET
             signs_ms = CASE WHEN signing_key.signs_ms < $signsFrom THEN signing_key.signs_ms ELSE $signsFrom END`,
          values,
        );
      }),
  };
}

const INSERT = `INSERT INTO signing_key (issuer, key_number, jwk, signs_ms, expiry_ms)
  SELECT CAST($service AS TEXT), CAST($number AS BIGINT), CAST($jwk AS TEXT), CAST($signsFrom AS BIGINT),
    CAST($lastExpiry AS BIGINT)`;

/** The rows of a service's keys that were removed are beside those that it has: their public parts, which sign nothing. */
function besides(service: Service): string {
  return `past ${service}`;
}

async function keepPast(
  sql: SqlStatements,
  service: Service,
  number: number,
  past: PastJwk | undefined,
): Promise<void> {
  if (past === undefined) return;
  await sql.run(`${INSERT} WHERE TRUE ON CONFLICT (issuer, key_number) DO NOTHING`, {
    service: besides(service),
    number,
    jwk: JSON.stringify(past),
    signsFrom: past.nbf * 1000,
    lastExpiry: 0,
  });
}

type KeyRow = Omit<StoredKey, 'jwk'> & { jwk: string };

function toKey(row: KeyRow): StoredKey {
  return { ...row, jwk: JSON.parse(row.jwk) };
}
