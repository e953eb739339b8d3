import type { CLIENT_FAILURES, FailureCode } from '../contract/failure.ts';
import { PROBLEM_CODES, PROBLEMS, type ProblemCode } from '../contract/problems.ts';

/** The meaning of each exit code (cli/README.md, "Exit codes"); the text of `slices-conn help exit-codes`. */
export const EXIT_CODES = {
  0: 'done (a closed pipe on stdout included)',
  1: 'unexpected: a bug here, or a request that the service does not understand',
  2: "usage: a flag, a value, a file's content; an address that is not the server's own; an idempotency key that was used for another request",
  3: 'not found, or not supported by this service',
  4: 'not logged in, token expired or not accepted, device code expired',
  5: 'forbidden: the role or the scope does not allow it, device login denied',
  6: 'refused: site, date or bandwidth; the message says what would work. probe: a fault was found',
  7: 'network, timeout, service or key set unavailable: worth trying again, unless it may have taken effect (maybeDone)',
  8: 'still pending',
  9: 'not verified: a token, key set or reply is not valid; verify: the reservation was deleted, replaced or has ended',
  10: 'several asked (delete, verify), some failed; where all failed alike, their code',
  11: 'plan --exit-code: it fits, and there are changes',
  124: 'run --on-lost term: the link was lost, and the command was ended',
  126: "run: the command can't be started",
  127: 'run: the command was not found',
  130: 'interrupted',
  143: 'terminated',
} as const;

/** An exit code of the command line; see {@link EXIT_CODES}. */
export type ExitCode = keyof typeof EXIT_CODES;

/** The exit codes of failures that no service names. */
const OF_CLIENT = {
  usage: 2,
  file_unusable: 2,
  state_unusable: 2,
  not_logged_in: 4,
  login_denied: 5,
  login_pending: 8,
  start_pending: 8,
  code_expired: 4,
  forbidden: 5,
  request_rejected: 1,
  network: 7,
  timeout: 7,
  reply_invalid: 9,
  unverified: 9,
  keys_unreachable: 7,
  unsigned: 9,
  partly_done: 10,
  command_not_found: 127,
  command_not_runnable: 126,
  link_lost: 124,
  interrupted: 130,
  terminated: 143,
  bug: 1,
} as const satisfies Record<(typeof CLIENT_FAILURES)[number], ExitCode>;

/** The exit code of every failure (cli/README.md, "Exit codes"): of a service's problems their own, see {@link PROBLEMS}. */
export const EXIT_CODE_OF: Readonly<Record<FailureCode, ExitCode>> = {
  ...(Object.fromEntries(PROBLEM_CODES.map((code) => [code, PROBLEMS[code].exit])) as Record<
    ProblemCode,
    ExitCode
  >),
  ...OF_CLIENT,
};
