import type { Operation } from './operation.ts';

/** Who deletes a reservation. */
export interface DeleteTerms {
  /** The `sub` of the user who asks. */
  by: string;
  /** Why, where that was said: an administrator's release. */
  reason?: string;
}

/**
 * Deletes a reservation. @returns whether there was one. It needs no calendar, so reservations on a link that left the
 * topology can be deleted too.
 */
export function deleteOperation(id: string, { by, reason }: DeleteTerms): Operation<boolean> {
  return {
    about: id,
    from: () => undefined,
    decide(view) {
      const record = view.reservation(id);
      if (!record) return { answer: false };
      const { experiment, start, end, bandwidth, tags } = record;
      const demand = { start, end, bandwidth };
      const entry = { at: view.now, by, experiment, reservation: id, demand, tags, why: reason ?? null };
      return { answer: true, change: { action: 'cancel', record }, audit: { ...entry, action: 'cancel' } };
    },
  };
}
