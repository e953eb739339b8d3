import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Rows } from '../allocator/sweep.ts';
import { freePort } from '../fixtures/postgres-server.ts';
import { chanceFrom } from './chance.ts';
import { credentials, type Door, logIn } from './door.ts';
import { watchBatches } from './half-batches.ts';
import { Journal, unansweredNote } from './journal.ts';
import { openLine, type ProofLine } from './line.ts';
import { sweepAll, TOPOLOGY } from './links.ts';
import { acknowledged, startLoad } from './load.ts';
import { atAnyTime, atMessageOn, atWriteOf, type Moment } from './moment.ts';
import { newPlace, type Place } from './place.ts';
import { replayAll } from './replay.ts';
import { goesOn, newReport, type Report, type Until } from './report.ts';
import { ServedProcess } from './served-process.ts';

/** How much of a proof is run, and on what. */
export interface ProofOptions {
  until: Until;
  seed: number;
  /** The address of an empty PostgreSQL database; without it SQLite is meant. */
  postgres?: string;
}

const CLIENTS = 16;
const HOUR = 3_600_000;
/** An experiment token lasts 15 minutes. */
const TOKEN_RENEWAL = 300_000;

/** Servers on one database, as processes. */
export interface Fleet {
  readonly servers: readonly ServedProcess[];
  /** The line of each to its database, on PostgreSQL. */
  readonly lines: readonly ProofLine[];
  /** Fresh enough for the next minutes. */
  headers(): Promise<Record<string, string>>;
  close(): Promise<void>;
}

/**
 * Starts one server on SQLite, or replicas on PostgreSQL, each with a line of its own to it. Where that fails, nothing
 * of them or of the place is left.
 */
export async function startFleet(place: Place, replicas: number): Promise<Fleet> {
  const topology = join(place.folder, 'topology.json');
  writeFileSync(topology, JSON.stringify(TOPOLOGY));
  const common = ['--topology', topology, '--auto-approve', 'lead', '--access-token-ttl', '86400'];
  const lines: ProofLine[] = [];
  const servers: ServedProcess[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()));
    for (const line of lines) line.close();
  };
  const startAll = async (): Promise<{ door: Door; userToken: string }> => {
    let base: string | undefined;
    for (let count = 0; count < replicas; count += 1) {
      const port = await freePort();
      base ??= `http://127.0.0.1:${port}`;
      let where = ['--data', place.folder];
      if (place.engine === 'PostgreSQL') {
        const line = await openLine(place.database);
        lines.push(line);
        where = ['--database', line.url];
      }
      const server = new ServedProcess({ port, base, home: place.folder, args: [...common, ...where] });
      servers.push(server);
      await server.start();
    }
    const door = servers[0]?.door;
    if (!door) throw new RangeError('a fleet has at least one server');
    return { door, userToken: await logIn(door) };
  };
  const { door, userToken } = await startAll().catch(async (error: unknown) => {
    await close();
    place.close();
    throw error;
  });
  let renewed = Number.NEGATIVE_INFINITY;
  let headers: Record<string, string> = {};
  return {
    servers,
    lines,
    async headers() {
      if (performance.now() - renewed > TOKEN_RENEWAL) {
        headers = await credentials(door, userToken);
        renewed = performance.now();
      }
      return headers;
    },
    close,
  };
}

/**
 * Row 39: `serve` is killed with SIGKILL under load and started again, over and over; each time the database is held
 * against what was answered, and swept. On PostgreSQL two replicas share it, of which one is killed, or both.
 */
export async function killServers({ until, seed, postgres }: ProofOptions): Promise<Report> {
  const place = newPlace(postgres);
  const report = newReport('kill -9 of the server', place.engine, seed);
  const began = performance.now();
  const more = goesOn(report, until);
  const chance = chanceFrom(seed);
  const journal = new Journal();
  const fleet = await startFleet(place, postgres === undefined ? 1 : 2);
  const moments: Moment[] =
    place.engine === 'SQLite'
      ? [atAnyTime, atWriteOf(`${place.database}-wal`)]
      : [atAnyTime, atMessageOn((server) => lineOf(fleet, server))];
  const times = new Map<string, number>();
  try {
    while (more()) {
      report.rounds += 1;
      const doors = fleet.servers.map(({ door }) => door);
      const stopWatching = watchBatches(place.rows);
      const load = startLoad({
        doors,
        headers: await fleet.headers(),
        journal,
        report,
        chance,
        dawn: HOUR * Math.ceil(Date.now() / HOUR + 1),
        name: `round${report.rounds}`,
        clients: CLIENTS,
      });
      await acknowledged(report, CLIENTS);
      const first = chance.below(fleet.servers.length);
      const killed = fleet.servers.filter((_, index) => index === first || chance.is(30));
      const moment = moments[report.rounds % moments.length] ?? atAnyTime;
      for (const when of await Promise.all(killed.map((server) => moment(server, chance)))) {
        times.set(when, (times.get(when) ?? 0) + 1);
        report.kills += 1;
      }
      await load.stop();
      report.findings.push(...(await stopWatching()).findings);
      await Promise.all(killed.map((server) => server.start()));
      if (place.engine === 'PostgreSQL') await quiet(place.rows);
      report.findings.push(...(await journal.check(place.rows)), ...(await sweepAll(place.rows)));
    }
    report.findings.push(...(await replayAll(place.rows)));
  } finally {
    await fleet.close();
    place.close();
  }
  report.seconds = (performance.now() - began) / 1000;
  report.notes.push(unansweredNote(journal));
  report.notes.push(...[...times].toSorted().map(([when, count]) => `killed ${count} times ${when}`));
  return report;
}

function lineOf({ servers, lines }: Fleet, server: ServedProcess): ProofLine {
  const line = lines[servers.indexOf(server)];
  if (!line) throw new RangeError('the server has no line');
  return line;
}

/** Waits until PostgreSQL has finished what a killed server had begun. */
export async function quiet(rows: Rows): Promise<void> {
  const busy = `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
    AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`;
  while ((await rows(busy)).length > 0) await sleep(20);
}
