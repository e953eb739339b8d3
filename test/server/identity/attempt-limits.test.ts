import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
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
  type DeviceLogin,
  type IdentityServer,
  logIn,
  PAGE,
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
    expect(endpointLimits('/token', '2001:db8:1:4::9')).toEqual([['/token 2001:db8:1:4::/64', 1200]]);
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

/** How many wrong codes are taken in a window, and the window in milliseconds (RFC 8628 §5.1). */
const PER_SESSION = 5;
const PER_ADDRESS = 20;
const WINDOW = 600_000;

const SECOND = 1000;
const INTERVAL = 5 * SECOND;

const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';

/** A code that nobody was given, another one each time. */
function wrongCode(number: number): string {
  const letters = Array.from({ length: 12 }, (_, index) => LETTERS[Math.floor(number / 20 ** index) % 20]);
  return [letters.slice(0, 4), letters.slice(4, 8), letters.slice(8)].map((four) => four.join('')).join('-');
}

let drawn = 0;
async function guess(browser: Browser, code?: string): Promise<number> {
  drawn += 1;
  return (await browser.open(`${PAGE}?user_code=${code ?? wrongCode(drawn)}`)).status;
}

async function guesses(browser: Browser, count: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let turn = 0; turn < count; turn += 1) statuses.push(await guess(browser));
  return statuses;
}

const times = (count: number, status: number): number[] => Array.from({ length: count }, () => status);

