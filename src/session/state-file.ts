import { lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { Failure } from '../contract/failure.ts';
import { moveAway } from '../contract/shell-word.ts';
import { fileFault } from './folders.ts';

/** Runs `work` while no other process runs any under the same file; lets go however its process ends. */
export type UnderLock = <Answer>(file: string, work: () => Promise<Answer>) => Promise<Answer>;

/**
 * A private file's text; undefined where there is none.
 *
 * @throws Failure `state_unusable` when a symbolic link, another user's file or one that others can read stands there
 *   (HOSTILE.md 16): nothing in it may be trusted
 */
export function readPrivateFile(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return undefined;
  const fault = fileFault(found);
  if (fault !== undefined) throw unusableFile(path, fault);
  if ((found.mode & 0o077) !== 0) {
    throw unusableFile(path, 'Others could read it. Make it private: chmod 600.');
  }
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw unusableFile(path, cause instanceof Error ? cause.message : String(cause));
  }
}

/**
 * Writes a private file, whole or not at all: beside its place first, then in it at once (HOSTILE.md 15).
 *
 * @throws Failure `state_unusable`; what was there is intact then
 */
export function writePrivateFile(path: string, text: string): void {
  const draft = `${path}.${process.pid}.tmp`;
  try {
    // What a killed process of the same number left behind is in nobody's way.
    rmSync(draft, { force: true, recursive: true });
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true });
    renameSync(draft, path);
  } catch (cause) {
    rmSync(draft, { force: true, recursive: true });
    throw unusableFile(path, cause instanceof Error ? cause.message : String(cause));
  }
}

/** The failure of a file of ours that can't be read or written. It is never deleted (HOSTILE.md 17). */
export function unusableFile(path: string, why: string): Failure {
  return new Failure('state_unusable', `The file ${path} can't be used.`, {
    why,
    fix: `Mend it, or move it away: ${moveAway(path)}`,
  });
}
