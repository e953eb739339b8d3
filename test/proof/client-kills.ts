import { setTimeout as sleep } from 'node:timers/promises';
import { formatInstant } from '../../src/contract/instants.ts';
import type { SqlRow } from '../../src/store/sql.ts';
import type { Ended } from '../fixtures/program.ts';
import { PROXY_POINTS, type TcpProxy } from '../fixtures/proxy.ts';
import type { Chance } from './chance.ts';
import { LINKS, sweepAll } from './links.ts';
import { type ProofMachine, proxiedServer } from './machine.ts';
import { printedId } from './outcomes.ts';
import type { Place } from './place.ts';
import { replayAll } from './replay.ts';
import type { Report } from './report.ts';
import { dawn, HOUR, type ProofOptions, runProof } from './run.ts';

/** A `reserve` that is let alone takes less, in milliseconds. */
const LIFETIME = 700;
/** One `reserve` that was run, and its result. */
interface Attempt {
  args: readonly string[];
  /** The key that the command was given; without one it makes its own. */
  key: string | undefined;
  /** What it printed, where it got that far. */
  id: string | undefined;
}

/**
 * Row 39, the client's side: `slices-conn reserve` is killed with SIGKILL over and over, at any time and while its
 * request is on the way. After that the ledger joined with the service names every reservation that exists, and the
 * same command under its own key books once.
 */
export async function killClients(options: ProofOptions): Promise<Report> {
  return runProof('kill -9 of the client', options, async (run) => {
    const { place, report, chance, round } = run;
    const { server, machine, proxy } = await proxiedServer(run);
    const attempts: Attempt[] = [];
    while (round()) {
      const batch = [newAttempt(attempts.length), newAttempt(attempts.length + 1)];
      attempts.push(...batch);
      report.requests += batch.length;
      if (report.rounds % 2 === 0)
        await Promise.all(batch.map((each) => killedInTime(machine, each, chance, report)));
      else for (const each of batch) await killedOnTheWay(machine, each, proxy, chance, report);
    }
    // What killed clients had asked for is finished by then.
    await server.stop();
    await server.start();
    await judge(machine, attempts, place, report);
  });
}

/** Each has an hour and a bandwidth of its own, so that none is refused and each is told from the others. */
function newAttempt(number: number): Attempt {
  const { site1, site2 } = LINKS[number % LINKS.length] ?? LINKS[0];
  const start = dawn(2 + (number % 1000));
  const key = number % 2 === 0 ? `own-${number}` : undefined;
  const args = [
    'reserve',
    site1,
    site2,
    '--bandwidth',
    String(1 + (number % 900)),
    '--start',
    formatInstant(start),
  ];
  args.push('--end', formatInstant(start + HOUR), ...(key === undefined ? [] : ['--idempotency-key', key]));
  return { args, key, id: undefined };
}

async function killedInTime(
  machine: ProofMachine,
  attempt: Attempt,
  chance: Chance,
  report: Report,
): Promise<void> {
  const run = machine.start(attempt.args);
  const wait = new AbortController();
  sleep(chance.below(LIFETIME), undefined, { signal: wait.signal }).then(run.kill, () => undefined);
  note(attempt, await run.ended, report);
  wait.abort();
}

async function killedOnTheWay(
  machine: ProofMachine,
  attempt: Attempt,
  proxy: TcpProxy,
  chance: Chance,
  report: Report,
): Promise<void> {
  const run = machine.start(attempt.args);
  proxy.arm('POST /apis', 1, chance.of(PROXY_POINTS) ?? 'after it was passed on', run.kill);
  note(attempt, await run.ended, report);
  proxy.disarm();
}

function note(attempt: Attempt, ended: Ended, report: Report): void {
  if (ended.exitCode === null) {
    report.kills += 1;
    report.unanswered += 1;
  } else if (ended.exitCode === 0) report.acknowledged += 1;
  else
    report.findings.push({
      kind: 'wrong',
      what: `${attempt.args.join(' ')}: ${ended.exitCode} ${ended.stderr}`,
    });
  // Its caller may have read what a killed process had printed.
  attempt.id = printedId(ended);
}

async function judge(
  machine: ProofMachine,
  attempts: readonly Attempt[],
  place: Place,
  report: Report,
): Promise<void> {
  const { findings } = report;
  const booked = await reservations(place);
  const keys = new Set((await machine.ledger()).map(({ key }) => key));
  for (const { id, key } of booked) {
    if (!keys.has(key))
      findings.push({ kind: 'lost', what: `${id} was booked under ${key}, unknown to the ledger` });
  }
  for (const { id } of attempts) {
    if (id !== undefined && !booked.some((row) => row['id'] === id)) {
      findings.push({ kind: 'lost', what: `${id} was printed and is not there` });
    }
  }
  const listed = await machine.list();
  for (const { id } of booked) {
    const item = listed.find((each) => each.id === id);
    if (!item?.requested) findings.push({ kind: 'lost', what: `list --all does not know ${id} as its own` });
  }
  const settled = await machine.ledger();
  for (const { id, key } of booked) {
    const row = settled.find((each) => each['key'] === key);
    if (row?.['reservation_id'] !== id) {
      findings.push({
        kind: 'wrong',
        what: `after list the ledger has ${row?.['reservation_id']} for ${id}`,
      });
    }
  }
  const own = attempts.filter(({ key }) => key !== undefined);
  // Twice: the second must find the reservation of the first.
  const again = await machine.runEach([...own, ...own]);
  report.requests += again.length;
  const after = await reservations(place);
  for (const [index, ended] of again.entries()) {
    const attempt = own[index % own.length];
    const rows = after.filter(({ key }) => key === attempt?.key);
    const before = booked.find(({ key }) => key === attempt?.key)?.['id'];
    const id = printedId(ended);
    if (ended.exitCode === 0) report.acknowledged += 1;
    else
      findings.push({
        kind: 'wrong',
        what: `again, ${attempt?.args.join(' ')}: ${ended.exitCode} ${ended.stderr}`,
      });
    if (rows.length !== 1)
      findings.push({ kind: 'doubled', what: `${attempt?.key} stands for ${rows.length}` });
    if (ended.exitCode === 0 && rows[0]?.['id'] !== id) {
      findings.push({
        kind: 'doubled',
        what: `${attempt?.key} printed ${id} and stands for ${rows[0]?.['id']}`,
      });
    }
    if (before !== undefined && before !== rows[0]?.['id']) {
      findings.push({ kind: 'doubled', what: `${attempt?.key} stood for ${before} before it was run again` });
    }
  }
  const made = own.filter(({ key }) => !booked.some((row) => row['key'] === key)).length;
  if (after.length !== booked.length + made) {
    findings.push({ kind: 'doubled', what: `${booked.length} and ${made} make ${after.length}` });
  }
  findings.push(...(await sweepAll(place.rows)), ...(await replayAll(place.rows)));
  report.notes.push(
    `${booked.length} of ${attempts.length} were booked; ${made} of ${own.length} with a key of their own were booked when run again`,
  );
}

function reservations({ rows }: Place): Promise<SqlRow[]> {
  return rows(
    'SELECT r.id AS id, k.key AS key FROM reservation r LEFT JOIN idempotency_key k ON k.reservation = r.id',
  );
}
