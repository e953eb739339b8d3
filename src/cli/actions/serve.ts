import { readAdministrator } from '../../contract/administrators.ts';
import { Failure } from '../../contract/failure.ts';
import type { Role } from '../../contract/roles.ts';
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
  administrator?: readonly string[];
  /** PORT or HOST:PORT. */
  metrics?: string;
  /** Seconds. */
  drain: number;
}

/** Runs a reference server until it is told to stop. */
export async function serve(
  invocation: Invocation,
  _args: readonly string[],
  flags: ServeFlags,
): Promise<void> {
  const { output } = invocation;
  const { administrator: administrators = [], metrics, ...rest } = flags;
  const settings: ServeSettings = {
    ...rest,
    administrators: administrators.map(administratorName),
    ...(metrics === undefined ? {} : { metrics: metricsAddress(metrics) }),
    memory: flags.memory === true,
    ...(flags.baseUrl === undefined ? {} : { baseUrl: baseAddress(flags.baseUrl) }),
    ...(flags.database === undefined ? {} : { database: databaseAddress(flags.database) }),
  };
  const stopped = invocation.stopSignal();
  const server = await invocation.serve(settings);
  const { addresses } = server;
  const shown = server.metrics === undefined ? {} : { metrics: server.metrics };
  await output.result({ addresses, ...shown }, (print) =>
    print.card(`Serving at ${print.paint.bold(addresses.connectivity)}`, [
      ['portal', addresses.portal],
      ['log in', `${addresses.identity}/device`],
      ['try it', `${addresses.connectivity}/api-docs`],
      ...Object.entries(shown),
      ['stop', 'Ctrl-C'],
    ]),
  );
  if (flags.autoApprove !== undefined) {
    output.notice(`Every login is approved at once, as ${flags.autoApprove}: for tests only.`);
  }
  await stopped;
  await server.stop();
}

function baseAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url && /^https?:$/.test(url.protocol) && !url.search && !url.hash && !url.username;
  if (plain) return text.replace(/\/+$/, '');
  throw new Failure('usage', `${JSON.stringify(text)} is no base address.`, {
    why: 'It must be an http or https address without a query.',
  });
}

/** What is wrong is not repeated: it may hold a password. */
function databaseAddress(text: string): string {
  if (/^postgres(?:ql)?:\/\//i.test(text) && URL.canParse(text)) return text;
  throw new Failure('usage', 'What --database was given is no address of a PostgreSQL database.', {
    why: 'It must look like postgres://user@host:5432/name; the password may stand in PGPASSWORD.',
    fix: 'slices-conn serve --database postgres://user@localhost/slices',
  });
}

function administratorName(text: string): string {
  if (readAdministrator(text)) return text;
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
