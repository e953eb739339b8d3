import { type BatchItem, type BatchOptions, wantedBy } from '../../client/batch.ts';
import type { ConnectivityClient } from '../../client/connectivity.ts';
import type { ServiceFeatures } from '../../client/features.ts';
import type { ProofOptions, ProvenReservation, ReserveOptions } from '../../client/proof.ts';
import { HOUR } from '../../contract/durations.ts';
import { Failure, type FailureFacts } from '../../contract/failure.ts';
import { isWithin } from '../../contract/instants.ts';
import type { Reservation } from '../../contract/reservation.ts';
import {
  asReservation,
  isSameRequest,
  meets,
  type Requested,
  type ReservationChange,
  type ReservationRequest,
  requestedOf,
  updated,
} from '../../contract/reservation-request.ts';
import type { ExperimentAccess } from '../login/experiment-access.ts';
import { type JoinedList, type LedgerWork, listCurrent, listJoined } from './joined-list.ts';
import type { AttemptName, Ledger, LedgerEntry } from './ledger.ts';

/** What {@link Reservations} needs. */
export interface ReservationsOptions {
  connectivity: ConnectivityClient;
  ledger: () => Promise<Ledger>;
  /** The experiment and its token; fetched before anything is written to the ledger. */
  access: () => Promise<ExperimentAccess>;
  /** What the service can do beyond the spec. */
  features: () => Promise<ServiceFeatures>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Makes an `Idempotency-Key`. */
  newKey: () => string;
  /** Waits so many milliseconds. */
  sleep: (milliseconds: number) => Promise<void>;
  /** Takes a line about progress. */
  notice: (text: string) => void;
}

/** How a reservation is created under the ledger. */
export interface CreateOptions extends ReserveOptions {
  /** The words in which the times were typed: the same words under the same key mean the times of the first command. */
  typedTimes?: string;
}

/** How changes are made together; see `ConnectivityClient.batch`. The key is made here. */
export type ApplyOptions = Pick<BatchOptions, 'earliest' | 'allowUnsigned'>;

/** A batch on its way. */
interface SentBatch {
  key: string;
  /** Each with its name in the ledger. */
  items: readonly { item: BatchItem; name: AttemptName }[];
  options: BatchOptions;
}

/** How long a service surely keeps an idempotency key, in milliseconds: a little less than 24 hours (contract/README.md, "Extensions"). */
const KEY_KEPT = 23 * HOUR;
/** Pauses before a request is sent again under its idempotency key, in milliseconds. */
const PAUSES = [500, 2000];

/**
 * Reservations that are never lost: each request is in the ledger before it leaves this machine, and its outcome after
 * (cli/README.md, "Files"; THREATS.md 12). Every method throws Failure.
 */
export class Reservations {
  readonly #options: ReservationsOptions;

  constructor(options: ReservationsOptions) {
    this.#options = options;
  }

