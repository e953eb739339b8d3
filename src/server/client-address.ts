import type { IncomingMessage } from 'node:http';
import { isIP, isIPv4, isIPv6 } from 'node:net';

/** Where a request comes from, as an IP address; empty when the client has disconnected. */
export type ClientAddress = (request: IncomingMessage) => string;

/** The remote address of the connection. */
export const peerAddress: ClientAddress = ({ socket }) => socket.remoteAddress ?? '';

/**
 * The address that the proxy before this server reports: the last hop of `X-Forwarded-For`, which the proxy adds itself.
 * The hops before it came from the client and may be made up. Without the header, or when its last hop is not an address,
 * it is the proxy's own address, so that a client can't escape a limit this way (THREATS.md 29).
 */
export const forwardedAddress: ClientAddress = (request) => {
  // Several lines of it arrive as one list (RFC 9110 §5.3).
  const hops = String(request.headers['x-forwarded-for'] ?? '').split(',');
  const last = hops.at(-1)?.trim() ?? '';
  return isIP(last) === 0 ? peerAddress(request) : last;
};

/** Bytes of an IPv6 address that carry an IPv4 address in their last four: mapped (RFC 4291 §2.5.5.2), NAT64 (RFC 6052 §2.1). */
const CARRIES_IPV4 = ['0:0:0:0:0:ffff', '64:ff9b:0:0:0:0'];

/**
 * The block of addresses that one customer of a network can use: an IPv4 address alone, and the /64 of an IPv6 address,
 * since a customer can use every address within a /64 (RFC 6177 §2). A text that is not an address is its own block.
 *
 * | address              | block                  |
 * |----------------------|------------------------|
 * | 192.0.2.7            | 192.0.2.7              |
 * | ::ffff:192.0.2.7     | 192.0.2.7              |
 * | 64:ff9b::192.0.2.7   | 192.0.2.7              |
 * | 2001:db8:1:2:3:4:5:6 | 2001:db8:1:2::/64      |
 * | 2001:db8::9          | 2001:db8:0:0::/64      |
 * | fe80::1%eth0         | fe80:0:0:0::/64        |
 */
export function addressBlock(address: string): string {
  const [block = ''] = addressBlocks(address);
  return block;
}

/**
 * The blocks that an address is part of, the smallest first: that of {@link addressBlock}, and those that a customer of a
 * network may have for a site (RFC 6177 §2). A text that is not an address has one.
 *
 * | address              | blocks                                                      |
 * |----------------------|-------------------------------------------------------------|
 * | 192.0.2.7            | 192.0.2.7, 192.0.2.0/24                                     |
 * | 2001:db8:1:203::9    | 2001:db8:1:203::/64, 2001:db8:1:200::/56, 2001:db8:1::/48   |
 */
export function addressBlocks(address: string): string[] {
  const [plain = ''] = address.split('%');
  if (isIPv4(plain)) return [plain, plain.replace(/\d+$/, '0/24')];
  if (!isIPv6(plain)) return [address];
  const groups = groupsOf(plain);
  if (CARRIES_IPV4.includes(groups.slice(0, 6).join(':'))) {
    const bytes = groups
      .slice(6)
      .map((group) => Number.parseInt(group, 16))
      .flatMap((two) => [two >> 8, two & 0xff]);
    return addressBlocks(bytes.join('.'));
  }
  const [site, fourth = ''] = [groups.slice(0, 3).join(':'), groups[3]];
  const upperByte = (Number.parseInt(fourth, 16) & 0xff00).toString(16);
  return [`${site}:${fourth}::/64`, `${site}:${upperByte}::/56`, `${site}::/48`];
}

/** The eight groups, in lower case and without leading zeros (RFC 5952 §4). */
function groupsOf(address: string): string[] {
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = [], tail] = canonical.split('::').map((part) => (part === '' ? [] : part.split(':')));
  if (!tail) return head;
  return [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => '0'), ...tail];
}
