import type { ProvenReservation } from '../../client/proof.ts';
import {
  formatBandwidth,
  formatVolume,
  parseBandwidth,
  parseDuration,
  parseVolume,
  withLastingVolume,
} from '../../contract/amounts.ts';
import { formatDuration } from '../../contract/durations.ts';
import { Failure, shellWord } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { LAST_INSTANT } from '../../contract/instants.ts';
import { MAX_IDEMPOTENCY_KEY } from '../../contract/request-limits.ts';
import { askedRouteOf, type Reservation, textsOf } from '../../contract/reservation.ts';
import { periodOf, type ReservationRequest } from '../../contract/reservation-request.ts';
import { inOneText } from '../../contract/said.ts';
import type { ExperimentAccess } from '../../session/login/experiment-access.ts';
import type { Session } from '../../session/session.ts';
import { claimedExperimentExpiry } from '../../tokens/claimed.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context, Files, Outcome } from '../context.ts';
import { ALLOW_UNSIGNED, waitSeconds } from '../global-options.ts';
import {
  type NewPeriod,
  onServiceTime,
  PERIOD_OPTIONS,
  periodToSend,
  readPeriod,
  readSearch,
} from '../period.ts';
import { rehearsalCard, reservationResult } from '../print/cards.ts';
import { folded } from '../print/folded.ts';
import type { CardLine } from '../print/output.ts';
import { confirmIfAsked, confirmWriting, missingFailure } from '../questions.ts';
import { distanceIn, endAside, shortTime, shortTimes, type TimeContext } from '../times.ts';
import { siteName } from '../values.ts';
import { refusalOf } from './alternatives.ts';
import { waitForStart } from './looks.ts';
import { askForMissing, missingOf, withLeast } from './missing.ts';
import { ROUTE_OPTIONS, readRoute, TEXT_OPTIONS } from './options.ts';
import { printChanged } from './results.ts';

/**
 * `slices-conn reserve SITE1 SITE2 --bandwidth B (--start T | --start-now) (--end T | --for D)`, --earliest,
 * --volume.
 */
