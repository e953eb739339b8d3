import { formatDuration, MINUTE } from '../../contract/durations.ts';
import type { Failure } from '../../contract/failure.ts';
import type { Period } from '../../contract/phases.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { periodOf } from '../../contract/reservation-request.ts';
import { inOneText, inTimes } from '../../contract/said.ts';
import { shortIds } from '../../session/reservations/known.ts';
import { limitNote } from '../../words/limits.ts';
import { linkEnds, linkName, viaAside } from '../../words/link-name.ts';
import { folded } from '../print/folded.ts';
import { asciiText, escapeText, type Printer } from '../print/output.ts';
import { shortTimes, type TimeContext } from '../times.ts';
import { bandwidthChange, formatBandwidth, nearestSite, sitesNamed } from '../values.ts';
import type { ChangeOutcome } from './applier.ts';
import type { PlannedChange } from './difference.ts';
import type { WantedReservation } from './plan-file.ts';

/** How outcomes are told. */
interface PlanTableOptions {
  times: TimeContext;
  /** Whether the changes were made; else they are only planned. */
  isApplied: boolean;
  /** Whether the service could be asked what fits. Default true. */
  isKnown?: boolean;
}

/** A change as text. */
interface Row {
  mark: keyof typeof COLORS;
  name: string;
  link: string;
  bandwidth: string;
  /** Period or id; of a refused change the reason. */
  when: string;
  outcome: string;
}

/** The mark of each action, with its colour. */
const COLORS = { '+': 'green', '~': 'yellow', '-': 'red', '=': 'dim', '✗': 'red' } as const;

/**
 * Changes for people, one line each: what happens under which name, and whether it fits. Where a terminal is too narrow,
 * the period and the outcome have a line of their own.
 */
