import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import * as v from 'valibot';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { COMPILED } from '../fixtures/compiled.ts';
import {
  answer,
  type Door,
  partOf,
  poll,
  refresh,
  refreshTokenIn,
  send,
  startLogin,
  tally,
  tokensIn,
  type WireReply,
} from '../fixtures/identity.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { booking, CONNECTIVITY, LINKS, PROJECTS, smallTopology } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { newMachine, reportOf } from './command.ts';
import { type ServedHere, serveHere } from './served.ts';

const launcher = join(new URL('../..', import.meta.url).pathname, 'bin', 'slices-conn.js');

const ReadyFile = v.strictObject({
  base_url: v.string(),
  portal_url: v.string(),
  auth_url: v.string(),
  projects_api_group: v.string(),
  experiments_api_group: v.string(),
  client_id: v.string(),
  pid: v.number(),
});

/** How a process ended. */
interface End {
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** `slices-conn serve` as a process. */
interface Serving {
  child: ChildProcess;
  /** What it has written until now. */
  output: { stdout: string; stderr: string };
  /** Waits for its end, by itself or by a signal. */
  end(signal?: NodeJS.Signals): Promise<End>;
}

/** A {@link Serving} that takes requests. */
interface Ready extends Serving, Door {
  ready: v.InferOutput<typeof ReadyFile>;
}

let folder: string;
const running: ChildProcess[] = [];
const sockets: Socket[] = [];

beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const child of running.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  }
});

/** Starts `slices-conn serve` in a home folder of its own. */
function serve(...args: readonly string[]): Serving {
  const child = spawn(process.execPath, [launcher, 'serve', ...args], {
    cwd: folder,
    env: {
      HOME: folder,
      XDG_CONFIG_HOME: join(folder, 'config'),
      XDG_STATE_HOME: join(folder, 'state'),
      XDG_CACHE_HOME: join(folder, 'cache'),
      PATH: '/usr/bin:/bin',
      ...COMPILED,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
  });
  const closed = once(child, 'close');
  return {
    child,
    output,
    async end(signal) {
      if (signal !== undefined) child.kill(signal);
      await closed;
      const { exitCode, signalCode } = child;
      return { exitCode, signal: signalCode, ...output };
    },
  };
}

/** Starts a server and waits until it takes requests. `--memory` unless a data folder is named. */
async function served(...args: readonly string[]): Promise<Ready> {
  const readyFile = join(folder, `ready-${running.length}.json`);
  const where = args.includes('--data') ? [] : ['--memory'];
  const port = args.includes('--port') ? [] : ['--port', '0'];
  const serving = serve(...port, ...where, '--ready-file', readyFile, ...args);
  await vi.waitUntil(
    () => {
      if (serving.child.exitCode !== null) throw new Error(`it ended: ${serving.output.stderr}`);
      return existsSync(readyFile);
    },
    { timeout: PATIENCE, interval: 10 },
  );
  const ready = v.parse(ReadyFile, JSON.parse(readFileSync(readyFile, 'utf8')));
  return {
    ...serving,
    ready,
    base: ready.base_url,
    issuer: ready.auth_url,
    port: Number(new URL(ready.base_url).port),
  };
}

/** The same in the process of the test: for what needs no process to be seen. */
async function servedHere(...args: readonly string[]): Promise<ServedHere & Door> {
  const server = await serveHere(...args);
  const { base_url: base, auth_url: issuer } = server.addresses;
  return { ...server, base, issuer, port: Number(new URL(base).port) };
}

/** A connection that takes down what it receives. */
async function dial({
  port,
}: Door): Promise<{ socket: Socket; received: () => string; closed: Promise<unknown> }> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  socket.on('error', () => undefined);
  const closed = once(socket, 'close');
  await once(socket, 'connect');
  return { socket, received: () => received, closed };
}

async function logIn(door: Door) {
  return tokensIn(await poll(door, await startLogin(door)));
}

function winnerOf(replies: readonly WireReply[]): WireReply {
  const winner = replies.find(({ status }) => status === 200);
  if (!winner) throw new Error('nobody won');
  return winner;
}

