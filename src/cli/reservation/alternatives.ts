import type { NewReservation } from '../../client/reservation-request.ts';
import { formatDuration } from '../../contract/durations.ts';
import { Failure, ownCommand } from '../../contract/failure.ts';
import { formatInstant, parseInstant } from '../../contract/instants.ts';
import type { AlternativeReply } from '../../contract/problems.ts';
import { shortTime, type TimeContext } from '../times.ts';
import { formatBandwidth, nearestSite } from '../values.ts';

/** Flags of a refused `reserve` that the advised command repeats. */
interface KeptFlags {
  dryRun?: boolean;
  save?: string;
  idempotencyKey?: string;
  allowUnsigned?: boolean;
}

/** What an advised command is made of. */
type Offer = Pick<AlternativeReply, 'bandwidth' | 'end_date'> & { start_date: string };

/**
 * Adds to a refusal what the service offers instead, in words and the first as a command.
 *
 * @param zone of the times that are printed
 * @returns a rejection handler, which throws the failure with the advice
 */
export function advisor(
  request: NewReservation,
  flags: KeptFlags,
  clock: () => number,
  zone: string,
): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof Failure)) throw error;
    // A service's text becomes part of a command only when it is a time.
    const offers = error.facts.alternatives?.filter(isPeriod) ?? [];
    const [alternative] = offers;
    const now = clock();
    const said = error.facts.why === undefined ? '' : `${error.facts.why} `;
    if (alternative) {
      const free = offers.map((offer) => described(offer, { now, zone })).join('; or ');
      throw error.with({
        why: `${said}Free in ${zone}: ${free}.`,
        fix: reserveCommandLine(request, alternative, flags, now),
      });
    }
    if (error.code === 'bandwidth_unavailable' || error.code === 'vlans_unavailable') {
      const why = `${said}The service offers nothing else. Ask for a shorter time, or for less.`;
      throw error.with({ why });
    }
    if (error.code === 'date_past' && request.start !== 'now' && request.end > now) {
      const { bandwidth = 0, start, end } = request;
      const started = { bandwidth, start_date: formatInstant(start), end_date: formatInstant(end) };
      throw error.with({ fix: reserveCommandLine(request, started, flags, now) });
    }
    const unknown = error.code === 'site_unknown' ? [request.site1, request.site2] : [];
    const [near] = unknown.map(nearestSite).filter((site) => site !== undefined);
    throw near === undefined ? error : error.with({ why: `Did you mean ${near}?` });
  };
}

/** What the service offers, for people: `1 Gbps from Sun 22 Nov 07:46 for 2 h`. */
function described({ bandwidth, start_date, end_date }: Offer, context: TimeContext): string {
  const [start, end] = [parseInstant(start_date) ?? 0, parseInstant(end_date) ?? 0];
  return `${formatBandwidth(bandwidth)} from ${shortTime(start, context)} for ${formatDuration(end - start)}`;
}

function isPeriod(offer: AlternativeReply): offer is AlternativeReply & Offer {
  const { start_date, end_date } = offer;
  return (
    start_date !== null && parseInstant(start_date) !== undefined && parseInstant(end_date) !== undefined
  );
}

/**
 * Adds to a refused update the first alternative, as a command.
 *
 * @param id the reservation
 */
export function updateAdvisor(
  id: string,
  start: number,
  { allowUnsigned }: Pick<KeptFlags, 'allowUnsigned'>,
): (error: unknown) => never {
  return (error) => {
    const alternative = error instanceof Failure ? error.facts.alternatives?.find(isPeriod) : undefined;
    if (!(error instanceof Failure) || !alternative) throw error;
    const { bandwidth, start_date, end_date } = alternative;
    const moved = parseInstant(start_date) === start ? [] : ['--start', start_date];
    const unsigned = allowUnsigned ? ['--allow-unsigned'] : [];
    const words = ['--bandwidth', String(bandwidth), ...moved, '--end', end_date, ...unsigned];
    throw error.with({ fix: ownCommand('update', id, ...words) });
  };
}

/** The command that books an alternative. A start that has come is written as --start-now. */
export function reserveCommandLine(
  { site1, site2 }: NewReservation,
  { bandwidth, start_date, end_date }: Offer,
  { dryRun, save, idempotencyKey, allowUnsigned }: KeptFlags,
  now: number,
): string {
  const start = parseInstant(start_date) ?? 0;
  return ownCommand(
    'reserve',
    site1,
    site2,
    '--bandwidth',
    String(bandwidth),
    ...(start <= now ? ['--start-now'] : ['--start', start_date]),
    '--end',
    end_date,
    ...(dryRun ? ['--dry-run'] : []),
    ...(save === undefined ? [] : ['--save', save]),
    ...(idempotencyKey === undefined ? [] : ['--idempotency-key', idempotencyKey]),
    ...(allowUnsigned ? ['--allow-unsigned'] : []),
  );
}
