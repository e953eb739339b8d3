import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import * as v from 'valibot';
import { vi } from 'vitest';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import type { Provider } from '../fixtures/identity.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { freePort } from '../fixtures/postgres-server.ts';
import { type Started, startCommand } from '../fixtures/program.ts';
import { openProxy } from '../fixtures/proxy.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type Ended, newMachine } from './command.ts';
import type { StartedHere } from './here.ts';

export { LAUNCHER, type Started } from '../fixtures/program.ts';

const ReadyFile = v.strictObject({
  base_url: v.string(),
  portal_url: v.string(),
  auth_url: v.string(),
  projects_api_group: v.string(),
  experiments_api_group: v.string(),
  client_id: v.string(),
  listen: v.string(),
  pid: v.number(),
  metrics_url: v.optional(v.string()),
});

/** A reference server. */
export interface Served extends Provider {
  readonly addresses: v.InferOutput<typeof ReadyFile>;
  /** Its home folder. */
  readonly home: string;
  /** The environment that points a command at it. */
  readonly env: Readonly<Record<string, string>>;
}

/** A reference server as a process of its own. */
export interface ServedProcess extends Served {
  readonly process: Started;
}

/** `serve --port 0 --memory` as a process of its own, waited for. */
export function serveInProcess(...args: readonly string[]): Promise<ServedProcess> {
  return serveWith('--port', '0', '--memory', ...args);
}

/** `serve` with these flags as a process of its own, waited for. */
export async function serveWith(...args: readonly string[]): Promise<ServedProcess> {
  const { folder, file, ready } = readyFile();
  const server = startCommand(['serve', '--ready-file', file, ...args], { home: folder });
  const addresses = await ready(server.output);
  return { ...served(addresses, args), home: folder, process: server };
}

/** A reference server in the process of the test. */
export interface ServedHere extends Served, StartedHere {}

/**
 * `serve` in the process of the test, waited for; on a port of its own and in memory unless the flags say otherwise. It
 * takes a tenth of the processor time of a process, and can't show signals. It is stopped after the test file.
 */
export async function serveHere(...args: readonly string[]): Promise<ServedHere> {
  const { folder, file, ready } = readyFile();
  const port = args.includes('--port') ? [] : ['--port', '0'];
  const where = args.includes('--data') || args.includes('--database') ? [] : ['--memory'];
  // Loaded late: test files that only start processes do not need the sources of the command line.
  const { startHere } = await import('./here.ts');
  const server = startHere(folder, ['serve', '--ready-file', file, ...port, ...where, ...args]);
  atEndOfFile(server.stop);
  const output: Ended = { exitCode: null, ...server.output };
  void server.ended.then((ended) => Object.assign(output, ended));
  const addresses = await ready(output);
  return { ...server, home: folder, ...served(addresses, args) };
}

/**
 * {@link serveHere} behind a proxy that can hold its replies back.
 *
 * @returns also the methods of the requests that reached it to change reservations, in their order
 */
export async function serveBehindProxy() {
  const port = await freePort();
  const changes: string[] = [];
  const proxy = await openProxy(`http://127.0.0.1:${port}`, (piece) => {
    const [, method] = /^(POST|PUT|DELETE) \/apis/.exec(piece.toString('latin1')) ?? [];
    if (method !== undefined) changes.push(method);
  });
  const base = proxy.url.replace(/\/$/, '');
  const server = await serveHere('--port', `${port}`, '--base-url', base, '--auto-approve', 'lead');
  return { server, proxy, changes };
}

function served(addresses: Served['addresses'], args: readonly string[]): Omit<Served, 'home'> {
  const { base_url: base, auth_url: issuer } = addresses;
  // The last one counts. Behind another address it is not the address's own.
  const given = Number(args[args.lastIndexOf('--port') + 1]);
  const port = args.includes('--port') && given > 0 ? given : Number(new URL(base).port);
  return { port, base, issuer, addresses, env: pointingAt(addresses) };
}

/** Where a server says that it is ready, and how that is waited for. */
function readyFile() {
  const folder = temporaryFolder();
  const file = join(folder, 'ready.json');
  const ready = (output: Ended) =>
    vi.waitFor(
      () => {
        if (output.exitCode !== null) throw new Error(output.stderr);
        return v.parse(ReadyFile, JSON.parse(readFileSync(file, 'utf8')));
      },
      { timeout: PATIENCE, interval: 10 },
    );
  return { folder, file, ready };
}

/** The variables that name the services of a command. @param at their addresses, or one below which all three are */
export function pointingAt(at: string | { base_url: string; portal_url: string; auth_url: string }) {
  const addresses =
    typeof at === 'string' ? { base_url: at, portal_url: `${at}/portal`, auth_url: `${at}/auth` } : at;
  return {
    SLICES_CONN_BASE_URL: addresses.base_url,
    SLICES_CONN_PORTAL_URL: addresses.portal_url,
    SLICES_CONN_AUTH_URL: addresses.auth_url,
  };
}

