import {
  type NewReservation,
  type Requested,
  requestedOf,
  updated,
} from '../../client/reservation-request.ts';
import { Failure } from '../../contract/failure.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { createAllOrNone } from '../../session/reservations/all-or-none.ts';
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
   * What the changes would come to. Nothing is changed.
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
}

/** Changes that were not made, since at least one can't be. */
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
): NewReservation {
  const lasting = start === 'now' ? { lasting: length } : {};
  const period = periodToSend({ start, end, ...lasting }, sending.now, sending.expiry);
  return { name, site1, site2, bandwidth, ...period };
}

/** What is asked for, as it is sent (CLI.md, "Output"); null for a deletion. */
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

/** What {@link singleRequests} needs. */
export interface SingleRequestsOptions {
  session: Pick<Session, 'rehearse' | 'reservations'>;
  /** When requests are sent, in milliseconds. */
  now: () => number;
  /** The experiment's end, in milliseconds, where it is known. */
  expiry: number | undefined;
  /** The keys of earlier requests under a name whose outcome is not known. */
  pending: ReadonlyMap<string, string>;
}

/**
 * Makes creations by single requests, for a service without batches (ANSWERS.md, "Settled details"). It can't try several
 * together: each is tried alone.
 */
export function singleRequests({ session, now, expiry, pending }: SingleRequestsOptions): Applier {
  const requestOf = (change: PlannedChange & { action: 'create' }): NewReservation =>
    requestFor(change, { now: now(), expiry });
  return {
    async rehearse(changes) {
      const outcomes: ChangeOutcome[] = [];
      for (const change of creationsIn(changes)) {
        outcomes.push(
          await session.rehearse(requestOf(change)).then(
            (reservation) => ({ change, reservation, failure: undefined }),
            (error: unknown) => {
              if (!isRefusal(error)) throw error;
              return { change, reservation: null, failure: error };
            },
          ),
        );
      }
      return outcomes;
    },
    async apply(changes) {
      const creations = creationsIn(changes);
      const created = await createAllOrNone(
        session.reservations,
        creations.map((change) => ({ request: requestOf(change), key: pending.get(change.name) })),
      );
      if (created.ok) {
        return created.made.map(({ reservation }, at) => ({
          change: changes[at] as PlannedChange,
          reservation,
          failure: undefined,
        }));
      }
      const { at, failure, left } = created;
      const outcomes = changes.map((change, each) => ({
        change,
        reservation: null,
        failure: each === at ? failure : undefined,
      }));
      throw new NotApplied(failure, outcomes, { undone: at - left.length, left });
    },
  };
}

/** @throws Failure `not_supported` for anything but a creation */
function creationsIn(changes: readonly PlannedChange[]): (PlannedChange & { action: 'create' })[] {
  return changes.map((change) => {
    if (change.action === 'create') return change;
    throw lacksBatches(
      'The file needs updates or deletions, and they are made together with all else or not at all.',
    );
  });
}

/** The failure where a service has no batches. */
export function lacksBatches(why: string): Failure {
  return new Failure('not_supported', "This service can't make several changes together.", {
    why: `${why} Nothing was changed.`,
  });
}
