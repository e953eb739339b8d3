import type { ProofOptions, ProvenReservation } from '../../client/proof.ts';
import { Failure, failureOrThrow, isGone } from '../../contract/failure.ts';
import type { ReservationRequest } from '../../contract/reservation-request.ts';
import type { Reservations } from './reservations.ts';

/** A reservation to create, and the key of an earlier request for it whose answer is not known. */
export interface Creation {
  request: ReservationRequest;
  key?: string;
}

/** The result of {@link createAllOrNone}. */
export type Created =
  | { ok: true; made: readonly ProvenReservation[] }
  | {
      ok: false;
      /** The first that failed, and its failure. */
      at: number;
      failure: Failure;
      /** How many were made and deleted again. */
      undone: number;
      /** The ids of reservations that were made and could not be deleted. */
      left: readonly string[];
    };

/**
 * Creates all or none by single requests, for a service without batches: one after the other, and when one fails, those
 * before it are deleted again (cli/README.md, "Output").
 *
 * A process that is killed in between leaves some of them. The ledger and the service's list show them, so that the same
 * work done again goes on from there.
 */
export async function createAllOrNone(
  reservations: Pick<Reservations, 'change'>,
  creations: readonly Creation[],
  options: ProofOptions = {},
): Promise<Created> {
  const made: ProvenReservation[] = [];
  for (const [at, { request, key }] of creations.entries()) {
    try {
      const how = { ...options, idempotencyKey: key };
      const [proven] = await reservations.change([{ action: 'create', request }], how);
      made.push(proven);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const ids = made.map(({ reservation }) => reservation.id);
      // It was made, but its proof does not verify.
      const { reservation, isOther } = error.facts;
      const own = isOther ? undefined : reservation;
      if (own !== undefined) ids.push(own);
      const left = await deleteEach(reservations, ids.toReversed());
      // Advice about a reservation that is gone again would lead nowhere.
      const gone = { reservation: undefined, fix: undefined, maybeDone: false };
      const failure = own === undefined || left.includes(own) ? error : error.with(gone);
      return { ok: false, at, failure, undone: ids.length - left.length, left };
    }
  }
  return { ok: true, made };
}

/** Deletes reservations. @returns the ids of those that could not be deleted */
async function deleteEach(
  reservations: Pick<Reservations, 'change'>,
  ids: readonly string[],
): Promise<string[]> {
  const left: string[] = [];
  for (const id of ids) {
    const ended = await reservations.change([{ action: 'delete', id }]).catch(failureOrThrow);
    if (ended instanceof Failure && !isGone(ended)) left.push(id);
  }
  return left;
}
