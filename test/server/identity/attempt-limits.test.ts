import { describe, expect, test } from 'vitest';
import {
  ATTEMPT_WINDOW,
  type AttemptLimit,
  addressLimits,
  createAttemptCounter,
  ENDPOINT_LIMITS,
  endpointLimits,
} from '../../../src/server/identity/attempt-limits.ts';
import { GUESS_LIMITS, guessLimits } from '../../../src/server/identity/device-page.ts';
import { openStores } from '../../../src/store/stores.ts';
import {
  answer,
  approve,
  Browser,
  type IdentityServer,
  logIn,
  type Provider,
  poll,
  post,
  refresh,
  refreshTokenIn,
  revoke,
  SCOPE,
  send,
  startIdentity,
  startLogin,
  type WireReply,
} from '../../fixtures/identity.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { NOW } from '../../fixtures/service.ts';

const postgres = usePostgres();
/** What is counted under each key; what was given back is left out. */
async function counted({ file }: { file: string }): Promise<Record<string, number>> {
  const rows = await postgres.ask(
    file,
    "SELECT key, attempts FROM attempt WHERE attempts > 0 AND key LIKE '/%'",
  );
  return Object.fromEntries(rows.map(({ key, attempts }) => [String(key), Number(attempts)]));
}

/** Lets so many be counted already. */
async function countedAlready({ file }: IdentityServer, key: string, attempts: number): Promise<void> {
  await postgres.ask(
    file,
    `INSERT INTO attempt (key, began_ms, attempts) VALUES ('${key}', ${Date.now()}, ${attempts})
     ON CONFLICT (key) DO UPDATE SET attempts = ${attempts} RETURNING key`,
  );
}

/** The socket's address in these tests. */
const HERE = '127.0.0.1';

/** What is counted where so many device codes were made from {@link HERE}. */
function codesMade(count: number): Record<string, number> {
  const counters = [HERE, '127.0.0.0/24', 'all'];
  return Object.fromEntries(counters.map((counter) => [`/device/auth ${counter}`, count]));
}

function expectTooMany(reply: WireReply, error: string): void {
  expect(answer(reply)).toBe(`429 ${error}`);
  expect(reply.headers.get('content-type')).toMatch(/^application\/json\b/);
  expect(reply.headers.get('cache-control')).toBe('no-store');
  const retryAfter = Number(reply.headers.get('retry-after'));
  expect(retryAfter).toBeGreaterThan(ATTEMPT_WINDOW / 1000 - 60);
  expect(retryAfter).toBeLessThanOrEqual(ATTEMPT_WINDOW / 1000);
  expect(reply.text).toContain(`Try again in ${retryAfter} s.`);
}

