import { beforeAll, describe, expect, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import type { Connection } from '../../src/session/login/connection.ts';
import { json, jwt } from '../client/replies.ts';
import { reportOf } from '../e2e/command.ts';
import {
  type Changes,
  type CommandWorld,
  commandWorld,
  connectionTo,
  NO_SERVICE,
  offlineWorld,
  tokenOf,
} from '../fixtures/command-world.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { claimsOf, IDS, makeKey, makeToken, NOW } from '../fixtures/tokens.ts';
import { person } from './person.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '+1h', '--for', '2h'];
const OFFLINE = '--offline';

/** A world at the built-in server, which is closed at the end. */
async function offline(changes: Changes = {}) {
  const world = await offlineWorld(changes);
  atEndOfFile(() => world.server.close());
  return withReports(world);
}

/** A world at a server whose answers pass a function. */
async function changed(fetch: (request: Request, server: ReferenceServer) => Promise<Response> | Response) {
  const server = await createReferenceServer({ now: () => NOW });
  atEndOfFile(() => server.close());
  return withReports(commandWorld(connectionTo(server, async (request) => fetch(request, server))));
}

/** What answers requests. */
type Fetch = NonNullable<Connection['fetch']>;

/** A world at services that give this answer to everything. */
function answering(fetch: Fetch, userToken = 'user.token.canary', changes: Changes = {}) {
  const connection = { fetch, userToken: tokenOf(async () => userToken), close: async () => undefined };
  return withReports(commandWorld(connection, changes));
}

const withReports = <World extends CommandWorld>(world: World) => ({
  ...world,
  /** The failure of a command. */
  report: async (...args: string[]) => reportOf(await world.run(OFFLINE, '--json', ...args)),
  /** What a command prints. */
  json: async (...args: string[]) => JSON.parse((await world.run(OFFLINE, '--json', ...args)).stdout),
});

describe('deleting asks first', () => {
  /** A world with a reservation, and a person who answers every prompt like this. */
  async function asked(answer: boolean | undefined) {
    const { ask, questions } = person(answer ? 'y' : 'n');
    const world = await offline(answer === undefined ? {} : { ask });
    const id: string = (await world.json(...LINK)).reservation.id;
    return { world, id, questions };
  }

  test.each<[string, boolean | undefined, string[], number, boolean, number]>([
    ['yes', true, [], 0, true, 1],
    ['no', false, [], 0, false, 1],
    ['--no-input', true, ['--no-input'], 2, false, 0],
    ['--no-input and --yes', true, ['--no-input', '--yes'], 0, true, 0],
    ['nobody there', undefined, [], 2, false, 0],
  ])('%s', async (_, answer, flags, exitCode, gone, times) => {
    const { world, id, questions } = await asked(answer);
    const result = await world.run(OFFLINE, 'delete', id, ...flags);
    expect(result.exitCode).toBe(exitCode);
    expect((await world.run(OFFLINE, 'show', id)).exitCode).toBe(gone ? 3 : 0);
    expect(questions).toEqual(Array(times).fill(expect.stringContaining(id)));
    if (answer === false && times > 0)
      expect(result).toMatchObject({ stdout: '', stderr: 'Nothing was deleted.\n' });
  });
});

test.each([
  '--offline --json --quiet list',
  '--profile offline --json --quiet list',
  'list --experiment=demo --offline --json --quiet',
  '--tz UTC --color never --timeout 5 --no-input --yes --debug --offline --json --quiet list',
  'list --tz UTC --color never --timeout 5 --no-input --yes --debug --offline --json --quiet',
  '--offline --json experiment list',
  'experiment --offline --json list',
  'experiment list --offline --json',
])('global flags are accepted before, within and after the command: %s', async (command) => {
  const world = await offline();
  await world.run(OFFLINE, ...LINK);
  const { exitCode, stdout, stderr } = await world.run(...command.split(' '));
  expect([exitCode, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toHaveProperty('items.length', 1);
});

test('--quiet silences notices, not errors', async () => {
  const world = commandWorld(NO_SERVICE, { variables: { SLICES_CONN_BASE_URL: 'http://127.0.0.1:4280' } });
  const noticed = await world.run('profile', 'list');
  expect(noticed.stderr).toMatch(/^These variables override/);
  expect(await world.run('profile', 'list', '--quiet')).toEqual({ ...noticed, stderr: '' });
  const failed = await world.run('--quiet', 'profile', 'show', 'nope');
  expect([failed.exitCode, failed.stderr]).toEqual([3, expect.stringMatching(/^error: /)]);
});

describe('a failure with --json: its exit code, nothing on stdout, the error object on the last line of stderr', () => {
  let world: Awaited<ReturnType<typeof offline>>;
  let id: string;
  const UNKNOWN = 'con_offline.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q';

  beforeAll(async () => {
    world = await offline();
    id = (await world.json(...LINK)).reservation.id;
    await world.run(OFFLINE, 'experiment', 'create', 'second', '--end', '+1d');
    world.files.set('garbage', 'garbage');
    world.files.set('-', '');
  });

  test.each<[number, string]>([
    [2, 'reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h --name Nightly'],
    [2, 'reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h --wait --dry-run'],
    [3, 'show x'],
    [3, 'delete --yes x'],
    [2, 'delete --yes --if-exists a/b'],
    [2, `update ${UNKNOWN} --extend soon`],
    [2, 'list --timeout soon'],
    [3, 'list --experiment nope'],
    [3, 'project token --project nope'],
    [2, 'list --profile nope'],
    [2, 'list --profile local'],
    [2, 'reserve be-gent1 pl-poznan1 --start-now --for 2h'],
    [2, 'reserve be-gent1 --bandwidth 1G --start-now --for 2h'],
    [2, 'reserve be-gent1 pl-poznan1 fr-lille --bandwidth 1G --start-now --for 2h'],
    [2, 'reserve be-gent1 pl-poznan1 --bandwidth 1G --start 2026-12-01T10:00 --for 2h --tz Nowhere/City'],
    [2, '--tz Mars/X token inspect garbage'],
    [2, 'experiment create demo --end +1d'],
    [2, 'experiment create -third- --end +1d'],
    [3, 'experiment use nope'],
    [2, 'verify missing'],
    [2, 'token issue'],
    [2, 'token issue --key missing --issuer https://svc.example.org'],
    [2, 'token issue --key garbage --issuer https://svc.example.org'],
    [3, `show ${UNKNOWN}`],
    [3, `update ${UNKNOWN} --extend 1h`],
    [3, `delete --yes ${UNKNOWN}`],
    [5, 'show ID --experiment second'],
    [5, 'update ID --extend 1h --experiment second'],
    [5, 'delete --yes ID --experiment second'],
    [6, 'reserve be-gent1 uk-london --bandwidth 1G --start-now --for 2h'],
    [6, 'reserve be-gent1 be-gent1 --bandwidth 1G --start-now --for 2h'],
    [6, 'reserve be-gent1 gr-uth --bandwidth 2G --start-now --for 2h'],
    [6, 'reserve be-gent1 pl-poznan1 --bandwidth 101G --start-now --for 2h'],
    [6, 'reserve be-gent1 pl-poznan1 --bandwidth 1G --start 2020-01-01T00:00:00Z --for 2h'],
    [6, 'reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 91d'],
    [6, 'update ID --end +91d'],
    [6, 'experiment create third --end +1000d'],
    [9, 'verify garbage'],
    [9, 'verify'],
    [9, 'token inspect garbage'],
    [9, 'token inspect'],
  ])('%i: %s', async (exitCode, command) => {
    const args = command.replace('ID', id).split(' ');
    const experiment = args.includes('--experiment') ? [] : ['--experiment', 'demo'];
    expect((await world.report(...experiment, ...args)).exitCode).toBe(exitCode);
  });

  test('a token in a variable that the service refuses is explained (4)', async () => {
    const variable = 'SLICES_CONN_USER_TOKEN';
    const known = { origin: 'environment', where: variable, variable } as const;
    const userToken = { ...tokenOf(async () => 'canary'), ...known };
    const refused = withReports(commandWorld({ ...connectionTo(world.server), userToken }));
    const report = await refused.report('project', 'list');
    expect(report).toMatchObject({ exitCode: 4, why: expect.stringContaining(variable) });
    expect(report.fix).toBe(`unset ${variable} && slices-conn --offline login`);
    expect(JSON.stringify(report)).not.toContain('canary');
  });

  const DELETE = ['--experiment', 'demo', 'delete', '--yes', UNKNOWN];
  test('delete of several of which one is not known: nothing was deleted', async () => {
    const why = expect.stringMatching(/ Nothing was deleted\.$/);
    expect(await world.report(...DELETE, 'nope')).toMatchObject({ exitCode: 3, why });
  });

  test('delete --if-exists of what is gone or not known is exit 0', async () => {
    expect(await world.json(...DELETE, '--if-exists', 'x')).toEqual({
      items: [UNKNOWN, 'x'].map((id) => ({ id, deleted: false, again: null })),
    });
  });

  test('none of these commands changed the reservation', async () => {
    expect(await world.json('--experiment', 'demo', 'list', '--all')).toMatchObject({
      items: [{ reservation: { id, bandwidth: 1000 } }],
    });
  });
});

describe('row 24: one flipped byte anywhere in a saved reservation', () => {
  let world: Awaited<ReturnType<typeof offline>>;
  let saved: Buffer;
  beforeAll(async () => {
    world = await offline();
    await world.run(OFFLINE, ...LINK, '--save', 'link.jwt');
    saved = Buffer.from(world.files.get('link.jwt') ?? '');
  });

  test('unflipped, the file verifies', async () => {
    expect(saved.at(-1)).toBe(0x0a);
    expect((await world.run(OFFLINE, 'verify', 'link.jwt')).exitCode).toBe(0);
  });

  // The lowest bit, the bit of the case, the one that makes the byte invalid text; then a missing and a doubled byte.
  const WAYS: readonly [string, (byte: number) => number[]][] = [
    ...[0x01, 0x20, 0x80].map((bit): [string, (byte: number) => number[]] => [
      `bit ${bit}`,
      (byte) => [byte ^ bit],
    ]),
    ['missing', () => []],
    ['doubled', (byte) => [byte, byte]],
  ];

  // Each byte in one of the ways: verification itself is tried with more (test/tokens/verify-form.test.ts).
  test.each(WAYS.map(([name, change], way) => ({ name, change, way })))(
    '$name: exit 9, and nothing is reported as verified',
    async ({ change, way }) => {
      const accepted: number[] = [];
      // Without its last byte, the line end, the file is still the token.
      for (const [position, byte] of saved.subarray(0, -1).entries()) {
        if (position % WAYS.length !== way) continue;
        const [before, after] = [saved.subarray(0, position), saved.subarray(position + 1)];
        world.files.set('changed.jwt', Buffer.concat([before, Buffer.from(change(byte)), after]));
        const { exitCode, stdout } = await world.run(OFFLINE, 'verify', 'changed.jwt');
        if (exitCode !== 9 || stdout !== '') accepted.push(position);
      }
      expect(accepted).toEqual([]);
    },
  );
});

/** Every kind of control sequence. */
const EVIL = 'a\u001b]0;t\u0007\u001b[2J\r\n\u009b31m\u202e\u200bz';
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/;

describe('row 7: text from a service or a token is escaped before it reaches a terminal', () => {
  const entry = { name: EVIL, description: EVIL, role: EVIL, created_at: EVIL };
  const experiment = { ...entry, expires_at: '2027-01-01T00:00:00Z', id: IDS.experiment, project_id: EVIL };
  const project = { ...entry, expires_at: '2027-01-01T00:00:00Z', id: IDS.project };
  const problem = { msg: EVIL, type: EVIL };
  const detail = [
    { ...problem, loc: ['Site'] },
    { ...problem, loc: [] },
  ];

  /** A service that puts this text into every answer. */
  const hostile: Fetch = async ({ url, method }) => {
    const { pathname } = new URL(url);
    if (method === 'POST' && pathname.includes('/experiments')) return json(experiment, 201);
    if (pathname.endsWith('/projects/')) return json({ projects: [project] });
    if (pathname.endsWith('/experiments/')) return json({ experiments: [experiment] });
    return pathname.includes('/experiments/') ? jwt('a.b.c') : json({ detail }, 422);
  };

  test.each([
    ['project show', 0],
    ['experiment list', 0],
    ['experiment show', 0],
    ['experiment create new --end +1d', 0],
    ['project token', 6],
    // A service whose description can't be had, and whose list is refused, has none.
    ['list', 0],
    ['sites', 6],
    [LINK.join(' '), 6],
    [`show ${IDS.reservation}`, 6],
    [`delete --yes ${IDS.reservation}`, 6],
    [`delete --yes ${IDS.reservation} con_conn.example.org_2`, 6],
  ])('%s', async (command, exitCode) => {
    const result = await answering(hostile).run(OFFLINE, '--debug', ...command.split(' '));
    expect(result.exitCode).toBe(exitCode);
    expect(result.stdout).not.toMatch(OBEYED);
    expect(result.stderr).not.toMatch(OBEYED);
    expect(result.stdout + result.stderr).toMatch(/\S/);
  });

  const claims = { [EVIL]: EVIL, iss: EVIL, list: [EVIL], exp: 1e300, iat: -1 };
  const verify = [OFFLINE, 'verify', '--jwks', 'k'];
  test.each<[string, object, object, string[], string]>([
    ['the claims and the header of any', claims, { [EVIL]: EVIL, kid: EVIL }, ['token', 'inspect'], 'not v'],
    ['a valid one', claimsOf('service', { [EVIL]: EVIL, sub: EVIL }), {}, verify, 'verified'],
    ['a valid reservation', claimsOf('connectivity', { iss: EVIL }), {}, verify, 'Verified'],
  ])('the text of a token, %s', async (_, payload, header, args, said) => {
    const [world, key] = [answering(hostile), makeKey()];
    world.files.set('-', makeToken(key, { ...payload }, { header: { ...header } }));
    world.files.set('k', JSON.stringify({ keys: [key.jwk] }));
    const { exitCode, stdout } = await world.run(...args);
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('a\\u001b]0;t')]);
    expect(stdout).not.toMatch(OBEYED);
    expect(stdout.split('\n')[0]).toContain(said);
  });
});

describe('row 11: secrets are never printed', () => {
  const CANARY = 'Q0FOQVJZ';
  const TOKEN = `${CANARY}.${CANARY}.${CANARY}`;

  /** Services that give this answer to everything except the portal's lists. */
  function portalOf(answer: () => Response, userToken = TOKEN) {
    return answering(async ({ url }) => {
      const { pathname } = new URL(url);
      if (pathname.endsWith('/experiments/'))
        return json({ experiments: [{ id: IDS.experiment, name: 'demo' }] });
      if (pathname.endsWith('/projects/')) return json({ projects: [{ id: IDS.project, name: 'demo' }] });
      return pathname.includes('/experiments/') ? jwt(TOKEN) : answer();
    }, userToken);
  }
  const failing = (error: Error) => (): never => {
    throw error;
  };

  const commands = [
    'list',
    'sites',
    `show ${IDS.reservation}`,
    `update ${IDS.reservation} --bandwidth 2G`,
    `delete --yes ${IDS.reservation}`,
    'project token',
    LINK.join(' '),
    'verify',
    'token inspect',
  ];

  test.each<[string, () => Response, string?]>([
    ['refuses', () => json({ detail: 'No.' }, 403)],
    ['fails', () => new Response('<p>', { status: 503 })],
    ['redirects', () => new Response(null, { status: 307 })],
    ['answers with a token that does not verify', () => jwt(TOKEN)],
    ['is away', failing(new TypeError('fetch failed'))],
    ['breaks', failing(new RangeError('a defect'))],
    ['gets a token that no header can carry', () => json({}), `${TOKEN}\r\nX-Evil: 1`],
  ])('when the service %s, for every command, with --debug and --json', async (_, answer, userToken) => {
    const world = portalOf(answer, userToken);
    world.files.set('-', TOKEN);
    for (const command of commands) {
      for (const flags of [[], ['--debug'], ['--json', '--debug']]) {
        const { exitCode, stdout, stderr } = await world.run(OFFLINE, ...flags, ...command.split(' '));
        // A deletion needs no proof: any 2xx except a page succeeds.
        if (!command.startsWith('delete')) expect([command, exitCode === 0]).toEqual([command, false]);
        expect(stdout + stderr).not.toContain(CANARY);
      }
    }
  });
});

describe('row 28: verify fails when it checked nothing', () => {
  const key = makeKey();
  const token = makeToken(key, claimsOf('connectivity'));
  const keys = (...jwks: object[]): string => JSON.stringify({ keys: jwks });
  const [own, other] = [keys(key.jwk), keys(makeKey('ES256', {}, 'other').jwk)];
  const PORTAL = ['--issuer', 'https://portal.example.org'];

  /** What is verified, the key set and more flags. */
  test.each<[string, string, string | undefined, string[], number]>([
    ['a line end', '\n', undefined, [], 9],
    ['keys that can’t be had', token, undefined, PORTAL, 7],
    ['an issuer that nobody trusts', token, undefined, [], 9],
    ['an empty key set', token, keys(), [], 9],
    ['the key set of another key', token, other, [], 9],
    ['another issuer than the one that was named', token, own, ['--issuer', 'https://other.example.org'], 9],
    ['a key set that is garbage', token, 'garbage', [], 2],
    ['a key set that is a key', token, JSON.stringify(key.jwk), [], 2],
    ['a key set that is not there', token, undefined, ['--jwks', 'none'], 2],
    ['half of it', `${token.slice(0, 99)} ${token.slice(99)}`, own, [], 9],
    ['an expired token', makeToken(key, claimsOf('connectivity', { exp: NOW / 1000 })), own, [], 9],
    ['all that it takes', token, own, [], 0],
    ['all that it takes, with a line end', `${token}\n`, own, PORTAL, 0],
    ...[`${token}\r`, `${token}\r\n`, `${token}\n\n`, ` ${token} `, `\ufeff${token}`, `"${token}"\n`]
      .concat(`Bearer ${token}`)
      .map((pasted): [string, string, string, string[], number] => [
        `all that it takes, pasted as ${JSON.stringify(pasted.replace(token, 'TOKEN'))}`,
        pasted,
        own,
        [],
        0,
      ]),
  ])('%s', async (_, typed, jwks, flags, exitCode) => {
    const world = answering(async () => new Response(null, { status: 404 }));
    world.files.set('-', typed);
    if (jwks !== undefined) world.files.set('k', jwks);
    const given = jwks === undefined ? flags : ['--jwks', 'k', ...flags];
    const result = await world.run(OFFLINE, '--json', 'verify', ...given);
    expect([result.exitCode, result.stdout === '']).toEqual([exitCode, exitCode !== 0]);
  });
});

test('a defect is exit 1, and says what to do', async () => {
  const connect = async (): Promise<never> => {
    throw new TypeError('x is undefined');
  };
  const world = answering(async () => json({}), undefined, { connect });
  const { exitCode, stdout, stderr } = await world.run(OFFLINE, 'list');
  expect([exitCode, stdout]).toEqual([1, '']);
  expect(stderr).toContain('--debug');
  expect(stderr).not.toContain(' at ');
});

describe('row 45: the advised command names the same services as the failed one', () => {
  test.each<[string, string]>([
    ['--profile=lab show X', 'slices-conn --profile lab list'],
    ['show --profile lab X', 'slices-conn --profile lab list'],
    ['show X --offline', 'slices-conn --offline list'],
    ['--experiment=demo show X', 'slices-conn --experiment demo list'],
    ['delete --reason --offline y X', 'slices-conn --offline list'],
    ['delete --reason --profile lab y X', 'slices-conn --profile lab list'],
    ['--profile --offline show X', 'slices-conn --profile --offline list'],
    ['show -- X --offline', 'slices-conn show --help'],
    ['delete --reason --offline X', 'slices-conn --offline list'],
  ])('%s: %s', async (line, fix) => {
    const world = commandWorld(NO_SERVICE);
    const { stderr, exitCode } = await world.run(...line.split(' '));
    expect(exitCode).toBe(2);
    expect(stderr).toContain(`  try: ${fix}\n`);
  });
});

test.each([LINK, ['list']])(
  '%s, of a service that can’t be reached: 7, and nothing was changed',
  async (...args) => {
    const world = answering(async () => {
      throw new Failure('network', 'Nobody is there.', { why: 'connect ECONNREFUSED.' });
    });
    expect(await world.report(...args)).toMatchObject({
      ...{ exitCode: 7, maybeDone: false, why: 'connect ECONNREFUSED. Nothing was changed.' },
    });
  },
);

describe('row 45: --dry-run creates no reservation', () => {
  test.each<[string, () => Response]>([
    ['describes none', () => Response.json({ paths: {} })],
    ['has no description', () => new Response(null, { status: 404 })],
  ])('at a service that %s: exit 3, nothing sent', async (_, description) => {
    const sent: string[] = [];
    const world = await changed((request, server) => {
      if (new URL(request.url).pathname === '/api-spec') return description();
      sent.push(request.method);
      return server.fetch(request);
    });
    const report = await world.report(...LINK, '--dry-run');
    expect(report).toMatchObject({ code: 'not_supported', exitCode: 3, maybeDone: false });
    expect(sent).not.toContain('POST');
  });

  test('row 43: a lost answer is reported with maybeDone false', async () => {
    const world = await changed((request, server) => {
      if (request.url.includes('dry_run=true')) throw new TypeError('fetch failed');
      return server.fetch(request);
    });
    const report = await world.report(...LINK, '--dry-run');
    expect(report).toMatchObject({ exitCode: 7, maybeDone: false, retryable: true });
    expect(report.why).toContain('A dry run books nothing.');
  });

  test('the advised command after a refusal has --dry-run too', async () => {
    const world = await offline();
    const wanted = LINK.map((word) => (word === '1G' ? '101G' : word));
    const { fix } = await world.report(...wanted, '--dry-run');
    const { stdout } = await world.run(...(fix ?? '').split(' ').slice(1));
    expect(JSON.parse(stdout)).toMatchObject({ dryRun: true });
  });
});

describe('at a service that signs nothing', () => {
  const unsigned = () =>
    changed((request, server) => {
      if (request.url.includes('/connectivity')) request.headers.set('accept', 'application/json');
      return server.fetch(request);
    });

  test('what is not signed is saved by neither reserve nor show, and both say so: exit 0', async () => {
    const world = await unsigned();
    const save = ['--allow-unsigned', '--save', 'link.jwt'];
    const stderr = 'Warning: link.jwt was not written, since this service signs nothing.\n';
    const made = await world.run(OFFLINE, '--json', ...LINK, ...save);
    expect(made).toMatchObject({ exitCode: 0, stderr });
    const { id } = JSON.parse(made.stdout).reservation;
    expect(await world.run(OFFLINE, 'show', id, ...save)).toMatchObject({
      ...{ exitCode: 0, stderr },
      stdout: expect.not.stringContaining('saved to'),
    });
    expect(world.files.size).toBe(0);
  });

  test('an unsigned answer advises `show`, not a second `reserve`', async () => {
    const world = await unsigned();
    const { code, exitCode, reservation, fix } = await world.report(...LINK);
    expect([code, exitCode]).toEqual(['unsigned', 9]);
    expect(fix).toBe(`slices-conn --offline show ${reservation} --allow-unsigned`);
    const shown = await world.run('--json', ...(fix ?? '').split(' ').slice(1));
    expect(JSON.parse(shown.stdout)).toMatchObject({ reservation: { id: reservation }, verified: false });
    expect((await world.json('list', '--all')).items).toHaveLength(1);
  });
});

describe('row 45: an answer to `reserve` that does not verify', () => {
  const signed = (sub: string): string =>
    [{ alg: 'ES256' }, { sub }, 'x']
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');

  test.each<[string, string, string]>([
    ['is no token', 'garbage', 'slices-conn --offline list'],
    ['names a command', signed('x; touch run'), 'slices-conn --offline list'],
    ['names a reservation', signed(IDS.reservation), `slices-conn --offline show ${IDS.reservation}`],
  ])('and %s: the report has maybeDone, and the next step is safe', async (_, body, fix) => {
    const world = await changed(async (request, server) => {
      // A service without extensions.
      if (request.url.endsWith('/api-spec')) return new Response(null, { status: 404 });
      const reply = await server.fetch(request);
      return request.method === 'POST' ? jwt(body) : reply;
    });
    const report = await world.report(...LINK);
    expect(report).toMatchObject({ exitCode: 9, maybeDone: true, retryable: false, fix });
  });

  test('because the service’s keys can’t be fetched: the report names the reservation, which exists', async () => {
    let sent = 0;
    const world = await changed((request, server) => {
      if (request.url.endsWith('jwks.json')) throw new Failure('network', 'Nobody is there.');
      if (request.method === 'POST') sent += 1;
      return server.fetch(request);
    });
    const report = await world.report(...LINK);
    expect(report).toMatchObject({ maybeDone: true, retryable: false });
    expect(report.fix).toBe(`slices-conn --offline show ${report.reservation}`);
    expect(sent).toBe(1);
  });
});
