import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
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
  replaceWhole(path, (draft) => writeDraft(draft, content, 'wx', mode));
}

/** @param flag `wx` for a new file: another user can't have put one there; `r+` to write over the draft that is there */
function writeDraft(
  draft: string,
  content: string | Uint8Array,
  flag: 'wx' | 'r+' = 'wx',
  mode = 0o600,
): void {
  const file = openSync(draft, flag, mode);
  try {
    fchmodSync(file, mode);
    writeFileSync(file, content);
    // After the content: what is cut off first might be lost to another file.
    ftruncateSync(file, Buffer.byteLength(content));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Replaces a file as {@link writeWhole} does.
 *
 * @param write writes the content to the path that it is given, which has a name that can't be guessed; it must be on the
 *   disk when this returns
 * @throws whatever `write` throws; Error of the file system; what was there is intact then
 */
function replaceWhole(path: string, write: (draft: string) => void, draft = draftOf(path)): void {
  try {
    write(draft);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  onDisk(dirname(path));
}

/** The path of a new draft of a file, which can't be guessed. */
const draftOf = (path: string): string => `${path}.${crypto.randomUUID()}.tmp`;

/** The end of a draft's name, ours or conf's. */
const DRAFT = /^\.(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp|tmp-\d{10}[0-9a-f]{6})$/;

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
    throw unusableFile(path, cause);
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
    throw unusableFile(path, cause);
  }
}

/** The least room that {@link takeRoom} takes, in bytes: more than the tokens of any provider. */
const ROOM = 65_536;

/**
 * Takes room on the disk for the next content of a private file, before something is done whose result must not be lost.
 *
 * @returns what puts the content in the file's place, and what gives the room back
 * @throws Failure `state_unusable` where the disk or the folder does not take it
 */
export function takeRoom(path: string): { fill: (text: string) => void; leave: () => void } {
  const draft = draftOf(path);
  const leave = () => rmSync(draft, { force: true });
  try {
    // Random: a file system may store a run of equal bytes without room for them.
    writeDraft(
      draft,
      randomBytes(Math.max(ROOM, 2 * (statSync(path, { throwIfNoEntry: false })?.size ?? 0))),
    );
  } catch (cause) {
    leave();
    throw unusableFile(path, cause);
  }
  return {
    leave,
    fill(text) {
      try {
        replaceWhole(path, () => writeDraft(draft, text, 'r+'), draft);
      } catch (cause) {
        throw unusableFile(path, cause);
      }
    },
  };
}
