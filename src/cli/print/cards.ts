import type { ProvenReservation } from '../../client/proof.ts';
import { bandwidthChange, formatBandwidth } from '../../contract/amounts.ts';
import { formatDuration, isoDuration } from '../../contract/durations.ts';
import { formatInstant, parseInstant } from '../../contract/instants.ts';
import { askedRouteOf, RESERVATION_TEXTS, type Reservation, textsOf } from '../../contract/reservation.ts';
import { periodOf, type ReservationRequest } from '../../contract/reservation-request.ts';
import { linkEnds, linkName, routeName } from '../../words/links.ts';
import { distanceIn, endAside, shortTime, type TimeContext, timeTeller } from '../times.ts';
import { type CardLine, escapeText, type Printer } from './output.ts';

/** The shape that `--json` gives a reservation (cli/README.md, "Output"). */
export function reservationResult({ reservation, verified, token, claims }: ProvenReservation): object {
  return { reservation, verified, token, claims, source: 'service' };
}

/**
 * The shape that `--json` gives a request, as `requested` (cli/README.md, "Output"). A start of null is at the time of the
 * request, a bandwidth of null as much as the link has, for a volume.
 */
export function requestResult(request: ReservationRequest): object {
  const { site1, site2, bandwidth = null, start, end, duration, volume } = request;
  return {
    site1,
    site2,
    bandwidth,
    start_date: start === 'now' ? null : formatInstant(start),
    end_date: formatInstant(end),
    duration: duration === undefined ? undefined : isoDuration(duration),
    volume,
    ...textsOf(request),
    ...askedRouteOf(request),
  };
}

/** What a card says beside the reservation. */
export interface CardContext {
  times: TimeContext;
  /** The command's, to print its name beside the id. */
  experiment?: NamedExperiment;
  /** Further lines about the period. */
  more?: readonly CardLine[];
  /** The reservation before an update: what has changed is shown as old → new. */
  before?: Reservation;
}

/**
 * A reservation for people: what was booked, its four tags, and whether it is proven.
 *
 * @param verb what happened, such as "Reserved"
 */
export function reservationCard(
  print: Printer,
  verb: string,
  proven: ProvenReservation,
  context: CardContext,
): string {
  const { reservation, verified, claims } = proven;
  const { before = reservation } = context;
  const { paint } = print;
  const rate = bandwidthChange(before.bandwidth, reservation.bandwidth);
  const title = `${verb} ${paint.bold(escapeText(linkName(reservation)))}, ${rate}`;
  const ends = linkEnds(reservation).map(({ site, sTag, cTag }, at): CardLine => {
    const was = linkEnds(before)[at];
    return [site, `S-tag ${changeText(was?.sTag, sTag)}   C-tag ${changeText(was?.cTag, cTag)}`];
  });
  const lines: CardLine[] = [['id', reservation.id], ...bookedLines(reservation, context, ends)];
  const proof = verified
    ? `  ${paint.green('verified')}: signed by ${escapeText(claims?.iss ?? '')}\n`
    : `  ${paint.yellow('not verified')}: the service did not sign it\n`;
  return print.card(title, lines) + proof;
}

/** The result of a dry run for people, without id and tags: a later booking can get others. */
export function rehearsalCard(print: Printer, reservation: Reservation, context: CardContext): string {
  const rate = formatBandwidth(reservation.bandwidth);
  const title = `Would be accepted: ${print.paint.bold(escapeText(linkName(reservation)))}, ${rate}`;
  return `${print.card(title, bookedLines(reservation, context))}  nothing was booked\n`;
}

/** @param ends the lines of the tags at each end */
function bookedLines(
  reservation: Reservation,
  { times, experiment, more = [], before = reservation }: CardContext,
  ends: readonly CardLine[] = [],
): CardLine[] {
  const isNamed = experiment?.id === reservation.experiment_id && experiment.name;
  const id = reservation.experiment_id;
  return [
    ...textLines(reservation, before),
    ...periodLines(reservation, times, before),
    ...more,
    ...ends,
    // Nothing has to be configured at the sites on the way.
    ...(reservation.via ? [['route', routeName(reservation)] as const] : []),
    ['experiment', isNamed ? `${experiment.name} (${id})` : id],
  ];
}

