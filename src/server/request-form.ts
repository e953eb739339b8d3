import type { IncomingMessage } from 'node:http';
import { EXPERIMENT_TOKEN_HEADER, IDEMPOTENCY_KEY_HEADER } from '../contract/routes.ts';

/** Segments of the characters that RFC 3986 §3.3 has in a path, or escapes. */
const PATH = /^(?:\/(?:[\w.~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)+$/;
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;

/**
 * Checks a request's target. A path has several spellings (RFC 3986 §6.2.2), and only one is accepted, so that a proxy, a
 * limit, a log and a router all see the same request (THREATS.md 62): a path without dot segments, without a fragment, and
 * without an escape of a character that needs no escape.
 *
 * @param target with its query, whose spelling is free because it is read in one place only
 * @returns the fault, as a sentence; undefined when the target is accepted
 */
export function targetFault(target: string): string | undefined {
  const [path = ''] = target.split('?');
  if (!path.startsWith('/')) return 'The request target must be a path.';
  if (target.includes('#')) return 'The request target must not have a fragment.';
  if (!PATH.test(path)) return 'The path holds a character that must be escaped, or a wrong escape.';
  if (DOT_SEGMENT.test(path)) return 'The path must not hold a segment of dots.';
  if (path.includes('%') && path.replaceAll(/%[0-9A-F]{2}/gi, plainForm) !== path) {
    return 'The path escapes a character that needs no escape.';
  }
  return undefined;
}

function plainForm(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  return /^[A-Za-z0-9._~-]$/.test(character) ? character : escaped;
}

/** Headers that must not be repeated: of two, `node:http` takes the first and others the last (RFC 9110 §5.3). */
const SINGLE = new Set(
  ['Host', 'Authorization', 'Content-Type', EXPERIMENT_TOKEN_HEADER, IDEMPOTENCY_KEY_HEADER].map((name) =>
    name.toLowerCase(),
  ),
);

/** Checks the form of a request on a socket: its target, and headers that must not be repeated (THREATS.md 62). */
export function requestFault({ url = '', rawHeaders }: IncomingMessage): string | undefined {
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    if (!SINGLE.has(name)) continue;
    if (seen.has(name)) return `The request has two headers ${name}.`;
    seen.add(name);
  }
  return targetFault(url);
}

/**
 * Whether a browser sends a request because a page of another site, or another port of this host, made it: a form, an
 * image, a fetch whose answer it can't read, a link (Fetch Metadata; RFC 6454 §7). Programs don't send these headers, and
 * browsers don't let a page change them. An address that a person typed, or opened from another program, is not cross-site.
 *
 * | Origin         | Sec-Fetch-Site           | cross-site |
 * |----------------|--------------------------|------------|
 * | absent         | absent                   | no         |
 * | absent or ours | `none`, `same-origin`    | no         |
 * | absent or ours | `same-site`, `cross-site`| yes        |
 * | another, null  | any                      | yes        |
 *
 * @param header a header of the request by its name
 * @param origin our own
 */
export function isCrossSite(
  header: (name: 'origin' | 'sec-fetch-site') => string | null | undefined,
  origin: string,
): boolean {
  const site = header('sec-fetch-site') ?? 'none';
  return (header('origin') ?? origin) !== origin || !['none', 'same-origin'].includes(site);
}
