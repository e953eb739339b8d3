import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { createIssuer } from '../../src/tokens/issuer.ts';
import { generateSigningKey, importSigningKey } from '../../src/tokens/signing-key.ts';
import { type Machine, newMachine, type Running, reportOf, reservationIn } from './command.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];

let own: Machine;
let token: string;
let id: string;

beforeAll(async () => {
  own = newMachine();
  id = reservationIn(await own.json(...LINK, '--save', 'link.jwt')).id;
  token = readFileSync(join(own.home, 'link.jwt'), 'utf8').trimEnd();
});

/** Puts a file into the home folder. */
const put = (name: string, content: string | Uint8Array) => writeFileSync(join(own.home, name), content);
const verify = (args: string[], running: Running = {}) =>
  own.run(['--offline', '--json', 'verify', ...args], running);

test.each(['http://example.org/jwks.json', 'http://'])(
  '--jwks %s: 2, nothing is fetched',
  async (address) => {
    const report = reportOf(await own.run(['--json', 'verify', 'link.jwt', '--jwks', address]));
    expect(report).toMatchObject({ code: 'usage', message: `${address} is not an https address.` });
  },
);

describe('a saved reservation', () => {
  test('is the token and a line end, for its owner only', () => {
    const path = join(own.home, 'link.jwt');
    expect(readFileSync(path, 'utf8')).toMatch(/^eyJ[\w-]+\.[\w-]+\.[\w-]+\n$/);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('verifies in a new process', async () => {
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
  });

  test('verifies from standard input, as show --token prints it', async () => {
    const { stdout } = await own.run(['--offline', 'show', id, '--token']);
    for (const args of [[], ['-']]) expect((await verify(args, { stdin: stdout })).exitCode).toBe(0);
    expect((await verify([], { stdin: token })).exitCode).toBe(0);
  });

  test('verifies with --offline while the profile offline is the chosen one', async () => {
    const env = { SLICES_CONN_PROFILE: 'offline' };
    expect((await verify(['link.jwt'], { env })).exitCode).toBe(0);
  });

  test('replaces a file that is there', async () => {
    put('old.jwt', 'old');
    const saved = reservationIn(await own.json(...LINK, '--save', 'old.jwt', '--yes'));
    expect(JSON.parse((await verify(['old.jwt'])).stdout)).toMatchObject({ reservation: { id: saved.id } });
    expect(statSync(join(own.home, 'old.jwt')).mode & 0o777).toBe(0o600);
  });

  test.each(['missing/link.jwt', '.'])('that can’t be saved to %s is not booked: 2', async (path) => {
    const before = await own.json('list', '--all');
    const ended = await own.run(['--offline', '--json', ...LINK, '--save', path]);
    expect(reportOf(ended)).toMatchObject({ code: 'file_unusable', exitCode: 2 });
    expect(await own.json('list', '--all')).toEqual(before);
  });
});

describe('exit 9, never 0', () => {
  /** A token of the built-in service's form, signed by a key of this test's own. */
  async function foreign(claims: Record<string, unknown> = {}) {
    const key = await importSigningKey(await generateSigningKey());
    const issuer = createIssuer({ issuer: 'http://offline.localhost', key });
    put('foreign.json', JSON.stringify(issuer.keySet));
    return issuer.issue({ sub: id, connectivity: reservationIn(await own.json('show', id)), ...claims });
  }

  test('a token that another key signed, in the service’s name', async () => {
    put('forged.jwt', await foreign());
    expect(reportOf(await verify(['forged.jwt'])).exitCode).toBe(9);
    expect(reportOf(await verify(['link.jwt', '--jwks', 'foreign.json'])).exitCode).toBe(9);
  });
});

describe('tokens of one’s own', () => {
  let folder: Machine;
  beforeAll(() => {
    folder = newMachine();
  });

  test('keygen, issue, inspect, verify: one passes what the other made', async () => {
    const { run, home, json } = folder;
    expect(await json('token', 'keygen')).toEqual({ kid: 'key1', key: 'key.json', jwks: 'jwks.json' });
    expect(statSync(join(home, 'key.json')).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(join(home, 'key.json'), 'utf8'))).toMatchObject({
      kty: 'EC',
      crv: 'P-256',
      kid: 'key1',
    });
    const { keys } = JSON.parse(readFileSync(join(home, 'jwks.json'), 'utf8'));
    expect(keys).toMatchObject([{ kty: 'EC', crv: 'P-256', kid: 'key1', alg: 'ES256', use: 'sig' }]);
    expect(keys[0]).not.toHaveProperty('d');

    const issue = ['token', 'issue', '--key', 'key.json', '--issuer', 'https://svc.example.org'];
    const claims = [
      '--sub',
      'robot',
      '--aud',
      'x',
      '--ttl',
      '60',
      '--claim',
      'n=1',
      '--claim',
      's=a=b',
      '--claim',
      'o={"a":[true]}',
    ];
    const { stdout: issued, exitCode, stderr } = await run([...issue, ...claims]);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(issued).toMatch(/^eyJ[\w-]+\.[\w-]+\.[\w-]+\n$/);

    const inspected = await run(['token', 'inspect', '--json'], { stdin: issued });
    const { verified, kind, header, claims: found } = JSON.parse(inspected.stdout);
    expect([verified, kind]).toEqual([false, 'service']);
    expect(header).toMatchObject({ alg: 'ES256', kid: 'key1', typ: 'JWT' });
    expect(found).toMatchObject({
      iss: 'https://svc.example.org',
      sub: 'robot',
      aud: 'x',
      n: 1,
      s: 'a=b',
      o: { a: [true] },
    });
    expect(found.exp - found.iat).toBe(60);

    const check = ['--offline', '--json', 'verify', '--jwks', 'jwks.json'];
    const checked = await run([...check, '--issuer', 'https://svc.example.org'], { stdin: issued });
    expect(JSON.parse(checked.stdout)).toEqual({
      verified: true,
      kind: 'service',
      claims: found,
      reservation: null,
      standing: null,
      as_of: null,
    });
    const other = await run([...check, '--issuer', 'https://other.example.org'], { stdin: issued });
    expect(reportOf(other).exitCode).toBe(9);
  });

  test('the lifetime is 900 s when nothing is said', async () => {
    const { claims } = await folder.json('token', 'issue', '--key', 'key.json', '--issuer', 'x');
    const { iat, exp } = Object(claims);
    expect(exp - iat).toBe(900);
  });

  test('the examples of token --help work as they stand', async () => {
    const { stdout } = await folder.run(['token', '--help']);
    expect(stdout).toContain('slices-conn token keygen --out keys');
    const { exitCode, stderr } = await folder.run(['token', 'keygen', '--out', 'keys']);
    expect([exitCode, stderr]).toEqual([0, '']);
  });
});
