import type { Holding, Period } from '../../src/allocator/demand.ts';
import { LinkUse } from '../../src/allocator/link-use.ts';
import { finish, type Steps, TooMuchError } from '../../src/allocator/steps.ts';
import type { HeldReservation } from '../../src/allocator/store.ts';
import { type Link, linkId } from '../../src/contract/links.ts';

/** What reservations hold of a link, by their ids. */
export type Held = ReadonlyMap<string, Holding>;

/** The use of a link over the reservations that a test holds, of which it reads those that it needs. */
export function useOf(link: Link, held: Held, { share = 100 } = {}): LinkUse {
  const read = async (period: Period) => rowsOf(held, period);
  return new LinkUse(linkId(link.site1, link.site2), link, { share, read });
}

/** The rows that overlap a period. */
export function rowsOf(held: Held, { start, end }: Period): HeldReservation[] {
  return [...held]
    .map(([id, holding]) => ({ tenant: '', ...holding, id }))
    .filter((row) => row.start < end && row.end > start);
}

/** What work comes to. @param looks after so many steps it is told that it takes too much. Default: never */
export async function answerOf<Answer>(work: Steps<Answer>, looks?: number): Promise<Answer> {
  if (looks === undefined) return finish(work, { most: Number.POSITIVE_INFINITY });
  let step = work.next();
  for (let taken = 1; !step.done; taken += 1) {
    await step.value;
    step = taken === looks ? work.throw(new TooMuchError()) : work.next();
  }
  return step.value;
}
