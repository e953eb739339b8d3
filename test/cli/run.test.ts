import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HELP_TOPICS } from '../../src/cli/help-topics.ts';
import { Failure } from '../../src/contract/failure.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import type { Connection } from '../../src/session/login/connection.ts';
import { json, jwt } from '../client/replies.ts';
import { reportOf } from '../e2e/command.ts';
import {
  allCommands,
  type CommandWorld,
  commandWorld,
  connectionTo,
  NO_SERVICE,
  offlineWorld,
  tokenOf,
} from '../fixtures/command-world.ts';
import { claimsOf, IDS, makeKey, makeToken, NOW } from '../fixtures/tokens.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '+1h', '--for', '2h'];
const OFFLINE = '--offline';

test.each([
  ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', 'lots', '--start', '+1h', '--for', '2h'],
  ['reserve', 'be-gent1', 'pl-poznan1', '--volume', 'lots', '--end', '+1d'],
  ['update', 'con_a_01jd3x0m2sf0vrv9mhb1wk6x4q', '--bandwidth', 'lots'],
  ['availability', 'be-gent1', '--bandwidth', 'lots', '--duration', '1h'],
  ['run', 'be-gent1', 'pl-poznan1', '--bandwidth', 'lots', '--for', '2h', '--', 'true'],
])('%s: a value that can’t be read leads to the help of this command', async (...args) => {
  const report = reportOf(await commandWorld(NO_SERVICE).run('--json', ...args));
  expect(report).toMatchObject({ exitCode: 2, fix: `slices-conn ${args[0]} --help` });
});

describe('deleting asks first', () => {
  /** A world with a reservation, and a person who answers every prompt like this. */
  async function asked(answer: boolean | undefined) {
    const questions: string[] = [];
    const world = await offlineWorld({
      ...(answer === undefined
        ? {}
        : {
            ask: async (question: string) => {
              questions.push(question);
              return answer ? 'y' : 'n';
            },
          }),
    });
    const { stdout } = await world.run(OFFLINE, '--json', ...LINK);
    const id: string = JSON.parse(stdout).reservation.id;
    const deleted = async () => (await world.run(OFFLINE, 'show', id)).exitCode === 3;
    return { world, id, questions, deleted };
  }

  test.each<[string, boolean | undefined, string[], number, boolean, number]>([
    ['yes', true, [], 0, true, 1],
    ['no', false, [], 0, false, 1],
    ['--yes', false, ['--yes'], 0, true, 0],
    ['--no-input', true, ['--no-input'], 2, false, 0],
    ['--no-input and --yes', true, ['--no-input', '--yes'], 0, true, 0],
    ['nobody there', undefined, [], 2, false, 0],
    ['nobody there, and --yes', undefined, ['--yes'], 0, true, 0],
  ])('%s', async (_, answer, flags, exitCode, gone, times) => {
    const { world, id, questions, deleted } = await asked(answer);
    const result = await world.run(OFFLINE, 'delete', id, ...flags);
    expect(result.exitCode).toBe(exitCode);
    expect(await deleted()).toBe(gone);
    expect(questions).toHaveLength(times);
    for (const question of questions) expect(question).toContain(id);
    if (answer === false && times > 0)
      expect(result).toMatchObject({ stdout: '', stderr: 'Nothing was deleted.\n' });
    await world.server.close();
  });

  test('does not ask about a reservation that is not known', async () => {
    const { world, questions } = await asked(true);
    expect((await world.run(OFFLINE, 'delete', 'x')).exitCode).toBe(3);
    expect(questions).toEqual([]);
    await world.server.close();
  });
});

describe('global flags', () => {
  let world: Awaited<ReturnType<typeof offlineWorld>>;
  beforeAll(async () => {
    world = await offlineWorld();
    await world.run(OFFLINE, ...LINK);
  });
  afterAll(() => world.server.close());

  test.each([
    '--offline --json --quiet list',
    '--json list --quiet --offline',
    '--profile offline --json --quiet list',
    '--offline --json --experiment demo --quiet list',
    'list --experiment=demo --offline --json --quiet',
    'list --all --offline --json --quiet',
    '--tz UTC --color never --timeout 5 --no-input --yes --debug --offline --json --quiet list',
    'list --tz UTC --color never --timeout 5 --no-input --yes --debug --offline --json --quiet',
  ])('are accepted before and after the command: %s', async (command) => {
    const { exitCode, stdout, stderr } = await world.run(...command.split(' '));
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toHaveProperty('items.length', 1);
  });

  test.each([
    '--offline --json experiment list',
    'experiment --offline --json list',
    'experiment list --offline --json',
  ])('are accepted before, within and after a command of two words: %s', async (command) => {
    const { exitCode, stdout } = await world.run(...command.split(' '));
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toHaveProperty('items.length', 1);
  });
});

