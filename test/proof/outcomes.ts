import * as v from 'valibot';
import { formatInstant } from '../../src/contract/instants.ts';
import type { SqlRow } from '../../src/store/sql.ts';
import type { Rows } from '../allocator/sweep.ts';
import type { Ended } from '../fixtures/program.ts';
import { LINKS, sweepAll } from './links.ts';
import { replayAll } from './replay.ts';
import type { Finding, Report } from './report.ts';

/** A person's machine: the command line, and what its ledger says. */
export interface Person {
  /** Runs a command with `--json`. */
  run(args: readonly string[]): Promise<Ended>;
  /** Writes a file that a command may name. */
  write(name: string, text: string): void;
  /** `key`, `outcome` and `requested` of every row. */
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
export const DEEDS = ['booking', 'update', 'deletion', 'batch'] as const;
/** Mbps that are booked, and that an update asks for. */
const [BEFORE, AFTER] = [10, 20];

/** One thing that is asked for: of an hour of its own, so that all that comes of it can be told from the rest. */
interface Deed {
  name: (typeof DEEDS)[number];
  key: string;
  start: number;
  /** Undefined before it is booked. Of a batch, the reservation that it updates. */
  id: string | undefined;
  args: readonly string[];
}

/** How many reservations a batch leaves: one that it updates, and those that it makes. */
const TOGETHER = LINKS.length;

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
 * Row 43: a booking, an update, a deletion and a batch of an update with creations, each with a fault at one point after the other. What the command says of
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
      if (deed.name === 'batch') await clear(deed, options);
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
    // Of a batch that was not made the items may still arrive for ten minutes, and are unknown as long.
    if (outcome === 'unknown' && !String(key).includes('/'))
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
  const book = ['reserve', site1, site2, '--bandwidth', String(BEFORE), '--start', formatInstant(start)];
  book.push('--end', formatInstant(start + HOUR), '--idempotency-key', key);
  if (name === 'booking') return { name, key, start, id: undefined, args: book };
  const named = (index: number): string => `outcome-${number}-${index}`;
  if (name === 'batch') book.push('--name', named(number % LINKS.length));
  const booked = await person.run(book);
  const id = printedId(booked);
  if (id === undefined) throw new Error(`nothing was booked to begin with: ${booked.stderr}`);
  if (name === 'batch') {
    const reservations = LINKS.map((link, index) => [
      named(index),
      { sites: [link.site1, link.site2], bandwidth: AFTER },
    ]);
    const defaults = { start: formatInstant(start), end: formatInstant(start + HOUR) };
    const plan = { version: 1, defaults, reservations: Object.fromEntries(reservations) };
    person.write(`${key}.json`, JSON.stringify(plan));
    return { name, key, start, id, args: ['apply', `${key}.json`] };
  }
  const args = name === 'update' ? ['update', id, '--bandwidth', String(AFTER)] : ['delete', '--yes', id];
  return { name, key, start, id, args };
}

/** Deletes what a batch left: each `apply` reads the list, and would have more and more to read. */
async function clear({ start }: Deed, { person, rows, report }: OutcomeOptions): Promise<void> {
  const live = 'SELECT id FROM reservation WHERE start_ms = $1 AND deleted_ms IS NULL';
  const ids = (await rows(live, start)).map(({ id }) => String(id));
  const { exitCode, stderr } = await person.run(['delete', '--yes', ...ids]);
  if (exitCode !== 0) report.findings.push({ kind: 'wrong', what: `delete: ${exitCode} ${stderr}` });
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
  const outcomes = await ledgerOutcomes(person, deed);
  const said = saidOf(deed, ended, wrong);
  const all = (due: string): boolean =>
    outcomes.length === (deed.name === 'batch' ? TOGETHER : 1) && outcomes.every((each) => each === due);
  if (said === 'done') {
    report.acknowledged += 1;
    if (!before.done) wrong('lost', 'said to be done, and is not');
    if (!all(deed.name === 'deletion' ? 'deleted' : 'booked')) {
      wrong('wrong', `done, and the ledger says ${outcomes}`);
    }
    if (deed.name === 'booking' && printedId(ended) !== before.id) {
      wrong('doubled', `printed ${printedId(ended)}, and ${before.id} is there`);
    }
  } else if (said === 'not done') {
    report.refused += 1;
    if (before.done) wrong('wrong', `said not to be done, and is: ${ended.stderr}`);
    const left = outcomes.filter((each) => each !== 'refused');
    if (left.join() !== (deed.name === 'booking' ? '' : 'booked')) {
      wrong('wrong', `not done, and the ledger says ${outcomes}`);
    }
  } else if (said === 'unknown') {
    report.unanswered += 1;
    if (!all('unknown')) wrong('wrong', `nobody knows, and the ledger says ${outcomes}`);
  }
  if (said === 'done' && (deed.name === 'update' || deed.name === 'deletion')) return said;
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
  const found = await rows('SELECT id, bandwidth, deleted_ms FROM reservation WHERE start_ms = $1', start);
  const row = id === undefined ? found[0] : found.find((each) => each['id'] === id);
  const made = found.filter((each) => each !== row);
  if (made.length > (name === 'batch' ? TOGETHER - 1 : 0)) {
    wrong('doubled', `${found.length} reservations of one hour`);
  }
  if (!row) {
    if (id !== undefined) wrong('lost', `${id} is not there`);
    return { done: false, id: undefined };
  }
  const isLive = row['deleted_ms'] === null;
  const bandwidth = Number(row['bandwidth']);
  if (!isLive && name !== 'deletion') wrong('lost', `${row['id']} is deleted, which nobody asked for`);
  const mayBeChanged = name === 'update' || name === 'batch';
  if (bandwidth !== BEFORE && !(mayBeChanged && bandwidth === AFTER)) {
    wrong('wrong', `${row['id']} has ${bandwidth} Mbps`);
  }
  const isChanged = isLive && bandwidth === AFTER;
  const isWhole = made.length === TOGETHER - 1 && made.every((each) => each['bandwidth'] === AFTER);
  if (name === 'batch' && (isChanged ? !isWhole : made.length > 0))
    wrong('wrong', 'half of a batch is there');
  const done = { booking: isLive, update: isChanged, deletion: !isLive, batch: isChanged && isWhole }[name];
  return { done, id: String(row['id']) };
}

/** What the ledger says of everything that was asked for in the hour. */
async function ledgerOutcomes(person: Person, { start }: Deed): Promise<unknown[]> {
  const Asked = v.object({ start: v.number() });
  const rows = await person.ledger();
  return rows.flatMap(({ requested, outcome }) => {
    const asked = v.safeParse(Asked, JSON.parse(String(requested)));
    return asked.success && asked.output.start === start ? [outcome] : [];
  });
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
