import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createReferenceServer } from '../../src/reference-server.ts';
import { rotateByHand } from '../../src/server/keys/key-ring.ts';
import { openStores } from '../../src/store/stores.ts';
import { createIssuer } from '../../src/tokens/issuer.ts';
import type { KeySetCopy, KeySetStore } from '../../src/tokens/remote-key-set.ts';
import { importSigningKey } from '../../src/tokens/signing-key.ts';
import { reportOf } from '../e2e/command.ts';
import { commandWorld, connectionTo, NO_SERVICE } from '../fixtures/command-world.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { NOW } from '../fixtures/tokens.ts';

const HOUR = 3_600_000;

/** A machine that has booked a link for two hours and saved the proof. */
async function machine({
  baseUrl = ISSUER,
  flags = ['--offline'],
  database = ':memory:',
  keepsKeys = false,
} = {}) {
  let now = NOW;
  let isAway = false;
  let withoutLists = false;
  const server = await createReferenceServer({ baseUrl, database, now: () => now });
  onTestFinished(() => server.close());
  const lost = (url: string): boolean => isAway || (withoutLists && url.includes('/status/'));
  const answer = async (request: Request) =>
    lost(request.url) ? new Response(null, { status: 503 }) : server.fetch(request);
  const kept = new Map<string, KeySetCopy>();
  const keySets = (url: string): KeySetStore => ({
    read: () => kept.get(url),
    write: (copy) => void kept.set(url, copy),
  });
  const connection = { ...connectionTo(server, answer), ...(keepsKeys ? { keySets } : {}) };
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

test('the id of a reservation is no file: it leads to show', async () => {
  const { run, id } = await machine();
  const message = 'This is the id of a reservation. verify takes files with signed tokens.';
  expect(reportOf(await run('verify', id))).toMatchObject({
    ...{ exitCode: 2, message, fix: `slices-conn --offline show ${id}` },
  });
  expect(reportOf(await run('verify', 'link.jwt', id))).toMatchObject({
    items: [{ verified: true }, { verified: false, error: { code: 'usage' } }],
  });
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

describe('several tokens are a row each', () => {
  test.each<[string, string[], number, (boolean | string)[]]>([
    ['all hold', ['link.jwt', 'again.jwt'], 0, [true, true]],
    ['some hold', ['link.jwt', 'bad.jwt'], 10, [true, 'unverified']],
    ['all fail alike: their code', ['bad.jwt', 'bad.jwt'], 9, ['unverified', 'unverified']],
    ['they fail in different ways', ['bad.jwt', 'none.jwt'], 10, ['unverified', 'file_unusable']],
    ['lines of standard input', ['-'], 10, [true, 'unverified', true]],
  ])('%s: %j is exit %i', async (_, files, exitCode, due) => {
    const { world } = await machine();
    const token = String(world.files.get('link.jwt')).trim();
    world.files.set('again.jwt', token);
    world.files.set('bad.jwt', 'not a token');
    world.files.set('-', `${token}\r\nnot a token\n\n${token}`);
    const json = await world.run('--offline', '--json', 'verify', ...files);
    expect(json.exitCode).toBe(exitCode);
    if (exitCode !== 0) expect(json.stdout).toBe('');
    const { items } = JSON.parse(json.stdout || json.stderr).error ?? JSON.parse(json.stdout);
    const told = (items as { verified: boolean; error?: { code: string } }[]).map(
      ({ verified, error }) => error?.code ?? verified,
    );
    expect(told).toEqual(due);
    const { stdout } = await world.run('--offline', 'verify', ...files);
    const rows = stdout.trimEnd().split('\n').slice(1);
    expect(rows.map((row) => / yes +be-gent1 – pl-poznan1, 1 Gbps/.test(row))).toEqual(
      due.map((one) => one === true),
    );
    if (files[0] === '-') expect(rows.map((row) => row.slice(0, 3))).toEqual(['-:1', '-:2', '-:4']);
  });

  test('a thousand in one run', async () => {
    const { world, id } = await machine();
    const token = String(world.files.get('link.jwt'));
    world.files.set('-', token.repeat(1000));
    const { stdout } = await world.run('--offline', '--json', 'verify');
    const { items } = JSON.parse(stdout);
    expect(items).toHaveLength(1000);
    expect(items[999]).toMatchObject({ file: '-:1000', verified: true, reservation: { id } });
  });
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
    const as_of = new Date(NOW + 12_000).toISOString();
    const due = { verified: true, standing: 'stands', as_of };
    expect(JSON.parse((await look('--json')).stdout)).toMatchObject(due);
    after(24 * SECONDS);
    expect((await look()).stdout).toContain('valid, as of 12 s ago');
  });
});

describe('a proof whose key signs no more', () => {
  const BASE = 'http://127.0.0.1:4280';
  const [DAYS, MINUTES] = [24, 1 / 60];

  /** A reservation whose service has another key since; the former ones by their state then. */
  async function rotated({ retireNow = false, keepsKeys = false } = {}) {
    const database = join(temporaryFolder(), 'server.db');
    const one = await machine({ baseUrl: BASE, flags: [], database, keepsKeys });
    const stores = await openStores(database);
    onTestFinished(() => stores.close());
    const [leaked] = await stores.keys.keys('connectivity');
    if (!leaked) throw new Error('the service has no key');
    const look = (...flags: string[]) => one.run('verify', 'link.jwt', ...flags);
    one.after(1 - MINUTES);
    expect((await look()).exitCode).toBe(0);
    one.after(1);
    await rotateByHand('connectivity', stores.keys, { retireNow, now: one.now() });
    /** Lets so many hours pass; the service finds that its former key is needed no more. */
    const pass = async (hours: number) => {
      one.after(hours);
      await one.server.fetch(new Request(`${BASE}${JWKS}`));
    };
    return { ...one, look, pass, leaked };
  }

  test('verifies while its reservation lasts, and after it by the history of keys for two years', async () => {
    const { look, pass } = await rotated();
    await pass(1.5);
    expect(JSON.parse((await look()).stdout)).toMatchObject({ standing: 'stands' });
    for (const hours of [1 * DAYS, 720 * DAYS]) {
      await pass(hours);
      expect(reportOf(await look())).toMatchObject({ exitCode: 9, standing: 'ended' });
      expect(JSON.parse((await look('--ended')).stdout)).toMatchObject({ verified: true, standing: 'ended' });
    }
    await pass(732 * DAYS);
    const report = reportOf(await look('--ended'));
    expect([report.exitCode, report.standing]).toEqual([9, undefined]);
  });

  test('retired as leaked while its key is kept here: 9 at once, with the command that fetches a new proof', async () => {
    const { look, pass, id } = await rotated({ retireNow: true, keepsKeys: true });
    await pass(1 + MINUTES);
    const report = reportOf(await look());
    expect(report).toMatchObject({ code: 'unverified', exitCode: 9, fix: `slices-conn show ${id}` });
  });

  test('retired as leaked: what it signed before counts after the end, with a warning; nothing from then on (THREATS.md 123)', async () => {
    const { look, pass, leaked, world } = await rotated({ retireNow: true });
    await pass(1.5);
    expect((await look()).exitCode).toBe(9);
    await pass(3);
    const { exitCode, stderr } = await look('--ended');
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('retired as leaked')]);
    const [, payload = ''] = String(world.files.get('link.jwt')).split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const key = await importSigningKey(leaked.jwk);
    for (const hours of [1, 1.5, -1]) {
      const thief = createIssuer({ issuer: BASE, key, now: () => NOW + hours * HOUR });
      world.files.set('link.jwt', await thief.issue(claims));
      expect(reportOf(await look('--ended'))).toMatchObject({ code: 'unverified', exitCode: 9 });
    }
  });
});

