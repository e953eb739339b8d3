import type { KeyStore, Service } from '../server/issuers.ts';
import type { PrivateJwk } from '../tokens/signing-key.ts';
import type { SqlDatabase, SqlReader } from './sql.ts';

/** The services' signing keys. The SQLite file's mode keeps them secret, or who may log in to PostgreSQL. */
export function signingKeyStore(database: SqlDatabase): KeyStore {
  return {
    existingKey: (service) => read(database.reader, service),
    signingKey: (service, candidate) =>
      database.transaction(async (sql) => {
        // Of two at once, the second waits here for the first, and then reads the first one's key.
        await sql.run(
          'INSERT INTO signing_key (issuer, jwk) VALUES ($1, $2) ON CONFLICT (issuer) DO NOTHING',
          service,
          JSON.stringify(candidate),
        );
        return (await read(sql, service)) ?? candidate;
      }),
  };
}

async function read(sql: SqlReader, service: Service): Promise<PrivateJwk | undefined> {
  const row = await sql.first('SELECT jwk FROM signing_key WHERE issuer = $1', service);
  return row && (JSON.parse(String(row['jwk'])) as PrivateJwk);
}
