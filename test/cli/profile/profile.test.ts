import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { NetworkSettings } from '../../../src/cli/context.ts';
import { Failure } from '../../../src/contract/failure.ts';
import type { Variables } from '../../../src/session/profiles/folders.ts';
import { KEY_NAMES } from '../../../src/session/profiles/profile-keys.ts';
import type { Profile } from '../../../src/session/profiles/profiles.ts';
import { reportOf } from '../../e2e/command.ts';
import { OTHER_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY } from '../../fixtures/certificates.ts';
import { commandWorld, tokenOf } from '../../fixtures/command-world.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

const root = temporaryFolder();

const never = async (): Promise<never> => {
  throw new Failure('network', 'There is nothing.');
};

const ADDRESSES = [
  'baseUrl=https://conn.example.org/',
  'portalUrl=https://portal.example.org',
  'authUrl=https://auth.example.org',
];

let folder = '';
let opened: { profile: Profile; network: NetworkSettings }[];
let drawn = 0;
beforeEach(() => {
  drawn += 1;
  folder = join(root, String(drawn));
  opened = [];
});

/** A command line with its configuration on disk. It records the connections, which answer nothing. */
function world(env: Variables = {}) {
  const connection = { fetch: never, userToken: tokenOf(never), close: async () => undefined };
  return commandWorld(connection, {
    variables: env,
    folders: { config: folder, state: join(root, 'state'), cache: join(root, 'cache') },
    connect: async (profile, network) => {
      opened.push({ profile, network });
      return connection;
    },
  });
}

/** Runs a command that must succeed. */
async function done(args: readonly string[], env: Variables = {}) {
  const { exitCode, stdout, stderr } = await world(env).run(...args);
  if (exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${exitCode}: ${stderr}`);
  return { stdout, stderr };
}

const printed = async (args: readonly string[], env: Variables = {}) =>
  JSON.parse((await done(['--json', ...args], env)).stdout);
const refused = async (args: readonly string[], env: Variables = {}) =>
  reportOf(await world(env).run('--json', ...args));
const content = () => JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));

test('profile list names all profiles, with null for unset members', async () => {
  await done(['profile', 'set', 'lab', ...ADDRESSES]);
  const at = (base: string) => ({ baseUrl: base, portalUrl: `${base}/portal`, authUrl: `${base}/auth` });
  const lab = ['conn', 'portal', 'auth'].map((name) => `https://${name}.example.org`);
  const builtIn = { active: false, builtIn: true };
  expect(await printed(['profile', 'list'])).toEqual({
    items: [
      { name: 'local', ...builtIn, active: true, ...at('http://127.0.0.1:4280') },
      { name: 'offline', ...builtIn, ...at('http://offline.localhost') },
      { name: 'slices', ...builtIn, baseUrl: null, portalUrl: null, authUrl: null },
      { name: 'lab', active: false, builtIn: false, baseUrl: lab[0], portalUrl: lab[1], authUrl: lab[2] },
    ],
  });
});

test('profile show has every key, its value and where it comes from', async () => {
  const set = ['baseUrl=https://conn.example.org', 'experimentTokenCommand=["slices","x"]'];
  await done(['profile', 'set', 'slices', ...set]);
  const { profile, sources } = await printed(['profile', 'show', 'slices'], {
    SLICES_CONN_AUTH_URL: 'https://auth.example.org/',
    SLICES_EXPERIMENT: 'theirs',
  });
  expect(profile).toEqual({
    name: 'slices',
    ...{ baseUrl: 'https://conn.example.org', portalUrl: null, authUrl: 'https://auth.example.org' },
    ...{ clientId: 'slices-conn', scope: 'openid offline_access userinfo projects sessions' },
    ...{ audience: null, issuer: null, apiGroups: 'projects,experiments', tokenPlacement: 'user' },
    ...{ experimentTokenHeader: 'Slices-Experiment-Token', experimentTokenCommand: ['slices', 'x'] },
    ...{ userTokenCommand: null, caFile: null, insecure: false, project: null, experiment: 'theirs' },
    tz: null,
  });
  expect(Object.keys(profile)).toEqual(['name', ...KEY_NAMES]);
  expect(Object.keys(sources)).toEqual(KEY_NAMES);
  expect(sources).toMatchObject({
    ...{ baseUrl: 'file', portalUrl: 'default', authUrl: 'environment', clientId: 'default' },
    ...{ experimentTokenCommand: 'file', experiment: 'environment' },
  });
  expect((await printed(['profile', 'show', 'local'])).sources.baseUrl).toBe('built-in');
  expect(opened).toEqual([]);
});

test('profile use says when a variable overrides the choice', async () => {
  const { stdout, stderr } = await done(['profile', 'use', 'offline'], { SLICES_CONN_PROFILE: 'local' });
  expect(stdout).toBe('Profile offline is now in use.\n');
  expect(stderr).toBe('SLICES_CONN_PROFILE is set to local and overrides this choice.\n');
});

