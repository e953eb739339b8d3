import * as v from 'valibot';
import type { SqlRow } from '../../src/store/sql.ts';
import type { Rows } from '../allocator/sweep.ts';
import { LINKS, sweepAll } from './links.ts';
import { replayAll } from './replay.ts';
import type { Finding, Report } from './report.ts';

/** A command that has ended. */
export interface Ended {
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

/** A person's machine: the command line, and what its ledger says. */
export interface Person {
  /** Runs a command with `--json`. */
  run(args: readonly string[]): Promise<Ended>;
  /** `key`, `outcome`, `reservation_id` and `pending` of every row. */
  ledger(): Promise<SqlRow[]>;
}

/** What goes wrong while a command runs, at one of many points. */
export interface Fault {
  /** Goes wrong at this point, counted from 0. */
  begin(at: number): void;
  /** All is well again. @returns where it went wrong, in words; undefined when it did not come to that */
  end(): string | undefined;
  /** Ends where the points do; without it, with the first that a command does not come to. */
  readonly points?: number;
}

/** What a proof of outcomes is made with. */
export interface OutcomeOptions {
  person: Person;
  fault: Fault;
  /** Asks the database past everything, when nothing is under way. */
  rows: Rows;
  /** Resolves when the database has finished what had reached it. */
  quiet: () => Promise<void>;
  report: Report;
  /** The first of the hours that are booked, in milliseconds: one for each attempt. */
  dawn: number;
  /** Default: all of them. */
  deeds?: readonly Deed['name'][];
}

const HOUR = 3_600_000;
/** What is asked for, and may be lost. */
export const DEEDS = ['booking', 'update', 'deletion'] as const;
/** Mbps that are booked, and that an update asks for. */
const [BEFORE, AFTER] = [10, 20];

/** One thing that is asked for: of an hour of its own, so that all that comes of it can be told from the rest. */
interface Deed {
  name: (typeof DEEDS)[number];
  key: string;
  start: number;
  /** Undefined before it is booked. */
  id: string | undefined;
  args: readonly string[];
}

const Printed = v.object({ reservation: v.object({ id: v.string() }) });
const Told = v.object({
  error: v.object({
    code: v.string(),
    message: v.string(),
    why: v.nullable(v.string()),
    exitCode: v.number(),
    retryable: v.boolean(),
    maybeDone: v.boolean(),
  }),
});
/** Codes of a service that failed; a bug of its own is not among them. */
const CODES: readonly string[] = ['unavailable', 'outcome_unknown', 'network', 'timeout'];

/**
 * Row 43: a booking, an update and a deletion, each with a fault at one point after the other. What the command says of
 * the outcome, and the ledger after it, is held against the rows; then the same command runs again, which books once.
 */
export async function proveOutcomes(options: OutcomeOptions): Promise<void> {
  const { person, fault, rows, report, deeds = DEEDS } = options;
  const attempt = { number: 0 };
  for (const name of deeds) {
    const counts = new Map<string, number>();
    const { points = Number.POSITIVE_INFINITY } = fault;
    for (let at = 0; at < points; at += 1) {
      report.rounds += 1;
      const deed = await prepare(name, attempt, options);
      fault.begin(at);
      const ended = await person.run(deed.args);
      const struck = fault.end();
      await options.quiet();
      report.requests += 1;
      if (struck !== undefined) report.kills += 1;
      const said = await judge(deed, ended, options, `${name}, point ${at} (${struck ?? 'not reached'})`);
      counts.set(said, (counts.get(said) ?? 0) + 1);
      if (points === Number.POSITIVE_INFINITY && struck === undefined) break;
    }
    const told = [...counts].map(([said, times]) => `${times} ${said}`).join(', ');
    report.notes.push(`${name}: ${told}`);
  }
  report.findings.push(...(await sweepAll(rows)), ...(await replayAll(rows)));
  const { findings } = report;
  const { exitCode, stderr } = await person.run(['list', '--all']);
  if (exitCode !== 0) findings.push({ kind: 'wrong', what: `list: ${exitCode} ${stderr}` });
  for (const { key, outcome } of await person.ledger()) {
    if (outcome === 'unknown')
      findings.push({ kind: 'wrong', what: `after list, the outcome of ${key} is unknown` });
  }
}

async function prepare(
  name: Deed['name'],
  attempt: { number: number },
  { person, dawn, report }: OutcomeOptions,
): Promise<Deed> {
  attempt.number += 1;
  const { number } = attempt;
  const { site1, site2 } = LINKS[number % LINKS.length] ?? LINKS[0];
  const start = dawn + number * HOUR;
  const key = `outcome-${name}-${report.rounds}-${number}`;
  const book = ['reserve', site1, site2, '--bandwidth', String(BEFORE), '--start', iso(start)];
  book.push('--end', iso(start + HOUR), '--idempotency-key', key);
  if (name === 'booking') return { name, key, start, id: undefined, args: book };
  const booked = await person.run(book);
  const id = printedId(booked);
  if (id === undefined) throw new Error(`nothing was booked to begin with: ${booked.stderr}`);
  const args = name === 'update' ? ['update', id, '--bandwidth', String(AFTER)] : ['delete', '--yes', id];
  return { name, key, start, id, args };
}

/** @returns the result in words */
async function judge(
  deed: Deed,
  ended: Ended,
  { person, rows, quiet, report }: OutcomeOptions,
  where: string,
): Promise<string> {
  const wrong = (kind: Finding['kind'], what: string): void => {
    report.findings.push({ kind, what: `${where}: ${what}` });
  };
  const before = await standing(deed, rows, wrong);
  const outcome = await ledgerOutcome(person, deed);
  const said = saidOf(deed, ended, wrong);
  const due = { booking: 'booked', update: 'booked', deletion: 'deleted' }[deed.name];
  if (said === 'done') {
    report.acknowledged += 1;
    if (!before.done) wrong('lost', 'said to be done, and is not');
    if (outcome !== due) wrong('wrong', `done, and the ledger says ${outcome}`);
    if (deed.name === 'booking' && printedId(ended) !== before.id) {
      wrong('doubled', `printed ${printedId(ended)}, and ${before.id} is there`);
    }
  } else if (said === 'not done') {
    report.refused += 1;
    if (before.done) wrong('wrong', `said not to be done, and is: ${ended.stderr}`);
    const kept: unknown[] = deed.name === 'booking' ? ['refused', undefined] : ['booked'];
    if (!kept.includes(outcome)) wrong('wrong', `not done, and the ledger says ${outcome}`);
  } else if (said === 'unknown') {
    report.unanswered += 1;
    if (outcome !== 'unknown') wrong('wrong', `nobody knows, and the ledger says ${outcome}`);
  }
  if (said === 'done' && deed.name !== 'booking') return said;
  const again = await person.run(deed.args);
  await quiet();
  const after = await standing(deed, rows, wrong);
  // A deleted reservation is not found: the deletion has succeeded.
  const fine = again.exitCode === 0 || (deed.name === 'deletion' && again.exitCode === 3);
  if (!fine) wrong('wrong', `run again: ${again.exitCode} ${again.stderr}`);
  if (!after.done) wrong('lost', 'run again, and not done');
  if (deed.name === 'booking' && printedId(again) !== after.id) {
    wrong('doubled', `run again it printed ${printedId(again)}, and ${after.id} is there`);
  }
  if (before.id !== undefined && before.id !== after.id) {
    wrong('doubled', `run again, ${after.id} stands in the place of ${before.id}`);
  }
  if (said === 'unknown') return `unknown and ${before.done ? 'done' : 'not done'}`;
  return said ?? 'nothing that can be read';
}

/** The state of the request in the rows. */
async function standing(
  { name, start, id }: Deed,
  rows: Rows,
  wrong: (kind: Finding['kind'], what: string) => void,
): Promise<{ done: boolean; id: string | undefined }> {
  const found = await rows('SELECT id, bandwidth, cancelled_ms FROM reservation WHERE start_ms = $1', start);
  const [row] = found;
  if (found.length > 1) wrong('doubled', `${found.length} reservations of one hour`);
  if (!row) {
    if (id !== undefined) wrong('lost', `${id} is not there`);
    return { done: false, id: undefined };
  }
  const isLive = row['cancelled_ms'] === null;
  const bandwidth = Number(row['bandwidth']);
  if (!isLive && name !== 'deletion') wrong('lost', `${row['id']} is deleted, which nobody asked for`);
  if (bandwidth !== BEFORE && !(name === 'update' && bandwidth === AFTER)) {
    wrong('wrong', `${row['id']} has ${bandwidth} Mbps`);
  }
  const done = { booking: isLive, update: isLive && bandwidth === AFTER, deletion: !isLive }[name];
  return { done, id: String(row['id']) };
}

async function ledgerOutcome(person: Person, { key, id }: Deed): Promise<unknown> {
  const found = await person.ledger();
  const mine = found.find((row) => (id === undefined ? row['key'] === key : row['reservation_id'] === id));
  return mine?.['outcome'];
}

function saidOf(
  { name }: Deed,
  ended: Ended,
  wrong: (kind: Finding['kind'], what: string) => void,
): 'done' | 'not done' | 'unknown' | undefined {
  if (ended.exitCode === 0) return 'done';
  const last = ended.stderr.trimEnd().split('\n').at(-1) ?? '';
  let told: v.InferOutput<typeof Told>['error'];
  try {
    told = v.parse(Told, JSON.parse(last)).error;
  } catch {
    wrong('wrong', `${ended.exitCode} without an error object: ${ended.stderr}`);
    return undefined;
  }
  const { code, maybeDone, retryable, exitCode } = told;
  if (ended.exitCode !== 7 || exitCode !== 7 || !CODES.includes(code)) {
    wrong('wrong', `${name} ended with ${ended.exitCode}: ${last}`);
  }
  if (!maybeDone) return 'not done';
  if (retryable) wrong('wrong', `unknown, and to be tried again: ${last}`);
  if (!`${told.message} ${told.why}`.includes('may have taken effect')) {
    wrong('wrong', `unknown, and not said in words: ${last}`);
  }
  return 'unknown';
}

/** The id in what a command printed about a reservation. */
export function printedId({ stdout }: Ended): string | undefined {
  try {
    return v.parse(Printed, JSON.parse(stdout)).reservation.id;
  } catch {
    return undefined;
  }
}

function iso(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