/** A port without a listener. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}

const Items = v.array(v.object({ id: v.string(), name: v.string() }));
async function projectsOf(door: Door, token: string) {
  const { status, text } = await send(door, 'GET', PROJECTS, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(status, text).toBe(200);
  const body: unknown = JSON.parse(text);
  const listed = v.safeParse(Items, body);
  return listed.success ? listed.output : v.parse(v.object({ projects: Items }), body).projects;
}

describe('serve', () => {
  test('takes requests once its ready file is there, and removes it when it stops', async () => {
    // Between a look and a read the server may remove what was left over.
    const textOf = (file: string): string => {
      try {
        return readFileSync(file, 'utf8');
      } catch {
        return '';
      }
    };
    const readyFile = join(folder, 'ready-0.json');
    writeFileSync(readyFile, 'left over from last time');
    const reads: string[] = [];
    const serving = serve('--port', '0', '--memory', '--ready-file', readyFile);
    await vi.waitUntil(
      () => {
        if (serving.child.exitCode !== null) throw new Error(`it ended: ${serving.output.stderr}`);
        const text = textOf(readyFile);
        reads.push(text);
        return text.startsWith('{');
      },
      { timeout: PATIENCE, interval: 1 },
    );
    // At no time was a part of it to be read.
    expect(reads.filter((text) => !['', 'left over from last time', reads.at(-1)].includes(text))).toEqual(
      [],
    );
    const ready = v.parse(ReadyFile, JSON.parse(reads.at(-1) ?? ''));
    const { port, origin } = new URL(ready.base_url);
    expect(ready).toEqual({
      base_url: `http://127.0.0.1:${port}`,
      portal_url: `http://127.0.0.1:${port}/portal`,
      auth_url: `http://127.0.0.1:${port}/auth`,
      projects_api_group: 'projects',
      experiments_api_group: 'experiments',
      client_id: 'slices-conn',
      pid: serving.child.pid,
    });
    expect(ready.base_url).toBe(origin);
    const door: Door = { port: Number(port), base: ready.base_url, issuer: ready.auth_url };
    for (const address of ['', '/portal', '/auth'])
      expect((await send(door, 'GET', `${address}/.well-known/jwks.json`)).status, address).toBe(200);
    expect(readdirSync(folder).filter((name) => name.startsWith('ready'))).toEqual(['ready-0.json']);
    const end = await serving.end('SIGTERM');
    expect([end.exitCode, end.signal]).toEqual([0, null]);
    expect(existsSync(readyFile)).toBe(false);
    expect(end.stdout).toContain(ready.base_url);
    expect(end.stderr).not.toMatch(/Warning|\bat .*:\d+:\d+/);
  });

  test('has the API groups that it is told, and says so', async () => {
    const groups = ['--projects-api-group', 'projects.example', '--experiments-api-group', 'lab'];
    const server = await servedHere('--auto-approve', 'lead', ...groups);
    expect(server.addresses).toMatchObject({
      projects_api_group: 'projects.example',
      experiments_api_group: 'lab',
    });
    const { access_token } = await logIn(server);
    for (const path of ['projects.example/v1alpha1/projects/', 'lab/v1alpha1/experiments/']) {
      const headers = { authorization: `Bearer ${access_token}` };
      expect((await send(server, 'GET', `/portal/apis/${path}`, { headers })).status, path).toBe(200);
    }
    const refused = await newMachine().run(['serve', '--projects-api-group', 'a/b']);
    expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining('--projects-api-group')]);
  });

  test('tells its addresses as JSON', async () => {
    const server = await servedHere('--json');
    const end = await server.stop();
    expect(JSON.parse(end.stdout)).toEqual({
      addresses: { connectivity: server.base, portal: `${server.base}/portal`, identity: server.issuer },
      data: 'memory',
      users: ['lead', 'admin', 'member', 'viewer'].map((name) => ({
        name,
        roles: [
          { role: name, project: 'demo', experiment: null },
          { role: name, project: 'demo', experiment: 'demo' },
        ],
      })),
    });
  });

  test('keeps nothing on disk with --memory, and ends with 0 at SIGINT too', async () => {
    const server = await served('--auto-approve', 'lead');
    await logIn(server);
    expect(answer(await poll(server, await startLogin(server)))).toBe('200');
    const end = await server.end('SIGINT');
    expect([end.exitCode, end.signal]).toEqual([0, null]);
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    expect(files.filter((name) => name.includes('sqlite'))).toEqual([]);
  });

  test('keeps its data where the state is, for its owner alone, when nothing else is said', async () => {
    const serving = serve('--port', '0', '--ready-file', join(folder, 'ready.json'));
    await vi.waitUntil(() => existsSync(join(folder, 'ready.json')), { timeout: PATIENCE, interval: 10 });
    const state = join(folder, 'state', 'slices-conn');
    const names = readdirSync(state, { recursive: true, encoding: 'utf8' });
    expect(names).toContain(join('serve', 'slices-conn.sqlite'));
    for (const name of ['', ...names])
      expect([name, statSync(join(state, name)).mode & 0o077]).toEqual([name, 0]);
    expect((await serving.end('SIGTERM')).exitCode).toBe(0);
  });

  test('keeps ids, keys and sessions over a restart on the same folder and port', async () => {
    const data = join(folder, 'data');
    const first = await servedHere('--data', data, '--auto-approve', 'lead');
    const tokens = await logIn(first);
    const projects = await projectsOf(first, tokens.access_token);
    const keys = await Promise.all(
      ['', '/portal', '/auth'].map(
        async (path) => (await send(first, 'GET', `${path}/.well-known/jwks.json`)).text,
      ),
    );
    expect((await first.stop()).exitCode).toBe(0);

    const args = ['--data', data, '--port', String(first.port)];
    const second = await served(...args, '--auto-approve', 'member');
    expect(second.base).toBe(first.base);
    const after = await Promise.all(
      ['', '/portal', '/auth'].map(
        async (path) => (await send(second, 'GET', `${path}/.well-known/jwks.json`)).text,
      ),
    );
    expect(after).toEqual(keys);
    expect(await projectsOf(second, tokens.access_token)).toEqual(projects);
    const refreshed = tokensIn(await refresh(second, String(tokens.refresh_token)));
    expect(partOf(refreshed.access_token, 'payload')).toMatchObject({
      sub: partOf(tokens.access_token, 'payload')['sub'],
      preferred_username: 'lead',
    });
    // The other person's login is another's.
    expect(partOf((await logIn(second)).access_token, 'payload')['preferred_username']).toBe('member');

    // Killed in the middle, it goes on where it was.
    await second.end('SIGKILL');
    const third = await servedHere(...args);
    expect(answer(await refresh(third, String(refreshed.refresh_token)))).toBe('200');
  });

  test('starts twice at once on a new folder: each knows what the other did', async () => {
    const [data, first, second] = [join(folder, 'data'), await freePort(), await freePort()];
    const base = `http://127.0.0.1:${first}`;
    const args = ['--data', data, '--base-url', base, '--auto-approve', 'lead'];
    const [one, other] = await Promise.all(
      [first, second].map((port) => served(...args, '--port', String(port))),
    );
    if (!one || !other) throw new Error('there are two');
    const replica: Door = { ...other, port: second };
    const keys = await Promise.all(
      [one, replica].map(async (door) => (await send(door, 'GET', '/auth/.well-known/jwks.json')).text),
    );
    expect(new Set(keys).size).toBe(1);
    for (let round = 0; round < 3; round += 1) {
      const login = await startLogin(one);
      const polls = Array.from({ length: 10 }, (_, index) => poll([one, replica][index % 2] ?? one, login));
      const replies = await Promise.all(polls);
      expect(tally(replies.map(answer))).toEqual({ '200': 1, '400 invalid_grant': 9 });
      const token = refreshTokenIn(winnerOf(replies));
      const refreshes = Array.from({ length: 10 }, (_, index) =>
        refresh([replica, one][index % 2] ?? one, token),
      );
      const refreshed = await Promise.all(refreshes);
      expect(tally(refreshed.map(answer))).toEqual({ '200': 10 });
      expect(new Set(refreshed.map(refreshTokenIn)).size).toBe(1);
    }
    for (const server of [one, other]) {
      const { exitCode, stderr } = await server.end('SIGTERM');
      expect(exitCode).toBe(0);
      expect(stderr).not.toContain('"error"');
    }
  });

  test('tells whom it lets in, when it lets everyone in', async () => {
    const server = await servedHere('--auto-approve', 'viewer');
    await vi.waitUntil(() => server.output.stderr.includes('viewer'), { timeout: PATIENCE });
    expect(server.output.stderr).toMatch(/approved at once/);
    const login = await startLogin(server);
    expect(login.interval).toBe(1);
    const { access_token } = tokensIn(await poll(server, login));
    expect(partOf(access_token, 'payload')['preferred_username']).toBe('viewer');
    const quiet = await servedHere();
    expect((await startLogin(quiet)).interval).toBe(5);
    expect(quiet.output.stderr).not.toContain('approved at once');
  });

  test('gives tokens of the lifetime it is told', async () => {
    const server = await servedHere('--auto-approve', 'lead', '--access-token-ttl', '3');
    const { access_token, expires_in } = await logIn(server);
    const { iat, exp } = partOf(access_token, 'payload');
    expect([expires_in, Number(exp) - Number(iat)]).toEqual([3, 3]);
    const use = async () =>
      (await send(server, 'GET', PROJECTS, { headers: { authorization: `Bearer ${access_token}` } })).status;
    expect(await use()).toBe(200);
    await vi.waitUntil(async () => (await use()) === 403, { timeout: PATIENCE, interval: 200 });
  });

  test('stands behind the address it is told', async () => {
    const server = await servedHere('--base-url', 'http://conn.localhost:4281/net/');
    expect(server.addresses).toMatchObject({
      base_url: 'http://conn.localhost:4281/net',
      portal_url: 'http://conn.localhost:4281/net/portal',
      auth_url: 'http://conn.localhost:4281/net/auth',
    });
    expect((await server.stop()).exitCode).toBe(0);
  });

  test('serves the topology it is given', async () => {
    const file = join(folder, 'topology.json');
    writeFileSync(file, JSON.stringify(smallTopology(4)));
    const server = await servedHere('--topology', file, '--auto-approve', 'lead');
    const { access_token } = await logIn(server);
    const { text } = await send(server, 'GET', LINKS, {
      headers: { authorization: `Bearer ${access_token}` },
    });
    expect(text).toContain('be-gent1');
    expect(text).toContain('1000');
    expect(text.match(/"site1":/g)).toHaveLength(1);
  });
});

describe('serve refuses', () => {
  /** Runs it to its end, as `--json`, and reads the error. */
  async function refused(...args: readonly string[]) {
    const end = await newMachine().run(['serve', '--json', ...args]);
    return { ...reportOf(end), stderr: end.stderr };
  }

  const [link] = smallTopology(4).links;

  test.each<[string, unknown, RegExp[]]>([
    ['sites that are unknown', { sites: ['be-gent1'], links: [link] }, [/pl-poznan1/]],
    [
      'several values that can’t be',
      {
        sites: ['be-gent1', 'pl-poznan1'],
        links: [
          { ...link, bandwidth: 0 },
          { ...link, site1_s_tags: [0, 5000] },
        ],
      },
      [
        /Link be-gent1 – pl-poznan1, bandwidth/,
        /Link be-gent1 – pl-poznan1, site1_s_tags\.0/,
        /Link be-gent1 – pl-poznan1, site1_s_tags\.1/,
      ],
    ],
    [
      'several broken rules',
      {
        sites: ['be-gent1', 'pl-poznan1', 'be-gent1'],
        links: [link, link, { ...link, site2: 'be-gent1' }, { ...link, site2: 'fr-lille' }],
      },
      [/be-gent1/, /pl-poznan1/, /fr-lille/],
    ],
    ['another shape', { sites: 'be-gent1' }, [/sites/, /links/]],
    ['a list', [], [/./]],
    ['null', null, [/./]],
  ])('a topology with %s, and names it', async (_, topology, due) => {
    const file = join(folder, 'topology.json');
    writeFileSync(file, JSON.stringify(topology));
    const { exitCode, stderr } = await refused('--port', '0', '--memory', '--topology', file);
    expect(exitCode, stderr).toBe(2);
    for (const each of due) expect(stderr).toMatch(each);
    expect(stderr).not.toMatch(/\bat .*:\d+:\d+/);
  });

  test.each([
    ['no JSON', '{'],
    ['nothing', ''],
    ['bytes', '\u0000\u0001'],
  ])('a topology file that holds %s', async (_, text) => {
    const file = join(folder, 'topology.json');
    writeFileSync(file, text);
    expect((await refused('--port', '0', '--memory', '--topology', file)).exitCode).toBe(2);
  });

  test.each(['topology.json', '.'])('a topology file that can’t be read: %s', async (name) => {
    const { exitCode, message } = await refused('--port', '0', '--memory', '--topology', join(folder, name));
    expect([exitCode, message.includes(name)]).toEqual([2, true]);
  });

  test('a port that is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    try {
      const address = other.address();
      const port = typeof address === 'object' && address ? String(address.port) : '';
      const { exitCode, message } = await refused('--port', port, '--memory');
      expect(exitCode).toBe(7);
      expect(message).toContain(port);
      expect(readdirSync(folder).filter((name) => name.startsWith('ready'))).toEqual([]);
    } finally {
      other.close();
    }
  });

  test.each(['0.0.0.0', '::', '192.0.2.1', 'example.org', '', '127.0.0.1.example.org', '0', '10.0.0.1'])(
    'to be reached from elsewhere: --host %j',
    async (host) => {
      const { exitCode, fix } = await refused('--host', host, '--port', '0', '--memory');
      expect([exitCode, fix]).toEqual([2, 'slices-conn serve --host 127.0.0.1']);
    },
  );

  test('to be reached from elsewhere, even when it lets everyone in', async () => {
    const args = ['--host', '0.0.0.0', '--port', '0', '--memory', '--auto-approve', 'lead'];
    expect((await refused(...args)).exitCode).toBe(2);
  });

  test.each<[string, string[]]>([
    ['a port', ['--port', 'x']],
    ['a port', ['--port', '65536']],
    ['a port', ['--port', '-1']],
    ['a lifetime', ['--access-token-ttl', '0']],
    ['a lifetime', ['--access-token-ttl', '1.5']],
    ['a person', ['--auto-approve', 'root']],
    ['an address', ['--base-url', 'ftp://x']],
    ['an address', ['--base-url', 'http://u:p@x']],
    ['an address', ['--base-url', 'http://x/?a=b']],
    ['two places', ['--memory', '--data', 'x']],
    ['an argument', ['extra']],
  ])('%s that is none: %j', async (_, args) => {
    expect((await refused(...args)).exitCode).toBe(2);
  });

  test('a ready file that can’t be written, as a mistake of the caller', async () => {
    const missing = await refused(
      '--port',
      '0',
      '--memory',
      '--ready-file',
      join(folder, 'none', 'ready.json'),
    );
    expect(missing).toMatchObject({ exitCode: 2, message: expect.stringContaining('ready.json') });
  });

  test('a folder in place of the ready file', async () => {
    const { exitCode } = await refused('--port', '0', '--memory', '--ready-file', folder);
    expect(exitCode).toBe(2);
    expect(existsSync(folder)).toBe(true);
  });

  test('a data folder that is a file', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, 'kept');
    expect((await refused('--port', '0', '--data', file)).exitCode).toBe(2);
    expect(readFileSync(file, 'utf8')).toBe('kept');
  });

  test('another program’s file in its data folder, and leaves it', async () => {
    const file = join(folder, 'slices-conn.sqlite');
    writeFileSync(file, 'this is no database, but it is long enough to be taken for one. '.repeat(100));
    const before = readFileSync(file);
    expect((await refused('--port', '0', '--data', folder)).exitCode).toBe(2);
    expect(readFileSync(file)).toEqual(before);
  });
});

