import type { Question } from './question.ts';

/** Who gives a reservation back. */
export interface CancellationTerms {
  /** The `sub` of the user who asks. */
  by: string;
  /** Why, where that was said: an administrator's release. */
  reason?: string;
}

/**
 * Whether a reservation can be given back: it can when it is there. No calendar is asked: a link that left the topology
 * still lets go of what it held.
 */
export function cancellationQuestion(id: string, { by, reason }: CancellationTerms): Question<boolean> {
  return {
    about: id,
    from: () => undefined,
    decide(view) {
      const record = view.reservation(id);
      if (!record) return { answer: false };
      const { experiment, start, end, bandwidth, tags } = record;
      const demand = { start, end, bandwidth };
      const why = reason ?? null;
      const audit = {
        at: view.now,
        action: 'cancel',
        by,
        experiment,
        reservation: id,
        demand,
        tags,
        why,
      } as const;
      return { answer: true, change: { action: 'cancel', record }, audit };
    },
  };
}
