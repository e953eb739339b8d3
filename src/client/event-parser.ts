import { Failure } from '../contract/failure.ts';

/** An event of a stream (HTML Standard, "Server-sent events"). */
export interface StreamEvent {
  /** `message` where the stream does not say. */
  event: string;
  data: string;
}

/** The most that is kept of an event that has not ended, in characters (THREATS.md 10). */
const MOST_OF_EVENT = 1_048_576;

/**
 * Reads a stream of events, however it is cut into chunks. An event that the stream cuts off is not an event.
 *
 * @example
 * const parser = new EventParser();
 * for await (const chunk of body) for (const { data } of parser.push(chunk)) show(data);
 */
export class EventParser {
  readonly #decoder = new TextDecoder();
  /** The line that has not ended. */
  #line = '';
  /** Whether the last line ended with CR, which a LF may follow. */
  #isAfterReturn = false;
  #data: string[] = [];
  #event = '';
  #size = 0;
  #id: string | undefined;
  #last: string | undefined;

  /** The last id of the stream, of a whole event or of a frame without data; undefined before the first. */
  get lastId(): string | undefined {
    return this.#last;
  }

  /** The events that end in a chunk. @throws Failure `reply_invalid` for an event that does not end */
  push(chunk: Uint8Array): StreamEvent[] {
    let text = this.#decoder.decode(chunk, { stream: true });
    if (text === '') return [];
    if (this.#isAfterReturn && text.startsWith('\n')) text = text.slice(1);
    this.#isAfterReturn = text === '' ? false : text.endsWith('\r');
    const lines = (this.#line + text).split(/\r\n|\n|\r/);
    this.#line = lines.pop() ?? '';
    const events = lines.flatMap((line) => this.#take(line) ?? []);
    if (this.#size + this.#line.length <= MOST_OF_EVENT) return events;
    throw new Failure('reply_invalid', `An event is larger than ${MOST_OF_EVENT} characters.`);
  }

  /** @returns the event that the line ends */
  #take(line: string): StreamEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    this.#size += line.length;
    if (name === 'data') this.#data.push(value);
    else if (name === 'event') this.#event = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    return undefined;
  }

  /** Ends an event, which an empty line does. @returns undefined for an event without data, of which only the id counts */
  #dispatch(): StreamEvent | undefined {
    const [event, data] = [this.#event || 'message', this.#data];
    [this.#event, this.#data, this.#size] = ['', [], 0];
    this.#last = this.#id;
    return data.length > 0 ? { event, data: data.join('\n') } : undefined;
  }
}