export const command = {
  about: [
    'Books a link between two sites and verifies the signed answer before anything is printed.',
    'With --earliest the service finds the start: the first that fits. With --volume it finds rate and time: those that finish first.',
    'Exits with 6 when the link is not free; the message then says what would work.',
    'On a terminal it asks for what is missing, and shows the command that it was.',
  ].join('\n'),
  usage:
    '<site1> <site2> --bandwidth <rate> (--start <time> | --start-now) (--end <time> | --for <duration>) [flags]',
  args: { '[site1]': 'one end, such as be-gent1', '[site2]': 'the other end' },
  options: {
    bandwidth: {
      flags: '--bandwidth <rate>',
      help: 'required, except with --volume: 100 (Mbps), 100M, 1G, 2.5G; then it is the most that may be used',
    },
    ...PERIOD_OPTIONS,
    earliest: {
      flags: '--earliest',
      help: 'book the earliest time that fits: --for is the duration, --start not before, --end not after',
      conflicts: ['volume'],
    },
    volume: {
      flags: '--volume <bytes>',
      help: 'book what carries so much by --end: 800G, 50T, 2TiB; in place of --for; --bandwidth is its cap',
      conflicts: ['for'],
    },
    ...ROUTE_OPTIONS,
    ...TEXT_OPTIONS,
    wait: {
      flags: '--wait [seconds]',
      help: 'return when the link has started; after this long, exit code 8, and the link stays booked',
      parse: waitSeconds,
    },
    dryRun: { flags: '--dry-run', help: 'say what would be booked, and book nothing', conflicts: ['wait'] },
    save: { flags: '--save <file>', help: 'write the signed reservation to a file, for verify' },
    idempotencyKey: {
      flags: '--idempotency-key <key>',
      help: 'repeat the command with the same key: it books only once',
      parse: idempotencyKey,
    },
    ...ALLOW_UNSIGNED,
  },
  first: [
    ...['bandwidth', 'start', 'startNow', 'end', 'for', 'earliest', 'volume', 'via', 'name', 'wait'],
    ...['dryRun', 'save'],
  ],
  examples: [
    'slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h',
    'slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h --name nightly',
    "slices-conn reserve be-gent1 pl-poznan1 --bandwidth 2.5G --start 'friday 10:00' --end 'friday 18:00'",
    'slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1G --start 14:00 --for 2h --wait && ./measure.sh',
    'slices-conn reserve be-gent1 pl-poznan1 --bandwidth 100M --start-now --for 1d --save link.jwt --json',
    'slices-conn reserve be-gent1 pl-poznan1 --bandwidth 9G --for 2h --earliest',
    'slices-conn reserve be-gent1 gr-uth --bandwidth 500M --start-now --for 4h',
    'slices-conn reserve be-gent1 fr-slices --bandwidth 1G --start-now --for 2h --avoid fr-lille',
    'slices-conn reserve be-gent1 pl-poznan1 --volume 50T --bandwidth 10G --end friday',
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/**
 * Turns arguments and flags into a request. A search without --end ends with the experiment: here at the last instant.
 *
 * @throws Failure `usage`
 */
function parseReserve(
  [site1 = '', site2 = '']: readonly string[],
  flags: Flags,
  times: TimeContext,
): ReservationRequest & Pick<NewPeriod, 'lasting'> {
  const ends = { site1: siteName(site1), site2: siteName(site2) };
  const sites = { ...ends, ...textsOf(flags), ...readRoute(flags, ends) };
  const { bandwidth: rate, earliest = false, volume } = flags;
  const most = rate === undefined ? {} : { bandwidth: parseBandwidth(rate) };
  if (volume !== undefined) {
    return { ...sites, ...most, volume: parseVolume(volume), ...readSearch(flags, times) };
  }
  const { bandwidth } = most;
  if (!earliest) return { ...sites, bandwidth, ...readPeriod(flags, times) };
  const duration = parseDuration(flags.for ?? '');
  return { ...sites, bandwidth, duration, ...readSearch(flags, times, duration) };
}

/** One run of `reserve`. */
interface Run {
  context: Context;
  flags: Flags;
  session: Session;
  experiment: ExperimentAccess;
}

/** Books a link, or says what would be booked. */
export async function run(given: Context, args: readonly string[], flags: Flags): Promise<Outcome> {
  const lacking = missingOf(args, flags);
  const parsed = parseReserve(...withLeast(args, flags, lacking), await given.clock.times());
  if (lacking.size > 0) {
    if (!given.terminal.ask || given.flags.json)
      throw missingFailure('slices-conn reserve', [...lacking.values()]);
    return askForMissing(given, args, lacking, askedRouteOf(parsed));
  }
  if (flags.save !== undefined && !flags.dryRun) {
    await confirmWriting(given, flags.save, 'Nothing was booked.');
  }
  const session = await given.session();
  const sinceAsked = async (error: unknown): Promise<never> => {
    const { idempotencyKey: key } = flags;
    throw key === undefined ? error : await session.reservations.sinceAsked(key, error);
  };
  const context = await onServiceTime(given, session).catch(sinceAsked);
  const asked = context === given ? parsed : parseReserve(args, flags, await context.clock.times());
  const { lasting } = asked;
  const experiment = await session.signedIn().catch(sinceAsked);
  const expiry = claimedExperimentExpiry(experiment.token.reveal());
  const end = asked.end === LAST_INSTANT ? expiry : asked.end;
  if (end === undefined) {
    throw new Failure('usage', 'The end is missing.', {
      why: "The experiment's token does not say when it ends. Give --end TIME.",
    });
  }
  const request = periodToSend({ ...asked, end }, await context.clock.times(), expiry);
  const running = { context, flags, session, experiment };
  if (flags.dryRun) await rehearse(running, request);
  else {
    await confirmRate(context, session, request);
    await book(running, request, lasting);
  }
  return 0;
}

async function rehearse(run: Run, asked: ReservationRequest): Promise<void> {
  const request = withLastingVolume(asked);
  const { context, session, experiment } = run;
  const [rehearsed] = await session.connectivity
    .change([{ action: 'create', request }], { dryRun: true })
    .catch(refusedTo(context, asked));
  const { reservation } = rehearsed;
  const times = await context.clock.times();
  const more = foundLines(request, reservation, times);
  await context.output.result({ ...reservationResult(rehearsed), dryRun: true }, (print) =>
    rehearsalCard(print, reservation, { times, experiment, more }),
  );
}

/** @param lasting see {@link NewPeriod} */
async function book(run: Run, asked: ReservationRequest, lasting?: number): Promise<void> {
  const request = withLastingVolume(asked);
  const { context, flags, session, experiment } = run;
  const { output } = context;
  const { allowUnsigned = false, save, idempotencyKey, wait } = flags;
  const { start, startNow, end } = flags;
  const typedTimes = JSON.stringify([start, startNow, end, flags.for, (await context.clock.times()).zone]);
  const options = { allowUnsigned, ...(idempotencyKey === undefined ? {} : { idempotencyKey, typedTimes }) };
  const [proven] = await session.reservations
    .change([{ action: 'create', request }], options)
    .catch(refusedTo(context, asked));
  if (save !== undefined) await saveProof(context.files, save, proven);
  const reserved = async (booked: ProvenReservation): Promise<void> => {
    const more = foundLines(request, booked.reservation, await context.clock.times());
    await printChanged(context, 'Reserved', booked, { experiment, more, request, lasting, save });
  };
  if (wait === undefined) return reserved(proven);
  const started = () => waitForStart(proven, { context, session, wait, allowUnsigned });
  // A failure leaves stdout empty with --json, so the result comes last.
  if (output.json) return reserved(await started());
  await reserved(proven);
  const now = await started();
  if (now === proven) return output.notice('The link has started.');
  await printChanged(context, 'Started, changed meanwhile:', now, { experiment });
}

/** Handles a rejected request: a refusal gets what would be accepted. */
function refusedTo({ clock, typed }: Context, request: ReservationRequest): (error: unknown) => never {
  return (error) => {
    throw refusalOf(error, { request, typed, now: clock.now() });
  };
}

/** The result of a search, for its card: how far away the earliest start is; of a volume how long it takes, and its deadline. */
function foundLines(
  { duration, volume, end: latest }: ReservationRequest,
  reservation: Reservation,
  times: TimeContext,
): CardLine[] {
  const { start, end } = periodOf(reservation);
  if (duration !== undefined) return [['found', `the earliest start: ${distanceIn(start, times)}`]];
  if (volume === undefined) return [];
  const deadline = `${shortTime(latest, times)} (${endAside(latest, distanceIn(latest, times), times)})`;
  return [
    ['found', `${formatVolume(volume)} in ${formatDuration(end - start)}`],
    ['deadline', deadline],
  ];
}

/**
 * Asks a person before a volume takes more than half of what is free: without `--bandwidth` it may use all of it. A
 * service that can't be asked beforehand answers the booking itself.
 *
 * @throws Declined when the answer is no
 */
async function confirmRate(
  context: Context,
  { connectivity }: Session,
  request: ReservationRequest,
): Promise<void> {
  const { volume, bandwidth: limit, site1, site2 } = request;
  if (volume === undefined || limit !== undefined || !context.terminal.ask || context.flags.yes) return;
  try {
    const [{ reservation }] = await connectivity.change(
      [{ action: 'create', request: withLastingVolume(request) }],
      { dryRun: true },
    );
    const { start, end } = periodOf(reservation);
    const window = { site1, site2, ...askedRouteOf(request), start, end };
    const { items } = await connectivity.availability(window);
    const free = Math.min(...items.map(({ bandwidth }) => bandwidth));
    if (reservation.bandwidth <= free / 2) return;
    const times = await context.clock.times();
    const period = `from ${shortTimes(times).ends(start, end).join(' to ')} ${times.zone}`;
    const taken = `${formatVolume(volume)} would take ${formatBandwidth(reservation.bandwidth)} of the ${formatBandwidth(free)} that are free ${period}. --bandwidth is the most that it may use.`;
    for (const line of folded(taken, context.output.columns)) context.output.prompt(line);
  } catch (error) {
    const isHarmless = error instanceof Failure && !error.facts.maybeDone && !error.facts.reservation;
    if (!isHarmless) throw error;
    return;
  }
  await confirmIfAsked(context, 'Book that?', 'Nothing was booked.');
}

/** Writes the signed reservation to a file. When that fails, the error says that the link is booked. */
async function saveProof(
  files: Files,
  path: string,
  { token, reservation }: ProvenReservation,
): Promise<void> {
  if (token === null) return;
  try {
    await files.writePrivate(path, `${token}\n`);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw error.with({
      why: inOneText('The link is booked.', error.facts.why),
      reservation: reservation.id,
      maybeDone: true,
      fix: `slices-conn show ${shellWord(reservation.id)} --token`,
    });
  }
}

/** Checks a key: the characters that an HTTP header can carry. */
function idempotencyKey(text: string): string {
  if (/^[!-~]+$/.test(text) && text.length <= MAX_IDEMPOTENCY_KEY) return text;
  throw new RangeError(`It must be 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters without spaces.`);
}
