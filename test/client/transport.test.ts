import { createServer as createPlainServer, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, createServer as createTcpServer } from 'node:net';
import { deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { MAX_REPLY } from '../../src/client/exchange.ts';
import { createTransport, type TransportOptions } from '../../src/client/transport.ts';
import { isLoopback, isProtected, loopbackAddress } from '../../src/contract/addresses.ts';
import { PROBLEMS, type ProblemCode } from '../../src/contract/problems.ts';
import { fetchDirectly } from '../../src/tokens/loopback.ts';
import {
  DISTANT_CERTIFICATE,
  DISTANT_KEY,
  EARLY_CERTIFICATE,
  EXPIRED_CERTIFICATE,
  OTHER_CERTIFICATE,
  SERVER_CERTIFICATE,
  SERVER_KEY,
} from '../fixtures/certificates.ts';
import { failureOf } from '../fixtures/failures.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
  vi.unstubAllEnvs();
});

/** The port that a server listens on. */
async function listening(server: Server, host = '127.0.0.1'): Promise<number> {
  cleanups.push(() => server.close().closeAllConnections());
  return listenOnLoopback(server, host);
}

/** A transport to the origin of an address. */
function transportTo(url: string, options: Partial<TransportOptions> = {}) {
  const transport = createTransport({
    origins: new Set([new URL(url).origin]),
    ...{ timeout: 5000, now: Date.now, random: () => 0 },
    ...options,
  });
  cleanups.push(() => void transport.close());
  return transport;
}

/** Sends a request to an address. @returns the reply's text */
const asked = async (url: string, options: Partial<TransportOptions> = {}, init: RequestInit = {}) =>
  (await transportTo(url, options).fetch(new Request(url, init))).text();

const OURS = [
  ...['http://127.0.0.1:4280', 'http://127.1', 'http://127.255.255.254', 'http://0x7f.1', 'http://[::1]'],
  ...['http://localhost', 'http://LOCALHOST:80', 'http://offline.localhost', 'http://localhost.'],
  ...['http://[::ffff:127.0.0.1]', 'http://[::ffff:7fab:1]'],
];
const OTHERS = [
  ...['http://0.0.0.0', 'http://128.0.0.1', 'http://127.0.0.1.example.invalid', 'http://[::2]'],
  ...['http://localhost.example.invalid', 'http://notlocalhost', 'http://10.0.0.1', 'http://[::7f00:1]'],
  ...['http://example.invalid', 'http://127.0.0.1@example.invalid', 'http://[::ffff:128.0.0.1]'],
];
test.each([...OURS, ...OTHERS])('whether %s leads to this machine alone', (address) => {
  expect(isLoopback(new URL(address))).toBe(OURS.includes(address));
});

describe.each([
  ['gzip', gzipSync],
  ['X-GZIP', gzipSync],
  ['deflate', deflateSync],
  ['identity', (text: Buffer) => text],
] as const)('a server that answers in the coding %s, whatever it was asked', (coding, code) => {
  const serve = async (text: Buffer) => {
    const asked: unknown[] = [];
    const server = createPlainServer(({ headers }, reply) => {
      asked.push(headers['accept-encoding']);
      reply.setHeader('content-encoding', coding).end(code(text));
    });
    return { asked, url: `http://127.0.0.1:${await listening(server)}/` };
  };
  const ways: [string, (url: string) => Promise<string>][] = [
    ['the transport', asked],
    ['the fetch of key sets', async (url) => (await fetchDirectly(new Request(url))).text()],
  ];

  test.each(ways)('is read by %s, which asks for none', async (_, ask) => {
    const { asked: codings, url } = await serve(Buffer.from('{"issuer":"ü"}'));
    expect(await ask(url)).toBe('{"issuer":"ü"}');
    expect(codings).toEqual(['identity']);
  });

  test('is read up to the limit of a reply', async () => {
    const { url } = await serve(Buffer.alloc(64 * MAX_REPLY, ' '));
    const text = await asked(url);
    expect([text.length > MAX_REPLY, text.length < 2 * MAX_REPLY]).toEqual([true, true]);
  });
});

test('a request past the caches says so', async () => {
  const port = await listening(
    createPlainServer(({ headers }, reply) => void reply.end(headers['cache-control'] ?? 'nothing')),
  );
  const url = `http://127.0.0.1:${port}/`;
  expect(await asked(url)).toBe('nothing');
  expect(await asked(url, {}, { cache: 'no-cache' })).toBe('no-cache');
});

