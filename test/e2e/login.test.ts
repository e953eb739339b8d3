import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { OTHER_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY } from '../fixtures/certificates.ts';
import { answer, refresh } from '../fixtures/identity.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { startCommand } from '../fixtures/program.ts';
import { reportOf } from './command.ts';
import {
  type Client,
  newClient,
  pointingAt,
  providerReply,
  type Recorder,
  type Reply,
  record,
  type Served,
  serveHere,
  storedLogin,
} from './served.ts';

const PENDING: Reply = { status: 400, json: { error: 'authorization_pending' } };
const token = { access_token: 'canary', token_type: 'Bearer', expires_in: 3600 };
const TOKENS: Reply = { json: { ...token, refresh_token: 'refresh-canary' } };

/**
 * An identity provider, a portal and a connectivity service in one, of which the last two know nothing.
 *
 * @param device changed members of the reply to the start of a login
 */
const oddServices = (token = PENDING, device: object = {}): Promise<Recorder> =>
  record(({ path }, url) => {
    if (path === '/auth/token') return token;
    return providerReply(path, url, device) ?? { json: { projects: [], experiments: [] } };
  });

const at = (url: string) => newClient(pointingAt(url));

let served: Served;
beforeAll(async () => {
  served = await serveHere('--auto-approve', 'lead');
});

test('login ADDRESS is all that a new machine needs, over https with a certificate of its own authority too', async () => {
  const client = newClient({});
  const [cert = '', key = '', other = ''] = Object.entries({
    'cert.pem': SERVER_CERTIFICATE,
    'key.pem': SERVER_KEY,
    'other.pem': OTHER_CERTIFICATE,
  }).map(([name, text]) => {
    writeFileSync(join(client.home, name), text);
    return join(client.home, name);
  });
  const tls = await serveHere('--auto-approve', 'lead', '--tls-cert', cert, '--tls-key', key);
  const book = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1', '--start-now', '--for', '1h'];
  for (const [{ base }, ...flags] of [
    [served, '--yes'],
    [tls, '--yes', '--ca-file', cert],
  ] as const) {
    const { host } = new URL(base);
    expect(await client.result('login', base, ...flags)).toMatchObject({ profile: host, name: 'lead' });
    expect(await client.result(...book)).toMatchObject({ verified: true });
    expect(await client.result('profile', 'list')).toMatchObject({
      items: expect.arrayContaining([expect.objectContaining({ name: host, active: true, baseUrl: base })]),
    });
    expect(await client.command('logout')).toMatchObject({ exitCode: 0, stdout: `Logged out of ${base}.\n` });
  }
  // What Node trusts stays trusted beside --ca-file.
  const trusting = newClient({ NODE_EXTRA_CA_CERTS: cert });
  const asked = await trusting.command('login', tls.base, '--yes', '--ca-file', other);
  expect(asked).toMatchObject({ exitCode: 0 });
});

test('login at another name of the server says which one to type: 2', async () => {
  const other = served.base.replace('127.0.0.1', 'localhost');
  const { exitCode, stderr } = await newClient({}).command('login', other, '--yes');
  expect(stderr).toContain(`try: slices-conn login ${served.base}\n`);
  expect(exitCode).toBe(2);
});

