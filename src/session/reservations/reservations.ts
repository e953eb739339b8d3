import { type ChangeOptions, type ChangeResults, isBatch } from '../../client/changes.ts';
import type { ConnectivityClient } from '../../client/connectivity.ts';
import { differenceFrom, type ProofOptions, type ProvenReservation } from '../../client/proof.ts';
import { formatDuration } from '../../contract/durations.ts';
import {
  Failure,
  type FailureFacts,
  failureOrThrow,
  isGone,
  mayBeRepeated,
  undefinedIfGone,
} from '../../contract/failure.ts';
import { isWithin } from '../../contract/instants.ts';
import { KEY_KEPT } from '../../contract/request-limits.ts';
import type { Reservation } from '../../contract/reservation.ts';
import {
  type ChangeItem,
  checkItems,
  isSameRequest,
  type ReservationRequest,
} from '../../contract/reservation-request.ts';
import { inOneText } from '../../contract/said.ts';
import { claimedActor } from '../../tokens/claimed.ts';
import type { ExperimentAccess } from '../login/experiment-access.ts';
import {
  ARRIVAL_LIMIT_MS,
  type JoinedList,
  joinLedger,
  type ListedReservation,
  ledgerState,
} from './joined-list.ts';
import type { AttemptName, Ledger, LedgerEntry } from './ledger.ts';

/** The needs of {@link Reservations}. */
interface ReservationsOptions {
  connectivity: ConnectivityClient;
  ledger: () => Promise<Ledger>;
  /** The experiment and its token; fetched before anything is written to the ledger. */
  access: () => Promise<ExperimentAccess>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Makes an `Idempotency-Key`. */
  newKey: () => string;
  /** Waits so many milliseconds. */
  sleep: (milliseconds: number) => Promise<void>;
  /** Takes a line about progress. */
  notice: (text: string) => void;
}

/** How changes are made under the ledger. */
interface LedgerChangeOptions extends ProofOptions {
  /** Of one create: the person's own key. The same command can be run again with it, and creates once. */
  idempotencyKey?: string;
  /** The words in which the times were typed: the same words under the same key mean the times of the first command. */
  typedTimes?: string;
  /** Of one deletion: the reservation as it was, so that this machine can tell later what it deleted. */
  before?: Reservation;
  /** Move all creates later by the smallest common offset at which everything fits. Default false. */
  earliest?: boolean;
}

/** Changes on their way, each with its name in the ledger. */
interface Attempt {
  items: readonly { item: ChangeItem; name: AttemptName }[];
  options: ChangeOptions & { idempotencyKey: string };
  /** See {@link LedgerChangeOptions}. */
  before?: Reservation;
}

type Results = (ProvenReservation | null)[];

/** Pauses before changes are sent again under their idempotency key, in milliseconds. */
const RESEND_PAUSES_MS = [500, 2000];
/** A deletion needs no key, and is sent again at once: a second one finds nothing to delete. */
const DELETE_PAUSES_MS = [0];
/** How many reservations are asked for at the same time. */
const AT_ONCE = 8;

/**
 * Reservations that are never lost: each change is in the ledger before it leaves this machine, and its outcome after
 * (cli/README.md, "Files"; THREATS.md 12). Every method throws Failure.
 */
export class Reservations {
  readonly #options: ReservationsOptions;

  constructor(options: ReservationsOptions) {
    this.#options = options;
  }

