import { expect, test } from 'vitest';
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

test('services by another hand, with an opaque token and no refresh: from login to logout, and no secret is printed', async () => {
  const provider = await otherProvider({ polls: ['authorization_pending', 'slow_down', 'tokens'] });
  const { client, printed, pauses, run } = machineAt(provider);
  const login = await run('login', '--debug');
  expect(provider.objections).toEqual([]);
  expect(login.stderr).toContain(`\n  ${provider.addresses.auth_url}/activate\n`);
  expect(login.stderr).toContain(`\n  ${USER_CODE}\n`);
  for (const said of ['unknown: the token is opaque', 'no expiry known', 'the session ends with it'])
    expect(login.stdout).toContain(said);
  expect(login.exitCode).toBe(0);
  // Polls come 5 s apart where no interval is given, and 5 s later still after slow_down.
  expect(provider.polls).toHaveLength(3);
  expect(pauses).toEqual([5000, 5000, 10_000]);

  const status = await run('status', '--json');
  expect(JSON.parse(status.stdout)).toMatchObject({
    ...{ profile: 'local', addresses: provider.addresses, sub: null, name: null },
    roles: (['project', 'experiment'] as const).map((kind) => ({
      ...{ kind, id: IDS[kind], name: 'demo', role: 'lead', expires_at: null },
    })),
    tokens: [{ kind: 'user', source: 'login', sub: null, expires_at: null }],
  });
  const booked = await run(...BOOK, '--json');
  expect(booked.stderr).toBe('');
  expect(JSON.parse(booked.stdout)).toMatchObject({
    ...{ verified: true, source: 'service', claims: { iss: provider.addresses.base_url } },
    reservation: { id: IDS.reservation, site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000 },
  });
  const listed = await run('list', '--json');
  expect(listed.stderr).toMatch(/^This service does not list reservations/m);
  expect(JSON.parse(listed.stdout)).toMatchObject({ items: [{ id: IDS.reservation, source: 'service' }] });

  const asked = provider.requests.length;
  expect((await run('logout', '--debug')).stdout).toBe(`Logged out of ${provider.addresses.base_url}.\n`);
  expect(client.logins).toEqual([]);
  expect(provider.requests.slice(asked).filter((request) => request.startsWith('POST'))).toEqual([]);
  expect(await run('status')).toMatchObject({ exitCode: 4 });
  expect(provider.objections).toEqual([]);
  for (const secret of provider.secrets)
    for (const text of [secret, encodeURIComponent(secret)]) expect(printed.join('\n')).not.toContain(text);
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