describe('help', async () => {
  /** Every command and group that help shows, as typed. */
  const paths = (command: Command): string[] =>
    command.commands.flatMap((child) => {
      const path = `${command.parent ? `${command.name()} ` : ''}${child.name()}`;
      return [path, ...paths(child).map((below) => (command.parent ? `${command.name()} ${below}` : below))];
    });
  const all = paths(await allCommands());

  test.each([
    ...[
      '',
      '--help',
      '-h',
      'help',
      'token',
      'rm --help',
      'help rm',
      'experiment ls --help',
      'token issue -h',
    ],
    ...HELP_TOPICS.map((topic) => `help ${topic}`),
    ...all.filter((path) => !path.includes('help')).flatMap((path) => [`help ${path}`, `${path} --help`]),
  ])('%j prints a text on stdout, exit 0', async (command) => {
    const { exitCode, stdout, stderr } = await commandWorld(NO_SERVICE).run(
      ...command.split(' ').filter(Boolean),
    );
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout.split('\n').length).toBeGreaterThan(3);
  });
});

describe('a failure with --json: its exit code, nothing on stdout, the error object on the last line of stderr', () => {
  let world: Awaited<ReturnType<typeof offlineWorld>>;
  let id: string;
  const UNKNOWN = 'con_offline.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q';

  beforeAll(async () => {
    world = await offlineWorld();
    id = JSON.parse((await world.run(OFFLINE, '--json', ...LINK)).stdout).reservation.id;
    await world.run(OFFLINE, 'experiment', 'create', 'second', '--end', '+1d');
    world.files.set('garbage', 'garbage');
    world.files.set('-', '');
  });
  afterAll(() => world.server.close());

  test.each<[number, string]>([
    [2, 'lst'],
    [2, 'experiment lst'],
    [2, 'list --nonsense'],
    [2, 'list extra'],
    [2, 'show'],
    [3, 'show x'],
    [2, 'delete'],
    [3, 'delete --yes x'],
    [2, 'delete --yes --if-exists a/b'],
    [2, 'update ID'],
    [2, 'update ID --end 2020-01-01T00:00:00Z'],
    [2, `update ${UNKNOWN} --extend soon`],
    [2, 'list --timeout soon'],
    [3, 'list --experiment nope'],
    [3, 'project token --project nope'],
    [2, 'list --profile nope'],
    [2, 'list --profile local'],
    [2, 'reserve be-gent1 pl-poznan1 --start-now --for 2h'],
    [2, 'reserve be-gent1 --bandwidth 1G --start-now --for 2h'],
    [2, 'reserve be-gent1 pl-poznan1 fr-lille --bandwidth 1G --start-now --for 2h'],
    [2, 'reserve be-gent1 pl-poznan1 --bandwidth 1G --for 2h'],
    [2, 'reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now'],
    [2, 'reserve be-gent1 pl-poznan1 --bandwidth 1G --start 2026-12-01T10:00 --for 2h --tz Nowhere/City'],
    [2, 'list --tz Mars/X'],
    [2, '--tz Mars/X token inspect garbage'],
    [2, 'vlan'],
    [2, 'probe'],
    [2, 'availability be-gent1 pl-poznan1 --bandwidth 1G'],
    [2, 'run a b -- true'],
    [2, 'user sessions nonsense'],
    [2, 'experiment create demo --end +1d'],
    [2, 'experiment create'],
    [2, 'experiment create third'],
    [2, 'experiment create -third- --end +1d'],
    [3, 'experiment use nope'],
    [2, 'verify missing'],
    [2, 'token issue'],
    [2, 'token issue --key missing --issuer https://svc.example.org'],
    [2, 'token issue --key garbage --issuer https://svc.example.org'],
    [2, 'help nonsense'],
    [2, 'help token nonsense'],
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
    const ended = await world.run(OFFLINE, '--json', ...experiment, ...args);
    expect(reportOf(ended).exitCode).toBe(exitCode);
  });

  test('a token in a variable that the service refuses is explained (4)', async () => {
    const variable = 'SLICES_CONN_USER_TOKEN';
    const userToken = {
      ...tokenOf(async () => 'canary'),
      origin: 'environment',
      where: variable,
      variable,
    } as const;
    const ended = await commandWorld({ ...connectionTo(world.server), userToken }).run(
      OFFLINE,
      '--json',
      'project',
      'list',
    );
    const { exitCode, why, fix } = reportOf(ended);
    expect([exitCode, fix]).toEqual([4, `unset ${variable} && slices-conn --offline login`]);
    expect(why).toContain(variable);
    expect(ended.stderr).not.toContain('canary');
  });

  test('delete of several of which one is not known: nothing was deleted', async () => {
    const ended = await world.run(
      OFFLINE,
      '--json',
      'delete',
      '--yes',
      UNKNOWN,
      'nope',
      '--experiment',
      'demo',
    );
    expect(reportOf(ended)).toMatchObject({
      exitCode: 3,
      why: expect.stringMatching(/ Nothing was deleted\.$/),
    });
  });

  test('delete --if-exists of what is gone or not known is exit 0', async () => {
    const ended = await world.run(
      OFFLINE,
      '--json',
      'delete',
      '--yes',
      '--if-exists',
      UNKNOWN,
      'x',
      '--experiment',
      'demo',
    );
    expect(ended.exitCode).toBe(0);
    expect(JSON.parse(ended.stdout)).toEqual({
      items: [
        { id: UNKNOWN, deleted: false, again: null },
        { id: 'x', deleted: false, again: null },
      ],
    });
  });

  test('none of these commands changed the reservation', async () => {
    const { stdout } = await world.run(OFFLINE, '--json', '--experiment', 'demo', 'list', '--all');
    expect(JSON.parse(stdout)).toMatchObject({ items: [{ reservation: { id, bandwidth: 1000 } }] });
  });
});

