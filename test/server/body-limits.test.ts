import { describe, expect, test } from 'vitest';
import { ROUTES, type Route, type RouteName } from '../../src/contract/routes.ts';
import { MAX_BODY, MAX_FORM } from '../../src/server/request-reading.ts';
import { FORM_TYPE, PAGE, send, sendRaw, startIdentity } from '../fixtures/identity.ts';
import { addressOf, EXPERIMENTS } from '../fixtures/service.ts';

const server = await startIdentity();
const token = await server.server.signIn('lead');
const listed = await send(server, 'GET', EXPERIMENTS, { headers: { authorization: `Bearer ${token}` } });
/** One that the caller leads: who does not is told so before a body is read. */
const experiment = String(JSON.parse(listed.text).experiments[0].id);
const ID = 'con_127.0.0.1_01jd3x0m2sf0vrv9mhb1wk6x4q';
/** Every address that reads a body, its media type and its limit in bytes. */
const ENDPOINTS: [method: string, address: string, type: string, limit: number][] = [
  ...(Object.entries(ROUTES) as [RouteName, Route][])
    .filter(([, { request }]) => request !== undefined)
    .map(([name, { method }]): [string, string, string, number] => [
      method,
      addressOf(name, name === 'addCiRule' ? experiment : ID),
      'application/json',
      MAX_BODY,
    ]),
  ...['/auth/token', '/auth/device/auth', '/auth/token/revocation', PAGE].map(
    (address): [string, string, string, number] => ['POST', address, FORM_TYPE, MAX_FORM],
  ),
];
/** Addresses that read no body, and get one. */
const OTHERS: [method: string, address: string][] = [
  ['DELETE', addressOf('deleteReservation', ID)],
  ['POST', '/nowhere'],
  ['PUT', '/auth/token'],
];

const head = (method: string, address: string, ...headers: string[]): string =>
  [
    `${method} ${address} HTTP/1.1`,
    `Host: ${new URL(server.base).host}`,
    `Authorization: Bearer ${token}`,
    ...headers,
    '',
    '',
  ].join('\r\n');
const statusOf = (reply: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(reply)?.[1]);

describe('row 41: a body that is too large', () => {
  test('nine endpoints read a body', () => {
    expect(ENDPOINTS).toHaveLength(9);
  });

  // The server reads on for a while before it closes a connection: the tests wait for that together.
  test.concurrent.each(ENDPOINTS)(
    '%s %s: 413 with and without Content-Length, and the connection ends',
    async (method, address, type, limit) => {
      const own = `Content-Type: ${type}`;
      const told = head(method, address, own, 'Content-Length: 1000000000');
      expect(statusOf(await sendRaw(server, told, 'a'.repeat(limit + 1)))).toBe(413);
      const chunked = head(method, address, own, 'Transfer-Encoding: chunked');
      const size = limit + 1;
      expect(
        statusOf(await sendRaw(server, chunked, `${size.toString(16)}\r\n${'a'.repeat(size)}\r\n`)),
      ).toBe(413);
    },
  );

  test.concurrent.each(OTHERS)(
    '%s %s reads no body: the answer does not wait for it',
    async (method, address) => {
      const reply = await sendRaw(
        server,
        head(method, address, 'Content-Length: 1000000000'),
        'a'.repeat(MAX_BODY),
      );
      expect(statusOf(reply)).toBeGreaterThanOrEqual(200);
    },
  );
});
