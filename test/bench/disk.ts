import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** `f_type` of file systems that keep nothing over a power cut: tmpfs and ramfs (statfs(2)). */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);

/**
 * A new folder on a disk, removed when this process ends. It lies in the folder for temporary files, which `TMPDIR`
 * names.
 *
 * @throws Error when that is kept in memory: nothing durable could be measured there
 */
export function folderOnDisk(): string {
  checkDisk();
  const folder = mkdtempSync(join(tmpdir(), 'slices-conn-bench-'));
  // A database that is told to end at the same time may still be writing.
  const removal = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 };
  process.once('exit', () => rmSync(folder, removal));
  return folder;
}

/** @throws Error when the folder for temporary files is kept in memory: nothing durable could be measured there */
export function checkDisk(): void {
  if (!IN_MEMORY.has(statfsSync(tmpdir()).type)) return;
  throw new Error(`${tmpdir()} is kept in memory, not on a disk. Set TMPDIR to a folder on one.`);
}
