import { accessSync, constants, existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { ShellHome, UserFiles } from '../cli/world.ts';
import { Failure } from '../contract/failure.ts';
import { readBounded, readBoundedStream } from '../files/bounded.ts';
import { makeFolders } from '../files/private.ts';
import { removeFile, writeWhole } from '../files/whole.ts';
import type { Environment } from '../session/profiles/folders.ts';

/** The files that a person names on the command line, on disk. */
export const files: UserFiles = {
  async read(path) {
    try {
      return path === '-' ? await readBoundedStream(process.stdin) : readBounded(path);
    } catch (cause) {
      throw fileFailure('read', path, cause);
    }
  },
  async makeFolder(path) {
    try {
      makeFolders(path);
    } catch (cause) {
      throw fileFailure('made', path, cause);
    }
  },
  async remove(path) {
    try {
      removeFile(path);
    } catch (cause) {
      throw fileFailure('removed', path, cause);
    }
  },
  async checkAbsent(path) {
    if (existsSync(path))
      throw fileFailure('written', path, new Error('It exists already. Move it away first.'));
  },
  exists: async (path) => existsSync(path),
  async checkWritable(path) {
    try {
      accessSync(dirname(path), constants.W_OK);
      if (existsSync(path) && !statSync(path).isFile()) throw new Error('It is not a file.');
    } catch (cause) {
      throw fileFailure('written', path, cause);
    }
  },
  writePrivate: async (path, text) => write(path, text, 0o600),
  writePublic: async (path, text) => write(path, text, 0o644),
  async contentBelow(folder, path) {
    try {
      const place = placeBelow(folder, path, { make: false });
      return place !== undefined && existsSync(place) ? readBounded(place).toString() : undefined;
    } catch (cause) {
      throw fileFailure('read', join(folder, path), cause);
    }
  },
  async writeBelow(folder, path, text, isPrivate) {
    try {
      const place = placeBelow(folder, path, { make: true });
      if (place !== undefined) writeWhole(place, text, isPrivate ? 0o600 : 0o644);
    } catch (cause) {
      throw fileFailure('written', join(folder, path), cause);
    }
  },
};

/**
 * Where an absolute path is below a folder, which the person has named and which may be a link itself.
 *
 * @param make whether to make folders that are missing
 * @returns undefined where a folder on the way is missing
 * @throws Error for a symbolic link on the way or in the file's place, and for a path that leads out
 */
function placeBelow(folder: string, path: string, { make }: { make: boolean }): string | undefined {
  const names = path.split('/').filter((name) => name !== '');
  if (names.some((name) => name === '.' || name === '..'))
    throw new Error('The path leads out of the folder.');
  if (make) makeFolders(folder, 0o777);
  if (!existsSync(folder)) return undefined;
  let place = realpathSync(folder);
  for (const [index, name] of names.entries()) {
    place = join(place, name);
    const isFile = index === names.length - 1;
    const found = lstatSync(place, { throwIfNoEntry: false });
    if (!found && isFile) return place;
    if (!found && !make) return undefined;
    if (!found) makeFolders(place, 0o755);
    else if (found.isSymbolicLink()) throw new Error(`${place} is a symbolic link, which is never followed.`);
    else if (isFile ? !found.isFile() : !found.isDirectory()) {
      throw new Error(`${place} is not a ${isFile ? 'file' : 'folder'}.`);
    }
  }
  return place;
}

function write(path: string, text: string, mode: number): void {
  try {
    writeWhole(path, text, mode);
  } catch (cause) {
    throw fileFailure('written', path, cause);
  }
}

/** @param done what was tried, such as `read` */
function fileFailure(done: string, path: string, cause: unknown): Failure {
  return new Failure('file_unusable', `The file ${path} can't be ${done}.`, {
    why: cause instanceof Error ? cause.message : String(cause),
    cause,
  });
}

/** The start-up files of a person's shells, on disk. @param path the home folder */
export function shellHome(path: string, env: Environment): ShellHome {
  return {
    path,
    env,
    read: async (file) => guarded('read', file, () => contentOf(file)),
    write: async (file, content) => guarded('written', file, () => replace(targetOf(file), content)),
  };
}

function contentOf(file: string): Uint8Array | undefined {
  return statSync(file, { throwIfNoEntry: false }) && readBounded(file);
}

/** The end of a chain of symbolic links; the file need not exist. A chain in a circle fails when it is written. */
function targetOf(file: string, links = 0): string {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (!found?.isSymbolicLink() || links > 40) return file;
  return targetOf(resolve(realpathSync(dirname(file)), readlinkSync(file)), links + 1);
}

function replace(file: string, content: Uint8Array): void {
  // Shells run this file, so other users must not be able to write to it, whatever the umask.
  makeFolders(dirname(file), 0o755);
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0o644;
  writeWhole(file, content, mode & 0o7777);
}

function guarded<Result>(done: string, file: string, act: () => Result): Result {
  try {
    return act();
  } catch (cause) {
    throw fileFailure(done, file, cause).with({ fix: 'slices-conn completion --help' });
  }
}
