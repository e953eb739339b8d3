import { describe, expect, test } from 'vitest';
import {
  answer,
  approve,
  Browser,
  type IdentityServer,
  logIn,
  poll,
  refresh,
  refreshTokenIn,
  send,
  startIdentity,
  startLogin,
  tokensIn,
} from '../../fixtures/identity.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { LINKS } from '../../fixtures/service.ts';

const postgres = usePostgres();

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

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

  test('a grant that has ended ends the login', async () => {
    const server = await start();
    const { refresh_token } = await logIn(server);
    await expireIn(server, -1000);
    expect(answer(await refresh(server, refresh_token))).toBe('400 invalid_grant');
  });
});

/** Makes every grant end so many milliseconds from now. */
async function expireIn({ file }: IdentityServer, milliseconds: number): Promise<void> {
  const update = `UPDATE identity_record SET expires_ms = ${Date.now() + milliseconds} WHERE model = 'Grant'`;
  await postgres.ask(file, update);
}
