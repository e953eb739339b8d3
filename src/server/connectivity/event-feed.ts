import { answerOf } from '../../allocator/answer.ts';
import { Slices } from '../../allocator/event-loop.ts';
import {
  type ChangedReservation,
  type LinkVersion,
  type ReservationRecord,
  type ReservationStore,
  type StoreSnapshot,
  StoreUnavailableError,
} from '../../allocator/store.ts';
import { EVENT_STREAM_TYPE } from '../../contract/events.ts';
import { eventsBetween, nextTurn, type Phase, phaseAt } from '../../contract/instants.ts';
import { sitesOfLink } from '../../contract/links.ts';
import type { EventType } from '../../contract/reservation.ts';
import { jsonText } from '../../contract/visible-text.ts';
import type { Log } from '../log.ts';
import { logBug, refusal } from '../problem-error.ts';
import { decodeCursor, encodeCursor, type Position, positionOf } from './event-cursor.ts';

/** A stream, as the feed sees it. */
export interface Listener {
  /** The experiment whose reservations it is told of. Default: it is told of none. */
  readonly experiment?: string | undefined;
  /** Whether it is told which links have changed. */
  readonly links: boolean;
  /** Takes frames; those of one turn at once. */
  take(frames: string): void;
  /** Ends: it comes back with its cursor. */
  end(): void;
}

/** What {@link EventFeed} needs. */
export interface EventFeedOptions {
  reservations: Pick<ReservationStore, 'versions' | 'readLinks' | 'onCommit'>;
  /** The ids of the topology's links. */
  links: readonly string[];
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  log: Log;
}

/** How often the versions are read while there are streams, for what other processes commit, in milliseconds. */
const POLL = 50;
/**
 * The pause after each turn, in milliseconds: what is committed meanwhile is told together. It is longer where many streams
 * were told, so that they take a small part of the time from bookings: two milliseconds for each, up to the longest.
 */
const [PACE, LONGEST_PACE] = [20, 400];
/** The pause after the database has failed, in milliseconds. */
const PACE_AWAY = 200;
/** The most changes of all links since a cursor: to look through more takes longer than to list again. */
const MOST_CHANGES = 25_000;
/** The most events with which a stream begins. */
const MOST_EVENTS = 1000;
/** How long a browser waits before it comes back, in milliseconds. */
const RETRY = 2000;

/** A reservation that has not ended, and the phase of which its streams were told. */
interface Watched {
  record: ReservationRecord;
  phase: Phase;
}

/** An experiment with streams. */
interface Watch {
  readonly watched: Map<string, Watched>;
  /** When the next phase of one begins, in milliseconds. */
  next: number | undefined;
}

/** A stream that waits for its first turn. */
interface Joining {
  listener: Listener;
  /** Default: it begins with the present. */
  cursor: string | undefined;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Tells streams what has changed since their cursors. All streams of a process are at one position, and go on together, in
 * turns: a turn reads a snapshot's versions and what changed up to them, each reservation once, as it is then. A commit of
 * this process begins a turn, and so does a version that others have changed, an instant at which a reservation starts or
 * ends, or a new stream. Without streams nothing is read.
 *
 * Where the database has another history, every stream ends: it comes back with a cursor that is refused, and lists again.
 */
export class EventFeed {
  readonly #options: EventFeedOptions;
  readonly #listeners = new Set<Listener>();
  readonly #watches = new Map<string, Watch>();
  #joining: Joining[] = [];
  /** Undefined while there are no streams. */
  #position: Position | undefined;
  #isRunning = false;
  /** How many streams were told something in the last turn. */
  #told = 0;
  #isWoken = false;
  #wake: () => void = () => undefined;

  constructor(options: EventFeedOptions) {
    this.#options = options;
  }

  /** The cursor of every stream. Only while there are streams. */
  get cursor(): string {
    return this.#position ? encodeCursor(this.#position) : '';
  }

  /**
   * Adds a stream. It has taken its first frames when this resolves.
   *
   * @throws ProblemError 410 for a cursor from which it can't go on
   * @throws StoreUnavailableError
   */
  join(listener: Listener, cursor?: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#joining.push({ listener, cursor, resolve, reject });
      this.#awake();
      if (!this.#isRunning) void this.#run();
    });
  }

