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

/** An event of a stream (HTML Standard, "Server-sent events"). */
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
  #stream: OpenStream<Told> | undefined;
  /** The next changes, while they are waited for. */
  #next: Promise<Told[]> | undefined;
  #failures = 0;
  /** Whether the service has no streams. */
  #isMissing = false;
  /** Gives up the stream that is open, or is being opened. */
  #given = new AbortController();
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
      const stream = await this.#connect(undefined);
      this.#cursor = stream.cursor;
      this.#told = stream.cursor;
      stream.close();
    } catch (error) {
      this.#isMissing = isMissing(error);
      this.#failures += 1;
    }
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
    this.#given.abort();
    this.#drop();
  }

  /** Gives the stream up; the next read opens another, which goes on behind it. */
  #drop(): void {
    this.#stream?.close();
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
        if (!this.#stream) {
          if (opened > 1 || this.#isClosed)
            throw new Failure('network', 'The stream of events breaks off.', { retryable: true });
          this.#stream = await this.#connect(this.#cursor);
          opened += 1;
        }
        const told = await this.#stream.next(SILENCE);
        this.#cursor = this.#stream.cursor ?? this.#cursor;
        if (told) this.#failures = 0;
        else this.#drop();
        if (told && told.length > 0) return told;
      }
    };
    const reading = read();
    reading.catch(() => this.#drop());
    return reading;
  }

  /** Opens a stream that has begun. */
  async #connect(since: string | undefined): Promise<OpenStream<Told>> {
    const given = new AbortController();
    this.#given = given;
    try {
      return await withinTime(BEGIN_WITHIN, async () => {
        const stream = new OpenStream(await this.#open(since, given.signal), given, this.#read);
        while (stream.cursor === undefined && stream.waiting.length === 0) {
          const told = await stream.next(BEGIN_WITHIN);
          if (!told)
            throw new Failure('network', 'The stream of events does not begin.', { retryable: true });
          stream.waiting.push(...told);
        }
        return stream;
      });
    } catch (error) {
      given.abort();
      throw error;
    }
  }
}

/** A stream that is open. */
class OpenStream<Told> {
  /** The last cursor; undefined before the first. */
  cursor: string | undefined;
  /** Told before anyone waited. */
  readonly waiting: Told[] = [];
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #given: AbortController;
  readonly #decoder = new TextDecoder();
  /** Events that have ended and are not read yet. */
  readonly #ended: StreamEvent[] = [];
  readonly #parser = createParser({
    maxBufferSize: MOST_OF_EVENT,
    onId: (id) => {
      this.cursor = id;
    },
    onEvent: (event) => this.#ended.push(event),
    onError: ({ type }) => {
      if (type !== 'max-buffer-size-exceeded') return;
      throw new Failure('reply_invalid', `An event is larger than ${MOST_OF_EVENT} characters.`);
    },
  });
  readonly #read: ReadEvent<Told>;

  /** @throws Failure `reply_invalid` for an answer that is not a stream of events */
  constructor(reply: Incoming, given: AbortController, read: ReadEvent<Told>) {
    const type = reply.headers.get('content-type') ?? '';
    if (!type.startsWith(EVENT_STREAM_TYPE) || !reply.body || !('getReader' in reply.body)) {
      throw new Failure('reply_invalid', 'The answer is no stream of events.', { httpStatus: 501 });
    }
    this.#reader = reply.body.getReader();
    this.#given = given;
    this.#read = read;
  }

  /** The next changes, none where only a new cursor came; undefined where the stream has ended, broken off, or is silent. */
  async next(silence: number): Promise<Told[] | undefined> {
    if (this.waiting.length > 0) return this.waiting.splice(0);
    const read = await withinTime(silence, () => this.#reader.read()).catch(() => undefined);
    if (!read || read.done) return undefined;
    this.#parser.feed(this.#decoder.decode(read.value, { stream: true }));
    return this.#ended.splice(0).flatMap((event) => this.#read(event) ?? []);
  }

  close(): void {
    this.#given.abort();
    this.#reader.cancel().catch(() => undefined);
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
