import { chmodSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { OTHER_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY } from '../fixtures/certificates.ts';
import { type Machine, newMachine, reportOf } from './command.ts';
import { record, type Served, serveHere } from './served.ts';

let served: Served;
beforeAll(async () => {
  served = await serveHere('--auto-approve', 'lead');
});

let own: Machine;
beforeEach(() => {
  own = newMachine();
});

/** Runs a command that must succeed. @returns what it prints with `--json` */
async function printed(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { exitCode, stdout, stderr } = await own.run(['--json', ...args], { env });
  if (exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${exitCode}: ${stderr}`);
  return JSON.parse(stdout);
}

const addressesOf = (base: string, portal = `${base}/portal`, auth = `${base}/auth`) => [
  `baseUrl=${base}`,
  `portalUrl=${portal}`,
  `authUrl=${auth}`,
];
const config = () => readFileSync(join(own.config, 'config.json'), 'utf8');

describe('a deployment of one’s own', () => {
  test('is named, used, logged in to, and removed', async () => {
    const { base_url, portal_url, auth_url } = served.addresses;
    await printed(['profile', 'set', 'lab', ...addressesOf(`${base_url}/`, portal_url, auth_url)]);
    await printed(['profile', 'use', 'lab']);
    await printed(['login']);
    await printed(['project', 'use', 'demo']);
    await printed(['experiment', 'use', 'demo']);
    expect(await printed(['list'])).toEqual({ items: [] });
    const { profile, sources } = await printed(['profile', 'show']);
    expect(profile).toMatchObject({
      name: 'lab',
      baseUrl: base_url,
      project: expect.stringMatching(/^proj_/),
    });
    expect(sources).toMatchObject({ baseUrl: 'file', project: 'file', experiment: 'file', scope: 'default' });
    await printed(['logout']);
    await printed(['profile', 'remove', 'lab']);
    expect((await printed(['profile', 'show'])).profile.name).toBe('local');
    expect(config()).not.toContain(base_url);
  });

  test('a variable is told as the source of what it overrides', async () => {
    await printed(['profile', 'set', 'slices', ...addressesOf('https://conn.example.org')]);
    const env = { SLICES_CONN_PROFILE: 'slices', SLICES_CONN_BASE_URL: 'https://other.example.org' };
    const { profile, sources } = await printed(['profile', 'show'], env);
    expect([profile.baseUrl, sources.baseUrl, sources.portalUrl]).toEqual([
      'https://other.example.org',
      'environment',
      'file',
    ]);
    const { stdout } = await own.run(['profile', 'show'], { env });
    expect(stdout).toContain('https://other.example.org  (SLICES_CONN_BASE_URL)');
  });

  test('the file is its owner’s alone, whatever it was', async () => {
    const set = ['profile', 'set', 'lab', 'project=demo'];
    await own.run(set, { withoutUmask: true });
    const modes = () =>
      [own.config, join(own.config, 'config.json')].map((path) => statSync(path).mode & 0o777);
    expect(modes()).toEqual([0o700, 0o600]);
    chmodSync(own.config, 0o777);
    chmodSync(join(own.config, 'config.json'), 0o644);
    await own.run(set, { withoutUmask: true });
    expect(modes()).toEqual([0o700, 0o600]);
  });
});

describe('hostile values', () => {
  test.each<[string, string]>([
    ['an address that is a script', 'baseUrl=javascript:alert(1)'],
    ['an address with a password', 'baseUrl=https://user:canary@x'],
    ['a header with a space', 'experimentTokenHeader=bad header'],
    ['control characters', 'project=canary\u001b[2J\u009b'],
    ['very long', `project=${'canary'.repeat(20_000)}`],
    ['a token', 'experiment=eyJjYW5hcnki.eyJjYW5hcnki.canary'],
    ['a misspelt key', 'basUrl=https://canary.example.org'],
  ])('%s: 2, nothing kept, nothing repeated', async (_, word) => {
    const args = ['profile', 'set', 'lab', 'clientId=kept', word];
    const ended = await own.run(args);
    expect([ended.exitCode, ended.stdout]).toEqual([2, '']);
    expect(ended.stderr).toMatch(/^error: .+\n {2}why: .+\n {2}try: slices-conn profile set --help\n$/);
    expect(ended.stderr).not.toContain('canary');
    expect(ended.stderr.length).toBeLessThan(600);
    expect(reportOf(await own.run(['--json', ...args])).exitCode).toBe(2);
    expect((await printed(['profile', 'list'])).items).toHaveLength(3);
  });

  test('a name from the file is escaped before it reaches a terminal', async () => {
    await printed(['profile', 'set', 'local', 'project=demo']);
    writeFileSync(join(own.config, 'config.json'), JSON.stringify({ profiles: { 'a\u001b[2Jb': {} } }));
    for (const args of [['list'], ['show', 'a\u001b[2Jb'], ['use', 'a\u001b[2Jb'], ['use', '\u001b[2J']]) {
      const { stdout, stderr } = await own.run(['profile', ...args]);
      expect(stdout + stderr).toContain('\\u001b');
      expect(stdout + stderr).not.toContain('\u001b');
    }
  });

  test('a symbolic link in place of the file: 2, and what it leads to is left as it is', async () => {
    await printed(['profile', 'set', 'local', 'project=demo']);
    const [file, elsewhere] = [join(own.config, 'config.json'), join(own.home, 'elsewhere.json')];
    renameSync(file, elsewhere);
    symlinkSync(elsewhere, file);
    const before = readFileSync(elsewhere, 'utf8');
    for (const args of [['list'], ['profile', 'list'], ['profile', 'set', 'local', 'project=x']]) {
      const report = reportOf(await own.run(['--json', ...args]));
      expect(report).toMatchObject({ code: 'state_unusable', exitCode: 2 });
      expect(report.message).toContain(file);
    }
    expect(readFileSync(elsewhere, 'utf8')).toBe(before);
  });
});

describe('row 5: plain http beyond loopback', () => {
  test('of a name: 2, before it is looked up', async () => {
    await printed(['profile', 'set', 'lab', 'insecure=true', ...addressesOf('http://example.invalid')]);
    writeFileSync(join(own.config, 'config.json'), config().replace('true', 'false'));
    for (const command of ['login', 'status', 'list', 'sites']) {
      const report = reportOf(await own.run(['--json', '--profile', 'lab', command]));
      expect(report).toMatchObject({ code: 'usage', exitCode: 2 });
    }
    const env = { SLICES_CONN_BASE_URL: 'http://example.invalid' };
    expect(reportOf(await own.run(['--json', 'list'], { env })).message).toContain('SLICES_CONN_BASE_URL');
  });

  test('of an address: nothing arrives, and with insecure everything does, a login with its scope included', async () => {
    const provider = await record(({ path }, url) => {
      const auth = `${url.replace('127.0.0.1', '0.0.0.0')}/auth`;
      switch (path) {
        case '/auth/.well-known/openid-configuration':
          return {
            json: {
              issuer: auth,
              token_endpoint: `${auth}/token`,
              device_authorization_endpoint: `${auth}/device`,
            },
          };
        case '/auth/device':
          return {
            json: {
              device_code: 'device',
              user_code: 'BCDF-GHJK',
              verification_uri: `${auth}/page`,
              expires_in: 600,
              interval: 1,
            },
          };
        default:
          return { json: { access_token: 'opaque', token_type: 'Bearer', expires_in: 600 } };
      }
    });
    // This machine, by an address outside loopback.
    const plain = provider.url.replace('127.0.0.1', '0.0.0.0');
    const set = ['profile', 'set', 'lab', 'clientId=lab-client', 'scope=openid lab', ...addressesOf(plain)];
    expect((await own.run(set)).exitCode).toBe(2);
    const env = {
      SLICES_CONN_BASE_URL: plain,
      SLICES_CONN_PORTAL_URL: plain,
      SLICES_CONN_AUTH_URL: `${plain}/auth`,
    };
    expect((await own.run(['login'], { env })).exitCode).toBe(2);
    expect(provider.requests).toEqual([]);
    await printed([...set, 'insecure=true']);
    await printed(['--profile', 'lab', 'login']);
    const asked = provider.requests.find(({ path }) => path === '/auth/device');
    expect(Object.fromEntries(new URLSearchParams(asked?.body))).toEqual({
      client_id: 'lab-client',
      scope: 'openid lab',
    });
  });
});

describe('certificates', () => {
  let requests: string[];
  const server = createServer({ cert: SERVER_CERTIFICATE, key: SERVER_KEY }, ({ url = '' }, reply) => {
    requests.push(url);
    reply.writeHead(404).end();
  });
  let address = '';
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const bound = server.address();
    if (bound === null || typeof bound === 'string') throw new Error('no port');
    address = `https://127.0.0.1:${bound.port}`;
  });
  afterAll(() => {
    server.close().closeAllConnections();
  });

  let theirs: string;
  let others: string;
  beforeEach(async () => {
    requests = [];
    [theirs, others] = [join(own.home, 'theirs.pem'), join(own.home, 'others.pem')];
    writeFileSync(theirs, SERVER_CERTIFICATE);
    writeFileSync(others, OTHER_CERTIFICATE);
    await printed(['profile', 'set', 'lab', ...addressesOf(address)]);
    await printed(['profile', 'use', 'lab']);
  });

  /** Whether a login gets through to the server, which does not know what it wants. */
  async function reaches(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    requests = [];
    const { exitCode, stderr } = await own.run([...args, 'login'], { env });
    expect([exitCode, stderr]).not.toEqual([0, '']);
    return requests.length > 0;
  }

  test('from an unknown issuer are refused, also with insecure', async () => {
    expect(await reaches([])).toBe(false);
    await printed(['profile', 'set', 'lab', 'insecure=true']);
    expect(await reaches([])).toBe(false);
  });

  test('are trusted by the profile’s file, which the flag’s goes before', async () => {
    await printed(['profile', 'set', 'lab', `caFile=${theirs}`]);
    expect(await reaches([])).toBe(true);
    expect(await reaches(['--ca-file', others])).toBe(false);
    await printed(['profile', 'set', 'lab', `caFile=${others}`]);
    expect(await reaches(['--ca-file', theirs])).toBe(true);
  });

  test('that Node trusts stay trusted beside them', async () => {
    expect(await reaches([], { NODE_EXTRA_CA_CERTS: theirs })).toBe(true);
    expect(await reaches(['--ca-file', others], { NODE_EXTRA_CA_CERTS: theirs })).toBe(true);
  });

  test('in a file that can’t be read: 2, offline too', async () => {
    for (const flags of [[], ['--offline']]) {
      const args = ['--json', ...flags, '--ca-file', join(own.home, 'gone.pem'), 'sites'];
      expect(reportOf(await own.run(args))).toMatchObject({ code: 'file_unusable', exitCode: 2 });
    }
    expect(requests).toEqual([]);
  });
});