describe('login, status, logout', () => {
  test('no terminal is needed; --quiet and --json leave address and code on stderr, and one object on stdout', async () => {
    const client = newClient(served.env, { ownProcess: true });
    const { exitCode, stdout, stderr } = await client.command('login', '--quiet', '--json');
    expect(stderr).toMatch(/^ {2}http:\/\/127\.0\.0\.1:\d+\/auth\/device$/m);
    expect(stderr).toMatch(/^ {2}[A-Z]{4}(?:-[A-Z]{4}){2}$/m);
    expect(stderr).not.toContain('eyJ');
    expect(stdout).not.toContain('eyJ');
    const { base_url, portal_url, auth_url } = served.addresses;
    const sub = expect.stringMatching(/^user_127\.0\.0\.1_/);
    const expires_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const known = { id: expect.any(String), expires_at: expect.any(String) };
    expect(JSON.parse(stdout)).toEqual({
      ...{ profile: 'local', addresses: { base_url, portal_url, auth_url }, sub, name: 'lead' },
      roles: ['project', 'experiment'].map((kind) => ({ ...{ kind, name: 'demo', role: 'lead' }, ...known })),
      experiment: { id: known.id, name: 'demo', from: 'only', where: 'the only active one' },
      tokens: [{ kind: 'user', source: 'login', sub, expires_at }],
    });
    expect(exitCode).toBe(0);
    expect(await client.command('status', '--json')).toEqual({ exitCode: 0, stdout, stderr: '' });
    const { state, credentials } = client;
    for (const path of [state, dirname(credentials), credentials])
      expect([path, statSync(path).mode & 0o077]).toEqual([path, 0]);
  });

  test('logout revokes: the refresh token is worth nothing any more', async () => {
    const client = newClient(served.env);
    await client.result('login');
    const { refreshToken, accessToken, expiresAt: storedUntil } = storedLogin(client);
    const logout = await client.command('logout', '--json', '--tz', 'UTC');
    expect(JSON.parse(logout.stdout)).toMatchObject({ loggedIn: false });
    // Row 57: what still lives, and until when.
    const until = new Date(Number(storedUntil)).toISOString().slice(11, 16);
    expect(logout.stderr).toMatch(new RegExp(`access token can be valid until .*${until}`));
    const refused = await fetch(`${served.addresses.portal_url}/apis/projects/v1alpha1/projects/`, {
      headers: { authorization: `Bearer ${accessToken}` },
    });
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('was ended')]);
    expect(answer(await refresh(served, refreshToken))).toBe('400 invalid_grant');
    expect(client.logins).toEqual([]);
    expect(await client.command('status')).toMatchObject({ exitCode: 4 });
    const again = { exitCode: 0, stderr: 'You were not logged in.\n', stdout: '' };
    expect(await client.command('logout')).toEqual(again);
  });

  test('logout forgets even when the identity provider is away, and says that the session lasts', async () => {
    const odd = await oddServices(TOKENS);
    const client = at(odd.url);
    await client.result('login');
    odd.close();
    const { exitCode, stderr } = await client.command('logout');
    expect(stderr).toContain('could not be ended');
    expect(stderr).not.toContain('canary');
    expect(exitCode).toBe(0);
    expect(client.logins).toEqual([]);
  });
});

test.each([
  ['0', []],
  ['1', ['--ci']],
])('--wait %s over, with %j: 8, worth trying again', async (wait, flags) => {
  const client = at((await oddServices()).url);
  const words = ['login', '--json', ...flags];
  const report = reportOf(await client.command(...words, '--wait', wait));
  const fix = `slices-conn ${words.join(' ')}`;
  expect(report).toMatchObject({ exitCode: 8, code: 'login_pending', retryable: true, fix });
  expect(client.logins).toEqual([]);
});

