import type { Holding, Period } from '../../src/allocator/demand.ts';
import { LinkUse } from '../../src/allocator/link-use.ts';
import { finish, type Steps } from '../../src/allocator/steps.ts';
import type { HeldReservation } from '../../src/allocator/store.ts';
import { type Link, linkId } from '../../src/contract/links.ts';

/** What reservations hold of a link, by their ids. */
export type Held = ReadonlyMap<string, Holding>;

/** The use of a link over the reservations that a test holds, of which it reads those that it needs. */
export function useOf(link: Link, held: Held, { from = 0, share = 100 } = {}): LinkUse {
  const read = async (period: Period) => rowsOf(held, period);
  return new LinkUse(linkId(link.site1, link.site2), link, { from, share, read });
}

/** The rows that overlap a period. */
export function rowsOf(held: Held, { start, end }: Period): HeldReservation[] {
  return [...held]
    .map(([id, holding]) => ({ tenant: '', ...holding, id }))
    .filter((row) => row.start < end && row.end > start);
}

/** What work comes to, however long it takes. */
export function answerOf<Answer>(work: Steps<Answer>): Promise<Answer> {
  return finish(work, { most: Number.POSITIVE_INFINITY });
}
