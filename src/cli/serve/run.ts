import { readAdministrator } from '../../contract/administrators.ts';
import { Failure } from '../../contract/failure.ts';
import {
  issuerName,
  issuerProblem,
  issuersFor,
  missingKind,
  TRUSTED_KINDS,
  type TrustedIssuer,
} from '../../contract/issuer-address.ts';
import type { Role } from '../../contract/roles.ts';
import { shellWord } from '../../contract/shell-word.ts';
import { valueFault } from '../../session/profiles/profile.ts';
import { readCertificates } from '../ca-file.ts';
import type { Invocation, ServeSettings } from '../invocation.ts';

/** The flags of the command, as typed. */
export interface ServeFlags {
  host: string;
  port: number;
  baseUrl?: string;
  data?: string;
  memory?: boolean;
  database?: string;
  topology?: string;
  readyFile?: string;
  autoApprove?: Role;
  /** Seconds. */
  accessTokenTtl?: number;
  /** URL, or URL=KIND,KIND. */
  trust?: string[];
  audience?: string;
  anyAudience?: boolean;
  portalUrl?: string;
  authUrl?: string;
  projectsApiGroup: string;
  experimentsApiGroup: string;
  tlsCert?: string;
  tlsKey?: string;
  behindProxy?: boolean;
  maxConnectionsPerAddress: number;
  insecureBuiltInUsers?: boolean;
  insecureThrowAwayKey?: boolean;
  insecureHttp?: boolean;
  /** Milliseconds. */
  rotateKeysEvery?: number;
  administrator?: readonly string[];
  /** PORT or HOST:PORT. */
  metrics?: string;
  /** Seconds. */
  drain: number;
  /** Milliseconds. */
  keep: number;
  /** Percent. */
  maxShare?: number;
  maxLive?: number;
}

/** Runs a reference server until it is told to stop. */
export async function serve(
  invocation: Invocation,
  _args: readonly string[],
  flags: ServeFlags,
): Promise<void> {
  const { output, files } = invocation;
  const { caFile } = invocation.flags;
  // Before anything can fail: a script that waits for it would take an earlier server's for this one's.
  if (flags.readyFile !== undefined) await files.remove(flags.readyFile);
  const settings: ServeSettings = {
    ...readServeFlags(flags),
    ...(caFile === undefined || flags.trust === undefined
      ? {}
      : { certificates: await readCertificates(files, caFile) }),
  };
  const stopped = invocation.stopSignal();
  const server = await invocation.serve(settings);
  const { addresses } = server;
  const shown = server.metrics === undefined ? {} : { metrics: server.metrics };
  await output.result({ addresses, ...shown }, (print) =>
    print.card(`Serving at ${print.paint.bold(addresses.connectivity)}`, [
      ['portal', addresses.portal],
      ['log in', settings.trust ? addresses.identity : `${addresses.identity}/device`],
      ['try it', `${addresses.connectivity}/api-docs`],
      ...Object.entries(shown),
      ['stop', 'Ctrl-C'],
    ]),
  );
  if (flags.autoApprove !== undefined) {
    output.notice(`Every login is approved at once, as ${flags.autoApprove}: for tests only.`);
  }
  for (const danger of server.dangers) output.notice(danger);
  await stopped;
  await server.stop();
}

/**
 * What the flags ask for.
 *
 * @throws Failure `usage` for an address that is none, and for flags that mean nothing without another
 */
export function readServeFlags(given: ServeFlags): ServeSettings {
  const { tlsCert, tlsKey, administrator: administrators = [], metrics, trust: named, ...flags } = given;
  const trust = named && readTrust(named);
  for (const name of ['audience', 'anyAudience', 'portalUrl', 'authUrl'] as const) {
    if (flags[name] !== undefined && trust === undefined) throw needsTrust(name);
  }
  for (const group of ['projectsApiGroup', 'experimentsApiGroup'] as const) checkGroup(group, flags[group]);
  return {
    ...flags,
    ...(trust === undefined ? {} : { trust }),
    administrators: administrators.map((name) => administratorName(name, trust)),
    ...(metrics === undefined ? {} : { metrics: metricsAddress(metrics) }),
    memory: flags.memory === true,
    ...(flags.baseUrl === undefined ? {} : { baseUrl: baseAddress(flags.baseUrl) }),
    ...(flags.portalUrl === undefined ? {} : { portalUrl: baseAddress(flags.portalUrl) }),
    ...(flags.authUrl === undefined ? {} : { authUrl: baseAddress(flags.authUrl) }),
    ...(flags.database === undefined ? {} : { database: databaseAddress(flags.database) }),
    ...certificateFiles(tlsCert, tlsKey),
  };
}

/** The values of `--trust`: issuers, each with the kinds behind the last `=`, if there are any. @throws Failure `usage` */
function readTrust(values: readonly string[]): TrustedIssuer[] {
  const issuers = values.map(readIssuer);
  const missing = missingKind(issuers);
  if (missing === undefined) return issuers;
  throw new Failure('usage', `No issuer is trusted for ${missing} tokens.`, {
    why: `A booking needs a user token and an experiment token, so that each needs an issuer.`,
    fix: [
      'slices-conn serve',
      ...values.map((value) => `--trust ${shellWord(value)}`),
      `--trust https://…=${missing}`,
    ].join(' '),
  });
}

