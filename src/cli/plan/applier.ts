import { Failure } from '../../contract/failure.ts';
import type { Reservation } from '../../contract/reservation.ts';
import {
  type Requested,
  type ReservationRequest,
  requestedOf,
  updated,
} from '../../contract/reservation-request.ts';
import type { Session } from '../../session/session.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { periodToSend } from '../period.ts';
import type { PlannedChange } from './difference.ts';

/** What came of one change, or would. */
export interface ChangeOutcome {
  change: PlannedChange;
  /** What it leaves behind; null for a deletion, and where it was refused. */
  reservation: Reservation | null;
  /** Why it was refused. */
  failure: Failure | undefined;
}

/** Makes changes together, all or none. */
export interface Applier {
  /**
   * Says what each change would do. Nothing is changed.
   *
   * @throws Failure for anything but a refusal of a change
   */
  rehearse(changes: readonly PlannedChange[]): Promise<ChangeOutcome[]>;
  /**
   * Makes them.
   *
   * @throws NotApplied where one is refused, or Failure
   */
  apply(changes: readonly PlannedChange[]): Promise<ChangeOutcome[]>;
  /**
   * When the first creation starts if all are moved later by the same time until all fit, in milliseconds; `never` where no
   * such time helps; undefined where the service can't tell.
   */
  earliestStart(changes: readonly PlannedChange[]): Promise<number | 'never' | undefined>;
}

/** No change was made, since at least one was refused. */
export class NotApplied extends Failure {
  readonly outcomes: readonly ChangeOutcome[];
  /** How many were made and deleted again. */
  readonly undone: number;
  /** The ids of reservations that were made and could not be deleted again. */
  readonly left: readonly string[];

  constructor(
    { code, message, facts }: Failure,
    outcomes: readonly ChangeOutcome[],
    { undone = 0, left = [] }: { undone?: number; left?: readonly string[] } = {},
  ) {
    super(code, message, facts);
    this.outcomes = outcomes;
    this.undone = undone;
    this.left = left;
  }
}

/** Whether a service has decided that a change can't be. Any other failure says nothing about the change. */
export function isRefusal(error: unknown): error is Failure {
  return error instanceof Failure && EXIT_CODE_OF[error.code] === 6;
}

/** The request that a creation sends. */
export function requestFor(
  { name, wanted: { site1, site2, bandwidth, start, end, length } }: PlannedChange & { action: 'create' },
  sending: { now: number; expiry: number | undefined },
): ReservationRequest {
  const lasting = start === 'now' ? { lasting: length } : {};
  const period = periodToSend({ start, end, ...lasting }, sending.now, sending.expiry);
  return { name, site1, site2, bandwidth, ...period };
}

/** What is asked for, as it is sent (cli/README.md, "Output"); null for a deletion. */
export function requestedBy(change: PlannedChange): Requested | null {
  switch (change.action) {
    case 'delete':
      return null;
    case 'update':
      return requestedOf({ ...updated(change.current, change.change), name: change.name });
    default: {
      const { name, site1, site2, bandwidth, start, end } = change.wanted;
      return requestedOf({ name, site1, site2, bandwidth, start, end });
    }
  }
}

/** What an applier needs. */
export interface ApplierOptions {
  session: Pick<Session, 'rehearse'> & {
    connectivity: Pick<Session['connectivity'], 'batch'>;
    reservations: Pick<Session['reservations'], 'apply' | 'create' | 'delete'>;
  };
  /** When requests are sent, in milliseconds. */
  now: () => number;
  /** The experiment's end, in milliseconds, where it is known. */
  expiry: number | undefined;
  /** Whether all creations are to start later, by the same time, as soon as all fit. */
  earliest: boolean;
}

/** The failure where a service has no batches. */
export function lacksBatches(why: string): Failure {
  return new Failure('not_supported', "This service can't make several changes together.", {
    why: `${why} Nothing was changed.`,
  });
}
