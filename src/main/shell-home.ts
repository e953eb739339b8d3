import { lstatSync, mkdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { ShellHome } from '../cli/completion/install.ts';
import { Failure } from '../contract/failure.ts';
import { writeWhole } from '../files/whole.ts';
import type { Environment } from '../session/profiles/folders.ts';

/** The set-up files of a person's shells, on disk. @param path the home folder */
export function shellHome(path: string, env: Environment): ShellHome {
  return {
    path,
    env,
    read: async (file) => guarded('read', file, () => contentOf(file)),
    write: async (file, content) => guarded('written', file, () => replace(targetOf(file), content)),
  };
}

function contentOf(file: string): Uint8Array | undefined {
  return statSync(file, { throwIfNoEntry: false }) && readFileSync(file);
}

/** Where a chain of links ends, whether there is a file yet or not. A chain without an end fails in the next step. */
function targetOf(file: string, links = 0): string {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (!found?.isSymbolicLink() || links > 40) return file;
  return targetOf(resolve(realpathSync(dirname(file)), readlinkSync(file)), links + 1);
}

function replace(file: string, content: Uint8Array): void {
  // Every shell runs what is in there: whatever the umask, nobody else may write it.
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0o644;
  writeWhole(file, content, mode & 0o7777);
}

function guarded<Result>(done: string, file: string, act: () => Result): Result {
  try {
    return act();
  } catch (cause) {
    throw new Failure('file_unusable', `The file ${file} can't be ${done}.`, {
      why: cause instanceof Error ? cause.message : String(cause),
      fix: 'slices-conn completion --help',
      cause,
    });
  }
}
