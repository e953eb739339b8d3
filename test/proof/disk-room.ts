import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdtempSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { limitFiles } from '../fixtures/file-limit.ts';
import type { Fault } from './outcomes.ts';

/** A folder whose disk has as much room as it is told. */
export interface DiskRoom {
  readonly folder: string;
  /** Leaves room for so many pages of 4096 bytes. */
  leave(pages: number): void;
  /** Has room again. */
  clear(): void;
  close(): void;
}

/** The size of the disk that is made, in bytes: a few hundred bookings fit. */
const SIZE = 16 * 1024 * 1024;
const PAGE = 4096;
/** How much room there is between two trials at least, in bytes. */
const CLEARED = 2 * 1024 * 1024;

/**
 * A disk of a few MiB in memory, which is filled up: further writes fail with ENOSPC, as on any full disk.
 *
 * @returns undefined where this user may not mount one
 */
export function smallDisk(): DiskRoom | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'slices-conn-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE},mode=0700`, 'slices-conn-proof', folder], {
      stdio: 'ignore',
    });
  } catch {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const filler = join(folder, 'filler');
  writeFileSync(filler, '');
  return {
    folder,
    leave(pages) {
      const { bavail, bsize } = statfsSync(folder);
      const more = bavail * bsize - pages * PAGE;
      if (more > 0) appendFileSync(filler, Buffer.alloc(more));
      else truncateSync(filler, Math.max(0, statSync(filler).size + more));
    },
    // What was filled stays filled, but for some room: to fill it all anew would take longer than what is tried.
    clear: () => truncateSync(filler, Math.max(0, statSync(filler).size - CLEARED)),
    close() {
      execFileSync('umount', [folder]);
      rmSync(folder, { recursive: true });
    },
  };
}

/**
 * A database whose log may not grow beyond a limit: further writes fail, as on a faulty disk.
 *
 * @param file SQLite's, to whose log a process is about to write
 * @param pid of that process
 */
export function fileLimit(folder: string, file: string, pid: () => number): DiskRoom {
  return {
    folder,
    leave: (pages) => limitFiles(pid(), statSync(`${file}-wal`).size + pages * PAGE),
    clear: () => limitFiles(pid(), 'unlimited'),
    close: () => undefined,
  };
}

/**
 * Room for a few pages more at each point.
 *
 * @param file SQLite's, whose log is emptied first: one that has been carried over is written anew from its beginning, and
 * needs no room
 */
export function faultOf(
  room: DiskRoom,
  file: string,
  { pages, points }: { pages: number; points: number },
): Fault {
  return {
    points,
    begin(at) {
      const beside = new DatabaseSync(file, { timeout: 5000 });
      beside.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      beside.close();
      room.leave(at * pages);
    },
    end() {
      room.clear();
      return undefined;
    },
  };
}
