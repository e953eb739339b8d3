import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TopologyError } from './allocator/network.ts';
import { StoreUnavailableError } from './allocator/store.ts';
import type { RunningServer, ServeSettings } from './cli/invocation.ts';
import { Failure } from './contract/failure.ts';
import { isObject, readJson } from './contract/json.ts';
import type { Topology } from './contract/links.ts';
import { EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from './contract/routes.ts';
import { httpAddress, isLoopback, listen } from './listening.ts';
import { createReferenceServer, type ReferenceServer } from './reference-server.ts';
import { openMetrics, type Watched } from './serve-metrics.ts';
import { CLIENT_ID } from './server/identity/client-id.ts';
import { jsonLog } from './server/log.ts';
import type { ServerMetrics } from './server/metrics/server-metrics.ts';
import { DatabaseFormatError } from './store/sql.ts';
import { SERVER_FILE } from './store/stores.ts';

/** How long a request that is under way may take once the server is told to stop, in milliseconds. */
const STOP_TIMEOUT = 8000;

/** Time limits of a connection, in milliseconds: slow clients do not hold the server (HOSTILE.md 41). */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 30_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
} as const;

/**
 * Runs a reference server on a socket (CLI.md, "Commands", serve).
 *
 * The socket is opened first, since with `--port 0` the services' addresses depend on it; until they are there,
 * requests wait.
 *
 * @param defaultFolder where the data is when nothing else is said
 * @param write takes log lines
 * @throws Failure `usage` for an address that is not loopback, `network` for a port that is taken
 */
export async function serve(
  settings: ServeSettings,
  defaultFolder: string,
  write: (line: string) => void,
): Promise<RunningServer> {
  const { host, port, readyFile } = settings;
  if (!isLoopback(host)) {
    throw new Failure('usage', `${host} is not an address of this machine alone.`, {
      why: 'The built-in users log in without a password, so this server answers on loopback only.',
      fix: 'slices-conn serve --host 127.0.0.1',
    });
  }
  const topology = settings.topology === undefined ? undefined : readTopology(settings.topology);
  let ready: (listener: RequestListener) => void = () => undefined;
  const listener = new Promise<RequestListener>((resolve) => {
    ready = resolve;
  });
  const server = createServer(LIMITS, (request, response) => {
    listener.then((answer) => answer(request, response));
  });
  await listen(server, { host, port }, 'slices-conn serve --port 0');
  let watched: Watched | undefined;
  try {
    watched = settings.metrics && (await openMetrics(settings.metrics));
    // Not before the port is ours: with the same file, it would be a running server's.
    if (readyFile !== undefined) removeReadyFile(readyFile);
    const bound = server.address() as AddressInfo;
    const baseUrl = settings.baseUrl ?? httpAddress(host, bound.port);
    const services = await open(settings, {
      baseUrl,
      topology,
      defaultFolder,
      write,
      metrics: watched?.metrics,
    });
    ready(services.listener);
    const url = watched?.url;
    if (readyFile !== undefined) await orClose(services, () => writeReadyFile(readyFile, services, url));
    return {
      addresses: services.addresses,
      ...(url === undefined ? {} : { metrics: url }),
      stop: async () => {
        await stop(server, services, { readyFile, drain: settings.drain * 1000 });
        watched?.close();
      },
    };
  } catch (error) {
    watched?.close();
    server.close();
    server.closeAllConnections();
    throw error;
  }
}

/** What fails after the services are open closes them again. */
async function orClose(services: ReferenceServer, work: () => void): Promise<void> {
  try {
    work();
  } catch (error) {
    await services.close();
    throw error;
  }
}

interface Opening {
  baseUrl: string;
  topology: Topology | undefined;
  defaultFolder: string;
  write: (line: string) => void;
  metrics: ServerMetrics | undefined;
}

