import { formatBandwidth } from '../../contract/amounts.ts';
import { Sentence } from '../../contract/said.ts';
import { withoutTokens } from '../../contract/secret.ts';
import { shortTimes, type TimeContext } from '../times.ts';
import type { EventFields } from './server.ts';

/** Refusals that say little to the person who runs a server: browsers ask for icons, crawlers for pages. */
const UNSAID: ReadonlySet<string> = new Set(['not_found', 'method_not_allowed']);

/** Events that get no line on a terminal: the card at the start says them, or people don't need them. */
const UNTOLD: ReadonlySet<string> = new Set(['listening', 'forgotten', 'key_made']);

/** How many characters of a reservation's id are shown: commands take the end of an id for the whole. */
const SHORT_ID = 6;

/**
 * A server's event as a line for the person who runs it: the time of day, what happened, and to what (cli/README.md,
 * "Commands", serve). Logins, what was booked, updated, deleted or refused, and everything that went wrong have a line.
 *
 * @param context the zone of the times, which the reader must find nearby
 * @returns undefined for an event that has no line, such as a request that was answered
 */
export function eventLine(
  { level, event, fields }: { level: 'info' | 'error'; event: string; fields: EventFields },
  context: TimeContext,
): string | undefined {
  const name = event.replaceAll('_', ' ');
  let said: readonly [what: string, about: string] | undefined;
  if (level === 'error') said = ['error', `${name}: ${faultOf(fields)}`];
  else if (event === 'request') said = refused(fields, context);
  else if (fields['link'] !== undefined) said = [name, reserved(fields, context)];
  else if (event === 'stopping') said = [name, stopsIn(fields)];
  else if (!UNTOLD.has(event)) said = [name, told(fields)];
  return said && `${clock(context.now, context.zone)}  ${said[0].padEnd(8)}  ${said[1]}`;
}

/** The first line of a bug's stack is its message. */
function faultOf({ why, times }: EventFields): string {
  const [reason = ''] = String(why ?? '').split('\n');
  return `${reason}${times === undefined ? '' : ` (${times} more times)`}`;
}

/** When a server that was told to stop does so. */
function stopsIn({ drain }: EventFields): string {
  return Number(drain) > 0 ? `in ${drain} s (--drain)` : 'after the requests under way';
}

/** Facts by their names; who it was has a name, or an id. */
function told({ why, by, ...facts }: EventFields): string {
  const all = Object.entries({ ...(facts['name'] === undefined ? { by } : {}), ...facts });
  const parts = all.flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]));
  return [...(why === undefined ? [] : [String(why)]), ...parts].join(', ');
}

function refused(
  { method, path, status, code, why }: EventFields,
  context: TimeContext,
): readonly [string, string] | undefined {
  if (code === undefined || Number(status) < 400) return undefined;
  if (method === 'GET' && UNSAID.has(String(code))) return undefined;
  const reason = why instanceof Sentence ? why.in(shortTimes(context)) : (why ?? `${method} ${path}`);
  return ['refused', withoutTokens(`${reason} (${status} ${code})`)];
}

function reserved(fields: EventFields, context: TimeContext): string {
  const { link, bandwidth, start_date, end_date, name, reservation } = fields;
  const [start, end] = [Date.parse(String(start_date)), Date.parse(String(end_date))];
  const period = shortTimes(context).ends(start, end).join(' – ');
  const links = String(link)
    .replaceAll('~', ' – ')
    .replaceAll(/(?<!–) (?!–)/g, ', ');
  const by = `by ${name} (…${String(reservation).slice(-SHORT_ID)})`;
  return `${links}, ${formatBandwidth(Number(bandwidth))}, ${period}, ${by}`;
}

/** A time of day with seconds. */
function clock(instant: number, zone: string): string {
  return new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeStyle: 'medium' }).format(instant);
}
