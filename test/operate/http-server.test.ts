import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectSecurely, type SecureVersion, type TLSSocket } from 'node:tls';
import * as v from 'valibot';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { ProblemBody } from '../../src/contract/problems.ts';
import type { Certificate } from '../../src/operate/certificate.ts';
import {
  createHttpServer,
  HTTP_LIMITS,
  type HttpServer,
  type Limits,
} from '../../src/operate/http-server.ts';
import { type ClientAddress, forwardedAddress } from '../../src/server/client-address.ts';
import {
  RENEWED_CERTIFICATE,
  RENEWED_KEY,
  SERVER_CERTIFICATE,
  SERVER_KEY,
} from '../fixtures/certificates.ts';
import { PATIENCE } from '../fixtures/patience.ts';

const CERTIFICATE: Certificate = { cert: Buffer.from(SERVER_CERTIFICATE), key: Buffer.from(SERVER_KEY) };
const RENEWED: Certificate = { cert: Buffer.from(RENEWED_CERTIFICATE), key: Buffer.from(RENEWED_KEY) };

const servers: HttpServer[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) await server.close();
});

/** Short limits. Each test shortens its own limit further. */
const SHORT = { ...HTTP_LIMITS, http: { ...HTTP_LIMITS.http, connectionsCheckingInterval: 20 } };

const greeting: RequestListener = (request, response) => {
  request.resume().once('end', () => response.end('hello'));
};

/** An HTTP server that listens, and its port. */
async function opened(
  limits: Partial<Limits> & { http?: Limits['http'] } = {},
  answer: RequestListener = greeting,
  certificate?: Certificate,
  forwarded?: ClientAddress,
): Promise<{ server: HttpServer; port: number }> {
  const server = createHttpServer(certificate, { ...SHORT, ...limits }, forwarded);
  servers.push(server);
  const port = await server.open('127.0.0.1', 0);
  server.answerWith(answer);
  return { server, port };
}

/** A client that records all received text. */
interface Client {
  socket: Socket;
  received: () => string;
  /** The number of replies that have begun. */
  replies: () => number;
  isClosed: () => boolean;
  closed: Promise<string>;
}

function follow(socket: Socket): Client {
  sockets.push(socket);
  let received = '';
  let isClosed = false;
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  socket.on('error', () => undefined);
  const closed = new Promise<string>((resolve) => {
    socket.once('close', () => {
      isClosed = true;
      resolve(received);
    });
  });
  const replies = (): number => received.split('HTTP/1.1 ').length - 1;
  return { socket, received: () => received, replies, isClosed: () => isClosed, closed };
}

async function dial(port: number, localAddress = '127.0.0.1'): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  const client = follow(socket);
  await once(socket, 'connect');
  return client;
}

async function dialSecurely(port: number, maxVersion?: SecureVersion): Promise<TLSSocket> {
  const socket = connectSecurely({
    port,
    host: '127.0.0.1',
    ca: [SERVER_CERTIFICATE, RENEWED_CERTIFICATE],
    ...(maxVersion === undefined ? {} : { minVersion: 'TLSv1', maxVersion, ciphers: 'DEFAULT@SECLEVEL=0' }),
  });
  sockets.push(socket);
  await once(socket, 'secureConnect');
  return socket;
}

const get = (...headers: readonly string[]): string =>
  ['GET / HTTP/1.1', 'Host: x', ...headers, '', ''].join('\r\n');
const upload = (length: number): string =>
  ['POST / HTTP/1.1', 'Host: x', `Content-Length: ${length}`, '', ''].join('\r\n');

/** The problem that a reply holds. */
function problemIn(reply: string): ProblemBody {
  const body = reply.split('\r\n\r\n').slice(1).join('');
  return v.parse(ProblemBody, JSON.parse(/\{.*\}/s.exec(body)?.[0] ?? ''));
}

test('row 46: a server on a name below localhost listens on this machine, with any DNS', async () => {
  const server = createHttpServer(undefined, SHORT);
  servers.push(server);
  const port = await server.open('no-server-knows-me.localhost', 0);
  server.answerWith(greeting);
  const client = await dial(port);
  client.socket.write(get('Connection: close'));
  expect(await client.closed).toMatch(/^HTTP\/1\.1 200 /);
});

