import type { Demand, Holding, Tags } from './demand.ts';

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

/** What a reservation holds of its link, with its id. */
export interface HeldReservation extends Holding {
  id: string;
  experiment: string;
}

/** What became of a reservation: what it holds now, or cancelled (then only its id counts). */
export type ReservationChange =
  | { id: string; cancelled: false; holding: Holding }
  | { id: string; cancelled: true };

/** What a client calls a booking by, so that it can ask for it again: its own text, unique to a user in an experiment. */
export interface BookingKey {
  createdBy: string;
  experiment: string;
  key: string;
}

/** A text that is equal for equal keys only. */
export function nameOfKey({ createdBy, experiment, key }: BookingKey): string {
  return JSON.stringify([createdBy, experiment, key]);
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

/** How many expired keys {@link LinkTransaction.write} lets go of at most, so that no booking pays for many. */
export const KEYS_LET_GO = 100;

/** A change of one reservation, as it is written. */
export interface WrittenChange {
  action: 'book' | 'amend' | 'cancel';
  /** How it stands from now on; of a cancelled one, how it stood. */
  record: ReservationRecord;
  /** What it was booked under. */
  key?: RememberedBooking;
}

/** What was decided, by whom and why: a row of the audit. Written with the change, or not at all. */
export interface AuditEntry {
  /** When, in milliseconds. */
  at: number;
  action: 'book' | 'amend' | 'cancel';
  /** Who asked for it: the `sub` of a user token. */
  by: string;
  experiment: string;
  /** Null for a booking that was refused: it never had an id. */
  reservation: string | null;
  /** What was asked for; of a cancellation, what was held. */
  demand: Demand;
  /** The tags that were granted or given back; null when it was refused. */
  tags: Tags | null;
  /** Of a refusal, the limits that it broke; of a cancellation, the reason that was given. */
  why: string | null;
}

/** What a group of decisions leaves behind, in the order in which they were made. */
export interface Decided {
  changes: readonly WrittenChange[];
  audit: readonly AuditEntry[];
}

/** One link, locked against every other writer until the transaction ends. */
export interface LinkTransaction {
  /** The link's version: counts the changes that were committed on it. */
  readonly version: number;
  /** Cancellations up to this version may have been forgotten: a calendar that is older must be read anew. */
  readonly forgotten: number;
  /** Every reservation that ends after `after` and by `until`, in milliseconds. */
  endingBetween(after: number, until: number): Promise<HeldReservation[]>;
  /** What changed after `version`, each reservation once, as it stands now. */
  changesSince(version: number): Promise<ReservationChange[]>;
  /** Those of the reservations that are on this link and were not deleted. */
  read(ids: readonly string[]): Promise<ReservationRecord[]>;
  /**
   * Locks keys until the transaction ends, against other links' transactions too, and finds what those stand for that
   * are not free at `now`.
   */
  claim(keys: readonly BookingKey[], now: number): Promise<RememberedBooking[]>;
  /**
   * Counts the reservations of experiments that have not ended at `now`, on all links, and holds up every other
   * transaction that counts one of them until this one ends: so that no two book on the same count.
   */
  countLive(experiments: readonly string[], now: number): Promise<Map<string, number>>;
  /**
   * Writes what was decided, in few statements, once in a transaction. Each change moves the link to its next version;
   * keys were claimed before. Lets go of keys that expired by `now`, {@link KEYS_LET_GO} at most, when it keeps any.
   *
   * It may resolve before that is done, and nothing may be asked for after it; what is refused fails the transaction. A
   * tag that is held already is: that is the database's own guard, which a correct decision never meets.
   */
  write(decided: Decided, now: number): Promise<void>;
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
   * @param since where others have made changes of late: a version whose later changes are read together with the lock
   * @throws StoreUnavailableError when the database can't be reached or stays locked
   * @throws RolledBackError when it refuses what was written last
   * @throws CommitUnknownError when it was lost at the very end
   */
  changeLink<Answer>(
    link: string,
    work: (transaction: LinkTransaction) => Promise<Answer>,
    since?: number,
  ): Promise<Answer>;
  /**
   * Reads every reservation of a link that ends after `from`, as of one version, in portions and without any lock, so
   * that other links' requests are answered in between.
   *
   * @param from milliseconds
   * @param take is given each portion
   * @returns the version
   */
  loadLink(link: string, from: number, take: (portion: readonly HeldReservation[]) => void): Promise<number>;
  /** A reservation that was not deleted. */
  find(id: string): Promise<ReservationRecord | undefined>;
  /** What was booked under a key that is not free at `now`, on any link. */
  recall(key: BookingKey, now: number): Promise<RememberedBooking | undefined>;
  /** Reservations that were not deleted, by id, which is by age. */
  list(query: ReservationQuery): Promise<ReservationRecord[]>;
  /** Makes what {@link LinkTransaction.countLive} needs to be quick, however much an experiment had before. */
  prepareCounts(): Promise<void>;
  /**
   * Forgets what nobody needs any more: the audit and cancelled reservations from before an instant.
   *
   * @param before milliseconds
   * @returns how many rows went
   */
  forget(before: number): Promise<{ audit: number; cancelled: number }>;
}

/** The database is away, locked, or full: nothing was changed, and it is worth trying again. */
export class StoreUnavailableError extends Error {
  override readonly name: string = 'StoreUnavailableError';
}

/** The database refused what was to be written: nothing was changed, and that is certain. */
export class RolledBackError extends Error {
  override readonly name = 'RolledBackError';
}

/** The database was lost while it committed: what was asked for may have been done, or not. */
export class CommitUnknownError extends StoreUnavailableError {
  override readonly name = 'CommitUnknownError';
}
