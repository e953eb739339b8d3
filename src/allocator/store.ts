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
   */
  changeLink<Answer>(link: string, work: (transaction: LinkTransaction) => Promise<Answer>): Promise<Answer>;
  /** A reservation that was not deleted. */
  find(id: string): Promise<ReservationRecord | undefined>;
  /** Reservations that were not deleted, by id, which is by age. */
  list(query: ReservationQuery): Promise<ReservationRecord[]>;
}

/** The database is away, locked, or full: nothing was changed, and it is worth trying again. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}