function readIssuer(value: string): TrustedIssuer {
  const [, issuer = value, names] = /^(.*)=([a-z,]*)$/.exec(value) ?? [];
  const problem = issuerProblem(issuer);
  if (problem !== undefined) {
    throw new Failure('usage', `${JSON.stringify(issuer)} is no issuer that can be trusted.`, {
      why: problem,
    });
  }
  if (names === undefined) return { issuer };
  const kinds = names.split(',').map((name) => TRUSTED_KINDS.find((kind) => kind === name));
  if (kinds.every((kind) => kind !== undefined)) return { issuer, kinds };
  throw new Failure('usage', `--trust ${value} names a kind of token that there is not.`, {
    why: `The kinds are: ${TRUSTED_KINDS.join(', ')}.`,
    fix: `slices-conn serve --trust ${shellWord(`${issuer}=${TRUSTED_KINDS.join(',')}`)}`,
  });
}

const FLAG_NAMES = {
  audience: '--audience',
  anyAudience: '--any-audience',
  portalUrl: '--portal-url',
  authUrl: '--auth-url',
} as const;

function needsTrust(name: keyof typeof FLAG_NAMES): Failure {
  return new Failure('usage', `${FLAG_NAMES[name]} means nothing without --trust.`, {
    why: 'Without it this server is its own portal and identity provider.',
  });
}

/** The same names that a client's profile takes, since both put them into one address. */
function checkGroup(key: 'projectsApiGroup' | 'experimentsApiGroup', text: string): void {
  const problem = valueFault(key, text);
  if (problem === undefined) return;
  const flag = key === 'projectsApiGroup' ? '--projects-api-group' : '--experiments-api-group';
  throw new Failure('usage', `${flag} is not a name of an API group.`, { why: problem });
}

function certificateFiles(cert: string | undefined, key: string | undefined): Pick<ServeSettings, 'tls'> {
  if (cert !== undefined && key !== undefined) return { tls: { cert, key } };
  if (cert === undefined && key === undefined) return {};
  throw new Failure('usage', `${cert === undefined ? '--tls-cert' : '--tls-key'} is missing.`, {
    why: 'A certificate and its key are given together.',
    fix: 'slices-conn serve --tls-cert cert.pem --tls-key key.pem',
  });
}

function baseAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url && /^https?:$/.test(url.protocol) && !url.search && !url.hash && !url.username;
  if (plain) return text.replace(/\/+$/, '');
  throw new Failure('usage', `${JSON.stringify(text)} is no base address.`, {
    why: 'It must be an http or https address without a query.',
  });
}

/**
 * A PostgreSQL address as it was typed, for every command that takes one. What is wrong is not repeated: it may hold a
 * password, and a password in an argument is seen by everyone on the machine (HOSTILE.md 52).
 *
 * @throws Failure `usage`
 */
export function databaseAddress(text: string): string {
  const fix = 'PGPASSWORD=… slices-conn serve --database postgres://user@db.example.org/slices';
  if (!/^postgres(?:ql)?:\/\//i.test(text) || !URL.canParse(text)) {
    throw new Failure('usage', 'What --database was given is no address of a PostgreSQL database.', {
      why: 'It must look like postgres://user@host:5432/name.',
      fix,
    });
  }
  const { password, searchParams } = new URL(text);
  if (password === '' && !searchParams.has('password')) return text;
  throw new Failure('usage', 'The address after --database holds a password.', {
    why: 'Everyone on this machine can see it there. Give it in PGPASSWORD, in a file that PGPASSFILE names (default: ~/.pgpass), or in a service file (PGSERVICE).',
    fix,
  });
}

/** @param trust the trusted issuers; undefined for users of our own */
function administratorName(text: string, trust: readonly TrustedIssuer[] | undefined): string {
  const read = readAdministrator(text);
  const issuers = trust && issuersFor('user', trust);
  if (read && read.issuer === undefined && new Set(issuers?.map(issuerName)).size > 1) {
    throw new Failure('usage', `${text} may be a user of several issuers.`, {
      why: 'With more than one issuer of user tokens, an administrator is named with the issuer.',
      fix: `slices-conn serve --administrator ${shellWord(`${text}@${issuers?.[0]}`)}`,
    });
  }
  if (read) return text;
  throw new Failure('usage', `${JSON.stringify(text)} names no administrator.`, {
    why: 'It must be a user id, user_<host>_<id>; for a user of another issuer with @ and its address behind it.',
    fix: 'slices-conn status --json',
  });
}

/** A port alone is one of this machine's own: who wants more says so. */
function metricsAddress(text: string): { host: string; port: number } {
  const found = /^(?:(?<host>[^:[\]]+|\[[0-9A-Fa-f:.]+\]):)?(?<port>[0-9]{1,5})$/.exec(text);
  const { host = '127.0.0.1', port = '' } = found?.groups ?? {};
  if (found && Number(port) <= 65_535) return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
  throw new Failure('usage', `${JSON.stringify(text)} is no place for metrics.`, {
    why: 'It must be a port of this machine, or HOST:PORT.',
    fix: 'slices-conn serve --metrics 9464',
  });
}
