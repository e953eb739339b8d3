import { asFailure, type Failure, type FailureFacts } from '../../contract/failure.ts';
import { inOneText, inTimes, type Said, UTC_TIMES } from '../../contract/said.ts';
import { withoutTokens } from '../../contract/secret.ts';
import { nextStep } from '../advice.ts';
import { type CommandLine, isTyped, retyped, servicesIn } from '../command-line.ts';
import { EXIT_CODE_OF, type ExitCode } from '../exit-codes.ts';
import { pathOf } from '../help-layout.ts';
import { type TimeContext, timesIn } from '../times.ts';
import { asStarted, BY_NAME, printedMember, type Started } from './as-started.ts';
import { continued, folded } from './folded.ts';
import { offerItem, offerLines, Refusal } from './offers.ts';
import { escapeLines, escapeText, jsonText, type TextStream } from './output.ts';

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
  const help = exitCode === EXIT_CODE_OF.usage ? `${pathOf(typed.command)} --help` : undefined;
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

/** Lines as they stand in one text: sentences one after the other, other lines parted by a semicolon. */
function inOneLine(lines: readonly Said[]): string {
  const texts = lines.map(String);
  return texts
    .map((text, at) => (at === texts.length - 1 || text.endsWith('.') ? text : `${text};`))
    .join(' ');
}

/** The same command as the next step: a service that is not available has changed nothing; a bug is to be reported. */
function again({ code, facts }: Failure, typed: CommandLine): FailureFacts['fix'] {
  const { retryable, maybeDone, reservation } = facts;
  if (maybeDone || reservation !== undefined) return undefined;
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
  if (typeof advised !== 'object') return advised;
  const whole = retyped(typed, advised);
  return whole === retyped(typed, {}) ? undefined : whole;
}

/** Masks tokens: a message may repeat one that was typed in the wrong place (THREATS.md 54). */
function shown(text: string): string {
  return escapeText(withoutTokens(text));
}
