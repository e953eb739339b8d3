import { type ChangeOptions, isBatch } from '../../client/changes.ts';
import { refusedBy } from '../../client/reply-failure.ts';
import { Failure, type FailureFacts, ownCommand } from '../../contract/failure.ts';
import { parseInstant } from '../../contract/instants.ts';
import { BY_THE_LINK, isProblemCode } from '../../contract/problems.ts';
import type { Reservation } from '../../contract/reservation.ts';
import {
  asRequest,
  type ChangeItem,
  periodOf,
  type ReservationRequest,
} from '../../contract/reservation-request.ts';
import { createAllOrNone } from '../../session/reservations/all-or-none.ts';
import type { Session } from '../../session/session.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { periodToSend } from '../period.ts';
import type { PlannedChange } from './difference.ts';

/** The outcome of one change, or of its rehearsal. Where the service can't be asked, a change that would be made. */
export interface ChangeOutcome {
  change: PlannedChange;
  /** The reservation after the change; null for a deletion, and where the change was refused. */
  reservation: Reservation | null;
  /** Why it was refused. */
  failure: Failure | undefined;
}

/** An instant in milliseconds; `never` where no time helps; or before when none does, where the search was given up. */
export type CommonStart = number | 'never' | { notBefore: number | undefined };

/** No change was made, since at least one was refused. */
export class NotApplied extends Failure {
  /** Of the whole plan. */
  readonly outcomes: readonly ChangeOutcome[];
  /** How many were made and deleted again. */
  readonly undone: number;
  /** The ids of reservations that were made and could not be deleted again. */
  readonly left: readonly string[];

  constructor(
    { code, says, facts }: Failure,
    outcomes: readonly ChangeOutcome[],
    { undone, left }: { undone: number; left: readonly string[] } = { undone: 0, left: [] },
  ) {
    super(code, says, facts);
    this.outcomes = outcomes;
    this.undone = undone;
    this.left = left;
  }
}

/** How changes are made. */
export interface Applying {
  session: {
    connectivity: Pick<Session['connectivity'], 'change'>;
    reservations: Pick<Session['reservations'], 'change'>;
  };
  /** When requests are sent, in milliseconds. */
  now: () => number;
  /** The experiment's end, in milliseconds, where it is known. */
  expiry: number | undefined;
  /** Whether all creations are to start later, by the same time, as soon as all fit. */
  earliest: boolean;
  /** Whether the service describes batches. Without them creations are made one by one. */
  hasBatches: boolean;
  /** Whether the service can be asked whether a change fits. */
  canRehearse: boolean;
  /** Whether unsigned answers are accepted. */
  allowUnsigned: boolean;
  /** Without batches: the keys of earlier requests under a name whose outcome is not known. */
  pending: ReadonlyMap<string, string>;
}

/**
 * Says what each change of a plan would do. Nothing is changed.
 *
 * @throws Failure for anything but a refusal of a change
 */
export async function rehearse(plan: readonly PlannedChange[], how: Applying): Promise<ChangeOutcome[]> {
  const { earliest, hasBatches, canRehearse } = how;
  const needed = neededOf(plan);
  if (!hasBatches && !isAlone(needed, how)) checkCreations(needed, how);
  const apart = canRehearse ? needed.map((change) => [change]) : [];
  const became = new Map<PlannedChange, Became>();
  for (const part of hasBatches ? [needed] : apart) {
    const { found, failure } = await attempt(part, plan, how, { earliest, dryRun: true });
    if (failure && EXIT_CODE_OF[failure.code] !== 6) throw failure;
    for (const [change, result] of found) became.set(change, result);
  }
  return outcomesOf(plan, became);
}

/**
 * Makes the changes of a plan together, all or none. A service without batches can only make one change, or creations, one
 * after the other (cli/README.md, "Output").
 *
 * @throws NotApplied where one is refused, or Failure
 */
