import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { beforeAll, expect, test } from 'vitest';
import { type IdentityServer, startIdentity } from '../fixtures/identity.ts';
import { otherProvider } from '../fixtures/other-provider.ts';
import { reportOf } from './command.ts';
import { newClient, pointingAt } from './served.ts';

let server: IdentityServer;
let env: Readonly<Record<string, string>>;
beforeAll(async () => {
  server = await startIdentity({ autoApprove: 'lead' });
  const { connectivity, portal, identity } = server.server.addresses;
  env = pointingAt({ base_url: connectivity, portal_url: portal, auth_url: identity });
});

test('login --ci prints the token alone on stdout, and stores nothing', async () => {
  const person = newClient(env);
  const { exitCode, stdout, stderr } = await person.command('login', '--ci');
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^[\w-]{43}\n$/);
  expect(stderr).not.toContain(stdout.trim());
  expect(stderr).toContain('anyone who has this token can act as you');
  expect(person.logins).toEqual([]);
  expect(JSON.stringify(server.log)).not.toContain(stdout.trim());
});

test('login --ci keeps the current login', async () => {
  const person = newClient(env);
  await person.command('login');
  const before = person.logins;
  const { refresh_token, expires_at, ...others } = await person.result('login', '--ci');
  expect(others).toEqual({});
  expect([
    typeof refresh_token,
    Math.round((Date.parse(String(expires_at)) - Date.now()) / 86_400_000),
  ]).toEqual(['string', 90]);
  expect(person.logins).toEqual(before);
  expect((await person.command('status')).exitCode).toBe(0);
});

test('with its token a machine books, and keeps no token', async () => {
  const { refresh_token } = await newClient(env).result('login', '--ci');
  const machine = newClient({ ...env, SLICES_CONN_REFRESH_TOKEN: String(refresh_token) });
  const link = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '1h'];
  expect(await machine.result('reserve', ...link)).toMatchObject({ verified: true });
  const { tokens } = await machine.result('status');
  expect(tokens).toMatchObject([{ kind: 'user', source: 'environment' }]);
  expect(machine.logins).toEqual([]);
  expect(readdirSync(join(machine.state))).not.toContain('credentials');
});

test('a provider without refresh tokens: exit 5, not_supported', async () => {
  const { addresses } = await otherProvider({ polls: ['tokens'] });
  const person = newClient(pointingAt(addresses));
  await person.command('profile', 'set', 'local', 'ciClientId=slices-conn');
  const ended = await person.command('login', '--ci', '--json');
  expect(reportOf(ended)).toMatchObject({ code: 'not_supported', exitCode: 5 });
});

const Items = v.object({ items: v.array(v.record(v.string(), v.string())) });

test('user sessions lists a machine’s login and revokes it, by a part of its id', async () => {
  const person = newClient(env);
  await person.command('login');
  const others = v.parse(Items, await person.result('user', 'sessions')).items.map(({ id }) => id);
  const { refresh_token } = await newClient(env).result('login', '--ci');
  const { items } = v.parse(Items, await person.result('user', 'sessions'));
  expect(v.parse(Items, await person.result('user', 'sessions', 'list')).items).toEqual(items);
  for (const item of items)
    expect(Object.keys(item)).toEqual(['id', 'client_id', 'created_at', 'last_used_at', 'expires_at']);
  const [machine] = items.filter(({ id }) => !others.includes(id));
  expect(machine?.['client_id']).toBe('slices-conn-ci');
  const id = machine?.['id'] ?? '';
  const table = await person.command('user', 'sessions');
  expect(table.stdout).toMatch(new RegExp(`^${id} +slices-conn-ci  `, 'm'));
  expect(table.stdout).toContain('slices-conn (this login)');
  expect(await person.result('user', 'sessions', 'revoke', id.slice(4))).toEqual({
    items: [{ id, revoked: true }],
  });
  const job = newClient({ ...env, SLICES_CONN_REFRESH_TOKEN: String(refresh_token) });
  const ended = await job.command('list', '--json');
  expect(reportOf(ended)).toMatchObject({
    code: 'not_logged_in',
    exitCode: 4,
    fix: 'slices-conn login --ci',
  });
  for (const wanted of [id, id.slice(0, 3)]) {
    const missing = await person.command('user', 'sessions', 'revoke', wanted, '--json');
    expect(reportOf(missing)).toMatchObject({
      code: 'not_found',
      exitCode: 3,
      fix: 'slices-conn user sessions',
    });
  }
});

test('user sessions on the built-in server, and on one that lists no logins', async () => {
  const person = newClient({});
  expect(await person.result('--offline', 'user', 'sessions')).toEqual({ items: [] });
  const { addresses } = await otherProvider({ polls: ['tokens'] });
  const elsewhere = newClient(pointingAt(addresses));
  await elsewhere.command('login');
  const ended = await elsewhere.command('user', 'sessions', '--json');
  expect(reportOf(ended)).toMatchObject({ code: 'not_supported', exitCode: 3 });
});
