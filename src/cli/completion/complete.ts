import { escapeText } from '../print/terminal-text.ts';
import type { Candidate, Wanted } from './candidates.ts';

/** What is asked while a word is completed. None of them prints anything, or takes long. */
export interface CompletionSource {
  /** Sites by name. */
  sites(): Promise<readonly Candidate[]>;
  /** Profiles by name. */
  profiles(): Promise<readonly Candidate[]>;
  /** The user's experiments, by name where that is enough. */
  experiments(): Promise<readonly Candidate[]>;
  /** The user's projects, likewise. */
  projects(): Promise<readonly Candidate[]>;
  /** The experiment's reservations, by id. */
  reservations(): Promise<readonly Candidate[]>;
}

/**
 * What can stand in a command line as it is, in every shell. A name that someone else chose and that holds anything
 * else, such as `$(…)` or a line end, is never offered.
 */
const PLAIN_WORD = /^[\p{L}\p{N}_][\p{L}\p{N}_@%+=:,./-]*$/u;

/** Whether a shell takes a word as it is, and a person sees all of it: some letters have no width (HOSTILE.md 60). */
export function isPlainWord(word: string): boolean {
  return PLAIN_WORD.test(word) && escapeText(word) === word;
}

/**
 * The answer to a shell: a line `value<TAB>description` for each candidate, and one that says whether names of files
 * are wanted too (`:1`) or not (`:0`).
 */
export async function completionText(wanted: Wanted, source: CompletionSource): Promise<string> {
  const { typed, before, known, live, files } = wanted;
  const found = live ? await source[live.kind]() : [];
  const candidates = [
    ...known.filter(({ value }) => value.startsWith(typed)),
    ...near(
      found.filter(({ value }) => isPlainWord(value) && !live?.without.includes(value)),
      typed,
    ),
  ];
  // Two of a kind, such as a portal may list, have more in common than the word.
  const once = [...new Map(candidates.map((each) => [each.value, each])).values()];
  const lines = once.map(({ value, description }) => `${before}${value}\t${escapeText(description)}\n`);
  return `${lines.join('')}${files ? ':1' : ':0'}\n`;
}

/**
 * Those that begin as was typed, else the only one that holds it, so that `poznan` finds `pl-poznan1`. Several of that
 * kind are none: a shell would replace what was typed by the little that they begin with in common.
 */
function near(candidates: readonly Candidate[], typed: string): readonly Candidate[] {
  const begun = candidates.filter(({ value }) => value.startsWith(typed));
  if (begun.length > 0 || typed.length < 3) return begun;
  const holding = candidates.filter(({ value }) => value.includes(typed));
  return holding.length === 1 ? holding : [];
}
