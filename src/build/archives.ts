import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { strToU8, type Zippable, zipSync } from 'fflate';
import { create } from 'tar';

/** A file of an archive: its path in it, and what it holds. */
export interface Packed {
  path: string;
  content: string | Uint8Array;
  /** Whether it is a program. */
  runs?: boolean;
}

/** The time of all files in archives, so that two builds of one commit give the same bytes: zip begins in 1980. */
const EPOCH = new Date('1980-01-01T12:00:00Z');

/** Writes an archive, `.tar.gz` or `.zip` by its name, with all files below one folder. @param folder for drafts */
export function writeArchive(path: string, folder: string, files: readonly Packed[]): void {
  const root = path.replace(/^.*[\\/]/, '').replace(/\.(?:tar\.gz|zip)$/, '');
  if (path.endsWith('.zip')) {
    const entries: Zippable = {};
    for (const { path, content } of files) {
      entries[`${root}/${path}`] = [
        typeof content === 'string' ? strToU8(content) : content,
        { mtime: EPOCH },
      ];
    }
    writeFileSync(path, zipSync(entries));
    return;
  }
  for (const { path, content, runs = false } of files) {
    const file = join(folder, root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, runs ? 0o755 : 0o644);
  }
  create({ sync: true, file: path, cwd: folder, gzip: true, portable: true, mtime: EPOCH }, [root]);
  rmSync(join(folder, root), { recursive: true });
}