export async function apply(plan: readonly PlannedChange[], how: Applying): Promise<ChangeOutcome[]> {
  const { session, earliest, hasBatches, pending, allowUnsigned } = how;
  const needed = neededOf(plan);
  if (hasBatches || isAlone(needed, how)) {
    const options = { earliest, allowUnsigned };
    const { found, failure } = await attempt(needed, plan, how, options);
    if (failure) throw new NotApplied(failure, outcomesOf(plan, found));
    return outcomesOf(plan, found);
  }
  const creations = checkCreations(needed, how).map((change) => ({
    request: requestFor(change, how),
    key: pending.get(change.name),
  }));
  const created = await createAllOrNone(session.reservations, creations, { allowUnsigned });
  const became = new Map(
    needed.map((change, at): [PlannedChange, Became] => {
      if (created.ok) return [change, created.made[at]?.reservation ?? null];
      return [change, at === created.at ? created.failure : null];
    }),
  );
  if (!created.ok) throw new NotApplied(created.failure, outcomesOf(plan, became), created);
  return outcomesOf(plan, became);
}

/**
 * When the first creation of a plan starts if all are moved later by the same time until all fit; undefined where the service
 * can't tell.
 */
export async function earliestStart(
  plan: readonly PlannedChange[],
  how: Applying,
): Promise<CommonStart | undefined> {
  const needed = neededOf(plan);
  if (!how.hasBatches || !needed.some(({ action }) => action === 'create')) return undefined;
  const options = { earliest: true, dryRun: true };
  const { found, failure } = await attempt(needed, plan, how, options);
  // Without `at` it says that the search for alternatives was given up.
  const givenUp = failure?.facts.details?.find(
    ({ code, facts }) => code === 'search_given_up' && facts?.['at'] !== undefined,
  );
  if (givenUp) return { notBefore: parseInstant(String(givenUp.facts?.['at'])) };
  if (failure) return BY_THE_LINK.includes(failure.code) ? 'never' : undefined;
  const starts = outcomesOf(needed, found).flatMap(({ change, reservation }) =>
    change.action === 'create' && reservation ? [periodOf(reservation).start] : [],
  );
  return Math.min(...starts);
}

/** What became of a change: the reservation after it, null for a deletion, or why it was refused. */
type Became = Reservation | Failure | null;

function outcomesOf(
  plan: readonly PlannedChange[],
  became: ReadonlyMap<PlannedChange, Became>,
): ChangeOutcome[] {
  return plan.map((change) => {
    const result = became.get(change) ?? null;
    if (result instanceof Failure) return { change, reservation: null, failure: result };
    return { change, reservation: result, failure: undefined };
  });
}

function neededOf(plan: readonly PlannedChange[]): PlannedChange[] {
  return plan.filter(({ action }) => action !== 'none');
}

/**
 * Sends changes together.
 *
 * @param plan the changes by whose index problems are told
 * @returns what became of each, and the failure of all, where one was refused
 * @throws Failure that is about no single change
 */
async function attempt(
  changes: readonly PlannedChange[],
  plan: readonly PlannedChange[],
  how: Applying,
  options: ChangeOptions,
): Promise<{ found: Map<PlannedChange, Became>; failure?: Failure }> {
  const found = new Map<PlannedChange, Became>();
  if (changes.length === 0) return { found };
  const sent = changes.toSorted((one, other) => rankOf(one) - rankOf(other));
  const items = sent.map((change) => itemOf(change, how));
  try {
    const { connectivity, reservations } = how.session;
    const results = await (options.dryRun ? connectivity : reservations).change(items, options);
    for (const [at, change] of sent.entries()) found.set(change, results[at]?.reservation ?? null);
    return { found };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const refused = isBatch(items, options) ? refusedItems(error) : refusedAlone(error);
    if (refused.size === 0) throw error;
    const placed = (item: number | undefined) => {
      const change = item === undefined ? undefined : sent[item];
      return [change && plan.indexOf(change)];
    };
    const told = (failure: Failure): Failure => failure.with(factsOf(failure, placed));
    for (const [at, failure] of refused) {
      const change = sent[at];
      if (change) found.set(change, told(failure));
    }
    return { found, failure: told(error) };
  }
}

/** The order in which bandwidth is released before more is needed: each change of a batch sees the changes before it. */
function rankOf(change: PlannedChange): number {
  if (change.action === 'delete') return 0;
  if (change.action === 'create') return 3;
  return effectOf(change).needs ? 2 : 1;
}

