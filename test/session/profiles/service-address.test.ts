import { createServer, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, expect, test } from 'vitest';
import { createTransport } from '../../../src/client/transport.ts';
import { sendFrom } from '../../../src/contract/sending.ts';
import { askForServices, readServiceAddress } from '../../../src/session/profiles/service-address.ts';
import { atEndOfFile } from '../../fixtures/end-of-file.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { listenOnLoopback } from '../../fixtures/loopback.ts';
import { PATIENCE } from '../../fixtures/patience.ts';
import { claimsOf, makeKey, makeToken } from '../../fixtures/tokens.ts';

const PATH = '/.well-known/oauth-protected-resource';
const CONN = { url: 'https://conn.example.org', name: 'conn.example.org' };
const GOOD = {
  resource: CONN.url,
  authorization_servers: ['https://auth.example.org'],
  portal_url: 'https://portal.example.org',
  client_id: 'slices-conn',
};

describe('the address of a service', () => {
  test.each([
    ['conn.example.org', CONN.url, CONN.name],
    ['https://Conn.Example.org/', CONN.url, CONN.name],
    ['conn.example.org:8443', 'https://conn.example.org:8443', 'conn.example.org:8443'],
    ['https://conn.example.org:443', CONN.url, CONN.name],
    ['https://conn', 'https://conn', 'conn'],
    ['10.0.0.7', 'https://10.0.0.7', '10.0.0.7'],
    ['127.0.0.1:4280', 'http://127.0.0.1:4280', '127.0.0.1:4280'],
    ['localhost', 'http://localhost', 'localhost'],
    ['[::1]:4280', 'http://[::1]:4280', '[::1]:4280'],
    ['https://localhost:4280', 'https://localhost:4280', 'localhost:4280'],
  ])('%s', (typed, url, name) => {
    expect(readServiceAddress(typed)).toEqual({ url, name });
  });

  test.each([
    ...[
      '',
      'conn',
      'conn.example.org/conn',
      'conn.example.org?a=b',
      'conn.example.org#a',
      'conn.example.org?',
    ],
    ...['https://user@conn.example.org', 'https://user:canary@conn.example.org', 'conn.example.org:70000'],
    ...['conn.example.org\n', 'conn .example.org', 'conn\u001b[31m.example.org', 'conn\u202e.example.org'],
    ...['ftp://conn.example.org', 'file:///etc/passwd', 'https:conn.example.org', 'conn.example.org\\x'],
    ...['http://conn.example.org', 'http://10.0.0.7', 'http://localhost.example.org'],
    makeToken(makeKey(), claimsOf('user')),
  ])('%j is refused before anything is sent (THREATS.md 147)', async (typed) => {
    const { code, message, facts } = await failureOf(() => readServiceAddress(typed));
    expect(code).toBe('usage');
    expect(`${message}${facts.why}`).not.toMatch(/canary|eyJ|\p{Cc}|\p{Cf}/u);
  });
});

/** Asks a service that answers this, without a network. */
const asked = (metadata: unknown, address = CONN) =>
  askForServices(
    address,
    sendFrom({
      fetch: async () =>
        metadata === undefined ? new Response(null, { status: 404 }) : Response.json(metadata),
    }),
  );

