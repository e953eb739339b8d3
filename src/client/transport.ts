import { BlockList, isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher, EnvHttpProxyAgent, interceptors } from 'undici';
import { isLoopback, isProtected, UNPROTECTED } from '../contract/addresses.ts';
import { readUpTo } from '../contract/bounded.ts';
import { Failure } from '../contract/failure.ts';
import { errorCode, isMistake } from '../contract/foreign-errors.ts';
import { IDEMPOTENCY_KEY_HEADER } from '../contract/routes.ts';
import { inOneText } from '../contract/said.ts';
import {
  type Fetch,
  fetchOver,
  type Incoming,
  type Outgoing,
  type ReplyHeaders,
  type Send,
} from '../contract/sending.ts';
import { decoded, lookupLoopback } from '../tokens/loopback.ts';
import { MAX_REPLY, mistakeAt } from './exchange.ts';
import { saysNothingWasDone } from './reply-failure.ts';

/** How requests leave this machine. */
export interface TransportOptions {
  /** The profile's origins: tokens and bodies are sent to no other (THREATS.md 3). */
  origins: ReadonlySet<string>;
  /** How long to wait for a whole reply, in milliseconds; all attempts at one request together. */
  timeout: number;
  /** Certificates to trust besides the usual ones, in PEM. */
  certificates?: string;
  /** Lets plain http leave this machine (THREATS.md 5), and tokens over https when `unchecked`. Default false. */
  insecure?: boolean;
  /** Whether the environment tells Node not to check certificates (THREATS.md 61). Default false. */
  unchecked?: boolean;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** A number from 0 to 1, anew each time. */
  random: () => number;
}

/** A way over the network, in both forms, and how to close its connections. */
export interface NetworkTransport {
  send: Send;
  fetch: Fetch;
  close(): Promise<void>;
}

/** Errors that occur before the first byte is sent: the request can't have had an effect. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  ...['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'ERR_SSL_UNSUPPORTED_PROTOCOL'],
]);
/** What Node says where the connection ends in the middle of the handshake, without a code of its own. */
const NO_HANDSHAKE = 'before secure TLS connection was established';
/** Certificates whose authority is not known here (OpenSSL's names). Nothing was sent then either. */
const UNKNOWN_AUTHORITY = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
/** What Node says where no connection comes about, in words; a proxy's own address stays in it. */
const inWords = (reason: string): string =>
  reason
    .replace(/^ECONNREFUSED$/, 'Nothing listens there')
    .replace(/^connect ECONNREFUSED /, 'Nothing listens at ')
    .replace(/^getaddrinfo ENOTFOUND /, 'There is no host ');
const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT']);

/**
 * The one way to the network: no redirects, no token to another origin than the profile's, no reply over 1 MiB, a limit on
 * waiting, and the proxies that the environment names (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`). undici sends a GET again where
 * that may help; a change is sent again where the service says that it made none. Nothing that is sent to this machine's own
 * addresses goes to a proxy or to DNS (THREATS.md 46). With
 * `NODE_TLS_REJECT_UNAUTHORIZED=0` no token is sent over https unless the profile says `insecure`, and certificates are
 * still checked for requests without a token (THREATS.md 61).
 */
