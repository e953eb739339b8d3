import { createServer as createPlainServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { isLoopback, isProtected } from '../../src/client/loopback.ts';
import { createTransport, type TransportOptions } from '../../src/client/transport.ts';
import { OTHER_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY } from '../fixtures/certificates.ts';
import { failureOf } from '../fixtures/failures.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** The port that a server listens on. */
async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => server.close().closeAllConnections());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Sends a request to an address. @returns the reply's text */
async function asked(url: string, options: Partial<TransportOptions> = {}): Promise<string> {
  const transport = createTransport({
    origins: new Set([new URL(url).origin]),
    timeout: 5000,
    now: Date.now,
    random: () => 0,
    ...options,
  });
  cleanups.push(() => void transport.close());
  return (await transport.fetch(new Request(url))).text();
}

describe('whether an address leads to this machine alone', () => {
  test.each([
    'http://127.0.0.1:4280',
    'http://127.1',
    'http://127.255.255.254',
    'http://0x7f.1',
    'http://[::1]',
    'http://localhost',
    'http://LOCALHOST:80',
    'http://offline.localhost',
  ])('%s does', (address) => {
    expect(isLoopback(new URL(address))).toBe(true);
  });

  test.each([
    'http://0.0.0.0',
    'http://128.0.0.1',
    'http://127.0.0.1.example.invalid',
    'http://localhost.example.invalid',
    'http://notlocalhost',
    'http://[::2]',
    'http://10.0.0.1',
    'http://example.invalid',
    'http://127.0.0.1@example.invalid',
  ])('%s does not', (address) => {
    expect(isLoopback(new URL(address))).toBe(false);
  });
});

describe('row 5: what may be sent where', () => {
  test.each<[string, boolean, boolean]>([
    ['https://example.invalid', true, true],
    ['http://127.0.0.1', true, true],
    ['http://example.invalid', false, true],
    ['ftp://127.0.0.1', false, false],
    ['file:///etc/passwd', false, false],
    ['javascript:alert(1)', false, false],
  ])('%s: %s, with insecure %s', (address, strictly, insecurely) => {
    expect(isProtected(new URL(address))).toBe(strictly);
    expect(isProtected(new URL(address), false)).toBe(strictly);
    expect(isProtected(new URL(address), true)).toBe(insecurely);
  });

  test('plain http beyond loopback is usage, and nothing arrives', async () => {
    let arrived = 0;
    const port = await listening(
      createPlainServer((_, reply) => {
        arrived += 1;
        reply.end('there');
      }),
    );
    // This machine, by an address that is no loopback one.
    const url = `http://0.0.0.0:${port}/`;
    expect((await failureOf(() => asked(url))).code).toBe('usage');
    expect(arrived).toBe(0);
    expect(await asked(url, { insecure: true })).toBe('there');
    expect(arrived).toBe(1);
  });

  test('before its name is looked up', async () => {
    const failure = await failureOf(() => asked('http://example.invalid/'));
    expect(failure).toMatchObject({
      code: 'usage',
      message: 'http://example.invalid is not an https address.',
    });
  });
});

describe('certificates', () => {
  const serve = () =>
    listening(
      createTlsServer({ cert: SERVER_CERTIFICATE, key: SERVER_KEY }, (_, reply) => void reply.end('there')),
    );

  test('of a server that nobody vouches for are refused, and insecure changes nothing about it', async () => {
    const url = `https://127.0.0.1:${await serve()}/`;
    for (const insecure of [false, true]) {
      const failure = await failureOf(() => asked(url, { insecure }));
      expect(failure.code).toBe('network');
      expect(failure.facts.why).toMatch(/self-signed certificate/);
    }
  });

  test('are accepted where they are given', async () => {
    const url = `https://127.0.0.1:${await serve()}/`;
    expect(await asked(url, { certificates: SERVER_CERTIFICATE })).toBe('there');
    expect(await asked(url, { certificates: OTHER_CERTIFICATE + SERVER_CERTIFICATE })).toBe('there');
    expect((await failureOf(() => asked(url, { certificates: OTHER_CERTIFICATE }))).code).toBe('network');
  });

  test('are accepted through a proxy as well', async () => {
    const port = await serve();
    const tunnels: string[] = [];
    const proxy = createPlainServer();
    proxy.on('connect', ({ url = '' }, socket) => {
      tunnels.push(url);
      const there = connect(port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        there.pipe(socket).pipe(there);
      });
      for (const end of [socket, there]) end.on('error', () => there.destroy());
      cleanups.push(() => there.destroy());
    });
    process.env['HTTPS_PROXY'] = `http://127.0.0.1:${await listening(proxy)}`;
    cleanups.push(() => delete process.env['HTTPS_PROXY']);
    const url = `https://127.0.0.1:${port}/`;
    expect(await asked(url, { certificates: SERVER_CERTIFICATE })).toBe('there');
    expect(tunnels).toEqual([`127.0.0.1:${port}`]);
    expect((await failureOf(() => asked(url))).code).toBe('network');
  });
});