  /**
   * Books a link. When the answer got lost, the request is sent again where the service honours `Idempotency-Key`, or the
   * reservation is looked for in the service's list; where it has neither, the outcome stays unknown.
   *
   * @param options with a key of the person's own, the same command can be run again and books once
   * @throws Failure with `maybeDone` when it is unknown whether the reservation was created
   */
  async create(
    reservation: ReservationRequest,
    { typedTimes, ...options }: CreateOptions = {},
  ): Promise<ProvenReservation> {
    const { now, newKey } = this.#options;
    const { idempotencyKey } = options;
    const name: AttemptName = { experiment: await this.#experiment(), key: idempotencyKey ?? newKey() };
    const requested = requestedOf(reservation);
    const ledger = await this.#options.ledger();
    const before = idempotencyKey === undefined ? undefined : await ledger.find(name);
    const send = async (): Promise<ProvenReservation> => {
      await ledger.begin(name, requested, now(), typedTimes);
      return this.#send(name, reservation, options);
    };
    if (!before || before.outcome === 'refused') return send();
    const isTypedAlike = typedTimes !== undefined && typedTimes === before.typedTimes;
    if (
      !before.requested ||
      !isSameRequest(before.requested, before.beganAt, requested, now(), isTypedAlike)
    ) {
      throw keyReused(`The key ${name.key} was used for another reservation.`);
    }
    return this.#again({ ...before, requested: before.requested }, options, send);
  }

  /** Shows a reservation, and records the answer in the ledger. */
  async show(id: string, options: ProofOptions = {}): Promise<ProvenReservation> {
    const { connectivity } = this.#options;
    try {
      const proven = await connectivity.show(id, options);
      await this.#record((ledger) => ledger.observed(proven));
      return proven;
    } catch (error) {
      if (isNotFound(error)) await this.#record((ledger) => ledger.deleted(id));
      throw error;
    }
  }

  /** Changes a reservation. When the answer got lost, the reservation is read: it says whether it was changed. */
  async update(
    current: Reservation,
    change: ReservationChange,
    options: ProofOptions = {},
  ): Promise<ProvenReservation> {
    const { connectivity, ledger, now, newKey } = this.#options;
    const { id } = current;
    const name = { experiment: await this.#experiment(), key: newKey() };
    await (await ledger()).beginChange(id, name, requestedOf(updated(current, change)), now());
    try {
      const proven = await connectivity.update(current, change, options);
      await this.#record((kept) => kept.observed(proven));
      return proven;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      // The service answered, but its proof does not verify.
      if (error.facts.reservation !== undefined) throw inDoubt(error);
      if (!error.facts.maybeDone) {
        await this.#record((kept) => kept.changeRefused(id));
        throw error;
      }
      const found = await connectivity.show(id, options).catch(() => undefined);
      if (!found || !meets(found.reservation, updated(current, change))) {
        throw inDoubt(error, { reservation: id, fix: `slices-conn show ${id}` });
      }
      await this.#record((kept) => kept.observed(found));
      return found;
    }
  }

  /** Deletes a reservation. When the answer got lost, the request is sent once more, which is safe. */
  async delete(id: string): Promise<void> {
    const { connectivity, ledger, now, newKey } = this.#options;
    const name = { experiment: await this.#experiment(), key: newKey() };
    await (await ledger()).beginChange(id, name, null, now());
    try {
      await connectivity.delete(id).catch(async (error: unknown) => {
        // A service that answered wrongly would answer wrongly again.
        const lost = error instanceof Failure && error.facts.maybeDone && error.code !== 'reply_invalid';
        if (!lost) throw error;
        await connectivity.delete(id).catch((again: unknown) => {
          // The outcome of the first request stays unknown: this failure says nothing about it.
          if (!isNotFound(again)) throw error;
        });
      });
    } catch (error) {
      const refused = error instanceof Failure && !error.facts.maybeDone;
      if (refused) await this.#record((kept) => kept.changeRefused(id));
      if (isNotFound(error)) await this.#record((kept) => kept.deleted(id));
      if (!(error instanceof Failure) || refused) throw error;
      throw inDoubt(error, { reservation: id, fix: `slices-conn show ${id}` });
    }
    await this.#record((kept) => kept.deleted(id));
  }

  /**
   * Makes changes together, all or none, and records each in the ledger before they leave. When the answer got lost, they
   * are sent again under the same idempotency key; then the reservations are looked for by their names.
   *
   * After a crash the ledger has every item; the service's list says which were made: all, or none.
   *
   * @param options without `dryRun`: `ConnectivityClient.batch` does that, and the ledger has nothing to say of it
   * @returns for each item, in their order, what it left behind; null for a deletion
   * @throws Failure as `ConnectivityClient.batch` does; with `maybeDone` when it is unknown whether they were made
   */
  async apply(
    items: readonly BatchItem[],
    options: ApplyOptions = {},
  ): Promise<(ProvenReservation | null)[]> {
    const { connectivity, features, now, newKey } = this.#options;
    const experiment = await this.#experiment();
    // Before the ledger says that anything was asked for.
    if (!(await features()).batch) return connectivity.batch(items, options);
    const key = newKey();
    const batch: SentBatch = {
      key,
      items: items.map((item, index) => ({ item, name: { experiment, key: `${key}/${index + 1}` } })),
      options: { ...options, idempotencyKey: key, firstSentAt: now() },
    };
    await (await this.#options.ledger()).together(async (ledger) => {
      for (const { item, name } of batch.items) await begin(ledger, item, name, now());
    });
    try {
      return await this.#sendTogether(batch);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (error.facts.maybeDone && error.facts.reservations === undefined) {
        return this.#recoverTogether(batch, error);
      }
      throw await this.#failedTogether(batch, error);
    }
  }

  /** The experiment's reservations; see {@link listJoined}. @param filter `current`: without what is past */
  async list({ current = false } = {}): Promise<JoinedList> {
    const { connectivity, now } = this.#options;
    const experiment = await this.#experiment();
    const record: LedgerWork = (work) => this.#record(work);
    return listJoined({ connectivity, experiment, record, now }, current);
  }

  /** Sends a batch once, and records answers that verify. */
  async #sendTogether({ items, options }: SentBatch): Promise<(ProvenReservation | null)[]> {
    const sent = items.map(({ item }) => item);
    const results = await this.#options.connectivity.batch(sent, options);
    await this.#madeTogether(items, results);
    return results;
  }

