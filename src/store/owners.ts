import type { OwnerStore } from '../server/ownership.ts';
import type { SqlDatabase } from './sql.ts';

/** The issuer that each id of a project or an experiment belongs to. Rows are never updated. */
export function ownerStore(database: SqlDatabase): OwnerStore {
  return {
    async claim(id, issuer) {
      const kept = await database.reader.first('SELECT issuer FROM owner WHERE id = $1', id);
      if (kept) return String(kept['issuer']);
      // Another replica may have inserted it meanwhile: then its row stays and is returned.
      const claimed = await database.first(
        `INSERT INTO owner (id, issuer) VALUES ($1, $2)
         ON CONFLICT (id) DO UPDATE SET issuer = owner.issuer RETURNING issuer`,
        id,
        issuer,
      );
      return String(claimed?.['issuer']);
    },
  };
}
