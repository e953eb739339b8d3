import type { LookupFunction } from 'node:net';

/**
 * Resolves any name to this machine's loopback addresses, in place of DNS: for connections to `localhost` and the names
 * below it (RFC 6761 §6.3; HOSTILE.md 46).
 */
export const lookupLoopback: LookupFunction = (_name, { all, family }, callback) => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ];
  if (all) return callback(null, addresses);
  const [first] = addresses.filter((each) => each.family === (family === 6 || family === 'IPv6' ? 6 : 4));
  callback(null, first?.address ?? '', first?.family);
};
