import { hash } from 'node:crypto';
import type { jsonText } from '../contract/visible-text.ts';

/** An ETag of all that an answer depends on; weak, since its compressed form has the same one (RFC 9110 §8.8.1). */
export function tagOf(content: string | Uint8Array): string {
  return `W/"${hash('sha256', content, 'base64url').slice(0, 22)}"`;
}

/** Whether a request's If-None-Match names an ETag, by weak comparison (RFC 9110 §13.1.2): then the answer is 304. */
export function knowsTag(request: Request, tag: string): boolean {
  const plain = (text: string): string => text.trim().replace(/^W\//, '');
  const known = request.headers.get('if-none-match') ?? '';
  return known.split(',').some((one) => one.trim() === '*' || plain(one) === plain(tag));
}

/** JSON, with the ETag of its text; 304 where the request names it. @param text with the characters escaped that {@link jsonText} escapes */
export function taggedReply(request: Request, text: string): Response {
  const headers = { etag: tagOf(text), 'cache-control': 'private, no-cache' };
  if (knowsTag(request, headers.etag)) return new Response(null, { status: 304, headers });
  return new Response(text, { headers: { 'content-type': 'application/json', ...headers } });
}
