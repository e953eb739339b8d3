import { createParser } from 'eventsource-parser';
import * as v from 'valibot';
import { withinTime } from '../contract/bounded.ts';
import { DAY, SECOND } from '../contract/durations.ts';
import { EVENT_PAUSE, EVENT_STREAM_TYPE } from '../contract/events.ts';
import { Failure, isMissing } from '../contract/failure.ts';
import { readJson } from '../contract/json.ts';
import { ReservationEvent } from '../contract/reservation.ts';
import type { Incoming } from '../contract/sending.ts';

/** The longest pause between two looks while nothing is told, in milliseconds. */
const LONGEST_PAUSE = 15 * SECOND;
/** The first one after a stream has failed, in milliseconds; doubled for each further failure. */
const FIRST_PAUSE = 2 * SECOND;
/** How long a stream may take to begin, in milliseconds: some proxies hold it back. */
const BEGIN_WITHIN = 10 * SECOND;
/** After what silence a stream counts as broken, in milliseconds. */
const SILENCE = 2 * EVENT_PAUSE + 5 * SECOND;

/** The most that is kept of an event that has not ended, in characters (THREATS.md 10). */
const MOST_OF_EVENT = 1_048_576;

/** An event of a stream (HTML Standard, "Server-sent events"). Not the parser's own: what is exported names no other package. */
export interface StreamEvent {
  /** Absent where the stream does not say. */
  event?: string | undefined;
  data: string;
}

/** Opens a stream. @param since the cursor behind which it begins; undefined: from now on @throws Failure as `exchange` does */
export type OpenEvents = (since: string | undefined, signal: AbortSignal) => Promise<Incoming>;

/** Waits so many milliseconds, or rejects when the signal is aborted. */
type Sleep = (milliseconds: number, signal?: AbortSignal) => Promise<void>;

/** Reads an event of a stream. @returns undefined for an event that is left out @throws Failure `reply_invalid` */
type ReadEvent<Told> = (event: StreamEvent) => Told | undefined;

/**
 * The changes at a service, as its stream of events tells them. Its user reads everything first, and again whenever
 * `wait` gives undefined. So reading is the one fallback: for a service without streams, while the service is away, and
 * behind proxies that hold streams back.
 *
 * @example
 * for (let told: readonly ReservationEvent[] | undefined; ; told = await news.wait(Infinity, sleep)) {
 *   if (!told) {
 *     await news.mark();
 *     list = await readAll();
 *   } else list = changed(list, told);
 * }
 */
export class News<Told> {
  readonly #open: OpenEvents;
  readonly #read: ReadEvent<Told>;
  /** The cursor behind which a stream goes on; undefined while nothing is known. */
  #cursor: string | undefined;
  /** Up to where {@link wait} has told. */
  #told: string | undefined;
  /** The stream that is open or is being opened, and what gives it up. */
  #stream: { parts: AsyncGenerator<Part<Told>, void>; given: AbortController } | undefined;
  /** The next changes, while they are waited for. */
  #next: Promise<Told[]> | undefined;
  #failures = 0;
  /** Whether the service has no streams. */
  #isMissing = false;
  #isClosed = false;

  /** @param cursor where another one has stopped. Default: nothing is known */
  constructor(open: OpenEvents, read: ReadEvent<Told>, cursor?: string) {
    this.#open = open;
    this.#read = read;
    this.#cursor = cursor;
    this.#told = cursor;
  }

  /** Up to where {@link wait} has told changes, so that another stream can go on there; undefined while nothing is known. */
  get cursor(): string | undefined {
    return this.#cursor && this.#told;
  }

