import { BlockList, isIP } from 'node:net';
import { exchange, readAs, requestTo } from '../../client/exchange.ts';
import {
  isLoopback,
  isProtected,
  loopbackAddress,
  ProtectedResourceReply,
  sameIssuer,
  UNPROTECTED,
} from '../../contract/addresses.ts';
import { Failure, isMissing } from '../../contract/failure.ts';
import { EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP, PROTECTED_RESOURCE_PATH } from '../../contract/routes.ts';
import type { Send } from '../../contract/sending.ts';
import { readValue, type Settings, valueFault } from './profile.ts';
import { PROFILE_KEYS } from './profile-keys.ts';

/** Where a service is, as a person typed it. */
export interface ServiceAddress {
  /** Its base address: an origin, https or on this machine. */
  url: string;
  /** The name of its profile: the host, with its port where that is not the scheme's own. */
  name: string;
}

const ADDRESS = /^(?:https?:\/\/)?(?:[^\s/\\?#@:[\]]+|\[[\da-f:.]+\])(?::\d{1,5})?\/?$/i;

/**
 * Reads the address of a service: a host, or an origin. Without a scheme it is https, and http on this machine.
 *
 * @throws Failure `usage`, which does not repeat the text, since it may be a secret (THREATS.md 54, 147)
 */
export function readServiceAddress(typed: string): ServiceAddress {
  const [host = ''] = /^(?:\[.*\]|[^:/]*)/.exec(typed) ?? [];
  const isHere = loopbackAddress(host) !== undefined;
  const text = typed.includes('://') ? typed : `${isHere ? 'http' : 'https'}://${typed}`;
  // A word alone may be a token, or the name of a profile.
  const isHost = isHere || /[.:]/.test(typed);
  if (!isHost || !ADDRESS.test(typed) || valueFault('baseUrl', text) !== undefined) {
    throw new Failure('usage', 'This is not the address of a service.', {
      why: 'It must be a host, such as conn.example.org or 127.0.0.1:4280, without user, path, query and fragment. For a profile there is --profile NAME.',
      fix: 'slices-conn login --help',
    });
  }
  const url = new URL(text);
  if (isProtected(url)) return { url: url.origin, name: url.host };
  throw new Failure('usage', `${url.origin} is not an https address.`, { why: UNPROTECTED });
}

/** The keys of a profile that a service names. */
const NAMED = ['baseUrl', 'portalUrl', 'authUrl', 'clientId', 'apiGroups'] as const;
/** The services that a service names: its portal, its identity provider, and how to log in there. */
export type NamedServices = Required<Pick<Settings, (typeof NAMED)[number]>>;

/**
 * Asks a service which portal and identity provider it works with (RFC 9728 §3). Nothing but the question is sent.
 *
 * @throws Failure `not_supported` for a service that does not say it; `reply_invalid` for metadata of another resource (RFC 9728
 *   §3.3), or with a value that can't be used (THREATS.md 145 to 147); what the exchange throws
 */
export async function askForServices(address: ServiceAddress, send: Send): Promise<NamedServices> {
  const { url, name } = address;
  const request = requestTo(url, 'protectedResource', { headers: {}, accept: 'application/json' });
  const reply = await exchange(send, request).catch((error: unknown) => {
    throw isUnpublished(error) ? saysNothing(address) : error;
  });
  const found = readAs(ProtectedResourceReply, reply, `metadata of ${name}`);
  if (!sameIssuer(found.resource, url)) {
    throw unusable(name, `It is about ${JSON.stringify(found.resource)}, and ${url} was asked.`);
  }
  const [authUrl] = found.authorization_servers ?? [];
  if (!found.portal_url || !authUrl) throw saysNothing(address);
  const named: NamedServices = {
    baseUrl: url,
    portalUrl: found.portal_url,
    authUrl,
    clientId: found.client_id ?? PROFILE_KEYS.clientId.default,
    apiGroups: [
      found.projects_api_group ?? PROJECTS_API_GROUP,
      found.experiments_api_group ?? EXPERIMENTS_API_GROUP,
    ].join(),
  };
  for (const key of NAMED) {
    named[key] = String(readValue(key, named[key]));
    const why = valueFault(key, named[key]);
    if (why !== undefined) throw unusable(name, `Its value for ${key} is not one. ${why}`);
  }
  for (const key of ['portalUrl', 'authUrl'] as const) checkReach(named[key], address);
  return named;
}

/** The keys that a service now names otherwise than a profile has them. */
export function changedKeys(named: NamedServices, kept: Readonly<Settings>): (keyof NamedServices)[] {
  return NAMED.filter((key) => named[key] !== kept[key]);
}

/** Networks whose addresses are another machine in each, or none that can be reached (RFC 6890). */
const PRIVATE = new BlockList();
for (const subnet of [
  ...[
    '0.0.0.0/8',
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.168.0.0/16',
  ],
  ...['192.0.0.0/24', '192.0.2.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3'],
]) {
  const [network = '', prefix] = subnet.split('/');
  PRIVATE.addSubnet(network, Number(prefix), 'ipv4');
  // The addresses of IPv6 that lead there: NAT64 (RFC 6052) and 6to4 (RFC 3056).
  PRIVATE.addSubnet(`64:ff9b::${network}`, 96 + Number(prefix), 'ipv6');
  const hex = network.replace(/\d+\.?/g, (part) => Number.parseInt(part, 10).toString(16).padStart(2, '0'));
  PRIVATE.addSubnet(`2002:${hex.slice(0, 4)}:${hex.slice(4)}::`, 16 + Number(prefix), 'ipv6');
}
for (const subnet of [
  '::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  'fc00::/7',
  'fe80::/9',
  'ff00::/8',
]) {
  const [network = '', prefix] = subnet.split('/');
  PRIVATE.addSubnet(network, Number(prefix), 'ipv6');
}

/** Names that the public DNS does not have: of one label, and below those of RFC 6762, RFC 8375 and ICANN. */
const PRIVATE_NAME = /^[^.]+$|\.(?:local|internal|home\.arpa|home|corp|lan)$/;

/** How far an address leads: 0 to this machine, 1 to a private network, 2 further. A name that is looked up leads further. */
function reachOf(url: URL): 0 | 1 | 2 {
  if (isLoopback(url)) return 0;
  const host = url.hostname.replace(/[[\]]|\.$/g, '');
  const version = isIP(host);
  const isPrivate =
    version === 0 ? PRIVATE_NAME.test(host) : PRIVATE.check(host, version === 4 ? 'ipv4' : 'ipv6');
  return isPrivate ? 1 : 2;
}

/** Refuses an address that leads less far than the service's own: it would be another machine for each who asks (THREATS.md 145). */
function checkReach(text: string, { url, name }: ServiceAddress): void {
  const named = new URL(text);
  if (!isProtected(named))
    throw unusable(name, `It names ${text}, which is not an https address. ${UNPROTECTED}`);
  if (reachOf(named) >= reachOf(new URL(url))) return;
  const place = reachOf(named) === 0 ? 'your own machine' : 'a private network';
  throw unusable(name, `It names ${text}, which is on ${place}, and ${name} is not.`);
}

/** Whether a service has no metadata: some answer so to every request without a token. */
function isUnpublished(error: unknown): boolean {
  return (
    isMissing(error) || (error instanceof Failure && [400, 401, 403].includes(error.facts.httpStatus ?? 0))
  );
}

function saysNothing({ url, name }: ServiceAddress): Failure {
  const asked = (['baseUrl', 'portalUrl', 'authUrl', 'clientId'] as const).map(
    (key) => `${key.padEnd(9)}  ${PROFILE_KEYS[key].about}`,
  );
  return new Failure(
    'not_supported',
    `${name} does not say where its portal and its identity provider are.`,
    {
      why: `It names none at ${url}${PROTECTED_RESOURCE_PATH}. Ask its operator for these four values, and set them in a profile:`,
      lines: asked,
      fix: 'slices-conn profile set --help',
    },
  );
}

function unusable(name: string, why: string): Failure {
  return new Failure(
    'reply_invalid',
    `What ${name} says about its portal and its identity provider can't be used.`,
    {
      why,
    },
  );
}