test('profile set makes a profile, and commands use every key of it', async () => {
  const words = [
    ...ADDRESSES,
    ...['clientId=client', 'scope=openid', 'audience=https://conn.example.org', 'apiGroups=p,e'],
    ...['issuer=https://id.example.org/realms/slices/', 'experimentTokenHeader=X-Experiment'],
    ...['tokenPlacement=experiment', 'userTokenCommand=["token"]', 'caFile=/lab.pem', 'insecure=true'],
    'experimentTokenCommand=["slices","experiment","jwt","{experiment}"]',
    ...['project=demo', 'experiment=other', 'tz=Europe/Brussels'],
  ];
  expect(words).toHaveLength(KEY_NAMES.length);
  const { profile } = await printed(['profile', 'set', 'lab', ...words]);
  const lab = world();
  lab.files.set('/lab.pem', SERVER_CERTIFICATE);
  await lab.run('--profile', 'lab', 'list');
  expect(opened.map((connection) => connection.profile)).toEqual([profile]);
});

describe('profile remove', () => {
  test('removes a person’s own profile, and the preference for it', async () => {
    await done(['profile', 'set', 'lab', ...ADDRESSES]);
    await done(['profile', 'use', 'lab']);
    const { stdout, stderr } = await done(['profile', 'remove', 'lab']);
    expect(stdout).toBe('Profile lab is removed.\n');
    expect(stderr).toBe('Profile lab was in use. Now it is local.\n');
    expect((await refused(['profile', 'remove', 'lab'])).exitCode).toBe(3);
  });

  test('resets a built-in profile to its defaults, and says so', async () => {
    await done(['profile', 'set', 'slices', ...ADDRESSES]);
    const remove = ['profile', 'remove', 'slices'];
    expect((await done(remove)).stdout).toBe('Profile slices is built in, and is back to its defaults.\n');
    expect((await done(remove)).stdout).toBe('Profile slices is built in, and has its defaults already.\n');
    expect((await printed(['profile', 'show', 'slices'])).profile.baseUrl).toBe(null);
    expect(await printed(remove)).toEqual({ profile: { name: 'slices', builtIn: true, removed: false } });
  });
});

test.each<[string, RegExp, number?]>([
  ['profile use slcies', /Did you mean slices\?/, 3],
  ['--profile slcies list', /Did you mean slices\?/, 3],
  ['profile set lab basUrl=https://x', /Did you mean baseUrl\?/],
  ['profile set offline baseUrl=https://x', /built-in server/],
  ['--offline --profile local profile list', /together/],
])('a mistake changes nothing: %s', async (command, why, exitCode = 2) => {
  const report = await refused(command.split(' '));
  expect(report.exitCode).toBe(exitCode);
  expect(`${report.message} ${report.why}`).toMatch(new RegExp(why, 'i'));
  expect(() => content()).toThrow('ENOENT');
});

describe('trusted certificates', () => {
  /** Runs `list`, with files at hand. @returns its exit code and the certificates that it connected with */
  async function connected(args: readonly string[], files: Readonly<Record<string, string>>) {
    const own = world();
    for (const [path, text] of Object.entries(files)) own.files.set(path, text);
    const { exitCode } = await own.run(...args, 'list');
    return { exitCode, certificates: opened.map(({ network }) => network.certificates?.trim()) };
  }
  const damaged = SERVER_CERTIFICATE.replace(/\n[A-Za-z0-9+/]{64}\n/, '\n');
  const files = {
    ...{ '/own.pem': SERVER_CERTIFICATE, '/flag.pem': OTHER_CERTIFICATE, '/key.pem': SERVER_KEY },
    ...{ '/empty': '', '/damaged.pem': `${SERVER_CERTIFICATE}${damaged}` },
  };
  const connects = (certificates?: string) => ({ exitCode: 7, certificates: [certificates?.trim()] });
  const REFUSED = { exitCode: 2, certificates: [] };

  test('come from the flag, else from the profile', async () => {
    await done(['profile', 'set', 'lab', ...ADDRESSES, 'caFile=/own.pem']);
    for (const [args, certificates] of [
      [['--profile', 'lab'], SERVER_CERTIFICATE],
      [['--profile', 'lab', '--ca-file', '/flag.pem'], OTHER_CERTIFICATE],
      [['--profile', 'local'], undefined],
    ] as const) {
      opened = [];
      expect(await connected(args, files)).toEqual(connects(certificates));
    }
  });

  test.each(['/gone.pem', '/empty', '/key.pem', '/damaged.pem'])(
    'from %s: 2 in every profile',
    async (path) => {
      for (const profile of ['local', 'offline'])
        expect(await connected(['--profile', profile, '--ca-file', path], files)).toEqual(REFUSED);
    },
  );
});

test('--experiment and --project reach what gives tokens', async () => {
  await world().run('list', '--experiment', 'demo', '--project', 'testbed');
  expect(opened).toMatchObject([{ network: { experiment: 'demo', project: 'testbed' } }]);
});
