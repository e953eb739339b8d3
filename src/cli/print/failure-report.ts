import {
  asFailure,
  type Changes,
  Failure,
  type FailureCode,
  type FailureFacts,
} from '../../contract/failure.ts';
import { formatInstant } from '../../contract/instants.ts';
import { type AlternativeKind, isProblemCode, PROBLEMS } from '../../contract/problems.ts';
import { inOneText, inTimes, type Said, UTC_TIMES } from '../../contract/said.ts';
import { withoutTokens } from '../../contract/secret.ts';
import { type CommandLine, isTyped, retyped, servicesIn } from '../command-line.ts';
import { EXIT_CODE_OF, type ExitCode } from '../exit-codes.ts';
import { pathOf } from '../help-layout.ts';
import { type TimeContext, timesIn } from '../times.ts';
import { asStarted, BY_NAME, printedMember, type Started } from './as-started.ts';
import { continued, folded } from './folded.ts';
import { escapeLines, escapeText, jsonText, type TextStream } from './output.ts';
import type { AdviceShell } from './shells.ts';

/** How a failure is printed. */
export interface ReportOptions {
  stderr: TextStream;
  /**
   * The typed command, which advice may change; advised commands repeat its flags that choose the services. `--json` and
   * `--debug`, which says where in the program it happened, count wherever they stand.
   */
  typed: CommandLine;
  /** How the program is typed in advice. Default: by its name, in a shell of Unix. */
  started?: Started;
  /** For people: timestamps are written as short times in this zone. Default: as they are. */
  times?: TimeContext;
  /** Services were used, and certainly nothing was changed there. */
  nothingChanged?: boolean;
}

/**
 * Prints a failure on stderr, for every command in this one place, and returns its exit code (cli/README.md, "Output", "Exit
 * codes"): with `--json` one line with an error object, else what happened, why, and what to type next.
 */
export function reportFailure(
  error: unknown,
  { stderr, typed, started: by = BY_NAME, times, nothingChanged = false }: ReportOptions,
): ExitCode {
  const failure = asFailure(error);
  const started = { ...by, services: servicesIn(typed) };
  const { code, message } = failure;
  const facts = nothingChanged ? withNothingChanged(failure) : failure.facts;
  const advised = facts.fix ?? nextStep(code) ?? again(failure, typed);
  const offers = error instanceof Refusal ? error.offers : [];
  const offered = offers.map((offer) => ({ offer, command: retyped(typed, offer.changes, ...offer.more) }));
  const exitCode: ExitCode = facts.exitCode ?? EXIT_CODE_OF[code];
  const isMistyped = exitCode === EXIT_CODE_OF.usage && code !== 'file_unusable';
  const help = isMistyped ? wholeAdvice(typed, '--help') : undefined;
  const fix = offered[0]?.command ?? wholeAdvice(typed, advised) ?? help;
  const origin = code === 'bug' ? facts.cause : error;
  if (isTyped(typed, 'debug') && origin instanceof Error)
    stderr.write(`${escapeLines(withoutTokens(origin.stack ?? ''))}\n`);
  if (!isTyped(typed, 'json')) {
    const toType = (text: string): string => shown(asStarted(started, text));
    const zoned = times ? timesIn(times) : UTC_TIMES;
    const columns = (stderr.isTerminal && stderr.columns) || Number.POSITIVE_INFINITY;
    const sentences = (label: string, text: Said, show = shown): string => {
      const said = show(inTimes(text, zoned));
      const isLong = label.length + said.length > columns;
      const lines = isLong ? folded(said, columns - label.length) : [said];
      return `${label}${lines.join(`\n${' '.repeat(label.length)}`)}\n`;
    };
    const what = sentences('error: ', failure.says);
    const why = facts.why === undefined ? '' : sentences('  why: ', facts.why, toType);
    const lines = (facts.lines ?? []).map((line) => sentences('    ', line)).join('');
    const reservation = facts.reservation === undefined ? '' : `  reservation: ${shown(facts.reservation)}\n`;
    const choices = offered.map(({ offer, command }) => ({
      label: shown(inTimes(offer.label, zoned)),
      command: toType(command),
    }));
    const tried = fix === undefined ? [] : [continued(`  try: ${toType(fix)}`, columns, started.shell)];
    const advice = (choices.length > 0 ? offerLines(choices, columns, started.shell) : tried)
      .map((line) => `${line}\n`)
      .join('');
    stderr.write(`${what}${why}${lines}${reservation}${advice}`);
    return exitCode;
  }
  const report = {
    error: {
      code,
      message,
      why: inOneText(facts.why, facts.lines && inOneLine(facts.lines)) ?? null,
      fix: fix ?? null,
      exitCode,
      httpStatus: facts.httpStatus ?? null,
      retryable: facts.retryable ?? false,
      maybeDone: facts.maybeDone ?? false,
      details: facts.details ?? [],
      reservation: facts.reservation ?? null,
      alternatives:
        offered.length > 0
          ? offered.map(({ offer, command }) => offerItem(offer, command))
          : (facts.alternatives ?? []),
      standing: facts.standing,
      items: facts.items,
    },
  };
  stderr.write(`${jsonText(report, printedMember(started))}\n`);
  return exitCode;
}