describe.each(postgres.engines)('two servers on one %s database', (_, newDatabase) => {
  async function twoServers(): Promise<[IdentityServer, Provider]> {
    const server = await startIdentity({ database: await newDatabase() });
    return [server, await server.replica()];
  }

  const askCode = (target: Provider): Promise<WireReply> => post(target, '/device/auth', { scope: SCOPE });

  test('give out so many device codes to an address, and then again after the window', async () => {
    const [server, replica] = await twoServers();
    await startLogin(server);
    expect(await counted(server)).toEqual(codesMade(1));
    await countedAlready(server, `/device/auth ${HERE}`, 598);
    for (const target of [replica, server]) expect(answer(await askCode(target))).toBe('200');
    for (const target of [replica, server, replica]) {
      expectTooMany(await askCode(target), 'temporarily_unavailable');
    }
    // What was refused is not counted: nobody waits longer for having asked again.
    expect(await counted(server)).toEqual({
      ...codesMade(3),
      [`/device/auth ${HERE}`]: 600,
    });
    server.advance(ATTEMPT_WINDOW - 5000);
    expect(answer(await askCode(server))).toBe('429 temporarily_unavailable');
    server.advance(5000);
    expect(answer(await askCode(replica))).toBe('200');
    expect(await counted(server)).toMatchObject({ [`/device/auth ${HERE}`]: 1 });
  });

  test('count wrong codes and tokens alone', async () => {
    const [server, replica] = await twoServers();
    const login = await startLogin(server);
    for (const target of [server, replica, server]) await poll(target, login);
    await approve(login, 'lead', new Browser(server));
    let token = refreshTokenIn(await poll(replica, login));
    for (let round = 0; round < 3; round += 1) token = refreshTokenIn(await refresh(server, token));
    expect((await revoke(replica, token)).status).toBe(200);
    const made = codesMade(1);
    expect(await counted(server)).toEqual(made);

    // Used already, revoked, made up, and no request at all.
    expect(answer(await poll(server, login))).toBe('400 invalid_grant');
    expect(answer(await refresh(replica, token))).toBe('400 invalid_grant');
    expect(answer(await poll(server, { device_code: 'made-up' }))).toBe('400 invalid_grant');
    expect(answer(await post(server, '/token', {}))).toBe('400 invalid_request');
    const json = { headers: { 'content-type': 'application/json' }, body: '{}' };
    expect((await send(server, 'POST', '/auth/token', json)).status).toBe(415);
    expect((await revoke(replica, 'made-up')).status).toBe(200);
    expect(await counted(server)).toEqual({
      ...made,
      [`/token ${HERE}`]: 5,
      [`/token/revocation ${HERE}`]: 1,
    });
  });

  test('refuse an address with too many wrong ones before they look', async () => {
    const [server, replica] = await twoServers();
    let { refresh_token: token } = await logIn(server);
    await countedAlready(server, `/token ${HERE}`, 1199);
    token = refreshTokenIn(await refresh(server, token));
    expect(answer(await refresh(replica, 'wrong'))).toBe('400 invalid_grant');
    for (const target of [server, replica]) {
      expectTooMany(await refresh(target, 'wrong'), 'slow_down');
      expectTooMany(await refresh(target, token), 'slow_down');
      expectTooMany(await poll(target, { device_code: 'wrong' }), 'slow_down');
    }
    // New logins, and the end of others, are counted apart.
    await startLogin(server);
    expect((await revoke(server, 'wrong')).status).toBe(200);
    server.advance(ATTEMPT_WINDOW);
    expect(answer(await refresh(server, 'wrong'))).toBe('400 invalid_grant');
  });

  test('forget old counts: the table holds half an hour at most', async () => {
    const [server] = await twoServers();
    for (let index = 0; index < 5; index += 1) await countedAlready(server, `/token 192.0.2.${index}`, 1);
    server.advance(ATTEMPT_WINDOW);
    await refresh(server, 'wrong');
    expect(Object.keys(await counted(server)).length).toBe(6);
    server.advance(ATTEMPT_WINDOW + 60_000);
    await refresh(server, 'wrong');
    expect(Object.keys(await counted(server)).length).toBe(1);
  });
});

