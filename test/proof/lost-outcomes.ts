import { join } from 'node:path';
import { freePort } from '../fixtures/postgres-server.ts';
import { openMessageProxy } from '../fixtures/proxy.ts';
import { logIn } from './caller.ts';
import { type DiskRoom, faultOf, fileLimit, smallDisk } from './disk-room.ts';
import { quiet } from './fleet.ts';
import { ProofMachine } from './machine.ts';
import { DEEDS, type Fault, proveOutcomes } from './outcomes.ts';
import { newPlace, type Place, rowsAfterCrash, rowsOf } from './place.ts';
import { newReport, type Report } from './report.ts';
import { dawn, serveFlags } from './run.ts';
import { ServedProcess } from './served-process.ts';

/** So many pages are more than any of the three needs. */
const PAGES = 22;
/** How many people try a deed side by side, each at every so-manieth message: what takes time is that commands wait. */
const PEOPLE = [0, 1, 2];

/**
 * Row 43, with the command line and the server as processes: the connection to PostgreSQL is cut at every message of a
 * booking, an update, a deletion and a batch, one after the other. Every other time it stays cut until the command has ended.
 *
 * @param seed an odd one exchanges the two halves
 * @param newDatabase makes an empty database; each of these has its own, and they run side by side
 */
export async function cutEveryMessage(
  newDatabase: () => Promise<string>,
  { seed }: { seed: number },
): Promise<Report> {
  const report = newReport('outcomes, cut at every message', 'PostgreSQL', seed);
  const began = performance.now();
  const tried = DEEDS.flatMap((deed) => PEOPLE.map((first) => ({ deed, first })));
  const parts = tried.map(async ({ deed, first }) => {
    const database = await newDatabase();
    const proxy = await openMessageProxy(database);
    const rows = rowsOf(database);
    const fault: Fault = {
      begin: (round) => {
        const at = first + round * PEOPLE.length;
        proxy.cut(at, (at + seed) % 2 === 0 ? 'back' : 'away');
      },
      end: () => proxy.end(),
    };
    try {
      await withProcesses(newPlace(database), ['--database', proxy.url], async (person) =>
        proveOutcomes({ person, fault, rows, quiet: () => quiet(rows), report, dawn: dawn(), deeds: [deed] }),
      );
    } finally {
      proxy.close();
    }
  });
  await allOf(parts);
  report.seconds = (performance.now() - began) / 1000;
  return report;
}

/**
 * Row 43 on SQLite, likewise: the server's disk has room for a page more each time, on a disk that is full and, side by
 * side, on one whose files fail to grow. What stands there is read as after a crash: from a copy of the files.
 */
export async function fillDisk({ seed }: { seed: number }): Promise<Report> {
  const report = newReport('outcomes, on a disk without room', 'SQLite', seed);
  const began = performance.now();
  const full = smallDisk();
  if (!full) report.notes.push('a full disk was not tried: this user may not mount one');
  const part = async (
    folder: string,
    place: Place,
    room: (file: string, pid: () => number) => DiskRoom,
  ): Promise<void> => {
    const file = join(folder, 'slices-conn.sqlite');
    await withProcesses(place, ['--data', folder], async (person, server) => {
      const fault = faultOf(
        room(file, () => server.pid),
        file,
        { pages: 1, points: PAGES },
      );
      const rows = rowsAfterCrash(file);
      await proveOutcomes({ person, fault, rows, quiet: async () => undefined, report, dawn: dawn() });
    });
  };
  const failing = newPlace();
  try {
    await allOf([
      part(failing.folder, failing, (file, pid) => fileLimit(failing.folder, file, pid)),
      ...(full ? [part(full.folder, newPlace(), () => full)] : []),
    ]);
  } finally {
    full?.close();
  }
  report.seconds = (performance.now() - began) / 1000;
  return report;
}

/** What fails does not leave the others behind at work. */
async function allOf(parts: readonly Promise<void>[]): Promise<void> {
  for (const part of await Promise.allSettled(parts)) if (part.status === 'rejected') throw part.reason;
}

/** Runs `work` for a person who is logged in at a server; both are gone afterwards, and the place is. */
async function withProcesses(
  place: Place,
  where: readonly string[],
  work: (person: ProofMachine, server: ServedProcess) => Promise<void>,
): Promise<void> {
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const args = serveFlags(place, undefined, where);
  const server = new ServedProcess({ port, base, home: place.folder, args });
  try {
    await server.start();
    await work(new ProofMachine(place, base, await logIn(server.caller)), server);
  } finally {
    await server.close();
    place.close();
  }
}
