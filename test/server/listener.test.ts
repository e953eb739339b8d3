import { once } from 'node:events';
import { createServer, IncomingMessage, request } from 'node:http';
import { Socket } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ProblemCode } from '../../src/contract/problems.ts';
import {
  addressBlock,
  addressBlocks,
  forwardedAddress,
  peerAddress,
} from '../../src/server/client-address.ts';
import { createListener } from '../../src/server/listener.ts';
import { noLog } from '../../src/server/log.ts';
import { problemReply, refusal } from '../../src/server/problem-error.ts';
import { targetFault } from '../../src/server/request-form.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { type IdentityServer, sendRaw, startIdentity } from '../fixtures/identity.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';
import { CONNECTIVITY, LINKS, openWithLead, outcome } from '../fixtures/service.ts';

/** A server whose services answer by a function. @returns its address */
async function serving(fetch: (request: Request) => Promise<Response>): Promise<string> {
  const server = createServer();
  atEndOfFile(() => void server.close().closeAllConnections());
  const baseUrl = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  server.on('request', createListener({ site: { name: undefined, baseUrl }, fetch, log: noLog }));
  return baseUrl;
}

/** How long a server takes for so many requests of one address, one after the other, that it all refuses. Milliseconds. */
async function timeFor(count: number, code: ProblemCode): Promise<number> {
  const baseUrl = await serving(async () => problemReply(refusal(code, 'No.')));
  const began = performance.now();
  for (let asked = 0; asked < count; asked += 1) {
    const [reply] = await once(request(`${baseUrl}/apis/x`).end(), 'response');
    expect(reply.statusCode).toBe(403);
    await once(reply.resume(), 'end');
  }
  return performance.now() - began;
}

// 20 a second are not delayed, and 4 a second are answered after a delay.
test('an address is slowed down for tokens that do not verify (THREATS.md 82)', async () => {
  expect(await timeFor(50, 'token_invalid')).toBeGreaterThan(1000);
});

test('an address is not slowed down for what its users may not do (THREATS.md 82)', async () => {
  for (const code of ['role_not_allowed', 'token_missing', 'wrong_experiment'] as const) {
    expect(await timeFor(100, code)).toBeLessThan(3000);
  }
});

test('the request of a client that closes its connection is aborted (THREATS.md 117)', async () => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<Request>();
  const { promise: answered, resolve: answer } = Promise.withResolvers<Response>();
  const baseUrl = await serving(async (asked) => {
    arrive(asked);
    return answered;
  });
  const sent = request(`${baseUrl}/apis/x`, { method: 'POST' }).end('{}');
  sent.on('error', () => undefined);
  // Its signal is first looked at when the connection is closed.
  const asked = await arrived;
  sent.destroy();
  await expect.poll(() => asked.signal.aborted).toBe(true);
  answer(new Response());
});

/** A request through a proxy at 10.0.0.1, with this X-Forwarded-For. */
function behindProxy(hops: string | undefined): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: '10.0.0.1' });
  const message = new IncomingMessage(socket);
  if (hops !== undefined) message.headers = { 'x-forwarded-for': hops };
  return message;
}

describe('row 29: the client’s address behind a proxy is the last hop, which the proxy has added', () => {
  test.each<[string | undefined, string]>([
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1, 192.0.2.2', '192.0.2.2'],
    ['192.0.2.1,2001:db8::1 ', '2001:db8::1'],
    [undefined, '10.0.0.1'],
    ['', '10.0.0.1'],
    ['192.0.2.1, ', '10.0.0.1'],
    ['192.0.2.1, unknown', '10.0.0.1'],
    ['192.0.2.1:4711', '10.0.0.1'],
    ["'; DROP TABLE", '10.0.0.1'],
  ])('%j: %s', (hops, address) => {
    expect(forwardedAddress(behindProxy(hops))).toBe(address);
    expect(peerAddress(behindProxy(hops))).toBe('10.0.0.1');
  });

  test('a disconnected client has no address', () => {
    expect(peerAddress(new IncomingMessage(new Socket()))).toBe('');
  });
});

test.each([
  ['192.0.2.7', ['192.0.2.7', '192.0.2.0/24']],
  ['::ffff:192.0.2.7', ['192.0.2.7', '192.0.2.0/24']],
  ['64:ff9b::192.0.2.7', ['192.0.2.7', '192.0.2.0/24']],
  ['::FFFF:c000:207', ['192.0.2.7', '192.0.2.0/24']],
  [
    '2001:0DB8:0001:0203:ffff:ffff:ffff:ffff',
    ['2001:db8:1:203::/64', '2001:db8:1:200::/56', '2001:db8:1::/48'],
  ],
  ['2001:db8:1:203::9', ['2001:db8:1:203::/64', '2001:db8:1:200::/56', '2001:db8:1::/48']],
  ['2001:db8:1:2ff::9', ['2001:db8:1:2ff::/64', '2001:db8:1:200::/56', '2001:db8:1::/48']],
  ['2001:db8:1:3::9', ['2001:db8:1:3::/64', '2001:db8:1:0::/56', '2001:db8:1::/48']],
  ['fe80::1%eth0', ['fe80:0:0:0::/64', 'fe80:0:0:0::/56', 'fe80:0:0::/48']],
  ['', ['']],
  ['no address', ['no address']],
])('%s is of the blocks %j', (address, blocks) => {
  expect(addressBlocks(address)).toEqual(blocks);
  expect(addressBlock(address)).toBe(blocks[0]);
});

