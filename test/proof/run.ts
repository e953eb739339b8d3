import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Chance, chanceFrom } from './chance.ts';
import { TOPOLOGY } from './links.ts';
import { newPlace, type Place } from './place.ts';
import { goesOn, newReport, type Report, type Until } from './report.ts';

/** How much of a proof is run, and on what. */
export interface ProofOptions {
  until: Until;
  seed: number;
  /** The address of an empty PostgreSQL database; without it SQLite is meant. */
  postgres?: string;
}

/** A proof under way. */
export interface Run {
  readonly place: Place;
  readonly report: Report;
  readonly chance: Chance;
  /** Whether another round is due, which is counted then. @throws Error when it lasts far too long */
  round(): boolean;
  /** Ends something after the proof, whatever fails. What began last is ended first. */
  atEnd(end: () => unknown): void;
  /** `serve` on the place, with these links, a person who is logged in at once, and tokens for a day. */
  serveFlags(topology?: object, where?: readonly string[]): string[];
}

/** Runs a proof on a place of its own. @returns what it tried and found, and how long it took */
export async function runProof(
  proof: string,
  { until, seed, postgres }: ProofOptions,
  work: (run: Run) => Promise<void>,
): Promise<Report> {
  const place = newPlace(postgres);
  const report = newReport(proof, place.engine, seed);
  const began = performance.now();
  const more = goesOn(report, until);
  const ends: (() => unknown)[] = [place.close];
  try {
    await work({
      ...{ place, report, chance: chanceFrom(seed) },
      round() {
        const isDue = more();
        if (isDue) report.rounds += 1;
        return isDue;
      },
      atEnd: (end) => void ends.push(end),
      serveFlags: (topology, where) => serveFlags(place, topology, where),
    });
  } finally {
    for (const end of ends.toReversed()) await end();
  }
  report.seconds = (performance.now() - began) / 1000;
  return report;
}

/** See {@link Run.serveFlags}. */
export function serveFlags(
  { engine, folder, database }: Place,
  topology: object = TOPOLOGY,
  where: readonly string[] = engine === 'SQLite' ? ['--data', folder] : ['--database', database],
): string[] {
  const file = join(folder, 'topology.json');
  writeFileSync(file, JSON.stringify(topology));
  return ['--topology', file, '--auto-approve', 'lead', '--access-token-ttl', '86400', ...where];
}

export const HOUR = 3_600_000;

/** The next hour but `hours`, in milliseconds: in the future throughout a round. */
export function dawn(hours = 1): number {
  return HOUR * (Math.ceil(Date.now() / HOUR) + hours);
}