describe('the base address of a host to listen on', () => {
  test.each([
    ['localhost', '127.0.0.1'],
    ['Name.LocalHost', '127.0.0.1'],
    ['127.1', '127.0.0.1'],
    ['127.9.9.9', '127.9.9.9'],
    ['::1', '::1'],
    ['[::1]', '::1'],
    ['0.0.0.0', undefined],
    ['::', undefined],
    ['example.invalid', undefined],
    ['x@localhost', undefined],
    ['', undefined],
  ])('%j: %s', (host, address) => {
    expect(loopbackAddress(host)).toBe(address);
  });
});

const TARGET = 'https://service.example.invalid/';
const PROXY_VARIABLES = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'NO_PROXY', 'no_proxy'];

describe('row 55: a proxy in the environment that is not an address', () => {
  test.each([
    ...['not a url', 'nonsense', 'proxy.example.org:3128:1', 'http://user:pass word@'],
    'ftp://proxy.example.org',
  ])('%j is a usage error, and the message does not repeat it', async (proxy) => {
    for (const name of PROXY_VARIABLES) vi.stubEnv(name, undefined);
    vi.stubEnv('HTTPS_PROXY', proxy);
    const failure = await failureOf(() => asked(TARGET));
    expect(failure).toMatchObject({
      code: 'usage',
      message: 'HTTPS_PROXY is not the address of a proxy.',
      facts: { fix: 'unset HTTPS_PROXY' },
    });
    expect(`${failure.message} ${failure.facts.why}`).not.toContain(proxy);
  });
});

const WANTS = 'The proxy HOST wants credentials (407). Put them into';
const DENIES = 'The proxy HOST does not accept these credentials (407).';
test.each<[variable: string, before: string, status: number, url: string, why: string]>([
  ['HTTPS_PROXY', '', 407, TARGET, `${WANTS} HTTPS_PROXY, as http://USER:PASSWORD@HOST.`],
  ['HTTP_PROXY', '', 407, TARGET, `${WANTS} HTTP_PROXY,`],
  ['HTTP_PROXY', '', 407, 'http://service.example.invalid/', `${WANTS} HTTP_PROXY,`],
  ['https_proxy', 'user:canary@', 407, TARGET, DENIES],
  ['https_proxy', 'http://user:canary@', 407, TARGET, DENIES],
  ['HTTPS_PROXY', '', 403, TARGET, 'The proxy HOST of HTTPS_PROXY refused the connection with status 403.'],
])(
  'a proxy of %s, as %jHOST, that answers %i: nothing was sent, and why',
  async (variable, before, status, url, why) => {
    const proxy = createPlainServer((_, reply) => void reply.writeHead(status).end());
    proxy.on('connect', (_, socket) => socket.end(`HTTP/1.1 ${status} Refused\r\n\r\n`));
    for (const name of PROXY_VARIABLES) vi.stubEnv(name, undefined);
    const host = `127.0.0.1:${await listening(proxy)}`;
    vi.stubEnv(variable, before + host);
    for (const method of ['GET', 'POST']) {
      const { code, facts } = await failureOf(() => asked(url, { insecure: true }, { method }));
      expect([code, facts.retryable, facts.maybeDone ?? false]).toEqual(['network', false, false]);
      expect(facts.why).toContain(why.replaceAll('HOST', host));
      expect(facts.why).not.toContain('canary');
    }
  },
);

