import {
  closeSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { closeFile, unusableFile } from './private.ts';

/**
 * Writes a file whole or not at all: into a new file beside it first, then in its place at once. A reader never sees
 * half of it, the old content stays when the process is killed or the disk is full (HOSTILE.md 15), and the new content is
 * on the disk when this returns. A symbolic link is never followed: one in the file's place is replaced (HOSTILE.md 51).
 *
 * @param mode the file's, whatever the umask
 * @throws Error of the file system; what was there is intact then
 */
export function writeWhole(path: string, content: string | Uint8Array, mode: number): void {
  // A name that can't be guessed, and `wx`: another user can't have put a file there.
  const draft = `${path}.${crypto.randomUUID()}.tmp`;
  const file = openSync(draft, 'wx', mode);
  try {
    try {
      fchmodSync(file, mode);
      writeFileSync(file, content);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  onDisk(dirname(path));
}

/** Errors that are ignored: the folder can't be read, or the file system or Windows can't sync folders. */
const UNSYNCED = new Set(['EACCES', 'EPERM', 'EISDIR', 'EINVAL', 'ENOTSUP']);

/** Waits until a file's content, or a folder's list of names, is on the disk, where that can be waited for. */
export function onDisk(path: string): void {
  try {
    const handle = openSync(path, 'r');
    try {
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && UNSYNCED.has(String(error.code)))) throw error;
  }
}

/**
 * A private file's text; undefined where there is none.
 *
 * @throws Failure `state_unusable` when a symbolic link, another user's file or one that others can read stands there
 *   (HOSTILE.md 16): nothing in it may be trusted
 */
export function readPrivateFile(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  // Windows knows no such modes.
  if (found?.isFile() && process.getuid !== undefined && (found.mode & 0o044) !== 0) {
    throw unusableFile(path, 'Others could read it. Make it private: chmod 600.');
  }
  if (!closeFile(path)) return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw unusableFile(path, cause instanceof Error ? cause.message : String(cause));
  }
}

/**
 * Writes a private file, whole or not at all (HOSTILE.md 15).
 *
 * @throws Failure `state_unusable`; what was there is intact then
 */
export function writePrivateFile(path: string, text: string): void {
  try {
    writeWhole(path, text, 0o600);
  } catch (cause) {
    throw unusableFile(path, cause instanceof Error ? cause.message : String(cause));
  }
}
