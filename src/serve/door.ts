import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { PROBLEM_STATUS, type ProblemCode, problemBody } from '../contract/problems.ts';
import type { Certificate } from './certificate.ts';
import { LIMITS, type Limits } from './limits.ts';
import { listen } from './listening.ts';

/** The socket of a server, over http or https, with its limits. */
export interface Door {
  /** Starts to listen; requests wait until there is a listener. @returns the port @throws what the system says */
  open(host: string, port: number): Promise<number>;
  /** What answers. */
  answerWith(listener: RequestListener): void;
  /** Takes another certificate for connections from now on; those that are open keep theirs. */
  renew(certificate: Certificate): void;
  /** Takes no new request, finishes those under way, and ends what is not done in time. */
  close(): Promise<void>;
}

/** The oldest version of TLS that is spoken (RFC 9325 §3.1.1). */
const TLS = { minVersion: 'TLSv1.2' } as const;

/**
 * Makes the door of a server, closed.
 *
 * @param certificate speaks https with it; else http
 */
export function createDoor(certificate?: Certificate, limits: Limits = LIMITS): Door {
  const server = certificate
    ? createSecureServer({
        ...limits.http,
        ...TLS,
        ...certificate,
        handshakeTimeout: limits.http.headersTimeout,
      })
    : createServer(limits.http);
  server.maxRequestsPerSocket = limits.requestsPerConnection;
  server.maxConnections = limits.connections + limits.refusedConnections;

  const sockets = new Set<Socket>();
  /** Those that requests may come from: over https, they have shaken hands. */
  const served = new Set<Socket>();
  const crowded = new WeakSet<Socket>();
  const underWay = new Set<ServerResponse>();
  let closing = false;
  let answering = false;
  let ready: (listener: RequestListener) => void = () => undefined;
  const listener = new Promise<RequestListener>((resolve) => {
    ready = resolve;
  });

  server.on('connection', (socket: Socket) => keep(sockets, socket));
  server.on(certificate ? 'secureConnection' : 'connection', (socket: Socket) => {
    keep(served, socket);
    if (sockets.size > limits.connections) crowded.add(socket);
  });
  server.on('request', (request, response) => {
    if (closing) return refuse(request, response, 'unavailable', 'This server is stopping.');
    if (crowded.has(request.socket))
      return refuse(request, response, 'unavailable', 'This server has too many clients.');
    if (request.rawHeaders.length > 2 * limits.headers) {
      return refuse(
        request,
        response,
        'request_invalid',
        `The request has more than ${limits.headers} headers.`,
      );
    }
    underWay.add(response);
    // A client that does not read its reply would hold it, and what it is made of.
    const deadline = setTimeout(() => request.socket.destroy(), limits.exchangeTimeout);
    response.once('close', () => {
      clearTimeout(deadline);
      underWay.delete(response);
      if (closing) server.closeIdleConnections();
      if (!request.complete) endSoon(request);
    });
    listener.then((answer) => answer(request, response));
  });

  return {
    open: (host, port) => listen(server, { host, port }),
    answerWith: (listener) => {
      answering = true;
      ready(listener);
    },
    renew: (renewed) => {
      if (isSecure(server)) server.setSecureContext({ ...TLS, ...renewed });
    },
    async close() {
      closing = true;
      const closed = new Promise((resolve) => server.close(resolve));
      for (const response of underWay) response.shouldKeepAlive = false;
      server.closeIdleConnections();
      for (const socket of served) if (socket.bytesRead === 0) socket.destroy();
      // Without a listener, nothing under way will ever be done.
      const patience = answering ? limits.stopTimeout : 0;
      const impatience = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, patience);
      await closed;
      clearTimeout(impatience);
    },
  };
}

function keep(set: Set<Socket>, socket: Socket): void {
  set.add(socket);
  socket.once('close', () => set.delete(socket));
}

function isSecure(server: Server | SecureServer): server is SecureServer {
  return 'setSecureContext' in server;
}

/** How long the rest of an answered request is taken in, in milliseconds, lest the reply be lost with the connection. */
const REST = 500;

/** Ends the connection of a request that was answered and goes on. */
function endSoon(request: IncomingMessage): void {
  setTimeout(() => {
    if (!request.complete) request.socket.destroy();
  }, REST);
}

/** Refuses before anything is looked at; the client may come again on another connection. */
function refuse(request: IncomingMessage, response: ServerResponse, code: ProblemCode, msg: string): void {
  const away = code === 'unavailable';
  response.writeHead(PROBLEM_STATUS[code], {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    connection: 'close',
    ...(away ? { 'retry-after': '5' } : {}),
  });
  const body = problemBody([{ code, msg: away ? `${msg} Nothing was changed; try again.` : msg }]);
  const answer = (): void => {
    clearTimeout(patience);
    response.end(JSON.stringify(body));
  };
  const patience = setTimeout(answer, REST);
  request.once('end', answer).once('error', answer).resume();
}
