import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { forwardedAddress, peerAddress } from '../../src/server/client-address.ts';

/** A request by way of a proxy at 10.0.0.1, with this X-Forwarded-For. */
function request(hops: string | undefined): IncomingMessage {
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
    expect(forwardedAddress(request(hops))).toBe(address);
    expect(peerAddress(request(hops))).toBe('10.0.0.1');
  });

  test('a client that is gone has none', () => {
    expect(peerAddress(new IncomingMessage(new Socket()))).toBe('');
  });
});