describe('row 24: one flipped byte anywhere in a saved reservation', () => {
  let world: Awaited<ReturnType<typeof offlineWorld>>;
  let saved: Buffer;

  beforeAll(async () => {
    world = await offlineWorld();
    await world.run(OFFLINE, ...LINK, '--save', 'link.jwt');
    saved = Buffer.from(world.files.get('link.jwt') ?? '');
  });
  afterAll(() => world.server.close());

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
        const changed = [
          saved.subarray(0, position),
          Buffer.from(change(byte)),
          saved.subarray(position + 1),
        ];
        world.files.set('changed.jwt', Buffer.concat(changed));
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
  const entry = {
    name: EVIL,
    description: EVIL,
    role: EVIL,
    created_at: EVIL,
    expires_at: '2027-01-01T00:00:00Z',
  };
  const experiment = { ...entry, id: IDS.experiment, project_id: EVIL };
  const project = { ...entry, id: IDS.project };

  /** A service that puts this text into every answer. */
  const hostile: Connection = {
    async fetch({ url, method }) {
      const { pathname } = new URL(url);
      if (method === 'POST' && pathname.includes('/experiments')) return json(experiment, 201);
      if (pathname.endsWith('/projects/')) return json({ projects: [project] });
      if (pathname.endsWith('/experiments/')) return json({ experiments: [experiment] });
      if (pathname.includes('/experiments/')) return jwt('a.b.c');
      return json(
        {
          detail: [
            { loc: ['Site'], msg: EVIL, type: EVIL },
            { loc: [], msg: EVIL, type: EVIL },
          ],
        },
        422,
      );
    },
    userToken: tokenOf(async () => 'user.token.canary'),
    close: async () => undefined,
  };

  test.each([
    ['project list', 0],
    ['project show', 0],
    ['experiment list', 0],
    ['experiment show', 0],
    ['experiment create new --end +1d', 0],
    ['experiment show nope', 3],
    ['experiment token', 9],
    ['project token', 6],
    // A service whose description can't be had, and whose list is refused, has none.
    ['list', 0],
    ['sites', 6],
    [LINK.join(' '), 6],
    [`show ${IDS.reservation}`, 6],
    [`delete --yes ${IDS.reservation}`, 6],
    [`delete --yes ${IDS.reservation} con_conn.example.org_2`, 6],
  ])('%s', async (command, exitCode) => {
    const result = await commandWorld(hostile).run(OFFLINE, '--debug', ...command.split(' '));
    expect(result.exitCode).toBe(exitCode);
    expect(result.stdout).not.toMatch(OBEYED);
    expect(result.stderr).not.toMatch(OBEYED);
    expect(result.stdout + result.stderr).toMatch(/\S/);
  });

  test.each(['list', 'list --all', 'list --mine', 'list --timeline', 'list --ics', 'delete --all --yes'])(
    '%s, of an experiment without reservations',
    async (command) => {
      const empty: Connection = {
        ...hostile,
        fetch: async (request) =>
          request.method === 'GET' && request.url.includes('/connectivity?')
            ? json({ items: [], nextCursor: null })
            : hostile.fetch(request),
      };
      const { stdout, stderr } = await commandWorld(empty).run(OFFLINE, ...command.split(' '));
      // A calendar's lines end with both.
      expect(stdout.replaceAll('\r\n', '\n')).not.toMatch(OBEYED);
      expect(stderr).not.toMatch(OBEYED);
      expect(stdout + stderr).toMatch(/\S/);
    },
  );

  test('token inspect escapes names and values of claims and header', async () => {
    const claims = { [EVIL]: EVIL, iss: EVIL, list: [EVIL], exp: 1e300, iat: -1 };
    const world = commandWorld(hostile);
    world.files.set('-', makeToken(makeKey(), claims, { header: { [EVIL]: EVIL, kid: EVIL } }));
    const { exitCode, stdout } = await world.run('token', 'inspect');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('a\\u001b]0;t');
    expect(stdout).not.toMatch(OBEYED);
    expect(stdout.split('\n')[0]).toContain('not verified');
  });

  test.each<[string, Record<string, unknown>]>([
    ['service', claimsOf('service', { [EVIL]: EVIL, sub: EVIL })],
    ['connectivity', claimsOf('connectivity', { iss: EVIL })],
  ])('verify escapes a valid %s token', async (_, claims) => {
    const key = makeKey();
    const world = commandWorld(hostile);
    world.files.set('-', makeToken(key, claims));
    world.files.set('jwks.json', JSON.stringify({ keys: [key.jwk] }));
    const { exitCode, stdout } = await world.run(OFFLINE, 'verify', '--jwks', 'jwks.json');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('a\\u001b]0;t');
    expect(stdout).not.toMatch(OBEYED);
  });
});

