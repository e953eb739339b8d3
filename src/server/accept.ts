import { parseAccept } from 'hono/utils/accept';
import { JWT_TYPE } from '../contract/routes.ts';

/** The quality that a header such as `Accept` gives to a name, from 0 to 1; 0 where it does not have it (RFC 9110 §12.4.2). */
function qualityOf(name: string, header: string | null): number {
  return parseAccept(header ?? '').find(({ type }) => type.toLowerCase() === name)?.q ?? 0;
}

/** Whether a request names a type, and does not prefer JSON to it. */
function prefers(request: Request, type: string): boolean {
  const accept = request.headers.get('accept');
  if (accept === type) return true;
  const quality = qualityOf(type, accept);
  return quality > 0 && quality >= qualityOf('application/json', accept);
}

/**
 * Whether a request wants the signed form: `Accept` names `application/jwt` and does not prefer JSON to it by its
 * quality (RFC 9110 §12.5.1; contract/README.md, "POST": otherwise JSON is returned).
 */
export function acceptsJwt(request: Request): boolean {
  return prefers(request, JWT_TYPE);
}

/** Whether a browser asks for a page: `Accept` names `text/html`, which programs do not do unless they want one. */
export function acceptsHtml(request: Request): boolean {
  return prefers(request, 'text/html');
}

/** Whether `Accept-Encoding` takes a coding; browsers take Brotli (`br`, RFC 7932) over TLS and from this machine only. */
export function takes(coding: 'br' | 'gzip', request: Request): boolean {
  return qualityOf(coding, request.headers.get('accept-encoding')) > 0;
}
