/** The meaning of an error of the operating system for people, by its code. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  EACCES: 'This user has no right to it.',
  EADDRNOTAVAIL: 'This machine does not have this address.',
  EDQUOT: 'The quota of this user on the disk is used up.',
  EEXIST: 'It exists already.',
  EIO: 'The disk does not work.',
  EISDIR: 'It is a folder.',
  ELOOP: 'Its symbolic links lead in a circle.',
  EMFILE: 'Too many files are open.',
  ENAMETOOLONG: 'Its name is too long.',
  ENOENT: 'It does not exist.',
  ENOSPC: 'The disk is full.',
  ENOTDIR: 'A part of its path is a file, not a folder.',
  EPERM: 'This user has no right to it.',
  EROFS: 'It is on a disk that can only be read.',
};

/** The same for SQLite, by its primary result code (https://sqlite.org/rescode.html). */
const SQLITE_ERRORS: Readonly<Record<number, string>> = {
  8: 'It, or its folder, can only be read.',
  10: 'The disk does not work.',
  13: 'The disk is full.',
};

/** The code of an error of the system or of a library, such as `ENOENT`; empty where it has none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Whether an error is a mistake in a program. Errors of the network are of other classes, except those of a `fetch`. */
export function isMistake(error: unknown): boolean {
  return [RangeError, ReferenceError, SyntaxError, TypeError].some((kind) => error instanceof kind);
}

/** Why something failed, for people: errors of the operating system and of OpenSSL by their codes, others by their message. */
export function systemReason(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const code = errorCode(cause);
  if (code.startsWith('ERR_OSSL_')) return 'It is not in PEM, or it is damaged.';
  return reasonOfSystem(cause) ?? cause.message;
}

/** Why the disk or the system refused, in an error or one behind it; undefined for other errors, such as one about a file's content. */
export function reasonOfSystem(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) return undefined;
  if ('syscall' in cause) return SYSTEM_ERRORS[errorCode(cause)];
  return ('errcode' in cause && SQLITE_ERRORS[Number(cause.errcode) & 0xff]) || reasonOfSystem(cause.cause);
}

/**
 * A value that was refused by a library, in one form for all: its place, then what it must be.
 *
 * @param text what commander says of a flag's value, or valibot of a member
 * @example refusedValue('--state foo', 'Allowed choices are a, b.') // '--state foo: it must be one of a, b.'
 */
export function refusedValue(place: string, text: string): string {
  const said = text
    .replace(/^Allowed choices are /, 'It must be one of ')
    .replace(/^Invalid [\w ]+: Expected \S+ but received undefined$/, 'It is missing')
    .replace(/^Invalid [\w ]+: Expected (.+) but received (.+)$/, 'It must be $1, and is $2');
  return `${place}: ${said.charAt(0).toLowerCase()}${said.slice(1)}`;
}
