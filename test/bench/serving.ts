import { spawn } from 'node:child_process';
import { existsSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { builtInTopology } from '../../src/allocator/network.ts';
import { JWT_TYPE } from '../../src/contract/routes.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { SERVER_FILE } from '../../src/store/stores.ts';
import { signedBy } from '../fixtures/asked-server.ts';

/** The launcher of the command line, as it is built. */
export const PROGRAM = new URL('../../bin/slices-conn.js', import.meta.url).pathname;
/** How long a process may take to take requests, in milliseconds. */
const PATIENCE = 60_000;

/** A server in a process of its own. */
export interface ServerProcess {
  /** Where it answers, without a trailing slash. */
  url: string;
  pid: number;
  /** Tells it to end, and waits until it has. */
  stop(): Promise<void>;
}

/**
 * Starts a script that writes a JSON file with its `base_url` once it takes requests, and waits for that. What it
 * prints goes to a file in the folder; it ends with this process.
 *
 * @param args of Node; `ready` is the file that they have to name
 * @throws Error with what it printed when it ends first, or takes longer than a minute
 */
export async function startServer(
  folder: string,
  args: (ready: string) => readonly string[],
): Promise<ServerProcess> {
  const [ready, log] = [join(folder, 'ready.json'), join(folder, 'server.log')];
  const output = openSync(log, 'w');
  const child = spawn(process.execPath, args(ready), {
    env: { PATH: process.env['PATH'], HOME: folder, PGPASSWORD: process.env['PGPASSWORD'] },
    stdio: ['ignore', output, output],
  });
  const { pid } = child;
  process.once('exit', () => child.kill('SIGKILL'));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for (let waited = 0; ; waited += 20) {
    if (child.exitCode !== null || waited > PATIENCE || pid === undefined) {
      throw new Error(`The server did not start: ${readFileSync(log, 'utf8')}`);
    }
    const text = existsSync(ready) ? readFileSync(ready, 'utf8') : '';
    if (text.endsWith('\n')) {
      const stop = async (): Promise<void> => {
        child.kill('SIGTERM');
        await ended;
      };
      return { url: String(JSON.parse(text).base_url), pid, stop };
    }
    await sleep(20);
  }
}

/** Says in a file where a server answers, for {@link startServer}. */
export function writeReady(file: string, baseUrl: string): void {
  writeFileSync(`${file}.tmp`, `${JSON.stringify({ base_url: baseUrl })}\n`);
  renameSync(`${file}.tmp`, file);
}

/** `slices-conn serve` on the data in a folder, as the program is built. */
export function startServe(folder: string): Promise<ServerProcess> {
  const settings = ['--port', '0', '--max-changes', '1000000000', '--data', folder, '--ready-file'];
  return startServer(folder, (ready) => [PROGRAM, 'serve', ...settings, ready]);
}

/** The headers and the tokens of the built-in lead, for the experiment `demo`. */
export interface SignedIn {
  headers: Readonly<Record<string, string>>;
  tokens: readonly string[];
}

/** Gets tokens without a login: from a server in this process on the same data and under the same address. */
export async function signIn(folder: string, baseUrl: string): Promise<SignedIn> {
  const server = await createReferenceServer({ baseUrl, database: join(folder, SERVER_FILE) });
  try {
    const headers = await signedBy(server);
    const user = headers['authorization']?.replace('Bearer ', '') ?? '';
    return {
      headers: { ...headers, accept: JWT_TYPE, 'content-type': 'application/json' },
      tokens: [user],
    };
  } finally {
    await server.close();
  }
}

/** The pairs of sites that the built-in topology connects. */
export const CONNECTED = builtInTopology().links.map(({ site1, site2 }) => ({ site1, site2 }));