describe('serve, told to stop', () => {
  test('finishes the request under way, takes no new one, and ends with 0', async () => {
    const server = await served('--auto-approve', 'lead');
    const { access_token } = await logIn(server);
    const text = JSON.stringify(booking());
    const form = 'client_id=slices-conn&scope=openid';
    const head = (path: string, type: string, length: number): string =>
      [
        `POST ${path} HTTP/1.1`,
        `Host: ${new URL(server.base).host}`,
        ...(type === 'application/json' ? [`Authorization: Bearer ${access_token}`] : []),
        `Content-Type: ${type}`,
        `Content-Length: ${length}`,
        '',
        '',
      ].join('\r\n');
    const upload = await dial(server);
    upload.socket.write(head(CONNECTIVITY, 'application/json', text.length) + text.slice(0, 20));
    const login = await dial(server);
    login.socket.write(
      head('/auth/device/auth', 'application/x-www-form-urlencoded', form.length) + form.slice(0, 5),
    );
    const idle = await dial(server);
    // A request after them shows that what was sent before has arrived.
    expect((await send(server, 'GET', '/.well-known/jwks.json')).status).toBe(200);

    const ended = server.end('SIGTERM');
    await vi.waitUntil(async () => (await attempt(server)) === 'refused', {
      timeout: PATIENCE,
      interval: 20,
    });
    expect(server.child.exitCode).toBeNull();
    upload.socket.write(text.slice(20));
    login.socket.write(form.slice(5));
    await Promise.all([upload.closed, login.closed]);
    // Without an experiment token it is a refusal, but a whole one.
    expect(upload.received()).toMatch(/^HTTP\/1\.1 403 [\s\S]*"code":"token_missing"/);
    expect(login.received()).toMatch(/^HTTP\/1\.1 200 [\s\S]*"device_code"/);
    const { exitCode, signal, stderr } = await ended;
    expect([exitCode, signal]).toEqual([0, null]);
    expect(stderr).not.toContain('"bug"');
    idle.socket.destroy();
  });

  test('waits neither for slow clients nor for connections that are kept for later', async () => {
    const server = await servedHere();
    const kept = await dial(server);
    kept.socket.write(`GET /.well-known/jwks.json HTTP/1.1\r\nHost: ${new URL(server.base).host}\r\n\r\n`);
    await vi.waitUntil(() => kept.received().includes('"keys"'), { timeout: PATIENCE });
    const slow = await Promise.all([dial(server), dial(server), dial(server)]);
    const [headers, body, silent] = slow;
    headers?.socket.write(`GET /auth/device HTTP/1.1\r\nHost: x\r\nX-A: `);
    body?.socket.write(
      `POST /auth/token HTTP/1.1\r\nHost: ${new URL(server.base).host}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n`,
    );
    expect(silent).toBeDefined();
    const dribble = setInterval(() => {
      for (const { socket } of [headers, body].filter((each) => each !== undefined)) socket.write('a');
    }, 100);
    try {
      expect((await send(server, 'GET', '/.well-known/jwks.json')).status).toBe(200);
      expect((await server.stop()).exitCode).toBe(0);
    } finally {
      clearInterval(dribble);
    }
  });

  test('cuts a client off that begins a request and says nothing more, before that', async () => {
    const server = await servedHere();
    const slow = await dial(server);
    let closed = false;
    slow.closed.then(() => {
      closed = true;
    });
    slow.socket.write('GET /auth/device HTTP/1.1\r\nHost: x\r\n');
    // Headers have ten seconds.
    await vi.waitUntil(() => closed, { timeout: PATIENCE, interval: 100 });
    expect(slow.received()).toMatch(/^HTTP\/1\.1 408 /);
  });
});

/** What becomes of a new connection. */
async function attempt({ port }: Door): Promise<'refused' | 'taken'> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  return new Promise((resolve) => {
    socket.on('connect', () => resolve('taken')).on('error', () => resolve('refused'));
    socket.on('close', () => resolve('refused'));
  });
}
