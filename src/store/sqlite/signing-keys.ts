import type { KeyStore, Service } from '../../server/issuers.ts';
import type { PrivateJwk } from '../../tokens/signing-key.ts';
import type { SqliteDatabase, SqliteTransaction } from './database.ts';

/** The services' signing keys on SQLite; the file's mode keeps them secret. */
export function sqliteSigningKeys(database: SqliteDatabase): KeyStore {
  return {
    existingKey: (service) => database.transaction(async (sql) => read(sql, service)),
    signingKey: (service, candidate) =>
      database.transaction(async (sql) => {
        sql.run(
          'INSERT INTO signing_key (issuer, jwk) VALUES ($1, $2) ON CONFLICT (issuer) DO NOTHING',
          service,
          JSON.stringify(candidate),
        );
        return read(sql, service) ?? candidate;
      }),
  };
}

function read(sql: SqliteTransaction, service: Service): PrivateJwk | undefined {
  const row = sql.first('SELECT jwk FROM signing_key WHERE issuer = $1', service);
  return row && (JSON.parse(String(row['jwk'])) as PrivateJwk);
}
