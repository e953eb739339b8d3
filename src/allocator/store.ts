import type { Holding } from './calendar.ts';

/** A reservation as it is kept. Times in milliseconds, bandwidth in Mbps; tags by the link's ends, not the request's. */
export interface ReservationRecord extends Holding {
  id: string;
  /** See `linkId`. */
  link: string;
  /** Whether the request named the link's sites the other way round; the reply keeps its order. */
  reversed: boolean;
  experiment: string;
  createdBy: string;
  createdAt: number;
}

/** What became of a reservation: as it stands now, or cancelled (then only its id counts). */
export type ReservationChange =
  | { id: string; cancelled: false; record: ReservationRecord }
  | { id: string; cancelled: true };

/** What a client calls a booking by, so that it can ask for it again: its own text, unique to a user in an experiment. */
export interface BookingKey {
  createdBy: string;
  experiment: string;
  key: string;
}

/** A booking that was granted under a key. */
export interface RememberedBooking extends BookingKey {
  /** Equal for equal requests. */
  fingerprint: string;
  /** The id of what was booked, which may be deleted by now. */
  reservation: string;
  /** From when on the key is free again, in milliseconds. */
  expires: number;
}

/** How many expired keys {@link LinkTransaction.remember} lets go of at most, so that no booking pays for many. */
export const KEYS_LET_GO = 100;

/** One link, locked against every other writer until the transaction ends. */
export interface LinkTransaction {
  /** The link's version: counts the changes that were committed on it. */
  readonly version: number;
  /** Every reservation that ends after `from`, in milliseconds: all that a decision about a later time can meet. */
  endingAfter(from: number): Promise<ReservationRecord[]>;
  /** What changed after `version`, each reservation once, as it stands now. */
  changesSince(version: number): Promise<ReservationChange[]>;
  /** A reservation of this link that was not deleted. */
  read(id: string): Promise<ReservationRecord | undefined>;
  /**
   * Inserts or replaces a reservation and moves the link to its next version.
   *
   * @throws Error when a tag is held already: the database's own guard, which a correct decision never meets
   */
  put(record: ReservationRecord): Promise<void>;
  /** Cancels a reservation and moves the link to its next version. It stays as a tombstone for other replicas. */
  cancel(id: string, now: number): Promise<void>;
  /** What was booked under a key that is not free at `now`, on any link. */
  recall(key: BookingKey, now: number): Promise<RememberedBooking | undefined>;
  /**
   * Keeps what is booked in this transaction under its key, and lets go of keys that expired, {@link KEYS_LET_GO} at
   * most. Another link's transaction, which this lock does not hold off, may have taken the key since `recall` looked;
   * the key decides which of them was first.
   *
   * @returns undefined when it is kept; what the key stands for when it is not free at `now`: then nothing was written
   * @throws Error at the end of the transaction when the reservation was not put in it
   */
  remember(booking: RememberedBooking, now: number): Promise<RememberedBooking | undefined>;
}

/** Which reservations a list holds. */
export interface ReservationQuery {
  experiment: string;
  /** Only those in this state at `now`. */
  state?: 'scheduled' | 'active' | 'ended';
  now: number;
  /** Only those whose id is after this one. */
  after?: string;
  limit: number;
}

/** Where reservations are kept (DESIGN.md, "Storage"). */
export interface ReservationStore {
  /**
   * Runs `work` in one transaction that holds the link's lock from before its first read. Commits when `work`
   * resolves, rolls back when it rejects.
   *
   * @throws StoreUnavailableError when the database can't be reached or stays locked
   * @throws CommitUnknownError when it was lost at the very end
   */
  changeLink<Answer>(link: string, work: (transaction: LinkTransaction) => Promise<Answer>): Promise<Answer>;
  /** A reservation that was not deleted. */
  find(id: string): Promise<ReservationRecord | undefined>;
  /** See {@link LinkTransaction.recall}. */
  recall(key: BookingKey, now: number): Promise<RememberedBooking | undefined>;
  /** Reservations that were not deleted, by id, which is by age. */
  list(query: ReservationQuery): Promise<ReservationRecord[]>;
}

/** The database is away, locked, or full: nothing was changed, and it is worth trying again. */
export class StoreUnavailableError extends Error {
  override readonly name: string = 'StoreUnavailableError';
}

/** The database was lost while it committed: what was asked for may have been done, or not. */
export class CommitUnknownError extends StoreUnavailableError {
  override readonly name = 'CommitUnknownError';
}
