import type { Invocation } from '../../invocation.ts';
import { reservationCard, reservationResult, reservationState } from '../../print/cards.ts';
import { reservationArgument } from '../reservation-argument.ts';

/** The flags of the command, as typed. */
export interface ShowFlags {
  token?: boolean;
  allowUnsigned?: boolean;
}

/** Shows a reservation, or prints its signed form. */
export async function show(
  invocation: Invocation,
  [typed]: readonly string[],
  flags: ShowFlags,
): Promise<void> {
  const { output } = invocation;
  const { session, id } = await reservationArgument(invocation, typed, 'see');
  const { reservations } = session;
  const proven = await reservations.show(id, { allowUnsigned: flags.allowUnsigned === true && !flags.token });
  const { token, claims, reservation } = proven;
  if (flags.token && token !== null) {
    output.text({ token, claims }, token);
    return;
  }
  const experiment = await session.access();
  const times = await invocation.times();
  await output.result(reservationResult(proven), (print) => {
    const state = reservationState(reservation, times.now);
    const verb = `${state.charAt(0).toUpperCase()}${state.slice(1)}:`;
    return reservationCard(print, verb, proven, { times, experiment });
  });
}