  /**
   * Makes changes, all or none; see `ConnectivityClient.change`. When the answer got lost, the outcome is found out:
   *
   * | changes | are sent again | then the outcome shows in |
   * |---|---|---|
   * | one create | under its key, where the service honours `Idempotency-Key` | the service's list |
   * | one update | never | the reservation |
   * | one deletion | once, which is safe | the reservation, which is gone |
   * | several | under their key | list and reservations: all of them, or none |
   *
   * After a crash the ledger has every item; the service's list says which were made.
   *
   * @returns for each item, in their order, what it leaves behind; null for a deletion
   * @throws Failure with `maybeDone` when it is unknown whether the changes were made
   */
  async change<const Items extends readonly ChangeItem[]>(
    items: Items,
    options?: LedgerChangeOptions,
  ): Promise<ChangeResults<Items>>;
  async change(items: readonly ChangeItem[], options: LedgerChangeOptions = {}): Promise<unknown> {
    checkItems(items, options);
    const { typedTimes, before, ...sent } = options;
    const { now, newKey } = this.#options;
    const { id: experiment = '' } = await this.#options.access();
    const idempotencyKey = sent.idempotencyKey ?? newKey();
    const isAlone = items.length === 1;
    const attempt: Attempt = {
      items: items.map((item, index) => {
        const key = isAlone ? idempotencyKey : `${idempotencyKey}/${index + 1}`;
        return { item, name: { experiment, key } };
      }),
      options: { ...sent, idempotencyKey, firstSentAt: now() },
      before,
    };
    const ledger = await this.#options.ledger();
    const begin = async (): Promise<Results> => {
      await ledger.together(async (kept) => {
        for (const { item, name } of attempt.items) await kept.begin(item, name, now(), typedTimes);
      });
      return this.#send(attempt);
    };
    const [earlier] =
      sent.idempotencyKey === undefined ? [] : await ledger.entries({ experiment, key: idempotencyKey });
    if (!earlier || earlier.outcome === 'refused') return begin();
    const [only] = items;
    const again = only?.action === 'create' && { request: only.request, at: now(), typedTimes };
    const { requested, beganAt } = earlier;
    const first = requested && { request: requested, at: beganAt, typedTimes: earlier.typedTimes };
    if (!again || !first || !isSameRequest(first, again)) {
      throw keyReused(`The key ${idempotencyKey} was used for another reservation.`);
    }
    return [await this.#repeat({ ...earlier, requested: first.request }, attempt, begin)];
  }

  /**
   * The failure of a command before its request was sent: where the outcome of an earlier one under its key is unknown, that may
   * have taken effect.
   */
  async sinceAsked(key: string, error: unknown): Promise<unknown> {
    if (!(error instanceof Failure)) return error;
    const earlier = await this.#record((ledger) => ledger.entries({ key }));
    const isUnknown = earlier?.some(({ asked, outcome }) => asked === 'reserve' && outcome === 'unknown');
    return isUnknown ? mayBeDone(error, key) : error;
  }

  /** Shows a reservation, and records the answer in the ledger. */
  async show(id: string, options: ProofOptions = {}): Promise<ProvenReservation> {
    const { connectivity } = this.#options;
    try {
      const proven = await connectivity.show(id, options);
      await this.#record((ledger) => ledger.observed(proven));
      return proven;
    } catch (error) {
      if (isGone(error)) await this.#record((ledger) => ledger.deleted(id));
      throw error;
    }
  }

  /**
   * The experiment's reservations: the service's list, where it has one, joined with the ledger. The ledger is updated from
   * the list.
   *
   * @param filter `current`: leaves out reservations that are known to have ended or to be deleted, and does not read them
   *   (THREATS.md 66)
   * @throws Failure when the service's list can't be fetched
   */
  async list({ current = false } = {}): Promise<JoinedList> {
    const { connectivity, now } = this.#options;
    const { id: experiment = '' } = await this.#options.access();
    const entriesOf = async (filter: { now?: number }): Promise<LedgerEntry[]> =>
      (await this.#record((ledger) => ledger.entries({ experiment, ...filter }))) ?? [];
    if (current) {
      const entries = await entriesOf({ now: now() });
      const scheduled = await connectivity.list('scheduled');
      if (!scheduled) return this.#askedEach(entries);
      // A reservation that starts between the two requests is in both lists.
      const active = (await connectivity.list('active')) ?? [];
      const service = new Map([...scheduled, ...active].map((reservation) => [reservation.id, reservation]));
      // The outcome of an attempt shows only in the whole list.
      if (entries.every(({ id }) => id !== undefined && service.has(id))) {
        const known = new Set(entries.map(({ id }) => id));
        const others = [...service.keys()].filter((id) => !known.has(id));
        // In the ledger a reservation may have ended that another user has extended.
        const past =
          (await this.#record((ledger) => Promise.all(others.map((id) => ledger.about(id))))) ?? [];
        return this.#join(
          [...service.values()],
          [...entries, ...past.filter((entry) => entry !== undefined)],
        );
      }
    }
    // Read before the list: a reservation that is booked in between must not seem to be missing from the list.
    const entries = await entriesOf({});
    const service = await connectivity.list();
    return service ? this.#join(service, entries) : this.#askedEach(entries);
  }

  async #join(service: readonly Reservation[], entries: readonly LedgerEntry[]): Promise<JoinedList> {
    const { items, settlements } = joinLedger(service, entries, this.#options.now(), await this.#user());
    for (const { entry, reservation } of settlements) {
      await this.#record(async (ledger) => {
        if (reservation && entry.id === undefined) await ledger.booked(entry, { reservation, token: null });
        else if (reservation) await ledger.observed({ reservation, token: null });
        else if (entry.id !== undefined) await ledger.deleted(entry.id);
        else await ledger.refused(entry);
      });
    }
    return { items, hasList: true, unasked: new Map() };
  }

