import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { beforeAll, expect, test } from 'vitest';
import { reportOf } from './command.ts';
import { newClient, type ServedHere, serveHere } from './served.ts';

let server: ServedHere;
let env: Readonly<Record<string, string>>;
beforeAll(async () => {
  server = await serveHere('--auto-approve', 'lead');
  ({ env } = server);
});

test('login --ci prints the token alone on stdout, and stores nothing', async () => {
  const person = newClient(env);
  const { exitCode, stdout, stderr } = await person.command('login', '--ci');
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^[\w-]{43}\n$/);
  expect(stderr).not.toContain(stdout.trim());
  expect(stderr).toContain('anyone who has this token can act as you');
  expect(person.logins).toEqual([]);
  expect(server.output.stdout + server.output.stderr).not.toContain(stdout.trim());
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
  const ended = reportOf(await job.command('list', '--json'));
  expect(ended).toMatchObject({ code: 'not_logged_in', exitCode: 4, fix: 'slices-conn login --ci' });
  for (const wanted of [id, id.slice(0, 3)]) {
    const missing = reportOf(await person.command('user', 'sessions', 'revoke', wanted, '--json'));
    expect(missing).toMatchObject({ code: 'not_found', exitCode: 3, fix: 'slices-conn user sessions' });
  }
});
