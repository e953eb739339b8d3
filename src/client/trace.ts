import { Secret } from '../contract/secret.ts';
import type { Fetch } from './exchange.ts';

/** Headers whose values say nothing that must not be seen; every other value is left out (HOSTILE.md 11). */
const SHOWN_HEADERS = new Set([
  'accept',
  'content-type',
  'content-length',
  'idempotency-key',
  'idempotency-replayed',
  'retry-after',
  'date',
  'cache-control',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'vary',
]);

/**
 * The same way out, telling every request and reply on the way: method, address, status, time taken, and those
 * headers that hold no secret. Bodies are told by their size only.
 *
 * @param tell takes one line
 * @param now milliseconds
 */
export function traced(send: Fetch, tell: (line: string) => void, now: () => number): Fetch {
  return async (request) => {
    const began = now();
    tell(`→ ${request.method} ${request.url}`);
    for (const line of shown(request.headers)) tell(`    ${line}`);
    try {
      const reply = await send(request);
      tell(`← ${reply.status} after ${now() - began} ms`);
      for (const line of shown(reply.headers)) tell(`    ${line}`);
      return reply;
    } catch (error) {
      tell(
        `← nothing after ${now() - began} ms: ${error instanceof Error ? error.message : 'an unknown error'}`,
      );
      throw error;
    }
  };
}

function shown(headers: Headers): string[] {
  return [...headers].map(
    ([name, value]) => `${name}: ${SHOWN_HEADERS.has(name) ? value : new Secret(value)}`,
  );
}