let server: IdentityServer;
let token: string;
beforeAll(async () => {
  server = await startIdentity();
  token = await server.server.signIn('lead');
});

/** The reply to a request with this target and these lines of headers, in short. */
async function answered(target: string, ...lines: readonly string[]): Promise<string> {
  const head = [`GET ${target} HTTP/1.1`, ...lines, 'Connection: close', '', ''];
  const reply = await sendRaw(server, head.join('\r\n'));
  const status = /^HTTP\/1\.1 (\d{3})/.exec(reply)?.[1] ?? '';
  const code = /"code":"(\w+)"/.exec(reply)?.[1];
  return code === undefined ? status : `${status} ${code}`;
}
const host = (): string => `Host: ${new URL(server.base).host}`;
const bearer = (): string => `Authorization: Bearer ${token}`;

/** Other spellings of {@link LINKS}, and of what leads elsewhere. */
const RESPELLED = [
  LINKS.replace('apis', 'api%73'),
  LINKS.replace('/apis', '/%2e/apis'),
  LINKS.replace('/apis', '/./apis'),
  LINKS.replace('/apis', '/x/../apis'),
  LINKS.replace('/apis', '/x/.%2E/apis'),
  LINKS.replace('/apis', '\\apis'),
  `${LINKS}/..`,
  `${LINKS}/.`,
  `${LINKS}#fragment`,
  `${LINKS}/%zz`,
  '/auth/x/../token',
  '/auth/devic%65',
];

describe('row 62: one spelling of a path', () => {
  test.each(RESPELLED)('%s is refused', async (target) => {
    expect(targetFault(target)).toBeDefined();
    expect(await answered(target, host(), bearer())).toMatch(/^400/);
  });

  test.each(['http://example.org/', 'example.org:443', '*', ''])(
    'so is a target that is not a path: %j',
    (target) => {
      expect(targetFault(target)).toBeDefined();
    },
  );

  test.each<[string, string, string, string]>([
    ['ours', 'BASE', LINKS, '200'],
    ['ours in capitals', 'HTTP://HOST', LINKS, '200'],
    ['ours with a query alone', 'BASE', '?a=b', '200'],
    ["another server's", 'http://example.org', LINKS, '421 host_unknown'],
    ["another server's login", 'http://example.org', '/auth/device', '421 host_unknown'],
    ['with a user', 'http://x@HOST', LINKS, '421 host_unknown'],
    ['ours, and a path with dots', 'BASE', `/x/..${LINKS}`, '400 request_invalid'],
  ])(
    'an absolute target, %s, is as its path, whatever Host says (RFC 9112 §3.2.2)',
    async (_, at, path, due) => {
      const address = at.replace('BASE', server.base).replace('HOST', new URL(server.base).host);
      expect(await answered(address + path, host(), bearer())).toBe(due);
      expect(await answered(address + path, 'Host: example.org', bearer())).toBe(due);
    },
  );

  test.each([
    LINKS,
    `${LINKS}/`,
    `${LINKS}?a=%61&b=../..`,
    '/',
    `${CONNECTIVITY}/a%2Fb%20c`,
    `${CONNECTIVITY}/...`,
    `${CONNECTIVITY}/..a`,
    `${CONNECTIVITY}/a:b@c`,
  ])('%s is one', (target) => {
    expect(targetFault(target)).toBeUndefined();
  });

  test('without a socket too', async () => {
    const { lead } = await openWithLead();
    expect(outcome(await lead.send('GET', LINKS))).toBe('200');
    expect(outcome(await lead.send('GET', LINKS.replace('apis', '%61pis')))).toBe('400 request_invalid');
  });
});

describe('row 62: a header that is there twice is refused, the same or not', () => {
  test.each<[string, () => string[]]>([
    ['Host', () => [host(), host(), bearer()]],
    ['Host, another last', () => [host(), bearer(), 'hOST: other.example.org']],
    ['Authorization', () => [host(), bearer(), bearer()]],
    ['Authorization, another last', () => [host(), bearer(), 'Authorization: Bearer a.b.c']],
    ['Content-Type', () => [host(), bearer(), 'Content-Type: a/b', 'Content-Type: c/d']],
    [
      'Slices-Experiment-Token',
      () => [host(), bearer(), 'Slices-Experiment-Token: a', 'Slices-Experiment-Token: a'],
    ],
    ['Idempotency-Key', () => [host(), bearer(), 'Idempotency-Key: a', 'Idempotency-Key: b']],
  ])('%s', async (_, lines) => {
    expect(await answered(LINKS, ...lines())).toBe('400 request_invalid');
    expect(await answered('/auth/device', ...lines())).toMatch(/^400/);
  });

  test('others may be', async () => {
    expect(await answered(LINKS, host(), bearer(), 'X-A: 1', 'X-A: 2')).toBe('200');
  });
});