describe('row 11: secrets are never printed', () => {
  const CANARY = 'Q0FOQVJZ';
  const TOKEN = `${CANARY}.${CANARY}.${CANARY}`;

  const lists = (path: string) =>
    path.endsWith('/experiments/')
      ? json({ experiments: [{ id: IDS.experiment, name: 'demo' }] })
      : json({ projects: [{ id: IDS.project, name: 'demo' }] });

  /** Services that give this answer to everything except the portal's lists. */
  function answering(answer: (url: URL) => Response, userToken = TOKEN): Connection {
    return {
      async fetch({ url }) {
        const { pathname } = new URL(url);
        if (/\/(?:experiments|projects)\/$/.test(pathname)) return lists(pathname);
        return pathname.includes('/experiments/') ? jwt(TOKEN) : answer(new URL(url));
      },
      userToken: tokenOf(async () => userToken),
      close: async () => undefined,
    };
  }

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

  test.each<[string, Connection]>([
    ['refuses', answering(() => json({ detail: 'No.' }, 403))],
    ['fails', answering(() => new Response('<p>', { status: 503 }))],
    ['redirects', answering(() => new Response(null, { status: 307 }))],
    ['answers with a token that does not verify', answering(() => jwt(TOKEN))],
    [
      'is away',
      answering(() => {
        throw new TypeError('fetch failed');
      }),
    ],
    [
      'breaks',
      answering(() => {
        throw new RangeError('a defect');
      }),
    ],
    ['gets a token that no header can carry', answering(() => json({}), `${TOKEN}\r\nX-Evil: 1`)],
  ])('when the service %s, for every command, with --debug and --json', async (_, connection) => {
    const world = commandWorld(connection);
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
  const services: Connection = {
    fetch: async () => new Response(null, { status: 404 }),
    userToken: tokenOf(async () => 'user.token.canary'),
    close: async () => undefined,
  };
  const token = makeToken(key, claimsOf('connectivity'));

  test.each<[string, Record<string, string>, string[], number]>([
    ['nothing', { '-': '' }, [], 9],
    ['a line end', { '-': '\n' }, [], 9],
    ['garbage', { '-': 'garbage' }, [], 9],
    ['JSON', { '-': '{}' }, [], 9],
    ['keys that can’t be had', { '-': token }, ['--issuer', 'https://portal.example.org'], 7],
    ['an issuer that nobody trusts', { '-': token }, [], 9],
    ['an empty key set', { '-': token, k: '{"keys":[]}' }, ['--jwks', 'k'], 9],
    [
      'the key set of another key',
      { '-': token, k: JSON.stringify({ keys: [makeKey('ES256', {}, 'other').jwk] }) },
      ['--jwks', 'k'],
      9,
    ],
    [
      'another issuer than the one that was named',
      { '-': token, k: JSON.stringify({ keys: [key.jwk] }) },
      ['--jwks', 'k', '--issuer', 'https://other.example.org'],
      9,
    ],
    ['a key set that is garbage', { '-': token, k: 'garbage' }, ['--jwks', 'k'], 2],
    ['a key set that is a key', { '-': token, k: JSON.stringify(key.jwk) }, ['--jwks', 'k'], 2],
    ['a key set that is not there', { '-': token }, ['--jwks', 'k'], 2],
    [
      'half of it',
      { '-': `${token.slice(0, 99)} ${token.slice(99)}`, k: JSON.stringify({ keys: [key.jwk] }) },
      ['--jwks', 'k'],
      9,
    ],
    ...[`${token}\r`, `${token}\n\n`, ` ${token} `, `\ufeff${token}`, `"${token}"\n`, `Bearer ${token}`].map(
      (pasted): [string, Record<string, string>, string[], number] => [
        `all that it takes, pasted as ${JSON.stringify(pasted.replace(token, 'TOKEN'))}`,
        { '-': pasted, k: JSON.stringify({ keys: [key.jwk] }) },
        ['--jwks', 'k'],
        0,
      ],
    ),
    [
      'an expired token',
      {
        '-': makeToken(key, claimsOf('connectivity', { exp: NOW / 1000 })),
        k: JSON.stringify({ keys: [key.jwk] }),
      },
      ['--jwks', 'k'],
      9,
    ],
    ['all that it takes', { '-': token, k: JSON.stringify({ keys: [key.jwk] }) }, ['--jwks', 'k'], 0],
    [
      'all that it takes, with a line end',
      { '-': `${token}\n`, k: JSON.stringify({ keys: [key.jwk] }) },
      ['--jwks', 'k', '--issuer', 'https://portal.example.org'],
      0,
    ],
    [
      'all that it takes, with a line end of Windows',
      { '-': `${token}\r\n`, k: JSON.stringify({ keys: [key.jwk] }) },
      ['--jwks', 'k'],
      0,
    ],
  ])('%s', async (_, files, flags, exitCode) => {
    const world = commandWorld(services);
    for (const [path, content] of Object.entries(files)) world.files.set(path, content);
    const result = await world.run(OFFLINE, '--json', 'verify', ...flags);
    expect(result.exitCode).toBe(exitCode);
    expect(result.stdout === '').toBe(exitCode !== 0);
  });
});

describe('the failure is always reported', () => {
  test('a connection that can’t be closed does not hide the failure', async () => {
    const broken = () => {
      throw new Failure('state_unusable', 'The folder is closed.');
    };
    const connection = { fetch: broken, userToken: tokenOf(broken), close: broken };
    const world = commandWorld(connection, { connect: async () => connection });
    const { exitCode, stderr } = await world.run(OFFLINE, '--json', 'list');
    expect(exitCode).toBe(2);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'state_unusable' } });
  });

  test('a defect is exit 1, and says what to do', async () => {
    const connection: Connection = {
      fetch: async () => json({}),
      userToken: tokenOf(async () => 'user.token.canary'),
      close: async () => undefined,
    };
    const world = commandWorld(connection, {
      connect: async () => {
        throw new TypeError('x is undefined');
      },
    });
    const { exitCode, stdout, stderr } = await world.run(OFFLINE, 'list');
    expect([exitCode, stdout]).toEqual([1, '']);
    expect(stderr).toContain('--debug');
    expect(stderr).not.toContain(' at ');
  });
});

