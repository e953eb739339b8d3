import * as v from 'valibot';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { SessionList } from '../../../src/contract/directory.ts';
import { sessionId } from '../../../src/server/identity/sessions.ts';
import {
  answer,
  approve,
  Browser,
  DEVICE_GRANT,
  type IdentityServer,
  logIn,
  partOf,
  poll,
  post,
  refresh,
  refreshTokenIn,
  SCOPE,
  send,
  startIdentity,
  startLogin,
  tally,
  tokensIn,
  type WireReply,
} from '../../fixtures/identity.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { DAY, HOUR, LINKS } from '../../fixtures/service.ts';

const CLIENT = 'slices-conn-ci';

afterEach(() => void vi.useRealTimers());

/** Moves the clock of everything in this process, the provider's library included. Sockets keep their own time. */
function moveEverything(milliseconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + milliseconds });
}

function refreshed(server: IdentityServer, token: string, client = CLIENT): Promise<WireReply> {
  return post(server, '/token', { client_id: client, grant_type: 'refresh_token', refresh_token: token });
}

/** Lets a machine act as the lead. */
async function machineToken(server: IdentityServer): Promise<{ token: string; reply: WireReply }> {
  const { device_code, verification_uri_complete } = await startLogin(server, SCOPE, CLIENT);
  await approve({ verification_uri_complete }, 'lead', new Browser(server));
  const reply = await post(server, '/token', { client_id: CLIENT, grant_type: DEVICE_GRANT, device_code });
  return { token: refreshTokenIn(reply), reply };
}

describe('a machine’s refresh token', () => {
  test('lasts 90 days, and is the same after each use', async () => {
    const server = await startIdentity();
    const { token, reply } = await machineToken(server);
    expect(JSON.parse(reply.text)).toMatchObject({ refresh_token_expires_in: 90 * 86_400 });
    moveEverything(89 * DAY);
    const later = await refreshed(server, token);
    expect(refreshTokenIn(later)).toBe(token);
    const { refresh_token_expires_in: left } = JSON.parse(later.text);
    expect(left).toBeGreaterThan(86_400 - 60);
    expect(left).toBeLessThanOrEqual(86_400);
    moveEverything(DAY);
    expect(answer(await refreshed(server, token))).toBe('400 invalid_grant');
  });

  test('is good for jobs that run side by side, for its own client only, and no person’s is good for that', async () => {
    const server = await startIdentity();
    const { token } = await machineToken(server);
    const replies = await Promise.all(Array.from({ length: 12 }, () => refreshed(server, token)));
    expect(tally(replies.map(answer))).toEqual({ 200: 12 });
    const accessTokens = new Set(replies.map((reply) => tokensIn(reply).access_token));
    expect(accessTokens.size).toBe(12);
    expect(answer(await refresh(server, token))).toBe('400 invalid_grant');
    const person = await startLogin(server);
    await approve(person, 'lead', new Browser(server));
    const { device_code } = person;
    const reply = await post(server, '/token', { grant_type: DEVICE_GRANT, device_code });
    expect(JSON.parse(reply.text)).not.toHaveProperty('refresh_token_expires_in');
    expect(answer(await refreshed(server, refreshTokenIn(reply)))).toBe('400 invalid_grant');
    expect(answer(await refreshed(server, token))).toBe('200');
  });
});

test('the page says that a machine will act without the person, and says it of machines only', async () => {
  const server = await startIdentity();
  const sentence = 'A machine will act as you, without you, for 90 days.';
  const browser = new Browser(server);
  const machine = await startLogin(server, SCOPE, CLIENT);
  const { text } = await browser.open(machine.verification_uri_complete);
  expect(text).toContain(sentence);
  expect(text).toContain('slices-conn user sessions');
  expect(text).not.toContain('until you log out');
  const person = await startLogin(server);
  expect((await browser.open(person.verification_uri_complete)).text).not.toContain(sentence);
});

const postgres = usePostgres();

