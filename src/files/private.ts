import type { Stats } from 'node:fs';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Failure, moveAway, shellWord } from '../contract/failure.ts';
import { reasonOfSystem, systemReason } from '../contract/foreign-errors.ts';
import { NO_HOME } from './home.ts';
import { onDisk } from './on-disk.ts';

/** Writable by the group, and by everyone. Windows has neither modes nor user numbers, so nothing is checked there. */
const GROUP_WRITES = 0o020;
const ALL_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Makes a folder that only its owner can enter, or makes an existing one so (THREATS.md 16, 51).
 *
 * @returns the path
 * @throws Failure `state_unusable` when a symbolic link or something else stands there, when it belongs to someone
 *   else, when others could replace a folder above it, or when it can't be made
 */
export function privateFolder(path: string): string {
  return checkedFolder(path, (found) => {
    if ((found.mode & 0o077) !== 0) chmodSync(path, 0o700);
  });
}

/**
 * Makes a folder for data that a person named, mode 0700, or checks an existing one. It may have other uses, so its
 * mode is not changed: it is refused when others can write to it (THREATS.md 51).
 *
 * @returns the path
 * @throws Failure `state_unusable` as `privateFolder`
 */
export function dataFolder(path: string): string {
  return checkedFolder(path, (found) => {
    if ((found.mode & (GROUP_WRITES | ALL_WRITE)) === 0) return;
    throw unusableFolder(path, 'Others can write to it, so they could have put files there.', {
      fix: `chmod go-w ${shellWord(path)}`,
    });
  });
}

function checkedFolder(path: string, judge: (found: Stats) => void): string {
  try {
    makeFolders(path);
    // With a slash at its end, a symbolic link would be followed.
    const found = lstatSync(resolve(path));
    if (!found.isDirectory()) throw unusableFolder(path, 'It is not a folder, or a symbolic link to one.');
    if (process.getuid === undefined) return path;
    if (found.uid !== process.getuid()) throw unusableFolder(path, 'It belongs to another user.');
    checkAbove(path);
    judge(found);
    return path;
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw unusableFolder(path, systemReason(cause));
  }
}

/**
 * Others who can write to a folder above can put another folder in the place of ours. As in OpenSSH, the mode of every
 * one of them counts. Two are allowed: a sticky one such as `/tmp`, where only owners rename, and one whose group has
 * the user's own number, as where each user has a group alone. Its owner is not judged: containers show root's folders
 * under any number.
 */
function checkAbove(path: string): void {
  for (let folder = dirname(realpathSync.native(path)); ; folder = dirname(folder)) {
    const { mode, gid } = statSync(folder);
    const others = gid === 0 || gid === process.getuid?.() ? ALL_WRITE : ALL_WRITE | GROUP_WRITES;
    if ((mode & others) !== 0 && (mode & STICKY) === 0) {
      throw unusableFolder(path, `Others can write to ${folder}, so they could replace what is in it.`, {
        fix: `chmod go-w ${shellWord(folder)}`,
      });
    }
    if (dirname(folder) === folder) return;
  }
}

/**
 * Makes a folder and those above it that are missing; their names are on the disk when this returns. It is not mkdir's own
 * recursion, which never ends below a folder such as /proc, where nothing can be made.
 *
 * @param mode of the folders that are made, less the umask
 */
export function makeFolders(path: string, mode = 0o700): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolders(parent, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have been quicker.
    if (!existsSync(path)) throw error;
  }
  // Else a power cut takes the folder, and all that is synced in it.
  onDisk(parent);
}

/**
 * Why a file or folder can't be trusted, although its folder is this user's own (THREATS.md 16, 51); undefined when it
 * can be.
 *
 * @param found what `lstat` says of it
 */
function foreignFault(found: Stats): string | undefined {
  if (process.getuid === undefined) return undefined;
  if (found.uid !== process.getuid()) return 'It belongs to another user.';
  const writable = (found.mode & (GROUP_WRITES | ALL_WRITE)) !== 0;
  return writable ? 'Others can write to it, so they could have changed it.' : undefined;
}

/**
 * The state of a file's place; undefined where it is empty.
 *
 * @throws Failure `state_unusable` that names what is in the way, such as a file in the place of a folder
 */
function foundAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    let above = dirname(path);
    while (!existsSync(above)) above = dirname(above);
    if (statSync(above).isDirectory()) throw unusableFile(path, cause);
    throw unusableFolder(above, 'It is not a folder.', { fix: moveAway(above) });
  }
}

/**
 * Checks a file before it is opened: it must be this user's own, and others must not be able to write to it.
 * One that others can only read is closed to them: mode 0600.
 *
 * @returns whether there is one
 * @throws Failure `state_unusable` when a symbolic link, another user's file or one that others can write to stands
 *   there (THREATS.md 16, 51)
 */
export function makePrivate(path: string): boolean {
  const found = foundAt(path);
  if (!found) return false;
  if (!found.isFile()) throw unusableFile(path, 'It is not a file, or a symbolic link to one.');
  const fault = foreignFault(found);
  if (fault !== undefined) throw unusableFile(path, fault, found.uid === process.getuid?.());
  if (process.getuid !== undefined && (found.mode & 0o777) !== 0o600) chmodSync(path, 0o600);
  return true;
}

/**
 * A private folder for what can be made anew, such as compiled code. Everything in it is removed first where others could
 * write to it, or where one file or folder in it is not this user's alone (THREATS.md 51). Folders in it are not looked
 * into: nothing of one is read before this was asked about it too.
 *
 * @returns the path
 * @throws Failure as `privateFolder`; Error of the file system when another's files can't be removed
 */
export function cacheFolder(path: string): string {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() && (foreignFault(found) !== undefined || holdsForeign(path))) {
    rmSync(path, { recursive: true });
  }
  return privateFolder(path);
}

function holdsForeign(folder: string): boolean {
  return readdirSync(folder).some((name) => {
    // Another process may have put a draft in its place meanwhile.
    const found = lstatSync(join(folder, name), { throwIfNoEntry: false });
    if (!found) return false;
    return foreignFault(found) !== undefined || !(found.isDirectory() || found.isFile());
  });
}

function unusableFolder(path: string, reason: string, facts: { fix?: string } = {}): Failure {
  const isHomeless = path.startsWith(NO_HOME);
  const why = isHomeless ? 'This user has no home folder. Set HOME to the absolute path of one.' : reason;
  return new Failure('state_unusable', `The folder ${path} can't be used.`, { why, ...facts });
}

/**
 * The failure of a file of ours that can't be read or written. It is never deleted (THREATS.md 17), and moved away only for
 * what is in it: where the disk is at fault, the file is sound.
 *
 * @param fault a sentence, or the error; a failure stays as it is
 * @param isOpen whether its owner only has to look at it and close it to others
 */
export function unusableFile(path: string, fault: unknown, isOpen = false): Failure {
  if (fault instanceof Failure) return fault;
  const why = systemReason(fault);
  const [next, fix] = isOpen
    ? ['Look at what is in it, then close it to others.', `chmod 600 ${shellWord(path)}`]
    : ['Repair it, or move it away.', moveAway(path)];
  const isOfDisk = reasonOfSystem(fault) !== undefined;
  return new Failure('state_unusable', `The file ${path} can't be used.`, {
    ...(isOfDisk ? { why, cause: fault } : { why: `${why} ${next}`, fix }),
  });
}
