import { statSync } from 'node:fs';
import { isIP } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import type { ConnectionOptions } from 'node:tls';
import { Failure, shellWord } from '../../contract/failure.ts';
import { loopbackAddress } from '../../contract/loopback.ts';
import { readBounded } from '../../files/bounded.ts';
import { homeFolder } from '../../files/home.ts';

/** How a PostgreSQL server is reached, as the driver takes it. */
export interface PostgresConnection {
  /** The address, with what a service file adds; it says nothing about TLS. */
  connectionString: string;
  ssl: ConnectionOptions | false;
  /** Whether a standby must be refused. */
  needsPrimary: boolean;
}

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Parameters about TLS, with the variable that stands in for each. */
const TLS_VARIABLES = {
  sslmode: 'PGSSLMODE',
  sslrootcert: 'PGSSLROOTCERT',
  sslcert: 'PGSSLCERT',
  sslkey: 'PGSSLKEY',
} as const;

/**
 * Reads the address of a PostgreSQL database as libpq does
 * (https://www.postgresql.org/docs/current/libpq-connect.html): what it leaves open is taken from the service that
 * `?service=` or `PGSERVICE` names, then from the variables that libpq has, and a password from the password file. The driver itself reads `PGHOST`,
 * `PGPASSWORD` and the like.
 *
 * Without an `sslmode`, a server on this machine is reached without TLS, and every other one over TLS with a certificate
 * that is verified for its name (THREATS.md 52). Three modes weaken that: `disable`, `no-verify` (the certificate is not
 * checked), and `verify-ca` (any name, where `sslrootcert` says who signs). `require` and `verify-full` verify on this
 * machine too; `prefer` and `allow` count as unset.
 *
 * @throws Failure `usage` for an unknown `sslmode`, a service that is not there or not understood, several hosts, or a
 *   `target_session_attrs` that asks for a standby
 * @throws Failure `file_unusable` for a certificate or key that can't be read, and for a password in a file that others
 *   can read
 */
export function readConnection(address: string, env: Environment = process.env): PostgresConnection {
  refuseSeveralHosts(address);
  const url = new URL(address);
  const { searchParams } = url;
  const name = searchParams.get('service') ?? env['PGSERVICE'];
  searchParams.delete('service');
  for (const [key, value] of name ? readService(name, env) : []) fillIn(url, key, value);
  const said = (key: keyof typeof TLS_VARIABLES): string | undefined =>
    searchParams.get(key) || env[TLS_VARIABLES[key]] || undefined;
  const host = searchParams.get('host') || url.hostname || env['PGHOST'] || 'localhost';
  refuseList(host);
  const ssl = tlsOptions(host, said);
  const session = searchParams.get('target_session_attrs') || env['PGTARGETSESSIONATTRS'] || 'any';
  searchParams.delete('target_session_attrs');
  if (!['any', 'read-write', 'primary'].includes(session)) {
    throw new Failure('usage', `target_session_attrs=${session} can't be used.`, {
      why: 'The server writes, so it needs the primary: any, read-write and primary all mean that here.',
    });
  }
  for (const key of ['ssl', 'sslnegotiation', ...Object.keys(TLS_VARIABLES)]) searchParams.delete(key);
  const file = searchParams.get('passfile') || env['PGPASSFILE'] || passwordFile(env);
  searchParams.delete('passfile');
  if (!url.password && !searchParams.get('password') && !env['PGPASSWORD']) {
    const password = passwordIn(file, placeOf(url, env));
    if (password !== undefined) searchParams.set('password', password);
  }
  return { connectionString: url.href, ssl, needsPrimary: session !== 'any' };
}

/** Refuses an address with a list of hosts, as libpq takes it. @throws Failure `usage` */
export function refuseSeveralHosts(address: string): void {
  const [, hosts = ''] = /^[^/]*\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(address) ?? [];
  refuseList(hosts);
}

function refuseList(hosts: string): void {
  if (!hosts.includes(',')) return;
  throw new Failure('usage', 'The address of the database names several hosts.', {
    why: 'This server takes one, which must lead to the primary, also after a failover: a virtual IP address, a DNS name that is changed, or a proxy such as HAProxy that asks which one is the primary.',
    fix: 'slices-conn serve --database postgres://user@primary.db.example.org/slices',
  });
}

/** Where a password is for: host, port, database, user, as a password file has them. */
type PasswordPlace = readonly [host: string, port: string, database: string, user: string];

/** The name of the user whose process this is; empty for a number that no user has. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return '';
  }
}

/** What the address leaves open is found as the driver finds it. */
function placeOf(url: URL, env: Environment): PasswordPlace {
  const said = (key: string): string | undefined => url.searchParams.get(key) || undefined;
  const host = said('host') || decodeURIComponent(url.hostname) || env['PGHOST'] || 'localhost';
  const user = said('user') || decodeURIComponent(url.username) || env['PGUSER'] || userName();
  const database = decodeURIComponent(url.pathname.slice(1)) || env['PGDATABASE'] || user;
  return [
    // A socket's folder counts as this machine.
    host.startsWith('/') ? 'localhost' : host.replace(/^\[(.*)\]$/, '$1'),
    said('port') || url.port || env['PGPORT'] || '5432',
    database,
    user,
  ];
}

/** Where the password file is unless told otherwise, on Windows too, as libpq has it. */
function passwordFile(env: Environment): string {
  const { APPDATA, HOME } = env;
  if (process.platform === 'win32') return join(APPDATA || homeFolder(), 'postgresql', 'pgpass.conf');
  return join(HOME || homeFolder(), '.pgpass');
}

