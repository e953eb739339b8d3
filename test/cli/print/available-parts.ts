import type { AvailablePart } from '../../../src/contract/availability.ts';

export const HOUR = 3_600_000;
/** Monday 2026-11-23, 00:00 in Brussels. */
export const MIDNIGHT = Date.UTC(2026, 10, 22, 23);
export const DAY = { start: MIDNIGHT, end: MIDNIGHT + 24 * HOUR };
export const LINK = { site1: 'be-gent1', site2: 'se-kth', bandwidth: 10_000 };

/** Parts from hours of that day: from, until, free throughout, free at best, VLANs. */
export function parts(
  ...rows: readonly (readonly [number, number, number, number?, number?])[]
): AvailablePart[] {
  return rows.map(([from, until, bandwidth, bandwidth_max = bandwidth, vlans = 996]) => ({
    start_date: new Date(MIDNIGHT + from * HOUR).toISOString(),
    end_date: new Date(MIDNIGHT + until * HOUR).toISOString(),
    ...{ bandwidth, bandwidth_max, vlans },
  }));
}
