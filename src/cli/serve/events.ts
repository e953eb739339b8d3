import { formatBandwidth } from '../../contract/amounts.ts';
import { sitesOfLink } from '../../contract/links.ts';
import { Sentence } from '../../contract/said.ts';
import { withoutTokens } from '../../contract/secret.ts';
import { shortTimes, type TimeContext } from '../times.ts';
import type { EventFields } from './server.ts';

/** Refusals that say little to the person who runs a server: browsers ask for icons, crawlers for pages. */
const UNSAID: ReadonlySet<string> = new Set(['not_found', 'method_not_allowed']);

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
  const text = level === 'error' ? wentWrong(event, fields) : happened(event, fields, context);
  return text && `${clock(context.now, context.zone)}  ${text[0].padEnd(8)}  ${text[1]}`;
}

type Said = readonly [what: string, about: string] | undefined;

function wentWrong(event: string, { why, times }: EventFields): Said {
  // The first line of a bug's stack is its message.
  const [reason = ''] = String(why ?? '').split('\n');
  const more = times === undefined ? '' : ` (${times} more times)`;
  return ['error', `${event.replaceAll('_', ' ')}: ${reason}${more}`];
}

function happened(event: string, fields: EventFields, context: TimeContext): Said {
  const { name, client, repository, reservation, reason, by, drain, file, why } = fields;
  switch (event) {
    case 'login':
      return [
        event,
        repository === undefined ? `${name}, in ${client}` : `${name}, in a job of ${repository}`,
      ];
    case 'ci_refused':
      return ['refused', `a CI job: ${why}`];
    case 'created':
    case 'updated':
    case 'deleted':
      if (reason !== undefined) return [event, `${reservation}, by ${by}: ${reason}`];
      return [event, `${reserved(fields, context)}, by ${name} (…${String(reservation).slice(-SHORT_ID)})`];
    case 'request':
      return refused(fields, context);
    case 'database_made':
      return [
        'new',
        file === undefined ? 'tables, in the database, which was empty' : `${file}, which was not there`,
      ];
    case 'failover_loses':
      return ['note', String(why)];
    case 'certificate_renewed':
      return ['renewed', `the certificate ${file}`];
    case 'stopping':
      return ['stopping', Number(drain) > 0 ? `in ${drain} s (--drain)` : 'after the requests under way'];
    default:
      return undefined;
  }
}

function refused({ method, path, status, code, why }: EventFields, context: TimeContext): Said {
  if (code === undefined || Number(status) < 400) return undefined;
  if (method === 'GET' && UNSAID.has(String(code))) return undefined;
  const reason = why instanceof Sentence ? why.in(shortTimes(context)) : (why ?? `${method} ${path}`);
  return ['refused', withoutTokens(`${reason} (${status} ${code})`)];
}

function reserved({ link, bandwidth, start_date, end_date }: EventFields, context: TimeContext): string {
  const [start, end] = [Date.parse(String(start_date)), Date.parse(String(end_date))];
  const period = shortTimes(context).ends(start, end).join(' – ');
  return `${sitesOf(String(link))}, ${formatBandwidth(Number(bandwidth))}, ${period}`;
}

/** The sites that links pass, in their order. @param links such as `be-gent1~pl-poznan1 fr-slices~pl-poznan1` */
function sitesOf(links: string): string {
  const [first = [], ...others]: string[][] = links.split(' ').map(sitesOfLink);
  const [next = []] = others;
  const sites = next.includes(first[0] ?? '') ? first.toReversed() : first;
  for (const link of others) sites.push(...link.filter((site) => site !== sites.at(-1)));
  return sites.join(' – ');
}

/** A time of day with seconds. */
function clock(instant: number, zone: string): string {
  return new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeStyle: 'medium' }).format(instant);
}
