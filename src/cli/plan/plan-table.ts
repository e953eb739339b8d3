import { bandwidthChange } from '../../contract/amounts.ts';
import { formatDuration, MINUTE } from '../../contract/durations.ts';
import type { Failure } from '../../contract/failure.ts';
import type { Period } from '../../contract/instants.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { periodOf } from '../../contract/reservation-request.ts';
import { inOneText, inTimes } from '../../contract/said.ts';
import { shortIds } from '../../session/reservations/known.ts';
import { linkEnds, linkName, viaAside } from '../../words/links.ts';
import { limitNote } from '../../words/problems.ts';
import { folded } from '../print/folded.ts';
import { asciiText, escapeText, type Printer } from '../print/output.ts';
import { shortTimes, type TimeContext } from '../times.ts';
import { nearestSite, sitesNamed } from '../values.ts';
import type { ChangeOutcome } from './applier.ts';
import { PLAN_TEXTS } from './plan-file.ts';

/** How outcomes are told. */
interface PlanTableOptions {
  times: TimeContext;
  /** Whether the changes were made; else they are only planned. */
  isApplied: boolean;
  /** Whether the service could be asked what fits. */
  isKnown: boolean;
}

/** The mark of each action, with its colour. */
const MARKS = {
  create: ['+', 'green'],
  update: ['~', 'yellow'],
  delete: ['-', 'red'],
  none: ['=', 'dim'],
  refused: ['✗', 'red'],
} as const;

/**
 * Changes for people, one line each: what happens under which name, and whether it fits. Where a terminal is too narrow,
 * the period and the outcome have a line of their own. What is as the file says is left out.
 */
export function planTable(print: Printer, plan: readonly ChangeOutcome[], options: PlanTableOptions): string {
  const outcomes = plan.filter(({ change }) => change.action !== 'none' || change.keptAt !== undefined);
  const short = shortIds(outcomes.flatMap(({ change }) => change.current?.id ?? []));
  const idText = (id: string): string => {
    const ending = short.get(id) ?? id;
    return print.isTerminal && ending !== id ? `con_…${ending}` : id;
  };
  // Widths are those of what is printed.
  const plain = (text: string): string =>
    print.ascii ? asciiText(escapeText(text), { spelled: true }) : escapeText(text);
  const rows = outcomes.map((outcome) => {
    const { change, failure } = outcome;
    const [mark, color] = MARKS[failure ? 'refused' : change.action];
    const { current, request } = change;
    const asked = request ?? current;
    const rate = bandwidthChange(current?.bandwidth ?? asked.bandwidth ?? 0, asked.bandwidth ?? 0);
    const cells = [change.name, linkName(asked), rate, ...toldOf(outcome, options, idText)].map(plain);
    return { mark: print.paint[color](plain(mark)), cells };
  });
  const widths = [0, 1, 2, 3].map((at) =>
    Math.max(...rows.map(({ cells }) => (cells.length > at + 1 ? (cells[at]?.length ?? 0) : 0))),
  );
  const lines = rows.map(({ cells }) => cells.map((text, at) => text.padEnd(widths[at] ?? 0)).join('  '));
  const room = (print.columns ?? Number.POSITIVE_INFINITY) - INDENT;
  const fits = lines.every((line) => line.trimEnd().length <= room);
  return rows
    .flatMap(({ mark, cells }, at) => {
      const [first = '', ...more] = fits
        ? [lines[at]?.trimEnd() ?? '']
        : [
            ...folded(cells.slice(0, 3).join('  '), room),
            ...folded(cells.slice(3).join(', '), room - 2).map((text) => `  ${text}`),
          ];
      return [`  ${mark} ${first}\n`, ...more.map((text) => `${' '.repeat(INDENT)}${text}\n`)];
    })
    .join('');
}

/** The columns before a name: a blank on each side of the mark, and one more. */
const INDENT = 4;

