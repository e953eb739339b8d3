import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { beforeAll, describe, expect, test } from 'vitest';
import { claimedClaims } from '../../src/tokens/claimed.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { reportOf, reservationIn } from './command.ts';
import { newClient, record, type Served, serveHere } from './served.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '100M', '--start-now', '--for', '1h'];

let served: Served;
let tokens: { user: string; experiment: string };
let folder: string;

beforeAll(async () => {
  folder = temporaryFolder();
  served = await serveHere('--auto-approve', 'lead');
  tokens = await tokensFor(served);
});

/** Tokens as another program gets them: over the services' own endpoints. */
async function tokensFor({ addresses }: Served): Promise<{ user: string; experiment: string }> {
  const { auth_url, portal_url, client_id } = addresses;
  const post = async (path: string, form: Record<string, string>): Promise<unknown> => {
    const reply = await fetch(path, { method: 'POST', body: new URLSearchParams({ client_id, ...form }) });
    return reply.json();
  };
  const published = await (await fetch(`${auth_url}/.well-known/openid-configuration`)).json();
  const endpoints = v.parse(
    v.object({ device_authorization_endpoint: v.string(), token_endpoint: v.string() }),
    published,
  );
  const started = await post(endpoints.device_authorization_endpoint, { scope: 'openid userinfo projects' });
  const { device_code } = v.parse(v.object({ device_code: v.string() }), started);
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
  const given = await post(endpoints.token_endpoint, { grant_type, device_code });
  const user = v.parse(v.object({ access_token: v.string() }), given).access_token;
  const headers = { authorization: `Bearer ${user}` };
  const experiments = `${portal_url}/apis/experiments/v1alpha1/experiments/`;
  const listed = v.parse(
    v.object({ experiments: v.array(v.object({ id: v.string(), name: v.string() })) }),
    await (await fetch(experiments, { headers })).json(),
  );
  const demo = listed.experiments.find(({ name }) => name === 'demo');
  const reply = await fetch(experiments + demo?.id, { headers: { ...headers, accept: 'application/jwt' } });
  return { user, experiment: (await reply.text()).trim() };
}

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Which addresses a command with `--debug` has asked. */
function asked(stderr: string): string[] {
  return [...stderr.matchAll(/^→ (\S+ \S+)$/gm)].map(([, request = '']) => request);
}

function known(kind: 'user' | 'experiment', source: string) {
  const { sub, exp } = claimedClaims(tokens[kind]);
  return { kind, source, sub, expires_at: new Date(Number(exp) * 1000).toISOString() };
}

describe.each(['environment', 'file', 'command'] as const)('without a login, tokens from: %s', (source) => {
  function machine() {
    const { user, experiment } = tokens;
    const [userFile, experimentFile] = [
      file(`${source}-user`, `${user}\n`),
      file(`${source}-experiment`, `${experiment}\n`),
    ];
    const given = {
      environment: { SLICES_CONN_USER_TOKEN: user, SLICES_CONN_EXPERIMENT_TOKEN: experiment },
      file: { SLICES_CONN_USER_TOKEN_FILE: userFile, SLICES_CONN_EXPERIMENT_TOKEN_FILE: experimentFile },
      command: { SLICES_CONN_EXPERIMENT: 'demo' },
    }[source] as Record<string, string>;
    const client = newClient({ ...(source === 'command' ? {} : served.env), ...given });
    const { base_url, portal_url, auth_url } = served.addresses;
    const commands = [
      `baseUrl=${base_url}`,
      `portalUrl=${portal_url}`,
      `authUrl=${auth_url}`,
      `userTokenCommand=${JSON.stringify(['cat', userFile])}`,
      `experimentTokenCommand=${JSON.stringify(['sh', '-c', 'test "$1" = demo && cat "$2"', 'sh', '{experiment}', experimentFile])}`,
    ];
    return { client, commands };
  }

  test('reserve, list, show, delete; neither the portal nor the identity provider is asked', async () => {
    const { client, commands } = machine();
    if (source === 'command') {
      expect(await client.command('profile', 'set', 'local', ...commands)).toMatchObject({ exitCode: 0 });
    }
    const requests: string[] = [];
    const result = async (...args: string[]) => {
      const { exitCode, stdout, stderr } = await client.command(...args, '--json', '--debug');
      expect([exitCode, stderr]).toEqual([0, expect.any(String)]);
      requests.push(...asked(stderr));
      return JSON.parse(stdout);
    };
    const { id, experiment_id } = reservationIn(await result(...LINK));
    expect(experiment_id).toBe(claimedClaims(tokens.experiment)['sub']);
    const { items } = await result('list');
    expect(items).toEqual(
      expect.arrayContaining([expect.objectContaining({ reservation: expect.objectContaining({ id }) })]),
    );
    expect(await result('show', id)).toMatchObject({ verified: true, reservation: { id } });
    expect(await result('delete', id, '--yes')).toEqual({
      items: [{ id, deleted: true, again: expect.stringMatching(/^slices-conn .*reserve /) }],
    });
    expect(requests.length).toBeGreaterThan(4);
    const { portal_url, auth_url } = served.addresses;
    const elsewhere = requests.filter(
      (line) => line.includes(auth_url) || line.includes(`${portal_url}/apis/`),
    );
    expect(elsewhere).toEqual([]);
    expect(existsSync(join(client.state, 'credentials'))).toBe(false);
  });

  test('status --json: where they are from, whose they are, how long they last', async () => {
    const { client, commands } = machine();
    if (source === 'command') await client.command('profile', 'set', 'local', ...commands);
    const { tokens: told } = await client.result('status');
    expect(told).toEqual([known('user', source), known('experiment', source)]);
  });
});

