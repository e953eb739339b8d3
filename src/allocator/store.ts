import type { ReservationTexts } from '../contract/reservation.ts';
import type { Demand, Holding, Period, Tags } from './demand.ts';

/** One link of a reservation's route, and what is held of it beside the bandwidth and the period. */
export interface Hop {
  /** See `linkId`. */
  link: string;
  /** By the link's ends, whichever way the route goes. */
  tags: Tags;
}

/**
 * A reservation as it is kept. Times in milliseconds, bandwidth in Mbps. Its name is unique among its experiment's
 * reservations that have not ended.
 */
export interface ReservationRecord extends Demand, ReservationTexts {
  id: string;
  /** The sites in the request's order, which the reply keeps. */
  site1: string;
  site2: string;
  /** Its route from site1 to site2. It holds the same bandwidth over the same period on each link. */
  hops: readonly [Hop, ...Hop[]];
  experiment: string;
  /** Whose share and number of reservations it counts in: the project of its experiment, else the experiment. */
  tenant: string;
  createdBy: string;
  createdAt: number;
  /** The version of its first hop's link since which it is as it is: its place in the link's status lists. */
  version: number;
}

/** A reservation of a list: the text of its answer, in JSON (answer.ts). */
export interface ListedReservation {
  id: string;
  answer: string;
}

/** A reservation's share of its link, with its id. */
export interface HeldReservation extends Holding {
  id: string;
  tenant: string;
}

/** A client's own name for a request, so that it can send it again; it is unique to a user in an experiment. */
export interface IdempotencyKey {
  createdBy: string;
  experiment: string;
  key: string;
}

/** A text that is equal for equal keys only. */
export function nameOfKey({ createdBy, experiment, key }: IdempotencyKey): string {
  return JSON.stringify([createdBy, experiment, key]);
}

/** The outcome that an idempotency key stands for. Only accepted requests have one. */
export interface IdempotencyRecord extends IdempotencyKey {
  /** Equal for equal requests. */
  fingerprint: string;
  /** The id of the reservation, or of each item of a batch in its order. Any of them may be deleted by now. */
  reservations: readonly string[];
  /** From when on the key is free again, in milliseconds. */
  expires: number;
}

/** The name of a reservation, in its experiment. */
export interface ReservationName {
  experiment: string;
  name: string;
}

/** A text that is equal for equal names only. */
export function textOfName({ experiment, name }: ReservationName): string {
  return JSON.stringify(['name', experiment, name]);
}

/** How many expired keys {@link StoreTransaction.write} deletes at most, so that no request pays for many. */
export const EXPIRED_KEYS_AT_ONCE = 100;

/** A change of one reservation, as it is written. */
export interface WrittenChange {
  action: 'create' | 'update' | 'delete';
  /** The reservation after the change; for a deletion, before it. */
  record: ReservationRecord;
  /** The idempotency key that it was created under. */
  key?: IdempotencyRecord;
}

/** A row of the audit: a decision, by whom it was asked for, and its reason. Written with the change, or not at all. */
export interface AuditEntry {
  /** See `linkId`. A change of several links has a row for each. */
  link: string;
  /** When, in milliseconds. */
  at: number;
  action: 'create' | 'update' | 'delete';
  /** Who asked for it: the `sub` of a user token. */
  by: string;
  experiment: string;
  /** Null for a refused creation: it has no id. */
  reservation: string | null;
  /** The demand that was asked for; for a deletion, the demand that was held. */
  demand: Demand;
  /** The tags that were accepted or released; null when it was refused. */
  tags: Tags | null;
  /** For a refusal, the limits that it broke; for a deletion, the reason that was given. */
  why: string | null;
}

/** The writes of a group of decisions, in the order in which they were made. */
export interface Decided {
  changes: readonly WrittenChange[];
  audit: readonly AuditEntry[];
}

/** A link's row. */
export interface LinkVersion {
  /** See `linkId`. */
  readonly id: string;
  /** The link's version: each change that is committed on it moves it on by one, and each new history of the database further. */
  readonly version: number;
  /** Rows of deletions up to this version may be gone: events from before it can't be told. */
  readonly forgotten: number;
}

/** Reservations on all links: as of one instant within a transaction or a snapshot. */
export interface StoreReading {
  /** These links; of one that was never changed, version 0. Default: all that have been changed, by id. */
  versions(links?: readonly string[]): Promise<LinkVersion[]>;
  /** What is held of a link at some instant of a period, `MAX_ROWS` and one more at most. */
  overlapping(link: string, period: Period): Promise<HeldReservation[]>;
  /** A reservation that was not deleted. */
  find(id: string): Promise<ReservationRecord | undefined>;
  /** Counts the reservations of a tenant that have not ended at `now`. */
  countLive(tenant: string, now: number): Promise<number>;
  /** The id of the reservation that has a name and has not ended at `now`. */
  findName(name: ReservationName, now: number): Promise<string | undefined>;
  /** The outcome that a key stands for, on any link; undefined when it is free at `now`. */
  findKey(key: IdempotencyKey, now: number): Promise<IdempotencyRecord | undefined>;
}

/** A reservation as its last change left it; a deleted one as it was before. */
export interface ChangedReservation {
  record: ReservationRecord;
  deleted: boolean;
}

