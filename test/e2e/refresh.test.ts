import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { PATIENCE } from '../fixtures/patience.ts';
import { reportOf } from './command.ts';
import {
  age,
  type Client,
  newClient,
  pointingAt,
  providerReply,
  type Reply,
  record,
  storedLogin,
} from './served.ts';

const COMMAND = ['experiment', 'list'];

/** What a provider does with a refresh before it looks at it, by its number from 1; undefined: nothing else. */
type Instead = (count: number) => Reply | 'hang' | undefined;

/**
 * A provider and a portal that know one session, and forgive nothing: a refresh token that comes a second time ends the
 * session (RFC 9700 §4.14.2), and only the newest access token is worth anything.
 */
async function strictServices(instead: Instead = () => undefined, { ownProcess = false } = {}) {
  let [generation, refreshes, over] = [1, 0, false];
  const issue = (): Reply => {
    const tokens = { access_token: `access-${generation}`, refresh_token: `refresh-${generation}` };
    return { json: { ...tokens, token_type: 'Bearer', expires_in: 3600 } };
  };
  const refresh = (form: URLSearchParams): Reply | 'hang' => {
    refreshes += 1;
    const other = instead(refreshes);
    if (other) return other;
    over ||= form.get('refresh_token') !== `refresh-${generation}`;
    if (over) return { status: 400, json: { error: 'invalid_grant' } };
    generation += 1;
    return issue();
  };
  const { url, requests } = await record(({ path, body, headers }, own) => {
    const form = new URLSearchParams(body);
    if (path === '/auth/token') return form.get('grant_type') === 'refresh_token' ? refresh(form) : issue();
    if (path.startsWith('/auth/')) return providerReply(path, own) ?? {};
    return headers.authorization === `Bearer access-${generation}`
      ? { json: { projects: [], experiments: [] } }
      : { status: 401, json: { detail: 'not the newest token' } };
  });
  const client = newClient(pointingAt(url), { ownProcess });
  expect(await client.command('login')).toMatchObject({ exitCode: 0 });
  return {
    client,
    requests,
    /** Refresh requests so far. */
    refreshes: () => refreshes,
  };
}

test('row 13: many commands on an expired access token: one of them refreshes, all succeed, and the session lives on', async () => {
  const { client, refreshes } = await strictServices(undefined, { ownProcess: true });
  age(client);
  const ended = await Promise.all(Array.from({ length: 5 }, () => client.command(...COMMAND)));
  expect(ended.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual(ended.map(() => [0, '']));
  expect(refreshes()).toBe(1);
  expect(storedLogin(client)).toMatchObject({ accessToken: 'access-2', refreshToken: 'refresh-2' });
  age(client);
  expect(await client.command(...COMMAND)).toMatchObject({ exitCode: 0 });
  expect(refreshes()).toBe(2);
});

/** How many processes have a file open; undefined where this machine does not tell. */
function openedBy(path: string): number | undefined {
  if (!existsSync('/proc/self/fd')) return undefined;
  const holds = (pid: string): boolean => {
    const folder = join('/proc', pid, 'fd');
    try {
      return readdirSync(folder).some((name) => readlinkSync(join(folder, name)) === path);
    } catch {
      return false; // Gone meanwhile, or another user's.
    }
  };
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && holds(name)).length;
}

test('row 14: the refresher is killed while the provider hangs: the others go on', async () => {
  const { client, refreshes } = await strictServices((count) => (count === 1 ? 'hang' : undefined));
  age(client);
  const lock = client.credentials.replace(/json$/, 'lock');
  const refresher = client.start(...COMMAND);
  await vi.waitUntil(() => refreshes() === 1, PATIENCE);
  const others = Array.from({ length: 3 }, () => client.start(...COMMAND));
  await vi.waitUntil(() => [4, undefined].includes(openedBy(lock)), PATIENCE);
  expect(others.map(({ output }) => output.exitCode)).toEqual(others.map(() => null));
  expect(refreshes()).toBe(1);
  refresher.signal('SIGKILL');
  const ended = await Promise.all(others.map((other) => other.ended));
  expect(ended.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual(ended.map(() => [0, '']));
  expect(refreshes()).toBe(2);
  expect(await client.command('status')).toMatchObject({ exitCode: 0 });
});

describe('row 18: a refresh that fails', () => {
  const away: Reply = { status: 503, json: { error: 'temporarily_unavailable' } };

  /** What a command made of it; the file of the login is as it was. */
  async function kept(client: Client) {
    const before = readFileSync(client.credentials, 'utf8');
    const ended = await client.command(...COMMAND, '--json');
    expect(readFileSync(client.credentials, 'utf8')).toBe(before);
    return ended;
  }

  test('5xx on an expired one: 7, the session is kept, and the next try succeeds', async () => {
    const { client } = await strictServices((count) => (count === 1 ? away : undefined));
    age(client);
    expect(reportOf(await kept(client))).toMatchObject({ exitCode: 7, code: 'unavailable', retryable: true });
    expect(await client.command(...COMMAND)).toMatchObject({ exitCode: 0 });
  });

  test('no answer in time: the token that is good for some seconds yet is used', async () => {
    const { client } = await strictServices(() => 'hang');
    age(client, { left: 50_000 });
    expect(await client.command(...COMMAND, '--timeout', '1')).toMatchObject({ exitCode: 0, stderr: '' });
  });

  const ended: Reply = { status: 400, json: { error: 'invalid_grant' } };

  test('invalid_grant: 4, log in again, nothing is deleted, and it is asked once', async () => {
    const { client, refreshes } = await strictServices(() => ended);
    age(client);
    const report = reportOf(await kept(client));
    expect(report).toMatchObject({ exitCode: 4, code: 'not_logged_in', fix: 'slices-conn login' });
    expect(refreshes()).toBe(1);
  });

  test('invalid_grant because another machine with this home folder was first: what it left is used', async () => {
    let fromElsewhere = (): void => undefined;
    const { client, refreshes } = await strictServices(() => {
      fromElsewhere();
      return ended;
    });
    const aged = age(client);
    const expiresAt = Date.now() + 3_600_000;
    const theirs = { ...aged, refreshToken: 'refresh-elsewhere', issuedAt: Date.now(), expiresAt };
    fromElsewhere = () => writeFileSync(client.credentials, JSON.stringify(theirs));
    expect(await client.command(...COMMAND)).toMatchObject({ exitCode: 0 });
    expect(refreshes()).toBe(1);
    expect(storedLogin(client).refreshToken).toBe('refresh-elsewhere');
  });
});