describe('what a service names', () => {
  test('is read, with the usual values where it names none', async () => {
    const { client_id: _, ...least } = GOOD;
    const named = {
      baseUrl: CONN.url,
      portalUrl: 'https://portal.example.org',
      authUrl: 'https://auth.example.org',
      clientId: 'slices-conn',
      apiGroups: 'projects,experiments',
    };
    expect(await asked(least)).toEqual(named);
    expect(await asked({ ...GOOD, resource: `${CONN.url}/`, client_id: 'other' })).toEqual({
      ...named,
      clientId: 'other',
    });
  });

  test('is not known of a service without metadata, or without a portal: the four values to ask for', async () => {
    const { portal_url: _, ...withoutPortal } = GOOD;
    for (const metadata of [undefined, withoutPortal, { ...GOOD, authorization_servers: [] }]) {
      const { code, facts } = await failureOf(() => asked(metadata));
      expect(code).toBe('not_supported');
      expect(facts.lines?.map((line) => String(line).split(' ')[0])).toEqual([
        ...['baseUrl', 'portalUrl', 'authUrl', 'clientId'],
      ]);
    }
  });

  test.each<[string, object]>([
    ['another resource', { resource: 'https://conn.example.com' }],
    ['a resource below it', { resource: `${CONN.url}/conn` }],
    ['the same name over http', { resource: 'http://conn.example.org' }],
    ['a portal over http', { portal_url: 'http://portal.example.org' }],
    ['an identity provider over http', { authorization_servers: ['http://auth.example.org'] }],
    ['a portal on this machine', { portal_url: 'http://127.0.0.1:4280/portal' }],
    ['an identity provider on this machine', { authorization_servers: ['https://localhost:4280'] }],
    ['one in another spelling of this machine', { portal_url: 'https://0x7f.1' }],
    ...['10.1.2.3', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '0.0.0.0'].map(
      (host): [string, object] => [`a private address, ${host}`, { portal_url: `https://${host}` }],
    ),
    ...['192.0.2.1', '198.18.0.1', '203.0.113.9', '224.0.0.1', '240.0.0.1', '255.255.255.255'].map(
      (host): [string, object] => [`a reserved address, ${host}`, { portal_url: `https://${host}` }],
    ),
    ...['printer', 'nas.local', 'nas.local.', 'x.internal', 'router.home.arpa', 'X.LAN', 'a.corp'].map(
      (host): [string, object] => [`a private name, ${host}`, { portal_url: `https://${host}` }],
    ),
    ...[
      ...['[fd00::1]', '[fe80::1]', '[fec0::1]', '[::]', '[::ffff:10.0.0.1]', '[::7f00:1]', '[::10.0.0.1]'],
      ...[
        '[64:ff9b::10.0.0.1]',
        '[64:ff9b::7f00:1]',
        '[64:ff9b:1::808:808]',
        '[2002:a00:1::1]',
        '[2002:7f00:1::]',
      ],
      ...['[2002:c0a8:101::1]', '[2001:0:53aa:64c::1]', '[2001:db8::1]', '[ff02::1]', '[100::1]'],
    ].map((host): [string, object] => [
      `a private address, ${host}`,
      { authorization_servers: [`https://${host}`] },
    ]),
  ])('is refused: %s (THREATS.md 145)', async (_, changes) => {
    expect((await failureOf(() => asked({ ...GOOD, ...changes }))).code).toBe('reply_invalid');
  });

  test.each<[string, object]>([
    ['an escape sequence', { portal_url: 'https://portal.example.org/\u001b[31m' }],
    ['a change of direction', { authorization_servers: ['https://auth.example.org/\u202e'] }],
    ['a line end', { client_id: 'slices-conn\nadmin' }],
    ['a user', { portal_url: 'https://user:canary@portal.example.org' }],
    ['a query', { portal_url: 'https://portal.example.org?a=b' }],
    ['a script', { authorization_servers: ['javascript:alert(1)'] }],
    ['an API group that is a path', { projects_api_group: '../admin' }],
    ['a number', { portal_url: 17 }],
    ['a list of objects', { authorization_servers: [{}] }],
    ['no resource', { resource: undefined }],
  ])('is refused: %s (THREATS.md 147)', async (_, changes) => {
    const { code, message, facts } = await failureOf(() => asked({ ...GOOD, ...changes }));
    expect(code).toBe('reply_invalid');
    expect(`${message}${facts.why}`).not.toMatch(/canary|\p{Cc}|\p{Cf}/u);
  });

  test.each([
    ['http://127.0.0.1:4280', 'http://127.0.0.1:4280/portal'],
    ['http://127.0.0.1:4280', 'https://10.0.0.7'],
    ['https://10.0.0.7', 'https://192.168.1.1'],
    ['https://10.0.0.7', 'https://portal.example.org'],
    ['https://conn.local', 'https://portal'],
    ['https://[64:ff9b::a00:1]', 'https://auth.internal'],
    ...[
      ...['[64:ff9b::808:808]', '[2002:808:808::1]', '[2a00:1450::1]', '8.8.8.8', '172.32.0.1', '192.0.3.1'],
      ...['223.255.255.1', 'local.example.org', 'internal.be', 'corp.example.org.'],
    ].map((host): [string, string] => ['https://conn.example.org', `https://${host}`]),
  ])('of %s may be %s', async (url, portal) => {
    const address = { url, name: new URL(url).host };
    const metadata = { resource: url, portal_url: portal, authorization_servers: [portal] };
    expect((await asked(metadata, address)).portalUrl).toBe(portal);
  });
});

function* spaces(): Generator<string> {
  for (;;) yield ' '.repeat(65_536);
}

describe('over the network', () => {
  /** Asks a server that answers so, and says how many requests it got. */
  async function askedOf(answer: (response: ServerResponse, url: string) => void, timeout: number) {
    let requests = 0;
    const server = createServer((request, response) => {
      requests += 1;
      expect([request.method, request.url, request.headers.authorization]).toEqual(['GET', PATH, undefined]);
      answer(response, url);
    });
    const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
    const transport = createTransport({ origins: new Set(), timeout, now: Date.now, random: () => 0 });
    atEndOfFile(async () => {
      await transport.close();
      server.close().closeAllConnections();
    });
    const { code } = await failureOf(() => askForServices({ url, name: 'here' }, transport.send));
    return { code, requests };
  }
  const metadata = (url: string) =>
    JSON.stringify({ ...GOOD, resource: url, padding: 'x'.repeat(10_000_000) });

  test.each<[string, string, (response: ServerResponse, url: string) => void]>([
    ['a redirect', 'reply_invalid', (response) => response.writeHead(302, { location: PATH }).end()],
    ['10 MB', 'reply_invalid', (response, url) => response.end(metadata(url))],
    [
      'a body without an end',
      'reply_invalid',
      (response) => void pipeline(Readable.from(spaces()), response).catch(() => undefined),
    ],
    ['a body that stops', 'timeout', (response) => void response.write('{')],
    ['no answer', 'timeout', () => undefined],
    ['a page', 'reply_invalid', (response) => response.setHeader('content-type', 'text/html').end('<p>')],
  ])('%s is refused, and asked for once (THREATS.md 146)', async (_, code, answer) => {
    // Only where nothing comes is time over; a busy machine takes long for the others.
    const timeout = code === 'timeout' ? 1000 : PATIENCE;
    expect(await askedOf(answer, timeout)).toEqual({ code, requests: 1 });
  });
});
