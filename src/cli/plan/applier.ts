import { type ChangeOptions, isBatch } from '../../client/changes.ts';
import { CODE_OF_LOCATION, refusedBy } from '../../client/reply-failure.ts';
import { Failure, type FailureFacts, isMissing, ownCommand } from '../../contract/failure.ts';
import { parseInstant } from '../../contract/instants.ts';
import { BY_THE_LINK, isProblemCode } from '../../contract/problem-codes.ts';
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
import type { WantedReservation } from './plan-file.ts';

/** The outcome of one change, or of its rehearsal. Where the service can't be asked, a change that would be made. */
export interface ChangeOutcome {
  change: PlannedChange;
  /** The reservation after the change; null for a deletion, and where the change was refused. */
  reservation: Reservation | null;
  /** Why it was refused. */
  failure: Failure | undefined;
}

/** Makes changes together, all or none. */
export interface Applier {
  /**
   * Says what each change would do. Nothing is changed.
   *
   * @throws Failure for anything but a refusal of a change
   */
  rehearse(changes: readonly PlannedChange[]): Promise<ChangeOutcome[]>;
  /**
   * Makes them.
   *
   * @throws NotApplied where one is refused, or Failure
   */
  apply(changes: readonly PlannedChange[]): Promise<ChangeOutcome[]>;
  /**
   * When the first creation starts if all are moved later by the same time until all fit; undefined where the service can't
   * tell.
   */
  earliestStart(changes: readonly PlannedChange[]): Promise<CommonStart | undefined>;
}

/** An instant in milliseconds; `never` where no time helps; or before when none does, where the search was given up. */
export type CommonStart = number | 'never' | { notBefore: number | undefined };

/** No change was made, since at least one was refused. */
export class NotApplied extends Failure {
  readonly outcomes: readonly ChangeOutcome[];
  /** How many were made and deleted again. */
  readonly undone: number;
  /** The ids of reservations that were made and could not be deleted again. */
  readonly left: readonly string[];

  constructor(
    { code, says, facts }: Failure,
    outcomes: readonly ChangeOutcome[],
    { undone = 0, left = [] }: { undone?: number; left?: readonly string[] } = {},
  ) {
    super(code, says, facts);
    this.outcomes = outcomes;
    this.undone = undone;
    this.left = left;
  }
}

/** The needs of {@link createApplier}. */
export interface ApplierOptions {
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
  /** Whether the service describes batches. Without them, or where it has none all the same, creations are made one by one. */
  hasBatches: boolean;
  /** Whether the service can be asked whether a change fits. */
  canRehearse: boolean;
  /** Whether unsigned answers are accepted. */
  allowUnsigned: boolean;
  /** Without batches: the keys of earlier requests under a name whose outcome is not known. */
  pending: ReadonlyMap<string, string>;
  /** The changes of a plan by whose index problems are told: those that are made are some of them. Default: those that are made. */
  all?: readonly PlannedChange[];
}

type Creation = PlannedChange & { action: 'create' };

/**
 * Makes changes by one request (`ConnectivityClient.change`). A service without batches can only make creations, one after
 * the other, and try each alone (cli/README.md, "Output").
 */
