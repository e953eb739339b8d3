import { Failure } from '../../../contract/failure.ts';
import { LAST_INSTANT } from '../../../contract/instants.ts';
import type { ReservationRequest } from '../../../contract/reservation-request.ts';
import { sentence } from '../../../contract/said.ts';
import { parseDuration } from '../../../contract/typed-duration.ts';
import { claimedExperimentExpiry } from '../../../tokens/claimed.ts';
import { later } from '../../../words/typed-time.ts';
import type { Context, Outcome, StartedCommand } from '../../context.ts';
import { onServiceTime, periodToSend } from '../../period.ts';
import { parseBandwidth, siteName } from '../../values.ts';
import { refusalOf } from '../alternatives.ts';
import { type RouteFlags, readRoute } from '../route-options.ts';
import { checkGivenTokens, lastEnd, RunReservation } from './run-reservation.ts';

/** The flags of `run`, as typed. */
export interface RunFlags extends RouteFlags {
  bandwidth: string;
  for: string;
  /** Whether to wait for the earliest time that fits; `wait` means so too. */
  earliest?: boolean;
  /** Seconds until the latest start. */
  wait?: number;
  extend?: boolean;
  /** Whether unsigned answers are accepted. */
  allowUnsigned?: boolean;
  /** Whether the command gets the tokens of this program's environment. */
  withToken?: boolean;
  /** The action when the link is lost: a warning, or the end of the command. */
  onLost: 'warn' | 'term';
}

/** How long a command has to end after it was asked to, in milliseconds. */
const GRACE = 10_000;

/** Books a link, now or at the earliest time that fits, runs a command, and deletes the reservation when the command has ended. */
export async function run(
  given: Context,
  args: readonly (string | readonly string[])[],
  flags: RunFlags,
): Promise<Outcome> {
  const [site1 = '', site2 = '', ...command] = args.flat();
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
  const expiry = claimedExperimentExpiry(access.token.reveal());
  if (flags.earliest || flags.wait !== undefined) {
    await checkGivenTokens(session, later(now, duration), now);
    const last = await lastEnd(session, expiry);
    if (flags.wait === undefined && last === LAST_INSTANT) {
      throw new Failure('usage', "The experiment's token does not say when it ends.", { fix: '--wait 1d' });
    }
    const latest = flags.wait === undefined ? last : later(now, flags.wait * 1000 + duration);
    return bookAndRun({ ...asked, start: 'now', end: Math.min(last, latest), duration });
  }
  const { end } = periodToSend({ start: 'now', end: now, lasting: duration }, now, expiry);
  await checkGivenTokens(session, end, now);
  return bookAndRun({ ...asked, start: 'now', end });

  async function bookAndRun(request: ReservationRequest): Promise<Outcome> {
    const reservation = await RunReservation.create({ context, session, duration, proof }, request).catch(
      (error: unknown) => {
        const { typed } = context;
        const period = { for: flags.for };
        throw refusalOf(error, {
          request,
          typed,
          flags: period,
          now,
          startsWithCommand: true,
          ...(flags.wait === undefined ? {} : { wait: flags.wait * 1000 }),
          send: bookAndRun,
        });
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
}

/**
 * Checks that the command stands after `--`: else its flags could have been taken for ours.
 *
 * @throws Failure `usage`
 */
function checkSeparated(command: readonly string[], { typed, output }: Context): void {
  const at = typed.indexOf('--');
  const after = at === -1 ? [] : typed.slice(at + 1);
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
  context: Context,
  { extend = false, onLost }: RunFlags,
  reservation: RunReservation,
  started: StartedCommand,
): Promise<number> {
  const over = new AbortController();
  const ended = started.ended.finally(() => over.abort());
  const wait = (milliseconds: number): Promise<void> =>
    context.clock.sleep(milliseconds, over.signal).catch(() => undefined);
  for (;;) {
    await reservation.untilLook(extend, over.signal);
    if (over.signal.aborted) return ended;
    const loss = await reservation.look(extend);
    if (over.signal.aborted) return ended;
    if (loss === undefined) continue;
    if (onLost === 'warn') {
      await reservation.say(sentence`warning: ${loss} The command goes on without the link.`);
      return ended;
    }
    await reservation.say(sentence`${loss} The command is asked to end.`);
    started.signal('SIGTERM');
    await wait(GRACE);
    if (!over.signal.aborted) started.signal('SIGKILL');
    await ended;
    throw new Failure('link_lost', loss, { why: 'The command was ended, as --on-lost term says.' });
  }
}
