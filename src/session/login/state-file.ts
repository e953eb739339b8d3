import { lstatSync, readFileSync } from 'node:fs';
import { closeFile, unusableFile } from '../../files/private.ts';
import { writeWhole } from '../../files/whole.ts';

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