/**
 * The password for a place in a password file (https://www.postgresql.org/docs/current/libpq-pgpass.html). The driver
 * would read the file too, but warns that it will not for long.
 *
 * @returns undefined without a file or a line that fits
 * @throws Failure `file_unusable` when there is such a line, and others can read the file
 */
function passwordIn(path: string, place: PasswordPlace): string | undefined {
  let text: string;
  try {
    if (!statSync(path).isFile()) return undefined;
    text = readBounded(path).toString();
  } catch {
    return undefined;
  }
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('#')) continue;
    // A backslash stands before a colon or a backslash that is meant.
    const fields = (line.match(/(?:\\.|[^:\\])*(?::|$)/g) ?? []).map((field) => field.replace(/:$/, ''));
    const [password, ...wanted] = [fields[4], ...fields.slice(0, 4)].map((field) =>
      field?.replace(/\\(.)/g, '$1'),
    );
    if (!password || !place.every((value, index) => wanted[index] === '*' || wanted[index] === value))
      continue;
    if (process.platform !== 'win32' && statSync(path).mode & 0o077) {
      throw new Failure('file_unusable', `The password file ${path} is not private.`, {
        why: 'Others can read it.',
        fix: `chmod 600 ${shellWord(path)}`,
      });
    }
    return password;
  }
  return undefined;
}

/** Sets what the address leaves open. */
function fillIn(url: URL, key: string, value: string): void {
  const { searchParams } = url;
  if (key === 'dbname') {
    if (url.pathname.length <= 1) url.pathname = `/${encodeURIComponent(value)}`;
    return;
  }
  const own: Partial<Record<string, string>> = {
    host: url.hostname,
    port: url.port,
    user: url.username,
    password: url.password,
  };
  if (!own[key] && !searchParams.has(key)) searchParams.set(key, value);
}

function tlsOptions(
  host: string,
  said: (key: keyof typeof TLS_VARIABLES) => string | undefined,
): PostgresConnection['ssl'] {
  const root = said('sslrootcert');
  const mode = said('sslmode');
  switch (mode) {
    case 'disable':
      return false;
    case undefined:
    case 'allow':
    case 'prefer':
      if (isThisMachine(host)) return false;
      break;
    case 'require':
    case 'verify-full':
    case 'no-verify':
      break;
    case 'verify-ca':
      if (root !== undefined && root !== 'system') break;
      throw new Failure('usage', 'sslmode=verify-ca needs sslrootcert.', {
        why: 'A public authority signs certificates for any server, so the name must be verified too.',
        fix: 'slices-conn serve --database "postgres://user@host/name?sslmode=verify-ca&sslrootcert=ca.pem"',
      });
    default:
      throw new Failure('usage', `${JSON.stringify(mode)} is not an sslmode.`, {
        why: 'It must be disable, no-verify, verify-ca, verify-full or require.',
      });
  }
  const [cert, key] = [said('sslcert'), said('sslkey')];
  return {
    rejectUnauthorized: mode !== 'no-verify',
    ...(mode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
    ...(root === undefined || root === 'system' ? {} : { ca: readPem(root) }),
    ...(cert === undefined ? {} : { cert: readPem(cert) }),
    ...(key === undefined ? {} : { key: readPem(key) }),
  };
}

/** Names below `localhost` do not count: the driver's resolver may find another machine under them. */
function isThisMachine(host: string): boolean {
  if (host.startsWith('/') || /^%2f/i.test(host)) return true;
  const address = host.replace(/^\[(.*)\]$/, '$1');
  return /^localhost$/i.test(host) || (isIP(address) > 0 && loopbackAddress(address) !== undefined);
}

function readPem(path: string): string {
  try {
    return readBounded(path).toString();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Failure('file_unusable', `${path} can't be read.`, { why, cause });
  }
}

/** The parameters of a service (https://www.postgresql.org/docs/current/libpq-pgservice.html). */
function readService(name: string, env: Environment): [key: string, value: string][] {
  const { PGSERVICEFILE: given, PGSYSCONFDIR: shared } = env;
  const places = [
    given || join(env['HOME'] || homeFolder(), '.pg_service.conf'),
    ...(shared ? [join(shared, 'pg_service.conf')] : []),
  ];
  for (const path of places) {
    const found = sectionOf(path, name);
    if (found) return found;
  }
  throw new Failure('usage', `There is no service ${JSON.stringify(name)} in ${places.join(' or ')}.`, {
    why: 'It is named by PGSERVICE or by ?service= in the address of the database.',
  });
}

function sectionOf(path: string, name: string): [key: string, value: string][] | undefined {
  let text: string;
  try {
    text = readBounded(path).toString();
  } catch {
    return undefined;
  }
  let inside = false;
  let found: [key: string, value: string][] | undefined;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const trimmed = line.trim();
    const header = /^\[(.*)\]$/.exec(trimmed);
    if (header) inside = header[1] === name && found === undefined;
    if (header && inside) found = [];
    if (header || !inside || trimmed === '' || trimmed.startsWith('#')) continue;
    const [, key, value] = /^([a-z_]+)=(.*)$/.exec(trimmed) ?? [];
    // The line may hold a password, so the message does not repeat it.
    if (key === undefined || value === undefined) {
      throw new Failure('usage', `Line ${index + 1} of ${path} is not understood.`, {
        why: 'A service is a section [NAME] with lines such as host=db.example.org.',
      });
    }
    found?.push([key, value]);
  }
  return found;
}
