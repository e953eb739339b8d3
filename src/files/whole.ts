import {
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemReason } from '../contract/foreign-errors.ts';
import { readBounded } from './bounded.ts';
import { onDisk } from './on-disk.ts';
import { makePrivate, unusableFile } from './private.ts';

/**
 * Writes a file whole or not at all: into a new file beside it first, then in its place at once. A reader never sees
 * half of it, the old content stays when the process is killed or the disk is full (THREATS.md 15), and the new content is
 * on the disk when this returns. A symbolic link is never followed: one in the file's place is replaced (THREATS.md 51).
 *
 * @param mode the file's, whatever the umask
 * @throws Error of the file system; what was there is intact then
 */
export function writeWhole(path: string, content: string | Uint8Array, mode: number): void {
  replaceWhole(path, (draft) => {
    // `wx`: another user can't have put a file there.
    const file = openSync(draft, 'wx', mode);
    try {
      fchmodSync(file, mode);
      writeFileSync(file, content);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  });
}

/**
 * Replaces a file as {@link writeWhole} does.
 *
 * @param write writes the content to the path that it is given, which has a name that can't be guessed; it must be on the
 *   disk when this returns
 * @throws whatever `write` throws; Error of the file system; what was there is intact then
 */
export function replaceWhole(path: string, write: (draft: string) => void): void {
  const draft = `${path}.${crypto.randomUUID()}.tmp`;
  try {
    write(draft);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  onDisk(dirname(path));
}

/** The end of a draft's name. What writes the draft may write into another one first, with a longer name. */
const DRAFT = /^\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp/;

/**
 * Removes the drafts of a file that are left where a process or the machine stopped while it was written. The caller holds
 * a lock under which alone the file is written.
 *
 * @throws Error of the file system
 */
export function removeDrafts(path: string): void {
  const [folder, name] = [dirname(path), basename(path)];
  for (const each of readdirSync(folder)) {
    if (each.startsWith(name) && DRAFT.test(each.slice(name.length)))
      rmSync(join(folder, each), { force: true });
  }
}

/** Removes a file, where there is one; after a power cut it does not come back. @throws Error of the file system */
export function removeFile(path: string): void {
  rmSync(path, { force: true });
  if (existsSync(dirname(path))) onDisk(dirname(path));
}

/**
 * A private file's text; undefined where there is none. As every file of ours, a file that others can only read is
 * closed to them: its folder is private.
 *
 * @throws Failure `state_unusable` when a symbolic link, another user's file or one that others can write to stands there:
 *   nothing in it may be trusted
 */
export function readPrivateFile(path: string): string | undefined {
  if (!makePrivate(path)) return undefined;
  try {
    return readBounded(path).toString();
  } catch (cause) {
    throw unusableFile(path, systemReason(cause));
  }
}

/**
 * Writes a private file, whole or not at all (THREATS.md 15).
 *
 * @throws Failure `state_unusable`; what was there is intact then
 */
export function writePrivateFile(path: string, text: string): void {
  try {
    writeWhole(path, text, 0o600);
  } catch (cause) {
    throw unusableFile(path, systemReason(cause));
  }
}
