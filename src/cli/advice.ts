import type { NewReservation } from '../client/connectivity.ts';
import { Failure } from '../contract/failure.ts';
import { parseInstant } from '../contract/instants.ts';
import type { Alternative } from '../contract/problems.ts';
import { shellWord } from '../contract/shell-word.ts';
import type { GlobalFlags } from './global-options.ts';
import { nearestSite } from './site-names.ts';
import type { TimeContext } from './times.ts';

/** Flags of `reserve` that the advised command needs just as the refused one did. */
type KeptFlags = Pick<GlobalFlags, 'experiment'> & { save?: string };

/**
 * Makes a refusal say what to type instead: the first alternative that the service offers, as a command.
 *
 * @returns a handler of rejections, which rejects with the advised failure
 */
export function advisor(
  request: NewReservation,
  flags: KeptFlags,
  times: () => TimeContext,
): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof Failure)) throw error;
    // A service's text goes into a command only where it can be nothing but a time.
    const alternative = error.facts.alternatives?.find(isPeriod);
    if (alternative) throw error.with({ fix: reserveCommandLine(request, alternative, flags, times().now) });
    const unknown = error.code === 'site_unknown' ? [request.site1, request.site2] : [];
    const [near] = unknown.map(nearestSite).filter((site) => site !== undefined);
    throw near === undefined ? error : error.with({ why: `Did you mean ${near}?` });
  };
}

function isPeriod({ start_date, end_date }: Alternative): boolean {
  return parseInstant(start_date) !== undefined && parseInstant(end_date) !== undefined;
}

/**
 * The same for a refused update: with the first alternative, as a command.
 *
 * @param id the reservation
 */
export function updateAdvisor(id: string, start: number): (error: unknown) => never {
  return (error) => {
    const alternative = error instanceof Failure ? error.facts.alternatives?.find(isPeriod) : undefined;
    if (!(error instanceof Failure) || !alternative) throw error;
    const { bandwidth, start_date, end_date } = alternative;
    const moved = parseInstant(start_date) === start ? [] : ['--start', start_date];
    const words = [
      'slices-conn',
      'update',
      id,
      '--bandwidth',
      String(bandwidth),
      ...moved,
      '--end',
      end_date,
    ];
    throw error.with({ fix: words.map(shellWord).join(' ') });
  };
}

/** The command that books an alternative. A start that has come is written as --start-now. */
export function reserveCommandLine(
  { site1, site2 }: NewReservation,
  { bandwidth, start_date, end_date }: Alternative,
  { experiment, save }: KeptFlags,
  now: number,
): string {
  const start = parseInstant(start_date) ?? 0;
  return [
    'slices-conn',
    ...(experiment === undefined ? [] : ['--experiment', experiment]),
    'reserve',
    site1,
    site2,
    '--bandwidth',
    String(bandwidth),
    ...(start <= now ? ['--start-now'] : ['--start', start_date]),
    '--end',
    end_date,
    ...(save === undefined ? [] : ['--save', save]),
  ]
    .map(shellWord)
    .join(' ');
}