test('what is advised for the proof of another service is not about the profile’s own', async () => {
  const { run, world, server, now } = await machine({ baseUrl: 'http://127.0.0.1:4280', flags: [] });
  await run('update', 'kth', '--bandwidth', '2G');
  const other = commandWorld(connectionTo(server), {
    now,
    variables: { SLICES_CONN_BASE_URL: 'https://elsewhere.example.org' },
  });
  other.files.set('link.jwt', world.files.get('link.jwt') ?? '');
  const report = reportOf(
    await other.run('verify', 'link.jwt', '--issuer', 'http://127.0.0.1:4280', '--json'),
  );
  expect([report.standing, report.fix]).toEqual(['deleted_or_replaced', null]);
});

test('a proof with its key beside it needs no service: the thumbprint says which key counts', async () => {
  const { run, world, leave } = await machine({ baseUrl: 'http://127.0.0.1:4280', flags: [] });
  const shown = JSON.parse((await run('show', 'kth', '--save', 'kept.jwt', '--with-key')).stdout);
  leave();
  const files = new Map([...world.files].filter(([name]) => name.startsWith('kept')));
  // Another profile: the key alone is what counts.
  const variables = { SLICES_CONN_BASE_URL: 'https://elsewhere.example.org' };
  const other = commandWorld(NO_SERVICE, { now: () => NOW, variables });
  for (const [name, content] of files) other.files.set(name, content);
  expect([...files.keys()]).toEqual(['kept.jwt', 'kept.jwt.jwks.json']);
  const verify = (key: string) => other.run('verify', 'kept.jwt', '--key', key, '--json');
  expect(JSON.parse((await verify(shown.key)).stdout)).toMatchObject({ verified: true, standing: 'unknown' });
  expect(reportOf(await verify(`${shown.key}x`))).toMatchObject({ code: 'unverified', exitCode: 9 });
  other.files.set('-', other.files.get('kept.jwt') ?? '');
  expect(reportOf(await other.run('verify', '--key', shown.key, '--json'))).toMatchObject({
    code: 'usage',
    message: '--key needs --jwks where the token comes from standard input.',
  });
});