  /**
   * Notes from where on {@link wait} tells changes: before a look, so that none is lost in between. What is told after the
   * look is never older than it: the stream is opened then, and begins with what is newest.
   *
   * @returns whether the place is a new one: what changed before it was not told
   */
  async mark(): Promise<boolean> {
    if (this.#cursor !== undefined || this.#isMissing) return false;
    try {
      const { cursor } = await this.#begin(undefined);
      this.#cursor = cursor;
      this.#told = cursor;
    } catch (error) {
      this.#isMissing = isMissing(error);
      this.#failures += 1;
    }
    this.#drop();
    return this.#cursor !== undefined;
  }

  /**
   * Waits until changes are told.
   *
   * @param milliseconds the longest wait; may be `Infinity`
   * @returns the changes, none where the time is over; undefined: a look is due, since they are not told
   */
  async wait(milliseconds: number, sleep: Sleep): Promise<readonly Told[] | undefined> {
    if (this.#cursor === undefined) {
      await sleep(Math.min(milliseconds, this.#pause));
      return undefined;
    }
    this.#next ??= this.#readOn();
    const over = new AbortController();
    try {
      const time = sleep(Math.min(milliseconds, DAY), over.signal).then(
        () => undefined,
        (error: unknown) => {
          if (!over.signal.aborted) throw error;
        },
      );
      const told = await Promise.race([this.#next, time]);
      if (!told) return [];
      this.#next = undefined;
      this.#told = this.#cursor;
      return told;
    } catch (error) {
      this.#next = undefined;
      over.abort();
      // What has happened since the cursor is not known any more.
      if (error instanceof Failure && error.facts.httpStatus === 410) this.#cursor = undefined;
      else {
        this.#failures += 1;
        await sleep(Math.min(milliseconds, this.#pause));
      }
      return undefined;
    } finally {
      over.abort();
    }
  }

  /** Ends it. */
  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  /** Gives the stream up; the next read opens another, which goes on behind it. */
  #drop(): void {
    this.#stream?.given.abort();
    this.#stream = undefined;
  }

  get #pause(): number {
    if (this.#isMissing) return LONGEST_PAUSE;
    return Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.max(0, this.#failures - 1));
  }

  /** Reads on, and where the stream ends, as when its tokens have expired, from a new one. */
  #readOn(): Promise<Told[]> {
    const read = async (): Promise<Told[]> => {
      for (let opened = 0; ; ) {
        const open = this.#stream;
        if (!open && (opened > 1 || this.#isClosed))
          throw new Failure('network', 'The stream of events breaks off.', { retryable: true });
        if (!open) opened += 1;
        const part = await (open ? open.parts.next().then(({ value }) => value) : this.#begin(this.#cursor));
        if (!part) this.#drop();
        else {
          this.#cursor = part.cursor ?? this.#cursor;
          if (open || part.told.length > 0) this.#failures = 0;
          if (part.told.length > 0) return part.told;
        }
      }
    };
    const reading = read();
    reading.catch(() => this.#drop());
    return reading;
  }

  /** Opens a stream. @returns its first part */
  async #begin(since: string | undefined): Promise<Part<Told>> {
    const given = new AbortController();
    const parts = partsOf(() => this.#open(since, given.signal), this.#read, given.signal);
    this.#stream = { parts, given };
    const { value } = await withinTime(BEGIN_WITHIN, () => parts.next());
    if (value) return value;
    throw new Failure('network', 'The stream of events does not begin.', { retryable: true });
  }
}

/** The changes that a part of a stream tells, and the last cursor by then; undefined before the first. */
interface Part<Told> {
  told: Told[];
  cursor: string | undefined;
}

/**
 * The parts of a stream from its first cursor or change on, until it ends, breaks off or is silent.
 *
 * @param given gives the stream up
 * @throws Failure `reply_invalid` for an answer that is not a stream of events; what opening and reading it throws
 */
async function* partsOf<Told>(
  open: () => Promise<Incoming>,
  read: ReadEvent<Told>,
  given: AbortSignal,
): AsyncGenerator<Part<Told>, void> {
  const reply = await open();
  const type = reply.headers.get('content-type') ?? '';
  if (!type.startsWith(EVENT_STREAM_TYPE) || !reply.body || !('getReader' in reply.body)) {
    throw new Failure('reply_invalid', 'The answer is no stream of events.', { httpStatus: 501 });
  }
  const reader = reply.body.getReader();
  const giveUp = (): void => void reader.cancel().catch(() => undefined);
  given.addEventListener('abort', giveUp);
  let cursor: string | undefined;
  const ended: StreamEvent[] = [];
  const parser = createParser({
    maxBufferSize: MOST_OF_EVENT,
    onId: (id) => {
      cursor = id;
    },
    onEvent: (event) => ended.push(event),
    onError: ({ type }) => {
      if (type !== 'max-buffer-size-exceeded') return;
      throw new Failure('reply_invalid', `An event is larger than ${MOST_OF_EVENT} characters.`);
    },
  });
  const decoder = new TextDecoder();
  try {
    while (!given.aborted) {
      const part = await withinTime(SILENCE, () => reader.read()).catch(() => undefined);
      if (!part || part.done) return;
      parser.feed(decoder.decode(part.value, { stream: true }));
      const told = ended.splice(0).flatMap((event) => read(event) ?? []);
      if (cursor !== undefined || told.length > 0) yield { told, cursor };
    }
  } finally {
    giveUp();
  }
}

/** Reads an event of a reservation. @throws Failure `reply_invalid` for an event that can't be read */
export function reservationEvent({ event, data }: StreamEvent): ReservationEvent | undefined {
  if (event !== 'reservation') return undefined;
  const reading = readJson(data);
  const result = v.safeParse(ReservationEvent, reading.ok ? reading.value : undefined);
  if (result.success) return result.output;
  throw new Failure('reply_invalid', 'An event does not have the expected form.');
}
