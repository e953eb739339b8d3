import { Secret, withoutTokens } from '../contract/secret.ts';
import type { Fetch } from './exchange.ts';

const TEXT = /^[ -~]{0,300}$/;
const NUMBER = /^\d{1,12}$/;

/** Headers of ours that say nothing that must not be seen; every other value is left out (HOSTILE.md 11). */
const SHOWN_SENT: Readonly<Record<string, RegExp>> = {
  accept: TEXT,
  'content-type': TEXT,
  'idempotency-key': TEXT,
};

/** Headers of a reply, which could hold anything: they are shown where they are what they should be. */
const SHOWN_RECEIVED: Readonly<Record<string, RegExp>> = {
  'content-type': /^(?:application\/(?:json|jwt)|text\/(?:html|plain))(?:; ?charset=utf-8)?$/i,
  'content-length': NUMBER,
  'retry-after': NUMBER,
  'idempotency-replayed': /^true$/,
};

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
