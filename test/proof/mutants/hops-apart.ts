import type { Decided, ReservationStore } from '../../../src/allocator/store.ts';
import { reservationStore } from '../../../src/store/reservations.ts';

/** A store that makes the mistake: each hop of a new route is written in a transaction of its own. */
export const writesHopsApart: typeof reservationStore = (database, locking) => {
  const real = reservationStore(database, locking);
  return {
    ...real,
    async changeLinks(locks, work) {
      const left: { decided: Decided; at: number }[] = [];
      const answer = await real.changeLinks(locks, (transaction) =>
        work({
          ...transaction,
          async write({ changes, audit }, at) {
            const first = changes.map((change) => {
              const { hops, ...record } = change.record;
              if (change.action === 'create' && hops.length > 1) {
                left.push({ decided: { changes: [{ ...change, action: 'update' }], audit: [] }, at });
              }
              return { ...change, record: { ...record, hops: [hops[0]] as const } };
            });
            await transaction.write({ changes: first, audit }, at);
          },
        }),
      );
      for (const { decided, at } of left) {
        await real.changeLinks(locks, (transaction) => transaction.write(decided, at));
      }
      return answer;
    },
  } satisfies ReservationStore;
};
