import { parseBandwidth, parseDuration } from '../../contract/amounts.ts';
import { Failure } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { LAST_INSTANT } from '../../contract/instants.ts';
import { sentence } from '../../contract/said.ts';
import { claimedExperimentExpiry } from '../../tokens/claimed.ts';
import { later } from '../../words/typed-time.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context, Outcome, StartedCommand } from '../context.ts';
import { ALLOW_UNSIGNED, waitSeconds } from '../global-options.ts';
import { onServiceTime, periodToSend } from '../period.ts';
import { siteName } from '../values.ts';
import { refusalOf } from './alternatives.ts';
import { ROUTE_OPTIONS, readRoute } from './options.ts';
import { checkGivenTokens, lastEnd, RunReservation } from './run-reservation.ts';

/**
 * `slices-conn run SITE1 SITE2 --bandwidth B --for D [--earliest] [--wait D] [--extend]
 * [--on-lost warn|term] -- COMMAND [ARG...]`.
 */
export const command = {
  about: [
    'Books a link, runs a command, and deletes the reservation when the command ends, however it ends.',
    'With --earliest or --wait the command waits for its turn, where the link is not free now.',
    "The command has this program's input and output, and finds the VLAN tags in its environment (slices-conn help environment).",
    "Exits with the command's own code; with 126 or 127 when the command can't be started, and with 124 when the link was lost and --on-lost term ended the command.",
  ].join('\n'),
  usage: '<site1> <site2> --bandwidth <rate> --for <duration> [flags] -- <command> [arguments]',
  args: {
    '<site1>': 'one end, such as be-gent1',
    '<site2>': 'the other end',
    '<command...>': 'what to run, with its arguments',
  },
  options: {
    bandwidth: { flags: '--bandwidth <rate>', help: '100 (Mbps), 100M, 1G, 2.5G', required: true },
    for: { flags: '--for <duration>', help: 'how long to book: 90m, 2h, 3d', required: true },
    earliest: { flags: '--earliest', help: 'book the earliest time that fits, and wait until it starts' },
    wait: {
      flags: '--wait <seconds>',
      help: 'the same, but wait at most so long, such as 30m: where nothing starts by then, nothing is booked',
      parse: waitSeconds,
    },
    ...ALLOW_UNSIGNED,
    extend: {
      flags: '--extend',
      help: 'when a third of the time is left, book as much again, while the command runs',
    },
    withToken: {
      flags: '--with-token',
      help: "hand on the tokens of this program's environment, for a command that calls slices-conn; else it gets none",
    },
    onLost: {
      flags: '--on-lost <action>',
      help: 'when the link is lost, which is noticed within a minute: warn, or end the command with SIGTERM',
      choices: ['warn', 'term'],
      default: 'warn',
    },
    ...ROUTE_OPTIONS,
  },
  examples: [
    'slices-conn run be-gent1 pl-poznan1 --bandwidth 1G --for 2h -- ./measure.sh',
    'slices-conn run be-gent1 pl-poznan1 --bandwidth 1G --for 2h --extend --on-lost term -- iperf3 -c 10.0.0.2',
    'slices-conn run be-gent1 pl-poznan1 --bandwidth 9G --for 1h --wait 8h -- ./measure.sh',
    "slices-conn run be-gent1 pl-poznan1 --bandwidth 500M --for 30m -- sh -c 'echo tag $SLICES_CONN_SITE1_S_TAG'",
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/** How long a command has to end after it was asked to, in milliseconds. */
const GRACE = 10_000;

/** Books a link, now or at the earliest time that fits, runs a command, and deletes the reservation when the command has ended. */
export async function run(
  given: Context,
  [site1 = '', site2 = '', ...command]: readonly string[],
  flags: Flags,
): Promise<Outcome> {
  checkSeparated(command, given);
  const ends = { site1: siteName(site1), site2: siteName(site2) };
  const asked = { ...ends, ...readRoute(flags, ends), bandwidth: parseBandwidth(flags.bandwidth) };
  const duration = parseDuration(flags.for);
  await given.processes.check(command[0] ?? '');
  const session = await given.session();
  const context = await onServiceTime(given, session);
  const access = await session.signedIn();
  const proof = { allowUnsigned: flags.allowUnsigned };
  // Before anything is booked: the profile may name a zone that does not exist.
  await context.clock.times();
  const now = context.clock.now();
  const wait = flags.wait === undefined ? undefined : flags.wait * 1000;
  const isSearch = flags.earliest || wait !== undefined;
  const expiry = claimedExperimentExpiry(access.token.reveal());
  let { end } = periodToSend({ start: 'now', end: now, lasting: duration }, { now }, expiry);
  await checkGivenTokens(session, isSearch ? later(now, duration) : end, now);
  if (isSearch) {
    const { last } = await lastEnd(session);
    if (wait === undefined && last === LAST_INSTANT) {
      throw new Failure('usage', "The experiment's token does not say when it ends.", {
        fix: { wait: '1d' },
      });
    }
    end = Math.min(last, wait === undefined ? last : later(now, wait + duration));
  }
  const request = { ...asked, start: 'now', end, ...(isSearch ? { duration } : {}) } as const;
  const reservation = await RunReservation.create({ context, session, duration, proof }, request).catch(
    (error: unknown) => {
      throw refusalOf(error, { request, typed: context.typed, now, wait });
    },
  );
  try {
    await reservation.waitForStart();
    const started = await context.processes.start(command, {
      variables: reservation.variables,
      withTokens: flags.withToken,
    });
    if (flags.onLost === 'term') {
      await reservation.guardCommand(started.pid);
      void started.ended.then(() => reservation.guardCommand(null));
    }
    return await untilEnded(context, flags, reservation, started);
  } finally {
    await reservation.delete();
  }
}

/**
 * Checks that the command stands after `--`: else its flags could have been taken for ours.
 *
 * @throws Failure `usage`
 */
function checkSeparated(command: readonly string[], { typed, output }: Context): void {
  const at = typed.texts.indexOf('--');
  const after = at === -1 ? [] : typed.texts.slice(at + 1);
  if (command.length === after.length && command.every((word, index) => word === after[index])) return;
  throw new Failure('usage', 'The command stands after two dashes, and all flags of run before them.', {
    why:
      at === -1 && output.shell === 'powershell'
        ? 'PowerShell takes them away from scripts. Type them in quotes: "--"'
        : `Words that were taken for the command: ${command.join(' ')}`,
    fix: 'slices-conn run --help',
  });
}

/**
 * Looks after the reservation until the command has ended.
 *
 * @returns the command's exit code
 * @throws Failure `link_lost` where the command was ended because the link was lost
 */
async function untilEnded(
  { clock }: Context,
  { extend = false, onLost }: Flags,
  reservation: RunReservation,
  started: StartedCommand,
): Promise<number> {
  const over = new AbortController();
  const ended = started.ended.finally(() => over.abort());
  const loss = await reservation.untilLost(over.signal, { extend });
  if (loss === undefined) return ended;
  if (onLost === 'warn') {
    await reservation.say(sentence`warning: ${loss} The command goes on without the link.`);
    return ended;
  }
  await reservation.say(sentence`${loss} The command is asked to end.`);
  started.signal('SIGTERM');
  await clock.sleep(GRACE, over.signal).catch(() => undefined);
  if (!over.signal.aborted) started.signal('SIGKILL');
  await ended;
  throw new Failure('link_lost', loss, { why: 'The command was ended, as --on-lost term says.' });
}
