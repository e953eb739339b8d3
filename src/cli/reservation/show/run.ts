import { type Failure, isGone } from '../../../contract/failure.ts';
import { instant, sentence } from '../../../contract/said.ts';
import type { Session } from '../../../session/session.ts';
import type { Invocation } from '../../invocation.ts';
import { reservationCard, reservationResult, reservationState } from '../../print/cards.ts';
import { escapeText } from '../../print/output.ts';
import { confirmWriting } from '../../questions.ts';
import { againCommand } from '../alternatives.ts';
import { reservationArgument } from '../reservation-argument.ts';

/** The flags of the command, as typed. */
export interface ShowFlags {
  token?: boolean;
  save?: string;
  allowUnsigned?: boolean;
}

/** Shows a reservation, prints its signed form, or writes that to a file. */
export async function show(
  invocation: Invocation,
  [typed]: readonly string[],
  flags: ShowFlags,
): Promise<void> {
  const { output } = invocation;
  const { save } = flags;
  if (save !== undefined) await confirmWriting(invocation, save, 'Nothing was written.');
  const { session, id } = await reservationArgument(invocation, typed, 'see');
  const { reservations } = session;
  const allowUnsigned = flags.allowUnsigned === true && !flags.token && save === undefined;
  const proven = await reservations.show(id, { allowUnsigned }).catch(async (error: unknown) => {
    throw isGone(error) ? await deletedHere(error, session, id, invocation.now()) : error;
  });
  const { token, claims, reservation } = proven;
  if (save !== undefined) await invocation.files.writePrivate(save, `${token}\n`);
  if (flags.token && token !== null) {
    output.text({ token, claims }, token);
    return;
  }
  const experiment = await session.access();
  const times = await invocation.times();
  await output.result(reservationResult(proven), (print) => {
    const state = reservationState(reservation, times.now);
    const verb = `${state.charAt(0).toUpperCase()}${state.slice(1)}:`;
    const saved = save === undefined ? '' : `  saved to ${escapeText(save)}\n`;
    return reservationCard(print, verb, proven, { times, experiment }) + saved;
  });
}

/** The failure that a reservation is gone: of one that this machine deleted with when that was, and how to book it again. */
async function deletedHere(gone: Failure, session: Session, id: string, now: number): Promise<Failure> {
  const entry = await session
    .ledger()
    .then((ledger) => ledger.about(id))
    .catch(() => undefined);
  if (entry?.outcome !== 'deleted' || entry.asked !== 'delete') return gone;
  const why = sentence`This machine deleted it at ${instant(entry.askedAt)}.`;
  return gone.with({ why, fix: entry.reservation && againCommand(entry.reservation, now) });
}
