import { statSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import type { ConnectionOptions } from 'node:tls';
import type { PoolConfig } from 'pg';
import { parseIntoClientConfig } from 'pg-connection-string';
import { loopbackAddress } from '../../contract/addresses.ts';
import { Failure, shellWord } from '../../contract/failure.ts';
import { readBounded } from '../../files/bounded.ts';
import { homeFolder } from '../../files/home.ts';

/** How a PostgreSQL server is reached. */
export interface PostgresConnection {
  /** As the driver takes it. */
  config: Omit<PoolConfig, 'ssl'> & { ssl: ConnectionOptions | false };
  /** Whether a standby must be refused. */
  needsPrimary: boolean;
}

/** The variables of the server's process. */
type Variables = Readonly<Record<string, string | undefined>>;

/** Parameters about TLS, with the variable that stands in for each. */
const TLS_VARIABLES = {
  sslmode: 'PGSSLMODE',
  sslrootcert: 'PGSSLROOTCERT',
  sslcert: 'PGSSLCERT',
  sslkey: 'PGSSLKEY',
} as const;

/**
 * Reads the address of a PostgreSQL database as libpq does
 * (https://www.postgresql.org/docs/current/libpq-connect.html): what it leaves open is taken from the variables that libpq
 * has, and a password from the password file. Service files are not read.
 *
 * Without an `sslmode`, a server on this machine is reached without TLS, and every other one over TLS with a certificate
 * that is verified for its name (THREATS.md 52). Three modes weaken that: `disable`, `no-verify` (the certificate is not
 * checked), and `verify-ca` (any name, where `sslrootcert` says who signs). `require` and `verify-full` verify on this
 * machine too; `prefer` and `allow` count as unset.
 *
 * @throws Failure `usage` for an unknown `sslmode`, a service, several hosts, or a `target_session_attrs` that asks for a
 *   standby
 * @throws Failure `file_unusable` for a certificate or key that can't be read. While it connects, the driver throws the
 *   same for a password file that others can read
 */
export function readConnection(address: string, env: Variables = process.env): PostgresConnection {
  refuseSeveralHosts(address);
  const url = new URL(address);
  const { searchParams } = url;
  if (searchParams.has('service')) {
    throw new Failure('usage', 'The address of the database names a service.', {
      why: 'Service files are not read.',
      fix: { database: 'postgres://user@db.example.org/slices' },
    });
  }
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
  const config = { ...parseIntoClientConfig(url.href), ssl };
  // The driver's types lack what it gives to such a function.
  config.password ||= env['PGPASSWORD'] || (passwordInFile as unknown as () => Promise<string>);
  return { config, needsPrimary: session !== 'any' };
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
    fix: { database: 'postgres://user@primary.db.example.org/slices' },
  });
}

/** Where the driver is about to send a password. */
interface PasswordPlace {
  host: string;
  port: number;
  database: string;
  user: string;
}

/**
 * The password for a place in the password file (https://www.postgresql.org/docs/current/libpq-pgpass.html). Not by the
 * package `pgpass`, which the driver will leave out: of several lines that fit it takes the last, libpq the first.
 *
 * @returns undefined without a file or a line that fits
 * @throws Failure `file_unusable` when others can read the file
 */
async function passwordInFile({ host, port, database, user }: PasswordPlace): Promise<string | undefined> {
  const { APPDATA, PGPASSFILE } = process.env;
  const isWindows = process.platform === 'win32';
  const usual = isWindows
    ? join(APPDATA || homeFolder(), 'postgresql', 'pgpass.conf')
    : join(homeFolder(), '.pgpass');
  const path = PGPASSFILE || usual;
  const file = statSync(path, { throwIfNoEntry: false });
  if (!file?.isFile()) return undefined;
  if (!isWindows && file.mode & 0o077) {
    throw new Failure('file_unusable', `The password file ${path} is not private.`, {
      why: 'Others can read it.',
      fix: `chmod 600 ${shellWord(path)}`,
    });
  }
  // A socket's folder counts as this machine.
  const place = [host.startsWith('/') ? 'localhost' : host, String(port), database, user];
  const lines = readBounded(path).toString().split(/\r?\n/);
  // A backslash stands before a colon or a backslash that is meant.
  const rows = lines.map((line) => (line.match(/(?:\\.|[^:\\])*(?::|$)/g) ?? []).map(unescaped));
  const row = rows.find((fields) =>
    place.every((value, index) => ['*', value].includes(fields[index] ?? '')),
  );
  return row?.[4] || undefined;
}

function unescaped(field: string): string {
  return field.replace(/:$/, '').replace(/\\(.)/g, '$1');
}

function tlsOptions(
  host: string,
  said: (key: keyof typeof TLS_VARIABLES) => string | undefined,
): PostgresConnection['config']['ssl'] {
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
        fix: { database: 'postgres://user@host/name?sslmode=verify-ca&sslrootcert=ca.pem' },
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
