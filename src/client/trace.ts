import { Secret, withoutTokens } from '../contract/secret.ts';
import type { Fetch } from './exchange.ts';

const TEXT = /^[ -~]{0,300}$/;
const NUMBER = /^\d{1,12}$/;

/** Headers of requests that never hold a secret; the values of all others are hidden (HOSTILE.md 11). */
const SHOWN_SENT: Readonly<Record<string, RegExp>> = {
  accept: TEXT,
  'content-type': TEXT,
  'idempotency-key': TEXT,
};

/** Headers of replies that are shown where their values have the expected form: a reply could hold anything. */
const SHOWN_RECEIVED: Readonly<Record<string, RegExp>> = {
  'content-type': /^(?:application\/(?:json|jwt)|text\/(?:html|plain))(?:; ?charset=utf-8)?$/i,
  'content-length': NUMBER,
  'retry-after': NUMBER,
  'idempotency-replayed': /^true$/,
};

/**
 * Wraps a `fetch` so that each request and reply is described in lines: method, address, status, time taken, and the
 * headers that hold no secret. Of bodies only the size is shown.
 *
 * @param tell takes one line
 * @param now milliseconds
 */
export function traced(send: Fetch, tell: (line: string) => void, now: () => number): Fetch {
  return async (request) => {
    const began = now();
    tell(`→ ${request.method} ${withoutTokens(request.url)}`);
    for (const [name, value] of request.headers) tell(`    ${name}: ${shown(SHOWN_SENT, name, value)}`);
    try {
      const reply = await send(request);
      tell(`← ${reply.status} after ${now() - began} ms`);
      for (const [name, value] of reply.headers) {
        if (name in SHOWN_RECEIVED) tell(`    ${name}: ${shown(SHOWN_RECEIVED, name, value)}`);
      }
      return reply;
    } catch (error) {
      const why = error instanceof Error ? error.message : 'an unknown error';
      tell(`← nothing after ${now() - began} ms: ${withoutTokens(why)}`);
      throw error;
    }
  };
}

function shown(table: Readonly<Record<string, RegExp>>, name: string, value: string): string {
  return table[name]?.test(value) ? value : String(new Secret(value));
}
