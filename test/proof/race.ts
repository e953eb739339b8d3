import { fileURLToPath } from 'node:url';
import { WITH_HOPS } from '../store/one-link.ts';
import { openEither } from '../store/opened-store.ts';
import { raceProcesses } from '../store/starting-gate.ts';
import { batchOf, watchHalves } from './halves.ts';
import { PAIRS, sweepAll } from './links.ts';
import { deadlocks, type Place } from './place.ts';
import type { RaceHolding, RaceLoadOrder, RaceLoadResult } from './race-load.ts';
import { replayAll } from './replay.ts';
import type { Finding, Report } from './report.ts';
import { type ProofOptions, runProof } from './run.ts';

const PROCESSES = 2;
const CONNECTIONS = 8;
/** So many decisions of each link the oracle makes again. */
const REPLAYED = 80;
/** So many requests are made by each connection in a round. */
const REQUESTS = 25;
/** Rounds are between random sites, over the shortest routes or longer ones too, and on one hot link, in turn. */
const ROUNDS = [
  { pairs: PAIRS.length, avoid: ['nowhere'] },
  { pairs: PAIRS.length, avoid: [] },
  { pairs: 1, avoid: [] },
] as const;
/** The columns of a hop that an answer tells. */
const HELD = ['link', 'site1_s_tag', 'site1_c_tag', 'site2_s_tag', 'site2_c_tag'] as const;
/** So far apart are two rounds' bookings. */
const APART = 40;

/**
 * Row 40: two processes with eight connections each book, change and cancel between random sites, over routes of one to
 * three hops and more, and on one hot link; a quarter of it in batches. Nobody ever sees a part of a batch or of a route, and
 * at the end every answer is what the rows say, no link is above its capacity, no tag is held twice at any instant, and
 * PostgreSQL had to end no deadlock.
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
      const stopWatching = watchHalves(place.rows);
      const results = await raceOnce(place, {
        ...(ROUNDS[report.rounds % ROUNDS.length] ?? ROUNDS[0]),
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
    report.findings.push(...(await replayAll(place.rows, { oracle: REPLAYED })), ...(await deadlocks(place)));
    report.notes.push(
      `${batches.made} of ${batches.asked} batches were made; looked for halves ${seen.looks} times`,
    );
  });
}

async function raceOnce(
  { database }: Place,
  { name, seed, ...about }: Pick<RaceLoadOrder, 'pairs' | 'avoid' | 'seed' | 'name' | 'dawn'>,
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
        ...about,
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
  const kept = Map.groupBy(await rows(`${WITH_HOPS} ORDER BY position`), ({ id }) => String(id));
  for (const holding of expected.values()) {
    if (unsure.has(holding.id)) continue;
    const { id, start, end, bandwidth, hops, deleted } = holding;
    const [row, ...others] = kept.get(id) ?? [];
    const stands = [row?.['start_ms'], row?.['end_ms'], row?.['bandwidth']].join();
    const on = [row, ...others].map((hop) => HELD.map((column) => hop?.[column]).join());
    const due = [[start, end, bandwidth].join(), ...hops.map((hop) => hop.join())];
    const isGone = row?.['deleted_ms'] !== null;
    if (!row) found.push({ kind: 'lost', what: `${id} is not there` });
    else if (isGone !== deleted) found.push({ kind: 'lost', what: `${id} is ${isGone ? 'gone' : 'back'}` });
    else if ([stands, ...on].join(' ') !== due.join(' ')) {
      found.push({ kind: 'lost', what: `${id} stands as ${[stands, ...on]}, not as ${due}` });
    }
  }
  const unknown = [...kept].filter(([id]) => !expected.has(id) && !unsure.has(id));
  // What one batch made counts once.
  const requests = new Set(
    unknown.map(([id, [hop]]) => ((hop?.['name'] ?? null) === null ? id : batchOf(String(hop?.['name'])))),
  );
  if (requests.size > unanswered) {
    found.push({
      kind: 'doubled',
      what: `${requests.size} that nobody was told of, such as ${[...requests][0]}`,
    });
  }
  return found;
}