export function planTable(
  print: Printer,
  outcomes: readonly ChangeOutcome[],
  options: PlanTableOptions & { columns: number },
): string {
  const short = print.isTerminal ? shortIds(outcomes.flatMap(({ change }) => idOf(change) ?? [])) : undefined;
  const idText = (id: string): string => {
    const ending = short?.get(id);
    return ending === undefined || ending === id ? id : `con_…${ending}`;
  };
  // Widths are those of what is printed.
  const plain = (text: string): string => {
    return print.ascii ? asciiText(escapeText(text), { spelled: true }) : escapeText(text);
  };
  const rows = outcomes.map((outcome) => rowOf(outcome, options, idText));
  const cells = rows.map(({ name, link, bandwidth, when, outcome }) =>
    [name, link, bandwidth, when, outcome].map(plain),
  );
  const widths = [0, 1, 2, 3].map((at) =>
    Math.max(0, ...cells.filter((row) => row.slice(at + 1).some(Boolean)).map((row) => row[at]?.length ?? 0)),
  );
  const columned = (row: readonly string[]): string =>
    row
      .map((text, at) => text.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  const room = print.isTerminal ? options.columns - INDENT : Number.POSITIVE_INFINITY;
  const before = widths.slice(0, 3).reduce((sum, width) => sum + width + 2, 0);
  const fits = cells.every((row, at) =>
    rows[at]?.mark === '✗' ? room - before >= LEAST_REASON : columned(row).length <= room,
  );
  const lines = rows.flatMap((row, at) => {
    const [name = '', link = '', bandwidth = '', when = '', outcome = ''] = cells[at] ?? [];
    const isRefused = row.mark === '✗';
    const [first = '', ...more] = fits
      ? isRefused
        ? hanging(columned([name, link, bandwidth]).padEnd(before), folded(when, room - before))
        : [columned([name, link, bandwidth, when, outcome])]
      : [
          ...folded([name, link, bandwidth].join('  '), room),
          ...folded([when, outcome].filter(Boolean).join(', '), room - 2).map((text) => `  ${text}`),
        ];
    return [
      `  ${print.paint[COLORS[row.mark]](plain(row.mark))} ${first}`,
      ...more.map((text) => `    ${text}`),
    ];
  });
  return lines.map((line) => `${line}\n`).join('');
}

/** The columns before a name: a blank on each side of the mark, and one more. */
const INDENT = 4;
/** The fewest columns in which a reason is put beside what was refused. */
const LEAST_REASON = 26;

/** Lines of a text that begin in one column. */
function hanging(start: string, [first = '', ...more]: readonly string[]): string[] {
  return [start + first, ...more.map((text) => ' '.repeat(start.length) + text)];
}

function idOf(change: PlannedChange): string | undefined {
  return change.action === 'create' ? undefined : change.current.id;
}

function rowOf(
  { change, reservation, failure }: ChangeOutcome,
  { times, isApplied, isKnown = true }: PlanTableOptions,
  idText: (id: string) => string,
): Row {
  const { name } = change;
  const link = linkName(change.action === 'delete' ? change.current : change.wanted);
  const row = { name, link, bandwidth: bandwidthText(change) };
  const fits = isKnown ? 'fits' : '';
  if (failure) {
    const isOfFile = change.action !== 'delete' && failure.facts.details?.some(isUnknownSite);
    const place = isOfFile ? `${change.wanted.place}: ` : '';
    return { ...row, mark: '✗', when: place + shortReason(failure, times), outcome: '' };
  }
  switch (change.action) {
    case 'delete': {
      const outcome = isApplied ? 'deleted' : 'not in the file';
      return { ...row, mark: '-', when: idText(change.current.id), outcome };
    }
    case 'update': {
      const before = periodText(periodOf(change.current), times);
      // Where another change does not fit, the service says nothing of this one.
      const { start, end } = change.request;
      const planned = start === 'now' ? periodOf(change.current) : { start, end };
      const after = periodText(reservation ? periodOf(reservation) : planned, times);
      const was = after === before ? '' : `, was ${before}`;
      const tags = reservation
        ? `, tags ${tagsText(change.current) === tagsText(reservation) ? 'stay' : tagsText(reservation)}`
        : '';
      const when = was === '' ? idText(change.current.id) : after;
      const { description = '' } = change.current;
      const about = (change.request.description ?? '') === description ? '' : ', new description';
      const kept = change.keptAt === undefined ? '' : `, ${keptText(change.keptAt, change.wanted, times)}`;
      const outcome = `${isApplied ? 'updated' : fits}${was}${about}${kept}${tags}`;
      return { ...row, mark: '~', when, outcome };
    }
    case 'none':
      return { ...row, mark: '=', when: keptText(change.keptAt ?? 0, change.wanted, times), outcome: '' };
    default: {
      const { start, end, length } = change.wanted;
      // Asked to start now, it starts later where all are moved together.
      const isMoved = reservation && periodOf(reservation).start > times.now + MINUTE;
      const when =
        reservation && (isApplied || isMoved || start !== 'now')
          ? periodText(periodOf(reservation), times)
          : start === 'now'
            ? `now, for ${formatDuration(length)}`
            : periodText({ start, end }, times);
      const via = reservation ? viaAside(reservation, ', ') : '';
      const outcome = (isApplied && reservation ? tagsText(reservation) : fits) + via;
      return { ...row, mark: '+', when, outcome };
    }
  }
}

/** @example 'kept at 1 Dec 20:00; the file says 19:00' */
function keptText(keptAt: number, { start }: WantedReservation, context: TimeContext): string {
  const [kept, said] = shortTimes(context, true).ends(keptAt, start === 'now' ? context.now : start);
  return `kept at ${kept}; the file says ${said}`;
}

/** Bandwidth, with what it was where that changes. @example '200 → 500 Mbps' */
function bandwidthText(change: PlannedChange): string {
  if (change.action === 'delete') return formatBandwidth(change.current.bandwidth);
  const { bandwidth } = change.wanted;
  return bandwidthChange(change.action === 'update' ? change.current.bandwidth : bandwidth, bandwidth);
}

/** @example '1 Dec 09:00 → 17:00' */
function periodText({ start, end }: Period, context: TimeContext): string {
  return shortTimes(context, true).ends(start, end).join(' → ');
}

/** The tags at both ends, in the order of the link's name. */
function tagsText(reservation: Reservation): string {
  return linkEnds(reservation)
    .map(({ sTag, cTag }) => `S ${sTag} C ${cTag}`)
    .join(' – ');
}

function isUnknownSite({ code }: { code?: string }): boolean {
  return code === 'site_unknown';
}

/** Why a change does not fit, in a few words: the limit where the service tells it. @example '6 Gbps free 1 Dec 11:00–14:00' */
function shortReason(
  { says, facts: { limits = [], details = [], why } }: Failure,
  context: TimeContext,
): string {
  const times = shortTimes(context, true);
  const unknown = details.find(isUnknownSite)?.facts?.['site'];
  const near = typeof unknown === 'string' ? nearestSite(unknown, { sites: sitesNamed(details) }) : undefined;
  if (near !== undefined) return `There is no site ${unknown}. Did you mean ${near}?`;
  const [limit] = limits;
  return (limit && limitNote(limit, times)) ?? inTimes(inOneText(says, why) ?? '', times);
}

/** How many names of a file need no change: they are as it says, or kept at a later time. */
interface Untouched {
  unchanged: number;
  kept: number;
  /** Named reservations that the file does not have. */
  others: number;
}

/** One line that counts the changes of a plan. @example 'Plan: 1 to create, 1 does not fit: nothing would be applied.' */
export function planSummary(outcomes: readonly ChangeOutcome[], untouched: Untouched): string {
  const refused = outcomes.filter(({ failure }) => failure !== undefined).length;
  const counts = countsOf(outcomes).map(([action, count]) => `${count} to ${action}`);
  if (outcomes.length === 0) return ['Plan: nothing to do.', ...asTheFile(untouched)].join(' ');
  const others = othersOf(untouched);
  if (refused === 0) return `Plan: ${[...counts, ...others].join(', ')}.`;
  const wrong = `${refused} ${refused === 1 ? 'does' : 'do'} not fit`;
  return `Plan: ${[...counts, ...others, wrong].join(', ')}: nothing would be applied.`;
}

/** One line that counts the changes that were made. @example 'Applied: 2 created, 1 unchanged.' */
export function appliedSummary(outcomes: readonly ChangeOutcome[], untouched: Untouched): string {
  if (outcomes.length === 0) return ['Nothing to do.', ...asTheFile(untouched)].join(' ');
  const done = { create: 'created', update: 'updated', delete: 'deleted' } as const;
  const counts = countsOf(outcomes).map(([action, count]) => `${count} ${done[action]}`);
  return `Applied: ${[...counts, ...othersOf(untouched)].join(', ')}.`;
}

function othersOf({ unchanged, kept }: Untouched): string[] {
  return [...(unchanged > 0 ? [`${unchanged} unchanged`] : []), ...(kept > 0 ? [`${kept} kept later`] : [])];
}

function asTheFile({ unchanged, kept, others }: Untouched): string[] {
  if (unchanged + kept === 0) {
    const them = others === 1 ? 'the named reservation' : `the ${others} named reservations`;
    const prune = others === 0 ? [] : [`--prune deletes ${them} that it does not have.`];
    return ['The file wants no reservation.', ...prune];
  }
  const later =
    kept === 1 ? '1 is kept later; --move moves it.' : `${kept} are kept later; --move moves them.`;
  const is = unchanged === 1 ? '1 reservation is' : `${unchanged} reservations are`;
  if (kept > 0) return [...(unchanged > 0 ? [`${is} as the file says.`] : []), later];
  return [unchanged === 1 ? 'The reservation is as the file says.' : `All ${is} as the file says.`];
}

/** How many changes of each action fit, without actions that there are none of. */
function countsOf(outcomes: readonly ChangeOutcome[]): ['create' | 'update' | 'delete', number][] {
  return (['create', 'update', 'delete'] as const)
    .map((action): ['create' | 'update' | 'delete', number] => [
      action,
      outcomes.filter(({ change, failure }) => change.action === action && !failure).length,
    ])
    .filter(([, count]) => count > 0);
}
