import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  ATTEMPT_WINDOW,
  createAttemptCounter,
  createEndpointGuard,
  ENDPOINT_LIMITS,
  type EndpointGuard,
  type EndpointLimit,
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
  tally,
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

function expectTooMany(reply: WireReply, error: EndpointLimit['error']): void {
  expect(answer(reply)).toBe(`429 ${error}`);
  expect(reply.headers.get('content-type')).toMatch(/^application\/json\b/);
  expect(reply.headers.get('cache-control')).toBe('no-store');
  const retryAfter = Number(reply.headers.get('retry-after'));
  expect(retryAfter).toBeGreaterThan(ATTEMPT_WINDOW / 1000 - 60);
  expect(retryAfter).toBeLessThanOrEqual(ATTEMPT_WINDOW / 1000);
  expect(reply.text).toContain(`Try again in ${retryAfter} s.`);
}

test('the limits are those that are written down', () => {
  const shown = Object.entries(ENDPOINT_LIMITS).map(([path, { address, global, counts }]) => [
    path,
    counts,
    address,
    global,
  ]);
  expect(shown).toEqual([
    ['/device/auth', 'every', 600, 6000],
    ['/token', 'wrong', 1200, 24_000],
    ['/token/revocation', 'wrong', 1200, 24_000],
  ]);
});

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
      // What never came to be looked at is not on the account of all.
      '/token all': 4,
      [`/token/revocation ${HERE}`]: 1,
      '/token/revocation all': 1,
    });
  });

  test('refuse an address with too many wrong ones before they look; of all addresses take right ones', async () => {
    const [server, replica] = await twoServers();
    const login = await startLogin(server);
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
    await countedAlready(server, `/token ${HERE}`, 0);
    await countedAlready(server, '/token all', 24_000);
    await countedAlready(server, '/token/revocation all', 24_000);
    expect(answer(await poll(replica, login))).toBe('400 authorization_pending');
    expect(answer(await poll(replica, login))).toBe('400 slow_down');
    expect(answer(await refresh(replica, token))).toBe('200');
    for (const target of [server, replica]) {
      expectTooMany(await refresh(target, 'wrong'), 'slow_down');
      expectTooMany(await revoke(target, 'wrong'), 'temporarily_unavailable');
    }
    server.advance(ATTEMPT_WINDOW);
    expect(answer(await refresh(server, 'wrong'))).toBe('400 invalid_grant');
  });

  test('forget old counts: the table holds half an hour at most', async () => {
    const [server] = await twoServers();
    for (let index = 0; index < 5; index += 1) await countedAlready(server, `/token 192.0.2.${index}`, 1);
    server.advance(ATTEMPT_WINDOW);
    await refresh(server, 'wrong');
    expect(Object.keys(await counted(server)).length).toBe(7);
    server.advance(ATTEMPT_WINDOW + 60_000);
    await refresh(server, 'wrong');
    expect(Object.keys(await counted(server)).length).toBe(2);
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

describe.each(postgres.engines)('two guards on one %s database', (_, newDatabase) => {
  const LIMITS: Readonly<Record<string, EndpointLimit>> = {
    '/codes': { address: 5, global: 12, counts: 'every', error: 'temporarily_unavailable' },
    '/tokens': { address: 5, global: 12, counts: 'wrong', error: 'slow_down' },
  };
  const request = (): IncomingMessage => new IncomingMessage(new Socket());

  async function twoGuards(limits = LIMITS) {
    const database = await newDatabase();
    const stores = await Promise.all([openStores(database), openStores(database)]);
    let clock = NOW;
    const [one, other] = stores.map(({ identityRecords }) =>
      createEndpointGuard(identityRecords, () => clock, limits),
    );
    if (!one || !other) throw new RangeError('two were opened');
    return {
      database,
      guard: (index: number): EndpointGuard => (index % 2 === 0 ? one : other),
      advance: (milliseconds: number) => {
        clock += milliseconds;
      },
      close: async () => {
        for (const each of stores) await each.close();
      },
    };
  }

  /** Asks once. @returns `in`, or why not */
  async function tried(guard: EndpointGuard, path: string, address: string, right = false): Promise<string> {
    const asked = request();
    const refused = await guard.admit(asked, path, address);
    if (refused) return refused.error;
    const answered = await guard.settle(asked, right);
    return answered ? `looked at, ${answered.error}` : 'in';
  }

  const many = <Answer>(count: number, work: (index: number) => Promise<Answer>): Promise<Answer[]> =>
    Promise.all(Array.from({ length: count }, (_each, index) => work(index)));

  test('many at once are counted: from one address, and in all', async () => {
    const { database, guard, close } = await twoGuards();
    const one = await many(40, (index) => tried(guard(index), '/codes', '192.0.2.1'));
    expect(tally(one)).toEqual({ in: 5, temporarily_unavailable: 35 });
    const all = await many(40, (index) => tried(guard(index), '/codes', `198.51.100.${index}`));
    expect(tally(all)).toEqual({ in: 7, temporarily_unavailable: 33 });
    // None of those that were refused is on its address's account.
    const counts = await counted({ file: database });
    const own = Object.entries(counts).filter(([key]) => /^\/codes 198\.[\d.]+$/.test(key));
    expect(own.map(([, attempts]) => attempts)).toEqual([1, 1, 1, 1, 1, 1, 1]);
    expect(counts).toMatchObject({ '/codes 192.0.2.1': 5, '/codes all': 12 });
    // Wrong ones are counted before they are looked at, right ones are given back, and other paths are free.
    const wrong = await many(40, (index) => tried(guard(index), '/tokens', '192.0.2.1'));
    expect(tally(wrong)).toEqual({ in: 5, slow_down: 35 });
    for (let round = 0; round < 30; round += 1) {
      expect(await tried(guard(round), '/tokens', '192.0.2.2', true)).toBe('in');
      expect(await tried(guard(round), '/discovery', '192.0.2.1')).toBe('in');
    }
    await close();
  });

  test('addresses of one /64 are one, those of another are not', async () => {
    const { guard, close } = await twoGuards();
    for (let index = 0; index < 5; index += 1) {
      expect(await tried(guard(index), '/tokens', `2001:db8:1:2::${index}`)).toBe('in');
    }
    expect(await tried(guard(0), '/tokens', '2001:db8:1:2:ffff::')).toBe('slow_down');
    expect(await tried(guard(1), '/tokens', '2001:db8:1:3::')).toBe('in');
    await close();
  });

  test('codes of one /56 and one /48 never use up the limit of all (THREATS.md 91)', async () => {
    const { database, guard, close } = await twoGuards({
      '/codes': { address: 2, global: 12, counts: 'every', error: 'temporarily_unavailable' },
    });
    const from = (address: (index: number) => string) =>
      many(40, (index) => tried(guard(index), '/codes', address(index)));
    const in56 = await from((index) => `2001:db8:1:${(0x200 + index).toString(16)}::1`);
    expect(tally(in56)).toEqual({ in: 2 * 2, temporarily_unavailable: 36 });
    const in48 = await from((index) => `2001:db8:1:${((index + 4) * 256).toString(16)}::1`);
    expect(tally(in48)).toEqual({ in: 2 * 2, temporarily_unavailable: 36 });
    expect(await tried(guard(0), '/codes', '2001:db8:2::1')).toBe('in');
    expect(await counted({ file: database })).toMatchObject({ '/codes all': 9 });
    await close();
  });

  test('guesses of user codes are counted by /64 too', async () => {
    const database = await newDatabase();
    const stores = await openStores(database);
    const counter = createAttemptCounter(stores.identityRecords, () => NOW);
    const guess = (session: string, address: string) =>
      counter.count(guessLimits(session, address, { ...GUESS_LIMITS, address: 3 }));
    const outcomes: boolean[] = [];
    for (let index = 0; index < 5; index += 1) {
      outcomes.push((await guess(`session ${index}`, `2001:db8:1:2::${index}`)).ok);
    }
    expect(outcomes).toEqual([true, true, true, false, false]);
    expect((await guess('session', '2001:db8:1:3::1')).ok).toBe(true);
    await stores.close();
  });

  test('past the limit of all a wrong one is refused after the look, a right one never', async () => {
    const { guard, advance, close } = await twoGuards();
    for (let index = 0; index < 12; index += 1) {
      expect(await tried(guard(index), '/tokens', `192.0.2.${index}`)).toBe('in');
    }
    for (let index = 0; index < 8; index += 1) {
      expect(await tried(guard(index), '/tokens', '192.0.2.99')).toBe('looked at, slow_down');
      expect(await tried(guard(index), '/tokens', '192.0.2.99', true)).toBe('in');
    }
    advance(ATTEMPT_WINDOW);
    expect(await tried(guard(0), '/tokens', '192.0.2.99')).toBe('in');
    await close();
  });
});
