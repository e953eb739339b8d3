import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Machine, newMachine, type Running, reportOf, reservationIn } from './command.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];

let own: Machine;
let id: string;

beforeAll(async () => {
  own = newMachine();
  id = reservationIn(await own.json(...LINK, '--save', 'link.jwt')).id;
});

const verify = (args: string[], running: Running = {}) =>
  own.run(['--offline', '--json', 'verify', ...args], running);

describe('a saved reservation', () => {
  test('is the token and a line end, for its owner only, and verifies', async () => {
    const path = join(own.home, 'link.jwt');
    expect(readFileSync(path, 'utf8')).toMatch(/^eyJ[\w-]+\.[\w-]+\.[\w-]+\n$/);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const { exitCode, stdout } = await verify(['link.jwt']);
    expect(exitCode).toBe(0);
    const printed = JSON.parse(stdout);
    expect(Object.keys(printed)).toEqual(['verified', 'kind', 'claims', 'reservation', 'standing', 'as_of']);
    expect(printed).toMatchObject({
      verified: true,
      kind: 'connectivity',
      claims: { sub: id, iss: 'http://offline.localhost' },
      reservation: { id, site1: 'be-gent1', bandwidth: 1000 },
    });
    // The profile offline may be the chosen one, too.
    const env = { SLICES_CONN_PROFILE: 'offline' };
    expect((await verify(['link.jwt'], { env })).exitCode).toBe(0);
  });

  test('is saved by show too; a file that is there is replaced with --yes only', async () => {
    const show = ['show', id, '--save', 'shown.jwt'];
    const { token } = await own.json(...show);
    const path = join(own.home, 'shown.jwt');
    expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual([`${token}\n`, 0o600]);
    writeFileSync(path, 'another');
    const unasked = await own.run(['--offline', '--json', ...show]);
    expect(reportOf(unasked)).toMatchObject({ code: 'usage', exitCode: 2 });
    expect(readFileSync(path, 'utf8')).toBe('another');
    await own.json(...show, '--yes');
    expect((await verify(['shown.jwt'])).exitCode).toBe(0);
  });

  test('that can’t be saved is not booked: 2', async () => {
    const before = await own.json('list', '--all');
    const ended = await own.run(['--offline', '--json', ...LINK, '--save', 'missing/link.jwt']);
    expect(reportOf(ended)).toMatchObject({ code: 'file_unusable', exitCode: 2 });
    expect(await own.json('list', '--all')).toEqual(before);
  });
});

test('tokens of one’s own: keygen, issue, inspect, verify: one passes what the other made', async () => {
  const { run, home, json } = newMachine();
  expect(await json('token', 'keygen')).toEqual({ kid: 'key1', key: 'key.json', jwks: 'jwks.json' });
  expect(statSync(join(home, 'key.json')).mode & 0o777).toBe(0o600);
  const read = (name: string) => JSON.parse(readFileSync(join(home, name), 'utf8'));
  expect(read('key.json')).toMatchObject({ kty: 'EC', crv: 'P-256', kid: 'key1' });
  const { keys } = read('jwks.json');
  expect(keys).toMatchObject([{ kty: 'EC', crv: 'P-256', kid: 'key1', alg: 'ES256', use: 'sig' }]);
  expect(keys[0]).not.toHaveProperty('d');

  const issue = ['token', 'issue', '--key', 'key.json', '--issuer', 'https://svc.example.org'];
  const claims = '--sub robot --aud x --ttl 60 --claim n=1 --claim s=a=b --claim o={"a":[true]}'.split(' ');
  const { stdout: issued, exitCode, stderr } = await run([...issue, ...claims]);
  expect([exitCode, stderr]).toEqual([0, '']);
  expect(issued).toMatch(/^eyJ[\w-]+\.[\w-]+\.[\w-]+\n$/);

  const inspected = await run(['token', 'inspect', '--json'], { stdin: issued });
  const { verified, kind, header, claims: found } = JSON.parse(inspected.stdout);
  expect([verified, kind]).toEqual([false, 'service']);
  expect(header).toMatchObject({ alg: 'ES256', kid: 'key1', typ: 'JWT' });
  const due = { sub: 'robot', aud: 'x', n: 1, s: 'a=b', o: { a: [true] } };
  expect(found).toMatchObject({ iss: 'https://svc.example.org', ...due });
  expect(found.exp - found.iat).toBe(60);

  const check = ['--offline', '--json', 'verify', '--jwks', 'jwks.json'];
  const checked = await run([...check, '--issuer', 'https://svc.example.org'], { stdin: issued });
  const nothing = { reservation: null, standing: null, as_of: null };
  expect(JSON.parse(checked.stdout)).toEqual({ verified: true, kind: 'service', claims: found, ...nothing });
  const other = await run([...check, '--issuer', 'https://other.example.org'], { stdin: issued });
  expect(reportOf(other).exitCode).toBe(9);
  const { iat, exp } = Object((await json('token', 'issue', '--key', 'key.json', '--issuer', 'x'))['claims']);
  expect(exp - iat).toBe(900);
});
