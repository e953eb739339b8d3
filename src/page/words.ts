import { formatBandwidth } from '../contract/amounts.ts';
import { formatDuration } from '../contract/durations.ts';
import { type Period, stateAt } from '../contract/instants.ts';
import type { Alternative, ProblemCode } from '../contract/problems.ts';
import { may, readRole } from '../contract/roles.ts';
import { type Calendar, endText, instantText, type ZoneClock } from '../words/civil-time.ts';
import { linkName } from '../words/links.ts';
import { alternativeText, problemTexts, roleAllows } from '../words/problems.ts';
import type { Wish } from './draft.ts';
import { overText, type Route, routeText } from './route.ts';
import type { ExperimentChoice, Own, OwnReservation, Refused } from './service.ts';
import { type Answer, isRepeatable, type SentRequest } from './state.ts';
import { periodText, shareText, timesIn, vlansText } from './timeline/words.ts';

/** The most by which two clocks, or two lengths, differ without a word about it, in milliseconds. */
const SAID = 30_000;

/** An experiment's name; two of one name are told apart by their project. */
export function experimentLabel(
  { name, project }: ExperimentChoice,
  all: readonly ExperimentChoice[],
): string {
  return all.filter((other) => other.name === name).length === 1 ? name : `${name} (${project.name})`;
}

/** A role in words. @param role as the portal says it */
export function roleText(role: string): string {
  return `${readRole(role) ?? role}: ${roleAllows(role) ?? 'this page does not know what this role may do'}`;
}

/** Whether a role lets someone see the reservations at all. */
export function maySee(role: string): boolean {
  return may(role, 'list');
}

/** A reservation's name for people: its own, or the end of its id. */
export function titleOf({ id, name }: Pick<Own, 'id' | 'name'>): string {
  return name ?? `…${id.slice(-6)}`;
}

/** The tags of each end, with its site. */
export function tagFacts(own: OwnReservation): readonly (readonly [site: string, tags: string])[] {
  return [
    [own.site1, `S-tag ${own.site1_s_tag}, C-tag ${own.site1_c_tag}`],
    [own.site2, `S-tag ${own.site2_s_tag}, C-tag ${own.site2_c_tag}`],
  ];
}

/** Both ends' tags, a line each, as they are copied. */
export function tagsText(own: OwnReservation): string {
  return tagFacts(own)
    .map(([site, tags]) => `${site}: ${tags}`)
    .join('\n');
}

/** The reservations of a list in whose name, id, sites or state each of the words stands; without words all of them. */
export function foundIn(list: readonly OwnReservation[], words: string, now: number): OwnReservation[] {
  const wanted = words.toLowerCase().split(/\s+/);
  return list.filter((own) => {
    const text = `${own.name ?? ''} ${own.id} ${endsText(own)} ${stateAt(now, own)}`;
    return wanted.every((word) => text.toLowerCase().includes(word));
  });
}

/** The next step after a refusal, by its problem code, where the message does not say it. */
const ADVICE: ReadonlyMap<string, string> = new Map<ProblemCode, string>([
  ['token_invalid', 'Log in again.'],
  ['token_expired', 'Try again; where that does not help, log in again.'],
  ['role_not_allowed', 'Ask a lead of the experiment, or choose another experiment.'],
  ['wrong_experiment', 'Choose the experiment that it belongs to.'],
  ['search_given_up', 'Ask for a later time, or for a shorter one.'],
  ['not_found', 'It may have been deleted meanwhile; the list is up to date.'],
]);

/** Why something was refused, and what to do next. */
export function refusalText({ code, details, limits }: Refused['facts'], calendar: Calendar): string {
  if (code === 'token_missing') return 'Your login has ended. Log in again; what you typed is kept.';
  const said = problemTexts(details, limits, timesIn(calendar));
  const advice = ADVICE.get(code);
  return [...said, ...(advice === undefined ? [] : [advice])].join(' ');
}

/**
 * That a reservation can't last longer by so much, and until when it can.
 *
 * @param longer in milliseconds
 */
export function extensionText(
  own: Pick<Own, 'id' | 'name' | 'end' | 'bandwidth'>,
  longer: number,
  { alternatives }: Pick<Refused['facts'], 'alternatives'>,
  calendar: Calendar,
): string {
  const longest = alternatives.find(({ kind }) => kind === 'longest');
  const until = longest ? Date.parse(longest.end_date) : own.end;
  const most =
    until > own.end
      ? `It can last until ${instantText(until, calendar)}.`
      : `With ${formatBandwidth(own.bandwidth)} it can’t last longer at all.`;
  return `${titleOf(own)} can’t last ${formatDuration(longer)} longer. ${most}`;
}

/** That the server is away. @param since when it answered last, in milliseconds */
export function awayText(since: number, calendar: Calendar): string {
  return `The server has not answered since ${endText(calendar.now, since, calendar)}; trying again every 5 s.`;
}

