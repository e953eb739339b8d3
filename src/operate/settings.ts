import { isIP } from 'node:net';
import {
  isLoopback,
  issuerName,
  issuersFor,
  loopbackAddress,
  missingKind,
  readAdministrator,
} from '../contract/addresses.ts';
import { type Changes, Failure } from '../contract/failure.ts';
import { ROLES } from '../contract/roles.ts';
import { databaseAddress } from './database.ts';
import { SERVER_OPTIONS, type ServeOptions } from './options.ts';

/**
 * Checks the flags of `serve` together. A server that others can reach needs real users, a key that is kept, encryption and
 * a name (THREATS.md 42). Others can reach it when it listens on an address other than loopback, when its base address is
 * not on loopback, and behind a proxy.
 *
 * @throws Failure `usage` for a flag without another that it needs, and naming every danger with what to type instead
 */
export function checkSettings(options: ServeOptions): void {
  const { trust, database, directory, autoApprove, tlsCert, tlsKey } = options;
  for (const name of ['audience', 'anyAudience', 'portalUrl', 'authUrl', 'uiClientId'] as const) {
    if (options[name] === undefined || trust) continue;
    throw new Failure('usage', `${SERVER_OPTIONS.serve[name].flags.replace(/ .*/, '')} needs --trust.`, {
      why: 'Without --trust this server is its own portal and identity provider.',
    });
  }
  const missing = trust && missingKind(trust);
  if (missing !== undefined) {
    throw new Failure('usage', `No issuer is trusted for ${missing} tokens.`, {
      why: `A booking needs a user token and an experiment token. Each needs an issuer: --trust ISSUER_URL=${missing}.`,
    });
  }
  checkAdministrators(options);
  checkMetricsPort(options);
  if (database !== undefined) databaseAddress(database);
  if (directory === undefined) checkUser(autoApprove, ROLES);
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new Failure('usage', `${tlsCert === undefined ? '--tls-cert' : '--tls-key'} is missing.`, {
      why: 'A certificate needs its key, and a key its certificate.',
      fix: tlsCert === undefined ? { tlsCert: 'cert.pem' } : { tlsKey: 'key.pem' },
    });
  }
  checkExposure(options);
}

/** The services and the metrics each need a port of their own. */
function checkMetricsPort({ host, port, metrics }: ServeOptions): void {
  const [own, other] = [host, metrics?.host ?? ''].map((one) => loopbackAddress(one) ?? one);
  const isOneAddress = own === other || [host, metrics?.host ?? ''].some(isEveryAddress);
  if (port === 0 || port !== metrics?.port || !isOneAddress) return;
  throw new Failure('usage', `--port and --metrics are both ${port}.`, {
    why: 'Metrics have a port of their own, so that who can reach the services can’t read them.',
    fix: { metrics: '0' },
  });
}

/** With several issuers of user tokens, a user id alone would be of any of them. */
function checkAdministrators({ trust = [], administrator = [] }: ServeOptions): void {
  const issuers = new Set(issuersFor('user', trust).map(issuerName));
  const unclear = administrator.find((text) => readAdministrator(text)?.issuer === undefined);
  if (unclear === undefined || issuers.size < 2) return;
  throw new Failure('usage', `${unclear} may be a user of several issuers.`, {
    why: `With several issuers of user tokens, an administrator needs the issuer too, such as ${unclear}@${[...issuers][0]}.`,
  });
}

/** Checks that `--auto-approve` names a user. @param names of all users @throws Failure `usage` */
export function checkUser(name: string | undefined, names: readonly string[]): void {
  if (name === undefined || names.includes(name)) return;
  throw new Failure('usage', `There is no user ${JSON.stringify(name)} for --auto-approve.`, {
    why: names.length === 0 ? 'The directory has no users.' : `The users are: ${names.join(', ')}.`,
  });
}

/** Something that makes a server unsafe for others to reach. */
interface Danger {
  threatens: (options: ServeOptions) => boolean;
  danger: string;
  /** The flags that prevent it, and the one that allows it. */
  remedy: string;
  /** With this flag the danger is a warning at the start. */
  allowedBy?: 'insecureBuiltInUsers' | 'anyAudience' | 'insecureHttp';
}

