import { formatBandwidth } from '../../contract/amounts.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { periodOf } from '../../contract/reservation-request.ts';
import { shortIds } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import { linkName, viaAside } from '../../words/links.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { escapeText, jsonText, type Printer } from '../print/output.ts';
import { formatDistance, shortEnd, shortTime, type TimeContext } from '../times.ts';
import { type Look, looks, rateAndTagChanges, type SeenChange, type WatchEvent } from './looks.ts';
import { linkAndPeriod, reservationArgument } from './reservation-argument.ts';

/** `slices-conn watch [ID]`. */
export const command = {
  about: [
    "Prints a line when a reservation has started or was updated, when it ends within 10 minutes, and when it has ended or was deleted. The service tells it at once; one that can't is asked every 15 s.",
    "Without an id it watches the experiment's reservations until Ctrl-C; with one it ends when the reservation has ended or was deleted.",
    'With --json each line is an object.',
  ].join('\n'),
  args: {
    '[id]': 'its name, its id, or four characters or more of the last part; all reservations when left out',
  },
  options: {
    exec: {
      flags: '--exec <command>',
      help: 'run a command of the shell for each event, one after the other, with the event as JSON on its standard input',
    },
  },
  examples: [
    'slices-conn watch',
    'slices-conn watch con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
    'slices-conn watch --exec ./changed.sh',
    "slices-conn watch --json | jq -r '[.at, .event, .reservation.id] | @tsv'",
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/**
 * Prints the events of one reservation, or of all in the experiment, until it is stopped or that one is over.
 */
export async function run(context: Context, [typed]: readonly string[], { exec }: Flags): Promise<void> {
  const { output } = context;
  const one = typed === undefined ? undefined : await reservationArgument(context, typed, 'watch');
  const session = one?.session ?? (await context.session());
  context.processes.ifStopped('as expected');
  let isZoneNamed = false;
  let isFirst = true;
  for await (const { look, changes } of looks(context, { session, id: one?.id })) {
    if (isFirst && output.isForPerson) {
      output.notice(await watched(context, session, look, one?.id));
      isZoneNamed = !context.flags.quiet;
    }
    isFirst = false;
    for (const change of changes) {
      const { event, at, reservation } = change;
      const times = { ...(await context.clock.times()), now: at };
      const named = isZoneNamed ? undefined : times.zone;
      const ids = look.reservations.map(({ id }) => id);
      await output.result({ event, at: formatInstant(at), reservation }, (print) =>
        lineOf(print, change, { times, named, ids }),
      );
      isZoneNamed = true;
      if (exec !== undefined) await runFor({ event, at: formatInstant(at), reservation }, exec, context);
      if (one && (event === 'ended' || event === 'deleted')) return;
    }
  }
}

/** Runs a command for an event. Programs that are run this way get no tokens. A failure is printed, and the watch goes on. */
async function runFor(event: object, command: string, { processes, output }: Context): Promise<void> {
  const { exitCode, stdout, stderr } = await processes.runProgram(['sh', '-c', command], {
    input: `${jsonText(event)}\n`,
  });
  for (const line of `${stdout}${stderr}`.split('\n')) if (line !== '') output.notice(escapeText(line));
  if (exitCode !== 0) output.notice(`warning: The command of --exec ended with ${exitCode}.`);
}

/** Says what is watched, since when, and how it ends. */
async function watched(
  context: Context,
  session: Session,
  { reservations }: Look,
  id: string | undefined,
): Promise<string> {
  const times = await context.clock.times();
  const since = `since ${shortTime(times.now, times)} ${times.zone}`;
  const [only] = reservations;
  if (id !== undefined && only) {
    const about = linkAndPeriod({ reservation: only, requested: null }, times);
    return `Watching ${id} (${about}) ${since}, until it has ended. Ctrl-C stops.`;
  }
  const { id: experiment, name = experiment } = await session.access();
  const count = reservations.length === 1 ? '1 reservation' : `${reservations.length} reservations`;
  return `Watching experiment ${name} (${count} now) ${since}. Ctrl-C stops.`;
}

/** How each event is said and painted. */
const SAID = {
  started: ['started', 'green'],
  updated: ['updated', 'cyan'],
  ending_soon: ['ending soon', 'yellow'],
  ended: ['ended', 'dim'],
  deleted: ['deleted', 'dim'],
} as const satisfies Record<WatchEvent, readonly [string, string]>;
const WIDEST = Math.max(...Object.values(SAID).map(([text]) => text.length));

/** The context of a line. */
interface LineContext {
  times: TimeContext;
  /** The time zone, where it must be named. */
  named: string | undefined;
  /** The ids of all reservations that are watched. */
  ids: readonly string[];
}

/**
 * A change for people. On a terminal with its name or a short id, and in two lines where one would be too
 * long; elsewhere with the full id and the name, in one line.
 */
function lineOf(print: Printer, change: SeenChange, { times, named, ids }: LineContext): string {
  const { event, at, reservation } = change;
  const { id } = reservation;
  const { isTerminal, paint, columns = Number.POSITIVE_INFINITY } = print;
  const { name } = reservation;
  const shown = isTerminal
    ? (name ?? shortIds([...new Set([...ids, id])]).get(id) ?? id)
    : [id, ...(name === undefined ? [] : [name])].join('  ');
  const time = shortTime(at, times, isTerminal);
  const [text, color] = SAID[event];
  const head = `${time}${named === undefined ? '' : ` ${named}`}  `;
  const about = escapeText(`${linkName(reservation)}${detailOf(change, times)}`);
  const length = head.length + WIDEST + 2 + shown.length + 2 + about.length;
  const first = `${paint.dim(head)}${paint[color](text.padEnd(WIDEST))}  ${paint.bold(escapeText(shown))}`;
  return length > columns ? `${first}\n    ${about}\n` : `${first}  ${about}\n`;
}

/** The text after the link: of an update, each change from and to; else bandwidth and period. */
function detailOf({ event, at, reservation, before }: SeenChange, times: TimeContext): string {
  if (before) return `: ${updatesOf(before, reservation, times).join(', ')}`;
  const { start, end } = periodOf(reservation);
  const period = `${shortEnd(at, start, times, true)} to ${shortEnd(start, end, times, true)}`;
  const left = event === 'ending_soon' ? ` (${formatDistance(end, at)})` : '';
  return `${viaAside(reservation)}, ${formatBandwidth(reservation.bandwidth)}, ${period}${left}`;
}

/** @example ['1 Gbps → 2 Gbps', 'until 16:00 → 17:00'] */
function updatesOf(before: Reservation, now: Reservation, times: TimeContext): string[] {
  const [was, is] = [periodOf(before), periodOf(now)];
  const turned = (word: string, ...ends: [from: number, to: number]): string[] => {
    const [from, to] = ends.map((at) => shortEnd(times.now, at, times, true));
    // Within a minute the seconds tell them apart.
    const [old, fresh] =
      from === to ? ends.map((at) => `${from}:${formatInstant(at).slice(17, 19)}`) : [from, to];
    return ends[0] === ends[1] ? [] : [`${word} ${old} → ${fresh}`];
  };
  return [
    ...rateAndTagChanges(before, now),
    ...turned('from', was.start, is.start),
    ...turned('until', was.end, is.end),
  ];
}
