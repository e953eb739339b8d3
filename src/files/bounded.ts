import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { readUpTo, withoutMark } from '../contract/bounded.ts';

/** The most that is read of any file, or of standard input, in bytes: much more than each kind of file needs. */
export const MAX_FILE = 16 * 2 ** 20;

const TOO_LARGE = `It is larger than ${MAX_FILE / 2 ** 20} MiB.`;

/** The room for a file at first, in bytes: a device and a pipe do not tell their size. */
const LEAST = 16_384;

/** The bytes of a text in UTF-8, without a byte order mark. @throws Error for UTF-16 */
function textIn<Bytes extends Uint8Array>(bytes: Bytes): Bytes {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) throw new Error(UTF_16);
  return withoutMark(bytes);
}

const UTF_16 =
  'It is in UTF-16, as PowerShell writes what > redirects. Write it in UTF-8 there: COMMAND | Out-File -Encoding utf8 FILE.';

/**
 * Reads a text that a person or an operator names, which may be a device without an end. All files are read so, but for
 * the program's own.
 *
 * @returns without a byte order mark
 * @throws Error of the file system; Error for UTF-16, and for a file larger than {@link MAX_FILE}, of which no more than that is read
 */
export function readBounded(path: string): Buffer {
  return textIn(readBytes(path));
}

/** Reads a file as it is; see {@link readBounded}. */
export function readBytes(path: string): Buffer {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    if (size > MAX_FILE) throw new Error(TOO_LARGE);
    let bytes = Buffer.allocUnsafe(Math.max(LEAST, size + 1));
    for (let length = 0; length <= MAX_FILE; ) {
      const read = readSync(file, bytes, { offset: length });
      if (read === 0) return bytes.subarray(0, length);
      length += read;
      if (length === bytes.length) bytes = Buffer.concat([bytes], 2 * length);
    }
    throw new Error(TOO_LARGE);
  } finally {
    closeSync(file);
  }
}

/** Reads the text of a stream such as standard input to its end. @throws Error of the stream; Error for UTF-16, and when more than {@link MAX_FILE} comes */
export async function readBoundedStream(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const { bytes, whole } = await readUpTo(stream, MAX_FILE);
  if (whole) return textIn(bytes);
  throw new Error(TOO_LARGE);
}
