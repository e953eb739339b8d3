import { closeSync, fsyncSync, openSync } from 'node:fs';

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