describe('unusable tokens', () => {
  const withEnv = (env: Readonly<Record<string, string>>) => newClient({ ...served.env, ...env });

  test.each([
    [['reserve', '--token', 'canary']],
    [['list', '--user-token', 'canary']],
    [['list', '--experiment-token=canary']],
    [['login', '--token', 'canary']],
    [['status', '--access-token', 'canary']],
  ])('no flag takes a token: %j is 2', async (args) => {
    expect(reportOf(await withEnv({}).command(...args, '--json'))).toMatchObject({
      code: 'usage',
      exitCode: 2,
    });
  });
});

test('row 49: a profile’s commands give nothing to services that the environment names', async () => {
  const other = await record(() => ({ status: 403, json: { detail: [] } }));
  const client = newClient({
    SLICES_CONN_BASE_URL: other.url,
    SLICES_CONN_PORTAL_URL: `${other.url}/portal`,
    SLICES_CONN_EXPERIMENT: 'demo',
  });
  const ran = join(folder, 'a-command-ran');
  const command = JSON.stringify([
    'sh',
    '-c',
    'touch "$1"; cat "$2"',
    'sh',
    ran,
    file('row-49', tokens.user),
  ]);
  const set = ['userTokenCommand', 'experimentTokenCommand'].map((key) => `${key}=${command}`);
  expect(await client.command('profile', 'set', 'local', ...set)).toMatchObject({ exitCode: 0 });
  for (const args of [LINK, ['list'], ['project', 'list'], ['experiment', 'token', 'demo']]) {
    const report = reportOf(await client.command(...args, '--json'));
    expect(report).toMatchObject({ code: 'not_logged_in', exitCode: 4 });
    expect(report.why).toContain('SLICES_CONN_BASE_URL');
  }
  expect(existsSync(ran)).toBe(false);
  expect(other.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
});

describe('with a login', () => {
  test('the experiment token is kept: a second reserve by id asks the portal nothing', async () => {
    const client = newClient(served.env);
    await client.result('login');
    await client.result('experiment', 'use', 'demo');
    const requests = async () => {
      const { exitCode, stderr } = await client.command(...LINK, '--debug');
      expect(exitCode).toBe(0);
      return asked(stderr).filter((line) => line.includes('/portal/apis/'));
    };
    expect(await requests()).not.toEqual([]);
    expect(await requests()).toEqual([]);
    const { tokens: told } = await client.result('status');
    expect(told).toMatchObject([
      { kind: 'user', source: 'login' },
      { kind: 'experiment', source: 'portal', sub: claimedClaims(tokens.experiment)['sub'] },
    ]);
  });

  test('login warns that commands use the given token instead', async () => {
    const client = newClient({ ...served.env, SLICES_CONN_USER_TOKEN: tokens.user });
    const { exitCode, stderr } = await client.command('login');
    expect(exitCode).toBe(0);
    expect(stderr).toContain('Warning: commands use SLICES_CONN_USER_TOKEN instead of this login.\n');
    const without = newClient(served.env);
    expect((await without.command('login')).stderr).not.toContain('warning');
  });

  test('a given user token is not combined with the portal tokens of the login', async () => {
    const env: Record<string, string> = { ...served.env };
    const client = newClient(env);
    await client.result('login');
    await client.result(...LINK);
    env['SLICES_CONN_USER_TOKEN'] = tokens.user;
    const { tokens: told } = await client.result('status');
    expect(told).toEqual([known('user', 'environment')]);
    const { stderr } = await client.command(...LINK, '--debug');
    expect(asked(stderr).some((line) => line.includes('/portal/apis/'))).toBe(true);
  });
});
