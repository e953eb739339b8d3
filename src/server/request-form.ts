import type { IncomingMessage } from 'node:http';
import { EXPERIMENT_TOKEN_HEADER } from '../contract/routes.ts';

/** Segments of the characters that RFC 3986 §3.3 has in a path, or escapes. */
const PATH = /^(?:\/(?:[\w.~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)+$/;
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;

/**
 * What is wrong with a request's target: of the spellings that a path may have (RFC 3986 §6.2.2), one is taken, so that a
 * proxy, a limit, a log and a router can't take one request for two (HOSTILE.md 62). That one has no dot segment, no
 * fragment, and no escape of a character that needs none; it is no absolute address.
 *
 * @param target with its query, which is read in one place only and may be spelled as it likes
 * @returns a sentence; undefined when it will do
 */
export function targetFault(target: string): string | undefined {
  const [path = ''] = target.split('?');
  if (!path.startsWith('/')) return 'The request target must be a path.';
  if (target.includes('#')) return 'The request target must not have a fragment.';
  if (!PATH.test(path)) return 'The path holds a character that must be escaped, or an escape that is none.';
  if (DOT_SEGMENT.test(path)) return 'The path must not hold a segment of dots.';
  if (path.replaceAll(/%[0-9A-F]{2}/gi, plainForm) !== path) {
    return 'The path escapes a character that needs no escape.';
  }
  return undefined;
}

function plainForm(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  return /^[A-Za-z0-9._~-]$/.test(character) ? character : escaped;
}

/** Headers that a request has once at most: of two, `node:http` takes the first and others the last (RFC 9110 §5.3). */
const SINGLE = ['host', 'authorization', 'content-type', EXPERIMENT_TOKEN_HEADER.toLowerCase()];

/** What is wrong with the form of a request on a socket: its target, or a header that it has twice (HOSTILE.md 62). */
export function requestFault({ url = '', rawHeaders }: IncomingMessage): string | undefined {
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  const twice = SINGLE.find((name) => names.indexOf(name) !== names.lastIndexOf(name));
  return twice === undefined ? targetFault(url) : `The request has two headers ${twice}.`;
}
