import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/** Where a request comes from, as an IP address; empty when the client is gone already. */
export type ClientAddress = (request: IncomingMessage) => string;

/** The other end of the connection. */
export const peerAddress: ClientAddress = ({ socket }) => socket.remoteAddress ?? '';

/**
 * The address that the proxy before this server reports: the last hop of `X-Forwarded-For`, which the proxy adds itself.
 * The hops before it came from the client and may be made up. Without the header, or when its last hop is not an address,
 * it is the proxy's own address, so that a client can't escape a limit this way (HOSTILE.md 29).
 */
export const forwardedAddress: ClientAddress = (request) => {
  // Several lines of it arrive as one list (RFC 9110 §5.3).
  const hops = String(request.headers['x-forwarded-for'] ?? '').split(',');
  const last = hops.at(-1)?.trim() ?? '';
  return isIP(last) === 0 ? peerAddress(request) : last;
};
