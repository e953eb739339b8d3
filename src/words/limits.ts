import { formatBandwidth } from '../contract/bandwidth.ts';
import type { Limit } from '../contract/problems.ts';

/** Whether more was asked for than the link has at any time. */
export function exceedsLink({ limit, capacity }: Limit, asked: number | undefined): boolean {
  return limit === 'bandwidth' && asked !== undefined && asked > capacity;
}

/** A broken limit as a sentence, with its numbers; times in UTC. @param asked Mbps */
export function limitText(broken: Limit, asked: number | undefined): string {
  const { limit, site, layer, capacity, free, start_date, end_date } = broken;
  const period = start_date === null || end_date === null ? '' : ` from ${start_date} to ${end_date}`;
  const wanted = asked === undefined ? '' : `; ${formatBandwidth(asked)} were asked for`;
  if (limit === 'tags') {
    return `None of the ${capacity} ${layer}-tags at ${site} is free all the time${period}.`;
  }
  if (limit === 'share') {
    const may = 'One project may have';
    if (period === '') {
      const held = `${may} ${capacity} reservations that have not ended, and yours has ${capacity - free}.`;
      return `${held} Delete one, or wait until one has ended.`;
    }
    return layer === null
      ? `${may} ${formatBandwidth(capacity)} of this link, and yours has ${formatBandwidth(free)} left${period}${wanted}.`
      : `${may} ${capacity} of the ${layer}-tags at ${site}, and yours has ${free} left${period}.`;
  }
  if (exceedsLink(broken, asked)) return `The link has ${formatBandwidth(capacity)}${wanted}.`;
  return asked === undefined
    ? `${formatBandwidth(free)} are free${period}.`
    : `${partOf(free, asked)} asked for ${free === 1 || free === 1000 ? 'is' : 'are'} free${period}.`;
}

/** A part of a bandwidth. @example partOf(6000, 9000) // '6 of the 9 Gbps' */
function partOf(part: number, whole: number): string {
  const rate = formatBandwidth(whole);
  if (part === 0) return `None of the ${rate}`;
  return part >= 1000 === whole >= 1000
    ? `${formatBandwidth(part).split(' ')[0]} of the ${rate}`
    : `${formatBandwidth(part)} of the ${rate}`;
}
