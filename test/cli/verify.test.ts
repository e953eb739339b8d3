import { describe, expect, onTestFinished, test } from 'vitest';
import { createReferenceServer } from '../../src/reference-server.ts';
import { reportOf } from '../e2e/command.ts';
import { commandWorld, connectionTo } from '../fixtures/command-world.ts';
import { NOW } from '../fixtures/tokens.ts';

const HOUR = 3_600_000;

/** A machine that has booked a link for two hours and saved the proof. */
async function machine({ baseUrl = ISSUER, flags = ['--offline'] } = {}) {
  let now = NOW;
  let isAway = false;
  let withoutLists = false;
  const server = await createReferenceServer({ baseUrl, now: () => now });
  onTestFinished(() => server.close());
  const lost = (url: string): boolean => isAway || (withoutLists && url.includes('/status/'));
  const answer = async (request: Request) =>
    lost(request.url) ? new Response(null, { status: 503 }) : server.fetch(request);
  const connection = connectionTo(server, answer);
  const world = commandWorld(connection, { now: () => now });
  const run = (...args: string[]) => world.run(...flags, '--json', ...args);
  const link = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
  const { stdout } = await run('reserve', ...link, '--name', 'kth', '--save', 'link.jwt');
  return {
    server,
    world,
    answer,
    now: () => now,
    loseLists: () => {
      withoutLists = true;
    },
    run,
    id: JSON.parse(stdout).reservation.id as string,
    verify: (...flags: string[]) => run('verify', 'link.jwt', '--jwks', `${baseUrl}${JWKS}`, ...flags),
    after: (hours: number) => {
      now = Math.round(NOW + hours * HOUR);
    },
    leave: () => {
      isAway = true;
    },
  };
}

const [ISSUER, JWKS] = ['http://offline.localhost', '/.well-known/jwks.json'];

test('a reservation of which nothing else is known verifies; whether it stands is unknown', async () => {
  const { verify } = await machine();
  expect(JSON.parse((await verify()).stdout)).toMatchObject({ verified: true, standing: 'unknown' });
});

test('one that this machine deleted is 9, before its end and after', async () => {
  const { run, verify, after } = await machine();
  await run('delete', '--yes', 'kth');
  const due = { code: 'unverified', exitCode: 9, standing: 'deleted_or_replaced' };
  expect(reportOf(await verify())).toMatchObject(due);
  after(3);
  expect(reportOf(await verify('--ended'))).toMatchObject(due);
});

test('one that this machine has changed is 9; the proof of the change verifies', async () => {
  const { run, verify, after, id } = await machine();
  after(0.5);
  await run('update', 'kth', '--bandwidth', '2G');
  const report = reportOf(await verify());
  expect(report).toMatchObject({ exitCode: 9, standing: 'deleted_or_replaced' });
  expect(report.fix).toBe(`slices-conn --offline show ${id}`);
  await run('show', 'kth', '--save', 'link.jwt', '--yes');
  expect((await verify()).exitCode).toBe(0);
});

test('one that has ended is 9, and says that it was real; --ended accepts it', async () => {
  const { verify, after } = await machine();
  after(2.1);
  const report = reportOf(await verify());
  expect(report).toMatchObject({ code: 'unverified', exitCode: 9, standing: 'ended' });
  expect(report.why).toContain(`signed by ${ISSUER}`);
  expect(report.fix).toMatch(/ --ended$/);
  expect(JSON.parse((await verify('--ended')).stdout)).toMatchObject({ verified: true, standing: 'ended' });
});

test('where no key set can be had it could not be verified: 7', async () => {
  const { verify, leave } = await machine();
  leave();
  expect(reportOf(await verify())).toMatchObject({ code: 'keys_unreachable', exitCode: 7, retryable: true });
});

describe('over the network the service is asked', () => {
  const BASE = 'http://127.0.0.1:4280';
  const SECONDS = 1 / 3600;

  /** A service, what a person saved there, and another person's machine, which has noted nothing. */
  async function saved() {
    const one = await machine({ baseUrl: BASE, flags: [] });
    const token = one.world.files.get('link.jwt');
    if (token === undefined) throw new Error('nothing was saved');
    const other = commandWorld(connectionTo(one.server, one.answer), { now: one.now });
    other.files.set('link.jwt', token);
    return { ...one, look: (...flags: string[]) => other.run('verify', 'link.jwt', ...flags) };
  }

  test('of one that stands it says of when that is', async () => {
    const { look, after } = await saved();
    after(12 * SECONDS);
    expect(JSON.parse((await look('--json')).stdout)).toMatchObject({ verified: true, standing: 'stands' });
    after(24 * SECONDS);
    expect((await look()).stdout).toContain('stands, as of 12 s ago');
  });

  test.each([
    ['deleted', ['delete', '--yes', 'kth']],
    ['updated', ['update', 'kth', '--bandwidth', '2G']],
  ])('one that was %s elsewhere is 9, before its end and after', async (_, change) => {
    const { run, look, after } = await saved();
    after(10 * SECONDS);
    expect((await run(...change)).exitCode).toBe(0);
    after(20 * SECONDS);
    const due = { code: 'unverified', exitCode: 9, standing: 'deleted_or_replaced' };
    expect(reportOf(await look('--json'))).toMatchObject(due);
    after(3);
    expect(reportOf(await look('--json', '--ended'))).toMatchObject(due);
  });

  test('one that has ended is 9; --ended takes it', async () => {
    const { look, after } = await saved();
    after(2.1);
    expect(reportOf(await look('--json'))).toMatchObject({ exitCode: 9, standing: 'ended' });
    expect(JSON.parse((await look('--json', '--ended')).stdout)).toMatchObject({ standing: 'ended' });
  });

  test('where the list can’t be had it verifies, and whether it stands is unknown', async () => {
    const { look, loseLists } = await saved();
    loseLists();
    const { exitCode, stdout, stderr } = await look('--json');
    expect([exitCode, JSON.parse(stdout).standing]).toEqual([0, 'unknown']);
    expect(stderr).toContain('could not be asked');
  });
});
