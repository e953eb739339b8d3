import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Variables } from '../../../src/session/profiles/folders.ts';
import type { Settings } from '../../../src/session/profiles/profile.ts';
import { KEY_NAMES, type ProfileKey } from '../../../src/session/profiles/profile-keys.ts';
import { type Profile, Profiles } from '../../../src/session/profiles/profiles.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

const root = temporaryFolder();

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

/** Writes a configuration: an object as JSON, or a text. */
function configure(content: unknown): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 });
}

const resolve = (wanted?: string, env: Variables = {}): Promise<Profile> =>
  new Profiles(folder, env).resolve(wanted);

describe('the chosen profile', () => {
  const config = { profile: 'lab', profiles: { lab: LAB } };

  test.each<[string, unknown, string | undefined, Variables, string]>([
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
    'the profile %s does not exist, and the failure names the existing ones',
    async (name) => {
      configure(config);
      const profiles = new Profiles(folder, {});
      for (const act of [() => profiles.use(name), () => profiles.remove(name)]) {
        expect((await failureOf(act)).code).toBe('not_found');
        expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(config);
      }
      const failure = await failureOf(() => resolve(name));
      expect(failure).toMatchObject({
        code: 'not_found',
        message: expect.stringContaining(`There is no profile ${name}.`),
      });
      for (const known of ['local', 'offline', 'slices', 'lab']) expect(failure.facts.why).toContain(known);
    },
  );
});

describe('the values of a profile', () => {
  test('local is on the loopback address, with the contract’s defaults', async () => {
    expect(await resolve('local')).toEqual({
      name: 'local',
      baseUrl: 'http://127.0.0.1:4280',
      portalUrl: 'http://127.0.0.1:4280/portal',
      authUrl: 'http://127.0.0.1:4280/auth',
      clientId: 'slices-conn',
      apiGroups: 'projects,experiments',
      experimentTokenHeader: 'Slices-Experiment-Token',
      tokenPlacement: 'user',
      scope: 'openid offline_access userinfo projects sessions',
      insecure: false,
    });
  });

  test.each(['baseUrl', 'portalUrl', 'authUrl'] as const)(
    'does not derive its %s from the others',
    async (missing) => {
      configure({ profiles: { lab: { ...LAB, [missing]: undefined } } });
      const { code, message, facts } = await failureOf(() => resolve('lab'));
      expect([code, message]).toEqual(['usage', `Profile lab has no ${missing} yet.`]);
      expect(facts.fix).toBe('slices-conn profile set --help');
    },
  );

  test('the keys that the API groups had once are read, and written as the one of today', async () => {
    configure({
      profiles: {
        lab: { ...LAB, projectsApiGroup: 'p', ciClientId: 'x' },
        two: { experimentsApiGroup: 'e' },
      },
    });
    expect((await resolve('lab')).apiGroups).toBe('p,experiments');
    await new Profiles(folder, {}).set('lab', { set: { project: 'demo' }, unset: [] });
    expect(JSON.parse(readFileSync(file, 'utf8')).profiles).toEqual({
      ...{ lab: { ...LAB, ciClientId: 'x', apiGroups: 'p,experiments', project: 'demo' } },
      ...{ two: { apiGroups: 'projects,e' } },
    });
  });

  describe('row 49: token commands run only for the profile’s own services', () => {
    const commands = { userTokenCommand: ['token'], experimentTokenCommand: ['jwt', '{experiment}'] };
    const elsewhere = 'https://elsewhere.example';

    test.each<[string, Variables, readonly string[]]>([
      ['another connectivity service', { SLICES_CONN_BASE_URL: elsewhere }, ['SLICES_CONN_BASE_URL']],
      ['another portal', { SLICES_CONN_PORTAL_URL: elsewhere }, ['SLICES_CONN_PORTAL_URL']],
      ['another path', { SLICES_CONN_BASE_URL: `${LAB.baseUrl}/x` }, ['SLICES_CONN_BASE_URL']],
      [
        'both',
        { SLICES_CONN_BASE_URL: elsewhere, SLICES_CONN_PORTAL_URL: elsewhere },
        ['SLICES_CONN_BASE_URL', 'SLICES_CONN_PORTAL_URL'],
      ],
    ])('the environment names %s: the commands are not run', async (_, env, redirectedBy) => {
      configure({ profiles: { lab: { ...LAB, ...commands } } });
      const profile = await resolve('lab', env);
      expect([profile.userTokenCommand, profile.experimentTokenCommand]).toEqual([undefined, undefined]);
      expect(profile.redirectedBy).toEqual(redirectedBy);
    });

    test.each<[string, Variables]>([
      ['nothing', {}],
      ['the same', { SLICES_CONN_BASE_URL: `${LAB.baseUrl}/`, SLICES_CONN_PORTAL_URL: LAB.portalUrl }],
      ['another identity provider, which gets none', { SLICES_CONN_AUTH_URL: elsewhere }],
    ])('the environment names %s: the commands stay', async (_, env) => {
      configure({ profiles: { lab: { ...LAB, ...commands } } });
      const profile = await resolve('lab', env);
      expect(profile).toMatchObject(commands);
      expect(profile.redirectedBy).toBeUndefined();
    });

    test('addresses that only the environment names are not the profile’s', async () => {
      configure({ profiles: { slices: commands } });
      const env = {
        SLICES_CONN_BASE_URL: elsewhere,
        SLICES_CONN_PORTAL_URL: elsewhere,
        SLICES_CONN_AUTH_URL: elsewhere,
      };
      expect((await resolve('slices', env)).userTokenCommand).toBeUndefined();
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
    ['project', 'SLICES_CONN_PROJECT'],
    ['experiment', 'SLICES_CONN_EXPERIMENT'],
    ['experiment', 'SLICES_EXPERIMENT'],
  ])('%s by %s', async (key, variable) => {
    const plain = (await resolve('local'))[key];
    const [own, given] = ['of-the-profile', 'of-the-environment'].map((text) =>
      key.endsWith('Url') ? `https://${text}.example` : text,
    );
    configure({ profiles: { local: { [key]: own } } });
    expect((await resolve('local'))[key]).toBe(own);
    expect((await resolve('local', { [variable]: given }))[key]).toBe(given);
    expect((await resolve('local', { [variable]: '' }))[key]).toBe(own);
    rmSync(file);
    expect((await resolve('local', { [variable]: '' }))[key]).toBe(plain);
  });

  test('SLICES_CONN_BASE_URL alone sends nobody to the portal of this machine', async () => {
    const given = await resolve('local', { SLICES_CONN_BASE_URL: 'https://conn.example.org' });
    expect([given.portalUrl, given.authUrl]).toEqual([undefined, undefined]);
  });

  test('SLICES_CONN_EXPERIMENT goes before SLICES_EXPERIMENT', async () => {
    const env = { SLICES_CONN_EXPERIMENT: 'own', SLICES_EXPERIMENT: 'theirs' };
    expect((await resolve('local', env)).experiment).toBe('own');
  });

  test('the built-in server has fixed addresses, in any environment and file', async () => {
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
  test.each([
    ...['', '{"profiles":', 'profiles: {}', '[]', '"profiles"', 'null', '{"profiles":[]}', '{"profile":5}'],
    '{"profiles":{"lab":"https://conn.lab.example"}}',
    ...[
      ...['"baseUrl":5', '"baseUrl":"conn.lab.example"', '"tokenPlacement":"everywhere"', '"project":null'],
      ...['"userTokenCommand":"slices"', '"userTokenCommand":[]', '"insecure":"false"'],
    ].map((member) => `{"profiles":{"local":{${member}}}}`),
    '\u0000\u0001\u0002',
  ])('that holds %j is a clear failure, and stays unchanged', async (content) => {
    configure(content);
    const profiles = new Profiles(folder, {});
    const uses: (() => unknown)[] = [
      () => profiles.resolve('local'),
      () => profiles.names(),
      () => profiles.list(),
      () => profiles.inspect('local'),
      () => profiles.choose('local', 'project', { id: 'x', name: '' }),
      () => profiles.use('local'),
      () => profiles.set('local', { set: { project: 'x' }, unset: [] }),
      () => profiles.remove('local'),
    ];
    for (const use of uses) {
      const failure = await failureOf(use);
      expect(failure.code).toBe('state_unusable');
      expect(failure.message).toContain(file);
      expect(failure.facts.why).toMatch(/\S/);
      expect(readFileSync(file, 'utf8')).toBe(content);
    }
  });

  test('keeps a choice and all its other content, known or not', async () => {
    const before = {
      profile: 'lab',
      later: { version: 9 },
      profiles: { lab: { ...LAB, experiment: 'old', userTokenCommand: ['x'] }, other: LAB },
    };
    configure(before);
    await new Profiles(folder, {}).choose('lab', 'experiment', {
      id: 'exp_portal.lab.example_1',
      name: 'new',
    });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      ...before,
      profiles: {
        ...before.profiles,
        lab: {
          ...before.profiles.lab,
          experiment: 'exp_portal.lab.example_1',
          chosenNames: { 'exp_portal.lab.example_1': 'new' },
        },
      },
    });
    expect(await resolve('lab')).toMatchObject({
      experiment: 'exp_portal.lab.example_1',
      chosenNames: { 'exp_portal.lab.example_1': 'new' },
    });
  });

  const uses: [string, (profiles: Profiles) => unknown][] = [
    ['read', (profiles) => profiles.resolve('local')],
    ['written', (profiles) => profiles.choose('local', 'project', { id: 'demo', name: '' })],
  ];

  test.each(uses)(
    'row 16: a symbolic link in its place is refused when it is %s, and stays unchanged',
    async (_, use) => {
      const elsewhere = join(root, `elsewhere-${drawn}.json`);
      for (const content of ['{"profiles":{}}', undefined]) {
        mkdirSync(folder, { recursive: true });
        if (content !== undefined) writeFileSync(elsewhere, content);
        symlinkSync(elsewhere, file);
        const failure = await failureOf(() => use(new Profiles(folder, {})));
        expect(failure.code).toBe('state_unusable');
        expect(failure.facts.why).toContain('symbolic link');
        expect(readlinkSync(file)).toBe(elsewhere);
        expect(existsSync(elsewhere) && readFileSync(elsewhere, 'utf8')).toBe(content ?? false);
        rmSync(file);
        rmSync(elsewhere, { force: true });
      }
    },
  );

  test.each(uses)('row 51: a file that others can write to is refused when it is %s', async (_, use) => {
    configure({ profiles: { local: { userTokenCommand: ['sh', '-c', 'echo planted'] } } });
    for (const mode of [0o666, 0o660, 0o602]) {
      chmodSync(file, mode);
      const failure = await failureOf(() => use(new Profiles(folder, {})));
      expect(failure.code).toBe('state_unusable');
      expect(failure.facts.why).toContain('could have changed it');
      expect(`${failure.facts.why} ${failure.facts.fix}`).toContain('chmod 600');
      expect(statSync(file).mode & 0o777).toBe(mode);
    }
  });

  test('is replaced, not written over, in a terminal that a snap started too (THREATS.md 70)', async () => {
    vi.stubEnv('SNAP', '/snap/code/1');
    const profiles = new Profiles(folder, {});
    await profiles.use('offline');
    // The name of the old file is kept beside it: else its number may be used again.
    linkSync(file, join(folder, 'before'));
    await profiles.use('local');
    expect(readFileSync(join(folder, 'before'), 'utf8')).toContain('offline');
    expect(readFileSync(file, 'utf8')).toContain('local');
  });

  test('drafts are removed by the next change, and no other file', async () => {
    const draft = `${file}.${crypto.randomUUID()}.tmp`;
    for (const path of [draft, `${file}.tmp-17960000001a2b3c`, `${file}.bak`, `${file}.old.tmp`]) {
      configure({});
      renameSync(file, path);
    }
    await new Profiles(folder, {}).use('offline');
    expect(readdirSync(folder).toSorted()).toEqual(['config.json', 'config.json.bak', 'config.json.old.tmp']);
  });

  test('changes within one process lose none of each other', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `lab${index}`);
    await Promise.all(
      names.map((name) => new Profiles(folder, {}).set(name, { set: { project: name }, unset: [] })),
    );
    expect(new Profiles(folder, {}).names()).toEqual(['local', 'offline', 'slices', ...names]);
  });
});

describe('changing a profile', () => {
  const set = (name: string, settings: Settings, unset: ProfileKey[] = []) =>
    new Profiles(folder, {}).set(name, { set: settings, unset });
  const content = () => JSON.parse(readFileSync(file, 'utf8'));

  test('changes nothing when a variable is invalid, because the profile could not be shown', async () => {
    const profiles = new Profiles(folder, { SLICES_CONN_BASE_URL: 'https://user:canary@conn.lab.example' });
    const failure = await failureOf(() => profiles.set('lab', { set: LAB, unset: [] }));
    expect(failure).toMatchObject({
      code: 'usage',
      message: 'SLICES_CONN_BASE_URL is not a valid value for baseUrl.',
    });
    expect(JSON.stringify(failure.facts)).not.toContain('canary');
    expect(existsSync(file)).toBe(false);
  });

  test.each([
    ...['a', '0', 'lab-2.example_x', 'x'.repeat(253)],
    ...['conn.example.org', '127.0.0.1:4280', '[::1]:4280'],
  ])('%s is a valid name', async (name) => {
    await set(name, LAB);
    expect((await resolve(name)).name).toBe(name);
  });

  test.each([
    ...['', 'Lab', '-lab', '.lab', '_lab', 'my lab', 'lab\n', 'lab/x', 'läb', 'x'.repeat(254), 'lab:x'],
    ...['::1', '[lab]', '__proto__', 'constructor', 'prototype', 'toString'],
  ])('%j is not a valid name', async (name) => {
    expect((await failureOf(() => set(name, LAB))).code).toBe('usage');
    expect(existsSync(file)).toBe(false);
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  test('of the built-in server accepts only project, experiment and tz', async () => {
    const taken = { project: 'demo', experiment: 'other', tz: 'Europe/Brussels' };
    await set('offline', taken);
    for (const key of KEY_NAMES.filter((name) => !Object.hasOwn(taken, name))) {
      const failure = await failureOf(() => set('offline', { project: 'gone' }, [key]));
      expect(failure).toMatchObject({ code: 'usage', message: `Profile offline does not take ${key}.` });
    }
    expect(content()).toEqual({ profiles: { offline: taken } });
  });

  describe('row 5: a plain http address beyond loopback', () => {
    const PLAIN = 'http://conn.lab.example';

    test.each(['baseUrl', 'portalUrl', 'authUrl'] as const)('is refused as %s', async (key) => {
      const failure = await failureOf(() => set('lab', { ...LAB, [key]: PLAIN }));
      expect(failure).toMatchObject({
        code: 'usage',
        message: `The ${key} of profile lab is not an https address.`,
        facts: { fix: 'slices-conn profile set --help' },
      });
      expect(existsSync(file)).toBe(false);
    });

    test('is accepted with insecure, set at once or before, and insecure can’t be unset then', async () => {
      await set('lab', { ...LAB, baseUrl: PLAIN, insecure: true });
      await set('lab', { portalUrl: PLAIN });
      for (const change of [() => set('lab', { insecure: false }), () => set('lab', {}, ['insecure'])]) {
        expect((await failureOf(change)).code).toBe('usage');
      }
      expect(await resolve('lab')).toMatchObject({ baseUrl: PLAIN, portalUrl: PLAIN, insecure: true });
      await set('lab', LAB, ['insecure']);
      expect(await resolve('lab')).toMatchObject({ ...LAB, insecure: false });
    });

    test('in the file is refused before the profile is used', async () => {
      configure({ profiles: { lab: { ...LAB, authUrl: PLAIN } } });
      const failure = await failureOf(() => resolve('lab'));
      expect(failure.message).toBe('The authUrl of profile lab is not an https address.');
      expect(failure.facts.fix).toBe('slices-conn profile show lab');
    });

    test('in the environment is refused unless the profile says insecure', async () => {
      configure({ profiles: { lab: LAB, open: { ...LAB, insecure: true } } });
      const env = { SLICES_CONN_BASE_URL: PLAIN };
      const failure = await failureOf(() => resolve('lab', env));
      expect(failure).toMatchObject({
        code: 'usage',
        message: 'SLICES_CONN_BASE_URL is not an https address.',
      });
      expect((await resolve('open', env)).baseUrl).toBe(PLAIN);
    });
  });
});

test('each API group has a variable of its own, before the profile', async () => {
  configure({ profiles: { local: { apiGroups: 'p,e' } } });
  const groupsWith = async (env: Record<string, string>) => (await resolve('local', env)).apiGroups;
  expect(await groupsWith({ SLICES_CONN_PROJECTS_API_GROUP: 'own' })).toBe('own,e');
  expect(await groupsWith({ SLICES_CONN_EXPERIMENTS_API_GROUP: 'own' })).toBe('p,own');
});

describe('an invalid variable', () => {
  test.each<[string, string]>([
    ['SLICES_CONN_BASE_URL', 'conn.lab.example'],
    ['SLICES_CONN_PORTAL_URL', 'javascript:alert(1)'],
    ['SLICES_CONN_AUTH_URL', 'https://auth.lab.example/?canary'],
    ['SLICES_CONN_CLIENT_ID', 'two words'],
    ['SLICES_CONN_PROJECTS_API_GROUP', '../projects'],
    ['SLICES_CONN_PROJECT', 'x\u001b[2J'],
    ['SLICES_CONN_EXPERIMENT', 'x'.repeat(5000)],
  ])('%s=%j is named without its value', async (variable, value) => {
    for (const use of [
      () => resolve('local', { [variable]: value }),
      () => new Profiles(folder, { [variable]: value }).inspect('slices'),
    ]) {
      const failure = await failureOf(use);
      expect(failure.code).toBe('usage');
      expect(failure.message).toContain(variable);
      expect(failure.message + JSON.stringify(failure.facts)).not.toContain(value);
    }
  });
});
