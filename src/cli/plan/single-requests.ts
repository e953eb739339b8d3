import type { ReservationRequest } from '../../contract/reservation-request.ts';
import { createAllOrNone } from '../../session/reservations/all-or-none.ts';
import {
  type Applier,
  type ApplierOptions,
  type ChangeOutcome,
  isRefusal,
  lacksBatches,
  NotApplied,
  requestFor,
} from './applier.ts';
import type { PlannedChange } from './difference.ts';

/** What {@link singleRequests} needs. */
export interface SingleRequestsOptions extends ApplierOptions {
  /** The keys of earlier requests under a name whose outcome is not known. */
  pending: ReadonlyMap<string, string>;
}

/**
 * Makes creations by single requests, for a service without batches (cli/README.md, "Output"). It can't try several
 * together: each is tried alone.
 */
export function singleRequests({ session, now, expiry, earliest, pending }: SingleRequestsOptions): Applier {
  const requestOf = (change: PlannedChange & { action: 'create' }): ReservationRequest =>
    requestFor(change, { now: now(), expiry });
  return {
    async rehearse(changes) {
      const outcomes: ChangeOutcome[] = [];
      for (const change of creationsIn(changes, earliest)) {
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
      const creations = creationsIn(changes, earliest);
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
    earliestStart: async () => undefined,
  };
}

/** @throws Failure `not_supported` for anything but creations at their own times */
function creationsIn(
  changes: readonly PlannedChange[],
  earliest: boolean,
): (PlannedChange & { action: 'create' })[] {
  if (earliest) throw lacksBatches('--earliest moves all creations together.');
  return changes.map((change) => {
    if (change.action === 'create') return change;
    throw lacksBatches(
      'The file needs updates or deletions, and they are made together with all else or not at all.',
    );
  });
}
