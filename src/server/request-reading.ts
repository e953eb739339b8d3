import { bodyOf, type CappedBytes, readUpTo } from '../contract/bounded.ts';
import { isObject, type JsonFault, readJson } from '../contract/json.ts';
import { JWT_TYPE } from '../contract/routes.ts';
import { refusal } from './problem-error.ts';

/** The parts of a request's address. */
export interface Address extends Pick<URL, 'host' | 'pathname' | 'search'> {
  readonly searchParams: URLSearchParams;
}

/** A request's address, taken apart: it is in its normal form already (Fetch Standard, "Request class"). */
export function addressOf({ url }: Request): Address {
  const [, host = '', pathname = '', search = ''] = ADDRESS.exec(url) ?? [];
  return {
    ...{ host, pathname, search },
    get searchParams() {
      return new URLSearchParams(search);
    },
  };
}

const ADDRESS = /^https?:\/\/([^/]+)([^?#]*)(\?[^#]+)?/;

/** The largest body that is read, in bytes; a larger one is 413, without reading the rest. */
export const MAX_BODY = 262_144;

/**
 * Reads a request's body as a JSON object.
 *
 * @throws ProblemError 415 for another media type, 413 for a body over {@link MAX_BODY}, 400 for what can't be read
 *   as an object
 */
export async function readObject(request: Request): Promise<Record<string, unknown>> {
  const [mediaType = ''] = (request.headers.get('content-type') ?? '').split(';');
  if (mediaType.trim().toLowerCase() !== 'application/json') {
    throw refusal('media_type_unsupported', 'The body must be JSON: Content-Type: application/json.');
  }
  const reading = readJson(await readBytes(request, MAX_BODY), 'null');
  if (!reading.ok) {
    const why: Partial<Record<JsonFault, string>> = {
      encoding: 'The body is not UTF-8.',
      duplicate: 'The body names a member twice.',
    };
    throw refusal('body_unreadable', why[reading.fault] ?? 'The body is not JSON.');
  }
  if (!isObject(reading.value)) throw refusal('body_unreadable', 'The body is not a JSON object.');
  return reading.value;
}

/** The largest form that is read, in bytes. */
export const MAX_FORM = 16_384;

/**
 * Reads a form (RFC 6749 Appendix B).
 *
 * @param most the largest that is read, in bytes
 * @throws ProblemError 415 for another media type, 413 for a larger body, 400 for a parameter given twice
 */
export async function readForm(request: Request, most: number = MAX_FORM): Promise<URLSearchParams> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/x-www-form-urlencoded') {
    throw refusal('media_type_unsupported', 'The body must be application/x-www-form-urlencoded.');
  }
  const bytes = await readBytes(request, most);
  return singleParameters(new URLSearchParams(new TextDecoder().decode(bytes)));
}

/** Refuses parameters that are given twice (RFC 6749 §3.1). @throws ProblemError 400 */
export function singleParameters(parameters: URLSearchParams): URLSearchParams {
  for (const name of parameters.keys()) {
    if (parameters.getAll(name).length > 1) {
      throw refusal('request_invalid', `The parameter ${name.slice(0, 40)} is given twice.`);
    }
  }
  return parameters;
}

/** Reads a body of at most `limit` bytes. @throws ProblemError 413, or 400 when it ends too early */
export async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  let body: CappedBytes;
  try {
    body = isDeclaredWithin(request, limit)
      ? await readAtOnce(request, limit)
      : await readUpTo(bodyOf(request), limit);
  } catch {
    throw refusal('body_unreadable', 'The body ended too early.');
  }
  if (body.whole) return body.bytes;
  throw refusal('body_too_large', `The body is larger than ${limit} bytes.`);
}

/** HTTP ends a body at its declared length (RFC 9112 §6.2): such a body can be read without counting its bytes. */
function isDeclaredWithin(request: Request, limit: number): boolean {
  const length = request.headers.get('content-length');
  return length !== null && /^[0-9]{1,15}$/.test(length) && Number(length) <= limit;
}

async function readAtOnce(request: Request, limit: number): Promise<CappedBytes> {
  const bytes = Buffer.from(await request.arrayBuffer());
  return { bytes, whole: bytes.byteLength <= limit };
}

/** The quality that a header such as `Accept` gives to a name, from 0 to 1; 0 where it does not have it (RFC 9110 §12.4.2). */
function qualityOf(name: string, header: string | null): number {
  for (const range of (header ?? '').split(',')) {
    const [type, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith('q='));
    if (type === name) return quality === undefined ? 1 : Number(quality.slice(2));
  }
  return 0;
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