test('a typing error is an unknown command', async () => {
  const world = commandWorld(NO_SERVICE);
  expect(reportOf(await world.run('--json', 'availabilit')).code).toBe('usage');
  expect(reportOf(await world.run('--json', 'show', 'x', '--name')).code).toBe('usage');
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

  test.each(['--json show X', 'show X --json', 'show --debug --json X', 'delete --reason --json y X'])(
    '%s prints an error object',
    async (line) => {
      const world = commandWorld(NO_SERVICE);
      expect(reportOf(await world.run(...line.split(' '))).code).toBe('usage');
    },
  );
});

describe('the ledger knows a reservation’s experiment', () => {
  const other = ['--experiment', 'second'];

  test('show, update and delete need no --experiment', async () => {
    const world = await offlineWorld();
    await world.run(OFFLINE, 'experiment', 'create', 'second', '--end', '+1d');
    const booked = async (...experiment: string[]): Promise<string> =>
      JSON.parse((await world.run(OFFLINE, '--json', ...experiment, ...LINK)).stdout).reservation.id;
    const ids = [await booked('--experiment', 'demo'), await booked(...other)];
    expect((await world.run(OFFLINE, 'list')).exitCode).toBe(2);
    for (const id of ids) {
      expect((await world.run(OFFLINE, 'show', id)).exitCode).toBe(0);
      expect((await world.run(OFFLINE, 'update', id, '--bandwidth', '2G')).exitCode).toBe(0);
    }
    const { stderr } = await world.run(OFFLINE, 'show', ids[0] ?? '', ...other);
    expect(stderr).toContain('error:');
    expect((await world.run(OFFLINE, 'delete', '--yes', ...ids)).exitCode).toBe(0);
    for (const id of ids) expect((await world.run(OFFLINE, 'show', id)).exitCode).toBe(3);
    await world.server.close();
  });
});

