import { fileURLToPath } from 'node:url';
import { WITH_HOPS } from '../store/one-link.ts';
import { openEither } from '../store/opened-store.ts';
import { raceProcesses } from '../store/starting-gate.ts';
import { batchOf, watchBatches } from './half-batches.ts';
import { LINKS, sweepAll } from './links.ts';
import type { Place } from './place.ts';
import type { RaceHolding, RaceLoadOrder, RaceLoadResult } from './race-load.ts';
import { replayAll } from './replay.ts';
import type { Finding, Report } from './report.ts';
import { type ProofOptions, runProof } from './run.ts';

const PROCESSES = 2;
const CONNECTIONS = 8;
/** So many decisions of each link the oracle makes again. */
const REPLAYED = 80;
/** So many requests are made by each connection in a round. Rounds are on one link and on all of them, in turn. */
const REQUESTS = 25;
/** So far apart are two rounds' bookings. */
const APART = 40;

/**
 * Row 40: two processes with eight connections each book, change and cancel on one hot link, then on several, a
 * quarter of it in batches. Nobody ever sees a part of a batch, and at the end every answer is what the rows say, no link is above its capacity and no tag held twice at any instant.
 */
export async function raceOnLinks(options: ProofOptions): Promise<Report> {
  const title = `race of ${PROCESSES} processes x ${CONNECTIONS} connections`;
  return runProof(title, options, async ({ place, report, round }) => {
    // The schema is there before they start.
    await (await openEither(place.database)).close();
    const expected = new Map<string, RaceHolding>();
    const unsure = new Set<string>();
    const [batches, seen] = [{ asked: 0, made: 0 }, { looks: 0 }];
    while (round()) {
      const links = report.rounds % 2 === 1 ? 1 : LINKS.length;
      const stopWatching = watchBatches(place.rows);
      const results = await raceOnce(place, {
        links,
        seed: options.seed + report.rounds,
        name: `r${report.rounds}`,
        dawn: report.rounds * APART,
      });
      const { looks, findings } = await stopWatching();
      seen.looks += looks;
      report.findings.push(...findings);
      for (const result of results) {
        batches.asked += result.batches;
        batches.made += result.made;
        report.requests += result.requests;
        report.acknowledged += result.acknowledged;
        report.refused += result.refused;
        report.unanswered += result.unanswered;
        report.findings.push(...result.errors.map((what): Finding => ({ kind: 'wrong', what })));
        for (const holding of result.holdings) expected.set(holding.id, holding);
        for (const id of result.unsure) unsure.add(id);
      }
      report.findings.push(...(await compare(place, expected, unsure, report.unanswered)));
      report.findings.push(...(await sweepAll(place.rows)));
    }
    report.findings.push(...(await replayAll(place.rows, { oracle: REPLAYED })));
    report.notes.push(
      `${batches.made} of ${batches.asked} batches were made; looked for halves ${seen.looks} times`,
    );
  });
}

async function raceOnce(
  { database }: Place,
  { links, seed, name, dawn }: { links: number; seed: number; name: string; dawn: number },
): Promise<RaceLoadResult[]> {
  const program = fileURLToPath(new URL('race-load.ts', import.meta.url));
  const finishes = await raceProcesses(
    ...Array.from({ length: PROCESSES }, (_, index) => {
      const order: RaceLoadOrder = {
        database,
        name: `${name}-${index}`,
        seed: seed * 1000 + index * 100,
        connections: CONNECTIONS,
        requests: REQUESTS,
        links,
        dawn,
      };
      return [program, JSON.stringify(order)];
    }),
  );
  return finishes.map(({ output, errors }): RaceLoadResult => {
    if (errors !== '') throw new Error(errors);
    return JSON.parse(output);
  });
}

/** Every answer against the rows. @param unanswered how many requests may have been met without an acknowledgement */
async function compare(
  { rows }: Place,
  expected: ReadonlyMap<string, RaceHolding>,
  unsure: ReadonlySet<string>,
  unanswered: number,
): Promise<Finding[]> {
  const found: Finding[] = [];
  const kept = new Map((await rows(WITH_HOPS)).map((row) => [String(row['id']), row]));
  for (const holding of expected.values()) {
    if (unsure.has(holding.id)) continue;
    const { id, start, end, bandwidth, tags, deleted } = holding;
    const row = kept.get(id);
    const stands = [row?.['start_ms'], row?.['end_ms'], row?.['bandwidth']];
    stands.push(row?.['site1_s_tag'], row?.['site1_c_tag'], row?.['site2_s_tag'], row?.['site2_c_tag']);
    const isGone = row?.['deleted_ms'] !== null;
    if (!row) found.push({ kind: 'lost', what: `${id} is not there` });
    else if (isGone !== deleted) found.push({ kind: 'lost', what: `${id} is ${isGone ? 'gone' : 'back'}` });
    else if (stands.join() !== [start, end, bandwidth, ...tags].join()) {
      found.push({
        kind: 'lost',
        what: `${id} stands as ${stands}, not as ${[start, end, bandwidth, ...tags]}`,
      });
    }
  }
  const unknown = [...kept.values()].filter(({ id }) => !expected.has(String(id)) && !unsure.has(String(id)));
  // What one batch made counts once.
  const requests = new Set(unknown.map(({ id, name }) => (name === null ? id : batchOf(String(name)))));
  if (requests.size > unanswered) {
    found.push({
      kind: 'doubled',
      what: `${requests.size} that nobody was told of, such as ${[...requests][0]}`,
    });
  }
  return found;
}
