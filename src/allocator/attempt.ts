import type { Budget } from './budget.ts';
import type { ItemDecision, ItemOperation, LinksView } from './operations.ts';

/** A list that was decided on: the decisions on its items, in their order. */
export interface DecidedList {
  decisions: ItemDecision[];
  /** How many changes the view had before. */
  before: number;
}

/**
 * Decides on each item, one after the other, and makes its changes in the view, but for the last one's, which no item sees. Where it throws, the
 * view is as it was.
 *
 * @param budget of a question, which is told what else is free where an item is refused
 * @param stopsAtRefusal whether the first item that can't be done is the last one that is decided on. Default: no
 */
export function* decideItems(
  view: LinksView,
  operations: readonly ItemOperation[],
  { budget, stopsAtRefusal = false }: { budget?: Budget | undefined; stopsAtRefusal?: boolean } = {},
): Generator<void, DecidedList> {
  const before = view.changes;
  const decisions: ItemDecision[] = [];
  try {
    for (const [index, operation] of operations.entries()) {
      yield;
      applyAccepted(view, decisions.at(-1));
      const decision = operation.decide(view);
      decisions.push(explainedIn(budget, `explained ${index}`, decision));
      if (stopsAtRefusal && !decision.answer.ok) break;
    }
  } catch (error) {
    view.undo(before);
    throw error;
  }
  return { decisions, before };
}

/** Decides on a list of one item. */
export function decideOne(
  view: LinksView,
  operation: ItemOperation,
  budget: Budget | undefined,
): DecidedList {
  const before = view.changes;
  return { decisions: [explainedIn(budget, 'explained 0', operation.decide(view))], before };
}

/** Takes changes back until only so many are left, one after the other. */
export function* undoneTo(view: LinksView, changes: number): Generator<void> {
  while (view.changes > changes) {
    yield;
    view.undo(view.changes - 1);
  }
}

/** Makes the changes of a decision in the view. */
export function applyAccepted(view: LinksView, decision: ItemDecision | undefined): void {
  for (const { change } of decision?.written ?? []) if (change) view.apply(change);
}

function explainedIn(budget: Budget | undefined, name: string, decision: ItemDecision): ItemDecision {
  const { answer, explain } = decision;
  if (!budget || !explain || answer.ok || answer.reason !== 'refused') return decision;
  return { ...decision, answer: { ...answer, ...budget.once(name, explain) } };
}
