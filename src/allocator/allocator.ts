import type { Link } from '../contract/links.ts';
import {
  type Amendment,
  type AmendmentOutcome,
  type AmendmentTerms,
  amendmentQuestion,
} from './amendment.ts';
import { type BookingRequest, type BookingTerms, bookingQuestion, keyedBookingQuestion } from './booking.ts';
import { type CancellationTerms, cancellationQuestion } from './cancellation.ts';
import { LinkQueue } from './link-queue.ts';
import { linkId, type Network } from './network.ts';
import type { AllocatorObserver } from './observer.ts';
import type { Outcome } from './outcome.ts';
import type { Question } from './question.ts';
import { type KeyedRequest, type Repetition, repetitionOf } from './repetition.ts';
import { CommitUnknownError, type ReservationStore, StoreUnavailableError } from './store.ts';

/** What an allocator needs. */
export interface AllocatorOptions {
  network: Network;
  store: ReservationStore;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Makes a reservation's id. */
  newId: () => string;
  /**
   * How much of a link one experiment may have at any instant, in percent of its bandwidth and of the tags at each
   * place, 1 to 100 (HOSTILE.md 59). Default: all of it.
   */
  maxShare?: number | undefined;
  /**
   * How many reservations that have not ended one experiment may have, on all links. Default: any number. Every
   * allocator on a database is given the same.
   */
  maxLive?: number | undefined;
  /**
   * Resolves when those who ask at this moment have asked, so that they are decided on together. Default: when the event
   * loop has been round once.
   */
  gather?: () => Promise<void>;
  observe?: AllocatorObserver | undefined;
}

/**
 * Decides on reservations, one link at a time (DESIGN.md, "Allocator").
 *
 * Every decision happens inside the transaction that records it; see {@link LinkQueue}. So any number of allocators on
 * one database agree, and a crash leaves nothing behind.
 */
export class Allocator {
  readonly #options: AllocatorOptions;
  readonly #queues = new Map<string, LinkQueue>();

  /** @throws RangeError for a limit out of its bounds */
  constructor(options: AllocatorOptions) {
    const { maxShare = 100, maxLive = 1 } = options;
    if (!Number.isInteger(maxShare) || maxShare < 1 || maxShare > 100) {
      throw new RangeError('maxShare is a whole number from 1 to 100');
    }
    if (!Number.isSafeInteger(maxLive) || maxLive < 1) {
      throw new RangeError('maxLive is a whole number, 1 or more');
    }
    this.#options = options;
  }

  /**
   * Books a link.
   *
   * @param dryRun decide and answer, and leave nothing behind
   * @throws RangeError when the sites are not connected: the caller checks first
   * @throws StoreUnavailableError when the database is away; then nothing was booked
   * @throws CommitUnknownError when it was lost at the very end
   */
  async book(request: BookingRequest, dryRun = false): Promise<Outcome> {
    return this.#book(request, dryRun, bookingQuestion);
  }

  /**
   * Books a link under a key, once: a repeat within `KEY_LIFETIME` gets what the first request got, whichever process it
   * reaches. Only what was booked is remembered; a refused request may be tried again under its key.
   *
   * @throws as {@link book} does
   */
  async bookOnce(request: BookingRequest & KeyedRequest): Promise<Outcome | Repetition> {
    return this.#book(request, false, keyedBookingQuestion);
  }

  /**
   * What a request's key stands for already. {@link bookOnce} looks again under the link's lock; this is for those
   * who must know before they hold the request against rules that it may not keep to any more.
   *
   * @returns undefined when the key is free
   */
  async repeated(request: KeyedRequest): Promise<Repetition | undefined> {
    const { store, now } = this.#options;
    const earlier = await store.recall(request, now());
    return earlier && repetitionOf(earlier, request, await store.find(earlier.reservation));
  }

  /**
   * Changes a reservation: releases it and decides anew, in one transaction. What can't be met changes nothing; the
   * tags stay when they can.
   *
   * @returns undefined when there is no such reservation any more
   */
  async amend<Fault>(
    id: string,
    amendment: Amendment,
    terms: AmendmentTerms<Fault>,
  ): Promise<AmendmentOutcome<Fault> | undefined> {
    const found = await this.#options.store.find(id);
    if (!found) return undefined;
    const link = this.#link(found.link);
    const asked = this.#queue(found.link).ask(amendmentQuestion({ link, found, amendment }, terms));
    return terms.dryRun ? rehearsed(asked) : asked;
  }

  /** Deletes a reservation; its tags and bandwidth are free again at once. @returns whether there was one */
  async cancel(id: string, terms: CancellationTerms): Promise<boolean> {
    const found = await this.#options.store.find(id);
    return found ? this.#queue(found.link).ask(cancellationQuestion(id, terms)) : false;
  }

  #book<Request extends BookingRequest, Answer>(
    request: Request,
    dryRun: boolean,
    question: (request: Request, terms: BookingTerms) => Question<Answer>,
  ): Promise<Answer> {
    const id = linkId(request.site1, request.site2);
    const { newId, maxLive } = this.#options;
    const terms = { link: this.#link(id), newId, dryRun, ...(maxLive === undefined ? {} : { maxLive }) };
    const asked = this.#queue(id).ask(question(request, terms));
    return dryRun ? rehearsed(asked) : asked;
  }

  #link(id: string): Link {
    const link = this.#options.network.byId(id);
    if (!link) throw new RangeError(`there is no link ${id}`);
    return link;
  }

  #queue(id: string): LinkQueue {
    const known = this.#queues.get(id);
    if (known) return known;
    const { network, store, now, gather = roundOfTheLoop, observe, maxShare } = this.#options;
    const queue = new LinkQueue({
      id,
      link: network.byId(id),
      store,
      now,
      gather,
      observe,
      share: maxShare,
    });
    this.#queues.set(id, queue);
    return queue;
  }
}

/** A dry run leaves nothing behind, whatever becomes of its commit. @throws StoreUnavailableError */
async function rehearsed<Answer>(asked: Promise<Answer>): Promise<Answer> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof CommitUnknownError)) throw error;
    throw new StoreUnavailableError("The database can't be reached.", { cause: error.cause });
  }
}

/** Every request that has arrived is read before the event loop comes round. */
function roundOfTheLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
