import type { EventEmitter } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import { type AddressInfo, type Socket, Server as TcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { loopbackAddress } from '../contract/addresses.ts';
import { type Changes, Failure } from '../contract/failure.ts';
import { systemReason } from '../contract/foreign-errors.ts';
import { problemBody } from '../contract/problems.ts';
import { addressBlock, type ClientAddress } from '../server/client-address.ts';
import { problemHeaders } from '../server/problem-error.ts';
import type { Certificate } from './certificate.ts';
import type { ListeningPlace } from './options.ts';

/**
 * The limits of `serve`: how much of a server one client, or all together, may use (THREATS.md 41, 47, 48). Times in
 * milliseconds. The limits of a body are where it is read (`MAX_BODY`, `MAX_FORM`).
 */
export const HTTP_LIMITS = {
  /** The limits that node:http enforces. */
  http: {
    /** From the connection, or the last reply on it, to the end of a request's headers. A TLS handshake gets as much. */
    headersTimeout: 5000,
    /** From the same start to the end of its body. */
    requestTimeout: 30_000,
    /** How long a connection is kept without a request. */
    keepAliveTimeout: 5000,
    /** How often node:http checks these times. */
    connectionsCheckingInterval: 1000,
    /** All headers of a request together, in bytes. More is 431. */
    maxHeaderSize: 16_384,
  },
  /** Lines of headers. More is 400. */
  headers: 100,
  /**
   * From the end of a request's headers to the end of its reply, as the client has read it. A reply that goes on, such as a
   * stream of events, gets as much again while the client has read all that was sent.
   */
  exchangeTimeout: 60_000,
  /** Connections that are served at once. */
  connections: 2000,
  /** Connections beyond them whose first request is answered with 503; more are closed at once. */
  refusedConnections: 100,
  /**
   * Connections of one address, or one /64 of IPv6, that are served at once; a tenth more are answered with 503, and more
   * still are closed without an answer. Behind a proxy: requests under way for one address that the proxy names; more get 503.
   */
  perAddress: 100,
  /** How long, after a drain, a connection that was opened before its end may still send its first request. */
  lateRequests: 1000,
  /** How long requests under way may take once the server is told to stop. */
  stopTimeout: 6000,
};

/** See {@link HTTP_LIMITS}. */
export type Limits = typeof HTTP_LIMITS;

/** An HTTP server, over http or https, with its limits. */
export type HttpServer = ReturnType<typeof createHttpServer>;

/** The oldest version of TLS that is spoken (RFC 9325 §3.1.1). */
const TLS = { minVersion: 'TLSv1.2' } as const;

/** The platform's server, with the limits that it enforces itself. */
function platformServer(certificate: Certificate | undefined, limits: Limits): Server | SecureServer {
  // A request without Host gets a refusal with a body, which the platform's own lacks.
  const options = { ...limits.http, requireHostHeader: false };
  const server = certificate
    ? createSecureServer({
        ...options,
        ...TLS,
        ...certificate,
        handshakeTimeout: limits.http.headersTimeout,
      })
    : createServer(options);
  server.maxConnections = limits.connections + limits.refusedConnections;
  return server;
}

/**
 * Makes an HTTP server, which does not listen yet.
 *
 * @param certificate speaks https with it; else http
 * @param forwarded the client's address of a request behind a proxy
 */
export function createHttpServer(
  certificate?: Certificate,
  limits: Limits = HTTP_LIMITS,
  forwarded?: ClientAddress,
) {
  const server = platformServer(certificate, limits);
  /** All connections, and the sockets that can carry requests: over https, after the handshake. */
  const [connections, sockets] = [new Set<Socket>(), new Set<Socket>()];
  const crowded = new WeakSet<Socket>();
  /** Per address: connections, or behind a proxy, from which all connections come, requests. */
  const open = new Map<string, number>();
  const underWay = new Set<ServerResponse>();
  let [draining, closing, answering] = [false, false, false];
  /** Connections so far. */
  let accepted = 0;
  const most = limits.perAddress + Math.ceil(limits.perAddress / 10);
  const listener = Promise.withResolvers<RequestListener>();

  server.on('connection', (socket: Socket) => {
    accepted += 1;
    keep(connections, socket);
    if (!forwarded && countWhileOpen(open, socket.remoteAddress, socket) > most) socket.destroy();
  });
  server.on(certificate ? 'secureConnection' : 'connection', (socket: Socket) => {
    if (socket.destroyed) return;
    keep(sockets, socket);
    const ofAddress = forwarded ? 0 : (open.get(addressBlock(socket.remoteAddress ?? '')) ?? 0);
    if (connections.size > limits.connections || ofAddress > limits.perAddress) crowded.add(socket);
  });
  server.on('clientError', (error, socket) => {
    const isAnswered = [...underWay].some((response) => response.socket === socket && response.headersSent);
    // Over https, one that has no end of its handshake can't be answered.
    const isServed = (sockets as ReadonlySet<Duplex>).has(socket);
    if (isAnswered || !isServed || !socket.writable) socket.destroy();
    else refuseUnread(socket, { code: '', reason: '', ...error });
  });

  /** Why a request is not answered at the moment. */
  function crowdFault(request: IncomingMessage, response: ServerResponse): string | undefined {
    if (closing) return 'This server is stopping.';
    if (crowded.has(request.socket)) return 'This server has too many clients.';
    const ofAddress = forwarded ? countWhileOpen(open, forwarded(request), response) : 0;
    return ofAddress > limits.perAddress ? 'Too many requests of one address are under way.' : undefined;
  }
  const take: RequestListener = (request, response) => {
    // What fails while one reply is written ends its connection, not the server.
    response.once('error', () => request.socket.destroy());
    if (draining) response.shouldKeepAlive = false;
    const crowd = crowdFault(request, response);
    const fault = crowd === undefined ? headFault(request, limits) : ([503, crowd] as const);
    if (fault) return refuse(request, response, ...fault);
    underWay.add(response);
    limitExchange(request, response, limits.exchangeTimeout);
    response.once('close', () => {
      underWay.delete(response);
      if (closing) server.closeIdleConnections();
      if (!request.complete) endSoon(request);
    });
    listener.promise.then((answer) => response.destroyed || answer(request, response));
  };
  server.on('request', take);
  server.on('checkExpectation', take);

  return {
    /** Starts to listen; requests wait until there is a listener. @returns the port @throws the system's error */
    open: (host: string, port: number): Promise<number> => listen(server, { host, port }),
    /** Sets the listener that answers requests. */
    answerWith(answer: RequestListener): void {
      answering = true;
      listener.resolve(answer);
    },
    /** Takes another certificate for connections from now on; those that are open keep theirs. */
    renew(renewed: Certificate): void {
      if ('setSecureContext' in server) server.setSecureContext({ ...TLS, ...renewed });
    },
    /**
     * Closes each connection with its next reply, which says so (`Connection: close`), from now on. Idle connections stay
     * open: a balancer may be sending a request on one, and closing it would lose that request. The balancer closes them
     * itself, or the server does after `keepAliveTimeout`.
     */
    drain(): void {
      draining = true;
      for (const response of underWay) response.shouldKeepAlive = false;
    },
    /**
     * Takes no new connection, finishes the requests under way, and ends what is not done in time. A new request on an open
     * connection is refused; after a drain it is answered for `lateRequests` more.
     */
    async close(): Promise<void> {
      if (draining) await backlogTaken(() => accepted);
      // The close of an HTTP server would close connections that are yet to send their first request, from Node.js 26.4 on.
      const closed = new Promise((resolve) => TcpServer.prototype.close.call(server, resolve));
      if (draining) await firstRequestsSent(sockets, limits.lateRequests);
      closing = true;
      for (const response of underWay) response.shouldKeepAlive = false;
      // It listens no more; this ends its checks, and the connections that wait.
      server.close();
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
      // Without a listener, requests under way are never answered.
      const timeout = answering ? limits.stopTimeout : 0;
      const forced = setTimeout(() => {
        for (const socket of connections) socket.destroy();
      }, timeout);
      await closed;
      clearTimeout(forced);
    },
  };
}

/** Keeps a socket in a set for as long as it is open. */
function keep(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
}

/**
 * Ends the connection of a request that was answered before its end: closed at once, a connection with unread bytes could lose
 * the reply. So the rest is read for {@link REST}, and {@link REST_BYTES} of it at most.
 */
function endSoon(request: IncomingMessage): void {
  const { socket } = request;
  const most = socket.bytesRead + REST_BYTES;
  let left = REST;
  const check = setInterval(() => {
    left -= CHECK_EVERY;
    if (left > 0 && socket.bytesRead < most && !request.complete) return;
    clearInterval(check);
    if (!request.complete) socket.destroy();
  }, CHECK_EVERY).unref();
}

/** How many turns of the event loop {@link backlogTaken} waits at most. */
const TURNS = 100;

/**
 * Waits until a turn of the event loop has accepted no connection. The system resets the connections that wait in the
 * backlog when the socket closes, with the requests that were sent on them.
 */
async function backlogTaken(accepted: () => number): Promise<void> {
  // The turn that goes on has asked the system before now.
  await nextTurn();
  for (let turn = 0, before = -1; turn < TURNS && accepted() !== before; turn += 1) {
    before = accepted();
    await nextTurn();
  }
}

/** Waits until something has come on each connection, or it has closed; `most` milliseconds at most. */
async function firstRequestsSent(sockets: ReadonlySet<Socket>, most: number): Promise<void> {
  const isAwaited = (socket: Socket): boolean => socket.bytesRead === 0 && !socket.destroyed;
  for (let left = most; left > 0 && [...sockets].some(isAwaited); left -= CHECK_EVERY)
    await sleep(CHECK_EVERY);
}

/** Counts what is open of an address, or of its /64. @returns how many there are now */
function countWhileOpen(counts: Map<string, number>, address = '', open: EventEmitter): number {
  const block = addressBlock(address);
  const now = (counts.get(block) ?? 0) + 1;
  counts.set(block, now);
  open.once('close', () => {
    const left = (counts.get(block) ?? 0) - 1;
    if (left > 0) counts.set(block, left);
    else counts.delete(block);
  });
  return now;
}

/** Ends the connection of a client that does not read its reply, which would stay in memory. @param most milliseconds */
function limitExchange({ socket }: IncomingMessage, response: ServerResponse, most: number): void {
  const deadline = setTimeout(() => {
    const isRead = response.headersSent && socket.writableLength === 0;
    if (isRead) deadline.refresh();
    else socket.destroy();
  }, most);
  response.once('close', () => clearTimeout(deadline));
}

/** What is wrong with the headers of a request, if anything. */
function headFault(
  { headers, httpVersion, rawHeaders }: IncomingMessage,
  limits: Limits,
): readonly [status: number, msg: string] | undefined {
  const { host, expect = '100-continue', 'transfer-encoding': coding = 'chunked' } = headers;
  if (!/^100-continue$/i.test(expect)) return [417, 'The server can expect nothing but 100-continue.'];
  if (!/^chunked$/i.test(coding)) return UNKNOWN_CODING;
  if (host === undefined && httpVersion === '1.1') return [400, 'The request has no Host.'];
  const isTooMany = rawHeaders.length > 2 * limits.headers;
  return isTooMany ? [400, `The request has more than ${limits.headers} headers.`] : undefined;
}

const UNKNOWN_CODING = [501, 'The server knows no transfer coding but chunked.'] as const;

/** How long the rest of a request that was answered or refused is read, in milliseconds. */
const REST = 500;
/** How many bytes of it. */
const REST_BYTES = 1_048_576;

/** How often {@link endSoon} and {@link firstRequestsSent} check, in milliseconds. */
const CHECK_EVERY = 20;

/** The status and the reason of a request that can't be read, by the platform's reason or code of the error; else 400. */
const UNREAD: Readonly<Record<string, readonly [status: number, msg: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers are too large.'],
  'Request has invalid `Transfer-Encoding`': UNKNOWN_CODING,
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not come to its end in time.'],
};

/** Refuses a request that is not HTTP, or whose end does not come, and closes the connection. */
function refuseUnread(socket: Duplex, { code, reason }: { code: string; reason: string }): void {
  const [status, msg] = UNREAD[reason] ?? UNREAD[code] ?? [400, 'The request is not HTTP/1.1.'];
  const body = JSON.stringify(problemBody([{ code: 'request_invalid', msg }]));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...['Content-Type: application/json', 'Cache-Control: no-store', 'Connection: close'],
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

/** Refuses a request, and closes the connection. Its rest is read first, within a time, since unread bytes can lose the reply. */
function refuse(request: IncomingMessage, response: ServerResponse, status: number, msg: string): void {
  const [code, said] =
    status === 503
      ? (['unavailable', `${msg} Nothing was changed; try again.`] as const)
      : (['request_invalid', msg] as const);
  response.writeHead(status, {
    'content-type': 'application/json',
    connection: 'close',
    ...problemHeaders(code),
  });
  const answer = (): void => {
    clearTimeout(patience);
    // Its end may come after the answer.
    if (!response.writableEnded) response.end(JSON.stringify(problemBody([{ code, msg: said }])));
  };
  const patience = setTimeout(answer, REST);
  request.once('end', answer).once('error', answer).resume();
}

/** The address of a place; its host may be an IPv6 address. */
export function addressOf(scheme: 'http' | 'https', { host, port }: ListeningPlace): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Opens a server's socket. @returns the port @throws the system's error */
export function listen(server: Server, { host, port }: ListeningPlace): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // A name below localhost is this machine's own, whatever DNS says (RFC 6761 §6.3).
    server.listen(port, loopbackAddress(host) ?? host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** The command that shows which program listens on a port. */
function ownerCommand(port: number): string {
  const { platform } = process;
  if (platform === 'linux') return `ss -ltnp 'sport = :${port}'`;
  return platform === 'win32' ? `netstat -ano | findstr :${port}` : `lsof -nP -iTCP:${port} -sTCP:LISTEN`;
}

/** The Failure for a place that can't be listened on. @param fix what to type when the port is taken */
export function listeningFailure(cause: unknown, { host, port }: ListeningPlace, fix: Changes): Failure {
  const taken = cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE';
  const message = taken ? `Port ${port} is taken.` : `${host}:${port} can't be listened on.`;
  const said = systemReason(cause);
  return new Failure('network', message, {
    why: taken ? `Another program listens there. This shows which one: ${ownerCommand(port)}` : said,
    fix,
    cause,
  });
}
