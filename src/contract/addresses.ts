import * as v from 'valibot';
import { describedText, UserId } from './fields.ts';

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

/** The kinds of tokens that a service may trust another issuer for. */
export const TRUSTED_KINDS = ['user', 'project', 'experiment'] as const;
/** One of {@link TRUSTED_KINDS}. */
export type TrustedKind = (typeof TRUSTED_KINDS)[number];

/** An issuer, and for which kinds of tokens it is trusted; every kind where none is named. */
export interface TrustedIssuer {
  /** Its `iss`: `https:`, or `http:` on loopback. */
  issuer: string;
  /** The tokens that it may issue. Default: all three. */
  kinds?: readonly TrustedKind[];
}

/** The issuers that are trusted for a kind of token. */
export function issuersFor(kind: TrustedKind, issuers: readonly TrustedIssuer[]): string[] {
  return issuers.filter(({ kinds = TRUSTED_KINDS }) => kinds.includes(kind)).map(({ issuer }) => issuer);
}

/** A kind of token that every reservation needs but no issuer is trusted for; undefined when each kind has an issuer. */
export function missingKind(issuers: readonly TrustedIssuer[]): TrustedKind | undefined {
  return (['user', 'experiment'] as const).find((kind) => issuersFor(kind, issuers).length === 0);
}

/**
 * Checks the address of an issuer whose keys are fetched: it must be `https:`, or `http:` on this machine,
 * without a user, a query or a fragment (THREATS.md 5; RFC 8414 §2).
 *
 * @returns the problem, as a sentence; undefined when the address is accepted
 */
export function issuerProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return 'It must be an https address.';
  if (!isProtected(url)) return `It must be an https address. ${UNPROTECTED}`;
  // An empty query or fragment counts too, and is lost in the parsed URL.
  if (url.username || url.password || /[?#]/.test(text)) {
    return 'It must be an address without a user, a query or a fragment.';
  }
  return undefined;
}

/** Whether a text has the form of a service's address: http or https, without user, query or fragment (RFC 8414 §2). */
export function isServiceAddress(text: string): boolean {
  if (!/^https?:\/\/[^\s\p{Cc}\p{Cf}?#]+$/iu.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

/** An issuer's address without the one slash that may end it: equal for issuers that are {@link sameIssuer}. */
export function issuerName(issuer: string): string {
  return issuer.endsWith('/') ? issuer.slice(0, -1) : issuer;
}

/**
 * Whether two texts name one issuer. They are compared as they stand (RFC 8414 §3.3), but for one slash at the end of
 * one of them: people and services write addresses with and without it (THREATS.md 4, 62).
 *
 * @example sameIssuer('https://login.example.org', 'https://login.example.org/') // true
 */
export function sameIssuer(one: string, other: string): boolean {
  return one === other || `${one}/` === other || one === `${other}/`;
}

/** The value for an issuer, under either spelling of {@link sameIssuer}; its own spelling first. */
export function forIssuer<Value>(issuers: ReadonlyMap<string, Value>, issuer: string): Value | undefined {
  return issuers.get(issuer) ?? issuers.get(issuer.endsWith('/') ? issuer.slice(0, -1) : `${issuer}/`);
}

/**
 * Reads how an administrator is named, who may read and delete any reservation of a server: `USER_ID`, or `USER_ID@ISSUER_URL` for
 * a user of an issuer that the server trusts. With a user id alone, any trusted issuer could claim to speak for that user.
 *
 * @returns the user token's `sub`, and its `iss`, which is left out for the server's own identity provider; undefined when the
 *   text is neither
 * @example readAdministrator('user_h_1@https://login.example.org') // { user: 'user_h_1', issuer: 'https://login.example.org' }
 */
export function readAdministrator(text: string): { user: string; issuer?: string } | undefined {
  const at = text.indexOf('@');
  const [user, issuer] = at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
  if (!v.is(UserId, user)) return undefined;
  if (issuer === undefined) return { user };
  return URL.canParse(issuer) && /^https?:$/.test(new URL(issuer).protocol) ? { user, issuer } : undefined;
}

/**
 * Whose tokens a connectivity service takes, and where its portal is, as it publishes it (RFC 9728 §2). The last four members
 * are an extension.
 */
export const ProtectedResource = v.object({
  resource: describedText('The base address of the service.'),
  authorization_servers: v.pipe(
    v.array(v.string()),
    v.minLength(1),
    v.description('The identity provider: the issuer of user tokens.'),
  ),
  scopes_supported: v.pipe(v.array(v.string()), v.description('The scopes that a user token may have.')),
  portal_url: describedText('The address of the portal.'),
  client_id: describedText('The client as which a program logs people in by a device code.'),
  projects_api_group: describedText("The name of the portal's API of projects."),
  experiments_api_group: describedText("The name of the portal's API of experiments."),
});
/** See {@link ProtectedResource}. */
export type ProtectedResource = v.InferOutput<typeof ProtectedResource>;

/** The same as a client reads it from any service: only `resource` must be there (RFC 9728 §2). */
export const ProtectedResourceReply = v.object({
  resource: v.string(),
  authorization_servers: v.nullish(v.array(v.string())),
  portal_url: v.nullish(v.string()),
  client_id: v.nullish(v.string()),
  projects_api_group: v.nullish(v.string()),
  experiments_api_group: v.nullish(v.string()),
});
