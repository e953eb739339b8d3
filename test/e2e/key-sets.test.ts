import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { HOUR, MINUTE } from '../../src/contract/durations.ts';
import { KEY_HISTORY_PATH, KEY_SET_PATH } from '../../src/contract/routes.ts';
import { freePort } from '../fixtures/postgres.ts';
import { claimsOf, keySetOf, makeKey, makeToken, RESERVATION, type TestKey } from '../fixtures/tokens.ts';
import { reportOf } from './command.ts';
import { type Client, newClient, pointingAt, type Recorder, record, serveHere } from './served.ts';

const own = makeKey('ES256', { kid: 'own' });
const next = makeKey('ES256', { kid: 'next' }, 'next');
const unknown = makeKey('ES256', { kid: 'unknown' }, 'unknown');

let published: readonly TestKey[] | 'away';
let service: Recorder;
let client: Client;

beforeEach(async () => {
  published = [own];
  service = await record(() => (published === 'away' ? { status: 500 } : { json: keySetOf(...published) }));
  client = newClient(pointingAt(service.url));
});

/** A reservation's token from the service, as this key signs it. */
function token(key: TestKey, header = {}): string {
  const iat = Math.floor(Date.now() / 1000) - 5;
  const claims = claimsOf('connectivity', { iss: service.url, iat, exp: iat + 900 });
  return makeToken(key, claims, { header });
}
const verify = (key: TestKey, ...flags: string[]) =>
  client.run(['verify', '--json', ...flags], { env: pointingAt(service.url), stdin: token(key) });

/** The file with the service's keys. */
function kept(): string {
  const folder = join(client.home, 'cache', 'slices-conn', 'key-sets');
  const [name = '', ...others] = readdirSync(folder);
  expect(others).toEqual([]);
  return join(folder, name);
}

/** Changes members of the kept file. */
function rewrite(changes: object): void {
  const before = JSON.parse(readFileSync(kept(), 'utf8'));
  writeFileSync(kept(), JSON.stringify({ ...before, ...changes }));
}

describe('row 26: key sets are kept between commands', () => {
  test('a key set is not fetched again for ten minutes', async () => {
    for (const age of [0, 9 * MINUTE]) {
      if (age > 0) rewrite({ at: Date.now() - age });
      expect(await verify(own)).toMatchObject({ exitCode: 0, stderr: '' });
      expect(service.requests).toHaveLength(1);
    }
    rewrite({ at: Date.now() - 11 * MINUTE });
    expect(await verify(own)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(service.requests).toHaveLength(2);
    expect(JSON.parse(readFileSync(kept(), 'utf8')).at).toBeGreaterThan(Date.now() - MINUTE);
  });

  test('with --offline they serve whichever profile is chosen', async () => {
    const { url } = service;
    const addresses = [`baseUrl=${url}`, `portalUrl=${url}/portal`, `authUrl=${url}/auth`];
    await client.run(['profile', 'set', 'elsewhere', ...addresses]);
    await verify(own);
    const offline = ['verify', '--json', '--offline'];
    expect(await client.run(offline, { stdin: token(own) })).toMatchObject({ exitCode: 0, stderr: '' });
    const chosen = await client.run([...offline, '--profile', 'local'], { stdin: token(own) });
    expect(reportOf(chosen)).toMatchObject({ exitCode: 9 });
  });

  test('for one day they replace an unreachable service, with a warning; after that: 7', async () => {
    await verify(own);
    published = 'away';
    rewrite({ at: Date.now() - 23 * HOUR });
    const { exitCode, stderr } = await verify(own);
    expect(stderr).toMatch(
      /^warning: The key set at http:\S+ can't be reached; a copy from 13\d\d min ago is used\.\n$/,
    );
    expect(exitCode).toBe(0);
    const before = readFileSync(kept(), 'utf8');
    rewrite({ at: Date.now() - 24 * HOUR });
    expect(reportOf(await verify(own))).toMatchObject({ exitCode: 7, code: 'keys_unreachable' });
    expect(JSON.parse(readFileSync(kept(), 'utf8')).keys).toEqual(JSON.parse(before).keys);
  });
});

test('serve --memory, stopped and started again: after a login it books as before (THREATS.md 102)', async () => {
  const port = String(await freePort());
  const args = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '1h'];
  const logIn = ['login', '--no-browser'];
  const first = await serveHere('--port', port, '--auto-approve', 'lead');
  const person = newClient(first.env);
  expect(await person.command(...logIn)).toMatchObject({ exitCode: 0 });
  await person.result(...args);
  await first.stop();
  await serveHere('--port', port, '--auto-approve', 'lead');
  const refused = reportOf(await person.command('--json', ...args));
  expect(refused).toMatchObject({ exitCode: 4, code: 'token_invalid' });
  expect(refused.message).toMatch(/restarted with new keys\?$/);
  expect(refused.fix).toBe('slices-conn login');
  expect(await person.command(...logIn)).toMatchObject({ exitCode: 0 });
  expect(await person.result(...args)).toMatchObject({ verified: true });
});

test('rows 25, 27: a kid that is not among the keys: a new one is accepted after one fetch, and the old one still; an unknown one is 9', async () => {
  await verify(own);
  published = [own, next];
  for (const key of [next, next, own]) {
    expect(await verify(key)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(service.requests).toHaveLength(2);
  }
  // An unknown one is 9 after one fetch of the keys, and of those that were revoked.
  expect(reportOf(await verify(unknown))).toMatchObject({ exitCode: 9, code: 'unverified' });
  expect(service.requests.slice(2).map(({ path }) => path)).toEqual([KEY_SET_PATH, KEY_HISTORY_PATH]);
});

describe('row 26: verify --offline', () => {
  test('a token of the profile’s service, by the keys that are kept', async () => {
    await verify(own);
    published = 'away';
    const { exitCode, stdout, stderr } = await verify(own, '--offline');
    expect(JSON.parse(stdout)).toMatchObject({ verified: true, reservation: { id: RESERVATION.id } });
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(service.requests).toHaveLength(1);
  });

  test('row 28: with no keys kept it is 7, and says why', async () => {
    const report = reportOf(await verify(own, '--offline'));
    expect(report).toMatchObject({ exitCode: 7, code: 'keys_unreachable' });
    expect(`${report.message} ${report.why}`).toContain('--offline fetches none');
    expect(service.requests).toEqual([]);
  });

  test('an issuer that is named is believed by the keys that are kept of it', async () => {
    await verify(own);
    const elsewhere = pointingAt('http://127.0.0.1:9');
    const args = ['verify', '--json', '--offline'];
    const without = await client.run(args, { env: elsewhere, stdin: token(own) });
    expect(reportOf(without)).toMatchObject({ exitCode: 9 });
    const named = await client.run([...args, '--issuer', service.url], { env: elsewhere, stdin: token(own) });
    expect(named).toMatchObject({ exitCode: 0, stderr: '' });
  });
});
