import { CI_NAMES, CI_SYSTEMS, type CiIssuers, type CiName } from '../contract/ci-rules.ts';
import { type Changes, Failure } from '../contract/failure.ts';
import {
  isServiceAddress,
  issuerName,
  issuerProblem,
  issuersFor,
  missingKind,
  readAdministrator,
  TRUSTED_KINDS,
  type TrustedIssuer,
} from '../contract/issuer-address.ts';
import { ROLES } from '../contract/roles.ts';
import { API_GROUP } from '../contract/routes.ts';
import type { ReferenceServerOptions } from '../reference-server.ts';
import type { ForeignIssuers } from '../server/trust.ts';
import type { CertificateFiles } from './certificate.ts';
import { databaseAddress } from './database.ts';
import type { ListeningPlace } from './http-server.ts';
import { SERVER_OPTIONS, type ServeOptions } from './options.ts';

/** Flags of which the value is read, or that make one value together. */
type ReadFlag =
  | ('trust' | 'ciIssuer' | 'audience' | 'portalUrl' | 'authUrl' | 'administrator' | 'ui' | 'uiClientId')
  | ('topology' | 'directory' | 'metrics' | 'log' | 'tlsCert' | 'tlsKey');

/**
 * The flags of `serve`, checked. A value that needs no reading is the flag's own. A member that `ReferenceServerOptions`
 * has too is that option.
 */
export interface ServeSettings
  extends Omit<ServeOptions, ReadFlag>,
    Pick<ReferenceServerOptions, 'administrators'> {
  /** The page; `false` where it is turned off. */
  ui: false | { clientId?: string };
  /** The issuers of `--trust`, with the audience of their tokens and the addresses of portal and identity provider. */
  trust?: Omit<ForeignIssuers, 'issuers'> & { issuers: readonly TrustedIssuer[] };
  /** The issuers of `--ci-issuer`. */
  ciIssuers?: CiIssuers;
  topologyFile?: string;
  directoryFile?: string;
  metricsPlace?: ListeningPlace;
  tls?: CertificateFiles;
}

/**
 * Checks the flags of `serve`, and reads those that hold more than one value.
 *
 * @throws Failure `usage` for a value that can't be used, and for a flag without the flag that it needs
 */
export function readSettings(options: ServeOptions): ServeSettings {
  const { trust, audience, portalUrl, authUrl, administrator, ui, uiClientId, ...others } = options;
  const { ciIssuer, topology, directory, metrics, log: _log, tlsCert, tlsKey, ...flags } = others;
  const issuers = trust && readTrust(trust);
  for (const name of ['audience', 'anyAudience', 'portalUrl', 'authUrl', 'uiClientId'] as const) {
    if (options[name] !== undefined && issuers === undefined) throw needsTrust(name);
  }
  for (const name of ['projectsApiGroup', 'experimentsApiGroup'] as const) checkGroup(name, flags[name]);
  for (const [at, name] of (administrator ?? []).entries()) {
    checkAdministrator(name, issuers, (by) => administrator?.with(at, by) ?? []);
  }
  if (flags.database !== undefined) databaseAddress(flags.database);
  if (directory === undefined) checkUser(flags.autoApprove, ROLES);
  return {
    ...flags,
    baseUrl: baseAddress(flags.baseUrl),
    ui: ui !== false && { clientId: uiClientId },
    trust: issuers && {
      issuers,
      audience,
      portalUrl: baseAddress(portalUrl),
      authUrl: baseAddress(authUrl),
    },
    ciIssuers: ciIssuer && readCiIssuers(ciIssuer),
    administrators: administrator,
    topologyFile: topology,
    directoryFile: directory,
    metricsPlace: metricsPlace(metrics),
    tls: certificateFiles(tlsCert, tlsKey),
  };
}

/** The values of `--trust`: each an issuer, with the kinds after the last `=` if there are any. */
function readTrust(values: readonly string[]): TrustedIssuer[] {
  const issuers = values.map((value, at) => readIssuer(value, (by) => ({ trust: values.with(at, by) })));
  const missing = missingKind(issuers);
  if (missing === undefined) return issuers;
  throw new Failure('usage', `No issuer is trusted for ${missing} tokens.`, {
    why: 'A booking needs a user token and an experiment token. Each needs an issuer.',
    fix: { trust: [...values, `https://login.example.org=${missing}`] },
  });
}

/** @param instead the typed command with another value in its place */
function readIssuer(value: string, instead: (value: string) => Changes): TrustedIssuer {
  const [, issuer = value, names] = /^(.*)=([a-z,]*)$/.exec(value) ?? [];
  checkIssuer(issuer);
  if (names === undefined) return { issuer };
  const kinds = names.split(',').map((name) => TRUSTED_KINDS.find((kind) => kind === name));
  if (kinds.every((kind) => kind !== undefined)) return { issuer, kinds };
  throw new Failure('usage', `--trust ${value} names a kind of token that does not exist.`, {
    why: `The kinds are: ${TRUSTED_KINDS.join(', ')}.`,
    fix: instead(`${issuer}=${TRUSTED_KINDS.join(',')}`),
  });
}

