import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { EXPERIMENT_TOKEN_HEADER } from '../../src/contract/routes.ts';
import { claimedClaims } from '../../src/tokens/claimed.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { reportOf, reservationIn } from './command.ts';
import { newClient, type Served, serveHere } from './served.ts';
import { logIn } from './wire-caller.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '100M', '--start-now', '--for', '1h'];

let served: Served;
let tokens: { user: string; experiment: string };
let folder: string;

beforeAll(async () => {
  folder = temporaryFolder();
  served = await serveHere('--auto-approve', 'lead');
  // As another program gets them: over the services' own endpoints.
  const headers = await logIn(served);
  tokens = {
    user: headers['authorization']?.replace('Bearer ', '') ?? '',
    experiment: headers[EXPERIMENT_TOKEN_HEADER] ?? '',
  };
});

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

test.each(['environment', 'file', 'command'] as const)(
  'without a login, tokens from: %s. Neither the portal nor the identity provider is asked',
  async (source) => {
    const { user, experiment } = tokens;
    const userFile = file(`${source}-user`, `${user}\n`);
    const experimentFile = file(`${source}-experiment`, `${experiment}\n`);
    const given = {
      environment: { SLICES_CONN_USER_TOKEN: user, SLICES_CONN_EXPERIMENT_TOKEN: experiment },
      file: { SLICES_CONN_USER_TOKEN_FILE: userFile, SLICES_CONN_EXPERIMENT_TOKEN_FILE: experimentFile },
      command: { SLICES_CONN_EXPERIMENT: 'demo' },
    }[source] as Record<string, string>;
    const client = newClient({ ...(source === 'command' ? {} : served.env), ...given });
    const { base_url, portal_url, auth_url } = served.addresses;
    if (source === 'command') {
      const commands = [
        `userTokenCommand=${JSON.stringify(['cat', userFile])}`,
        `experimentTokenCommand=${JSON.stringify(['sh', '-c', 'test "$1" = demo && cat "$2"', 'sh', '{experiment}', experimentFile])}`,
      ];
      const addresses = [`baseUrl=${base_url}`, `portalUrl=${portal_url}`, `authUrl=${auth_url}`];
      const set = await client.command('profile', 'set', 'local', ...addresses, ...commands);
      expect(set).toMatchObject({ exitCode: 0 });
    }
    const requests: string[] = [];
    const result = async (...args: string[]) => {
      const { exitCode, stdout, stderr } = await client.command(...args, '--json', '--debug');
      expect([exitCode, stderr]).toEqual([0, expect.any(String)]);
      requests.push(...asked(stderr));
      return JSON.parse(stdout);
    };
    const { id, experiment_id } = reservationIn(await result(...LINK));
    expect(experiment_id).toBe(claimedClaims(experiment)['sub']);
    expect(await result('list')).toMatchObject({ items: [{ reservation: { id } }] });
    expect(await result('show', id)).toMatchObject({ verified: true, reservation: { id } });
    expect(await result('delete', id, '--yes')).toMatchObject({ items: [{ id, deleted: true }] });
    expect(requests.length).toBeGreaterThan(4);
    const elsewhere = (line: string) => line.includes(auth_url) || line.includes(`${portal_url}/apis/`);
    expect(requests.filter(elsewhere)).toEqual([]);
    expect(client.logins).toEqual([]);
    // Where they are from, whose they are, and how long they last.
    expect(await client.result('status')).toMatchObject({
      tokens: [known('user', source), known('experiment', source)],
    });
  },
);

test.each([[['reserve', '--token', 'canary']], [['list', '--experiment-token=canary']]])(
  'no flag takes a token: %j is 2',
  async (args) => {
    const report = reportOf(await newClient(served.env).command(...args, '--json'));
    expect(report).toMatchObject({ code: 'usage', exitCode: 2 });
  },
);

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