export function createTransport(options: TransportOptions): NetworkTransport {
  const { timeout, certificates, insecure = false, now, random } = options;
  const connect = {
    timeout: timeout * 0.9,
    // A command sends one request after the other, and HTTP/2 takes longer to load than they take.
    allowH2: false,
    // Node trusts no other certificates than those in `ca`, so the usual ones are added.
    ...(certificates === undefined ? {} : { ca: [...usualCertificates(), certificates] }),
    ...(insecure ? {} : { rejectUnauthorized: true }),
  };
  // The limit on a whole reply is set for each request. Connecting ends a little earlier, so that the error says so.
  const unlimited = { headersTimeout: 0, bodyTimeout: 0, allowH2: false };
  const near = new Agent({ ...unlimited, connect: { ...connect, lookup: lookupLoopback } });
  let far: Dispatcher | undefined;
  // Through a proxy, `connect` applies to neither end. Made on demand, so that an invalid proxy address does not stop
  // requests to loopback.
  const beyond = (): Dispatcher =>
    (far ??= new EnvHttpProxyAgent({
      ...{ ...unlimited, connect, requestTls: connect, proxyTls: connect },
      httpProxy: proxyFor('http')?.address,
      httpsProxy: proxyFor('https')?.address,
    }));
  /**
   * The pause before the next attempt, in milliseconds. It doubles each time. A random part keeps many clients from coming back
   * together.
   *
   * @param made how many attempts were made
   */
  const pauseBefore = (made: number): number => FIRST_PAUSE * 2 ** (made - 1) * (1 + random() / 2);

  /**
   * Sends a request until a reply begins: undici sends a GET again where that may help.
   *
   * @param sent counts how often it was sent
   */
  async function begin(request: Outgoing, signal: AbortSignal, sent: { times: number }) {
    const url = new URL(request.url);
    const { origin, pathname, search } = url;
    const way = isLoopback(url) || isInNoProxy(url) ? near : beyond();
    let isBegun = false;
    const counted: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
      sent.times += 1;
      return dispatch(options, handler);
    };
    const retry = interceptors.retry({
      throwOnError: false,
      retry(error, _, done) {
        const { statusCode, headers }: Error & { statusCode?: number; headers?: Record<string, string> } =
          error;
        const isPassing =
          statusCode === undefined
            ? PASSING_PROBLEMS.includes(errorCode(error))
            : PASSING_STATUS.includes(statusCode);
        const asked = Number(headers?.['retry-after'] ?? 0) * 1000;
        // A longer Retry-After is not waited for: then this reply is the answer. Of a reply that breaks off, undici would ask for
        // the rest, which may be of another reply.
        const isWorthIt = isPassing && asked < timeout / 4 && !isBegun && sent.times < MAX_ATTEMPTS;
        if (!isWorthIt || request.method !== 'GET') done(error);
        else setTimeout(done, Math.max(pauseBefore(sent.times), asked), null);
      },
    });
    const reply = await (request.isEndless ? way : way.compose(counted, retry)).request({
      origin,
      path: pathname + search,
      method: request.method as 'GET',
      headers: {
        // Without it a server may choose any coding (RFC 9110 §12.5.3).
        'accept-encoding': 'identity',
        ...request.headers,
        ...(request.cache ? { 'cache-control': request.cache } : {}),
      },
      body: request.body ?? null,
      signal,
    });
    isBegun = true;
    const headers = headersOf(reply.headers);
    const body = decoded(reply.body, headers.get('content-encoding'));
    return { status: reply.statusCode, headers, body };
  }

  const send: Send = async (request) => {
    checkAddress(request, options);
    const { method, isEndless } = request;
    const deadline = now() + timeout;
    // Who reads an endless reply limits how long it waits, and comes back by itself.
    const limit = isEndless ? undefined : AbortSignal.timeout(timeout);
    const signal = AbortSignal.any([request.signal, limit].filter((each) => each !== undefined));
    try {
      for (const sent = { times: 0 }; ; ) {
        const { status, headers, body } = await begin(request, signal, sent);
        if (isEndless) return { status, headers, body: ReadableStream.from(body) };
        const isLast = sent.times >= MAX_ATTEMPTS;
        // Of a reply that is too large, a part is passed on: enough for the reader to refuse it.
        const read = await readUpTo(body, MAX_REPLY).catch((cause: unknown) => {
          if (signal.aborted) throw cause;
          if (isLast || method !== 'GET') throw new Error('The reply breaks off', { cause });
        });
        const reply = read && ({ status, headers, body: [read.bytes] } as const);
        const least = pauseBefore(sent.times);
        const pause = reply ? pauseAfter(request, reply, least) : least;
        if (reply && (isLast || !(now() + pause < deadline))) return reply;
        await sleep(pause, undefined, { signal });
      }
    } catch (cause) {
      throw networkFailure(cause, request, limit?.aborted === true);
    }
  };

  return {
    send,
    fetch: fetchOver(send),
    // Open requests are aborted: their callers have ended.
    close: async () => {
      await Promise.all([near.destroy(), far?.destroy()]);
    },
  };
}

/** Whether `NO_PROXY` has this address, or a network that it is in, as for curl; a name is left to the agent. */
function isInNoProxy({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) === 0) return false;
  const direct = new BlockList();
  for (const entry of (process.env['no_proxy'] ?? process.env['NO_PROXY'] ?? '').split(/[,\s]+/)) {
    const [network = '', length] = entry.split('/');
    const [version, most] = isIP(network) === 4 ? (['ipv4', 32] as const) : (['ipv6', 128] as const);
    const bits = Number(length ?? most);
    if (isIP(network) > 0 && Number.isInteger(bits) && bits >= 0 && bits <= most && length !== '')
      direct.addSubnet(network, bits, version);
  }
  return direct.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6');
}

