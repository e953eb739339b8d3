import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Chance } from '../chance.ts';
import type { Step } from './recording.ts';

/** The disk writes so much at once, in bytes: half of a write that is not waited for may be there. */
const SECTOR = 512;

/** A change of a file's content: data at an offset, or another size. */
type Change = { offset: number; data: Buffer } | { size: number };

/** Bytes that grow. */
class Content {
  #bytes = Buffer.alloc(0);
  size = 0;

  change(change: Change): void {
    if ('size' in change) {
      this.#make(change.size);
      if (change.size < this.size) this.#bytes.fill(0, change.size, this.size);
      this.size = change.size;
      return;
    }
    const { offset, data } = change;
    this.#make(offset + data.length);
    data.copy(this.#bytes, offset);
    this.size = Math.max(this.size, offset + data.length);
  }

  copy(): Content {
    const copy = new Content();
    copy.change({ offset: 0, data: this.bytes });
    return copy;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.size);
  }

  #make(size: number): void {
    if (size <= this.#bytes.length) return;
    const grown = Buffer.alloc(2 * size);
    this.#bytes.copy(grown, 0, 0, this.size);
    this.#bytes = grown;
  }
}

/** A file: what is on the disk for certain, and what was changed since. */
class DiskFile {
  readonly kept = new Content();
  unsynced: Change[] = [];

  sync(): void {
    for (const change of this.unsynced.splice(0)) this.kept.change(change);
  }

  /** What a cut may leave. */
  left(chance: Chance): Buffer {
    const content = this.kept.copy();
    const drawn = drawnFrom(this.unsynced, chance);
    for (const change of drawn) for (const part of torn(change, chance)) content.change(part);
    // Its size may be known before what it holds.
    const whole = chance.is(30) ? this.#fullSize() : 0;
    if (whole > content.size) content.change({ size: whole });
    return content.bytes;
  }

  #fullSize(): number {
    return this.unsynced.reduce(
      (size, change) => ('size' in change ? change.size : Math.max(size, change.offset + change.data.length)),
      this.kept.size,
    );
  }
}

type Names = Map<string, DiskFile | DiskFolder>;

/** A folder: its names as programs see them, those on the disk for certain, and what was changed since. */
class DiskFolder {
  readonly names: Names = new Map();
  readonly kept: Names = new Map();
  /** Each a change that is made as a whole; undefined removes the name. */
  unsynced: (readonly (readonly [string, DiskFile | DiskFolder | undefined])[])[] = [];

  change(...change: (readonly [string, DiskFile | DiskFolder | undefined])[]): void {
    this.unsynced.push(change);
    take(this.names, change);
  }

  sync(): void {
    for (const change of this.unsynced.splice(0)) take(this.kept, change);
  }

  /** What a cut may leave. */
  left(chance: Chance): Names {
    const left = new Map(this.kept);
    for (const change of drawnFrom(this.unsynced, chance)) take(left, change);
    return left;
  }
}

function take(names: Names, change: Iterable<readonly [string, DiskFile | DiskFolder | undefined]>): void {
  for (const [name, node] of change) {
    if (node) names.set(name, node);
    else names.delete(name);
  }
}

/**
 * A disk as POSIX promises it, and no more: of what a file got since it was synced, and of the names that a folder got
 * or lost since, a cut leaves anything: all, nothing, the first of it, or any part. To sync a file does not sync its
 * name. Each file system that is used keeps more than this: ext4 keeps names in order, and syncs them with any file.
 */
export class Disk {
  readonly #root: string;
  readonly #top = new DiskFolder();

  /** @param root an empty folder, whose own name is on the disk */
  constructor(root: string) {
    this.#root = root;
  }

  /** A program takes a step. What is not below the root is not looked at. */
  take(step: Step): void {
    if (step.act === 'tell' || step.act === 'hear') return;
    if (step.act === 'rename' || step.act === 'link') {
      const [from, to] = [this.#folderOf(step.from), this.#folderOf(step.to)];
      const node = from?.names.get(basename(step.from));
      if (!node) throw new Error(`${step.from} is renamed, and nobody made it`);
      const gone = step.act === 'rename' ? ([[basename(step.from), undefined]] as const) : [];
      if (from === to) to?.change([basename(step.to), node], ...gone);
      else {
        to?.change([basename(step.to), node]);
        if (gone.length > 0) from?.change(...gone);
      }
      return;
    }
    const { path } = step;
    if (step.act === 'sync') this.#find(path)?.sync();
    else if (step.act === 'remove') this.#folderOf(path)?.change([basename(path), undefined]);
    else if (step.act === 'make') {
      const folder = this.#folderOf(path);
      // A file may have been there.
      if (folder?.names.has(basename(path))) return;
      folder?.change([basename(path), step.kind === 'file' ? new DiskFile() : new DiskFolder()]);
    } else {
      const file = this.#find(path);
      if (!(file instanceof DiskFile)) throw new Error(`${path} is written, and nobody made it`);
      file.unsynced.push(step.act === 'cut' ? { size: step.size } : step);
    }
  }

  /** Writes what a cut of the power may leave of all into an empty folder. */
  leave(into: string, chance: Chance): void {
    const drawn = new Map<DiskFile, Buffer>();
    const write = (folder: DiskFolder, place: string): void => {
      for (const [name, node] of folder.left(chance)) {
        const path = join(place, name);
        if (node instanceof DiskFolder) {
          mkdirSync(path, { mode: 0o700 });
          write(node, path);
          continue;
        }
        const bytes = drawn.get(node) ?? node.left(chance);
        drawn.set(node, bytes);
        writeFileSync(path, bytes, { mode: 0o600 });
      }
    };
    write(this.#top, into);
  }

  #find(path: string): DiskFile | DiskFolder | undefined {
    return path === this.#root ? this.#top : this.#folderOf(path)?.names.get(basename(path));
  }

  #folderOf(path: string): DiskFolder | undefined {
    if (path === this.#root || !path.startsWith(this.#root)) return undefined;
    const found = this.#find(dirname(path));
    return found instanceof DiskFolder ? found : undefined;
  }
}

/** All of a list, nothing, the first of it, or any part, in order. */
function drawnFrom<Item>(items: readonly Item[], chance: Chance): readonly Item[] {
  if (items.length === 0) return items;
  const way = chance.below(4);
  if (way === 0) return items;
  if (way === 1) return [];
  if (way === 2) return items.slice(0, chance.below(items.length + 1));
  return items.filter(() => chance.is(50));
}

/** One write in five is torn: some of its sectors are on the disk. */
function torn(change: Change, chance: Chance): Change[] {
  if ('size' in change || !chance.is(20)) return [change];
  const { offset, data } = change;
  const parts: Change[] = [];
  for (let at = 0; at < data.length; ) {
    const length = SECTOR - ((offset + at) % SECTOR);
    if (chance.is(50)) parts.push({ offset: offset + at, data: data.subarray(at, at + length) });
    at += length;
  }
  return parts;
}
