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
import { type Changes, Failure } from '../contract/failure.ts';
import { systemReason } from '../contract/foreign-errors.ts';
import { loopbackAddress } from '../contract/loopback.ts';
import { PROBLEMS, type ProblemCode } from '../contract/problem-codes.ts';
import { problemBody } from '../contract/problems.ts';
import { addressBlock, type ClientAddress } from '../server/client-address.ts';
import type { Certificate } from './certificate.ts';

/** How much of a server one client, or all together, may use (THREATS.md 41, 47, 48). Times in milliseconds. */
export interface Limits {
  /** The limits that node:http enforces. */
  http: {
    /** From the connection, or the last reply on it, to the end of a request's headers. A TLS handshake gets as much. */
    headersTimeout: number;
    /** From the same start to the end of its body. */
    requestTimeout: number;
    /** How long a connection is kept without a request. */
    keepAliveTimeout: number;
    /** How often node:http checks these times. */
    connectionsCheckingInterval: number;
    /** All headers of a request together, in bytes. More is 431. */
    maxHeaderSize: number;
  };
  /** Lines of headers. More is 400. */
  headers: number;
  /**
   * From the end of a request's headers to the end of its reply, as the client has read it. A reply that goes on, such as a
   * stream of events, gets as much again while the client has read all that was sent.
   */
  exchangeTimeout: number;
  /** Requests on one connection, which is then closed, so that clients spread anew over several servers. */
  requestsPerConnection: number;
  /** Connections that are served at once. */
  connections: number;
  /** Connections beyond them whose first request is answered with 503; more are closed at once. */
  refusedConnections: number;
  /**
   * Connections of one address, or one /64 of IPv6, that are served at once; a tenth more are answered with 503, and more
   * still are closed without an answer. Behind a proxy: requests under way for one address that the proxy names; more get 503.
   */
  perAddress: number;
  /** Bytes of an answered request that are still taken in before its connection is closed. */
  rest: number;
  /** How long, after a drain, a connection that was opened before its end may still send its first request. */
  lateRequests: number;
  /** How long requests under way may take once the server is told to stop. */
  stopTimeout: number;
}

/** The limits of `serve`. The limits of a body are where it is read (`MAX_BODY`, `MAX_FORM`). */
export const HTTP_LIMITS: Limits = {
  http: {
    headersTimeout: 5000,
    requestTimeout: 30_000,
    keepAliveTimeout: 5000,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: 16_384,
  },
  headers: 100,
  exchangeTimeout: 60_000,
  requestsPerConnection: 1000,
  connections: 2000,
  refusedConnections: 100,
  perAddress: 100,
  rest: 1_048_576,
  lateRequests: 1000,
  stopTimeout: 6000,
};

/** An HTTP server, over http or https, with its limits. */
export interface HttpServer {
  /** Starts to listen; requests wait until there is a listener. @returns the port @throws the system's error */
  open(host: string, port: number): Promise<number>;
  /** Sets the listener that answers requests. */
  answerWith(listener: RequestListener): void;
  /** Takes another certificate for connections from now on; those that are open keep theirs. */
  renew(certificate: Certificate): void;
  /**
   * Closes each connection with its next reply, which says so (`Connection: close`), from now on. Idle connections stay
   * open: a balancer may be sending a request on one, and closing it would lose that request. The balancer closes them
   * itself, or the server does after `keepAliveTimeout`.
   */
  drain(): void;
  /**
   * Takes no new connection, finishes the requests under way, and ends what is not done in time. A new request on an open
   * connection is refused; after a drain it is answered for `lateRequests` more.
   */
  close(): Promise<void>;
}

/** What the platform would refuse without a body: a request without Host. */
const OWN_REFUSALS = { requireHostHeader: false } as const;

/** The oldest version of TLS that is spoken (RFC 9325 §3.1.1). */
const TLS = { minVersion: 'TLSv1.2' } as const;

