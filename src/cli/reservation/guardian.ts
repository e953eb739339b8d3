import * as v from 'valibot';
import { Failure, mayBeRepeated } from '../../contract/failure.ts';
import { ReservationRequest } from '../../contract/reservation-request.ts';
import type { Session } from '../../session/session.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';

/** `slices-conn __guardian`, which `run` starts beside itself, and which deletes its reservation if `run` is killed. */
export const command: CommandDeclaration = {};

const Unfinished = v.object({
  /** The experiment and the idempotency key that the reservation was asked for with. */
  experiment: v.string(),
  key: v.string(),
  request: ReservationRequest,
  /** The reservation's id, once it is known. */
  id: v.nullable(v.string()),
  /** When it ends, in milliseconds. */
  end: v.number(),
  /** The file with the signed reservation. */
  file: v.string(),
  /** The process of the command, while it runs and is to end with the link; else null. */
  command: v.nullable(v.number()),
});
/** The reservation that a `run` leaves behind if it is killed now. Its guardian reads a line of JSON at each change. */
export type Unfinished = v.InferOutput<typeof Unfinished>;

/** The line that tells the guardian that nothing is left behind. */
export const NOTHING_LEFT = 'null';

/** The pauses between two attempts to delete, in milliseconds: each twice as long as the one before, up to the last. */
const [FIRST_PAUSE, LAST_PAUSE] = [1000, 60_000];

/**
 * Waits until its input ends: then the `run` that started it has ended. Where that did not say that nothing is left, it
 * was killed: its command is asked to end, where it said `--on-lost term`, and its reservation is deleted. A service that can't be reached is asked again until the reservation has
 * ended by itself. Nothing is printed: the terminal may belong to other commands by now.
 */
export async function run(context: Context): Promise<void> {
  // A signal to all processes of a session is for the command and for `run`.
  void context.processes.stopSignal();
  // Opened before it is needed, so that the code is loaded: the package may be replaced meanwhile.
  const session = await context.session();
  const told = new TextDecoder().decode(await context.files.read('-'));
  // What follows the last line end was not written to its end.
  const left = v.parse(v.nullable(Unfinished), JSON.parse(told.split('\n').at(-2) ?? NOTHING_LEFT));
  if (!left) return;
  if (left.command !== null) context.processes.terminate(left.command);
  try {
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LAST_PAUSE)) {
      try {
        return await clear(session, left);
      } catch (error) {
        if (!mayBeRepeated(error) || context.clock.now() + pause >= left.end) return;
      }
      await context.clock.sleep(pause);
    }
  } finally {
    await context.files.remove(left.file);
  }
}

/** Deletes what is left. */
async function clear(session: Session, left: Unfinished): Promise<void> {
  const id = left.id ?? (await idOf(session, left));
  if (id !== undefined) await session.reservations.change([{ action: 'delete', id }]);
}

/**
 * The id of the reservation that `run` created without getting the answer. The request is sent again under its idempotency
 * key, so nothing is created twice. Undefined where nothing was sent, or nothing was created.
 */
async function idOf(session: Session, { experiment, key, request }: Unfinished): Promise<string | undefined> {
  const [entry] = await (await session.ledger()).entries({ experiment, key });
  if (!entry || entry.outcome === 'refused' || entry.outcome === 'deleted') return undefined;
  if (entry.id !== undefined) return entry.id;
  try {
    const options = { idempotencyKey: key };
    const [{ reservation }] = await session.reservations.change([{ action: 'create', request }], options);
    return reservation.id;
  } catch (error) {
    const { reservation: id, isOther } = error instanceof Failure ? error.facts : {};
    if (id === undefined || isOther) throw error;
    return id;
  }
}
