import { formatBandwidth, parseBandwidth } from '../../contract/amounts.ts';
import { formatDuration } from '../../contract/durations.ts';
import { Failure } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { textsOf } from '../../contract/reservation.ts';
import { asUpdate, periodOf, type ReservationRequest } from '../../contract/reservation-request.ts';
import { claimedExperimentExpiry } from '../../tokens/claimed.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { ALLOW_UNSIGNED } from '../global-options.ts';
import {
  checkPeriodChange,
  onServiceTime,
  PERIOD_CHANGE_OPTIONS,
  periodToSend,
  readPeriodChange,
} from '../period.ts';
import { confirmIfAsked } from '../questions.ts';
import { shortTimes } from '../times.ts';
import { refusalOf } from './alternatives.ts';
import { TEXT_OPTIONS } from './options.ts';
import { reservationArgument } from './reservation-argument.ts';
import { printChanged } from './results.ts';

/** `slices-conn update ID [--bandwidth B] [--start T] [--end T|--for D|--extend D]`. */
export const command = {
  about:
    "Changes a reservation. When the link can't give all of it, nothing is changed.\nThe route stays, and so do the VLAN tags when they are free for the new period. The printed reservation has the tags to use.",
  args: {
    '[id]': 'its name, its id, or four characters or more of the last part; asked for when left out',
  },
  options: {
    bandwidth: { flags: '--bandwidth <rate>', help: '100 (Mbps), 100M, 1G, 2.5G' },
    ...PERIOD_CHANGE_OPTIONS,
    ...TEXT_OPTIONS,
    ...ALLOW_UNSIGNED,
  },
  examples: [
    'slices-conn update con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --extend 1h',
    'slices-conn update con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --bandwidth 2G --extend 2h',
    'slices-conn update con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --name weekly',
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/** Changes a reservation, all or nothing. */
export async function run(given: Context, [typed]: readonly string[], flags: Flags): Promise<void> {
  const { bandwidth, allowUnsigned = false } = flags;
  const texts = textsOf(flags);
  const changes = [bandwidth, flags.start, flags.end, flags.for, flags.extend, ...Object.values(texts)];
  if (changes.every((flag) => flag === undefined)) {
    throw new Failure('usage', 'The change is missing.', {
      why: 'Give --bandwidth, --start, --end, --for, --extend, --name or --description.',
    });
  }
  const rate = bandwidth === undefined ? {} : { bandwidth: parseBandwidth(bandwidth) };
  checkPeriodChange(flags, await given.clock.times());
  const { session, id } = await reservationArgument(given, typed, 'update');
  const context = await onServiceTime(given, session);
  const { reservations } = session;
  const current = await reservations.show(id, { allowUnsigned });
  const asked = readPeriodChange(flags, periodOf(current.reservation), await context.clock.times());
  const experiment = await session.access();
  const expiry = claimedExperimentExpiry(experiment.token.reveal());
  const before = asUpdate(current.reservation);
  const period = periodToSend(asked, await context.clock.times(), expiry);
  const { start = before.start, end = before.end } = period;
  const wanted = { ...before, ...rate, ...texts, start, end };
  await confirmGrowth(context, before, wanted);
  const [proven] = await reservations
    .change([{ action: 'update', id, request: wanted }], { allowUnsigned })
    .catch((error: unknown) => {
      throw refusalOf(error, {
        request: wanted,
        typed: context.typed,
        update: { id, start: before.start, end: before.end },
        now: context.clock.now(),
      });
    });
  const about = { experiment, before: current.reservation };
  await printChanged(context, 'Updated', proven, { ...about, request: texts, lasting: asked.lasting });
}

/**
 * Asks before a reservation becomes more than twice as long, or more than twice as wide: a slip of a time or a unit does that.
 *
 * @throws Declined
 */
async function confirmGrowth(
  context: Context,
  before: { bandwidth: number; start: number; end: number },
  wanted: ReservationRequest & { bandwidth: number },
): Promise<void> {
  const start = wanted.start === 'now' ? context.clock.now() : wanted.start;
  const [lasted, lasts] = [before.end - before.start, wanted.end - start];
  const isLonger = lasts > 2 * lasted;
  const isWider = wanted.bandwidth > 2 * before.bandwidth;
  if (!isLonger && !isWider) return;
  const times = await context.clock.times();
  const period = `From ${shortTimes(times).ends(start, wanted.end).join(' to ')} ${times.zone}`;
  if (context.terminal.ask) context.output.prompt(`${period}, ${formatBandwidth(wanted.bandwidth)}.`);
  const grown = [
    ...(isLonger ? [`${formatDuration(lasts)} long in place of ${formatDuration(lasted)}`] : []),
    ...(isWider
      ? [`${formatBandwidth(wanted.bandwidth)} in place of ${formatBandwidth(before.bandwidth)}`]
      : []),
  ];
  await confirmIfAsked(context, `Make it ${grown.join(', and ')}?`, 'Nothing was changed.');
}