describe('rows 16, 17: where the login is kept', () => {
  let client: Client;
  let kept: string;
  let foreign: string;
  beforeAll(async () => {
    const other = newClient((await serveHere('--auto-approve', 'lead')).env);
    await other.result('login');
    foreign = readFileSync(other.credentials, 'utf8');
  });
  beforeEach(async () => {
    client = newClient(served.env);
    await client.result('login');
    kept = readFileSync(client.credentials, 'utf8');
  });

  const COMMANDS = [['status'], ['login'], ['logout']];

  /** Puts a symbolic link in the place of a path, to what was there. */
  const link = (path: string): void => {
    const elsewhere = join(client.home, 'elsewhere');
    renameSync(path, elsewhere);
    symlinkSync(elsewhere, path);
  };
  // Modes, owners and further contents are in test/files and test/session/login.
  test.each<[string, (path: string) => unknown, string]>([
    ['of a newer version', (path) => writeFileSync(path, '{"version":2,"logins":[]}'), ''],
    ['writable by others (THREATS.md 71)', (path) => chmodSync(path, 0o620), 'Others can write'],
    ['a symbolic link', link, 'symbolic link'],
    ['the login to other services (row 3)', (path) => writeFileSync(path, foreign), 'other services'],
  ])('%s: every command says so, login before it shows a code, and it stays', async (_name, spoil, why) => {
    const { credentials } = client;
    spoil(credentials);
    const content = (): string => (statSync(credentials).isFile() ? readFileSync(credentials, 'utf8') : '');
    const before = content();
    for (const command of COMMANDS) {
      const ended = await client.command(...command, '--json');
      expect(ended.stderr).not.toMatch(/[A-Z]{4}-[A-Z]{4}/);
      const report = reportOf(ended);
      expect(report, command.join(' ')).toMatchObject({ exitCode: 2, code: 'state_unusable' });
      expect(report.why).toContain(why);
      expect(content()).toBe(before);
    }
  });

  test('row 16: the lock’s path holds something else, a symbolic link: 2', async () => {
    const elsewhere = join(client.home, 'elsewhere');
    writeFileSync(elsewhere, 'mine');
    const lock = client.credentials.replace(/json$/, 'lock');
    rmSync(lock);
    symlinkSync(elsewhere, lock);
    expect(await client.command('login', '--json')).toMatchObject({ exitCode: 2 });
    const now = [elsewhere, client.credentials].map((path) => readFileSync(path, 'utf8'));
    expect(now).toEqual(['mine', kept]);
  });

  test('row 15: a draft that a killed process left is ignored, and logout leaves no token, in it neither', async () => {
    const draft = `${client.credentials}.${crypto.randomUUID()}.tmp`;
    writeFileSync(draft, kept.slice(0, 100), { mode: 0o600 });
    expect(await client.command('project', 'list')).toMatchObject({ exitCode: 0 });
    expect(await client.command('login')).toMatchObject({ exitCode: 0 });
    writeFileSync(draft, kept, { mode: 0o600 });
    expect(await client.command('logout')).toMatchObject({ exitCode: 0 });
    expect(existsSync(draft)).toBe(false);
  });

  test('row 15: where nothing more can be written, the old login is intact, and no draft is left', async () => {
    const { home, credentials } = client;
    // The shell counts in blocks of 512 bytes: the draft is cut off in its middle, as by a full disk.
    const shell = ['/bin/sh', '-c', 'ulimit -f 1; exec "$@"', 'sh'];
    const under = (command: readonly string[]) => [...shell, ...command];
    const none = { XDG_CONFIG_HOME: undefined, XDG_CACHE_HOME: undefined, NODE_COMPILE_CACHE: undefined };
    const env = { ...served.env, ...none };
    const report = reportOf(await startCommand(['login', '--json'], { home, env, under }).ended);
    expect(report).toMatchObject({ exitCode: 2, code: 'state_unusable' });
    expect(report.message).toContain(credentials);
    expect(readFileSync(credentials, 'utf8')).toBe(kept);
    expect(readdirSync(dirname(credentials))).toHaveLength(2);
    expect(await client.command('project', 'list')).toMatchObject({ exitCode: 0 });
  });
});

describe('row 3: a token goes to the services that it was obtained for, and nowhere else', () => {
  test.each([
    'SLICES_CONN_BASE_URL',
    'SLICES_CONN_PORTAL_URL',
    'SLICES_CONN_AUTH_URL',
    'SLICES_CONN_CLIENT_ID',
  ])('with another %s nobody is logged in, and nothing is sent there', async (name) => {
    const foreign = await record(() => ({ json: { projects: [], experiments: [], links: [] } }));
    const client = newClient(served.env);
    await client.result('login');
    const env = { ...served.env, [name]: name.endsWith('ID') ? 'other' : foreign.url };
    for (const args of [['project', 'list'], ['status'], ['list']]) {
      expect(reportOf(await client.run([...args, '--json'], { env }))).toMatchObject({ exitCode: 4 });
    }
    expect(foreign.requests).toEqual([]);
    expect(await client.command('status')).toMatchObject({ exitCode: 0 });
  });
});