/** A value, with what it was where that differs. @example changeText(100, 103) // '100 → 103' */
function changeText(before: string | number | undefined, after: string | number): string {
  return before === after || before === undefined ? String(after) : `${before} → ${after}`;
}

function textLines(reservation: Reservation, before: Reservation): CardLine[] {
  return RESERVATION_TEXTS.flatMap((text): CardLine[] => {
    const [was, value] = [before[text], reservation[text]];
    if (was === undefined && value === undefined) return [];
    return [[text, changeText(was ?? NOTHING, value ?? NOTHING)]];
  });
}

/** Printed in place of a text that a reservation did not have before an update, or has no more. */
const NOTHING = '(none)';

/** A period, with its duration while it lies ahead. */
function periodLines(reservation: Reservation, times: TimeContext, before: Reservation): CardLine[] {
  const [was, { start, end }] = [periodOf(before), periodOf(reservation)];
  const tell = timeTeller(times);
  const line = (old: number, at: number, aside?: string): string => {
    const [first, second] = [shortTime(old, times), shortTime(at, times)];
    return `${first === second ? '' : `${first} → `}${tell(at, aside)}`;
  };
  const isAhead = start - times.now >= 1000;
  const [lasted, lasts] = [formatDuration(was.end - was.start), formatDuration(end - start)];
  const length = `for ${lasts}${lasted === lasts ? '' : `, was ${lasted}`}`;
  return [
    ['from', line(was.start, start)],
    ['until', line(was.end, end, endAside(end, isAhead ? length : distanceIn(end, times), times))],
  ];
}

/** An experiment as far as it is known; see `ExperimentAccess`. */
export interface NamedExperiment {
  id: string | undefined;
  name: string | undefined;
}

/** The printed members of a project or experiment; an empty text where the portal did not send it. */
export interface DirectoryEntry {
  id: string;
  name: string;
  description: string;
  role: string;
  expires_at: string;
  project_id?: string;
}

/** Printed in place of a missing member. */
const UNKNOWN = '–';

/** Follows the name of what the next command acts in or with. */
export const IN_USE = ' (in use)';

/** A project or experiment for programs. Missing members are null; an empty description stays. */
export function directoryItem(entry: DirectoryEntry): Readonly<Record<string, unknown>> {
  const known = Object.entries(entry).map(([name, value]) => [
    name,
    value === '' && name !== 'description' ? null : value,
  ]);
  return Object.fromEntries(known);
}

/** Projects or experiments for people. @param inUse the id of the one that the next command acts in */
export function directoryTable(
  print: Printer,
  noun: string,
  items: readonly DirectoryEntry[],
  { inUse, times }: { inUse: string | null; times: TimeContext },
): string {
  if (items.length === 0) return `You are not in any ${noun}.\n`;
  const head = ['name', 'role', `expires (${times.zone})`, 'id'];
  const rows = items.map(({ id, name, role, expires_at }) => [
    `${name || UNKNOWN}${inUse === id ? IN_USE : ''}`,
    role || UNKNOWN,
    answeredTime(expires_at, (instant) => shortTime(instant, times)),
    id,
  ]);
  return print.tableOrCards(head, rows);
}

/** A time of an answer, for people; one that can't be read stays as it is. */
export function answeredTime(text: string, tell: (instant: number) => string): string {
  const instant = parseInstant(text, 'utc-if-absent');
  return instant === undefined ? text || UNKNOWN : tell(instant);
}

/** One project or experiment for people. @param project the experiment's, to print its name beside the id */
export function directoryCard(
  print: Printer,
  title: string,
  entry: DirectoryEntry,
  times: TimeContext,
  project?: { id: string; name: string },
): string {
  const { id, name, description, role, expires_at, project_id } = entry;
  const tell = timeTeller(times);
  const lines: CardLine[] = [
    ['id', id],
    ['role', role || UNKNOWN],
    ['expires', answeredTime(expires_at, (at) => tell(at, endAside(at, distanceIn(at, times), times)))],
  ];
  const projectName = project?.id === project_id && project?.name;
  if (project_id) lines.push(['project', projectName ? `${projectName} (${project_id})` : project_id]);
  if (description) lines.push(['about', description]);
  return print.card(`${title} ${print.paint.bold(escapeText(name || UNKNOWN))}`, lines);
}