describe('a refusal of a date says what to type next', () => {
  test.each<[string, string]>([
    ['reserve be-gent1 pl-poznan1 --bandwidth 1G --start -1 --end +2h', '--start-now'],
    // As long as the experiment lasts.
    [
      'reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 91d',
      '--start-now --end 2027-01-30T12:00Z',
    ],
    ['experiment create third --end +1000d', 'slices-conn --offline project show'],
    ['experiment create demo --end +1d', 'slices-conn --offline experiment list'],
  ])('%s: %s', async (line, fix) => {
    const world = await offlineWorld();
    const past = new Date(NOW - 3_600_000).toISOString();
    const report = reportOf(await world.run(OFFLINE, '--json', ...line.replace('-1', past).split(' ')));
    expect(report.fix).toContain(fix);
    await world.server.close();
  });
});

describe('a service that can’t be reached: exit 7', () => {
  test.each(['reserve', 'list'])('%s says that nothing was changed', async (name) => {
    const fetch = async () => {
      throw new Failure('network', 'Nobody is there.', { why: 'connect ECONNREFUSED.' });
    };
    const world = commandWorld({
      fetch,
      userToken: tokenOf(async () => 'x.y.z'),
      close: async () => undefined,
    });
    const args = name === 'reserve' ? LINK : [name];
    expect(reportOf(await world.run(OFFLINE, '--json', ...args))).toMatchObject({
      exitCode: 7,
      maybeDone: false,
      why: 'connect ECONNREFUSED. Nothing was changed.',
    });
  });
});