test('row 5: plain http beyond loopback: nothing arrives, and with insecure everything does, a login with its scope included', async () => {
  // This machine, by an address outside loopback.
  const beyond = (url: string): string => url.replace('127.0.0.1', '0.0.0.0');
  const provider = await record(({ path }, url) => providerReply(path, beyond(url)) ?? { json: token });
  const plain = beyond(provider.url);
  const client = newClient({});
  const addresses = [`baseUrl=${plain}`, `portalUrl=${plain}/portal`, `authUrl=${plain}/auth`];
  const set = ['profile', 'set', 'lab', 'clientId=lab-client', 'scope=openid lab', ...addresses];
  expect(await client.command(...set)).toMatchObject({ exitCode: 2 });
  expect(await client.run(['login'], { env: pointingAt(plain) })).toMatchObject({ exitCode: 2 });
  expect(provider.requests).toEqual([]);
  await client.result(...set, 'insecure=true');
  await client.result('--profile', 'lab', 'login');
  const asked = provider.requests.find(({ path }) => path === '/auth/device');
  expect([...new URLSearchParams(asked?.body)].toSorted()).toEqual([
    ['client_id', 'lab-client'],
    ['scope', 'openid lab'],
  ]);
});

const SCRIPT = '/usr/bin/script';
const onTerminal = existsSync(SCRIPT) ? 'on a terminal' : `NOT TESTED, there is no ${SCRIPT}`;

test.skipIf(!existsSync(SCRIPT) && !process.env['CI'])(
  `row 6: the address to open is one argument of the browser: ${onTerminal}`,
  async () => {
    const address = 'https://login.invalid/device?user_code=A;touch%20x&b=$(id)';
    const odd = await oddServices(TOKENS, { verification_uri_complete: address });
    const { home } = at(odd.url);
    // A browser that only writes down what it is given.
    const [browser, opened] = [join(home, 'browser'), join(home, 'opened')];
    const script = `for a; do printf '%s\\n' "$a"; done > ${opened}.new\nmv ${opened}.new ${opened}\n`;
    writeFileSync(browser, `#!/bin/sh\n${script}`, { mode: 0o755 });
    const { exitCode, stdout } = await startCommand(['login', '--color', 'never'], {
      home,
      env: { ...pointingAt(odd.url), BROWSER: browser },
      under: (command) => [SCRIPT, '-qec', command.join(' '), '/dev/null'],
    }).ended;
    expect(stdout).toContain('Your browser was opened.');
    await vi.waitUntil(() => existsSync(opened), PATIENCE);
    expect(readFileSync(opened, 'utf8')).toBe(`${address}\n`);
    expect(exitCode).toBe(0);
  },
);

// Each status, and the other services, are in test/client.
test('rows 1, 2: a redirect is an error, and nothing is sent again', async () => {
  const book = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1', '--start-now', '--for', '1h'];
  const foreign = await record(() => ({ json: { links: [] } }));
  const moved = await record(({ path }) => ({ status: 307, headers: { location: foreign.url + path } }));
  const client = newClient(pointingAt({ ...served.addresses, base_url: moved.url }));
  await client.command('login');
  for (const args of [['sites'], book, ['list'], ['delete', '--yes', 'con_127.0.0.1_x']]) {
    const report = reportOf(await client.command('--experiment', 'demo', '--json', ...args));
    expect(report, args.join(' ')).toMatchObject({ exitCode: 9, code: 'reply_invalid', httpStatus: 307 });
  }
  // Before the POST, and before the list, its keys are asked for, and after it what it can do: whether the answer can be had again without
  // booking twice. A reservation is looked at before it is deleted, and where the deletion was answered wrongly.
  const methods = moved.requests.map(({ method }) => method);
  expect(methods).toEqual(['GET', 'GET', 'POST', 'GET', 'GET', 'GET', 'GET', 'DELETE', 'GET']);
  expect(foreign.requests).toEqual([]);
});
