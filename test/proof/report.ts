/**
 * What is wrong. `lost`: an answer that was given is not on disk, or what was deleted is back; `doubled`: something is
 * there twice, or nobody asked for it; `wrong`: anything else that must not be.
 */
export interface Finding {
  kind: 'lost' | 'doubled' | 'wrong';
  what: string;
}

/** What a proof tried and what it found. */
export interface Report {
  proof: string;
  engine: string;
  /** What the random choices were drawn from. Times are not drawn, so the same seed is not the same run. */
  seed: number;
  seconds: number;
  rounds: number;
  kills: number;
  /** Sent, whatever became of them. */
  requests: number;
  /** Answered with yes: booked, changed, deleted. */
  acknowledged: number;
  /** Answered with no, which is an answer too. */
  refused: number;
  /** Without an answer, or with the answer `outcome_unknown`. */
  unanswered: number;
  findings: Finding[];
  /** What else is worth to be told, such as how often it was killed where. */
  notes: string[];
}

/** A report of nothing yet. */
export function newReport(proof: string, engine: string, seed: number): Report {
  const counts = { seconds: 0, rounds: 0, kills: 0, requests: 0, acknowledged: 0, refused: 0, unanswered: 0 };
  return { proof, engine, seed, ...counts, findings: [], notes: [] };
}

/** Work that a proof must have tried; the suite counts work, so that a slow machine is slow and green. */
export type Tried = Partial<Pick<Report, 'kills' | 'acknowledged' | 'rounds'>>;

/** How long a proof goes on: for about so many seconds, or until it has tried this. The round under way is finished. */
export type Until = { seconds: number } | Tried;

/** A proof that has not tried what it should after so many seconds fails. */
const PATIENCE = 300;

/** A function that says, before each round, whether a proof goes on. @throws Error when it lasts far too long */
export function goesOn(report: Report, until: Until): () => boolean {
  const began = performance.now();
  return () => {
    const seconds = (performance.now() - began) / 1000;
    if ('seconds' in until) return seconds < until.seconds;
    const { kills = 0, acknowledged = 0, rounds = 0 } = until;
    if (report.kills >= kills && report.acknowledged >= acknowledged && report.rounds >= rounds) return false;
    if (seconds > PATIENCE) throw new Error(`Too little was tried in ${PATIENCE} s:\n${printed(report)}`);
    return true;
  };
}

/** A report for people; the first twenty findings are told, all are counted. */
export function printed(report: Report): string {
  const { proof, engine, seed, findings, notes } = report;
  const of = (kind: Finding['kind']): number => findings.filter((each) => each.kind === kind).length;
  return [
    `${findings.length === 0 ? 'nothing found' : 'FOUND'}  ${proof} on ${engine}, ${report.seconds.toFixed(0)} s, seed ${seed}`,
    `  tried: ${report.rounds} rounds, ${report.kills} kills, ${report.requests} requests: ${report.acknowledged} acknowledged, ${report.refused} refused, ${report.unanswered} unanswered`,
    `  found: ${of('lost')} lost, ${of('doubled')} doubled, ${of('wrong')} wrong`,
    ...notes.map((note) => `  ${note}`),
    ...findings.slice(0, 20).map(({ kind, what }) => `  ${kind}: ${what}`),
    '',
  ].join('\n');
}
