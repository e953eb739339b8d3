import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/** Where a request comes from, as an IP address; empty when the client is gone already. */
export type ClientAddress = (request: IncomingMessage) => string;

/** The other end of the connection. */
export const peerAddress: ClientAddress = ({ socket }) => socket.remoteAddress ?? '';

/**
 * What the proxy before this server says: the last hop of `X-Forwarded-For`, which the proxy has added itself. What
 * stands before it came from the client and may be made up. Without one, or with what is no address, it is the proxy's
 * own, so that nobody escapes a throttle by it (HOSTILE.md 29).
 */
export const forwardedAddress: ClientAddress = (request) => {
  // Several lines of it arrive as one list (RFC 9110 §5.3).
  const hops = String(request.headers['x-forwarded-for'] ?? '').split(',');
  const last = hops.at(-1)?.trim() ?? '';
  return isIP(last) === 0 ? peerAddress(request) : last;
};