async function open(settings: ServeSettings, opening: Opening): Promise<ReferenceServer> {
  const { baseUrl, topology, defaultFolder, write, metrics } = opening;
  const { data, autoApprove, accessTokenTtl, administrators } = settings;
  const folder = data ?? defaultFolder;
  const shared = settings.database ?? (settings.memory ? ':memory:' : undefined);
  try {
    if (shared === undefined) mkdirSync(folder, { recursive: true, mode: 0o700 });
    return await createReferenceServer({
      baseUrl,
      database: shared ?? join(folder, SERVER_FILE),
      log: jsonLog(write, Date.now),
      administrators,
      ...(metrics === undefined ? {} : { metrics }),
      ...(topology === undefined ? {} : { topology }),
      ...(autoApprove === undefined ? {} : { autoApprove }),
      ...(accessTokenTtl === undefined ? {} : { accessTokenTtl }),
    });
  } catch (cause) {
    if (cause instanceof TopologyError || cause instanceof DatabaseFormatError) {
      throw new Failure('file_unusable', cause.message, { cause });
    }
    if (settings.database !== undefined && cause instanceof Error) throw databaseFailure(cause);
    if (cause instanceof StoreUnavailableError || (cause instanceof Error && 'code' in cause)) {
      throw new Failure('file_unusable', `The data folder ${folder} can't be used.`, {
        why: cause.message,
        cause,
      });
    }
    throw cause;
  }
}

/** The driver's words name the server and the user, never the password. */
function databaseFailure(cause: Error): Failure {
  const away = cause instanceof StoreUnavailableError;
  const { cause: reason } = cause;
  return new Failure(away ? 'network' : 'file_unusable', "The database can't be used.", {
    why: away && reason instanceof Error ? reason.message || cause.message : cause.message,
    fix: 'psql "$DATABASE_URL" -c "SELECT version()"',
    cause,
  });
}

function removeReadyFile(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch (cause) {
    throw fileFailure('ready file', path, cause);
  }
}

function fileFailure(what: string, path: string, cause: unknown): Failure {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new Failure('file_unusable', `The ${what} ${path} can't be used.`, { why, cause });
}

function readTopology(path: string): Topology {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw fileFailure('topology', path, cause);
  }
  const reading = readJson(text);
  if (!reading.ok) throw new Failure('file_unusable', `The topology ${path} is not JSON.`);
  if (!isObject(reading.value)) throw new Failure('file_unusable', `The topology ${path} is no object.`);
  // What it holds is checked where it is used, which names every violation.
  return reading.value as Topology;
}

/** Beside its place first, then in it at once: a script that waits for it never reads half of it. */
function writeReadyFile(path: string, { addresses }: ReferenceServer, metrics: string | undefined): void {
  const content = {
    base_url: addresses.connectivity,
    portal_url: addresses.portal,
    auth_url: addresses.identity,
    projects_api_group: PROJECTS_API_GROUP,
    experiments_api_group: EXPERIMENTS_API_GROUP,
    client_id: CLIENT_ID,
    pid: process.pid,
    ...(metrics === undefined ? {} : { metrics_url: metrics }),
  };
  const draft = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(draft, `${JSON.stringify(content)}\n`);
    renameSync(draft, path);
  } catch (cause) {
    rmSync(draft, { force: true });
    throw fileFailure('ready file', path, cause);
  }
}

/**
 * Not ready from now on. After the drain, new requests are refused, those under way are finished, then the database is
 * closed.
 *
 * @param drain how long a load balancer may take to see that, in milliseconds
 */
async function stop(
  server: Server,
  services: ReferenceServer,
  { readyFile, drain }: { readyFile: string | undefined; drain: number },
): Promise<void> {
  if (readyFile !== undefined) rmSync(readyFile, { force: true });
  services.drain();
  if (drain > 0) await sleep(drain);
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeIdleConnections();
  const impatience = setTimeout(() => server.closeAllConnections(), STOP_TIMEOUT);
  await closed;
  clearTimeout(impatience);
  await services.close();
}
