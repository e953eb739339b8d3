import type { ReservationStore } from '../allocator/store.ts';
import type { CiRules } from '../server/identity/ci-rules.ts';
import type { IdentityRecords } from '../server/identity/records.ts';
import type { KeyStore } from '../server/keys/key-ring.ts';
import type { Log } from '../server/log.ts';
import type { OwnerStore } from '../server/ownership.ts';
import type { Directory } from '../server/portal/directory.ts';
import type { PageSessionStore } from '../server/ui/sessions.ts';
import { ciRuleStore } from './ci-rules.ts';
import { directoryStore, ownerStore } from './directory.ts';
import { beginHistory, READ_HISTORY } from './history.ts';
import { identityRecordStore } from './identity-records.ts';
import { pageSessionStore } from './page-sessions.ts';
import { reservationStore } from './reservations.ts';
import { signingKeyStore } from './signing-keys.ts';
import type { Locking, ReadDatabase, SqlDatabase } from './sql.ts';
import { SQLITE_LOCKING, SqliteDatabase } from './sqlite/database.ts';
import { identityOf } from './sqlite/file.ts';
import { SERVER_FORMAT } from './sqlite/format.ts';

/** All that a server keeps, in one database. */
export interface Stores {
  readonly reservations: ReservationStore;
  readonly directory: Directory;
  readonly identityRecords: IdentityRecords;
  readonly ciRules: CiRules;
  readonly keys: KeyStore;
  readonly owners: OwnerStore;
  readonly pageSessions: PageSessionStore;
  /**
   * Names the history of the database's changes, as the latest connection found it. Copies of what was read under another
   * name must be read again; see `LinkReading.history`.
   */
  history(): string;
  /**
   * Checks that the database answers, by one cheap statement, and that it takes changes, by one in {@link WRITE_EVERY}: on a
   * full disk it still answers. Everyone may ask for it, so most calls write nothing.
   *
   * @throws StoreUnavailableError when it is away, slow, locked or full
   */
  ping(): Promise<void>;
  /** Waits for what is under way and closes the database. */
  close(): Promise<void>;
}

/** The SQLite file in a server's data folder. */
export const SERVER_FILE = 'slices-conn.sqlite';

/** Whether a database is named by the address of a PostgreSQL server; else it is a SQLite file. */
export function isPostgres(database: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(database);
}

/**
 * Opens a server's stores. PostgreSQL's driver is loaded only where it is needed.
 *
 * @param database `postgres://…`, a SQLite file, or `:memory:`
 * @param log is told when the database is made, what a failover would lose, and when the database was replaced
 * @throws DatabaseFormatError, StoreUnavailableError when the database can't be used
 */
export async function openStores(database: string, log?: Log): Promise<Stores> {
  if (!isPostgres(database)) {
    const file = await SqliteDatabase.open(database, SERVER_FORMAT);
    if (file.isNew && database !== ':memory:') log?.('info', 'database_made', { file: database });
    try {
      const place = identityOf(database);
      const known = await file.reader.first(READ_HISTORY);
      // A file that is up to date is not locked: other processes may be using it.
      if (known?.['value'] !== place)
        await file.transaction((sql) => beginHistory(sql, place, 'unixepoch()'));
    } catch (error) {
      await file.close();
      throw error;
    }
    return storesOn(file, SQLITE_LOCKING, { history: () => '', close: () => file.close() });
  }
  const { POSTGRES_LOCKING, PostgresDatabase } = await import('./postgres/database.ts');
  const server = await PostgresDatabase.open(database, {
    onNewHistory: (from, to) =>
      log?.('error', 'database_replaced', {
        why: `The database has another history, as after a failover: ${to} in place of ${from}. What was confirmed last may be lost. All of it is read again.`,
      }),
  });
  if (server.isNew) log?.('info', 'database_made', {});
  try {
    const why = log && (await server.failoverLoses());
    if (why !== undefined) log?.('info', 'failover_loses', { why });
  } catch (error) {
    await server.close();
    throw error;
  }
  return storesOn(server, POSTGRES_LOCKING, { history: () => server.history, close: () => server.close() });
}

/**
 * Opens a server's database to read it only, while servers may run on it: it holds up none.
 *
 * @param database `postgres://…`, or a SQLite file
 * @throws DatabaseFormatError when it is not a server's, or of another version: a reader does not bring it up to date
 * @throws StoreUnavailableError when it can't be read
 */
export async function openToRead(database: string): Promise<ReadDatabase> {
  if (!isPostgres(database)) return SqliteDatabase.openToRead(database, SERVER_FORMAT);
  const { PostgresDatabase } = await import('./postgres/database.ts');
  return PostgresDatabase.openToRead(database);
}

/** How long after a write `ping` writes again, in milliseconds. */
const WRITE_EVERY = 200;
/** A change for its own sake. SQLite writes nothing where all values are as they were, so one of them is counted up. */
const WRITE_NOTHING = `INSERT INTO attempt (key, began_ms, attempts) VALUES ('/readyz', 0, 1)
  ON CONFLICT (key) DO UPDATE SET attempts = attempt.attempts + 1`;

function storesOn(database: SqlDatabase, locking: Locking, own: Pick<Stores, 'history' | 'close'>): Stores {
  let writtenAt = Number.NEGATIVE_INFINITY;
  return {
    reservations: reservationStore(database, locking),
    directory: directoryStore(database),
    identityRecords: identityRecordStore(database),
    ciRules: ciRuleStore(database, locking),
    keys: signingKeyStore(database),
    owners: ownerStore(database),
    pageSessions: pageSessionStore(database),
    ping: async () => {
      await database.first('SELECT issuer FROM signing_key LIMIT 1');
      if (performance.now() - writtenAt < WRITE_EVERY) return;
      await database.run(WRITE_NOTHING);
      writtenAt = performance.now();
    },
    ...own,
  };
}