/** A person's machine whose commands go to a server. */
export type Client = ReturnType<typeof newClient>;

function loginsIn(state: string): string[] {
  const folder = join(state, 'credentials');
  const names = existsSync(folder) ? readdirSync(folder) : [];
  // Beside them are their locks, and what a killed process may have left.
  return names.filter((name) => /^[0-9a-f]{32}\.json$/.test(name)).map((name) => join(folder, name));
}

const Login = v.looseObject({
  version: v.literal(1),
  accessToken: v.string(),
  refreshToken: v.string(),
  issuedAt: v.number(),
  expiresAt: v.optional(v.number()),
});
/** What the file of a login holds. */
export type StoredLogin = v.InferOutput<typeof Login>;

/** The only login that a machine keeps. */
export function storedLogin({ credentials }: Client): StoredLogin {
  return v.parse(Login, JSON.parse(readFileSync(credentials, 'utf8')));
}

/** Makes the only login of a machine as old as if its access token had expired, or had so long to go. */
export function age(client: Client, { left = -1000, of = 3_600_000 } = {}): StoredLogin {
  const expiresAt = Date.now() + left;
  const aged = { ...storedLogin(client), issuedAt: expiresAt - of, expiresAt };
  writeFileSync(client.credentials, JSON.stringify(aged));
  return aged;
}

/**
 * A new machine, pointed at some services. `env` is read anew for each command.
 *
 * @param options see {@link newMachine}; a command that is started is always a process of its own
 */
export function newClient(env: Readonly<Record<string, string>>, options?: Parameters<typeof newMachine>[0]) {
  const machine = newMachine(options);
  const { home, run, resultOf } = machine;
  return {
    ...machine,
    /** The files of the logins that are kept. */
    get logins(): string[] {
      return loginsIn(machine.state);
    },
    /** The file of the only login. @throws Error when there is none, or another */
    get credentials(): string {
      const [only, ...others] = loginsIn(machine.state);
      if (only === undefined || others.length > 0) throw new Error(`${others.length} other logins`);
      return only;
    },
    /** Starts a command without waiting for its end. */
    start: (...args: readonly string[]) => startCommand(args, { home, env: { ...env } }),
    /** Runs a command and waits for its end. */
    command: (...args: readonly string[]) => run(args, { env }),
    /** Runs a command with `--json` that must succeed, and reads what it prints. */
    result: (...args: readonly string[]) => resultOf(args, env),
  };
}

/** A server that answers as it is told: see {@link record}. */
export type Recorder = Awaited<ReturnType<typeof record>>;

/** A request that a {@link Recorder} was sent. */
export interface Recorded {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** What a {@link Recorder} answers: JSON or a text, with a status and headers where they matter. */
export interface Reply {
  status?: number;
  headers?: Readonly<Record<string, string | string[]>>;
  json?: unknown;
  text?: string;
}

/** A server on this machine that answers as it is told (or never) and keeps what it was sent. It ends with the test file. */
export async function record(answer: (request: Recorded, url: string) => Reply | 'hang' | 'reset') {
  const requests: Recorded[] = [];
  let url = '';
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const { method = '', url: path = '', headers } = request;
    const recorded = { method, path, headers, body };
    requests.push(recorded);
    const reply = answer(recorded, url);
    if (reply === 'hang') return;
    if (reply === 'reset') return void request.socket.resetAndDestroy();
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', ...reply.headers });
    response.end(reply.text ?? JSON.stringify(reply.json ?? {}));
  });
  url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  /** Goes away: connections are refused from then on. */
  const close = () => server.close().closeAllConnections();
  atEndOfFile(close);
  return { url, requests, close };
}

/** The code that a person enters at {@link providerReply}. */
export const CODE = 'BCDF-GHJK';

/**
 * What an identity provider below an address answers to discovery and to the start of a device login.
 *
 * @returns undefined for any other path
 */
export function providerReply(path: string, url: string, device: object = {}): Reply | undefined {
  const auth = `${url}/auth`;
  const endpoints = {
    issuer: auth,
    token_endpoint: `${auth}/token`,
    device_authorization_endpoint: `${auth}/device`,
    revocation_endpoint: `${auth}/revoke`,
    jwks_uri: `${auth}/jwks`,
  };
  const login = { device_code: 'canary-device-code', user_code: CODE, verification_uri: `${auth}/page` };
  if (path === '/auth/.well-known/openid-configuration') return { json: endpoints };
  if (path === '/auth/device') return { json: { ...login, expires_in: 600, interval: 0.02, ...device } };
  return undefined;
}
