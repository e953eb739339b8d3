import type { ProblemCode, RefusalFacts } from './problems.ts';
import type { Said } from './said.ts';

/** The codes of failures that a service does not name itself: found by the client, the session or the command line. */
export const CLIENT_FAILURES = [
  'usage',
  'file_unusable',
  'state_unusable',
  'not_logged_in',
  'login_denied',
  'login_pending',
  'start_pending',
  'code_expired',
  'forbidden',
  'request_rejected',
  'network',
  'timeout',
  'reply_invalid',
  'unverified',
  'keys_unreachable',
  'unsigned',
  'partly_done',
  'command_not_found',
  'command_not_runnable',
  'link_lost',
  'interrupted',
  'terminated',
  'bug',
] as const;

/** Every code that an error object of the command line can carry (cli/README.md, "Output"). */
export type FailureCode = ProblemCode | (typeof CLIENT_FAILURES)[number];

/** One object of a service's `detail` list as it came (contract/README.md, "Validation error body"; THREATS.md 67). */
export interface FailureDetail {
  /** Of Site, Date, Bandwidth where the service keeps to the spec; whatever another one says, such as `body`, `site1`. */
  loc: readonly (string | number)[];
  /** A sentence for people. */
  msg: string;
  /** The kind of the problem, as the service names it. */
  type: string;
  /** Of a batch: the index of the item that it is about, where the service says so. */
  item?: number;
  /** The service's own code for it, and what its message was made of; see `words/problems.ts`. */
  code?: string;
  /** The facts of the sentence, for programs. */
  facts?: Readonly<Record<string, unknown>>;
}

/**
 * Changes of the command that was typed, by the members that hold the values of its flags: the value that a flag gets, or
 * several, true where it has none, and undefined where it is left out. A new flag takes the place of the one that is left out
 * just before it.
 */
export type Changes = Readonly<Record<string, string | readonly string[] | true | undefined>>;

/** The facts of a failure, for people and for programs; those of a refusal by a link where the service says them. */
export interface FailureFacts extends RefusalFacts {
  /** Why it happened, in a sentence. */
  why?: Said;
  /** Lines that belong to the reason, such as the candidates for an ambiguous name. */
  lines?: readonly Said[];
  /** The next step: a command, changes of the typed command, or `--help` for its help, which is the default of a mistake in what was typed. */
  fix?: string | Changes;
  /** The status of the answer; absent where none came. */
  httpStatus?: number;
  /** Whether the service named a code of its own; absent where no answer came. */
  hasOwnCode?: boolean;
  /** The request may still have taken effect: only a look at the service can tell. */
  maybeDone?: boolean;
  /** Whether trying the same again can succeed. */
  retryable?: boolean;
  /** Each problem that the service named. */
  details?: readonly FailureDetail[];
  /** The id of a reservation that exists, or may exist, in spite of the failure. */
  reservation?: string;
  /** The reservation differs from what was asked for: it may be somebody else's, and nothing is done to it by itself. */
  isOther?: boolean;
  /** Of a batch: for each item the id of a reservation that it may have left behind; null where none is known. */
  reservations?: readonly (string | null)[];
  /** Of a signed reservation that verifies and is not good any more: why (cli/README.md, "Output"). */
  standing?: 'deleted_or_replaced' | 'ended';
  /** Of changes that were asked for together: each of them (cli/README.md, "Output", plan and apply). */
  items?: readonly object[];
  /**
   * The exit code in place of the code's own: `not_supported` is 5 for `login --ci` (cli/README.md, "Environment"), 9 for a login;
   * a refusal with a status of success is 6.
   */
  exitCode?: 5 | 6 | 9;
  /** The error behind it. */
  cause?: unknown;
}

/** Something went wrong in a way that a person or a script can act on. Never holds a secret. */
export class Failure extends Error {
  /** The name that `toString` begins with. */
  override readonly name = 'Failure';
  /** The kind of failure, for programs. */
  readonly code: FailureCode;
  /** All else that is known of it. */
  readonly facts: FailureFacts;
  /** The message; as a string it has its times in UTC. */
  readonly says: Said;

  constructor(code: FailureCode, says: Said, facts: FailureFacts = {}) {
    super(String(says), facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.facts = facts;
    this.says = says;
  }

  /** The same failure with more said about it. */
  with(facts: FailureFacts): Failure {
    return new Failure(this.code, this.says, { ...this.facts, ...facts });
  }
}

/** Any error as a failure: another error than a Failure is a mistake in this program. */
export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new Failure('bug', `Something unexpected happened: ${message}`, {
    why: 'This is a defect of slices-conn. Please report it, with what --debug prints.',
    cause: error,
  });
}

/** Whether a service answered that it does not have what was asked for. A name that only this machine does not know is another `not_found`. */
export function isGone(error: unknown): error is Failure {
  return error instanceof Failure && error.code === 'not_found' && error.facts.httpStatus === 404;
}

/** Whether a service answered that it has no such endpoint or resource. Extensions of the spec may be missing. */
export function isMissing(error: unknown): error is Failure {
  return error instanceof Failure && [404, 405, 501].includes(error.facts.httpStatus ?? 0);
}

/** Undefined in place of what the service does not have. @throws every other error */
export function undefinedIfGone(error: unknown): undefined {
  if (!isGone(error)) throw error;
}

/** Whether the same request, sent once more, may succeed or find out what became of it. */
export function mayBeRepeated(error: unknown): error is Failure {
  return error instanceof Failure && (error.facts.retryable === true || error.facts.maybeDone === true);
}

/** A failure as a result. @throws every other error */
export function failureOrThrow(error: unknown): Failure {
  if (error instanceof Failure) return error;
  throw error;
}

/**
 * Quotes a text as one shell word, since a suggested command may hold a name that another person chose. POSIX shells, zsh
 * and fish read the result alike; they differ in backslashes between quotes and in a `=` at the front.
 *
 * @example shellWord("my link's") // "'my link'\\''s'"
 */
export function shellWord(text: string): string {
  if (/^[\w@+:,./-][\w@%+=:,./-]*$/.test(text)) return text;
  return `'${text.replace(/['\\]+/g, (found) => `'${found.replace(/./g, String.raw`\$&`)}'`)}'`;
}

/**
 * A command of this program, as a shell takes it.
 *
 * @example ownCommand('show', 'a b') // "slices-conn show 'a b'"
 */
export function ownCommand(...words: readonly string[]): string {
  return ['slices-conn', ...words].map(shellWord).join(' ');
}

/** The command that moves an unreadable file of ours away; it is never deleted (THREATS.md 17). */
export function moveAway(path: string): string {
  return ['mv', path, `${path}.bad`].map(shellWord).join(' ');
}