  /** The ledger's reservations, as the service has each of them that may have a future. */
  async #askedEach(entries: readonly LedgerEntry[]): Promise<JoinedList> {
    const { now } = this.#options;
    const known = new Map<LedgerEntry, LedgerEntry>();
    const unasked = new Map<string, Failure>();
    const left = entries
      .filter((entry) => entry.outcome !== 'deleted' && ledgerState(entry, now()) !== 'ended')
      .values();
    const askInTurn = async (): Promise<void> => {
      for (const entry of left) {
        const { id } = entry;
        if (id === undefined) continue;
        const found = await this.show(id, { allowUnsigned: true }).catch(failureOrThrow);
        if (!(found instanceof Failure)) {
          known.set(entry, { ...entry, outcome: 'booked', pending: null, reservation: found.reservation });
        } else if (isGone(found)) known.set(entry, { ...entry, outcome: 'deleted' });
        else unasked.set(id, found);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, askInTurn));
    const asked = new Set([...known.values()].map(({ id }) => id));
    const told = entries.map((entry) => known.get(entry) ?? entry);
    const items = joinLedger(undefined, told, now()).items.map(
      (item): ListedReservation =>
        item.id !== null && asked.has(item.id) ? { ...item, source: 'service' } : item,
    );
    return { items, hasList: false, unasked };
  }

  /** The user whose reservations they are, where that is known. */
  async #user(): Promise<string | undefined> {
    return claimedActor((await this.#options.access()).token.reveal());
  }

  /**
   * Sends changes, and finds out what became of a lost answer.
   *
   * @param earlier the key of an earlier request for the same, whose outcome is not known
   */
  async #send(attempt: Attempt, earlier?: string): Promise<Results> {
    try {
      return await this.#sendOnce(attempt);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const { maybeDone = false } = error.facts;
      if (maybeDone && !idsIn(error)) return this.#recover(attempt, error);
      // Only a decision says that an earlier request under this key was not met.
      if (!maybeDone && earlier !== undefined && !isDecision(error)) {
        throw mayBeDone(error, earlier);
      }
      throw await this.#failed(attempt, error);
    }
  }

  /** Sends changes, and records answers that verify. */
  async #sendOnce(attempt: Attempt): Promise<Results> {
    const items = attempt.items.map(({ item }) => item);
    return this.#made(attempt, await this.#options.connectivity.change(items, attempt.options));
  }

  /** Finds the outcome of changes whose answer got lost. */
  async #recover(attempt: Attempt, lost: Failure): Promise<Results> {
    const { connectivity, notice, sleep } = this.#options;
    const { items } = attempt;
    const creates = items.filter(({ item }) => item.action === 'create');
    const can = creates.length > 0 ? await connectivity.features().catch(() => undefined) : undefined;
    const isDeletion = items.length === 1 && items[0]?.item.action === 'delete';
    // A service that answered wrongly would answer wrongly again.
    const isWrong = lost.code === 'reply_invalid' || lost.code === 'unverified';
    const changes = items.map(({ item }) => item);
    const isKeyed = isBatch(changes, attempt.options) || can?.idempotencyKey === true;
    const pauses = isWrong ? [] : isDeletion ? DELETE_PAUSES_MS : isKeyed ? RESEND_PAUSES_MS : [];
    if (pauses.length > 0 && !isDeletion) {
      notice(
        'The answer got lost. Sending the request again under the same idempotency key, so it is not made twice.',
      );
    }
    for (const pause of pauses) {
      if (pause > 0) await sleep(pause);
      try {
        return await this.#sendOnce(attempt);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        if (isDeletion && isGone(error)) return this.#made(attempt, [null]);
        // The service knows the key, and has nothing under it: so it decides as about any other request.
        if (idsIn(error) || isDecision(error)) throw await this.#failed(attempt, error);
        if (!mayBeRepeated(error)) break;
      }
    }
    // Another reservation may look like a create without a name; the next request under its key tells them apart.
    const isFindable =
      pauses.length === 0 ||
      creates.every(({ item }) => 'request' in item && item.request.name !== undefined);
    const found =
      isFindable && (creates.length === 0 || can?.list)
        ? await this.#look(attempt).catch(() => undefined)
        : undefined;
    if (found) return this.#made(attempt, found);
    throw inDoubt(lost, whereToLook(attempt));
  }

  /**
   * The results of changes, where the service shows that all of them were made; else undefined. Then the ledger stays as it
   * is: the changes may still arrive, as a whole.
   */
  async #look({ items, options }: Attempt): Promise<Results | undefined> {
    const { connectivity } = this.#options;
    const ids = items.some(({ item }) => item.action === 'create') ? await this.#idsByKey(items) : undefined;
    const results: Results = [];
    for (const { item, name } of items) {
      const id = item.action === 'create' ? ids?.get(name.key) : item.id;
      const found =
        id === undefined ? undefined : await connectivity.show(id, options).catch(undefinedIfGone);
      const isMade =
        item.action === 'delete'
          ? !found
          : found &&
            (item.action === 'create' || !differenceFrom(found.reservation, { request: item.request }));
      if (!isMade) return undefined;
      results.push(found ?? null);
    }
    return results;
  }

  /** The ids of the reservations that attempts have made, as the service's list shows them, by the attempts' keys. */
  async #idsByKey([first]: Attempt['items']): Promise<Map<string, string>> {
    const { connectivity, now } = this.#options;
    const entries = await (await this.#options.ledger()).entries({
      experiment: first?.name.experiment ?? '',
    });
    const { items } = joinLedger((await connectivity.list()) ?? [], entries, now(), await this.#user());
    return new Map(
      items.flatMap(({ entry, id, source }) =>
        source === 'service' && entry && id !== null ? [[entry.key, id]] : [],
      ),
    );
  }

  /** Records what changes have made: a result for each. */
  async #made({ items, before }: Attempt, results: Results): Promise<Results> {
    await this.#record((ledger) =>
      ledger.together(async (kept) => {
        for (const [index, { item, name }] of items.entries()) {
          const proven = results[index];
          if (item.action === 'delete') await kept.deleted(item.id, before);
          else if (proven && item.action === 'create') await kept.booked(name, proven);
          else if (proven) await kept.observed(proven, item.request.name);
        }
      }),
    );
    return results;
  }

  /** Records what a failure says of changes. @returns the failure to report */
  async #failed(attempt: Attempt, failure: Failure): Promise<Failure> {
    const { items } = attempt;
    const { maybeDone = false, fix } = failure.facts;
    const ids = idsIn(failure) ?? [];
    const hasNone = items.length === 1 && isGone(failure);
    await this.#record((ledger) =>
      ledger.together(async (kept) => {
        for (const [index, { item, name }] of items.entries()) {
          const id = ids[index];
          if (item.action === 'create') {
            if (maybeDone && id) await kept.named(name, id);
            else if (!maybeDone) await kept.refused(name);
          } else if (!maybeDone) {
            await kept.changeRefused(item.id);
            if (hasNone) await kept.deleted(item.id);
          }
        }
      }),
    );
    return maybeDone ? inDoubt(failure, { fix: fix ?? whereToLook(attempt, ids).fix }) : failure;
  }

  /**
   * The same command as before, under the same key of the person.
   *
   * @param begin makes the changes as if they were asked for first now
   */
  async #repeat(
    before: LedgerEntry & { requested: ReservationRequest },
    { options }: Attempt,
    begin: () => Promise<Results>,
  ): Promise<ProvenReservation | null> {
    const { connectivity, now } = this.#options;
    const { experiment, key, requested, beganAt } = before;
    const deleted = keyReused(`The reservation under the key ${key} was deleted.`);
    if (before.outcome === 'deleted' && before.asked === 'delete') throw deleted;
    const shown =
      before.id === undefined ? undefined : await this.show(before.id, options).catch(undefinedIfGone);
    if (shown) return shown;
    const can = await connectivity.features().catch((error: unknown) => {
      if (before.id === undefined && error instanceof Failure && error.facts.retryable)
        throw mayBeDone(error, key);
      return undefined;
    });
    const isKept = can?.idempotencyKey === true && isWithin(beganAt, KEY_KEPT, now());
    if (before.id !== undefined) {
      // A service that knows the key says that its reservation was deleted. One whose data was restored from before the
      // reservation knows neither: it books again.
      if (before.asked === 'delete' || !isKept) throw deleted;
      return begin().then(only, async (error: unknown) => {
        if (!(error instanceof Failure) || error.code !== deleted.code) throw error;
        await this.#record((ledger) => ledger.deleted(before.id ?? ''));
        throw deleted;
      });
    }
    // As it was sent then: to the service, the same request.
    const attempt: Attempt = {
      items: [{ item: { action: 'create', request: requested }, name: { experiment, key } }],
      options: { ...options, firstSentAt: beganAt },
    };
    if (isKept) return only(await this.#send(attempt, key));
    const found = can?.list ? await this.#look(attempt) : undefined;
    if (found) return only(await this.#made(attempt, found));
    // Without a list, `list` would lead back here.
    throw new Failure('network', `The outcome of the request under the key ${key} is not known.`, {
      why: can?.list
        ? `Its answer got lost, and the service's list does not show it yet. What is not there ${formatDuration(ARRIVAL_LIMIT_MS)} after it was sent was never made.`
        : "Its answer got lost, and this service can't look it up. Ask its operators whether the link is booked. Under another key it is booked anew, perhaps a second time.",
      fix: can?.list ? 'slices-conn list' : undefined,
      maybeDone: true,
    });
  }

  /** Works with the ledger. An unusable ledger is only a warning: the service has answered already. */
  async #record<Answer>(work: (ledger: Ledger) => Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await work(await this.#options.ledger());
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.#options.notice(`warning: ${error.message} ${error.facts.why ?? ''}`.trimEnd());
      return undefined;
    }
  }
}

