import {
  type AllocationRules,
  type ChangeItem,
  type CreateRequest,
  decideItems,
  type ItemDecision,
  type ItemOperation,
  itemOperation,
} from './decide.ts';
import type { Demand } from './demand.ts';
import type { Refusal } from './refusals.ts';
import { type Steps, TooMuchError } from './steps.ts';
import type { LinksView } from './view.ts';

/** The result of a search for a common offset: the list, decided on there; or that there is none, or that it was given up. */
export interface FoundOffset {
  attempt?: ItemDecision[];
  /** Milliseconds. */
  offset: number;
  /** None below this offset fits, and more was not looked for. */
  givenUpAt?: number;
  /** Its time fits at the offset, and it is refused for what no other offset mends, such as a name that is taken. */
  isRefused?: true;
}

/**
 * Searches the smallest offset, in milliseconds, by which all creates of a list can be moved so that the whole list is
 * accepted, each item after those before it.
 *
 * It goes from fixpoint to fixpoint. Each create has a next offset at which it alone would be accepted, and so have those
 * that hold a link together, for the bandwidth that they take together: the greatest of them is the next candidate, and each
 * is asked again there, until all agree. No smaller offset can do. There the whole list is decided on. Where it is refused
 * even so, since items take routes or tags of each other, or an update stands in their way, the next candidate is the first
 * offset at which what a create finds is not the same: one of them begins where a reservation ends, or goes on into the next.
 *
 * Exact, but for the choice of tags: where tags are nearly used up, another choice for an item may make a smaller offset fit.
 *
 * @example
 * // a – b is free from 10:00 on, b – c from 12:00 on but for 13:00 to 14:00. Two hours on each, from 9:00 on: moved by 5 h.
 */
export class CommonOffset {
  readonly #items: readonly ChangeItem[];
  readonly #needs: readonly ItemOperation[];
  readonly #rules: AllocationRules;
  /** The largest offset. */
  readonly #last: number;
  readonly #nexts: readonly NextOffset[];
  /** None below it fits. */
  #offset = 0;

  /**
   * @param needs the operation of each item where it is not moved
   * @param until no create may end after this, in milliseconds
   */
  constructor(
    items: readonly ChangeItem[],
    needs: readonly ItemOperation[],
    { until, rules }: { until: number; rules: AllocationRules },
  ) {
    this.#items = items;
    this.#needs = needs;
    this.#rules = rules;
    const ends = items.map((item) => (item.action === 'create' ? item.request.end : 0));
    this.#last = until - Math.max(...ends);
    this.#nexts = [...this.#alone(), ...this.#together()];
  }

