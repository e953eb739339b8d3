import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { DAY, HOUR, MINUTE, SECOND } from '../../src/contract/durations.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { type Ended, reportOf, reservationIn, typed } from './command.ts';
import { type Client, newClient, type Served, serveHere } from './served.ts';

const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '1'];

let server: Served;
let person: Client;

beforeAll(async () => {
  server = await serveHere('--auto-approve', 'lead');
  person = newClient(server.env);
  await person.result('login', '--no-browser');
  await person.result('experiment', 'use', 'demo');
  await reserve(0, '--start-now', '--for', '1h');
});

/** What a command does on a machine whose clock is ahead, with tokens and keys that were kept while it was right. */
function run(clock: number, ...args: string[]): Promise<Ended> {
  return person.run(['--json', '--debug', ...args], { env: server.env, clock });
}
const reserve = (clock: number, ...times: string[]) => run(clock, 'reserve', ...LINK, ...times);
/** The same on a machine that has nothing, with a user token from elsewhere. */
async function reserveAnew(clock: number, ...times: string[]): Promise<Ended> {
  const { token } = await person.result('user', 'token');
  const env = { ...server.env, SLICES_CONN_USER_TOKEN: String(token) };
  return newClient(env).run(['--json', '--debug', 'reserve', ...LINK, ...times], { env, clock });
}
const WAYS = [
  ['tokens and keys that were kept', reserve],
  ['a token of the environment and no keys', reserveAnew],
] as const;

/** The requests of a command. */
const requestsOf = ({ stderr }: Ended): string[] =>
  [...stderr.matchAll(/^→ (\S+) \S+?:\d+(\S+)$/gm)].map(([, method, path]) => `${method} ${path}`);
const booked = ({ stdout }: Ended) => {
  const { start_date, end_date } = reservationIn(JSON.parse(stdout));
  return { start: Date.parse(start_date), end: Date.parse(end_date) };
};
/** That an instant lies so far after a command that began at `sent` and has just ended, by the right clock to some seconds. */
function expectAfter(sent: number, far: number, instant: number): void {
  expect(instant).toBeGreaterThan(sent + far - 10 * SECOND);
  expect(instant).toBeLessThan(Date.now() + far + 10 * SECOND);
}
/** The reservations that there are. */
const count = async (): Promise<unknown> => {
  const { items } = await person.result('list');
  return Array.isArray(items) ? items.length : items;
};

describe.each(WAYS)('a clock of the person that is wrong, with %s', (_, book) => {
  test.each([
    [-70 * SECOND, '1 min \\d+ s behind'],
    [15 * MINUTE, '15 min ahead of'],
    [730 * DAY, '730 d ahead of'],
  ])('by %i ms: 2, and nothing is booked (THREATS.md 105)', async (clock, said) => {
    const before = await count();
    const ended = await book(clock, '--start-now', '--for', '2h');
    expect(reportOf(ended)).toMatchObject({
      exitCode: 2,
      code: 'usage',
      message: expect.stringMatching(`^Your clock is ${said} the service's\\.$`),
      why: expect.stringContaining('Nothing was changed.'),
    });
    expect(requestsOf(ended)).toEqual(['GET /.well-known/jwks.json']);
    expect(await count()).toBe(before);
  });

  test.each([-45 * SECOND, 10 * MINUTE])(
    'by %i ms: the service’s time counts, so that 2 h are 2 h (THREATS.md 106)',
    async (clock) => {
      const warning =
        /warning: Your clock is .* (?:behind|ahead of) the service's\. The service's time counts\.\n/;
      for (const [times, lead, rest] of [
        [['--start-now', '--for', '2h'], 0, 5 * SECOND],
        [['--start', '+2h', '--for', '2h'], 2 * HOUR, 0],
        [['--start', '+2h', '--end', '+4h'], 2 * HOUR, 0],
      ] as const) {
        const sent = Date.now();
        const ended = await book(clock, ...times);
        expect([ended.exitCode, ended.stderr]).toEqual([0, expect.stringMatching(warning)]);
        const { start, end } = booked(ended);
        expectAfter(sent, lead, start);
        expectAfter(sent, lead + 2 * HOUR + rest, end);
        if (rest === 0) expect(end - start).toBe(2 * HOUR);
      }
    },
  );

  test.each([-10 * SECOND, 10 * SECOND])('by %i ms: nothing is said', async (clock) => {
    const ended = await book(clock, '--start-now', '--for', '2h');
    expect(ended.exitCode).toBe(0);
    expect(ended.stderr).not.toMatch(/clock/i);
  });
});

