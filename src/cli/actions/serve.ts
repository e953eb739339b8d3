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
  /** Milliseconds. */
  rotateKeysEvery?: number;
}

/** Runs a reference server until it is told to stop. */
export async function serve(
  invocation: Invocation,
  _args: readonly string[],
  flags: ServeFlags,
): Promise<void> {
  const { output } = invocation;
  const settings: ServeSettings = {
    ...flags,
    memory: flags.memory === true,
    ...(flags.baseUrl === undefined ? {} : { baseUrl: baseAddress(flags.baseUrl) }),
    ...(flags.database === undefined ? {} : { database: databaseAddress(flags.database) }),
  };
  const stopped = invocation.stopSignal();
  const server = await invocation.serve(settings);
  const { addresses } = server;
  await output.result({ addresses }, (print) =>
    print.card(`Serving at ${print.paint.bold(addresses.connectivity)}`, [
      ['portal', addresses.portal],
      ['log in', `${addresses.identity}/device`],
      ['try it', `${addresses.connectivity}/api-docs`],
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

/** A PostgreSQL address as it was typed. What is wrong is not repeated: it may hold a password. @throws Failure `usage` */
export function databaseAddress(text: string): string {
  if (/^postgres(?:ql)?:\/\//i.test(text) && URL.canParse(text)) return text;
  throw new Failure('usage', 'What --database was given is no address of a PostgreSQL database.', {
    why: 'It must look like postgres://user@host:5432/name; the password may stand in PGPASSWORD.',
    fix: 'slices-conn serve --database postgres://user@localhost/slices',
  });
}