const only = ([result = null]: Results): ProvenReservation | null => result;

/** The ids of reservations that exist, or may exist, in spite of a failure: one for each item. */
function idsIn({ facts }: Failure): readonly (string | null)[] | undefined {
  if (facts.isOther) return undefined;
  return facts.reservations ?? (facts.reservation === undefined ? undefined : [facts.reservation]);
}

/** The command that shows what became of changes. @param ids of created reservations, where they are known */
function whereToLook({ items }: Attempt, ids: readonly (string | null)[] = []): FailureFacts {
  const [first, another] = items;
  const id = another || !first ? null : first.item.action === 'create' ? ids[0] : first.item.id;
  if (id == null) return { fix: 'slices-conn list' };
  return { reservation: id, fix: `slices-conn show ${id}` };
}

/** Whether the service decided about the link. Refusals before that say nothing about an idempotency key. */
function isDecision({ code, facts }: Failure): boolean {
  return code === 'name_taken' || facts.details?.some(({ loc }) => loc.length > 0) === true;
}

/** The failure of a change that may have taken effect: to be looked for before it is asked for again (THREATS.md 43). */
function inDoubt(failure: Failure, facts: FailureFacts = {}): Failure {
  return failure.with({ ...facts, maybeDone: true, retryable: false });
}

/**
 * The failure of a repeated request, where the earlier one may have succeeded. Under the key it can be repeated once more:
 * it is not made twice.
 */
function mayBeDone(failure: Failure, key: string): Failure {
  const said = `An earlier request under the key ${key} may have taken effect. The same command under this key tells whether.`;
  const { why, fix = 'slices-conn list' } = failure.facts;
  return failure.with({ why: inOneText(why, said), fix, maybeDone: true });
}

function keyReused(message: string): Failure {
  return new Failure('idempotency_key_reused', message, { why: 'Use another key to book anew.' });
}