/** The command that helps after a failure that has no advice of its own. */
export function nextStep(code: FailureCode): string | undefined {
  const command = isProblemCode(code) ? PROBLEMS[code].command : undefined;
  return command === undefined ? undefined : `slices-conn ${command}`;
}

/** Lines as they stand in one text: sentences one after the other, other lines parted by a semicolon. */
function inOneLine(lines: readonly Said[]): string {
  const texts = lines.map(String);
  return texts
    .map((text, at) => (at === texts.length - 1 || text.endsWith('.') ? text : `${text};`))
    .join(' ');
}

/** The next step where nothing better is known: the same command, which is safe where nothing was changed; its help. */
function again({ code, facts }: Failure, typed: CommandLine): FailureFacts['fix'] {
  const { retryable, maybeDone, reservation } = facts;
  if (maybeDone || reservation !== undefined) return undefined;
  if (code === 'usage') return '--help';
  if (code === 'bug') return { debug: true };
  return code === 'unavailable' && retryable ? retyped(typed, {}) : undefined;
}

/** The code that knows it may have said it already. */
const NOTHING = 'Nothing was changed';

/** Adds to a failure with exit code 7 that nothing was changed, so that it is safe to try again (cli/README.md, "Exit codes"). */
function withNothingChanged({ code, facts }: Failure): FailureFacts {
  if (
    EXIT_CODE_OF[code] !== 7 ||
    code === 'keys_unreachable' ||
    facts.maybeDone ||
    facts.reservation !== undefined ||
    String(facts.why).includes(NOTHING)
  )
    return facts;
  return { ...facts, why: inOneText(facts.why, `${NOTHING}.`) };
}

/** Advice as a command; undefined where the typed command has none of the flags to change. */
function wholeAdvice(typed: CommandLine, advised: FailureFacts['fix']): string | undefined {
  if (advised === '--help') return `${pathOf(typed.command)} --help`;
  if (typeof advised !== 'object') return advised;
  const whole = retyped(typed, advised);
  return whole === retyped(typed, {}) ? undefined : whole;
}

/** Masks tokens: a message may repeat one that was typed in the wrong place (THREATS.md 54). */
function shown(text: string): string {
  return escapeText(withoutTokens(text));
}

/** A request that the service would accept in place of the refused one. */
export interface Offer {
  /** In which way it is the best (cli/README.md, "Output"). */
  kind: AlternativeKind;
  /** Mbps. */
  bandwidth: number;
  /** Milliseconds; `now`: at the time of the request. */
  start: number | 'now';
  /** Milliseconds. */
  end: number;
  /** Of `other_route`: the sites that it passes, in order. */
  via?: readonly string[] | undefined;
  /** The difference from the request, in words. */
  label: Said;
  /** The flags of the typed command that differ. */
  changes: Changes;
  /** Arguments that were not typed: the id of a reservation that was chosen from a list. */
  more: readonly string[];
}

/** A refusal with what the service offers in its place. */
export class Refusal extends Failure {
  readonly offers: readonly Offer[];

  constructor({ code, says, facts }: Failure, offers: readonly Offer[]) {
    super(code, says, facts);
    this.offers = offers;
  }
}

/** An offer for programs: an item of `error.alternatives` (cli/README.md, "Output"). @param command asks for it */
export function offerItem({ kind, bandwidth, start, end, via }: Offer, command: string): object {
  const isNow = start === 'now';
  return {
    kind,
    bandwidth,
    start_date: isNow ? null : formatInstant(start),
    end_date: formatInstant(end),
    start_now: isNow,
    ...(via ? { via } : {}),
    command,
  };
}

/**
 * Offers for people, numbered, each with its command: in one line each where all of them fit, else with the command
 * below, which goes on in the next line as the shell has it. All texts are escaped already.
 *
 * @param columns of the terminal; Infinity without one: then one line each
 */
export function offerLines(
  offers: readonly { label: string; command: string }[],
  columns: number,
  shell: AdviceShell,
): string[] {
  const width = Math.max(...offers.map(({ label }) => label.length));
  const lines = offers.map(({ label, command }, at) => `  ${at + 1}  ${label.padEnd(width)}  ${command}`);
  if (lines.every(({ length }) => length <= columns)) return lines;
  return offers.flatMap(({ label, command }, at) => [
    ...folded(label, columns - 5).map((line, row) => `  ${row === 0 ? at + 1 : ' '}  ${line}`),
    continued(`     ${command}`, columns, shell),
  ]);
}