  /** Removes a stream. */
  leave(listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) this.#awake();
  }

  #awake(): void {
    this.#isWoken = true;
    this.#wake();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    const unsubscribe = this.#options.reservations.onCommit(() => this.#awake());
    while (this.#listeners.size + this.#joining.length > 0) {
      if (!this.#isWoken) await this.#pause(Math.max(0, Math.min(POLL, this.#next - this.#options.now())));
      const isWoken = this.#isWoken;
      this.#isWoken = false;
      this.#told = 0;
      let pause = PACE;
      try {
        if (isWoken || this.#next <= this.#options.now() || (await this.#hasChanged())) await this.#turn();
        pause = Math.min(LONGEST_PACE, Math.max(PACE, 2 * this.#told));
      } catch (error) {
        // A stream that waits for its first turn was told. While the database is away the others wait.
        if (!(error instanceof StoreUnavailableError)) logBug(this.#options.log, error);
        pause = PACE_AWAY;
      }
      await this.#pause(pause, false);
    }
    unsubscribe();
    this.#position = undefined;
    this.#watches.clear();
    this.#isRunning = false;
  }

  /** @param isBroken whether a commit ends the pause */
  #pause(milliseconds: number, isBroken = true): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        if (!isBroken && this.#joining.length === 0) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** When the next phase of a reservation begins, in milliseconds. */
  get #next(): number {
    return Math.min(...[...this.#watches.values()].map(({ next }) => next ?? Number.POSITIVE_INFINITY));
  }

  async #hasChanged(): Promise<boolean> {
    const rows = await this.#options.reservations.versions();
    return rows.some(({ id, version }) => this.#position?.versions.get(id) !== version);
  }

  async #turn(): Promise<void> {
    const { reservations, links, now } = this.#options;
    const joining = this.#joining.splice(0);
    const at = now();
    const experiments = new Set([...this.#listeners].map(({ experiment }) => experiment));
    for (const known of this.#watches.keys()) if (!experiments.has(known)) this.#watches.delete(known);
    try {
      const read = await reservations.readLinks(async (snapshot) => {
        const rows = await snapshot.versions();
        const position = positionOf(snapshot, { rows, links, at });
        const before = this.#position;
        const isOther = before !== undefined && !follows(position, before);
        // Streams that are told of links alone need no reservations.
        const isAsked = before && !isOther && this.#watches.size > 0;
        const changed = isAsked ? await changesBetween(snapshot, before, position) : [];
        const begins: (() => void)[] = [];
        // All that were cut off when the server was started again come back at once.
        const slices = new Slices();
        for (const each of joining) {
          if (slices.isOver) await slices.next();
          await this.#startOf(each, snapshot, { rows, position, isOther }).then(
            (begin) => begins.push(begin),
            each.reject,
          );
        }
        return { position, isOther, changed, begins };
      });
      if (read.isOther) this.#endAll();
      else this.#tell(read.changed, read.position);
      this.#position = read.position;
      for (const begin of read.begins) begin();
    } catch (error) {
      for (const { reject } of joining) reject(error);
      throw error;
    }
  }

  /** What was committed is of another history than what the streams were told. */
  #endAll(): void {
    for (const listener of this.#listeners) listener.end();
    this.#listeners.clear();
    this.#watches.clear();
  }

  /** Reads what a stream begins with. @returns begins it, once the others are at this position @throws ProblemError 410 */
  async #startOf(
    { listener, cursor, resolve }: Joining,
    snapshot: StoreSnapshot,
    { rows, position, isOther }: { rows: readonly LinkVersion[]; position: Position; isOther: boolean },
  ): Promise<() => void> {
    const { experiment } = listener;
    const isNew = experiment !== undefined && (isOther || !this.#watches.has(experiment));
    const records = isNew ? await snapshot.endingAfter(experiment, position.at) : [];
    const frames =
      cursor === undefined ? [] : await this.#framesSince(cursor, listener, { snapshot, rows, position });
    return () => {
      if (experiment !== undefined && isNew && !this.#watches.has(experiment)) {
        const watched = new Map(
          records.map((record) => [record.id, { record, phase: phaseAt(position.at, record) }]),
        );
        this.#watches.set(experiment, { watched, next: nextTurn(position.at, records) });
      }
      this.#listeners.add(listener);
      const now = encodeCursor(position);
      listener.take(`retry: ${RETRY}\n${frames.length > 0 ? withCursor(frames, now) : cursorFrame(now)}`);
      resolve();
    };
  }

  /** What a stream missed since its cursor. @throws ProblemError 410 */
  async #framesSince(
    cursor: string,
    { experiment, links }: Listener,
    {
      snapshot,
      rows,
      position,
    }: { snapshot: StoreSnapshot; rows: readonly LinkVersion[]; position: Position },
  ): Promise<string[]> {
    const before = decodeCursor(cursor, position);
    if (!before) throw tooOld();
    let behind = 0;
    for (const { id, version, forgotten } of rows) {
      const since = before.versions.get(id) ?? 0;
      // The rows of deletions may be gone.
      if (since < forgotten) throw tooOld();
      behind += version - since;
    }
    if (behind > MOST_CHANGES) throw tooOld();
    const frames = links ? linkFrames(before, position) : [];
    if (experiment === undefined) return frames;
    const since = Math.min(before.at, position.at);
    const changed = await changesBetween(snapshot, before, position, { experiment, most: MOST_EVENTS + 1 });
    const isCreated = ({ record }: ChangedReservation): boolean => record.createdAt >= since;
    for (const each of changed) {
      frames.push(frameOf(each.deleted ? 'deleted' : isCreated(each) ? 'created' : 'updated', each.record));
    }
    const created = new Set(changed.filter(isCreated).map(({ record }) => record.id));
    for (const record of await snapshot.endingAfter(experiment, since)) {
      const phase = created.has(record.id) ? 'scheduled' : phaseAt(since, record);
      frames.push(...phaseFrames(phase, phaseAt(position.at, record), record));
    }
    if (frames.length > MOST_EVENTS) throw tooOld();
    return frames;
  }

  /** Tells the streams what has changed up to a position. */
  #tell(changed: readonly ChangedReservation[], position: Position): void {
    const ofExperiments = new Map<string, string[]>();
    for (const [experiment, watch] of this.#watches) {
      const own = changed.filter(({ record }) => record.experiment === experiment);
      const isDue = (watch.next ?? Number.POSITIVE_INFINITY) <= position.at;
      if (own.length > 0 || isDue) ofExperiments.set(experiment, advance(watch, own, position.at));
    }
    const ofLinks = this.#position ? linkFrames(this.#position, position) : [];
    const cursor = encodeCursor(position);
    const texts = new Map<string, string>();
    for (const listener of this.#listeners) {
      const { experiment = '', links } = listener;
      const frames = [...(links ? ofLinks : []), ...(ofExperiments.get(experiment) ?? [])];
      if (frames.length === 0) continue;
      const key = `${links} ${experiment}`;
      const text = texts.get(key) ?? withCursor(frames, cursor);
      texts.set(key, text);
      listener.take(text);
      this.#told += 1;
    }
  }
}

/** The frames of an experiment's changes, and of the phases that have begun by an instant. */
function advance(watch: Watch, changed: readonly ChangedReservation[], at: number): string[] {
  const { watched } = watch;
  const frames: string[] = [];
  for (const { record, deleted } of changed) {
    const known = watched.get(record.id);
    frames.push(frameOf(deleted ? 'deleted' : known ? 'updated' : 'created', record));
    if (deleted) watched.delete(record.id);
    else watched.set(record.id, { record, phase: known?.phase ?? 'scheduled' });
  }
  const moved = new Set(changed.map(({ record }) => record.id));
  for (const [id, each] of watched) {
    const phase = phaseAt(at, each.record);
    const begun = phaseFrames(each.phase, phase, each.record);
    frames.push(...begun);
    if (phase === 'ended') watched.delete(id);
    // An update may take it back to an earlier phase; a clock that is set back does not.
    else if (begun.length > 0 || moved.has(id)) each.phase = phase;
  }
  watch.next = nextTurn(
    at,
    [...watched.values()].map(({ record }) => record),
  );
  return frames;
}

/** What changed between two positions, each reservation once. */
async function changesBetween(
  snapshot: StoreSnapshot,
  before: Position,
  { versions }: Position,
  of?: Parameters<StoreSnapshot['changedSince']>[2],
): Promise<ChangedReservation[]> {
  const found = new Map<string, ChangedReservation>();
  for (const [link, version] of versions) {
    const since = before.versions.get(link) ?? 0;
    if (version === since) continue;
    for (const each of await snapshot.changedSince(link, since, of)) found.set(each.record.id, each);
  }
  return [...found.values()];
}

/** Whether a position can come after another one: one history, and no version that went back. */
function follows(position: Position, before: Position): boolean {
  if (position.history !== before.history) return false;
  return [...before.versions].every(([id, version]) => (position.versions.get(id) ?? 0) >= version);
}

/** The media type, and what keeps proxies from holding a stream back or compressing it. */
export const STREAM_HEADERS = {
  'content-type': EVENT_STREAM_TYPE,
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
} as const;

function frameOf(type: EventType, record: ReservationRecord): string {
  return `event: reservation\ndata: ${jsonText({ type, reservation: answerOf(record) })}\n\n`;
}

function phaseFrames(from: Phase, to: Phase, record: ReservationRecord): string[] {
  return eventsBetween(from, to).map((type) => frameOf(type, record));
}

function linkFrames(before: Position, { versions }: Position): string[] {
  return [...versions]
    .filter(([id, version]) => version !== (before.versions.get(id) ?? 0))
    .map(([id, version]) => {
      const [site1, site2] = sitesOfLink(id);
      return `event: link\ndata: ${jsonText({ site1, site2, version })}\n\n`;
    });
}

/** Frames whose last one has the cursor: where the stream is cut before it, all are told again. */
function withCursor(frames: readonly string[], cursor: string): string {
  return `${frames.slice(0, -1).join('')}id: ${cursor}\n${frames.at(-1) ?? ''}`;
}

/** A frame that moves the cursor, and says nothing else. */
export function cursorFrame(cursor: string): string {
  return `id: ${cursor}\nevent: cursor\ndata: {}\n\n`;
}

function tooOld(): Error {
  return refusal(
    'cursor_too_old',
    'What happened since this cursor is not known any more. List the reservations again, and go on from the present.',
  );
}
