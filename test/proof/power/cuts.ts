import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { SqlRow } from '../../../src/store/sql.ts';
import type { Chance } from '../chance.ts';
import type { Finding, Report } from '../report.ts';
import { Disk } from './disk.ts';
import type { Step } from './recording.ts';

/** What must be true of what a cut leaves, where it comes between two steps of a recording. */
export interface Claim<Left> {
  /** The first step after which it holds. */
  from: number;
  /** The step before which it ends to hold; without it, it holds for good. */
  until?: number;
  what: string;
  kind: Finding['kind'];
  holds: (left: Left) => boolean;
}

/** What was recorded, and what must be left of it. */
export interface Recorded<Left> {
  root: string;
  steps: readonly Step[];
  claims: readonly Claim<Left>[];
  /** Reads what a cut has left in a folder. */
  look: (folder: string) => Left;
}

/** What a proof is tried on, besides our program as it is: it must find out what is wrong with it. */
export interface Mutation {
  /** Cuts are made of each recording again, after it was changed. */
  also?: readonly Changed[];
}

/** How a recording is changed, and the report of what was found then. */
export interface Changed {
  change: (step: Step) => Step;
  /** The claims after which it is cut. Without it, any, and between them too. */
  aim?: RegExp;
  report: Report;
}

/** What {@link cutPower} needs. */
export interface Cutting extends Pick<Mutation, 'also'>, Pick<Changed, 'aim'> {
  chance: Chance;
  report: Report;
  /** A folder for what is left, which does not exist. */
  into: string;
}

/** Of each recording so many cuts are made. */
const CUTS = 100;
/** Half of the cuts come so few steps after one from which something must hold. */
const SOON = 3;

/**
 * Cuts the power at many steps of a recording, and holds what is left against what must be. The report counts cuts as kills.
 * At the end the disk must hold what the real one does: the recording lacks nothing.
 *
 * @returns how many claims were looked at in all
 */
export function cutPower<Left>(
  { root, steps, claims, look }: Recorded<Left>,
  { chance, into, report, also = [], aim }: Cutting,
): number {
  const aimed = aim ? claims.filter(({ what }) => aim.test(what)) : claims;
  const drawn = Array.from({ length: CUTS }, () => {
    const after = aim || chance.is(50) ? chance.of(aimed) : undefined;
    return after ? after.from + chance.below(SOON) : chance.below(steps.length);
  });
  const disk = new Disk(root);
  const leave = (how: Chance): void => {
    rmSync(into, { recursive: true, force: true });
    mkdirSync(into);
    disk.leave(into, how);
  };
  let [taken, looked] = [0, 0];
  for (const at of drawn.toSorted((one, other) => one - other)) {
    for (const step of steps.slice(taken, at + 1)) disk.take(step);
    taken = Math.max(taken, at + 1);
    leave(chance);
    report.kills += 1;
    const due = claims.filter(({ from, until = Number.POSITIVE_INFINITY }) => from <= at && at < until);
    looked += due.length;
    try {
      const left = look(into);
      for (const { what, kind, holds } of due) {
        if (!holds(left))
          report.findings.push({ kind, what: `cut after step ${at} of ${steps.length}: ${what}` });
      }
    } catch (error) {
      report.findings.push({
        kind: 'wrong',
        what: `cut after step ${at} of ${steps.length}: ${String(error)}`,
      });
    }
  }
  for (const step of steps.slice(taken)) disk.take(step);
  leave(EVERYTHING);
  const [left, real] = [into, root].map((folder) => contentOf(folder));
  for (const name of new Set([...(left ?? []), ...(real ?? [])].map(([each]) => each))) {
    if (left?.get(name) === real?.get(name)) continue;
    report.findings.push({
      kind: 'wrong',
      what: `${name} is not as it was recorded: the recording lacks something`,
    });
  }
  for (const { change, ...own } of also) {
    cutPower({ root, steps: steps.map(change), claims, look }, { chance, into, ...own });
  }
  return looked;
}

/** Everything is on the disk. */
const EVERYTHING: Chance = { below: () => 0, is: () => false, of: ([first]) => first };

/** A hash of each file. What SQLite shares among processes is written through memory, and made anew after a cut. */
function contentOf(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => !name.endsWith('-shm') && statSync(join(folder, name)).isFile());
  return new Map(files.map((name) => [name, hash('sha256', readFileSync(join(folder, name)))]));
}

/**
 * Asks a SQLite file that a cut has left. It may write: a journal or a log that is left is taken over, as the next start
 * of the program does.
 *
 * @returns nothing where there is no file, or no table yet
 * @throws Error when it is damaged
 */
export function rowsIn(file: string, sql: string): SqlRow[] {
  if (!existsSync(file)) return [];
  const database = new DatabaseSync(file);
  try {
    database.exec('PRAGMA synchronous = OFF');
    const { integrity_check: found } = database.prepare('PRAGMA integrity_check').get() ?? {};
    if (found !== 'ok') throw new Error(`${file} is damaged: ${found}`);
    const { tables } = database.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() ?? {};
    return tables === 0 ? [] : database.prepare(sql).all();
  } finally {
    database.close();
  }
}