  /** Records what a batch made: a result for each item. */
  async #madeTogether(
    items: SentBatch['items'],
    results: readonly (ProvenReservation | null)[],
  ): Promise<void> {
    await this.#record((ledger) =>
      ledger.together(async (kept) => {
        for (const [index, { item, name }] of items.entries()) {
          const proven = results[index];
          if (item.action === 'delete') await kept.deleted(item.id);
          else if (proven && item.action === 'create') await kept.booked(name, proven);
          else if (proven) await kept.observed(proven);
        }
      }),
    );
  }

  /** Records what a batch's failure says of its items. */
  async #failedTogether({ items }: SentBatch, failure: Failure): Promise<Failure> {
    const { reservations, maybeDone } = failure.facts;
    await this.#record((ledger) =>
      ledger.together(async (kept) => {
        for (const [index, { item, name }] of items.entries()) {
          const id = reservations?.[index];
          if (maybeDone && item.action === 'create' && id) await kept.named(name, id);
          else if (!maybeDone && item.action === 'create') await kept.refused(name);
          else if (!maybeDone && item.action === 'update') await kept.changeRefused(item.current.id);
          else if (!maybeDone && item.action === 'delete') await kept.changeRefused(item.id);
        }
      }),
    );
    return maybeDone ? inDoubt(failure, { fix: failure.facts.fix ?? 'slices-conn list' }) : failure;
  }

  /** Finds the outcome of a batch whose answer got lost. */
  async #recoverTogether(batch: SentBatch, lost: Failure): Promise<(ProvenReservation | null)[]> {
    const { notice, sleep } = this.#options;
    let last = lost;
    // A service that answered wrongly would answer wrongly again.
    if (lost.code !== 'reply_invalid') {
      notice(
        'The answer got lost. Sending the changes again under the same idempotency key, so they are made once.',
      );
      for (const pause of PAUSES) {
        await sleep(pause);
        try {
          return await this.#sendTogether(batch);
        } catch (error) {
          if (!(error instanceof Failure)) throw error;
          last = error;
          if (error.facts.reservations !== undefined || !isUndecided(error)) break;
        }
      }
      // The service knows the key, and has nothing under it: so it decides as about any other request.
      if (last.facts.reservations !== undefined || isDecision(last))
        throw await this.#failedTogether(batch, last);
    }
    const found = await this.#foundTogether(batch).catch(() => undefined);
    if (found) return found;
    throw inDoubt(lost, { fix: 'slices-conn list' });
  }

  /**
   * What a batch made, where the service's list shows that it was made: by the names of its creates. Where it does not, the
   * ledger stays as it is: the batch may still arrive, as a whole.
   */
  async #foundTogether({ items, options }: SentBatch): Promise<(ProvenReservation | null)[] | undefined> {
    const { connectivity } = this.#options;
    const current = await listCurrent(connectivity);
    if (!current) return undefined;
    const found = items.map(({ item }) => {
      if (item.action === 'delete') return current.has(item.id) ? undefined : null;
      const wanted = wantedBy(item);
      if (item.action === 'create')
        return wanted.name === undefined
          ? undefined
          : [...current.values()].find(({ name }) => name === wanted.name);
      const live = current.get(item.current.id);
      return live && meets(live, wanted) ? live : undefined;
    });
    // All or none: one that is not there says that the others, too, were there before.
    if (found.includes(undefined)) return undefined;
    const results: (ProvenReservation | null)[] = [];
    for (const reservation of found) {
      results.push(reservation ? await connectivity.show(reservation.id, options) : null);
    }
    await this.#madeTogether(items, results);
    return results;
  }

  async #experiment(): Promise<string> {
    return (await this.#options.access()).id ?? '';
  }

  async #send(
    name: AttemptName,
    reservation: ReservationRequest,
    options: ReserveOptions,
    wasUnknown = false,
  ): Promise<ProvenReservation> {
    try {
      return await this.#reserve(name, reservation, options);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const { reservation: id, maybeDone = false } = error.facts;
      if (id !== undefined) {
        await this.#record((ledger) => ledger.named(name, id));
        throw inDoubt(error, { fix: error.facts.fix ?? `slices-conn show ${id}` });
      }
      if (maybeDone) return this.#recover(name, reservation, options, error);
      // Only a decision says that an earlier request under this key was not met.
      if (wasUnknown && !isDecision(error)) throw inDoubt(error, earlier(name, error));
      await this.#record((ledger) => ledger.refused(name));
      throw error;
    }
  }

  /** Sends a request once, and records an answer that verifies. */
  async #reserve(
    name: AttemptName,
    reservation: ReservationRequest,
    options: ReserveOptions,
  ): Promise<ProvenReservation> {
    const { connectivity } = this.#options;
    const proven = await connectivity.reserve(reservation, { ...options, idempotencyKey: name.key });
    await this.#record((ledger) => ledger.booked(name, proven));
    return proven;
  }

  /** Finds the outcome of a request whose answer got lost. */
  async #recover(
    name: AttemptName,
    reservation: ReservationRequest,
    options: ReserveOptions,
    lost: Failure,
  ): Promise<ProvenReservation> {
    const { features, notice, sleep } = this.#options;
    const can = await features().catch(() => undefined);
    let last = lost;
    // A service that answered wrongly would answer wrongly again.
    if (can?.idempotencyKey && lost.code !== 'reply_invalid' && lost.code !== 'unverified') {
      notice(
        'The answer got lost. Sending the request again under the same idempotency key, so it is not booked twice.',
      );
      for (const pause of PAUSES) {
        await sleep(pause);
        try {
          return await this.#reserve(name, reservation, options);
        } catch (error) {
          if (!(error instanceof Failure)) throw error;
          last = error;
          if (error.facts.reservation !== undefined || !isUndecided(error)) break;
        }
      }
      const { reservation: id } = last.facts;
      if (id !== undefined) {
        await this.#record((ledger) => ledger.named(name, id));
        throw inDoubt(last);
      }
      // The service knows the key, and has nothing under it: so it decides as about any other request.
      if (isDecision(last)) {
        await this.#record((ledger) => ledger.refused(name));
        throw last;
      }
    } else if (can?.list) {
      const found = await this.#found(name).catch(() => undefined);
      if (found) return this.show(found.id, options);
    }
    throw inDoubt(lost, { fix: 'slices-conn list' });
  }

  /** The reservation that an attempt made, as the service's list shows it. */
  async #found(name: AttemptName): Promise<Reservation | undefined> {
    const { items } = await this.list();
    const mine = items.find(({ entry, source }) => entry?.key === name.key && source === 'service');
    return mine?.reservation ?? undefined;
  }

  /**
   * The same command as before, under the same key.
   *
   * @param send sends it as if it were the first one
   */
  async #again(
    before: LedgerEntry & { requested: Requested },
    options: ReserveOptions,
    send: () => Promise<ProvenReservation>,
  ): Promise<ProvenReservation> {
    const { features, now } = this.#options;
    const name: AttemptName = before;
    const deleted = keyReused(`The reservation under the key ${name.key} was deleted.`);
    if (before.outcome === 'deleted' && before.asked === 'delete') throw deleted;
    const shown = before.id !== undefined && (await this.show(before.id, options).catch(orGone));
    if (shown) return shown;
    const can = await features().catch(() => undefined);
    const isKept = isWithin(before.beganAt, KEY_KEPT, now());
    if (before.id !== undefined) {
      // A service that knows the key says that its reservation was deleted. One whose data was restored from before the
      // reservation knows neither: it books again.
      if (before.asked === 'delete' || !can?.idempotencyKey || !isKept) throw deleted;
      return send().catch(async (error: unknown) => {
        if (!(error instanceof Failure) || error.code !== deleted.code) throw error;
        await this.#record((ledger) => ledger.deleted(before.id ?? ''));
        throw deleted;
      });
    }
    const reservation = asReservation(before.requested);
    // As it was sent then: to the service, the same request.
    if (can?.idempotencyKey && isKept) {
      return this.#send(name, reservation, { ...options, firstSentAt: before.beganAt }, true);
    }
    const found = can?.list ? await this.#found(name) : undefined;
    if (found) return this.show(found.id, options);
    throw new Failure('network', `The outcome of the request under the key ${name.key} is not known.`, {
      why: "Its answer got lost, and this service can't look it up.",
      maybeDone: true,
      fix: 'slices-conn list',
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

/** Writes down that an item of a batch is about to be asked for. @param now milliseconds */
async function begin(ledger: Ledger, item: BatchItem, name: AttemptName, now: number): Promise<void> {
  if (item.action === 'delete') return ledger.beginChange(item.id, name, null, now);
  const requested = requestedOf(wantedBy(item));
  if (item.action === 'create') return ledger.begin(name, requested, now);
  return ledger.beginChange(item.current.id, name, requested, now);
}

/** Undefined for a reservation that the service does not have. */
function orGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

function isNotFound(error: unknown): boolean {
  return error instanceof Failure && error.code === 'not_found';
}

/** Whether the service decided about the link. Refusals before that say nothing about an idempotency key. */
function isDecision({ code, facts }: Failure): boolean {
  return code === 'name_taken' || facts.details?.some(({ loc }) => loc.length > 0) === true;
}

/** The failure of a change that may have taken effect: to be looked for before it is asked for again (THREATS.md 43). */
function inDoubt(failure: Failure, facts: FailureFacts = {}): Failure {
  return failure.with({ ...facts, maybeDone: true, retryable: false });
}

/** The reason and next step where a repeated request failed, but the earlier one may have succeeded. */
function earlier({ key }: AttemptName, { facts: { why, fix = 'slices-conn list' } }: Failure): FailureFacts {
  const said = `An earlier request under the key ${key} may have taken effect.`;
  return { why: why === undefined ? said : `${why} ${said}`, fix };
}

function isUndecided({ facts }: Failure): boolean {
  return facts.maybeDone === true || facts.retryable === true;
}

function keyReused(message: string): Failure {
  return new Failure('idempotency_key_reused', message, { why: 'Use another key to book anew.' });
}
