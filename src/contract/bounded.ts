import type { Fetch, Incoming } from './sending.ts';

/**
 * Sets an entry of a map as its newest, and removes the oldest one where there are more than `most` then. A map's entries are in
 * the order in which their keys were added.
 */
export function setBounded<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}

/** Work that did not finish within its time limit. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError';
}

/** The longest timer of the platform, in milliseconds: 24 days. */
const LONGEST = 2 ** 31 - 1;

/**
 * Waits for work no longer than a limit, even if the work ignores its signal (THREATS.md 53).
 *
 * @param limit milliseconds; `Infinity` where the work has a limit of its own
 * @param work gets a signal that is aborted at the limit
 * @throws TimeLimitError when the limit is over; what the work throws
 */
export async function withinTime<Answer>(
  limit: number,
  work: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const controller = new AbortController();
  if (limit === Number.POSITIVE_INFINITY) return work(controller.signal);
  const { promise: over, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => {
      const error = new TimeLimitError(`There was no answer within ${limit / 1000} s.`);
      reject(error);
      controller.abort(error);
    },
    Math.min(limit, LONGEST),
  );
  try {
    return await Promise.race([work(controller.signal), over]);
  } finally {
    clearTimeout(timer);
  }
}

/** A body: all of it, or enough of it to know that it is too large. */
export interface CappedBytes {
  bytes: Uint8Array<ArrayBuffer>;
  /** False when the body is larger than the limit; then `bytes` is longer than the limit, and the rest was not read. */
  whole: boolean;
}

/**
 * Reads a body of unknown length up to a limit, so that memory stays bounded (THREATS.md 10, 36).
 *
 * @param limit bytes
 */
export async function readUpTo(body: AsyncIterable<Uint8Array>, limit: number): Promise<CappedBytes> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    chunks.push(chunk);
    if (size > limit) break;
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return { bytes, whole: size <= limit };
}

/** The body of a message that may have none. */
export async function* bodyOf({ body }: Pick<Incoming, 'body'>): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  if (!('getReader' in body)) return yield* body;
  // Not every browser can iterate over a stream.
  const reader = body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    await reader.cancel();
  }
}

/** The bytes of a text without the byte order mark that may begin it. */
export function withoutMark<Bytes extends Uint8Array>(bytes: Bytes): Bytes {
  const isMarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return isMarked ? (bytes.subarray(3) as Bytes) : bytes;
}

/**
 * Gives a `fetch` limits that it may lack: one on the time to the end of its reply, which is read whole, and one on the size
 * of its body.
 *
 * @param timeout milliseconds
 * @param most bytes
 * @returns a `fetch` that throws TimeLimitError, RangeError for a body that is too large, and what the given one throws
 */
export function boundedFetch(fetch: Fetch, { timeout, most }: { timeout: number; most: number }): Fetch {
  return (request) =>
    withinTime(timeout, async (signal) => {
      const reply = await fetch(new Request(request, { signal: AbortSignal.any([request.signal, signal]) }));
      const { bytes, whole } = await readUpTo(bodyOf(reply), most);
      if (!whole) throw new RangeError(`The reply has more than ${most} bytes.`);
      const { status, headers } = reply;
      return new Response(reply.body === null ? null : bytes, { status, headers });
    });
}
