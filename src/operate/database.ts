import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StoreUnavailableError } from '../allocator/store.ts';
import { Failure, moveAway, shellWord } from '../contract/failure.ts';
import { errorCode } from '../contract/foreign-errors.ts';
import { dataFolder } from '../files/private.ts';
import { refuseSeveralHosts } from '../store/postgres/connection.ts';
import { OtherVersionError } from '../store/schema.ts';
import { DatabaseFormatError } from '../store/sql.ts';
import { isPostgres, SERVER_FILE } from '../store/stores.ts';

/** Where a server's data is. */
export interface DataPlace {
  /** The address of PostgreSQL or the file that the stores are opened with. */
  database: string;
  /** With SQLite: the folder that holds the file. */
  folder?: string;
  /** With SQLite. */
  file?: string;
}

type Where = Pick<DataPlace, 'file' | 'database'>;

/**
 * Finds a server's data by `--data` and `--database`.
 *
 * @param defaultFolder is used when neither is given
 * @throws Failure `usage` for an address that can't be one, or that holds a password
 */
export function dataPlace(
  { data, database }: { data?: string; database?: string },
  defaultFolder: string,
): DataPlace {
  if (database !== undefined) return { database: databaseAddress(database) };
  const folder = data ?? defaultFolder;
  const file = join(folder, SERVER_FILE);
  return { database: file, folder, file };
}

/**
 * Finds the data of a server that has run before. Nothing is made: a missing file means that another folder was meant.
 *
 * @throws Failure `file_unusable` where there is none, and what {@link dataPlace} throws
 */
export function existingData(
  options: { data?: string; database?: string },
  defaultFolder: string,
): DataPlace {
  const place = dataPlace(options, defaultFolder);
  const { file, folder } = place;
  if (file !== undefined && !existsSync(file)) {
    throw new Failure('file_unusable', `There is no database at ${file}.`, {
      why: 'A server makes it when it starts. --data names the folder of another server.',
      fix: '--help',
    });
  }
  if (folder !== undefined) dataFolder(folder);
  return place;
}

/**
 * Checks the address of a PostgreSQL database. A failure does not repeat it: it may hold a password, and everyone on the
 * machine can see a password in an argument (THREATS.md 52).
 *
 * @returns the address, unchanged
 * @throws Failure `usage`, also for several hosts
 */
export function databaseAddress(text: string): string {
  const fix = { database: 'postgres://user@db.example.org/slices' };
  refuseSeveralHosts(text);
  if (!/^postgres(?:ql)?:\/\//i.test(text) || !URL.canParse(text)) {
    throw new Failure('usage', 'The value of --database is not the address of a PostgreSQL database.', {
      why: 'It must look like postgres://user@host:5432/name.',
      fix,
    });
  }
  const { password, searchParams } = new URL(text);
  if (password === '' && !searchParams.has('password')) return text;
  throw new Failure('usage', 'The address after --database holds a password.', {
    why: 'Everyone on this machine can see it there. Give it in PGPASSWORD, or in a file that PGPASSFILE names (default: ~/.pgpass).',
    fix,
  });
}

/**
 * Turns an error of a database into the Failure that is shown: `network` when a PostgreSQL server can't be reached,
 * `file_unusable` otherwise. Any other error is a bug, and is returned unchanged. The driver's messages name the server
 * and the user, never the password.
 *
 * @param place where the data is; its address has no password
 */
export function databaseFailure(cause: unknown, { file, database }: Where): unknown {
  if (!(cause instanceof Error) || cause instanceof Failure) return cause;
  const unavailable = cause instanceof StoreUnavailableError;
  const isKnown = unavailable || cause instanceof DatabaseFormatError;
  if (!isKnown && !['syscall', 'errcode', 'severity'].some((name) => name in cause)) return cause;
  const reason = unavailable && cause.cause instanceof Error ? cause.cause.message : cause.message;
  // SQLSTATE 42501: insufficient_privilege.
  const isForbidden = errorCode(cause) === '42501';
  const what = file === undefined ? 'The database' : `The database ${file}`;
  return new Failure(unavailable && !file ? 'network' : 'file_unusable', `${what} can't be used.`, {
    why: [reason || cause.message, ...(isForbidden ? [RIGHTS] : [])].join('. '),
    fix: nextStep(cause, { file, database }),
    cause,
  });
}

function nextStep(cause: Error, { file, database }: Where): string | undefined {
  const isOther = cause instanceof OtherVersionError;
  if (file) return isOther ? moveAway(file) : undefined;
  if (!isPostgres(database)) return undefined;
  const ask = isOther ? 'ALTER SCHEMA public RENAME TO other; CREATE SCHEMA public' : 'SELECT version()';
  return `psql ${shellWord(database)} -c ${shellWord(ask)}`;
}

/** The rights that a role of PostgreSQL needs. */
const RIGHTS = 'The role must own the database, or have CREATE on it and on its schema public.';