/** Reads the rows that were committed at the first look. */
export interface StoreSnapshot extends StoreReading {
  /**
   * Names the history of the database's changes. Versions of two histories can't be compared: after a failover that lost
   * commits, the same numbers are given to other changes.
   */
  readonly history: string;
  /**
   * The reservations that changed on a link after a version, each once, as it stands now.
   *
   * @param of only this experiment's, and so many at most, whichever. Default: all of every experiment
   */
  changedSince(
    link: string,
    version: number,
    of?: { experiment: string; most: number },
  ): Promise<ChangedReservation[]>;
  /** An experiment's reservations that were not deleted and end after an instant, in milliseconds. */
  endingAfter(experiment: string, instant: number): Promise<ReservationRecord[]>;
}

/** What a piece of work locks against every other writer until its transaction ends, in this order. */
export interface Locks {
  /** The ids of links, different from each other and sorted. */
  readonly links: readonly string[];
  /** Idempotency keys, for every link. */
  readonly keys?: readonly IdempotencyKey[];
  /** The tenants whose live reservations it counts, so that no two decide on the same count. */
  readonly counted?: readonly string[];
  /** The names that it looks for, so that no two give the same name. */
  readonly named?: readonly ReservationName[];
}

/** A transaction that holds its {@link Locks} from before its first read. */
export interface StoreTransaction extends StoreReading {
  /**
   * Writes what was decided, in few statements, once in a transaction. Each change moves each link of its reservation to
   * its next version; all are locked, and so are its keys. When it writes a key, it also deletes keys that expired by `now`,
   * {@link EXPIRED_KEYS_AT_ONCE} at most.
   *
   * It may resolve before the rows are written, and nothing may be asked of the store after it; a row that the database
   * refuses fails the transaction.
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

/** Where reservations are kept (allocator/README.md, "Storage"). What it reads itself is what was committed last. */
export interface ReservationStore extends StoreReading {
  /** Whether one transaction runs at a time, whatever its links. */
  readonly hasOneWriter: boolean;
  /**
   * Runs `work` in a transaction that holds its locks from before its first read. Commits when `work`
   * resolves, rolls its changes back when it rejects: all or none.
   *
   * @throws StoreUnavailableError when the database can't be reached or stays locked
   * @throws CommitUnknownError when it was lost while it committed
   */
  changeLinks<Answer>(
    locks: Locks,
    work: (transaction: StoreTransaction) => Promise<Answer>,
  ): Promise<Answer>;
  /**
   * Runs `work` on what was committed at its first look, without any lock: it waits for no writer.
   *
   * @throws StoreUnavailableError when the database can't be reached
   */
  readLinks<Answer>(work: (snapshot: StoreSnapshot) => Promise<Answer>): Promise<Answer>;
  /**
   * Reads the versions of a link that reservations have which begin there and were not deleted, as of one version of the link,
   * in portions and without any lock.
   *
   * @param range the versions from the first number on, up to the second
   * @param take is given each portion
   * @returns the version, and the history that it is of
   */
  readVersions(
    link: string,
    range: readonly [from: number, to: number],
    take: (portion: readonly number[]) => void,
  ): Promise<{ version: number; history: string }>;
  /**
   * Calls a function after each commit of this process that may have changed a link; what others commit is found by
   * {@link StoreReading.versions}.
   *
   * @returns ends that
   */
  onCommit(tell: () => void): () => void;
  /** Reservations that were not deleted, by id, which is by age. */
  list(query: ReservationQuery): Promise<ListedReservation[]>;
  /** The text of a reservation's answer, and its experiment; undefined where it does not exist, or was deleted. */
  answer(id: string): Promise<{ experiment: string; answer: string } | undefined>;
  /** How many reservations that have not ended at `now` hold something of a link that is not among these. */
  countBeside(links: readonly string[], now: number): Promise<number>;
  /** Makes the index that keeps {@link StoreReading.countLive} quick, however many reservations have ended. */
  prepareCounts(): Promise<void>;
  /**
   * Deletes rows that are no longer needed: the audit and deleted reservations from before an instant.
   *
   * @param before milliseconds
   * @returns how many rows were deleted
   */
  forget(before: number): Promise<{ audit: number; deleted: number }>;
}

/**
 * The database is away, locked, or full: nothing was changed, and it is worth trying again. Clients are told the message; the
 * cause is for the log.
 */
export class StoreUnavailableError extends Error {
  /** The first word of `toString`. */
  override readonly name: string = 'StoreUnavailableError';
}

/** The message of a {@link StoreUnavailableError} that has no better one. */
export const DATABASE_UNUSABLE = "The database can't be used at the moment.";

/** The database refused what was to be written: nothing was changed, and that is certain. */
export class RolledBackError extends Error {
  override readonly name = 'RolledBackError';
}

/** The database was lost while it committed: the change may have been made, or not. */
export class CommitUnknownError extends StoreUnavailableError {
  override readonly name = 'CommitUnknownError';
}

/**
 * The failure of work that had not begun when the database failed at other work: nothing of it was changed, whatever
 * became of the other.
 */
export function notBegun(failure: StoreUnavailableError): StoreUnavailableError {
  if (!(failure instanceof CommitUnknownError)) return failure;
  return new StoreUnavailableError(DATABASE_UNUSABLE, { cause: failure.cause });
}