const DANGERS: readonly Danger[] = [
  {
    threatens: ({ trust }) => trust === undefined,
    danger: 'Anyone who reaches this server can log in as any of the built-in users, without a password',
    remedy:
      '--trust ISSUER_URL takes the users of an identity provider in their place (--insecure-built-in-users allows it)',
    allowedBy: 'insecureBuiltInUsers',
  },
  {
    threatens: ({ trust, audience }) => trust !== undefined && audience === undefined,
    danger: 'Tokens are taken whatever service they were issued for',
    remedy: '--audience AUDIENCE, what the user tokens name as aud (--any-audience allows it)',
    allowedBy: 'anyAudience',
  },
  {
    threatens: ({ memory }) => memory === true,
    danger: 'With --memory the reservations, and the key that they are signed with, are gone when it ends',
    remedy: 'leave it out, or give --database URL',
  },
  {
    threatens: (options) => !isEncrypted(options),
    danger: 'Tokens pass over plain http, where anyone on the way can take them',
    remedy:
      '--tls-cert FILE --tls-key FILE, or --behind-proxy where a proxy ends TLS (--insecure-http allows it)',
    allowedBy: 'insecureHttp',
  },
  {
    threatens: ({ host, baseUrl }) => isEveryAddress(host) && baseUrl === undefined,
    danger: 'It listens on every address of this machine, so its clients need one address to use',
    remedy: '--base-url URL',
  },
];

function checkExposure(options: ServeOptions): void {
  const { host, baseUrl, autoApprove, trust, insecureBuiltInUsers, insecureHttp, anyAudience } = options;
  if (host === '') throw new Failure('usage', 'The host to listen on is empty.', { fix: LOOPBACK });
  checkBaseUrl(options);
  if (!isExposed(options)) return;
  const subject = loopbackAddress(host) !== undefined && baseUrl !== undefined ? new URL(baseUrl).host : host;
  const message = `${subject} is not an address of this machine alone.`;
  if (autoApprove !== undefined) {
    throw new Failure('usage', message, {
      why: '--auto-approve lets everyone in who asks; that is for tests on loopback only.',
      fix: LOOPBACK,
    });
  }
  const dangers = DANGERS.filter(
    ({ threatens, allowedBy }) => threatens(options) && !(allowedBy && options[allowedBy]),
  );
  if (dangers.length === 0) return;
  const meant = trust || isEncrypted(options) || insecureBuiltInUsers || insecureHttp || anyAudience;
  throw new Failure('usage', message, {
    why: dangers.map(({ danger, remedy }) => `${danger}: ${remedy}.`).join(' '),
    fix: meant ? deployable(options) : LOOPBACK,
  });
}

/** The dangers that were allowed by a flag, as warnings for the start. */
export function allowedDangers(options: ServeOptions): string[] {
  if (!isExposed(options)) return [];
  return DANGERS.flatMap(({ threatens, allowedBy, danger }) =>
    allowedBy && options[allowedBy] && threatens(options) ? [`${danger}.`] : [],
  );
}

function isExposed({ host, baseUrl, behindProxy }: ServeOptions): boolean {
  return (
    loopbackAddress(host) === undefined ||
    (baseUrl !== undefined && !isLoopback(new URL(baseUrl))) ||
    behindProxy === true
  );
}

/** The typed command for this machine alone. */
const LOOPBACK: Changes = { host: '127.0.0.1', baseUrl: undefined, behindProxy: undefined };

function checkBaseUrl(options: ServeOptions): void {
  const { baseUrl, behindProxy } = options;
  if (behindProxy && baseUrl === undefined) {
    throw new Failure('usage', '--behind-proxy needs --base-url.', {
      why: 'Only the proxy knows the address that clients use.',
      fix: deployable(options),
    });
  }
  if (baseUrl === undefined || !isEncrypted(options) || baseUrl.startsWith('https:')) return;
  throw new Failure('usage', `The base address ${baseUrl} is not https.`, {
    why: 'Clients reach this server over TLS, and its address stands in every token that it signs.',
    fix: deployable({ ...options, baseUrl: baseUrl.replace(/^http:/i, 'https:') }),
  });
}

function isEncrypted({ tlsCert, behindProxy }: ServeOptions): boolean {
  return tlsCert !== undefined || behindProxy === true;
}

/** The typed command with what is missing to serve others, as examples, and without what is for one person's tests. */
function deployable(options: ServeOptions): Changes {
  const { baseUrl = 'https://slices.example.org', trust, audience, anyAudience } = options;
  return {
    baseUrl,
    ...(anyAudience || audience !== undefined ? {} : { audience: baseUrl }),
    ...(isEncrypted(options) ? {} : { tlsCert: 'cert.pem', tlsKey: 'key.pem' }),
    memory: undefined,
    ...(trust
      ? {}
      : {
          trust: 'https://login.example.org',
          directory: undefined,
          accessTokenTtl: undefined,
          insecureBuiltInUsers: undefined,
        }),
  };
}

/** Every spelling of it: 0.0.0.0, 0, ::, 0::0. */
function isEveryAddress(host: string): boolean {
  const address = `http://${isIP(host) === 6 ? `[${host}]` : host}`;
  return URL.canParse(address) && ['0.0.0.0', '[::]'].includes(new URL(address).hostname);
}