export function createApplier(options: ApplierOptions): Applier {
  const { earliest, hasBatches, canRehearse, pending, allowUnsigned } = options;
  const { connectivity, reservations } = options.session;

  const rehearse = (changes: readonly PlannedChange[], how: ChangeOptions): Promise<Attempted> =>
    attempt(changes, how, options, (items) => connectivity.change(items, { ...how, dryRun: true }));
  const outcomesIfRehearsed = ({ outcomes, failure }: Attempted): ChangeOutcome[] => {
    if (failure && !isRefusal(failure)) throw failure;
    return outcomes;
  };
  async function applyOneByOne(changes: readonly PlannedChange[]): Promise<ChangeOutcome[]> {
    const created = await createAllOrNone(
      reservations,
      creationsIn(changes, earliest).map((change) => ({
        request: requestFor(change, options),
        key: pending.get(change.name),
      })),
      { allowUnsigned },
    );
    if (created.ok) {
      const made = created.made.map(({ reservation }) => reservation);
      return changes.map((change, at) => ({ change, reservation: made[at] ?? null, failure: undefined }));
    }
    const { at, failure, undone, left } = created;
    const outcomes = changes.map((change, each) => ({
      change,
      reservation: null,
      failure: each === at ? failure : undefined,
    }));
    throw new NotApplied(failure, outcomes, { undone, left });
  }
  async function togetherOr<Result>(
    together: () => Promise<Result>,
    oneByOne: () => Promise<Result>,
  ): Promise<Result> {
    if (!hasBatches) return oneByOne();
    return together().catch((error: unknown) => {
      if (!lacksRoute(error)) throw error;
      return oneByOne();
    });
  }

  return {
    rehearse: (changes) =>
      togetherOr(
        async () => outcomesIfRehearsed(await rehearse(changes, { earliest })),
        async () => {
          const outcomes: ChangeOutcome[] = [];
          for (const change of isAlone(changes, earliest) ? changes : creationsIn(changes, earliest)) {
            if (!canRehearse) outcomes.push({ change, reservation: null, failure: undefined });
            else outcomes.push(...outcomesIfRehearsed(await rehearse([change], {})));
          }
          return outcomes;
        },
      ),
    apply(changes) {
      const together = async (): Promise<ChangeOutcome[]> => {
        const how = { earliest, allowUnsigned };
        const { outcomes, failure } = await attempt(changes, how, options, (items) =>
          reservations.change(items, how),
        );
        if (failure) throw new NotApplied(failure, outcomes);
        return outcomes;
      };
      if (isAlone(changes, earliest)) return together();
      return togetherOr(together, () => applyOneByOne(changes));
    },
    earliestStart: (changes) =>
      togetherOr<CommonStart | undefined>(
        async () => {
          if (!changes.some(({ action }) => action === 'create')) return undefined;
          const { outcomes, failure } = await rehearse(changes, { earliest: true });
          // Others tell of what else would fit in place of one of them.
          const givenUp = failure?.facts.details?.find(
            ({ code, facts }) => code === 'search_given_up' && facts?.['at'] !== undefined,
          );
          if (givenUp) return { notBefore: parseInstant(String(givenUp.facts?.['at'])) };
          if (failure) return BY_THE_LINK.includes(failure.code) ? 'never' : undefined;
          const starts = outcomes.flatMap(({ change, reservation }) =>
            change.action === 'create' && reservation ? [periodOf(reservation).start] : [],
          );
          return Math.min(...starts);
        },
        async () => undefined,
      ),
  };
}

/** The outcomes in the order of the file, and the failure of all, where one was refused. */
interface Attempted {
  outcomes: ChangeOutcome[];
  failure?: Failure;
}

/** Sends changes together. @throws Failure that is about no single change */
async function attempt(
  changes: readonly PlannedChange[],
  how: ChangeOptions,
  sending: Pick<ApplierOptions, 'now' | 'expiry' | 'all'>,
  send: (items: readonly ChangeItem[]) => Promise<readonly ({ reservation: Reservation } | null)[]>,
): Promise<Attempted> {
  const sent = inOrder(changes);
  const items = sent.map((change) => itemOf(change, sending));
  const outcomesOf = (one: (at: number) => Omit<ChangeOutcome, 'change'>): ChangeOutcome[] =>
    changes.map((change) => ({ change, ...one(sent.indexOf(change)) }));
  try {
    const results = await send(items);
    const outcomes = outcomesOf((at) => ({
      reservation: results[at]?.reservation ?? null,
      failure: undefined,
    }));
    return { outcomes };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const refused = isBatch(items, how) ? refusedItems(error) : refusedAlone(error);
    if (refused.size === 0) throw error;
    const { all = changes } = sending;
    const placeOf = (item: number): number => {
      const change = sent[item];
      return change ? all.indexOf(change) : item;
    };
    const told = (failure: Failure): Failure => withItems(failure, placeOf);
    const outcomes = outcomesOf((at) => {
      const failure = refused.get(at);
      return { reservation: null, failure: failure && told(failure) };
    });
    return { outcomes, failure: told(error) };
  }
}

/** The same failure, in which each item has another index. @param place by its index in the request */
function withItems(failure: Failure, place: (item: number) => number): Failure {
  const placed = <Fact extends { item?: number }>(facts: readonly Fact[] | undefined): Fact[] | undefined =>
    facts?.map((fact) => (fact.item === undefined ? fact : { ...fact, item: place(fact.item) }));
  const { details, limits, free, alternatives } = failure.facts;
  return failure.with({
    details: placed(details),
    limits: placed(limits),
    free: placed(free),
    alternatives: placed(alternatives),
  });
}

function itemOf(change: PlannedChange, sending: Pick<ApplierOptions, 'now' | 'expiry'>): ChangeItem {
  if (change.action === 'create') return { action: 'create', request: requestFor(change, sending) };
  const { id } = change.current;
  // As {@link asUpdate}: the name is that by which it was found.
  if (change.action === 'update') {
    return { action: 'update', id, request: { ...change.request, name: undefined } };
  }
  return { action: 'delete', id };
}

/** The request that a creation sends. */
export function requestFor(
  { wanted }: Creation,
  { now, expiry }: Pick<ApplierOptions, 'now' | 'expiry'>,
): ReservationRequest {
  const { start, end, length } = wanted;
  const lasting = start === 'now' ? length : undefined;
  return { ...requestOf(wanted), ...periodToSend({ start, end, lasting }, now(), expiry) };
}