/** A proxy's host and port, with or without a user. */
const WITHOUT_SCHEME = /^(?:[^\s/]+@)?(?:[\w.-]+|\[[\da-f:.]+\]):\d{1,5}\/?$/i;

/**
 * The proxy that the environment names for addresses of a scheme, and the name of its variable. An empty address means no proxy.
 * A variable in lower case goes first, as with curl; `host:port` without a scheme is an http proxy, as with curl and wget.
 *
 * @throws Failure `usage` for an invalid address, which is not repeated, since it may hold a password
 */
function proxyFor(scheme: 'http' | 'https'): { variable: string; address: string } | undefined {
  const names = [`${scheme}_proxy`, `${scheme.toUpperCase()}_PROXY`];
  const variable = names.find((name) => process.env[name] !== undefined);
  const text = variable === undefined ? undefined : process.env[variable]?.trim();
  if (variable === undefined || text === undefined) return undefined;
  const address = WITHOUT_SCHEME.test(text) ? `http://${text}` : text;
  if (address === '' || (/^(?:https?|socks5?):\/\/[^\s]+$/i.test(address) && URL.canParse(address))) {
    return { variable, address };
  }
  throw new Failure('usage', `${variable} is not the address of a proxy.`, {
    why: 'It must look like http://proxy.example.org:3128, or proxy.example.org:3128.',
    fix: `unset ${variable}`,
  });
}

/** Why a proxy let nothing through: its status (RFC 9110 §9.3.6, §15.5.8). Undefined for other problems. */
function proxyRefusal(problem: unknown, { protocol }: URL): string | undefined {
  const message = problem instanceof Error ? problem.message : '';
  const [, status] = /^Proxy (?:response|Authentication Required) \((\d{3})\)/.exec(message) ?? [];
  if (status === undefined) return undefined;
  const https = protocol === 'https:' ? proxyFor('https') : undefined;
  const { variable = 'HTTPS_PROXY', address = '' } = https?.address ? https : (proxyFor('http') ?? {});
  const { host, username } = URL.canParse(address) ? new URL(address) : { host: 'HOST:PORT', username: '' };
  if (status !== '407')
    return `The proxy ${host} of ${variable} refused the connection with status ${status}.`;
  const wish = username === '' ? 'wants credentials' : 'does not accept these credentials';
  return `The proxy ${host} ${wish} (407). Put them into ${variable}, as http://USER:PASSWORD@${host}.`;
}

/** A reply whose body was read. */
interface WholeReply extends Incoming {
  readonly body: readonly [Uint8Array<ArrayBuffer>];
}

/**
 * How long to wait before a change is sent again, in milliseconds; NaN where it is not: a service that is not available says that
 * it has changed nothing, and when to ask again. Were it wrong, the change would still be made once: `PUT` and `DELETE` are the
 * same when they are repeated (RFC 9110 §9.2.2), and a `POST` needs its idempotency key.
 */
function pauseAfter({ method, headers }: Outgoing, reply: WholeReply, least: number): number {
  const isMadeOnce = method !== 'POST' || headers[IDEMPOTENCY_KEY_HEADER.toLowerCase()] !== undefined;
  const seconds = Number(reply.headers.get('retry-after') ?? Number.NaN);
  if (method === 'GET' || !isMadeOnce || !(seconds >= 0)) return Number.NaN;
  const text = new TextDecoder().decode(reply.body[0]);
  const isUndone = saysNothingWasDone({ status: reply.status, text });
  return isUndone ? Math.max(least, seconds * 1000) : Number.NaN;
}

