import { IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import { SECOND } from '../contract/durations.ts';
import { addressBlock, type ClientAddress, peerAddress } from './client-address.ts';
import { isHealthPath } from './health.ts';
import { isLoginPage, isProviderPath, OAUTH_METADATA_PATH } from './identity/attempt-limits.ts';
import type { IdentityProvider } from './identity/identity-provider.ts';
import { oauthReply } from './identity/provider-endpoints.ts';
import type { Log } from './log.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import { hostUnknown, type ProblemError, problemOf, refusal } from './problem-error.ts';
import { RateLimit } from './rate-limit.ts';
import { requestFault } from './request-form.ts';
import { addressOf } from './request-reading.ts';
import { problemIn } from './services.ts';
import { PAGE_HEADERS, pathOf, type Site } from './ui/page.ts';
import { refusalFor } from './ui/service-pages.ts';

/** Options of {@link createListener}. */
export interface ListenerOptions {
  /** Who serves the pages, and `{base_url}`, whose host is the only one that is answered. */
  site: Site;
  /** Portal, connectivity service and documentation. */
  fetch: (request: Request) => Promise<Response>;
  /** Built when it is first needed: it is slow to load. Undefined with an external identity provider. */
  identity?: () => Promise<IdentityProvider>;
  /** Default: the remote address of the connection. */
  clientAddress?: ClientAddress;
  log: Log;
  metrics?: Pick<ServerMetrics, 'requestBegan' | 'storeFailed'>;
}

/**
 * Puts the adapter's `Response` and `Request` in the place of the platform's, for a process that is a server and nothing
 * else. The platform makes a stream of every body, from which the adapter would read it back; in the adapter's own
 * `Response` a text stays a text, and goes to the socket in one piece with its headers. It takes an eighth off a booking.
 */
export function useLightResponses(): void {
  getRequestListener(() => new Response());
}

/**
 * All services on one socket: the identity provider's endpoints go to its library, its page to ours, and everything
 * else to the function of a Request. All of them accept the Host of the base address only (THREATS.md 32).
 */
export function createListener(options: ListenerOptions): RequestListener {
  const { site, fetch, identity, log, metrics, clientAddress = peerAddress } = options;
  const base = new URL(site.baseUrl);
  const prefix = pathOf(site);
  const auth = `${prefix}/auth`;
  const refusals = new RateLimit(PROMPT_REFUSALS, SECOND, () => performance.now());
  /**
   * Slows down an address that sends many wrong tokens, so that refusing them takes little of the server's time (THREATS.md
   * 47): its connections are limited, and each then carries four requests a second. Requests with right tokens are not
   * delayed, even from the same address, and count for nothing where they are refused.
   */
  const delayRefusal = async (address: string): Promise<void> => {
    const block = addressBlock(address);
    const isPrompt = refusals.wait(block) === 0;
    refusals.count(block);
    if (!isPrompt) await sleep(REFUSAL_DELAY_MS);
  };
  /** The path below the issuer, where the identity provider answers it. By RFC 8414 §3.1 the issuer's path comes last. */
  function identityPath(path: string): string | undefined {
    const isMetadata = path === OAUTH_METADATA_PATH + auth;
    if (!isMetadata && !path.startsWith(`${auth}/`)) return undefined;
    const below = isMetadata ? OAUTH_METADATA_PATH : path.slice(auth.length);
    return isLoginPage(below) || isProviderPath(below) ? below : undefined;
  }

  /** Answers and logs a request to the identity provider; `fetch` logs all others. Undefined where it has no such page. */
  async function answerIdentity(
    below: string,
    request: Request,
    incoming: IncomingMessage,
  ): Promise<Response | undefined> {
    const began = performance.now();
    const { method } = request;
    let reply: Response | undefined;
    try {
      reply = await (await identity?.())?.answers[below]?.(request, clientAddress(incoming));
    } catch (error) {
      reply = await refusalFor(request, oauthReply(problemOf(error, method, options), PAGE_HEADERS), site);
    }
    if (!reply) return undefined;
    const ms = Math.round(performance.now() - began);
    log('info', 'request', { method, path: addressOf(request).pathname, status: reply.status, ms });
    return reply;
  }

  const answer = getRequestListener(
    async (request, { incoming }) => {
      if (!(incoming instanceof IncomingMessage)) throw new TypeError('the server speaks HTTP/1.1 only');
      const below = identity && identityPath(addressOf(request).pathname);
      const reply = below === undefined ? undefined : await answerIdentity(below, request, incoming);
      if (reply) return reply;
      const response = await fetch(request);
      if (response.status === 403 && (await isGuess(response))) await delayRefusal(clientAddress(incoming));
      return response;
    },
    { overrideGlobalObjects: false, hostname: base.host },
  );

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fault = requestFault(request);
    if (fault !== undefined) throw refusal('request_invalid', fault);
    const { url = '/', headers } = request;
    const isOpen = (): boolean => url.startsWith(prefix) && isHealthPath(url.slice(prefix.length));
    if (headers.host?.toLowerCase() !== base.host && !isOpen()) {
      throw hostUnknown(base);
    }
    await answer(request, response);
  }

  return (request, response) => {
    readAbsoluteTarget(request);
    const ended = metrics?.requestBegan(request.method ?? '', request.url ?? '');
    if (ended) response.once('close', () => ended(response.headersSent ? response.statusCode : undefined));
    route(request, response).catch((error: unknown) =>
      refuse(request, response, problemOf(error, request.method ?? '', options), site),
    );
  };
}

/** Takes an absolute target apart: its host counts, and not the header's (RFC 9112 §3.2.2). */
function readAbsoluteTarget(request: IncomingMessage): void {
  const [, host, target = ''] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(request.url ?? '') ?? [];
  if (host === undefined) return;
  request.url = target.startsWith('/') ? target : `/${target}`;
  request.headers.host = host;
}

/** The part of a request that decides on the form of a refusal. */
function acceptedBy({ url = '', headers }: IncomingMessage, { baseUrl }: Site): Request {
  const address = new URL(baseUrl);
  // The setter takes any text, and the target of a refused request may be any.
  [address.pathname = ''] = url.split('?');
  return new Request(address, { headers: { accept: headers.accept ?? '' } });
}

/** Whether a refusal is of a token that does not verify, which may be a guess, and not of a missing right. */
async function isGuess(refused: Response): Promise<boolean> {
  const { code } = await problemIn(refused);
  return code === 'token_invalid' || code === 'token_expired';
}

/** Refuses in a form that browsers, our clients or OAuth's read, without waiting for the rest of the request. */
async function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  error: ProblemError,
  site: Site,
): Promise<void> {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const reply = await refusalFor(acceptedBy(request, site), oauthReply(error), site);
  if (!request.complete) response.setHeader('connection', 'close');
  response.writeHead(reply.status, Object.fromEntries(reply.headers));
  response.end(await reply.text());
}

/** Refusals that an address gets without delay, each second. */
const PROMPT_REFUSALS = 20;

/** The delay of each further refusal, in milliseconds. */
const REFUSAL_DELAY_MS = 250;
