/** What was read of a body: all of it, or enough of it to know that it is too large. */
export interface CappedBytes {
  bytes: Buffer;
  /** False when there was more than the limit; then `bytes` is longer than it, and the rest was never taken in. */
  whole: boolean;
}

/**
 * Reads a body of which nobody knows how long it is, so that memory stays bounded (HOSTILE.md 10, 36).
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
  return { bytes: Buffer.concat(chunks), whole: size <= limit };
}

/** The body of a message that may have none. */
export function bodyOf(message: { body: AsyncIterable<Uint8Array> | null }): AsyncIterable<Uint8Array> {
  return message.body ?? nothing();
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // A body that is not there has no bytes.
}