function itemOf(change: PlannedChange, how: Applying): ChangeItem {
  if (change.action === 'create') return { action: 'create', request: requestFor(change, how) };
  const { id } = change.current;
  if (change.action === 'delete') return { action: 'delete', id };
  // As {@link asUpdate}: the name is that by which it was found.
  return { action: 'update', id, request: { ...change.request, name: undefined } };
}

/** The request that a creation sends. */
function requestFor(
  { wanted, request }: PlannedChange & { action: 'create' },
  { now, expiry }: Applying,
): ReservationRequest {
  const { start, end, length } = wanted;
  const lasting = start === 'now' ? length : undefined;
  return { ...request, ...periodToSend({ start, end, lasting }, { now: now() }, expiry) };
}

/** Whether an update gives up anything that the reservation has, and whether it needs anything more. */
export function effectOf({ current, request }: PlannedChange & { action: 'update' | 'none' }): {
  loses: boolean;
  needs: boolean;
} {
  const before = asRequest(current);
  const { bandwidth = 0, end } = request;
  const start = request.start === 'now' ? before.start : request.start;
  return {
    loses: bandwidth < before.bandwidth || start > before.start || end < before.end,
    needs: bandwidth > before.bandwidth || start < before.start || end > before.end,
  };
}

/**
 * Whether the changes go as they are without a batch: there are none, or there is one update or deletion. A creation does not: an
 * earlier run may have sent it, and its key is used again.
 */
function isAlone(needed: readonly PlannedChange[], { earliest }: Applying): boolean {
  return needed.length === 0 || (!earliest && needed.length === 1 && needed[0]?.action !== 'create');
}

/** @throws Failure `not_supported` for anything but creations at their own times */
function checkCreations(
  needed: readonly PlannedChange[],
  { earliest }: Applying,
): (PlannedChange & { action: 'create' })[] {
  const lacksBatches = (why: string, fix: FailureFacts['fix']): Failure =>
    new Failure('not_supported', "This service can't make several changes together.", {
      why: `${why} Nothing was changed.`,
      fix,
    });
  if (earliest) throw lacksBatches('--earliest moves all creations together.', { earliest: undefined });
  return needed.map((change) => {
    const { action, name } = change;
    if (action === 'create') return change;
    const why = `The file needs several changes, of which one would ${action} ${name}: they are made together or not at all.`;
    throw lacksBatches(why, ownCommand(action, name, '--help'));
  });
}

/** The refusal of a change that was sent alone. A service that may answer otherwise later has not decided on it. */
function refusedAlone(failure: Failure): Map<number, Failure> {
  const { httpStatus, maybeDone, retryable } = failure.facts;
  return new Map(httpStatus === undefined || maybeDone || retryable ? [] : [[0, failure]]);
}

/** The failures of the items of a refused batch, by their index. */
function refusedItems(failure: Failure): Map<number, Failure> {
  const { details = [], httpStatus } = failure.facts;
  const items = new Set(details.flatMap(({ item }) => item ?? []));
  return new Map(
    [...items].map((item) => {
      const { details: said = [], ...more } = factsOf(failure, (at) => (at === item ? [at] : []));
      const named = said[0]?.code;
      return [item, refusedBy(isProblemCode(named) ? named : failure.code, said, { httpStatus, ...more })];
    }),
  );
}

/** The facts of a failure that name items. @param placed the new index of an item, in a list; an empty list leaves its facts out */
function factsOf(
  { facts: { details, limits, free, alternatives } }: Failure,
  placed: (item: number | undefined) => (number | undefined)[],
): FailureFacts {
  const kept = <Fact extends { item?: number }>(facts: readonly Fact[] | undefined): Fact[] | undefined => {
    const found = facts?.flatMap((fact) => placed(fact.item).map((item) => ({ ...fact, item })));
    return found && found.length > 0 ? found : undefined;
  };
  return {
    details: kept(details),
    limits: kept(limits),
    free: kept(free),
    alternatives: kept(alternatives),
  };
}