/** The platform's server, with the limits that it enforces itself. */
function platformServer(certificate: Certificate | undefined, limits: Limits): Server | SecureServer {
  const server = certificate
    ? createSecureServer({
        ...limits.http,
        ...OWN_REFUSALS,
        ...TLS,
        ...certificate,
        handshakeTimeout: limits.http.headersTimeout,
      })
    : createServer({ ...limits.http, ...OWN_REFUSALS });
  server.maxRequestsPerSocket = limits.requestsPerConnection;
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
): HttpServer {
  const server = platformServer(certificate, limits);
  const sockets = new Set<Socket>();
  /** Sockets that can carry requests: over https, after the handshake. */
  const served = new Set<Socket>();
  const crowded = new WeakSet<Socket>();
  /** Sockets per address. Not counted behind a proxy, since all come from the proxy. */
  const [connected, ready] = [new Map<string, number>(), new Map<string, number>()];
  const requested = new Map<string, number>();
  const underWay = new Set<ServerResponse>();
  let [draining, closing, answering] = [false, false, false];
  /** Connections so far. */
  let accepted = 0;
  let listenWith: (listener: RequestListener) => void = () => undefined;
  const listener = new Promise<RequestListener>((resolve) => {
    listenWith = resolve;
  });

  server.on('connection', (socket: Socket) => {
    accepted += 1;
    keep(sockets, socket);
    if (forwarded) return;
    const most = limits.perAddress + Math.ceil(limits.perAddress / 10);
    if (countWhileOpen(connected, socket.remoteAddress, socket) >= most) socket.destroy();
  });
  server.on(certificate ? 'secureConnection' : 'connection', (socket: Socket) => {
    if (socket.destroyed) return;
    keep(served, socket);
    const before = forwarded ? 0 : countWhileOpen(ready, socket.remoteAddress, socket);
    if (sockets.size > limits.connections || before >= limits.perAddress) crowded.add(socket);
  });
  server.on('clientError', (error, socket) => {
    const isAnswered = [...underWay].some((response) => response.socket === socket && response.headersSent);
    // Over https, one that has no end of its handshake can't be answered.
    const isServed = (served as ReadonlySet<Duplex>).has(socket);
    if (isAnswered || !isServed || !socket.writable) socket.destroy();
    else refuseUnread(socket, { code: '', reason: '', ...error });
  });
  const take: RequestListener = (request, response) => {
    // What fails while one reply is written ends its connection, not the server.
    response.once('error', () => request.socket.destroy());
    if (draining) response.shouldKeepAlive = false;
    if (closing) return refuse(request, response, 'unavailable', 'This server is stopping.');
    if (crowded.has(request.socket))
      return refuse(request, response, 'unavailable', 'This server has too many clients.');
    const before = forwarded ? countWhileOpen(requested, forwarded(request), response) : 0;
    if (before >= limits.perAddress) {
      return refuse(request, response, 'unavailable', 'Too many requests of one address are under way.');
    }
    const fault = headFault(request, limits);
    if (fault) return refuse(request, response, 'request_invalid', ...fault);
    underWay.add(response);
    limitExchange(request, response, limits.exchangeTimeout);
    response.once('close', () => {
      underWay.delete(response);
      if (closing) server.closeIdleConnections();
      if (!request.complete) endSoon(request, limits.rest);
    });
    listener.then((answer) => response.destroyed || answer(request, response));
  };
  server.on('request', take);
  server.on('checkExpectation', take);

  return {
    open: (host, port) => listen(server, { host, port }),
    answerWith: (listener) => {
      answering = true;
      listenWith(listener);
    },
    renew: (renewed) => {
      if ('setSecureContext' in server) server.setSecureContext({ ...TLS, ...renewed });
    },
    drain() {
      draining = true;
      for (const response of underWay) response.shouldKeepAlive = false;
    },
    async close() {
      if (draining) await backlogTaken(() => accepted);
      // The close of an HTTP server would close connections that are yet to send their first request, from Node.js 26.4 on.
      const closed = new Promise((resolve) => TcpServer.prototype.close.call(server, resolve));
      if (draining) await firstRequestsSent(served, limits.lateRequests);
      closing = true;
      for (const response of underWay) response.shouldKeepAlive = false;
      // It listens no more; this ends its checks, and the connections that wait.
      server.close();
      for (const socket of served) if (socket.bytesRead === 0) socket.destroy();
      // Without a listener, requests under way are never answered.
      const timeout = answering ? limits.stopTimeout : 0;
      const forced = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, timeout);
      await closed;
      clearTimeout(forced);
    },
  };
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
  for (let turn = 0; turn < TURNS; turn += 1) {
    const before = accepted();
    await nextTurn();
    if (accepted() === before) return;
  }
}