const lines = (count: number): string[] => Array.from({ length: count }, (_, index) => `X-${index}: a`);
/** As many lines as there may be; Host and Connection are two more. */
const MOST_LINES = HTTP_LIMITS.headers - 2;

test.each<[string, string, number]>([
  ['as many bytes of headers as are taken', get(`X-Long: ${'a'.repeat(15_000)}`, 'Connection: close'), 200],
  ['as many lines of headers', get(...lines(MOST_LINES), 'Connection: close'), 200],
])('row 41: %s: %3$s', async (_, text, status) => {
  const { port } = await opened();
  const client = await dial(port);
  client.socket.write(text);
  expect(await client.closed).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
});

describe('row 41: a request is refused, with a body too where the platform refuses it', () => {
  const post = 'POST / HTTP/1.1\r\nHost: x\r\n';
  test.each<[string, string, number]>([
    ...[1, 50, 900].map((more): [string, string, number] => [
      `with ${more} lines of headers more, which are not silently dropped`,
      get(...lines(MOST_LINES + 1 + more)),
      400,
    ]),
    ['that is no HTTP', 'GARBAGE\r\n\r\n', 400],
    ['without a Host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['with large headers', get(`X-Long: ${'a'.repeat(20_000)}`), 431],
    ['with an expectation', `${post}Content-Length: 1\r\nExpect: foo\r\n\r\na`, 417],
    ...['gzip', 'gzip, chunked', 'identity', 'deflate'].map((coding): [string, string, number] => [
      `in the coding ${coding}`,
      `${post}Transfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`,
      501,
    ]),
    ['with two lengths', `${post}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
  ])('%s: %3$s', async (_, text, status) => {
    const seen = vi.fn(greeting);
    const { port } = await opened({}, seen);
    const client = await dial(port);
    client.socket.write(text);
    const reply = await client.closed;
    expect(reply).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(problemIn(reply)).toMatchObject({ code: 'request_invalid', detail: [{ loc: [] }] });
    expect(seen).not.toHaveBeenCalled();
  });

  test('a broken request behind one that is being answered closes the connection, and adds nothing to the reply', async () => {
    const { port } = await opened({}, (_, response) => void response.write('begun'));
    const client = await dial(port);
    client.socket.write(get());
    await vi.waitFor(() => expect(client.received()).toContain('begun'), PATIENCE);
    client.socket.write('GARBAGE\r\n\r\n');
    expect(await client.closed).not.toContain('request_invalid');
  });
});

describe('row 41: slow clients', () => {
  test.each([
    ['says nothing', ''],
    ['begins its headers', 'GET / HTTP/1.1\r\nHost: x\r\nX-A: '],
    ['sends its body very slowly', upload(1000)],
  ])('a client that %s is cut off', async (_, text) => {
    const { port } = await opened({ http: { ...SHORT.http, headersTimeout: 200, requestTimeout: 300 } });
    const client = await dial(port);
    client.socket.write(text);
    const dribble = setInterval(() => text !== '' && client.socket.write('a'), 20);
    expect(await client.closed).toMatch(/^HTTP\/1\.1 408 /);
    clearInterval(dribble);
  });

  test('a body that ends after its refusal, which waits behind an unread reply: the refusal comes, and the server goes on', async () => {
    const { port } = await opened({}, (_, response) => response.end(Buffer.alloc(16_000_000)));
    const client = await dial(port);
    client.socket.pause();
    client.socket.write(get() + get(...lines(MOST_LINES + 1), 'Content-Length: 1'));
    // Longer than the rest of a refused request is waited for.
    await sleep(800);
    client.socket.write('a');
    await sleep(50);
    client.socket.resume();
    expect((await client.closed).slice(-1000)).toMatch(/HTTP\/1\.1 400 [\s\S]*more than 100 headers/);
  });

  test.each(['POST', 'GET'])(
    'a client that keeps sending after the answer to its %s is cut off',
    async (method) => {
      const { port } = await opened({}, (_, response) => response.end('enough'));
      const client = await dial(port);
      client.socket.write(upload(1_000_000).replace('POST', method));
      const dribble = setInterval(() => client.socket.write('a'), 20);
      expect(await client.closed).toMatch(/^HTTP\/1\.1 200 [\s\S]*enough/);
      clearInterval(dribble);
    },
  );

  test('a client that sends the rest of an answered request keeps its connection', async () => {
    const { port } = await opened({}, (_, response) => response.end('enough'));
    const client = await dial(port);
    client.socket.write(upload(4));
    await vi.waitUntil(() => client.replies() === 1, PATIENCE);
    client.socket.write('rest');
    client.socket.write(get('Connection: close'));
    expect((await client.closed).match(/enough/g)).toHaveLength(2);
  });

  test('an idle client is disconnected', async () => {
    const { port } = await opened({ http: { ...SHORT.http, keepAliveTimeout: 100 } });
    const client = await dial(port);
    client.socket.write(get());
    expect(await client.closed).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('a client that does not read its reply is cut off, and its memory is freed', async () => {
    const piece = Buffer.alloc(1_048_576);
    const gone = vi.fn();
    const { port } = await opened({ exchangeTimeout: 300 }, (_request, response) => {
      response.once('close', gone);
      const pump = (): void => {
        while (response.write(piece));
        response.once('drain', pump);
      };
      pump();
    });
    const { socket } = await dial(port);
    socket.pause();
    socket.write(get());
    await vi.waitUntil(() => gone.mock.calls.length === 1, { timeout: PATIENCE });
  });

  test('a reply that goes on is not cut off while its client reads what comes', async () => {
    const { port } = await opened({ exchangeTimeout: 100 }, (_request, response) => {
      response.write('begun');
      setTimeout(() => response.end('ended'), 500);
    });
    const client = await dial(port);
    client.socket.write(get('Connection: close'));
    expect(await client.closed).toContain('ended');
  });

  test('a client without a TLS handshake is cut off', async () => {
    const limits = { http: { ...SHORT.http, headersTimeout: 200 } };
    const { port } = await opened(limits, greeting, CERTIFICATE);
    expect(await (await dial(port)).closed).not.toContain('HTTP');
  });
});

test.each<[string, Partial<Limits>, Certificate?]>([
  ['in all', { connections: 10, refusedConnections: 1 }],
  ['in all over TLS', { connections: 10, refusedConnections: 1 }, CERTIFICATE],
  ['row 48: of one address', { perAddress: 10 }],
  ['row 48: of one address over TLS', { perAddress: 10 }, CERTIFICATE],
])(
  'row 41: many connections: %s: connections above the limit get 503, further ones are closed, and there is room again later',
  async (_, limits, certificate) => {
    const { port } = await opened(limits, greeting, certificate);
    const reach = async () => (certificate ? follow(await dialSecurely(port)) : dial(port));
    const served: Client[] = [];
    for (let made = 0; made < 10; made += 1) served.push(await reach());
    const crowded = await reach();
    crowded.socket.write(`${upload(100_000)}${'a'.repeat(100_000)}`);
    const dropped = follow(connect(port, '127.0.0.1'));
    expect(await dropped.closed).toBe('');
    const reply = await crowded.closed;
    expect(reply).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: 5\r\n/i);
    expect(problemIn(reply)).toMatchObject({ code: 'unavailable' });
    for (const { socket } of served) socket.write(get());
    await vi.waitUntil(() => served.every(({ replies }) => replies() === 1), PATIENCE);
    served[0]?.socket.destroy();
    await vi.waitUntil(async () => {
      const next = await reach();
      next.socket.write(get('Connection: close'));
      return (await next.closed).startsWith('HTTP/1.1 200 ');
    }, PATIENCE);
  },
);

// On other platforms loopback is one address.
describe.runIf(process.platform === 'linux')('row 48: one address', () => {
  const OTHER = '127.0.0.2';

  test('1,200 connections with no bytes, half a head or half a body don’t stop the service of another address', async () => {
    // With such long limits only the number of connections closes one.
    const { port } = await opened({
      http: { ...SHORT.http, headersTimeout: 60_000, requestTimeout: 60_000 },
    });
    const halves = ['', 'GET / HTTP/1.1\r\nHost: x\r\nX-A: ', `${upload(1000)}half`];
    // More at once than the kernel's backlog would be retried only after seconds.
    const greedy: Client[] = [];
    while (greedy.length < 1200) {
      greedy.push(...(await Promise.all(Array.from({ length: 200 }, () => dial(port)))));
    }
    for (const [index, { socket }] of greedy.entries()) socket.write(halves[index % 3] ?? '');
    const left = () => greedy.filter(({ isClosed }) => !isClosed()).length;
    await vi.waitUntil(() => left() <= 110, PATIENCE);
    for (let asked = 0; asked < 3; asked += 1) {
      const honest = await dial(port, OTHER);
      honest.socket.write(get('Connection: close'));
      expect(await honest.closed).toMatch(/^HTTP\/1\.1 200 /);
    }
    expect(left()).toBeGreaterThanOrEqual(100);
  });

  test('behind a proxy the requests of each named address are counted, and the proxy’s own connections are not', async () => {
    const responses: ServerResponse[] = [];
    const hold: RequestListener = (request, response) => {
      request.resume();
      responses.push(response);
    };
    const { port } = await opened({ perAddress: 2 }, hold, undefined, forwardedAddress);
    const from = async (address: string): Promise<Client> => {
      const client = await dial(port);
      client.socket.write(get(`X-Forwarded-For: 198.51.100.9, ${address}`));
      return client;
    };
    const one = [await from('192.0.2.1'), await from('192.0.2.1')];
    await vi.waitUntil(() => responses.length === 2, PATIENCE);
    expect(await (await from('192.0.2.1')).closed).toMatch(/^HTTP\/1\.1 503 /);
    const others = [await from('192.0.2.2'), await from('2001:db8::1'), await from('2001:db8::2')];
    await vi.waitUntil(() => responses.length === 5, PATIENCE);
    expect(await (await from('2001:db8::3')).closed).toMatch(/^HTTP\/1\.1 503 /);
    for (const response of responses) response.end();
    await vi.waitUntil(() => [...one, ...others].every(({ replies }) => replies() === 1), PATIENCE);
    const again = await from('192.0.2.1');
    await vi.waitUntil(() => responses.length === 6, PATIENCE);
    responses[5]?.end();
    await vi.waitUntil(() => again.replies() === 1, PATIENCE);
  });
});

test('a client that sends much after its answer is cut off sooner than one that sends little', async () => {
  const { port } = await opened({}, (_, response) => response.end('enough'));
  const [much, little] = await Promise.all([dial(port), dial(port)]);
  little.socket.write(upload(100_000_000));
  await vi.waitUntil(() => little.replies() === 1, PATIENCE);
  much.socket.write(upload(100_000_000));
  const piece = Buffer.alloc(262_144);
  const more = (error?: Error | null): void => {
    if (!error && !much.isClosed()) much.socket.write(piece, more);
  };
  more();
  const first = await Promise.race([much.closed.then(() => 'much'), little.closed.then(() => 'little')]);
  // On a busy machine the time of both may be over.
  expect(first === 'much' || much.isClosed()).toBe(true);
  expect(await much.closed).toMatch(/^HTTP\/1\.1 200 /);
});

describe('row 41: a server that is told to stop', () => {
  test('before it could answer it waits for no handshake (THREATS.md 65)', async () => {
    const http = { ...HTTP_LIMITS.http, headersTimeout: 600_000, requestTimeout: 600_000 };
    const server = createHttpServer(CERTIFICATE, { ...HTTP_LIMITS, http });
    const { socket, closed } = await dial(await server.open('127.0.0.1', 0));
    await Promise.all([server.close(), closed]);
    expect(socket.destroyed).toBe(true);
  });

  /** An HTTP server whose requests are answered when the test says so. */
  async function held(limits: Partial<Limits> = {}) {
    const responses: ServerResponse[] = [];
    const { server, port } = await opened(limits, (request, response) => {
      request.resume();
      responses.push(response);
    });
    const client = await dial(port);
    client.socket.write(get());
    await vi.waitUntil(() => responses.length === 1, PATIENCE);
    return { server, port, client, responses };
  }

  test('finishes open requests, closes their connections, and accepts no new ones', async () => {
    const { server, port, client, responses } = await held();
    const stopped = server.close();
    const late = follow(connect(port, '127.0.0.1'));
    expect(await late.closed).toBe('');
    responses[0]?.end('done');
    expect(await client.closed).toMatch(/^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*done/i);
    await stopped;
  });

  test('refuses a request on an older connection', async () => {
    const { server, port, responses, client } = await held();
    const other = await dial(port);
    // Its request has begun, so it is not idle.
    other.socket.write('GET / HTTP/1.1\r\nHost: x\r\n');
    await vi.waitUntil(() => other.socket.bytesWritten > 0, PATIENCE);
    const third = await dial(port);
    third.socket.write(get());
    await vi.waitUntil(() => responses.length === 2, PATIENCE);
    const stopped = server.close();
    other.socket.write('\r\n');
    const reply = await other.closed;
    expect(reply).toMatch(/^HTTP\/1\.1 503 /);
    expect(problemIn(reply).detail[0]?.msg).toMatch(/stopping/);
    expect(responses).toHaveLength(2);
    for (const response of responses) response.end();
    await Promise.all([stopped, client.closed]);
  });

  test.each([
    ['http', undefined],
    ['https', CERTIFICATE],
  ])('does not wait for idle clients: %s', async (_, certificate) => {
    const { server, port } = await opened({ stopTimeout: 600_000 }, greeting, certificate);
    const silent = certificate ? follow(await dialSecurely(port)) : await dial(port);
    const kept = certificate ? follow(await dialSecurely(port)) : await dial(port);
    kept.socket.write(get());
    await vi.waitUntil(() => kept.replies() === 1, PATIENCE);
    await Promise.all([server.close(), silent.closed, kept.closed]);
  });

  test('while it drains, idle connections stay open, and each reply says that its connection closes', async () => {
    const { server, port, client, responses } = await held();
    const idle = await dial(port);
    idle.socket.write(get());
    await vi.waitUntil(() => responses.length === 2, PATIENCE);
    responses[1]?.end('first');
    await vi.waitUntil(() => idle.replies() === 1, PATIENCE);
    server.drain();
    const late = await dial(port);
    for (const { socket } of [idle, late]) socket.write(get());
    await vi.waitUntil(() => responses.length === 4, PATIENCE);
    for (const response of responses) response.end('done');
    for (const each of [client, idle, late]) {
      expect(await each.closed).toMatch(/connection: close\r\n[\s\S]*done[\s\S]*$/i);
    }
    expect(idle.received()).not.toMatch(/connection: close[\s\S]*first/i);
  });

  test('after a drain, a connection from before may still send its request', async () => {
    const { server, port } = await opened({ lateRequests: 60_000 });
    const opening = await dial(port);
    server.drain();
    const stopped = server.close();
    const came = () => dial(port).then(({ socket }) => socket.destroy());
    await vi.waitFor(() => expect(came()).rejects.toThrow(), PATIENCE);
    opening.socket.write(get());
    expect(await opening.closed).toMatch(/^HTTP\/1\.1 200 /);
    await stopped;
  });

  test('after a drain, a connection without a request is not waited for long', async () => {
    const { server, port } = await opened({ lateRequests: 50 });
    const silent = await dial(port);
    server.drain();
    await Promise.all([server.close(), silent.closed]);
  });

  test('ends requests that take too long', async () => {
    const { server, client } = await held({ stopTimeout: 200 });
    await server.close();
    expect(await client.closed).toBe('');
  });

  test('does not wait for requests without a listener', async () => {
    const server = createHttpServer(undefined, { ...SHORT, stopTimeout: 600_000 });
    const client = await dial(await server.open('127.0.0.1', 0));
    client.socket.write(get());
    await vi.waitUntil(() => client.socket.bytesWritten > 0, PATIENCE);
    await server.close();
    expect(await client.closed).toBe('');
  });
});

describe('over TLS', () => {
  test.each<[SecureVersion, boolean]>([
    ['TLSv1.3', true],
    ['TLSv1.2', true],
    ['TLSv1.1', false],
    ['TLSv1', false],
  ])('%s: %s', async (version, taken) => {
    const { port } = await opened({}, greeting, CERTIFICATE);
    const outcome = dialSecurely(port, version).then(
      (socket) => socket.getProtocol() === version,
      () => false,
    );
    expect(await outcome).toBe(taken);
  });

  test('a renewed certificate is used for new connections, and open ones stay open', async () => {
    const { server, port } = await opened({}, greeting, CERTIFICATE);
    const names = (socket: TLSSocket): unknown => socket.getPeerCertificate().subject.CN;
    const before = await dialSecurely(port);
    expect(names(before)).toBe('slices-conn test one');
    server.renew(RENEWED);
    const after = await dialSecurely(port);
    expect(names(after)).toBe('slices-conn test renewed');
    const open = follow(before);
    before.write(get('Connection: close'));
    expect(await open.closed).toMatch(/^HTTP\/1\.1 200 /);
    // The limit on versions still holds.
    await expect(dialSecurely(port, 'TLSv1.1')).rejects.toThrow();
  });
});
