import { createNetwork } from '../../../src/allocator/network.ts';
import type { ReservationStore } from '../../../src/allocator/store.ts';
import { type Link, linkId, type TagRange } from '../../../src/contract/links.ts';
import type { AllocatorOptions, Outcome } from '../../allocator/allocator.ts';
import { smallLink } from '../../allocator/small-link.ts';
import { type Rows, sweep } from '../../allocator/sweep.ts';
import type { Subject } from '../subject.ts';

const RANGE: TagRange = [100, 119];
/** Ten bookings of 100 Mbps fit. */
const LINK: Link = smallLink({
  bandwidth: 1099,
  site1_s_tags: RANGE,
  site1_c_tags: RANGE,
  site2_s_tags: RANGE,
  site2_c_tags: RANGE,
});
const FIT = 10;
const ASKED = 36;

/**
 * Concurrent reservations, through allocators on several connections, for the free bandwidth of one link.
 *
 * @param makers one for each allocator
 * @returns the errors in the answers and the rows; empty when there are none
 */
export async function raceHere(
  makers: readonly ((options: Omit<AllocatorOptions, 'store'>) => Subject)[],
  { store, rows }: { store: ReservationStore; rows: Rows },
): Promise<string[]> {
  const id = linkId(LINK.site1, LINK.site2);
  // The row exists before the race, so that no connection waits for its creation.
  await store.changeLinks({ links: [id] }, async () => undefined);
  const subjects = makers.map((make, index) => {
    let ids = 0;
    return make({
      network: createNetwork({ sites: [LINK.site1, LINK.site2], links: [LINK] }),
      now: () => 0,
      newId: () => `${index}-${ids++}`,
    });
  });
  const request = { site1: LINK.site1, site2: LINK.site2, start: 10, end: 20, bandwidth: 100 };
  const answers = await Promise.allSettled(
    Array.from({ length: ASKED }, (_, index): Promise<Outcome> => {
      const subject = subjects[index % subjects.length];
      if (!subject) throw new RangeError('nobody races');
      return subject.create({ ...request, experiment: 'exp', createdBy: 'user', expiry: 1000 });
    }),
  );
  const errors = answers.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []));
  const won = answers.filter((each) => each.status === 'fulfilled' && each.value.ok).length;
  return [
    ...errors,
    ...(won === FIT ? [] : [`${won} were accepted where ${FIT} fit`]),
    ...(await sweep({ rows }, id, LINK)),
  ];
}
