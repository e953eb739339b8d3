import { expect, onTestFinished, test } from 'vitest';
import { createReferenceServer } from '../../src/reference-server.ts';
import { reportOf } from '../e2e/command.ts';
import { commandWorld, connectionTo } from '../fixtures/command-world.ts';
import { NOW } from '../fixtures/tokens.ts';

const HOUR = 3_600_000;

/** A machine that has booked a link for two hours and saved the proof. */
async function machine() {
  let now = NOW;
  let isAway = false;
  const server = await createReferenceServer({ now: () => now });
  onTestFinished(() => server.close());
  const connection = connectionTo(server, async (request) =>
    isAway ? new Response(null, { status: 503 }) : server.fetch(request),
  );
  const world = commandWorld(connection, { now: () => now });
  const run = (...args: string[]) => world.run('--offline', '--json', ...args);
  const link = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
  const { stdout } = await run('reserve', ...link, '--name', 'kth', '--save', 'link.jwt');
  return {
    run,
    id: JSON.parse(stdout).reservation.id as string,
    verify: (...flags: string[]) => run('verify', 'link.jwt', '--jwks', `${ISSUER}${JWKS}`, ...flags),
    after: (hours: number) => {
      now = NOW + hours * HOUR;
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
