import { getCACertificates } from 'node:tls';
import { EnvHttpProxyAgent } from 'undici';
import { readUpTo } from '../contract/capped-bytes.ts';
import { Failure } from '../contract/failure.ts';
import { type Fetch, MAX_REPLY } from './exchange.ts';
import { isProtected, UNPROTECTED } from './loopback.ts';

/** How requests leave this machine. */
export interface TransportOptions {
  /** The only origins that a token or a body is sent to: those of the profile (HOSTILE.md 3). */
  origins: ReadonlySet<string>;
  /** How long to wait for a reply and between its parts, in milliseconds. */
  timeout: number;
  /** Certificates to trust besides the usual ones, in PEM. */
  certificates?: string;
  /** Lets plain http leave this machine (HOSTILE.md 5). Certificates are checked all the same. Default false. */
  insecure?: boolean;
}

/** A way out, and how to close it. */
export interface Transport {
  fetch: Fetch;
  close(): Promise<void>;
}

/** Problems from before the first byte was sent: the request has had no effect for certain. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);

/**
 * The one way to the network: no redirects, no token to another origin than the profile's, no reply over 1 MiB, a limit on waiting, and
 * the proxies that the environment names (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`).
 */
export function createTransport(options: TransportOptions): Transport {
  const { origins, timeout, certificates, insecure = false } = options;
  // Given any, Node trusts those alone: the usual ones have to be among them.
  const ca = certificates === undefined ? {} : { ca: [...getCACertificates('default'), certificates] };
  const dispatcher = new EnvHttpProxyAgent({
    headersTimeout: timeout,
    bodyTimeout: timeout,
    connect: { timeout, ...ca },
    // Through a proxy, `connect` concerns neither end.
    requestTls: { timeout, ...ca },
    proxyTls: { timeout, ...ca },
  });
  return {
    async fetch(request) {
      const { origin, pathname, search } = new URL(request.url);
      checkAddress(request, origins, insecure);
      try {
        const reply = await dispatcher.request({
          origin,
          path: pathname + search,
          method: request.method as 'GET',
          headers: Object.fromEntries(request.headers),
          body: request.body ? Buffer.from(await request.arrayBuffer()) : null,
          signal: request.signal,
        });
        // What is too large is handed on as far as it was read: enough for the reader to refuse it.
        const { bytes: body } = await readUpTo(reply.body, MAX_REPLY);
        return new Response([204, 205, 304].includes(reply.statusCode) ? null : body, {
          status: reply.statusCode,
          headers: headersOf(reply.headers),
        });
      } catch (cause) {
        throw networkFailure(cause, origin, request);
      }
    },
    // Nobody waits any more for an answer that is still due.
    close: () => dispatcher.destroy(),
  };
}

function checkAddress(request: Request, origins: ReadonlySet<string>, insecure: boolean): void {
  const url = new URL(request.url);
  if (!isProtected(url, insecure)) {
    throw new Failure('usage', `${url.origin} is not an https address.`, { why: UNPROTECTED });
  }
  const isPublic = request.method === 'GET' && !request.headers.has('authorization');
  if (isPublic || origins.has(url.origin)) return;
  throw new Failure('usage', `Nothing is sent to ${url.origin}.`, {
    why: "It is none of the profile's addresses, so it must not see a token.",
  });
}

function headersOf(found: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(found)) {
    for (const item of value === undefined ? [] : [value].flat()) headers.append(name, item);
  }
  return headers;
}

function networkFailure(cause: unknown, origin: string, { method, signal }: Request): unknown {
  if (cause instanceof Failure || signal.aborted) return cause;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const sent = !NOT_SENT.has(code);
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new Failure(
    TIMEOUTS.has(code) ? 'timeout' : 'network',
    TIMEOUTS.has(code) ? `${origin} did not answer in time.` : `${origin} can't be reached.`,
    {
      why: sent && method !== 'GET' ? `${reason}. The request may have taken effect.` : `${reason}.`,
      retryable: !sent || method === 'GET',
      cause,
    },
  );
}