function checkAddress(
  request: Outgoing,
  { origins, insecure = false, unchecked = false }: TransportOptions,
): void {
  const url = new URL(request.url);
  if (!isProtected(url, insecure)) {
    throw new Failure('usage', `${url.origin} is not an https address.`, { why: UNPROTECTED });
  }
  const isPublic = request.method === 'GET' && request.headers['authorization'] === undefined;
  if (isPublic) return;
  if (!origins.has(url.origin)) {
    throw new Failure('usage', `Nothing is sent to ${url.origin}.`, {
      why: "It is not one of the profile's addresses, so it must not receive a token.",
    });
  }
  if (url.protocol !== 'https:' || insecure || !unchecked) return;
  throw new Failure('usage', `No token is sent to ${url.origin} while certificates are not checked.`, {
    why: 'NODE_TLS_REJECT_UNAUTHORIZED=0 lets anyone on the way read and change what is sent. --ca-file trusts a certificate of your own; only a profile with insecure=true goes without.',
    fix: 'unset NODE_TLS_REJECT_UNAUTHORIZED',
  });
}

/** Node's own certificates, and what its flags add. Loaded on need: TLS takes as long to load as Node to start. */
const usualCertificates = (): string[] => process.getBuiltinModule('node:tls').getCACertificates('default');

/** The headers of a reply. A header that came several times is a list (RFC 9110 §5.3). */
function headersOf(received: Readonly<Record<string, string | string[] | undefined>>): ReplyHeaders {
  const headers = new Map(
    Object.entries(received).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, [value].flat().join(', ')]],
    ),
  );
  return {
    get: (name) => headers.get(name.toLowerCase()) ?? null,
    [Symbol.iterator]: () => headers.entries(),
  };
}

/** Why a server's TLS was refused, by the code of the error; undefined for other problems. */
function tlsRefusal(code: string): string | undefined {
  if (UNKNOWN_AUTHORITY.has(code))
    return `Its certificate is from an authority that is not known here (${code}). If that is right, name a file with the authority's certificate: --ca-file FILE, or caFile=FILE in the profile.`;
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    const state = code === 'CERT_HAS_EXPIRED' ? 'has expired' : 'is not valid yet';
    return `Its certificate ${state}, by this machine's clock. Is the clock right?`;
  }
  if (!code.startsWith('ERR_SSL_') || !NOT_SENT.has(code)) return undefined;
  return `It does not answer as an https server does (${code}). Is it an http address?`;
}

/** @param late whether the time limit for the reply was reached */
function networkFailure(cause: unknown, { method, signal, url }: Outgoing, late: boolean): unknown {
  if (cause instanceof Failure || signal?.aborted) return cause;
  if (isMistake(cause) && !late) return mistakeAt(method, cause);
  const target = new URL(url);
  const { origin } = target;
  const code = errorCode(cause);
  const refused = late ? undefined : (proxyRefusal(cause, target) ?? tlsRefusal(code));
  if (refused !== undefined) {
    return new Failure('network', `${origin} can't be reached.`, { why: refused, retryable: false, cause });
  }
  // A port of TLS closes the connection, or answers with what is not HTTP.
  const isCutShort =
    code === 'UND_ERR_SOCKET' || (cause instanceof Error && cause.name === 'HTTPParserError');
  const timedOut = late || TIMEOUTS.has(code);
  const isUnsent = NOT_SENT.has(code) || (cause instanceof Error && cause.message.includes(NO_HANDSHAKE));
  const maybeDone = !isUnsent && method !== 'GET';
  const reason = late
    ? 'The time limit was reached'
    : inWords(cause instanceof Error ? cause.message || code : String(cause));
  return new Failure(
    timedOut ? 'timeout' : 'network',
    timedOut ? `${origin} did not answer in time.` : `${origin} can't be reached.`,
    {
      why: inOneText(
        `${reason}.`,
        target.protocol === 'http:' && isCutShort ? 'Is it an https address?' : '',
        maybeDone ? 'The request may have taken effect.' : '',
      ),
      retryable: !maybeDone,
      ...(maybeDone ? { maybeDone } : {}),
      cause,
    },
  );
}

/** How often a request is sent at most. */
const MAX_ATTEMPTS = 3;
/** Pause before the second attempt, in milliseconds; doubled for each further one. */
const FIRST_PAUSE = 300;

/** Replies that say "later" (RFC 9110 §15.6, RFC 6585 §4). */
const PASSING_STATUS = [429, 502, 503, 504];

/**
 * Errors after which another attempt may succeed. A refused connection or an unknown name is not among them: another
 * attempt would give the same result, and people would wait for it.
 */
const PASSING_PROBLEMS = 'EAI_AGAIN ECONNRESET EPIPE ETIMEDOUT ENETDOWN ENETRESET UND_ERR_SOCKET'.split(' ');
