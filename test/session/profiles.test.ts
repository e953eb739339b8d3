import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { Environment } from '../../src/session/folders.ts';
import { type Profile, Profiles } from '../../src/session/profiles.ts';
import { failureOf } from '../fixtures/failures.ts';

const root = mkdtempSync(join(tmpdir(), 'slices-conn-profiles-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = '';
let file = '';
let drawn = 0;
beforeEach(() => {
  drawn += 1;
  folder = join(root, String(drawn));
  file = join(folder, 'config.json');
});

const LAB = {
  baseUrl: 'https://conn.lab.example',
  portalUrl: 'https://portal.lab.example',
  authUrl: 'https://auth.lab.example',
};

/** Puts a configuration in place: an object as JSON, a text as it is. */
function configure(content: unknown): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 });
}

const resolve = (wanted?: string, env: Environment = {}): Promise<Profile> =>
  new Profiles(folder, env).resolve(wanted);

describe('which profile', () => {
  const config = { profile: 'lab', profiles: { lab: LAB } };

  test.each<[string, unknown, string | undefined, Environment, string]>([
    ['the flag before everything', config, 'offline', { SLICES_CONN_PROFILE: 'local' }, 'offline'],
    ['else the environment', config, undefined, { SLICES_CONN_PROFILE: 'local' }, 'local'],
    ['else the preferred one', config, undefined, {}, 'lab'],
    ['else local', undefined, undefined, {}, 'local'],
    ['an empty variable counts as unset', config, undefined, { SLICES_CONN_PROFILE: '' }, 'lab'],
  ])('%s', async (_, content, wanted, env, name) => {
    if (content !== undefined) configure(content);
    expect((await resolve(wanted, env)).name).toBe(name);
  });

  test.each(['nope', 'Local', 'constructor', '__proto__', 'toString'])(
    'there is no profile %s, and those that there are, are named',
    async (name) => {
      configure(config);
      const failure = await failureOf(() => resolve(name));
      expect(failure).toMatchObject({ code: 'usage', message: `There is no profile ${name}.` });
      for (const known of ['local', 'offline', 'slices', 'lab']) expect(failure.facts.why).toContain(known);
    },
  );
});

test('the names of all: the built-in ones, and the user’s own', () => {
  expect(new Profiles(folder, {}).names()).toEqual(['local', 'offline', 'slices']);
  configure({ profiles: { lab: LAB, local: {} } });
  expect(new Profiles(folder, {}).names()).toEqual(['local', 'offline', 'slices', 'lab']);
  configure('garbage');
  expect(() => new Profiles(folder, {}).names()).toThrow(expect.objectContaining({ code: 'state_unusable' }));
});

describe('what a profile says', () => {
  test('local is on the loopback address, with CLI.md’s defaults', async () => {
    expect(await resolve('local')).toEqual({
      name: 'local',
      baseUrl: 'http://127.0.0.1:4280',
      portalUrl: 'http://127.0.0.1:4280/portal',
      authUrl: 'http://127.0.0.1:4280/auth',
      clientId: 'slices-conn',
      projectsApiGroup: 'projects',
      experimentsApiGroup: 'experiments',
      experimentTokenHeader: 'Slices-Experiment-Token',
      tokenPlacement: 'user',
    });
  });

  test('slices has no addresses until its user sets them: none is guessed', async () => {
    const failure = await failureOf(() => resolve('slices'));
    expect(failure).toMatchObject({ code: 'usage', message: 'Profile slices has no addresses yet.' });
  });

  test.each(['baseUrl', 'portalUrl', 'authUrl'] as const)(
    'nor is its %s from the others',
    async (missing) => {
      configure({ profiles: { lab: { ...LAB, [missing]: undefined } } });
      expect((await failureOf(() => resolve('lab'))).code).toBe('usage');
    },
  );

  test('a profile of the user’s own, with everything set', async () => {
    const lab = {
      ...LAB,
      clientId: 'client',
      projectsApiGroup: 'p',
      experimentsApiGroup: 'e',
      experimentTokenHeader: 'X-Experiment',
      tokenPlacement: 'experiment',
      project: 'demo',
      experiment: 'throughput',
    };
    configure({ profiles: { lab } });
    expect(await resolve('lab')).toEqual({ name: 'lab', ...lab });
  });

  test('a built-in profile is changed by the user’s settings, one by one', async () => {
    configure({ profiles: { local: { baseUrl: 'http://127.0.0.1:1' } } });
    expect(await resolve('local')).toMatchObject({
      baseUrl: 'http://127.0.0.1:1',
      portalUrl: 'http://127.0.0.1:4280/portal',
    });
  });

  test('addresses lose their trailing slashes', async () => {
    configure({ profiles: { lab: { ...LAB, baseUrl: 'https://conn.lab.example/api//' } } });
    expect((await resolve('lab')).baseUrl).toBe('https://conn.lab.example/api');
  });
});

