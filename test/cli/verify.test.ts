import { describe, expect, onTestFinished, test } from 'vitest';
import { createReferenceServer } from '../../src/reference-server.ts';
import { reportOf } from '../e2e/command.ts';
import { commandWorld, connectionTo, NO_SERVICE } from '../fixtures/command-world.ts';
import { claimsOf, makeKey, makeToken, NOW } from '../fixtures/tokens.ts';

const HOUR = 3_600_000;
const LOCAL = 'http://127.0.0.1:4280';

const [ISSUER, JWKS] = ['http://offline.localhost', '/.well-known/jwks.json'];

/** A machine that has booked a link for two hours and saved the proof. */
async function machine({ baseUrl = ISSUER, flags = ['--offline'] } = {}) {
  let now = NOW;
  let isAway = false;
  const server = await createReferenceServer({ baseUrl, now: () => now });
  onTestFinished(() => server.close());
  const answer = async (request: Request) =>
    isAway ? new Response(null, { status: 503 }) : server.fetch(request);
  const world = commandWorld(connectionTo(server, answer), { now: () => now });
  const run = (...args: string[]) => world.run(...flags, '--json', ...args);
  const link = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
  const { stdout } = await run('reserve', ...link, '--name', 'kth', '--save', 'link.jwt');
  return {
    ...{ server, world, answer, now: () => now, run },
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

test.each<[Record<string, string>, string[], string]>([
  [{ SLICES_CONN_BASE_URL: 'x' }, [], 'SLICES_CONN_BASE_URL is not a valid value for baseUrl.'],
  [{ SLICES_CONN_PROFILE: 'nope' }, [], 'There is no profile nope.'],
  [{}, ['--profile', 'slices'], 'Profile slices has no addresses yet.'],
])('--offline, with %j and %j: %s', async (variables, flags, message) => {
  const world = commandWorld(NO_SERVICE, { variables });
  world.files.set('link.jwt', makeToken(makeKey(), claimsOf('connectivity')));
  const ended = await world.run('--offline', 'verify', '--json', 'link.jwt', ...flags);
  expect(reportOf(ended).message).toBe(message);
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
    const told = ({ verified, error }: { verified: boolean; error?: { code: string } }) =>
      error?.code ?? verified;
    expect(items.map(told)).toEqual(due);
    const { stdout } = await world.run('--offline', 'verify', ...files);
    const rows = stdout.trimEnd().split('\n').slice(1);
    expect(rows.map((row) => / yes +be-gent1 – pl-poznan1, 1 Gbps/.test(row))).toEqual(
      due.map((one) => one === true),
    );
    if (files[0] === '-') expect(rows.map((row) => row.slice(0, 3))).toEqual(['-:1', '-:2', '-:4']);
  });
});

test('over the network another person’s machine asks the service, and says of when its answer is', async () => {
  const { server, answer, now, world, after } = await machine({ baseUrl: LOCAL, flags: [] });
  const other = commandWorld(connectionTo(server, answer), { now });
  other.files.set('link.jwt', world.files.get('link.jwt') ?? '');
  after(12 / 3600);
  const { stdout } = await other.run('verify', 'link.jwt', '--json');
  const as_of = new Date(NOW + 12_000).toISOString();
  expect(JSON.parse(stdout)).toMatchObject({ verified: true, standing: 'stands', as_of });
  after(24 / 3600);
  expect((await other.run('verify', 'link.jwt')).stdout).toContain('valid, as of 12 s ago');
});

test('a proof with its key beside it needs no service: the thumbprint says which key counts', async () => {
  const { run, world, leave } = await machine({ baseUrl: LOCAL, flags: [] });
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
  const refused = reportOf(await verify(`${shown.key}x`));
  expect(refused).toMatchObject({ code: 'unverified', exitCode: 9 });
  expect(refused.why).toContain(`The file has: thumbprint ${shown.key}`);
  other.files.delete('kept.jwt.jwks.json');
  expect(reportOf(await verify(shown.key)).why).toContain('show ID --save FILE --with-key');
  expect(reportOf(await other.run('verify', 'kth', '--json')).fix).toBe(
    'slices-conn show kth --save kth.jwt',
  );
  other.files.set('-', other.files.get('kept.jwt') ?? '');
  expect(reportOf(await other.run('verify', '--key', shown.key, '--json'))).toMatchObject({
    code: 'usage',
    message: '--key needs --jwks where the token comes from standard input.',
  });
});
