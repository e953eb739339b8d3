import { StoreUnavailableError } from '../../allocator/store.ts';
import { EVENT_PAUSE, LAST_EVENT_ID_HEADER } from '../../contract/events.ts';
import { authenticateCaller, authorise, type ServiceTrust } from '../credentials.ts';
import { ProblemError, refusal, tooMany } from '../problem-error.ts';
import { addressOf } from '../request-reading.ts';
import {
  cursorFrame,
  EventFeed,
  type EventFeedOptions,
  type Listener,
  STREAM_HEADERS,
} from './event-feed.ts';
import { readFlag } from './request-parameters.ts';

/** Options of {@link createEventStreams}. */
export interface EventStreamsOptions extends EventFeedOptions {
  trust: ServiceTrust;
}

/** The streams of events of one server. */
export interface EventStreams {
  /**
   * Opens a stream. It ends when the first of its tokens expires; with the login that they are of, or the role, which are
   * looked at again every {@link EVENT_PAUSE}; with its reader, where that is slow; and with the server. Its client then goes
   * on at its cursor.
   *
   * @throws ProblemError 403; 410 for a cursor from which it can't go on; 429 for one stream too many
   */
  open(request: Request): Promise<Response>;
  /** Ends all streams at once, and opens no more. */
  close(): void;
}

/** The most streams of one server. */
const MOST_STREAMS = 1000;
/** The most streams of one user. */
const MOST_OF_USER = 20;
/** How much may wait for a reader, in characters, before its stream ends. */
const MOST_UNREAD = 262_144;
/** The longest that a timer can wait, in milliseconds. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;
/** After how many seconds a stream that is one too many may be asked for again. */
const ASK_AGAIN_S = 15;

/** Says nothing, but that the stream is open. */
const COMMENT = ':\n\n';

/** Makes the streams of a server. */
export function createEventStreams(options: EventStreamsOptions): EventStreams {
  const feed = new EventFeed(options);
  /** The streams that are open, with their users. */
  const open = new Map<Listener, string>();
  let isClosed = false;

  const authenticate = async (request: Request) => {
    const caller = await authenticateCaller(request, options.trust);
    const experiment = caller.experiment && (await authorise(caller, 'list', options.trust)).id;
    return { user: caller.user, experiment, expiry: caller.expiry };
  };

  const checkRoom = (user: string): void => {
    const own = [...open.values()].filter((each) => each === user).length;
    if (own < MOST_OF_USER && open.size < MOST_STREAMS) return;
    const has = own >= MOST_OF_USER ? `You have ${own}` : `This server has ${open.size}`;
    const msg = `${has} open streams of events, and no more are opened. Try again in ${ASK_AGAIN_S} s.`;
    throw tooMany(msg, ASK_AGAIN_S);
  };

  return {
    async open(request) {
      const { user, experiment, expiry } = await authenticate(request);
      if (isClosed) throw refusal('unavailable', 'This server is stopping. Nothing was changed; try again.');
      const cursor =
        request.headers.get(LAST_EVENT_ID_HEADER) ??
        addressOf(request).searchParams.get('since') ??
        undefined;
      const links = experiment === undefined || readFlag(request, 'links');
      // The answer to HEAD has no body, and nothing would end the stream.
      if (request.method === 'HEAD') return new Response(null, { headers: STREAM_HEADERS });
      checkRoom(user);
      const { stream, readable } = streamOf({ experiment, links }, (listener) => {
        feed.leave(listener);
        open.delete(listener);
        clearInterval(alive);
        clearTimeout(expires);
      });
      open.set(stream, user);
      let last: string | undefined;
      const check = async (): Promise<void> => {
        const now = await authenticate(request);
        if (now.experiment !== experiment) return stream.end();
        const { cursor } = feed;
        stream.take(cursor === last ? COMMENT : cursorFrame(cursor));
        last = cursor;
      };
      const alive = setInterval(() => {
        check().catch((error: unknown) => {
          // The tokens were not looked at: the next time they may be.
          if (isAway(error)) stream.take(COMMENT);
          else stream.end();
        });
      }, EVENT_PAUSE);
      const expires = setTimeout(stream.end, Math.min(expiry - options.now(), LONGEST_TIMEOUT));
      try {
        await feed.join(stream, cursor);
      } catch (error) {
        stream.end();
        throw error;
      }
      // It may have ended meanwhile.
      if (!open.has(stream)) feed.leave(stream);
      return new Response(readable, { headers: STREAM_HEADERS });
    },
    close() {
      isClosed = true;
      for (const each of open.keys()) each.end();
    },
  };
}

/** Whether a failure says that the database, or an issuer's keys, can't be reached at the moment. */
function isAway(error: unknown): boolean {
  if (error instanceof StoreUnavailableError) return true;
  return error instanceof ProblemError && error.problems[0].code === 'unavailable';
}

/** A stream's two ends. @param ended is told once when it is over, whoever ended it */
function streamOf(
  { experiment, links }: Pick<Listener, 'experiment' | 'links'>,
  ended: (listener: Listener) => void,
): { stream: Listener; readable: ReadableStream<Uint8Array> } {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const over = (): ReadableStreamDefaultController<Uint8Array> | undefined => {
    const open = controller;
    controller = undefined;
    if (open) ended(stream);
    return open;
  };
  const stream: Listener = {
    experiment,
    links,
    take(frames) {
      // A reader that is too slow gets what waits for it, and asks for the rest anew: the cursor it has is older.
      if ((controller?.desiredSize ?? 0) <= 0) stream.end();
      else controller?.enqueue(encoder.encode(frames));
    },
    end: () => over()?.close(),
  };
  const readable = new ReadableStream<Uint8Array>(
    {
      start: (opened) => {
        controller = opened;
      },
      cancel: () => void over(),
    },
    { highWaterMark: MOST_UNREAD, size: (chunk) => chunk?.byteLength ?? 0 },
  );
  return { stream, readable };
}