/** Waits until something has come on each connection, or it has closed; `most` milliseconds at most. */
async function firstRequestsSent(sockets: ReadonlySet<Socket>, most: number): Promise<void> {
  const isAwaited = (socket: Socket): boolean => socket.bytesRead === 0 && !socket.destroyed;
  for (let left = most; left > 0 && [...sockets].some(isAwaited); left -= CHECK_EVERY)
    await sleep(CHECK_EVERY);
}

function keep(set: Set<Socket>, socket: Socket): void {
  set.add(socket);
  socket.once('close', () => set.delete(socket));
}

/** Counts what is open of an address, or of its /64. @returns how many there were before */
function countWhileOpen(
  counts: Map<string, number>,
  address: string | undefined,
  open: EventEmitter,
): number {
  const block = addressBlock(address ?? '');
  const before = counts.get(block) ?? 0;
  counts.set(block, before + 1);
  open.once('close', () => {
    const left = (counts.get(block) ?? 0) - 1;
    if (left > 0) counts.set(block, left);
    else counts.delete(block);
  });
  return before;
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

/** What is wrong with the headers of a request, if anything, and the status where it is not that of an invalid request. */
function headFault(
  { headers, httpVersion, rawHeaders }: IncomingMessage,
  limits: Limits,
): [msg: string, status?: number] | undefined {
  const { host, expect = '100-continue', 'transfer-encoding': coding = 'chunked' } = headers;
  if (!/^100-continue$/i.test(expect)) return ['The server can expect nothing but 100-continue.', 417];
  if (!/^chunked$/i.test(coding)) return ['The server knows no transfer coding but chunked.', 501];
  if (host === undefined && httpVersion === '1.1') return ['The request has no Host.'];
  const isTooMany = rawHeaders.length > 2 * limits.headers;
  return isTooMany ? [`The request has more than ${limits.headers} headers.`] : undefined;
}

/**
 * How long the rest of an answered request is read, in milliseconds. A connection that is closed with unread bytes can
 * lose the reply.
 */
const REST = 500;

/** How often the progress of what goes on at the end of connections is checked, in milliseconds. */
const CHECK_EVERY = 20;

/** Closes the connection of a request that was answered before it ended: at once when more than `rest` bytes came. */
function endSoon(request: IncomingMessage, rest: number): void {
  const { socket } = request;
  const most = socket.bytesRead + rest;
  let left = REST / CHECK_EVERY;
  const check = setInterval(() => {
    left -= 1;
    if (request.complete) clearInterval(check);
    else if (left <= 0 || socket.bytesRead > most) {
      clearInterval(check);
      socket.destroy();
    }
  }, CHECK_EVERY);
}

/** The status and the reason of a request that can't be read, by the platform's reason or code of the error; else 400. */
const UNREAD: Readonly<Record<string, readonly [status: number, msg: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers are too large.'],
  'Request has invalid `Transfer-Encoding`': [501, 'The server knows no transfer coding but chunked.'],
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

/**
 * Refuses a request without reading it, and closes the connection.
 *
 * @param status where it is not the code's own
 */
function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  code: ProblemCode,
  msg: string,
  status: number = PROBLEMS[code].status,
): void {
  const away = code === 'unavailable';
  response.writeHead(status, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    connection: 'close',
    ...(away ? { 'retry-after': '5' } : {}),
  });
  const body = problemBody([{ code, msg: away ? `${msg} Nothing was changed; try again.` : msg }]);
  const answer = (): void => {
    clearTimeout(patience);
    // Its end may come after the answer.
    if (!response.writableEnded) response.end(JSON.stringify(body));
  };
  const patience = setTimeout(answer, REST);
  request.once('end', answer).once('error', answer).resume();
}

/** Where to listen; port 0 is any that is free. */
export interface ListeningPlace {
  host: string;
  port: number;
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
