import { formatBandwidth } from '../contract/bandwidth.ts';
import type { Limit } from '../contract/problems.ts';
import type { Times } from '../contract/said.ts';
import { hopName } from './link-name.ts';

/** Begins the messages of a link's refusals, as the spec does ("Errors" 3); ` between be-gent1 and pl-poznan1` follows. */
export const LIMIT_HEADINGS = {
  bandwidth: 'Not enough free bandwidth',
  tags: 'No available VLANs',
  share: 'Not enough of the share is left',
} as const satisfies Record<Limit['limit'], string>;

/** Whether more was asked for than the link has at any time. */
export function exceedsLink({ limit, capacity }: Limit, asked: number | undefined): boolean {
  return limit === 'bandwidth' && asked !== undefined && asked > capacity;
}

/** The ends of the period in which a limit was broken; undefined for a limit at any time. */
function endsOf({ start_date, end_date }: Limit, times: Times): readonly [string, string] | undefined {
  if (start_date === null || end_date === null) return undefined;
  return times.ends(Date.parse(start_date), Date.parse(end_date));
}

/**
 * A broken limit as a sentence, with its numbers.
 *
 * @param asked Mbps
 * @example '6 of the 9 Gbps asked for are free from 2026-12-01T11:00:00.000Z to 2026-12-01T14:00:00.000Z.'
 */
export function limitText(broken: Limit, asked: number | undefined, times: Times): string {
  const { limit, site, layer, capacity, free, tenant = 'project' } = broken;
  const ends = endsOf(broken, times);
  const period = ends ? ` from ${ends[0]} to ${ends[1]}` : '';
  const wanted = asked === undefined ? '' : `; ${formatBandwidth(asked)} were asked for`;
  const hop = broken.hop && hopName(broken.hop);
  if (limit === 'tags') {
    const on = hop === undefined ? '' : ` on ${hop}`;
    return `None of the ${capacity} ${layer}-tags at ${site} is free${on} all the time${period}.`;
  }
  if (limit === 'share') {
    const may = `One ${tenant} may have`;
    if (period === '') {
      const held = `${may} ${capacity} reservations that have not ended, and yours has ${capacity - free}.`;
      return `${held} Delete one, or wait until one has ended.`;
    }
    return layer === null
      ? `${may} ${formatBandwidth(capacity)} of ${hop ?? 'this link'}, and yours has ${formatBandwidth(free)} left${period}${wanted}.`
      : `${may} ${capacity} of the ${layer}-tags at ${site}, and yours has ${free} left${period}.`;
  }
  if (exceedsLink(broken, asked)) return capacityText(capacity, asked ?? 0, hop);
  if (hop !== undefined) {
    const has =
      asked === undefined ? `${formatBandwidth(free)} free` : partOf(free, asked).replace('None', 'none');
    return `${hop} has ${has}${period}.`;
  }
  return asked === undefined
    ? `${formatBandwidth(free)} are free${period}.`
    : `${partOf(free, asked)} asked for ${free === 1 || free === 1000 ? 'is' : 'are'} free${period}.`;
}

/** That a link never has as much as was asked for. Mbps. @param link its name, where a route has several */
export function capacityText(capacity: number, asked: number, link = 'The link'): string {
  return `${link} has ${formatBandwidth(capacity)}; ${formatBandwidth(asked)} were asked for.`;
}

/**
 * A broken limit in a few words, for a table; undefined for a limit at any time.
 *
 * @example '6 Gbps free 1 Dec 11:00–14:00'
 */
export function limitNote(broken: Limit, times: Times): string | undefined {
  const { limit, site, layer, capacity, free, tenant = 'project' } = broken;
  const ends = endsOf(broken, times);
  if (!ends) return undefined;
  const period = ends.join('–');
  const on = broken.hop ? ` on ${hopName(broken.hop)}` : '';
  if (limit === 'tags') return `no ${layer}-tag free at ${site}${on} ${period}`;
  const what = layer === null ? formatBandwidth(free) : `${free} of ${capacity} ${layer}-tags`;
  return `${what} ${limit === 'share' ? `left of the ${tenant}'s share` : 'free'}${on} ${period}`;
}

/** A part of a bandwidth. @example partOf(6000, 9000) // '6 of the 9 Gbps' */
function partOf(part: number, whole: number): string {
  const rate = formatBandwidth(whole);
  if (part === 0) return `None of the ${rate}`;
  return part >= 1000 === whole >= 1000
    ? `${formatBandwidth(part).split(' ')[0]} of the ${rate}`
    : `${formatBandwidth(part)} of the ${rate}`;
}