describe('row 58: a page that a user has open', async () => {
  const server = await startIdentity();
  const own = new URL(server.base).origin;
  const attempts = () => postgres.ask(server.file, 'SELECT key, attempts FROM attempt WHERE attempts > 0');

  const refused: Record<string, string>[] = [
    { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
    { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' },
    { origin: `${own}, https://evil.example` },
  ];
  test.each(refused)('sends nothing to an endpoint, and uses up nothing: %o', async (headers) => {
    for (const endpoint of Object.keys(ENDPOINT_LIMITS)) {
      const body = { client_id: 'slices-conn', token: 'x', grant_type: 'refresh_token', refresh_token: 'x' };
      const reply = await send(server, 'POST', `/auth${endpoint}`, { headers, body });
      expect([endpoint, answer(reply)]).toEqual([endpoint, '400 invalid_request']);
      expect([...reply.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
    expect(await attempts()).toEqual([]);
  });

  test.each<Record<string, string>>([
    {},
    { origin: own, 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-mode': 'cors' },
  ])('%o is let in', async (headers) => {
    const body = { client_id: 'slices-conn' };
    expect(answer(await send(server, 'POST', '/auth/device/auth', { headers, body }))).toBe('200');
  });

  test.each(['cross-site', 'same-site'])(
    '%s: does not guess codes on its visitor’s account',
    async (site) => {
      const before = await attempts();
      const headers = { 'sec-fetch-site': site };
      for (let guess = 0; guess < GUESS_LIMITS.address + 5; guess += 1) {
        const reply = await send(server, 'GET', '/auth/device?user_code=BBBB-BBBB-BBBB', { headers });
        expect([reply.status, reply.text.includes('role="alert"')]).toEqual([200, false]);
      }
      expect(await attempts()).toEqual(before);
    },
  );

  test('may hold a link with the code: one more click, and it is confirmed as ever', async () => {
    const login = await startLogin(server);
    const browser = new Browser(server);
    const { user_code } = login;
    browser.reply = await send(server, 'GET', login.verification_uri_complete, {
      headers: { 'sec-fetch-site': 'cross-site' },
    });
    expect(browser.reply.text).toContain(`name="user_code" value="${user_code}"`);
    expect(browser.people.ids.size).toBe(0);
    await browser.open('/auth/device');
    await browser.submit({ user_code });
    await browser.submit({ user: browser.people.ids.get('lead') ?? '', action: 'approve' });
    expect(answer(await poll(server, login))).toBe('200');
  });
});

describe.each(postgres.engines)('row 58: device codes on %s', (_, newDatabase) => {
  test('are small, and gone an hour after they expired', async () => {
    const server = await startIdentity({ database: await newDatabase() });
    const codes = async () =>
      (await postgres.ask(server.file, "SELECT key FROM identity_record WHERE model = 'DeviceCode'")).length;
    const body = { client_id: 'slices-conn', scope: 'openid '.repeat(300) };
    expect((await send(server, 'POST', '/auth/device/auth', { body })).status).toBe(413);
    expect(await codes()).toBe(0);
    for (let login = 0; login < 3; login += 1) await startLogin(server);
    server.advance(65 * 60_000);
    await startLogin(server);
    expect(await codes()).toBe(4);
    server.advance(10 * 60_000);
    await startLogin(server);
    // The provider's own clock stands still here: the fourth expired with the first three.
    expect(await codes()).toBe(1);
  });
});

describe.each(postgres.engines)('two counters on one %s database', (_, newDatabase) => {
  async function twoCounters() {
    const database = await newDatabase();
    const stores = await Promise.all([openStores(database), openStores(database)]);
    const counters = stores.map(({ identityRecords }) => createAttemptCounter(identityRecords, () => NOW));
    return {
      database,
      /** What becomes of so many attempts at once, at each counter in turn. */
      async tried(count: number, limits: (index: number) => readonly AttemptLimit[]) {
        const all = Array.from({ length: count }, (_each, index) => counters[index % 2]?.(limits(index)));
        return (await Promise.all(all)).filter((attempt) => attempt?.ok).length;
      },
      close: async () => {
        for (const each of stores) await each.close();
      },
    };
  }

  test('many at once are counted: from one address, and in all; what was refused is on no account', async () => {
    const { database, tried, close } = await twoCounters();
    const codes = (address: string): AttemptLimit[] => [
      ...addressLimits('/codes', address, 5),
      ['/codes all', 12],
    ];
    expect(await tried(40, () => codes('192.0.2.1'))).toBe(5);
    expect(await tried(40, (index) => codes(`198.51.100.${index}`))).toBe(7);
    const counts = await counted({ file: database });
    const own = Object.entries(counts).filter(([key]) => /^\/codes 198\.[\d.]+$/.test(key));
    expect(own.map(([, attempts]) => attempts)).toEqual([1, 1, 1, 1, 1, 1, 1]);
    expect(counts).toMatchObject({ '/codes 192.0.2.1': 5, '/codes all': 12 });
    await close();
  });

  test('addresses of one /64 are one, those of another are not', async () => {
    const { tried, close } = await twoCounters();
    const guesses = (third: number) => (index: number) =>
      guessLimits(`session ${index}`, `2001:db8:1:${third}::${index}`, { ...GUESS_LIMITS, address: 3 });
    expect(await tried(5, guesses(2))).toBe(3);
    expect(await tried(1, guesses(3))).toBe(1);
    expect(await tried(1300, (index) => endpointLimits('/token', `2001:db8:1:4::${index}`))).toBe(1200);
    await close();
  });

  test('codes of one /56 and one /48 never use up the limit of all (THREATS.md 91)', async () => {
    const { database, tried, close } = await twoCounters();
    const from = (address: (index: number) => string) =>
      tried(40, (index) => [...addressLimits('/codes', address(index), 2), ['/codes all', 12]]);
    expect(await from((index) => `2001:db8:1:${(0x200 + index).toString(16)}::1`)).toBe(2 * 2);
    expect(await from((index) => `2001:db8:1:${((index + 4) * 256).toString(16)}::1`)).toBe(2 * 2);
    expect(await tried(1, () => addressLimits('/codes', '2001:db8:2::1', 2))).toBe(1);
    expect(await counted({ file: database })).toMatchObject({ '/codes all': 8 });
    await close();
  });
});