describe('row 46: requests to this machine', () => {
  /** Records the requests to the environment's proxy, and answers them itself. */
  async function proxied(): Promise<string[]> {
    const seen: string[] = [];
    const proxy = createPlainServer(({ url = '' }, reply) => {
      seen.push(url);
      reply.end('from the proxy');
    });
    proxy.on('connect', ({ url = '' }, socket) => {
      seen.push(url);
      socket.destroy();
    });
    const address = `http://127.0.0.1:${await listening(proxy)}`;
    for (const name of PROXY_VARIABLES) {
      vi.stubEnv(name, name.toLowerCase() === 'no_proxy' ? 'example.invalid' : address);
    }
    return seen;
  }

  test.each([
    ...['127.0.0.1', '127.0.0.7', 'localhost', 'LOCALHOST.', 'name-that-no-server-knows.localhost'],
    ...['a.b.localhost', '[::1]', '[::ffff:127.0.0.1]'],
  ])('a request to %s goes there directly, without proxy and DNS', async (host) => {
    const seen = await proxied();
    const port = await listening(
      createPlainServer((request, reply) => void reply.end(request.headers.host)),
      '::',
    );
    const url = new URL(`http://${host}:${port}/`);
    expect(await asked(url.href)).toBe(url.host);
    await expect(asked(`https://${host}:${port}/`)).rejects.toMatchObject({ code: 'network' });
    expect(seen).toEqual([]);
  });

  test('a server that listens on one of the two loopback addresses is found by name', async () => {
    for (const host of ['127.0.0.1', '::1']) {
      const port = await listening(
        createPlainServer((_, reply) => void reply.end('there')),
        host,
      );
      expect(await asked(`http://name.localhost:${port}/`)).toBe('there');
    }
  });

  test.each([
    ['10.0.0.0/8', 'http://10.1.2.3/', false],
    ['example.org, fd00::/8', 'http://[fd00::1]/', false],
    ['fd00:0::1', 'http://[fd00::1]/', false],
    ['10.1.2.3', 'http://10.1.2.3/', false],
    ['10.0.0.0/8', 'http://11.0.0.1/', true],
    ['10.0.0.0/33 10.0.0.0/ 10/8', 'http://10.1.2.3/', true],
  ])('NO_PROXY=%s and %s: by the proxy %j', async (networks, url, isProxied) => {
    const seen = await proxied();
    vi.stubEnv('NO_PROXY', networks);
    vi.stubEnv('no_proxy', undefined);
    await asked(url, { insecure: true, timeout: 200 }).catch(() => undefined);
    expect(seen.length > 0).toBe(isProxied);
  });

  test('requests to other machines go to the proxy', async () => {
    const seen = await proxied();
    vi.stubEnv('NO_PROXY', '');
    vi.stubEnv('no_proxy', '');
    await expect(asked('https://service.example.invalid/')).rejects.toMatchObject({ code: 'network' });
    expect(seen).toEqual(['service.example.invalid:443']);
  });
});

describe('row 61: the environment turns off the check of certificates', () => {
  const lax = { unchecked: true };
  async function tlsServer() {
    const seen: (string | undefined)[] = [];
    const server = createTlsServer({ cert: SERVER_CERTIFICATE, key: SERVER_KEY }, (request, reply) => {
      seen.push(request.method);
      reply.end('there');
    });
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    return { seen, url: `https://127.0.0.1:${await listening(server)}/` };
  }
  const token = { headers: { authorization: 'Bearer a' } };

  test.each([
    ['GET with a token', { ...token }],
    ['POST with a body', { method: 'POST', body: 'refresh_token=a' }],
    ['DELETE', { ...token, method: 'DELETE' }],
  ])('%s: the request is refused before anything is sent', async (_, init) => {
    const { seen, url } = await tlsServer();
    for (const certificates of [{}, { certificates: SERVER_CERTIFICATE }]) {
      const failure = await failureOf(() => asked(url, { ...lax, ...certificates }, init));
      expect(failure).toMatchObject({ code: 'usage', facts: { fix: 'unset NODE_TLS_REJECT_UNAUTHORIZED' } });
    }
    expect(seen).toEqual([]);
  });

  test('a profile with insecure allows the request', async () => {
    const { url } = await tlsServer();
    expect(await asked(url, { ...lax, insecure: true }, token)).toBe('there');
  });

  test('requests without a token still check certificates: a key set, a discovery document', async () => {
    const { seen, url } = await tlsServer();
    expect((await failureOf(() => asked(url, lax))).code).toBe('network');
    expect(seen).toEqual([]);
    expect(await asked(url, { ...lax, certificates: SERVER_CERTIFICATE })).toBe('there');
  });

  test('over http on this machine it changes nothing', async () => {
    const port = await listening(createPlainServer((_, reply) => void reply.end('there')));
    expect(await asked(`http://127.0.0.1:${port}/`, lax, token)).toBe('there');
  });
});

