import type { ChangeOptions } from '../../src/client/changes.ts';
import type { ConnectivityClient } from '../../src/client/connectivity.ts';
import type { ProvenReservation } from '../../src/client/proof.ts';
import type { Reservation } from '../../src/contract/reservation.ts';
import { asRequest, type ReservationRequest } from '../../src/contract/reservation-request.ts';

/** Creates one reservation. */
export async function create(
  client: ConnectivityClient,
  request: ReservationRequest,
  options?: ChangeOptions,
): Promise<ProvenReservation> {
  const [proven] = await client.change([{ action: 'create', request }], options);
  return proven;
}

/** The reservation that a create would make. */
export async function rehearse(
  client: ConnectivityClient,
  request: ReservationRequest,
): Promise<Reservation> {
  return (await create(client, request, { dryRun: true })).reservation;
}

/** Updates some members of a reservation. */
export async function update(
  client: ConnectivityClient,
  current: Reservation,
  change: Partial<ReservationRequest>,
  options?: ChangeOptions,
): Promise<ProvenReservation> {
  const request = { ...asRequest(current), ...change };
  const [proven] = await client.change([{ action: 'update', id: current.id, request }], options);
  return proven;
}

/** Deletes one reservation. */
export async function remove(client: ConnectivityClient, id: string): Promise<void> {
  await client.change([{ action: 'delete', id }]);
}
