/** The port where `serve` listens unless a flag says otherwise. */
export const DEFAULT_PORT = 4280;
/** The address of a server on this machine at that port: the profile `local` has it. */
export const LOCAL_URL = `http://127.0.0.1:${DEFAULT_PORT}`;

/**
 * The loopback address that a host name or address of this machine stands for (THREATS.md 46): an address of 127/8 or
 * `::1` itself, also as IPv6 carries it (`::ffff:127.0.0.1`); `127.0.0.1` for `localhost` and every name below it, which
 * are never looked up (RFC 6761 §6.3). All code uses this one test.
 *
 * @param host in any spelling that a URL takes; an IPv6 address with or without brackets
 * @returns an address without brackets; undefined for every other host
 */
export function loopbackAddress(host: string): string | undefined {
  if (!/^[\w.:[\]-]+$/.test(host)) return undefined;
  const address = `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}`;
  return URL.canParse(address) ? addressIn(new URL(address)) : undefined;
}

/** Whether an address leads to this machine alone; see {@link loopbackAddress}. */
export function isLoopback(url: URL): boolean {
  return addressIn(url) !== undefined;
}

function addressIn({ hostname }: URL): string | undefined {
  if (/^(?:.+\.)?localhost\.?$/i.test(hostname)) return '127.0.0.1';
  const isAddress = /^(?:127(?:\.\d+){3}|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\])$/.test(hostname);
  return isAddress ? hostname.replace(/[[\]]/g, '') : undefined;
}

/**
 * Whether data may be sent to an address (THREATS.md 5): over https, or over http on this machine. With `insecure`, which
 * a profile can set, over http anywhere.
 */
export function isProtected(url: URL, insecure = false): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && (insecure || isLoopback(url)));
}

/**
 * The command that logs people in to services, in one line. Undefined where `login` does not take the address: it takes an
 * origin only, and plain http on loopback only.
 *
 * @param services `{base_url}`, `{portal_url}` and `{auth_url}`
 */
export function loginWords(services: {
  connectivity: string;
  portal: string;
  identity: string;
}): string | undefined {
  const { connectivity, portal, identity } = services;
  const isLocal = connectivity === LOCAL_URL && portal === `${LOCAL_URL}/portal`;
  // The profile that is built in has these.
  if (isLocal && identity === `${LOCAL_URL}/auth`) return 'slices-conn login';
  const url = new URL(connectivity);
  return url.pathname === '/' && isProtected(url) ? `slices-conn login ${url.origin}` : undefined;
}

/** Why an address that is not {@link isProtected} is refused. */
export const UNPROTECTED = 'Over http anyone on the way could read and change what is sent.';