/** The request of a change; null for a deletion. */
export function requestedBy(change: PlannedChange): ReservationRequest | null {
  if (change.action === 'delete') return null;
  return change.action === 'update' ? change.request : requestOf(change.wanted);
}

/** The request that a reservation of a file stands for. */
function requestOf({ length: _length, place: _place, ...request }: WantedReservation): ReservationRequest {
  return request;
}

/** Whether a service has decided that a change can't be. Any other failure says nothing about the change. */
function isRefusal(error: unknown): error is Failure {
  return error instanceof Failure && EXIT_CODE_OF[error.code] === 6;
}

/** Whether the address is not there. A reservation that is not there is named by its item. */
function lacksRoute(error: unknown): boolean {
  const isAboutItem = error instanceof NotApplied;
  return !isAboutItem && isMissing(error) && !error.facts.details?.some(({ item }) => item !== undefined);
}

/** Whether all is one update or deletion, which needs no batch. A creation may have been asked for before, under a key. */
function isAlone(changes: readonly PlannedChange[], earliest: boolean): boolean {
  return !earliest && changes.length === 1 && changes[0]?.action !== 'create';
}

/** @throws Failure `not_supported` for anything but creations at their own times */
function creationsIn(changes: readonly PlannedChange[], earliest: boolean): Creation[] {
  if (earliest) {
    throw lacksBatches('--earliest moves all creations together.', { earliest: undefined });
  }
  return changes.map((change) => {
    if (change.action === 'create') return change;
    throw lacksBatches(
      `The file needs several changes, of which one would ${change.action} ${change.name}: they are made together or not at all.`,
      ownCommand(change.action, change.name, '--help'),
    );
  });
}

function lacksBatches(why: string, fix: FailureFacts['fix']): Failure {
  return new Failure('not_supported', "This service can't make several changes together.", {
    why: `${why} Nothing was changed.`,
    fix,
  });
}

/** Sorts changes so that bandwidth is released before more is needed: each change of a batch sees the changes before it. */
function inOrder(changes: readonly PlannedChange[]): PlannedChange[] {
  const rank = (change: PlannedChange): number => {
    if (change.action === 'delete') return 0;
    if (change.action === 'create') return 3;
    return change.action === 'update' && isGrowing(change) ? 2 : 1;
  };
  return changes.toSorted((one, other) => rank(one) - rank(other));
}

/** Whether an update gives up anything that the reservation has: it becomes shorter or narrower, or moves. */
export function isLosing({ current, request }: PlannedChange & { action: 'update' }): boolean {
  const before = asRequest(current);
  const isLater = request.start !== 'now' && request.start > before.start;
  return (request.bandwidth ?? 0) < before.bandwidth || isLater || request.end < before.end;
}

/** Whether an update needs anything that the reservation does not have. */
function isGrowing({ current, request }: PlannedChange & { action: 'update' }): boolean {
  const before = asRequest(current);
  const isEarlier = request.start !== 'now' && request.start < before.start;
  return (request.bandwidth ?? 0) > before.bandwidth || isEarlier || request.end > before.end;
}

/** The refusal of a change that was sent alone. A service that may answer otherwise later has not decided on it. */
function refusedAlone(failure: Failure): Map<number, Failure> {
  const { httpStatus, maybeDone, retryable } = failure.facts;
  return new Map(httpStatus === undefined || maybeDone || retryable ? [] : [[0, failure]]);
}

/** The failures of the items of a refused batch, by their index. */
function refusedItems({ code, facts }: Failure): Map<number, Failure> {
  const { details = [], limits, free, alternatives, httpStatus } = facts;
  const failures = new Map<number, Failure>();
  for (const [item, said] of Map.groupBy(details, (detail) => detail.item)) {
    if (item === undefined) continue;
    const isFirst = failures.size === 0;
    const [location] = said.flatMap(({ loc }) => loc);
    const ofItem = <Fact extends { item?: number }>(known: readonly Fact[] = []): Fact[] | undefined => {
      const found = known.filter((fact) => fact.item === item || (isFirst && fact.item === undefined));
      return found.length > 0 ? found : undefined;
    };
    const more = { limits: ofItem(limits), free: ofItem(free), alternatives: ofItem(alternatives) };
    const named = said[0]?.code;
    const own = isProblemCode(named) ? named : isFirst ? code : codeAt(location, code);
    failures.set(item, refusedBy(own, said, { httpStatus, ...more }));
  }
  return failures;
}

/** The code of a refusal by the place that it names; see `replyFailure`. */
function codeAt(location: string | number | undefined, otherwise: Failure['code']): Failure['code'] {
  const codes: Readonly<Record<string, Failure['code']>> = CODE_OF_LOCATION;
  return codes[String(location)] ?? otherwise;
}
