import type { ReservationQuery } from '../../allocator/store.ts';
import type { ReservationState } from '../../contract/reservation.ts';
import { ProblemError, refusal } from '../problem-error.ts';

/** The most reservations in one page of a list. */
export const MAX_PAGE = 1000;
const DEFAULT_PAGE = 100;

/** How a create or update request is to be carried out. */
export interface ExecutionOptions {
  startNow: boolean;
  dryRun: boolean;
}

/** Reads `start_now` and `dry_run`. @throws ProblemError 422 when `start_now` is no boolean, 400 for `dry_run` */
export function readExecutionOptions(request: Request): ExecutionOptions {
  const { searchParams } = new URL(request.url);
  const startNow = readBoolean(searchParams.get('start_now'));
  if (startNow === undefined) {
    throw new ProblemError([{ code: 'date_invalid', loc: 'Date', msg: 'start_now must be true or false.' }]);
  }
  const dryRun = readBoolean(searchParams.get('dry_run'));
  if (dryRun === undefined) throw refusal('request_invalid', 'dry_run must be true or false.');
  return { startNow, dryRun };
}

/** The spec says boolean; clients write it in several ways. */
function readBoolean(value: string | null): boolean | undefined {
  if (value === null) return false;
  if (/^(?:true|1)$/i.test(value)) return true;
  return /^(?:false|0)$/i.test(value) ? false : undefined;
}

const STATES = ['scheduled', 'active', 'ended'] as const satisfies readonly ReservationState[];

/** Reads the filters of a list. @throws ProblemError 400 */
export function readListQuery(request: Request): Pick<ReservationQuery, 'state' | 'after' | 'limit'> {
  const { searchParams } = new URL(request.url);
  const wanted = searchParams.get('state');
  const state = STATES.find((known) => known === wanted);
  if (wanted !== null && state === undefined) {
    throw refusal('request_invalid', `state must be one of ${STATES.join(', ')}.`);
  }
  const limit = searchParams.get('limit') ?? String(DEFAULT_PAGE);
  if (!/^[0-9]{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > MAX_PAGE) {
    throw refusal('request_invalid', `limit must be a number from 1 to ${MAX_PAGE}.`);
  }
  const after = searchParams.get('cursor');
  return {
    limit: Number(limit),
    ...(state === undefined ? {} : { state }),
    ...(after === null ? {} : { after }),
  };
}
