import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  answer,
  approve,
  Browser,
  type DeviceLogin,
  type IdentityServer,
  PAGE,
  type Provider,
  poll,
  send,
  startIdentity,
  startLogin,
  tally,
} from '../../fixtures/identity.ts';

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

describe('right codes', () => {
  test('cost nothing, however often they are looked at', async () => {
    const server = await startIdentity();
    const browser = new Browser(server);
    for (let round = 0; round < PER_ADDRESS + 5; round += 1) {
      const login = await startLogin(server);
      expect((await approve(login, 'lead', browser)).status).toBe(200);
    }
    expect(await guesses(browser, PER_SESSION + 1)).toEqual([...times(PER_SESSION, 400), 429]);
  });
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
