import { setTimeout as sleep } from 'node:timers/promises';
import { PATIENCE } from '../fixtures/patience.ts';
import type { Listening } from '../fixtures/wire.ts';
import { amiss, EventReader, Known, LONGEST_CUT, standingsIn } from './event-readers.ts';
import { CLIENTS, startFleet } from './fleet.ts';
import { Journal } from './journal.ts';
import { acknowledged } from './load.ts';
import type { Report } from './report.ts';
import { type ProofOptions, runProof } from './run.ts';

/** How many read at once; a user may have 20 streams. */
const READERS = 4;
/** In how many rounds of a hundred a server is killed. */
const KILLS = 25;

/**
 * Row 133: readers of events are told all that is committed, and nothing else, whatever breaks. Clients book, change and delete
 * while the readers' connections are cut at one byte after the other, and in every fourth round a server is killed with SIGKILL
 * and started again. After each round what a reader knows is what the rows say; and each event that came is a decision of the
 * audit. On PostgreSQL two replicas share the database, and readers come back to either.
 */
export async function tellReaders(options: ProofOptions): Promise<Report> {
  return runProof('events to readers whose connections are cut', options, async (run) => {
    const { place, report, chance, round, atEnd } = run;
    const [journal, known] = [new Journal(), new Known()];
    const fleet = await startFleet(run, place.engine === 'SQLite' ? 1 : 2);
    const { servers } = fleet;
    const serverOf = (): Listening => {
      const server = chance.of(servers);
      if (!server) throw new RangeError('there is no server');
      return server.caller;
    };
    // Each begins with other bytes.
    const readers = Array.from(
      { length: READERS },
      (_, index) => new EventReader(serverOf, () => fleet.headers(), (index * LONGEST_CUT) / READERS),
    );
    atEnd(() => Promise.all(readers.map((reader) => reader.close())));
    for (const reader of readers) await reader.begun();
    while (round()) {
      for (const reader of readers) reader.isCutting = true;
      const load = await fleet.load(journal, { name: `round${report.rounds}` });
      await acknowledged(report, CLIENTS);
      if (report.rounds === 1 || chance.is(KILLS)) {
        const server = chance.of(servers);
        await sleep(chance.below(200));
        await server?.kill();
        report.kills += 1;
        await load.stop();
        await server?.start();
      } else await load.stop();
      await fleet.check(journal);
      const due = await standingsIn(place.rows);
      await known.read(place.rows);
      for (const reader of readers) {
        // The last cut comes where it comes; what it cut off is told again.
        reader.isCutting = chance.is(50);
        for (const limit = performance.now() + PATIENCE; performance.now() < limit; await sleep(5)) {
          if (amiss(reader, due, known).length === 0) break;
        }
        report.findings.push(...reader.findings.splice(0), ...amiss(reader, due, known));
        reader.told.clear();
      }
    }
    const cuts = readers.reduce((sum, reader) => sum + reader.cuts, 0);
    report.notes.push(`${READERS} readers, whose connections were cut ${cuts} times`);
  });
}