/** The period or id of a change, and its outcome; of a refused change the reason alone. */
function toldOf(
  { change, reservation, failure }: ChangeOutcome,
  { times, isApplied, isKnown }: PlanTableOptions,
  idText: (id: string) => string,
): string[] {
  const fits = isKnown ? 'fits' : '';
  if (failure)
    return [shortReason(failure, times, change.action === 'delete' ? '' : `${change.wanted.place}: `)];
  if (change.action === 'delete')
    return [idText(change.current.id), isApplied ? 'deleted' : 'not in the file'];
  const { wanted, request } = change;
  const from = (start: number | 'now'): number => (start === 'now' ? times.now : start);
  const kept = (at: number): string => {
    const [starts, said] = shortTimes(times, true).ends(at, from(wanted.start));
    return `kept at ${starts}; the file says ${said}`;
  };
  if (change.action === 'create') {
    // Asked to start now, it starts later where all are moved together.
    const isMoved = reservation && periodOf(reservation).start > times.now + MINUTE;
    const { start, end, length } = wanted;
    const period = reservation ? periodOf(reservation) : { start: from(start), end };
    const isNow = start === 'now' && !(reservation && (isApplied || isMoved));
    const via = reservation ? viaAside(reservation, ', ') : '';
    const when = isNow ? `now, for ${formatDuration(length)}` : periodText(period, times);
    return cellsOf(when, (isApplied && reservation ? tagsText(reservation) : fits) + via);
  }
  const { current, keptAt } = change;
  if (change.action === 'none') return [kept(keptAt ?? 0)];
  const before = periodText(periodOf(current), times);
  // Where another change does not fit, the service says nothing of this one.
  const planned = request.start === 'now' ? periodOf(current) : { start: request.start, end: request.end };
  const after = periodText(reservation ? periodOf(reservation) : planned, times);
  const tags = reservation && tagsText(reservation);
  const outcome = [
    isApplied ? 'updated' : fits,
    after === before ? '' : `was ${before}`,
    ...PLAN_TEXTS.map((text) => ((request[text] ?? '') === (current[text] ?? '') ? '' : `new ${text}`)),
    keptAt === undefined ? '' : kept(keptAt),
    tags === null ? '' : `tags ${tags === tagsText(current) ? 'stay' : tags}`,
  ];
  return cellsOf(after === before ? idText(current.id) : after, outcome.filter(Boolean).join(', '));
}

const cellsOf = (when: string, outcome: string): string[] => (outcome === '' ? [when] : [when, outcome]);

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

/**
 * Why a change does not fit, in a few words: the limit where the service tells it.
 *
 * @param place stands before what is wrong in the file
 * @example '6 Gbps free 1 Dec 11:00–14:00'
 */
function shortReason(
  { says, facts: { limits = [], details = [], why } }: Failure,
  context: TimeContext,
  place: string,
): string {
  const times = shortTimes(context, true);
  const unknown = details.find(({ code }) => code === 'site_unknown');
  const site = unknown?.facts?.['site'];
  const near = typeof site === 'string' ? nearestSite(site, { sites: sitesNamed(details) }) : undefined;
  if (near !== undefined) return `${place}There is no site ${site}. Did you mean ${near}?`;
  const [limit] = limits;
  const reason = (limit && limitNote(limit, times)) ?? inTimes(inOneText(says, why) ?? '', times);
  return (unknown ? place : '') + reason;
}

/** How the changes of a plan are counted: as planned, and as made. */
const COUNTED = [
  ['create', 'to create', 'created'],
  ['update', 'to update', 'updated'],
  ['delete', 'to delete', 'deleted'],
] as const;

/**
 * One line that counts the changes of a plan that was made or applied.
 *
 * @example 'Plan: 1 to create, 1 does not fit: nothing would be applied.', 'Applied: 2 created, 1 unchanged.'
 */
export function planSummary(plan: readonly ChangeOutcome[], isApplied: boolean): string {
  const count = (isMeant: (outcome: ChangeOutcome) => boolean): number => plan.filter(isMeant).length;
  const kept = count(({ change }) => change.action === 'none' && change.keptAt !== undefined);
  const unchanged = count(({ change }) => change.action === 'none') - kept;
  const refused = count(({ failure }) => failure !== undefined);
  const counts: [number, string][] = [
    ...COUNTED.map(([action, planned, made]): [number, string] => [
      count(({ change, failure }) => change.action === action && !failure),
      isApplied ? made : planned,
    ]),
    [unchanged, unchanged === plan.length ? 'as the file says' : 'unchanged'],
    [kept, kept === plan.length ? 'kept later; --move moves what is later' : 'kept later'],
    [refused, `${refused === 1 ? 'does' : 'do'} not fit: nothing would be applied`],
  ];
  const said = counts.flatMap(([number, what]) => (number > 0 ? [`${number} ${what}`] : [])).join(', ');
  const isNothing = unchanged + kept === plan.length;
  const head = isApplied
    ? isNothing
      ? 'Nothing to do'
      : 'Applied'
    : isNothing
      ? 'Plan: nothing to do'
      : 'Plan';
  return `${head}${said === '' ? '' : `: ${said}`}.`;
}
