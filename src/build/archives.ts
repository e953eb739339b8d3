import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type Zippable, zipSync } from 'fflate';
import { create } from 'tar';

/** A file of an archive: its path in it, and what it holds or where that is. */
export interface Packed {
  path: string;
  content: string | { file: string };
  /** Whether it is a program. */
  runs?: boolean;
}

/** The time of all files in archives, so that two builds of one commit give the same bytes: zip begins in 1980. */
const EPOCH = new Date('1980-01-01T12:00:00Z');

/** Writes an archive, `.tar.gz` or `.zip` by its name, with all files below one folder. @param folder for drafts */
export function writeArchive(path: string, folder: string, files: readonly Packed[]): void {
  const root = path.replace(/^.*[\\/]/, '').replace(/\.(?:tar\.gz|zip)$/, '');
  const draft = join(folder, root);
  lay(draft, files);
  if (path.endsWith('.zip')) writeFileSync(path, zipped(root, draft));
  else create({ sync: true, file: path, cwd: folder, gzip: true, portable: true, mtime: EPOCH }, [root]);
  rmSync(draft, { recursive: true });
}

/** Writes files below a folder. */
function lay(draft: string, files: readonly Packed[]): void {
  for (const { path, content, runs = false } of files) {
    const file = join(draft, path);
    mkdirSync(dirname(file), { recursive: true });
    if (typeof content === 'string') writeFileSync(file, content);
    else copyFileSync(content.file, file);
    chmodSync(file, runs ? 0o755 : 0o644);
  }
}

function zipped(root: string, draft: string): Uint8Array {
  const files = globSync('**', { cwd: draft }).filter((path) => statSync(join(draft, path)).isFile());
  const entries = files
    .toSorted()
    .map((path) => [
      `${root}/${path.replaceAll('\\', '/')}`,
      [readFileSync(join(draft, path)), { mtime: EPOCH }],
    ]);
  return zipSync(Object.fromEntries(entries) as Zippable);
}