describe('the requests of a reserve', () => {
  const POST = 'POST /apis/v1alpha1/connectivity?start_now=true';
  const KEYS = 'GET /.well-known/jwks.json';

  test('with kept tokens and keys there is no other one, and with old keys none more than before', async () => {
    await reserve(0, '--start-now', '--for', '1h');
    expect(requestsOf(await reserve(0, '--start-now', '--for', '1h'))).toEqual([POST]);
    // Clocks are compared anew once this machine's was set, though by no more than its keys are old.
    expect(requestsOf(await reserve(10 * SECOND, '--start-now', '--for', '1h'))).toEqual([KEYS, POST]);
    rmSync(join(person.home, 'cache', 'slices-conn', 'key-sets'), { recursive: true });
    expect(requestsOf(await reserve(0, '--start-now', '--for', '1h'))).toEqual([KEYS, POST]);
    expect(requestsOf(await reserve(0, '--start-now', '--for', '1h'))).toEqual([POST]);
  });
});

describe('other commands that book or change', () => {
  const warned = { exitCode: 0, stderr: expect.stringContaining("The service's time counts") };
  const PLAN = 'reservations: { a: { sites: [be-gent1, pl-poznan1], bandwidth: 1, start: now, for: 1h } }';

  test.each(['plan plan.yaml', 'apply plan.yaml', `run ${LINK.join(' ')} --for 1h -- true`])(
    '%s: 2, and nothing is booked or started',
    async (words) => {
      writeFileSync(join(person.home, 'plan.yaml'), `version: 1\n${PLAN}\n`);
      const refused = reportOf(await run(-HOUR, ...words.split(' ')));
      expect(refused).toMatchObject({ exitCode: 2, message: "Your clock is 1 h behind the service's." });
    },
  );

  test.each(['plan', 'apply'])('%s goes by the service’s time', async (command) => {
    writeFileSync(join(person.home, 'plan.yaml'), `version: 1\n${PLAN}\n`);
    expect(await run(10 * MINUTE, command, 'plan.yaml')).toMatchObject(warned);
  });

  test('update --start +3h is three hours from the service’s now', async () => {
    const { id } = reservationIn(await person.result('reserve', ...LINK, '--start', '+5h', '--for', '1h'));
    const sent = Date.now();
    const ended = await run(10 * MINUTE, 'update', id, '--start', '+3h');
    expect(ended).toMatchObject(warned);
    expectAfter(sent, 3 * HOUR, booked(ended).start);
    expect(reportOf(await run(DAY, 'update', id, '--extend', '1h')).message).toMatch(/^Your clock is 1 d/);
  });

  test('list and status say so too, and go by the service’s time', async () => {
    const clock = -HOUR;
    const { id } = reservationIn(await person.result('reserve', ...LINK, '--start-now', '--for', '1h'));
    // A reply says in whole seconds when it was made, so what starts with a request is seen as begun a moment later.
    await vi.waitFor(async () => {
      const { stdout, ...listed } = await run(clock, 'list');
      expect(listed).toMatchObject(warned);
      const item = JSON.parse(stdout).items.find((one: { id: string }) => one.id === id);
      expect(item.state).toBe('active');
    }, PATIENCE);
    expect(await run(clock, 'status')).toMatchObject(warned);
  });

  test('without a login nothing is asked', async () => {
    const nobody = newClient(server.env);
    const ended = await nobody.command('--json', '--debug', 'reserve', ...LINK, '--start-now', '--for', '1h');
    expect(typed(reportOf(ended).fix)).toEqual(['login']);
    expect(requestsOf(ended)).toEqual([]);
  });
});