/** The values of `--ci-issuer`: each a kind of CI, with the address of its issuer where that is not the public one. */
function readCiIssuers(values: readonly string[]): CiIssuers {
  const issuers: Partial<Record<CiName, string>> = {};
  for (const value of values) {
    const [, named = value, url] = /^([^=]*)=(.*)$/.exec(value) ?? [];
    const name = CI_NAMES.find((one) => one === named);
    if (name === undefined || issuers[name] !== undefined) {
      throw new Failure('usage', `--ci-issuer ${value} can't be used.`, {
        why: `The names are ${CI_NAMES.join(' and ')}, each once.`,
      });
    }
    checkIssuer(url ?? CI_SYSTEMS[name].issuer);
    issuers[name] = issuerName(url ?? CI_SYSTEMS[name].issuer);
  }
  return issuers;
}

function checkIssuer(issuer: string): void {
  const why = issuerProblem(issuer);
  if (why === undefined) return;
  throw new Failure(
    'usage',
    `${JSON.stringify(issuer)} is not an address of an issuer that can be trusted.`,
    {
      why,
    },
  );
}

/** Checks that `--auto-approve` names a user. @param names of all users @throws Failure `usage` */
export function checkUser(name: string | undefined, names: readonly string[]): void {
  if (name === undefined || names.includes(name)) return;
  throw new Failure('usage', `There is no user ${JSON.stringify(name)} for --auto-approve.`, {
    why: names.length === 0 ? 'The directory has no users.' : `The users are: ${names.join(', ')}.`,
  });
}

function needsTrust(name: keyof typeof SERVER_OPTIONS.serve): Failure {
  return new Failure('usage', `${flagOf(name)} needs --trust.`, {
    why: 'Without --trust this server is its own portal and identity provider.',
  });
}

/** A client's profile takes the same names, since both put them into one address. */
function checkGroup(name: 'projectsApiGroup' | 'experimentsApiGroup', text: string): void {
  if (API_GROUP.pattern.test(text)) return;
  throw new Failure('usage', `${flagOf(name)} is not the name of an API group.`, { why: API_GROUP.problem });
}

/** The flag alone, such as `--port`. */
function flagOf(name: keyof typeof SERVER_OPTIONS.serve): string {
  return SERVER_OPTIONS.serve[name].flags.replace(/ .*/, '');
}

function certificateFiles(cert: string | undefined, key: string | undefined): CertificateFiles | undefined {
  if (cert !== undefined && key !== undefined) return { cert, key };
  if (cert === undefined && key === undefined) return undefined;
  throw new Failure('usage', `${cert === undefined ? '--tls-cert' : '--tls-key'} is missing.`, {
    why: 'A certificate needs its key, and a key its certificate.',
    fix: cert === undefined ? { tlsCert: 'cert.pem' } : { tlsKey: 'key.pem' },
  });
}

function baseAddress(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (isServiceAddress(text)) return text.replace(/\/+$/, '');
  throw new Failure('usage', `${JSON.stringify(text)} is not a base address.`, {
    why: 'It must be an http or https address without a user, a query or a fragment.',
  });
}

/**
 * @param trust the trusted issuers; undefined when the server has the built-in users
 * @param instead all administrators, with another in its place
 */
function checkAdministrator(
  text: string,
  trust: readonly TrustedIssuer[] | undefined,
  instead: (value: string) => readonly string[],
): void {
  const read = readAdministrator(text);
  const issuers = trust && issuersFor('user', trust);
  if (read && read.issuer === undefined && new Set(issuers?.map(issuerName)).size > 1) {
    throw new Failure('usage', `${text} may be a user of several issuers.`, {
      why: 'With several issuers of user tokens, an administrator needs the issuer too.',
      fix: { administrator: instead(`${text}@${issuers?.[0]}`) },
    });
  }
  if (read) return;
  throw new Failure('usage', `${JSON.stringify(text)} is not the name of an administrator.`, {
    why: 'It must be a user id, user_<host>_<id>, or for a user of another issuer user_<host>_<id>@ISSUER_URL.',
    fix: 'slices-conn status --json',
  });
}

/** A port alone is on loopback. */
function metricsPlace(text: string | undefined): ListeningPlace | undefined {
  if (text === undefined) return undefined;
  const found = /^(?:(?<host>[^:[\]]+|\[[0-9A-Fa-f:.]+\]):)?(?<port>[0-9]{1,5})$/.exec(text);
  const { host = '127.0.0.1', port = '' } = found?.groups ?? {};
  if (found && Number(port) <= 65_535) return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
  throw new Failure('usage', `${JSON.stringify(text)} is not an address for metrics.`, {
    why: 'It must be a port of this machine, or HOST:PORT.',
    fix: { metrics: '9464' },
  });
}
