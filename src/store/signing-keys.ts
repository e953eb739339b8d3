import type { PastJwk } from '../contract/claims.ts';
import type { KeyStore, Service, StoredKey } from '../server/keys/key-ring.ts';
import { changed, type SqlDatabase, type SqlRow, type SqlStatements } from './sql.ts';

/** The services' signing keys. The mode of the SQLite file, or the logins of PostgreSQL, keep them secret. */
export function signingKeyStore(database: SqlDatabase): KeyStore {
  return {
    async keys(service) {
      const rows = await database.reader.all(
        'SELECT key_number, signs_ms, expiry_ms, jwk FROM signing_key WHERE issuer = $1 ORDER BY key_number',
        service,
      );
      return rows.map(toKey);
    },

    add: (service, { number, signsFrom, lastExpiry, jwk }) =>
      database.run(
        `${INSERT} WHERE NOT EXISTS (SELECT 1 FROM signing_key WHERE issuer = $1 AND key_number >= $2)
         ON CONFLICT (issuer, key_number) DO NOTHING`,
        service,
        number,
        JSON.stringify(jwk),
        signsFrom,
        lastExpiry,
      ),

    note: (service, number, expiry) =>
      changed(
        database,
        `UPDATE signing_key SET expiry_ms = CASE WHEN expiry_ms > $3 THEN expiry_ms ELSE $3 END
         WHERE issuer = $1 AND key_number = $2 RETURNING key_number`,
        service,
        number,
        expiry,
      ),

    forget: (service, { number, lastExpiry }, past) =>
      database.transaction(async (sql) => {
        const isDeleted = await changed(
          sql,
          `DELETE FROM signing_key WHERE issuer = $1 AND key_number = $2 AND expiry_ms <= $3
           RETURNING key_number`,
          service,
          number,
          lastExpiry,
        );
        if (isDeleted) await keepPast(sql, service, number, past);
      }),

    async past(service) {
      const rows = await database.reader.all(
        'SELECT jwk FROM signing_key WHERE issuer = $1 ORDER BY key_number',
        besides(service),
      );
      return rows.map(({ jwk }) => JSON.parse(String(jwk)));
    },

    replace: (service, { number, signsFrom, lastExpiry, jwk }, pastOf = () => undefined) =>
      database.transaction(async (sql) => {
        const rows = await sql.all(
          `DELETE FROM signing_key WHERE issuer = $1 AND key_number < $2
           RETURNING key_number, signs_ms, expiry_ms, jwk`,
          service,
          number,
        );
        const gone = rows.map(toKey);
        for (const each of gone) await keepPast(sql, service, each.number, pastOf(each, gone));
        // A key that another process made meanwhile, to sign later, signs now.
        await sql.run(
          `${INSERT} WHERE NOT EXISTS (SELECT 1 FROM signing_key WHERE issuer = $1 AND key_number > $2)
           ON CONFLICT (issuer, key_number) DO UPDATE
             SET signs_ms = CASE WHEN signing_key.signs_ms < $4 THEN signing_key.signs_ms ELSE $4 END`,
          service,
          number,
          JSON.stringify(jwk),
          signsFrom,
          lastExpiry,
        );
      }),
  };
}

const INSERT = `INSERT INTO signing_key (issuer, key_number, jwk, signs_ms, expiry_ms)
  SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS TEXT), CAST($4 AS BIGINT), CAST($5 AS BIGINT)`;

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
  const row = [besides(service), number, JSON.stringify(past), past.nbf * 1000, 0];
  await sql.run(`${INSERT} WHERE TRUE ON CONFLICT (issuer, key_number) DO NOTHING`, ...row);
}

function toKey(row: SqlRow): StoredKey {
  return {
    number: Number(row['key_number']),
    signsFrom: Number(row['signs_ms']),
    lastExpiry: Number(row['expiry_ms']),
    jwk: JSON.parse(String(row['jwk'])),
  };
}