describe('wrong codes', () => {
  test('are taken five times from one browser, then none is, not even the right one', async () => {
    const server = await startIdentity();
    const login = await startLogin(server);
    const browser = new Browser(server);
    expect(await guesses(browser, PER_SESSION + 3)).toEqual([...times(PER_SESSION, 400), ...times(3, 429)]);
    expect((await browser.open(login.verification_uri_complete)).status).toBe(429);
    // Entered by hand it is no different.
    expect((await browser.submit({ user_code: login.user_code })).status).toBe(429);
    expect(browser.reply.text).not.toContain('Log in as');
    const retryAfter = Number(browser.reply.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(WINDOW / SECOND - 30);
    expect(retryAfter).toBeLessThanOrEqual(WINDOW / SECOND);
    expect(browser.problem).toContain('10 minutes');
    // Another browser at the same address goes on.
    const other = new Browser(server);
    expect((await approve(login, 'lead', other)).status).toBe(200);
    expect(answer(await poll(server, login))).toBe('200');
  });

  test('are counted by browser over two servers, and taken again when the window has passed', async () => {
    const server = await startIdentity();
    const browser = new Browser(server);
    expect(await guesses(browser, 3)).toEqual(times(3, 400));
    const elsewhere = new Browser(await server.replica());
    for (const [name, value] of browser.cookies) elsewhere.cookies.set(name, value);
    expect(await guesses(elsewhere, 3)).toEqual([400, 400, 429]);
    server.advance(WINDOW - 10 * SECOND);
    expect(await guess(browser)).toBe(429);
    const retryAfter = Number(browser.reply.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(0);
    expect(retryAfter).toBeLessThanOrEqual(10);
    // Those that were refused do not make the wait longer.
    server.advance(10 * SECOND);
    expect(await guesses(browser, PER_SESSION + 1)).toEqual([...times(PER_SESSION, 400), 429]);
  });

  test('are counted by address over all browsers, of two servers on one database', async () => {
    const server = await startIdentity();
    const targets: Provider[] = [server, await server.replica()];
    const statuses: number[] = [];
    for (let index = 0; index < PER_ADDRESS + 4; index += 1)
      statuses.push(await guess(new Browser(targets[index % 2] ?? server)));
    expect(statuses).toEqual([...times(PER_ADDRESS, 400), ...times(4, 429)]);
    server.advance(WINDOW);
    expect(await guess(new Browser(server))).toBe(400);
  });

  test('count whatever they look like, and when they are entered in the form', async () => {
    const server = await startIdentity();
    const browser = new Browser(server);
    await browser.open(PAGE);
    expect((await browser.submit({ user_code: wrongCode(1000) })).status).toBe(400);
    const statuses: number[] = [];
    for (const code of ['x', '%00', 'A'.repeat(500), '%F0%9F%98%80', 'BBBB-BBBB-BBBB'])
      statuses.push(await guess(browser, code));
    expect(statuses).toEqual([...times(PER_SESSION - 1, 400), 429]);
  });

  /** The status of a look at the page from an address: with a wrong code, unless a path is given. */
  async function lookFrom(server: IdentityServer, address: string, path?: string): Promise<number> {
    drawn += 1;
    const wrong = `${PAGE}?user_code=${wrongCode(drawn)}`;
    return (await send(server, 'GET', path ?? wrong, { headers: { 'x-forwarded-for': address } })).status;
  }

  test('from all of a /56 lock it out, from all of a /48 that, and nobody else (THREATS.md 90)', async () => {
    const server = await startIdentity({ behindProxy: true });
    const allOf = async (addresses: readonly string[]): Promise<Record<string, number>> => {
      const statuses: string[] = [];
      for (const address of addresses) statuses.push(String(await lookFrom(server, address)));
      return tally(statuses);
    };
    const in56 = Array.from({ length: 256 }, (_, index) => `2001:db8:1:${(0x200 + index).toString(16)}::1`);
    expect(await allOf(in56)).toEqual({ '400': 2 * PER_ADDRESS, '429': 256 - 2 * PER_ADDRESS });
    const in48 = Array.from(
      { length: 60 },
      (_, index) => `2001:db8:1:${((index + 4) * 256).toString(16)}::1`,
    );
    expect(await allOf(in48)).toEqual({ '400': 2 * PER_ADDRESS, '429': 60 - 2 * PER_ADDRESS });

    const { pathname, search } = new URL((await startLogin(server)).verification_uri_complete);
    expect(await lookFrom(server, '2001:db8:1:ffff::1', pathname + search)).toBe(429);
    for (const honest of ['2001:db8:2::1', '2001:db9::1', '192.0.2.1']) {
      expect(await lookFrom(server, honest, pathname + search)).toBe(200);
    }
    // What was refused has left no row: four for each guess that was counted are the most.
    expect(attemptRows(server.file)).toBeLessThan(4 * (4 * PER_ADDRESS + 4));
  });
});

/** How many rows there are of attempts that are counted. */
function attemptRows(file: string): number {
  const beside = new DatabaseSync(file, { readOnly: true });
  try {
    return Number(beside.prepare('SELECT count(*) AS rows FROM attempt').get()?.['rows']);
  } finally {
    beside.close();
  }
}

test('right codes cost nothing, however often they are looked at', async () => {
  const server = await startIdentity();
  const browser = new Browser(server);
  for (let round = 0; round < PER_ADDRESS + 5; round += 1) {
    const login = await startLogin(server);
    expect((await approve(login, 'lead', browser)).status).toBe(200);
  }
  expect(await guesses(browser, PER_SESSION + 1)).toEqual([...times(PER_SESSION, 400), 429]);
});

/** Polls at these times, in milliseconds after the first. */
async function pollAt(
  server: IdentityServer,
  login: DeviceLogin,
  instants: readonly number[],
): Promise<string[]> {
  const answers: string[] = [];
  let passed = 0;
  for (const instant of instants) {
    server.advance(instant - passed);
    passed = instant;
    answers.push(answer(await poll(server, login)));
  }
  return answers;
}

const PENDING = '400 authorization_pending';
const SLOW_DOWN = '400 slow_down';

describe('polls', () => {
  // Only the tests move the clock: on a slow machine the intervals pass by themselves.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.now() }));
  afterEach(() => void vi.useRealTimers());

  test('that come too fast are told so, the first one never', async () => {
    const server = await startIdentity();
    const login = await startLogin(server);
    expect(await pollAt(server, login, [0, 0, 0, SECOND, 2 * SECOND])).toEqual([
      PENDING,
      ...times(4, 0).map(() => SLOW_DOWN),
    ]);
    // A hasty client does not lock itself out.
    server.advance(INTERVAL);
    expect(answer(await poll(server, login))).toBe(PENDING);
  });

  test('at once: one is answered, the others are slowed down', async () => {
    const server = await startIdentity();
    const login = await startLogin(server);
    const replies = await Promise.all(Array.from({ length: 10 }, () => poll(server, login)));
    expect(tally(replies.map(answer))).toEqual({ [PENDING]: 1, [SLOW_DOWN]: 9 });
  });

  // 40 polls, 200 s.
  const many = Array.from({ length: 40 }, (_, index) => index);

  test('of an honest client never are: on time, late, or through a network that takes up to 40 % of the interval', async () => {
    const server = await startIdentity();
    const networks = [
      (index: number) => index * INTERVAL,
      (index: number) => index * INTERVAL * 1.1,
      (index: number) => index * INTERVAL - (index % 2) * 0.4 * INTERVAL,
      (index: number) => index * INTERVAL + (index % 2) * 0.4 * INTERVAL,
    ];
    for (const arrivesAt of networks) {
      const login = await startLogin(server);
      // The library's clock stands still meanwhile, so that the code lives on.
      const answers = await pollAt(server, login, many.map(arrivesAt).map(Math.round));
      expect(tally(answers)).toEqual({ [PENDING]: many.length });
    }
  });
});
