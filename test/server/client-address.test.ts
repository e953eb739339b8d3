import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  addressBlock,
  addressBlocks,
  forwardedAddress,
  peerAddress,
} from '../../src/server/client-address.ts';

/** A request through a proxy at 10.0.0.1, with this X-Forwarded-For. */
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
