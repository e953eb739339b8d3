import { isIP } from 'node:net';
import { type Changes, Failure } from '../contract/failure.ts';
import { isLoopback, loopbackAddress } from '../contract/loopback.ts';
import type { ServeSettings } from './settings.ts';

/** Something that makes a server unsafe for others to reach. */
interface Danger {
  threatens: (settings: ServeSettings) => boolean;
  /** The danger, and the flags that prevent it. */
  why: string;
  /** The flag that allows it, and the warning that is shown then at the start. */
  allowed?: { by: (settings: ServeSettings) => boolean | undefined; notice: string };
}

const DANGERS: readonly Danger[] = [
  {
    threatens: ({ trust }) => trust === undefined,
    why: 'Anyone could log in as any of the built-in users, without a password: --trust ISSUER_URL takes the users of an identity provider in their place (--insecure-built-in-users allows it).',
    allowed: {
      by: ({ insecureBuiltInUsers }) => insecureBuiltInUsers,
      notice: 'Anyone who reaches this server can log in as any of the built-in users, without a password.',
    },
  },
  {
    threatens: ({ trust }) => trust !== undefined && trust.audience === undefined,
    why: 'Tokens that were issued for other services would be taken here too: --audience AUDIENCE, what the user tokens name as aud (--any-audience allows it).',
    allowed: {
      by: ({ anyAudience }) => anyAudience,
      notice: 'Tokens are taken whatever service they were issued for.',
    },
  },
  {
    threatens: ({ memory }) => memory === true,
    why: 'With --memory the reservations, and the key that they are signed with, are gone when it ends: leave it out, or give --database URL.',
  },
  {
    threatens: (settings) => !isEncrypted(settings),
    why: 'Tokens would pass over plain http, where anyone on the way can take them: --tls-cert FILE --tls-key FILE, or --behind-proxy where a proxy ends TLS (--insecure-http allows it).',
    allowed: {
      by: ({ insecureHttp }) => insecureHttp,
      notice: 'Tokens pass over plain http, where anyone on the way can take them.',
    },
  },
  {
    threatens: ({ host, baseUrl }) => isEveryAddress(host) && baseUrl === undefined,
    why: 'It listens on every address of this machine, so its clients need one address to use: --base-url URL.',
  },
];

/**
 * Checks that a server that others can reach has real users, a key that is kept, encryption and a name (THREATS.md 42).
 * Others can reach it when it listens on an address other than loopback, when its base address is not on loopback, and
 * behind a proxy.
 *
 * @throws Failure `usage` that names every danger and what to type instead, and for addresses that can't be used
 */
export function checkExposure(settings: ServeSettings): void {
  const { host, baseUrl, autoApprove } = settings;
  if (host === '') throw new Failure('usage', 'The host to listen on is empty.', { fix: LOOPBACK });
  checkBaseUrl(settings);
  if (!isExposed(settings)) return;
  const subject = loopbackAddress(host) !== undefined && baseUrl !== undefined ? new URL(baseUrl).host : host;
  const message = `${subject} is not an address of this machine alone.`;
  if (autoApprove !== undefined) {
    throw new Failure('usage', message, {
      why: '--auto-approve lets everyone in who asks; that is for tests on loopback only.',
      fix: LOOPBACK,
    });
  }
  const dangers = DANGERS.filter(({ threatens, allowed }) => threatens(settings) && !allowed?.by(settings));
  if (dangers.length === 0) return;
  const { trust, insecureBuiltInUsers, insecureHttp, anyAudience } = settings;
  const meant = trust || isEncrypted(settings) || insecureBuiltInUsers || insecureHttp || anyAudience;
  throw new Failure('usage', message, {
    why: dangers.map(({ why }) => why).join(' '),
    fix: meant ? deployable(settings) : LOOPBACK,
  });
}

/** The dangers that were allowed by a flag, as warnings for the start. */
export function allowedDangers(settings: ServeSettings): string[] {
  if (!isExposed(settings)) return [];
  return DANGERS.flatMap(({ threatens, allowed }) =>
    allowed?.by(settings) && threatens(settings) ? [allowed.notice] : [],
  );
}

function isExposed({ host, baseUrl, behindProxy }: ServeSettings): boolean {
  return (
    loopbackAddress(host) === undefined ||
    (baseUrl !== undefined && !isLoopback(new URL(baseUrl))) ||
    behindProxy === true
  );
}

/** The typed command for this machine alone. */
const LOOPBACK: Changes = { host: '127.0.0.1', baseUrl: undefined, behindProxy: undefined };

function checkBaseUrl(settings: ServeSettings): void {
  const { baseUrl, behindProxy } = settings;
  if (behindProxy && baseUrl === undefined) {
    throw new Failure('usage', '--behind-proxy needs --base-url.', {
      why: 'Only the proxy knows the address that clients use.',
      fix: deployable(settings),
    });
  }
  if (baseUrl === undefined || !isEncrypted(settings) || baseUrl.startsWith('https:')) return;
  throw new Failure('usage', `The base address ${baseUrl} is not https.`, {
    why: 'Clients reach this server over TLS, and its address stands in every token that it signs.',
    fix: deployable({ ...settings, baseUrl: baseUrl.replace(/^http:/i, 'https:') }),
  });
}

function isEncrypted({ tls, behindProxy }: ServeSettings): boolean {
  return tls !== undefined || behindProxy === true;
}

/** The typed command with what is missing to serve others, as examples, and without what is for one person's tests. */
function deployable({ baseUrl, trust, anyAudience, tls, behindProxy }: ServeSettings): Changes {
  const named = baseUrl ?? 'https://slices.example.org';
  return {
    baseUrl: named,
    ...(trust ? {} : { trust: 'https://login.example.org' }),
    ...(anyAudience || trust?.audience !== undefined ? {} : { audience: named }),
    ...(tls || behindProxy ? {} : { tlsCert: 'cert.pem', tlsKey: 'key.pem' }),
    memory: undefined,
    ...(trust ? {} : { directory: undefined, accessTokenTtl: undefined, insecureBuiltInUsers: undefined }),
  };
}

/** Every spelling of it: 0.0.0.0, 0, ::, 0::0. */
function isEveryAddress(host: string): boolean {
  const address = `http://${isIP(host) === 6 ? `[${host}]` : host}`;
  return URL.canParse(address) && ['0.0.0.0', '[::]'].includes(new URL(address).hostname);
}