describe('row 45: --dry-run creates no reservation', () => {
  test.each<[string, () => Response]>([
    ['describes none', () => Response.json({ paths: {} })],
    ['has no description', () => new Response(null, { status: 404 })],
  ])('at a service that %s: exit 3, nothing sent', async (_, description) => {
    const server = await createReferenceServer({ now: () => NOW });
    const sent: string[] = [];
    const world = commandWorld(
      connectionTo(server, async (request) => {
        if (new URL(request.url).pathname === '/api-spec') return description();
        sent.push(request.method);
        return server.fetch(request);
      }),
    );
    const report = reportOf(await world.run(OFFLINE, '--json', ...LINK, '--dry-run'));
    expect(report).toMatchObject({ code: 'not_supported', exitCode: 3, maybeDone: false });
    expect(sent).not.toContain('POST');
    await server.close();
  });

  test('row 43: a lost answer is reported with maybeDone false', async () => {
    const server = await createReferenceServer({ now: () => NOW });
    const world = commandWorld(
      connectionTo(server, async (request) => {
        if (request.url.includes('dry_run=true')) throw new TypeError('fetch failed');
        return server.fetch(request);
      }),
    );
    const report = reportOf(await world.run(OFFLINE, '--json', ...LINK, '--dry-run'));
    expect(report).toMatchObject({ exitCode: 7, maybeDone: false, retryable: true });
    expect(report.why).toContain('A dry run books nothing.');
    await server.close();
  });

  test('the advised command after a refusal has --dry-run too', async () => {
    const world = await offlineWorld();
    const wanted = LINK.map((word) => (word === '1G' ? '101G' : word));
    const { fix } = reportOf(await world.run(OFFLINE, '--json', ...wanted, '--dry-run'));
    const { stdout } = await world.run(...(fix ?? '').split(' ').slice(1));
    expect(JSON.parse(stdout)).toMatchObject({ dryRun: true });
    await world.server.close();
  });

  /** A service that signs nothing, and a world with it. */
  async function unsigned(): Promise<{ server: ReferenceServer; world: CommandWorld }> {
    const server = await createReferenceServer({ now: () => NOW });
    const world = commandWorld(
      connectionTo(server, async (request) => {
        if (request.url.includes('/connectivity')) request.headers.set('accept', 'application/json');
        return server.fetch(request);
      }),
    );
    return { server, world };
  }

  test('what is not signed is saved by neither reserve nor show, and both say so: exit 0', async () => {
    const { server, world } = await unsigned();
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
    await server.close();
  });

  test('an unsigned answer advises `show`, not a second `reserve`', async () => {
    const { server, world } = await unsigned();
    const { code, exitCode, reservation, fix } = reportOf(await world.run(OFFLINE, '--json', ...LINK));
    expect([code, exitCode]).toEqual(['unsigned', 9]);
    expect(fix).toBe(`slices-conn --offline show ${reservation} --allow-unsigned`);
    const shown = await world.run('--json', ...(fix ?? '').split(' ').slice(1));
    expect(JSON.parse(shown.stdout)).toMatchObject({ reservation: { id: reservation }, verified: false });
    const listed = await world.run(OFFLINE, '--json', 'list', '--all');
    expect(JSON.parse(listed.stdout).items).toHaveLength(1);
    await server.close();
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
    const server = await createReferenceServer({ now: () => NOW });
    const world = commandWorld(
      connectionTo(server, async (request) => {
        // A service without extensions.
        if (request.url.endsWith('/api-spec')) return new Response(null, { status: 404 });
        const reply = await server.fetch(request);
        return request.method === 'POST' ? jwt(body) : reply;
      }),
    );
    const report = reportOf(await world.run(OFFLINE, '--json', ...LINK));
    expect(report).toMatchObject({ exitCode: 9, maybeDone: true, retryable: false, fix });
    await server.close();
  });

  test('because the service’s keys can’t be fetched: the report names the reservation, which exists', async () => {
    const server = await createReferenceServer({ now: () => NOW });
    let sent = 0;
    const world = commandWorld(
      connectionTo(server, async (request) => {
        if (request.url.endsWith('jwks.json')) throw new Failure('network', 'Nobody is there.');
        if (request.method === 'POST') sent += 1;
        return server.fetch(request);
      }),
    );
    const report = reportOf(await world.run(OFFLINE, '--json', ...LINK));
    expect(report).toMatchObject({ maybeDone: true, retryable: false });
    expect(report.fix).toBe(`slices-conn --offline show ${report.reservation}`);
    expect(sent).toBe(1);
    await server.close();
  });
});
