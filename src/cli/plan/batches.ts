import type { BatchItem } from '../../client/batch.ts';
import { isMissing } from '../../client/exchange.ts';
import type { ProvenReservation } from '../../client/proof.ts';
import { CODE_OF_LOCATION } from '../../client/reply-failure.ts';
import { Failure } from '../../contract/failure.ts';
import { BY_THE_LINK } from '../../contract/problem-codes.ts';
import { periodOf } from '../../contract/reservation-request.ts';
import {
  type Applier,
  type ApplierOptions,
  type ChangeOutcome,
  isRefusal,
  NotApplied,
  requestFor,
} from './applier.ts';
import type { PlannedChange } from './difference.ts';

/** Makes changes by one batch (contract/README.md, "Extensions"). */
export function batches({ session, now, expiry, earliest }: ApplierOptions): Applier {
  const { connectivity, reservations } = session;
  const itemOf = (change: PlannedChange): BatchItem => {
    switch (change.action) {
      case 'create':
        return { action: 'create', reservation: requestFor(change, { now: now(), expiry }) };
      case 'delete':
        return { action: 'delete', id: change.current.id };
      default: {
        const { current, change: wanted } = change as PlannedChange & { action: 'update' };
        return { action: 'update', current, change: wanted };
      }
    }
  };
  const send = async (
    changes: readonly PlannedChange[],
    make: (items: readonly BatchItem[]) => Promise<readonly (ProvenReservation | null)[]>,
  ): Promise<{ outcomes: ChangeOutcome[]; failure?: Failure }> => {
    const sent = inOrder(changes);
    const results = await make(sent.map(itemOf)).catch((error: unknown) => {
      if (!(error instanceof Failure)) throw error;
      const refused = refusedItems(error);
      if (refused.size === 0) throw error;
      return { error, refused };
    });
    if ('refused' in results) {
      const { error, refused } = results;
      const outcomes = sent.map((change, at) => ({ change, reservation: null, failure: refused.get(at) }));
      return { outcomes: inFileOrder(changes, outcomes), failure: error };
    }
    const outcomes = sent.map((change, at) => ({
      change,
      reservation: results[at]?.reservation ?? null,
      failure: undefined,
    }));
    return { outcomes: inFileOrder(changes, outcomes) };
  };
  return {
    async rehearse(changes) {
      const { outcomes, failure } = await send(changes, (items) =>
        connectivity.batch(items, { dryRun: true, earliest }),
      );
      if (failure && !isRefusal(failure)) throw failure;
      return outcomes;
    },
    async apply(changes) {
      const { outcomes, failure } = await send(changes, (items) => reservations.apply(items, { earliest }));
      if (failure) throw new NotApplied(failure, outcomes);
      return outcomes;
    },
    async earliestStart(changes) {
      if (!changes.some(({ action }) => action === 'create')) return undefined;
      const { outcomes, failure } = await send(changes, (items) =>
        connectivity.batch(items, { dryRun: true, earliest: true }),
      );
      if (failure) return BY_THE_LINK.includes(failure.code) ? 'never' : undefined;
      const starts = outcomes.flatMap(({ change, reservation }) =>
        change.action === 'create' && reservation ? [periodOf(reservation).start] : [],
      );
      return Math.min(...starts);
    },
  };
}

/**
 * An applier for a service whose description mentions batches: where it has none all the same, single requests do.
 *
 * @param single for creations alone; see `singleRequests`
 */
export function batchesOr(single: Applier, options: ApplierOptions): Applier {
  const together = batches(options);
  const tried = <Result>(work: (applier: Applier) => Promise<Result>): Promise<Result> =>
    work(together).catch((error: unknown) => {
      if (!lacksRoute(error)) throw error;
      return work(single);
    });
  return {
    rehearse: (changes) => tried((applier) => applier.rehearse(changes)),
    apply: (changes) => tried((applier) => applier.apply(changes)),
    earliestStart: (changes) => tried((applier) => applier.earliestStart(changes)),
  };
}

/** Whether the address is not there. A reservation that is not there is named by its item. */
function lacksRoute(error: unknown): boolean {
  return isMissing(error) && !error.facts.details?.some(({ item }) => item !== undefined);
}

/** What gives back comes before what needs more: each change of a batch sees those before it. */
function inOrder(changes: readonly PlannedChange[]): PlannedChange[] {
  const rank = (change: PlannedChange): number => {
    if (change.action === 'delete') return 0;
    if (change.action === 'create') return 3;
    return change.action === 'update' && isGrowing(change) ? 2 : 1;
  };
  return changes.toSorted((one, other) => rank(one) - rank(other));
}

/** Whether an update needs anything that the reservation does not have. */
function isGrowing({ current, change }: PlannedChange & { action: 'update' }): boolean {
  const before = periodOf(current);
  const { bandwidth = current.bandwidth, start = before.start, end = before.end } = change;
  const isEarlier = start !== 'now' && start < before.start;
  return bandwidth > current.bandwidth || isEarlier || end > before.end;
}

function inFileOrder(changes: readonly PlannedChange[], outcomes: readonly ChangeOutcome[]): ChangeOutcome[] {
  const outcomeOf = new Map(outcomes.map((outcome) => [outcome.change, outcome]));
  return changes.flatMap((change) => outcomeOf.get(change) ?? []);
}

/** The failures of the items of a refused batch, by their index. */
function refusedItems({ code, message, facts }: Failure): Map<number, Failure> {
  const { details = [], limits, free, alternatives, httpStatus } = facts;
  const status = httpStatus === undefined ? {} : { httpStatus };
  const own = Map.groupBy(details, ({ item }) => item);
  const failures = new Map<number, Failure>();
  for (const [item, said] of own) {
    if (item === undefined) continue;
    const isFirst = failures.size === 0;
    const [location] = said.flatMap(({ loc }) => loc);
    const ofItem = <Fact extends { item?: number }>(known: readonly Fact[] = []): Fact[] | undefined => {
      const found = known.filter((fact) => fact.item === item || (isFirst && fact.item === undefined));
      return found.length > 0 ? found : undefined;
    };
    const more = { limits: ofItem(limits), free: ofItem(free), alternatives: ofItem(alternatives) };
    failures.set(
      item,
      new Failure(isFirst ? code : codeAt(location, code), said.map(({ msg }) => msg).join(' ') || message, {
        ...status,
        ...more,
        details: said,
      }),
    );
  }
  return failures;
}

/** The code of a refusal by the place that it names; see `replyFailure`. */
function codeAt(location: string | number | undefined, otherwise: Failure['code']): Failure['code'] {
  const codes: Readonly<Record<string, Failure['code']>> = CODE_OF_LOCATION;
  return codes[String(location)] ?? otherwise;
}
