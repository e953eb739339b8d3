import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { type OtherProvider, otherProvider, USER_CODE } from '../fixtures/other-provider.ts';
import { IDS } from '../fixtures/tokens.ts';
import { type Ended, reportOf, typed } from './command.ts';
import { type Client, newClient, pointingAt } from './served.ts';

const BOOK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];

/** A machine that is pointed at a provider, everything that its commands print, and the pauses that they ask for. */
function machineAt(provider: OtherProvider) {
  const env = pointingAt(provider.addresses);
  const client: Client = newClient(env);
  const printed: string[] = [];
  const pauses: number[] = [];
  const run = async (...args: string[]): Promise<Ended> => {
    const ended = await client.run(args, { env, pauses });
    printed.push(ended.stdout, ended.stderr);
    return ended;
  };
  return { client, printed, pauses, run };
}

describe('services by another hand, with an opaque token and no refresh', () => {
  let provider: OtherProvider;
  let machine: ReturnType<typeof machineAt>;
  let login: Ended;
  beforeAll(async () => {
    provider = await otherProvider({ polls: ['authorization_pending', 'slow_down', 'tokens'] });
    machine = machineAt(provider);
    login = await machine.run('login', '--debug');
  });

  test('login prints the address, the code, and that the token is opaque', () => {
    const { stdout, stderr, exitCode } = login;
    expect(provider.objections).toEqual([]);
    expect(stderr).toContain(`\n  ${provider.addresses.auth_url}/activate\n`);
    expect(stderr).toContain(`\n  ${USER_CODE}\n`);
    expect(stdout).toContain('unknown: the token is opaque');
    expect(stdout).toContain('no expiry known');
    expect(stdout).toContain('the session ends with it');
    expect(exitCode).toBe(0);
  });

  test('polls come 5 s apart where no interval is given, and 5 s later still after slow_down', () => {
    expect(provider.polls).toHaveLength(3);
    expect(machine.pauses).toEqual([5000, 5000, 10_000]);
  });

  test('status --json: who and until when are null', async () => {
    const { exitCode, stdout, stderr } = await machine.run('status', '--json');
    expect(JSON.parse(stdout)).toEqual({
      profile: 'local',
      addresses: provider.addresses,
      sub: null,
      name: null,
      roles: (['project', 'experiment'] as const).map((kind) => ({
        kind,
        id: IDS[kind],
        name: 'demo',
        role: 'lead',
        expires_at: null,
      })),
      experiment: { id: IDS.experiment, name: 'demo', from: 'only', where: 'the only active one' },
      tokens: [{ kind: 'user', source: 'login', sub: null, expires_at: null }],
    });
    expect([exitCode, stderr]).toEqual([0, '']);
  });

  test('reserve: the answer is verified by the service’s own key set', async () => {
    const { exitCode, stdout, stderr } = await machine.run(...BOOK, '--json');
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toMatchObject({
      verified: true,
      source: 'service',
      reservation: { id: IDS.reservation, site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000 },
      claims: { iss: provider.addresses.base_url },
    });
    expect(exitCode).toBe(0);
    expect(provider.requests).toContain('GET /net/.well-known/jwks.json');
    expect(provider.objections).toEqual([]);
  });

  test('list says that the service has no list, and asks for each that this machine knows', async () => {
    const { exitCode, stdout, stderr } = await machine.run('list', '--json');
    expect(stderr).toMatch(/^This service does not list reservations/m);
    expect(JSON.parse(stdout)).toMatchObject({ items: [{ id: IDS.reservation, source: 'service' }] });
    expect(exitCode).toBe(0);
  });

  test('logout forgets the token, and status is 4 from then on', async () => {
    expect(readFileSync(machine.client.credentials, 'utf8')).toContain('canary');
    const asked = provider.requests.length;
    const { exitCode, stdout } = await machine.run('logout', '--debug');
    expect(stdout).toBe(`Logged out of ${provider.addresses.base_url}.\n`);
    expect(exitCode).toBe(0);
    expect(machine.client.logins).toEqual([]);
    expect(provider.requests.slice(asked).filter((request) => request.startsWith('POST'))).toEqual([]);
    expect(reportOf(await machine.run('status', '--json', '--debug'))).toMatchObject({
      exitCode: 4,
      code: 'not_logged_in',
      fix: 'slices-conn login',
    });
  });

  test('no secret was printed by any of these', () => {
    const printed = machine.printed.join('\n');
    expect(printed).toContain(USER_CODE);
    for (const secret of provider.secrets) {
      expect(printed).not.toContain(secret);
      expect(printed).not.toContain(encodeURIComponent(secret));
    }
  });
});

test('a refresh token without a revocation endpoint: logout says that the session lasts', async () => {
  const provider = await otherProvider({ polls: ['tokens'], interval: 1, refreshToken: 'canary-refresh' });
  const { run, client, printed } = machineAt(provider);
  expect(await run('login', '--debug')).toMatchObject({ exitCode: 0 });
  expect(readFileSync(client.credentials, 'utf8')).toContain('canary-refresh');
  const { exitCode, stdout, stderr } = await run('logout');
  expect(stderr).toBe(
    'The session could not be ended at the identity provider, where it lasts until it expires. ' +
      'The identity provider offers no revocation.\n',
  );
  expect(stdout).toBe(`Logged out of ${provider.addresses.base_url}.\n`);
  expect(exitCode).toBe(0);
  expect(client.logins).toEqual([]);
  expect(await run('status')).toMatchObject({ exitCode: 4 });
  for (const secret of provider.secrets) expect(printed.join('\n')).not.toContain(secret);
  expect(provider.objections).toEqual([]);
});

test('an identity provider that calls itself by another address: the next step accepts it, for this login alone', async () => {
  const provider = await otherProvider({ polls: ['tokens'], interval: 1 });
  const { base_url, portal_url, auth_url } = provider.addresses;
  const here = auth_url.replace('127.0.0.1', 'localhost');
  const client = newClient({});
  const run = (...args: string[]) => client.run(args, { env: {} });
  const addresses = [`baseUrl=${base_url}`, `portalUrl=${portal_url}`, `authUrl=${here}`];
  expect(await run('profile', 'set', 'lab', ...addresses)).toMatchObject({ exitCode: 0 });
  const refused = reportOf(await run('--profile', 'lab', 'login', '--json'));
  expect(refused).toMatchObject({ exitCode: 9, code: 'reply_invalid' });
  expect(refused.why).toBe(`It calls itself "${auth_url}/"; the profile expects "${here}".`);
  expect(provider.polls).toEqual([]);
  expect(await run(...typed(refused.fix))).toMatchObject({ exitCode: 0 });
  expect(await run('--profile', 'lab', 'login')).toMatchObject({ exitCode: 0 });
  expect(provider.objections).toEqual([]);
  expect(await run('--profile', 'lab', 'status')).toMatchObject({ exitCode: 0 });
  // The login is kept for that issuer.
  expect(await run('profile', 'set', 'lab', 'issuer=')).toMatchObject({ exitCode: 0 });
  expect(await run('--profile', 'lab', 'status')).toMatchObject({ exitCode: 4 });
});