describe('row 5: the addresses that a token is sent to', () => {
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

  test('plain http beyond loopback is a usage error, and nothing arrives', async () => {
    let arrived = 0;
    const port = await listening(
      createPlainServer((_, reply) => {
        arrived += 1;
        reply.end('there');
      }),
    );
    // This machine, by an address outside loopback.
    const url = `http://0.0.0.0:${port}/`;
    expect((await failureOf(() => asked(url))).code).toBe('usage');
    expect(arrived).toBe(0);
    expect(await asked(url, { insecure: true })).toBe('there');
    expect(arrived).toBe(1);
  });

  test('the refusal comes before the name is looked up', async () => {
    const failure = await failureOf(() => asked('http://example.invalid/'));
    expect(failure).toMatchObject({
      code: 'usage',
      message: 'http://example.invalid is not an https address.',
    });
  });
});

test('http to a port of TLS: is it an https address?', async () => {
  const server = createTlsServer({ cert: SERVER_CERTIFICATE, key: SERVER_KEY });
  const garbage = createTcpServer((socket) => void socket.end('\x15\x03\x01\0\x02\x02\x0a'));
  cleanups.push(() => void garbage.close());
  for (const port of [await listening(server), await listenOnLoopback(garbage)]) {
    const { code, facts } = await failureOf(() => asked(`http://127.0.0.1:${port}/`));
    expect([code, facts.why]).toEqual(['network', expect.stringContaining('Is it an https address?')]);
  }
});

