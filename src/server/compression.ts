import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { takes } from './request-reading.ts';

/** Shorter answers are one packet as they are. In characters. */
const SMALLEST = 1024;

/** Half the time of zlib's own level; a tile of the page's chart is a tenth either way. */
const LEVEL = { level: 4 };

const compress = promisify(gzip);

/**
 * Compresses the answer of a question with gzip, where the request accepts that: JSON above 1 KiB in answer to a GET, with
 * status 200. Nothing else is looked at, so a booking pays nothing. The caller decides which addresses this is for
 * (THREATS.md 114); their ETags are weak, since both forms have the same one (RFC 9110 §8.8.1).
 */
export async function compressed(request: Request, response: Response): Promise<Response> {
  if (request.method !== 'GET') return response;
  const { status, headers } = response;
  const isJson = headers.get('content-type')?.startsWith('application/json') === true;
  // Without a body: as the answer would be that it stands for.
  if (status === 304) headers.append('vary', 'accept-encoding');
  if (status !== 200 || !isJson) return response;
  headers.append('vary', 'accept-encoding');
  if (!takes('gzip', request)) return response;
  const text = await response.text();
  if (text.length < SMALLEST) return new Response(text, { headers });
  const body = await compress(text, LEVEL);
  headers.set('content-encoding', 'gzip');
  headers.set('content-length', String(body.byteLength));
  return new Response(Uint8Array.from(body), { headers });
}