describe.each(postgres.engines)('the logins of a user, on %s', (_, newDatabase) => {
  const start = async () => startIdentity({ database: await newDatabase() });
  const ask = (server: IdentityServer, token: string, method: string, id = '') =>
    send(server, method, `/portal/apis/v1alpha1/sessions${id}`, {
      headers: { authorization: `Bearer ${token}` },
    });
  const code = ({ status, text }: WireReply): string => `${status} ${JSON.parse(text).code}`;
  async function listed(server: IdentityServer, token: string) {
    const reply = await ask(server, token, 'GET');
    expect(reply.status, reply.text).toBe(200);
    return v.parse(SessionList, JSON.parse(reply.text)).items;
  }

  test('are listed, and each can be ended: a machine’s, a person’s, and no one else’s', async () => {
    const server = await start();
    const began = Math.floor(Date.now() / 1000) * 1000;
    const { token } = await machineToken(server);
    const person = await logIn(server);
    const other = await logIn(server, 'viewer');
    expect(await listed(server, other.access_token)).toMatchObject([
      { client_id: 'slices-conn', current: true },
    ]);

    moveEverything(10 * DAY);
    const { access_token: machineAccess } = tokensIn(await refreshed(server, token));
    const { access_token, refresh_token = '' } = tokensIn(await refresh(server, person.refresh_token));
    const sessions = await listed(server, access_token);
    expect(sessions).toHaveLength(2);
    const machine = sessions.find(({ client_id }) => client_id === CLIENT);
    const own = sessions.find(({ current }) => current);
    if (!machine || !own) throw new Error('one of them is not listed');
    expect([machine.current, own.client_id]).toEqual([false, 'slices-conn']);
    expect(machine.id).toMatch(/^[0-9a-f]{16}$/);
    const days = (text: string) => Math.round((Date.parse(text) - began) / DAY);
    expect([machine.created_at, machine.last_used_at, machine.expires_at].map(days)).toEqual([0, 10, 90]);
    expect([own.created_at, own.last_used_at, own.expires_at].map(days)).toEqual([0, 10, 40]);

    // Another user's token ends nothing.
    const stranger = tokensIn(await refresh(server, other.refresh_token)).access_token;
    expect((await ask(server, stranger, 'DELETE', `/${machine.id}`)).status).toBe(404);
    expect(answer(await refreshed(server, token))).toBe('200');

    expect((await ask(server, access_token, 'DELETE', `/${machine.id}`)).status).toBe(204);
    expect((await ask(server, access_token, 'DELETE', `/${machine.id}`)).status).toBe(404);
    expect(answer(await refreshed(server, token))).toBe('400 invalid_grant');
    expect((await ask(server, machineAccess, 'GET')).status).toBe(403);
    expect(await listed(server, access_token)).toEqual([own]);

    expect((await ask(server, access_token, 'DELETE', `/${own.id}`)).status).toBe(204);
    expect((await ask(server, access_token, 'GET')).status).toBe(403);
    expect(answer(await refresh(server, refresh_token))).toBe('400 invalid_grant');
  });

  test('without a refresh token end with their access token', async () => {
    const server = await start();
    const { device_code, verification_uri_complete } = await startLogin(server, 'openid sessions');
    await approve({ verification_uri_complete }, 'lead', new Browser(server));
    const { access_token } = tokensIn(
      await post(server, '/token', { grant_type: DEVICE_GRANT, device_code }),
    );
    const [session] = await listed(server, access_token);
    expect(Date.parse(session?.expires_at ?? '') - Date.parse(session?.created_at ?? '')).toBe(3_600_000);
    const person = await logIn(server);
    expect(await listed(server, person.access_token)).toHaveLength(2);
    moveEverything(3_601_000);
    const later = tokensIn(await refresh(server, person.refresh_token)).access_token;
    expect(await listed(server, later)).toMatchObject([{ current: true }]);
  });

  test('a login without the scope sessions lists none, and ends its own alone; a machine’s never has it (row 149)', async () => {
    const server = await start();
    const person = await logIn(server);
    const [own] = await listed(server, person.access_token);
    const asked = await startLogin(server, 'openid');
    await approve(asked, 'lead', new Browser(server));
    const narrow = tokensIn(await poll(server, asked));
    const { token } = await machineToken(server);
    const machine = tokensIn(await refreshed(server, token));
    for (const { access_token: weak } of [narrow, machine]) {
      expect(code(await ask(server, weak, 'GET'))).toBe('403 scope_missing');
      expect(code(await ask(server, weak, 'DELETE', `/${own?.id}`))).toBe('403 scope_missing');
      const id = sessionId(String(partOf(weak, 'payload')['sid']));
      expect((await ask(server, weak, 'DELETE', `/${id}`)).status).toBe(204);
    }
    expect(await listed(server, person.access_token)).toMatchObject([{ id: own?.id }]);
  });
});

/** For how many hours each grant lasts from now on, by the database. */
async function grantsOf({ file }: IdentityServer): Promise<number[]> {
  const select = "SELECT expires_ms FROM identity_record WHERE model = 'Grant' ORDER BY expires_ms";
  const rows = await postgres.ask(file, select);
  return rows.map((row) => Math.round((Number(row['expires_ms']) - Date.now()) / HOUR));
}

describe.each(postgres.engines)('on %s', (_, newDatabase) => {
  const start = async (options: { accessTokenTtl?: number } = {}): Promise<IdentityServer> =>
    startIdentity({ ...options, database: await newDatabase() });

  test('approvals whose codes are never redeemed leave nothing behind (THREATS.md 89)', async () => {
    const server = await start();
    for (let time = 0; time < 5; time += 1) {
      await approve(await startLogin(server), 'lead', new Browser(server));
    }
    const { refresh_token } = await logIn(server);
    expect(await grantsOf(server)).toEqual([0, 0, 0, 0, 0, (30 * DAY) / HOUR]);
    server.advance(2 * HOUR);
    await startLogin(server);
    expect(await grantsOf(server)).toEqual([(30 * DAY) / HOUR]);
    expect(answer(await refresh(server, refresh_token))).toBe('200');
  });

  test('a grant lasts as long as the access token where there is no refresh token', async () => {
    const server = await start({ accessTokenTtl: (6 * HOUR) / 1000 });
    const login = await startLogin(server, 'openid projects');
    await approve(login, 'lead', new Browser(server));
    const { access_token, refresh_token } = tokensIn(await poll(server, login));
    expect(refresh_token).toBeUndefined();
    expect(await grantsOf(server)).toEqual([6]);
    server.advance(5 * HOUR);
    await startLogin(server);
    const headers = { authorization: `Bearer ${access_token}` };
    expect((await send(server, 'GET', LINKS, { headers })).status).toBe(200);
  });

  test('each refresh prolongs it', async () => {
    const server = await start();
    const { refresh_token } = await logIn(server);
    await expireIn(server, HOUR);
    expect(await grantsOf(server)).toEqual([1]);
    const next = refreshTokenIn(await refresh(server, refresh_token));
    expect(await grantsOf(server)).toEqual([(30 * DAY) / HOUR]);
    expect(answer(await refresh(server, next))).toBe('200');
  });
});

/** Makes every grant end so many milliseconds from now. */
async function expireIn({ file }: IdentityServer, milliseconds: number): Promise<void> {
  const update = `UPDATE identity_record SET expires_ms = ${Date.now() + milliseconds} WHERE model = 'Grant'`;
  await postgres.ask(file, update);
}