describe('certificates', () => {
  const serve = (cert = SERVER_CERTIFICATE, key = SERVER_KEY) =>
    listening(createTlsServer({ cert, key }, (_, reply) => void reply.end('there')));

  test('that nobody trusts are refused, also with insecure', async () => {
    const url = `https://127.0.0.1:${await serve()}/`;
    for (const insecure of [false, true]) {
      const failure = await failureOf(() => asked(url, { insecure }));
      expect(failure.code).toBe('network');
      expect(failure.facts.why).toMatch(
        /not known here \(DEPTH_ZERO_SELF_SIGNED_CERT\).*--ca-file FILE.*caFile=FILE/,
      );
      expect(failure.facts.retryable).toBe(false);
    }
    const posted = await failureOf(() => asked(url, {}, { method: 'POST', body: '{}' }));
    expect(posted.facts.maybeDone ?? false).toBe(false);
  });

  test('are accepted when caFile holds their issuer', async () => {
    const url = `https://127.0.0.1:${await serve()}/`;
    expect(await asked(url, { certificates: SERVER_CERTIFICATE })).toBe('there');
    expect(await asked(url, { certificates: OTHER_CERTIFICATE + SERVER_CERTIFICATE })).toBe('there');
    expect((await failureOf(() => asked(url, { certificates: OTHER_CERTIFICATE }))).code).toBe('network');
  });

  test.each([
    ['is not valid yet', EARLY_CERTIFICATE],
    ['has expired', EXPIRED_CERTIFICATE],
  ])(
    'a certificate that %s by this machine’s clock: the clock is a suspect, and nothing was sent',
    async (state, cert) => {
      const server = createTlsServer({ cert, key: SERVER_KEY }, (_, reply) => void reply.end('there'));
      const url = `https://127.0.0.1:${await listening(server)}/`;
      const sent = () => asked(url, { certificates: cert }, { method: 'POST', body: '{}' });
      const { code, facts } = await failureOf(sent);
      expect([code, facts.why]).toEqual([
        'network',
        `Its certificate ${state}, by this machine's clock. Is the clock right?`,
      ]);
      expect(facts).toMatchObject({ retryable: false });
      expect(facts.maybeDone).toBeUndefined();
    },
  );

  test('a server that does not shake hands got nothing: no change may have been made (THREATS.md 43)', async () => {
    const ends = createTcpServer((socket) => socket.once('data', () => socket.end()));
    const [plain, silent] = [
      await listening(createPlainServer((_, reply) => void reply.end('there'))),
      await listenOnLoopback(ends),
    ];
    cleanups.push(() => void ends.close());
    for (const port of [plain, silent]) {
      const sent = () => asked(`https://127.0.0.1:${port}/`, {}, { method: 'POST', body: '{}' });
      const { code, facts } = await failureOf(sent);
      expect([code, facts.maybeDone ?? false]).toEqual(['network', false]);
      expect(String(facts.why)).not.toContain('\n');
    }
  });

  test('are accepted through a proxy as well', async () => {
    const port = await serve(DISTANT_CERTIFICATE, DISTANT_KEY);
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
    vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${await listening(proxy)}`);
    const url = 'https://service.example.invalid/';
    expect(await asked(url, { certificates: DISTANT_CERTIFICATE })).toBe('there');
    expect(tunnels).toEqual(['service.example.invalid:443']);
    expect((await failureOf(() => asked(url))).code).toBe('network');
  });
});

test.each([
  ['GET', undefined, ''],
  ['POST', true, ' The request was sent and may have taken effect.'],
])('%s: a mistake in this program is a bug, not a network failure', async (method, maybeDone, effect) => {
  const url = `http://127.0.0.1:${await listening(createPlainServer())}/`;
  const headers = {
    get accept(): string {
      throw new TypeError('x is undefined');
    },
  };
  const { code, message, facts } = await failureOf(() => transportTo(url).send({ method, url, headers }));
  expect({ code, message }).toEqual({
    code: 'bug',
    message: 'Something unexpected happened: x is undefined',
  });
  expect(facts.why).toBe(
    `This is a defect of slices-conn. Please report it, with what --debug prints.${effect}`,
  );
  expect(facts.maybeDone).toBe(maybeDone);
});

describe('a retry', () => {
  /** A server that gives these answers, repeating the last one, and a transport to it. */
  async function answering(...answers: ((reply: ServerResponse) => void)[]) {
    const requests: string[] = [];
    const server = createPlainServer((request, reply) => {
      requests.push(`${request.method} ${request.url}`);
      (answers[requests.length - 1] ?? answers.at(-1))?.(reply);
    });
    const url = `http://127.0.0.1:${await listening(server)}/a?b=c`;
    const send = async (method: string, timeout = 5000, headers = {}): Promise<Response> =>
      transportTo(url, { timeout }).fetch(
        new Request(url, { method, headers, ...(method === 'GET' ? {} : { body: '{}' }) }),
      );
    return { requests, send, url };
  }
  const status = (code: number, headers: Record<string, string> = {}) => {
    return (reply: ServerResponse) => void reply.writeHead(code, headers).end(String(code));
  };
  const cutOff = (reply: ServerResponse) => void reply.destroy();
  const halfway = (reply: ServerResponse) => {
    reply.writeHead(200, { 'content-length': '10' }).write('12345', () => reply.destroy());
  };

  test.each([
    ['503', status(503)],
    ['429', status(429)],
    ['a lost connection', cutOff],
  ])('GET: %s, then 200: undici sends it again', async (_name, first) => {
    const { requests, send } = await answering(first, status(200));
    expect(await (await send('GET')).text()).toBe('200');
    expect(requests).toEqual(['GET /a?b=c', 'GET /a?b=c']);
  });

  test('GET: a body that is cut is asked for again from its beginning, three times at most', async () => {
    const { requests, send } = await answering(halfway, status(200), halfway, halfway, halfway);
    expect(await (await send('GET')).text()).toBe('200');
    expect(requests).toHaveLength(2);
    expect(await failureOf(() => send('GET'))).toMatchObject({
      ...{ code: 'network', facts: { retryable: true, why: 'The reply breaks off.' } },
    });
    expect(requests).toHaveLength(5);
  });

  test('GET: it is sent three times at most, and the last reply is the answer', async () => {
    const { requests, send } = await answering(status(502), status(504), status(503), status(200));
    expect((await send('GET')).status).toBe(503);
    expect(requests).toHaveLength(3);
  });

  test('GET: it is sent three times at most, whatever keeps each from an answer', async () => {
    const mixed = await answering(status(503), halfway, status(503), status(200));
    expect((await mixed.send('GET')).status).toBe(503);
    expect(mixed.requests).toHaveLength(3);
    const both = (reply: ServerResponse) => {
      reply.writeHead(503, { 'content-length': '10' }).write('12345', () => reply.destroy());
    };
    const { requests, send } = await answering(both, both, both, both);
    expect(await failureOf(() => send('GET'))).toMatchObject({ facts: { why: 'The reply breaks off.' } });
    expect(requests).toHaveLength(3);
  });

  test.each(['POST', 'PUT', 'DELETE'])('row 12: %s is sent once, with every outcome', async (method) => {
    const refused = await answering(status(503), status(200));
    expect((await refused.send(method)).status).toBe(503);
    expect(refused.requests).toHaveLength(1);
    for (const lost of [cutOff, halfway]) {
      const { requests, send } = await answering(lost, status(200));
      const failure = await failureOf(() => send(method));
      expect(failure).toMatchObject({ code: 'network', facts: { maybeDone: true, retryable: false } });
      expect(requests).toHaveLength(1);
    }
  });

  const problem = (code: ProblemCode, headers: Record<string, string> = { 'retry-after': '0' }) => {
    const body = JSON.stringify({ code, detail: [] });
    return (reply: ServerResponse) =>
      void reply
        .writeHead(PROBLEMS[code].status, { 'content-type': 'application/json', ...headers })
        .end(body);
  };
  const key = { 'Idempotency-Key': 'k' };

  test.each([
    ['POST', key],
    ['PUT', {}],
    ['DELETE', {}],
  ])(
    '%s with %j is repeated when the service says that it changed nothing (THREATS.md 103)',
    async (method, headers) => {
      const { requests, send } = await answering(
        problem('unavailable'),
        problem('too_many_requests'),
        status(200),
      );
      expect((await send(method, 5000, headers)).status).toBe(200);
      expect(requests).toHaveLength(3);
    },
  );

  test.each<[string, string, (reply: ServerResponse) => void, object]>([
    ['an unknown outcome', 'POST', problem('outcome_unknown'), key],
    ['an unknown outcome', 'DELETE', problem('outcome_unknown'), {}],
    ['no Retry-After', 'POST', problem('unavailable', {}), key],
    ['a Retry-After beyond the limit', 'POST', problem('unavailable', { 'retry-after': '60' }), key],
    ['no idempotency key', 'POST', problem('unavailable'), {}],
    ["a proxy's page", 'POST', status(503, { 'retry-after': '0' }), key],
    ['another status', 'POST', status(502, { 'retry-after': '0' }), key],
  ])('%s: %s is sent once', async (_name, method, answer, headers) => {
    const { requests, send } = await answering(answer, status(200));
    expect((await send(method, 5000, headers)).status).toBeGreaterThan(500);
    expect(requests).toHaveLength(1);
  });

  test('the client waits for Retry-After', async () => {
    const { requests, send } = await answering(status(503, { 'retry-after': '1' }), status(200));
    const began = performance.now();
    expect((await send('GET')).status).toBe(200);
    expect(performance.now() - began).toBeGreaterThan(950);
    expect(requests).toHaveLength(2);
  });

  test.each(['60', 'Sat, 28 Nov 2099 10:00:00 GMT'])(
    'a Retry-After of %s, beyond the limit: the reply is the answer',
    async (after) => {
      const { requests, send } = await answering(status(503, { 'retry-after': after }));
      expect((await send('GET', 2000)).status).toBe(503);
      expect(requests).toHaveLength(1);
    },
  );

  test.each(['GET', 'POST'])(
    '%s: the limit is for the whole reply, also while bytes keep coming',
    async (method) => {
      const drip = (reply: ServerResponse) => {
        reply.writeHead(200);
        const timer = setInterval(() => reply.write('x'), 20);
        reply.on('close', () => clearInterval(timer));
      };
      const { requests, send } = await answering(drip);
      const began = performance.now();
      const failure = await failureOf(() => send(method, 500));
      expect(failure.code).toBe('timeout');
      expect(failure.facts.retryable).toBe(method === 'GET');
      expect(failure.facts.maybeDone ?? false).toBe(method === 'POST');
      expect(performance.now() - began).toBeLessThan(3000);
      expect(requests).toHaveLength(1);
    },
  );

  test('attempts share one limit', async () => {
    const { requests, send } = await answering(status(503), () => undefined);
    const began = performance.now();
    expect((await failureOf(() => send('GET', 1000))).code).toBe('timeout');
    expect(performance.now() - began).toBeLessThan(1900);
    expect(requests).toHaveLength(2);
  });

  test.each(['GET', 'POST'])('%s: a refused connection is a failure with nothing done', async (method) => {
    const server = createPlainServer();
    const url = `http://127.0.0.1:${await listening(server)}/`;
    await new Promise((resolve) => server.close(resolve));
    const began = performance.now();
    const failure = await failureOf(() => asked(url, {}, { method }));
    expect(failure).toMatchObject({ code: 'network', facts: { retryable: true } });
    expect(failure.facts.maybeDone).toBeUndefined();
    // It is not tried again.
    expect(performance.now() - began).toBeLessThan(250);
  });
});