describe('precedence: environment, then profile, then default', () => {
  test.each<[keyof Profile, string]>([
    ['baseUrl', 'SLICES_CONN_BASE_URL'],
    ['portalUrl', 'SLICES_CONN_PORTAL_URL'],
    ['authUrl', 'SLICES_CONN_AUTH_URL'],
    ['clientId', 'SLICES_CONN_CLIENT_ID'],
    ['projectsApiGroup', 'SLICES_CONN_PROJECTS_API_GROUP'],
    ['experimentsApiGroup', 'SLICES_CONN_EXPERIMENTS_API_GROUP'],
    ['project', 'SLICES_CONN_PROJECT'],
    ['experiment', 'SLICES_CONN_EXPERIMENT'],
    ['experiment', 'SLICES_EXPERIMENT'],
  ])('%s by %s', async (key, variable) => {
    const plain = (await resolve('local'))[key];
    configure({ profiles: { local: { [key]: 'of-the-profile' } } });
    expect((await resolve('local'))[key]).toBe('of-the-profile');
    expect((await resolve('local', { [variable]: 'of-the-environment' }))[key]).toBe('of-the-environment');
    expect((await resolve('local', { [variable]: '' }))[key]).toBe('of-the-profile');
    rmSync(file);
    expect((await resolve('local', { [variable]: '' }))[key]).toBe(plain);
  });

  test('SLICES_CONN_EXPERIMENT goes before SLICES_EXPERIMENT', async () => {
    const env = { SLICES_CONN_EXPERIMENT: 'own', SLICES_EXPERIMENT: 'theirs' };
    expect((await resolve('local', env)).experiment).toBe('own');
  });

  test('the built-in server is only ever itself, whatever the environment or the file says', async () => {
    const plain = await resolve('offline');
    const addresses = { baseUrl: 'http://evil', portalUrl: 'http://evil', authUrl: 'http://evil' };
    configure({ profiles: { offline: addresses } });
    const env = {
      SLICES_CONN_BASE_URL: 'http://evil',
      SLICES_CONN_PORTAL_URL: 'http://evil',
      SLICES_CONN_AUTH_URL: 'http://evil',
    };
    expect(await resolve('offline', env)).toEqual(plain);
    expect(await resolve('offline')).toEqual(plain);
  });
});

describe('config.json', () => {
  test.each<[string, string]>([
    ['nothing', ''],
    ['half an object', '{"profiles":'],
    ['no JSON', 'profiles: {}'],
    ['a list', '[]'],
    ['a text', '"profiles"'],
    ['null', 'null'],
    ['profiles that are none', '{"profiles":[]}'],
    ['a profile that is none', '{"profiles":{"lab":"https://conn.lab.example"}}'],
    ['an address that is none', '{"profiles":{"local":{"baseUrl":5}}}'],
    ['another placement', '{"profiles":{"local":{"tokenPlacement":"everywhere"}}}'],
    ['bytes that are no text', '\u0000\u0001\u0002'],
  ])('that holds %s is a clear failure, and is left as it is', async (_, content) => {
    configure(content);
    const profiles = new Profiles(folder, {});
    for (const use of [() => profiles.resolve('local'), () => profiles.choose('local', { project: 'x' })]) {
      const failure = await failureOf(use);
      expect(failure.code).toBe('state_unusable');
      expect(failure.message).toContain(file);
      expect(failure.facts.why).toMatch(/\S/);
      expect(readFileSync(file, 'utf8')).toBe(content);
    }
  });

  test('is not made by reading', async () => {
    await resolve('local');
    expect(existsSync(folder)).toBe(false);
  });

  test('keeps a choice, and everything else that was in it, known or not', async () => {
    const before = {
      profile: 'lab',
      later: { version: 9 },
      profiles: { lab: { ...LAB, experiment: 'old', userTokenCommand: ['x'] }, other: LAB },
    };
    configure(before);
    await new Profiles(folder, {}).choose('lab', { experiment: 'exp_portal.lab.example_1' });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      ...before,
      profiles: {
        ...before.profiles,
        lab: { ...before.profiles.lab, experiment: 'exp_portal.lab.example_1' },
      },
    });
    expect((await resolve('lab')).experiment).toBe('exp_portal.lab.example_1');
  });

  test('is made with the first choice: folder 0700, file 0600', async () => {
    await new Profiles(folder, {}).choose('local', { project: 'demo' });
    expect((await resolve('local')).project).toBe('demo');
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('and its folder are closed to others when they were open', async () => {
    configure({ profiles: {} });
    chmodSync(folder, 0o755);
    chmodSync(file, 0o644);
    await new Profiles(folder, {}).choose('local', { project: 'demo' });
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});