  /** Searches. Where it throws, the view is as it was. */
  *find(view: LinksView): Steps<FoundOffset> {
    const before = view.changes;
    try {
      while (this.#offset <= this.#last) {
        yield* this.#settle(view);
        if (this.#offset > this.#last) break;
        const moved = this.#items.map((item) => itemOperation(movedBy(item, this.#offset), this.#rules));
        const attempt = yield* decideItems(view, moved, { stopsAtRefusal: true });
        const answer = attempt.at(-1)?.answer;
        if (!answer || answer.ok) return { attempt, offset: this.#offset };
        view.undo(before);
        if (answer.reason !== 'refused' || answer.refusals.some(isOfLive))
          return { offset: this.#offset, isRefused: true };
        this.#offset = yield* this.#nextChange(view);
      }
      return { offset: this.#offset };
    } catch (error) {
      view.undo(before);
      if (!(error instanceof TooMuchError)) throw error;
      return { offset: this.#offset, givenUpAt: this.#offset };
    }
  }

  /** Goes to the first offset from this one on that each demand alone would have. */
  *#settle(view: LinksView): Steps<void> {
    // What updates and deletions free may be free; what updates take may be elsewhere.
    const before = view.changes;
    for (const item of this.#items) {
      const record = item.action === 'create' ? undefined : view.reservation(item.found.id);
      if (record) view.apply({ action: 'delete', record });
    }
    for (let settled = 0; settled < this.#nexts.length && this.#offset <= this.#last; ) {
      settled = 0;
      for (const next of this.#nexts) {
        yield;
        const offset = yield* next(view, this.#offset);
        if (offset === this.#offset) settled += 1;
        else this.#offset = offset;
        if (offset > this.#last) break;
      }
    }
    view.undo(before);
  }

  /** For each create, the next offset at which it alone would be accepted. */
  #alone(): NextOffset[] {
    return this.#items.flatMap((item, index) => {
      const routes = this.#needs[index]?.routes;
      // A create that searches may find another period in its window.
      if (item.action !== 'create' || !routes || item.request.duration !== undefined) return [];
      const { start, end, tenant = item.request.experiment } = item.request;
      const latest = end + this.#last;
      return function* (view, offset) {
        const use = routes(view);
        const [bandwidth, duration] = [item.request.bandwidth ?? use.capacity, end - start];
        const sought = { start: start + offset, end: latest, bandwidth, duration, tenant };
        return ((yield* use.earliest(sought)) ?? Infinity) - start;
      };
    });
  }

  /** For each link that several creates need, and each part of their time, the next offset at which all can have it. */
  #together(): NextOffset[] {
    const byLink = new Map<string, Demand[]>();
    for (const [index, item] of this.#items.entries()) {
      const [link, ...others] = this.#needs[index]?.links ?? [];
      if (item.action !== 'create' || link === undefined || others.length > 0) continue;
      const { start, end, bandwidth = 0, duration } = item.request;
      if (duration === undefined) byLink.set(link, [...(byLink.get(link) ?? []), { start, end, bandwidth }]);
    }
    const last = this.#last;
    return [...byLink].flatMap(([link, demands]) =>
      sumsOf(demands).map(
        ({ start, end, bandwidth }): NextOffset =>
          function* (view, offset) {
            const latest = end + last;
            const sought = { start: start + offset, end: latest, bandwidth, duration: end - start };
            return ((yield* view.use(link).earliest(sought)) ?? Infinity) - start;
          },
      ),
    );
  }

  /** The next offset at which a create meets other reservations than at this one. */
  *#nextChange(view: LinksView): Steps<number> {
    const updated = this.#items.flatMap((item) => (item.action === 'update' ? [item] : []));
    let next = Infinity;
    const changesAt = (offset: number): void => {
      if (offset > this.#offset) next = Math.min(next, offset);
    };
    for (const [index, item] of this.#items.entries()) {
      if (item.action !== 'create') continue;
      const { start, end } = item.request;
      for (const link of this.#needs[index]?.links ?? []) {
        const use = view.use(link);
        yield* use.cover({ start: start + this.#offset, end: end + this.#last + 1 });
        const changes = use.nextChanges(start + this.#offset, end + this.#offset);
        // It is free of a reservation where it starts at its end, and meets one where it ends after its start.
        changesAt(changes.end - start);
        changesAt(changes.start - end + 1);
        yield;
      }
      for (const { found, update } of updated) {
        changesAt((update.end ?? found.end) - start);
        changesAt((update.start ?? found.start) - end + 1);
      }
    }
    return next;
  }
}

function isOfLive(refusal: Refusal): boolean {
  return refusal.limit === 'share' && refusal.of === 'live';
}

/** The next offset, from one on up to the largest, at which a demand would be accepted; infinity for none. */
type NextOffset = (view: LinksView, offset: number) => Steps<number>;

/** A change whose create is moved by so many milliseconds. */
export function movedBy(item: ChangeItem, offset: number): ChangeItem {
  if (item.action !== 'create' || offset === 0) return item;
  const { start, end } = item.request;
  const request: CreateRequest = { ...item.request, start: start + offset, end: end + offset };
  return { ...item, request };
}

/** The load of demands together, in each part of their time in which several overlap. */
function sumsOf(demands: readonly Demand[]): Demand[] {
  const instants = [...new Set(demands.flatMap(({ start, end }) => [start, end]))].toSorted((a, b) => a - b);
  return instants.slice(1).flatMap((end, index) => {
    const start = instants[index] ?? end;
    const taking = demands.filter((demand) => demand.start <= start && demand.end >= end);
    const bandwidth = taking.reduce((sum, demand) => sum + demand.bandwidth, 0);
    return taking.length > 1 ? [{ start, end, bandwidth }] : [];
  });
}
