import { beforeAll, describe, expect, test } from 'vitest';
import { targetFault } from '../../src/server/request-form.ts';
import { type IdentityServer, sendRaw, startIdentity } from '../fixtures/identity.ts';
import { CONNECTIVITY, LINKS, openWithLead, outcome } from '../fixtures/service.ts';

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