/** That the browser's clock is wrong; empty where it is not, by so much. @param ahead of the server's, in milliseconds */
export function clockText(ahead: number): string {
  if (Math.abs(ahead) <= SAID) return '';
  const by = formatDuration(Math.round(Math.abs(ahead) / SAID) * SAID);
  return `This computer’s clock is ${by} ${ahead > 0 ? 'ahead of' : 'behind'} the server’s. Times here follow the server.`;
}

/** That a reservation is longer or shorter than was asked for; empty where it is not. */
export function lengthText(asked: Period, got: Period): string {
  const [wanted, lasts] = [asked.end - asked.start, got.end - got.start];
  if (Math.abs(lasts - wanted) <= SAID) return '';
  return `It lasts ${formatDuration(lasts)}, not the ${formatDuration(wanted)} that were asked for. `;
}

/** A request in a sentence's part: its name, link, bandwidth and period. */
export function wishSentence({ request, bandwidth, period }: Wish, calendar: Calendar): string {
  const { name } = request;
  const what = `${linkName(request)}, ${formatBandwidth(bandwidth)}, ${periodText(period, calendar)}`;
  return name === undefined ? what : `${name}, ${what}`;
}

/** That a request had no answer, and what is safe. @param experiment its name; undefined where it is the one worked in */
export function openText(
  sent: Pick<SentRequest, 'wish' | 'key' | 'at'>,
  experiment: string | undefined,
  calendar: Calendar,
): string {
  const { wish, at } = sent;
  const [what, done] = wish.id === undefined ? ['book', 'booked'] : ['change', 'changed'];
  const where = experiment === undefined ? '' : ` in ${experiment}`;
  const request = `${wishSentence(wish, calendar)}${where}, sent ${instantText(at, calendar)}`;
  const again = isRepeatable(sent, calendar.now) ? ` Sent again, it is never ${done} twice.` : '';
  return `No answer came to this request to ${what}: ${request}. It may be ${done} or not.${again}`;
}

/** The question before a request without an answer is given up. @param found what the list has of it; or why it can't be seen */
export function forgetText(wish: Wish, found: Own | string | undefined, calendar: Calendar): string {
  if (typeof found === 'string') return `The list can’t be seen: ${found}`;
  if (found) return `The list has it, or one like it: ${ownSentence(found, calendar)}.`;
  const what = wish.id === undefined ? 'has nothing like it' : 'shows it unchanged';
  return `The list ${what} now: ${wishSentence(wish, calendar)}. What is still under way may come later.`;
}

/** That a reservation fits, and what is free then, where that is known. */
export function fitText(
  {
    wish: { period, request },
    route: { sites, bandwidth },
    free,
    isEarliest,
  }: Extract<Answer, { kind: 'fits' }>,
  calendar: Calendar,
): string {
  const earliest = isEarliest ? `${request.start === 'now' ? 'Now' : 'This'} is the earliest. ` : '';
  const when = `${periodText(period, calendar)}${overText(sites.slice(1, -1))}`;
  if (!free) return `${earliest}It fits: ${when}.`;
  return `${earliest}It fits, ${when}: ${shareText(free.free, bandwidth)} and ${vlansText(free.vlans)} are free.`;
}

/** The route between two sites, below the second one; empty while it is not known. */
export function routeNote(route: Route | undefined): string {
  if (!route) return '';
  const most = formatBandwidth(route.bandwidth);
  if (route.sites.length === 2) return `A link of ${most}.`;
  return `${route.sites.length - 1} hops${overText(route.sites.slice(1, -1))}, ${most} at most.`;
}

/** An alternative as the text of a button: what differs from what was asked for. */
export function offerText(
  { bandwidth, start_date, end_date, via }: Alternative,
  { request }: Pick<Wish, 'request'>,
  calendar: Calendar,
): string {
  const start = start_date === null ? 'now' : Date.parse(start_date);
  const offered = { bandwidth, start, end: Date.parse(end_date), via } as const;
  return alternativeText(offered, request, calendar.now, timesIn(calendar));
}

/** The sites of a reservation, with its route. @example 'be-gent1 – gr-uth over pl-poznan1 and hu-sztaki' */
export function endsText({ site1, via = [], site2 }: Pick<Own, 'site1' | 'via' | 'site2'>): string {
  return routeText([site1, ...via, site2]);
}

/** A reservation in a sentence's part: its name where it has one, route, bandwidth and period. */
export function ownSentence(own: Own, calendar: Calendar): string {
  const what = `${endsText(own)}, ${formatBandwidth(own.bandwidth)}, ${periodText(own, calendar)}`;
  return own.name === undefined ? what : `${own.name}, ${what}`;
}

/** An instant as a field for date and time holds it, to the minute. @example '2026-11-23T09:00' */
export function wallText(instant: number, clock: ZoneClock): string {
  return new Date(clock.civil(instant)).toISOString().slice(0, 16);
}

/** The instant that a field for date and time means; null where it is empty. */
export function readWall(text: string, clock: ZoneClock): number | null {
  const civil = Date.parse(`${text}Z`);
  return Number.isNaN(civil) ? null : clock.instant(civil);
}
