import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { TOKEN_EXCHANGE_GRANT } from '../../src/contract/ci-rules.ts';
import { allCommands } from '../fixtures/command-world.ts';
import { claimsOf, IDS, makeKey, makeToken } from '../fixtures/tokens.ts';
import { type Ended, reportOf } from './command.ts';
import {
  age,
  type Client,
  newClient,
  pointingAt,
  providerReply,
  type Recorded,
  type Reply,
  record,
  serveHere,
  storedLogin,
} from './served.ts';

const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];

/** Every command, as it is tried here: a new one fails until it is listed. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  reserve: LINK,
  run: ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--for', '30m', '--', 'true'],
  // Its input says that nothing is left.
  __guardian: [],
  list: ['--all'],
  show: [IDS.reservation],
  update: [IDS.reservation, '--extend', '1h'],
  delete: [IDS.reservation, '--yes'],
  watch: [IDS.reservation],
  verify: ['-'],
  vlan: [IDS.reservation, '--site', 'be-gent1', '--dev', 'eth1'],
  probe: [IDS.reservation, '--site', 'be-gent1', '--dev', 'eth1', '--peer', '10.0.0.2'],
  login: ['--wait', '1'],
  status: [],
  whoami: [],
  version: [],
  'user show': [],
  'user token': [],
  'user sessions list': [],
  'user sessions revoke': ['no-such-login'],
  sites: [],
  availability: ['be-gent1', 'pl-poznan1'],
  plan: ['plan.yaml'],
  apply: ['plan.yaml'],
  'experiment list': [],
  'experiment show': ['demo'],
  'experiment create': ['other', '--end', '+30d'],
  'experiment use': ['demo'],
  'experiment token': ['demo'],
  'experiment ci add': ['--github', 'octo/measure', '--ref', 'refs/heads/main'],
  'experiment ci list': [],
  'experiment ci remove': ['no-such-rule'],
  'project list': [],
  'project show': ['demo'],
  'project use': ['demo'],
  'project token': ['demo'],
  'profile list': [],
  'profile show': [],
  'profile use': ['local'],
  'profile set': ['other', 'scope=openid'],
  'profile remove': ['other'],
  'token inspect': ['-'],
  'token issue': ['--key', 'key.json', '--issuer', 'https://svc.example.org'],
  'token keygen': [],
  serve: ['--host', '127.0.0.1', '--port', 'taken'],
  'serve backup': ['copy.sqlite'],
  'serve rotate-keys': [],
  'serve audit': [],
  completion: ['bash'],
  help: [],
  // Last, since it ends what the others use.
  logout: [],
};

const PLAN = `version: 1
reservations:
  link: { sites: [be-gent1, pl-poznan1], bandwidth: 1G, start: now, for: 1h }
`;

/** Those that ask no service, whatever it answers: tried where the services don't matter. */
const ASKS_NOBODY =
  /^(?:verify|profile .*|token .*|serve(?: audit| backup| rotate-keys)?|completion|version|help|__guardian)$/;
const ALL = Object.keys(COMMANDS);
const ASKING = ALL.filter((name) => !ASKS_NOBODY.test(name));

/** What each of these is for: its own kind of token, on stdout. */
const PRINTS: Readonly<Record<string, RegExp>> = {
  'experiment token': /experiment$/i,
  'project token': /project$/i,
  'user token': /user$|^access/i,
};

async function leaves(): Promise<string[]> {
  const program = await allCommands();
  const below = (command: typeof program, path: readonly string[]): string[] =>
    command.commands.length === 0
      ? [path.join(' ')]
      : command.commands.flatMap((child) => below(child, [...path, child.name()]));
  return below(program, []);
}

test('every command of the tree is tried here', async () => {
  // The only group that is a command by itself, too.
  expect(Object.keys(COMMANDS).toSorted()).toEqual(['serve', ...(await leaves())].toSorted());
});

const key = makeKey('ES256');
const seconds = Math.floor(Date.now() / 1000);
const jwt = (kind: 'user' | 'experiment' | 'project', jti: string) =>
  makeToken(key, claimsOf(kind, { iat: seconds, exp: seconds + 3600, jti }));

/** One for each way in which a secret reaches the program. */
const CANARIES = {
  access: jwt('user', 'access'),
  refresh: 'canary-refresh-5f1c',
  device: 'canary-device-91aa',
  machine: 'canary-machine-7d20',
  runner: 'canary-runner-3b8e',
  idToken: 'canary-id-token-c44f',
  experiment: jwt('experiment', 'portal'),
  project: jwt('project', 'portal'),
  environmentUser: jwt('user', 'environment'),
  environmentExperiment: jwt('experiment', 'environment'),
  fileUser: jwt('user', 'file'),
  fileExperiment: jwt('experiment', 'file'),
  commandUser: jwt('user', 'command'),
  commandExperiment: jwt('experiment', 'command'),
} as const;

/** How the services answer: as they should, or by an error that repeats all that they were sent. */
interface Mood {
  identity: 'well' | 'echo';
  portal: 'well' | 'echo';
  status: number;
  how: 'json' | 'html' | 'reset' | 'hang';
}
const WELL: Mood = { identity: 'well', portal: 'well', status: 400, how: 'json' };
let mood = WELL;
/** Counts the ways in which services fail: each command meets the next one in its other form. */
let turn = 0;
const heard = new Set<string>();
let origin = '';

function answer({ path, body, headers }: Recorded): Reply | 'hang' | 'reset' {
  const well = wellAnswer(path, body);
  if (typeof well === 'string') return { text: well, headers: { 'content-type': 'application/jwt' } };
  if (well !== undefined) return { json: well };
  const said = [...Object.values(headers).flat(), body, ...new URLSearchParams(body).values()].join(' ; ');
  for (const [name, canary] of Object.entries(CANARIES)) if (said.includes(canary)) heard.add(name);
  const { how, status } = mood;
  if (how === 'reset' || how === 'hang') return how;
  const told = said.replaceAll(/[^\x20-\x7e]/g, ' ');
  const echo = { 'x-echo': told, 'www-authenticate': `Bearer realm="${told.replaceAll('"', '')}"` };
  if (how === 'html')
    return { status, headers: { ...echo, 'content-type': 'text/html' }, text: `<title>${said}</title>` };
  const detail = [
    { loc: ['Site', said], msg: `you sent ${said}`, type: said },
    { loc: ['Date'], msg: said, type: 'x' },
  ];
  const oauth = { error: 'invalid_request', error_description: `you sent ${said}` };
  return { status, headers: echo, json: { detail, message: said, title: said, ...oauth } };
}

function wellAnswer(path: string, body: string): unknown {
  const known = providerReply(path, origin, { device_code: CANARIES.device, user_code: 'ABCD-EFGH' });
  if (known) return Object.assign({ grant_types_supported: [TOKEN_EXCHANGE_GRANT] }, known.json);
  if (path.startsWith('/runner') && mood.portal === 'well') return { value: CANARIES.idToken };
  const { access, refresh, experiment, project } = CANARIES;
  if (path === '/auth/token' && mood.identity === 'well' && !body.includes('refresh_token=')) {
    return { access_token: access, refresh_token: refresh, token_type: 'bearer' };
  }
  if (mood.portal !== 'well' || !path.startsWith('/portal/apis/')) return undefined;
  const demo = { name: 'demo', role: 'lead' };
  if (path.endsWith('/projects/')) return { projects: [{ id: IDS.project, ...demo }] };
  if (path.endsWith('/experiments/')) {
    return { experiments: [{ id: IDS.experiment, project_id: IDS.project, ...demo }] };
  }
  if (path.includes('/projects/')) return project;
  return experiment;
}

beforeAll(async () => {
  origin = (await record(answer)).url;
});
beforeEach(() => {
  mood = WELL;
  heard.clear();
});

const services = () =>
  pointingAt({ base_url: `${origin}/net`, portal_url: `${origin}/portal`, auth_url: `${origin}/auth` });

/** Where the tokens of a machine are from, and how it is set up with them. */
const SOURCES: Readonly<Record<string, () => Promise<Client>>> = {
  environment: async () =>
    newClient({
      ...services(),
      SLICES_CONN_USER_TOKEN: CANARIES.environmentUser,
      SLICES_CONN_EXPERIMENT_TOKEN: CANARIES.environmentExperiment,
    }),
  job: async () =>
    newClient({
      ...services(),
      ACTIONS_ID_TOKEN_REQUEST_URL: `${origin}/runner?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: CANARIES.runner,
    }),
  machine: async () => newClient({ ...services(), SLICES_CONN_REFRESH_TOKEN: CANARIES.machine }),
  files: async () => {
    const env = services();
    const client = newClient({
      ...env,
      get SLICES_CONN_USER_TOKEN_FILE() {
        return join(client.home, 'user.jwt');
      },
      get SLICES_CONN_EXPERIMENT_TOKEN_FILE() {
        return join(client.home, 'experiment.jwt');
      },
    });
    writeFileSync(join(client.home, 'user.jwt'), `${CANARIES.fileUser}\n`);
    writeFileSync(join(client.home, 'plan.yaml'), PLAN);
    writeFileSync(join(client.home, 'experiment.jwt'), `${CANARIES.fileExperiment}\n`);
    return client;
  },
  commands: async () => {
    // Named, so that the portal need not be asked which there are.
    const client = newClient({ SLICES_CONN_EXPERIMENT: 'demo' });
    const { SLICES_CONN_BASE_URL, SLICES_CONN_PORTAL_URL, SLICES_CONN_AUTH_URL } = services();
    const addresses = [
      `baseUrl=${SLICES_CONN_BASE_URL}`,
      `portalUrl=${SLICES_CONN_PORTAL_URL}`,
      `authUrl=${SLICES_CONN_AUTH_URL}`,
    ];
    await succeeds(client.command('profile', 'set', 'local', ...addresses));
    for (const kind of ['user', 'experiment'] as const) {
      const path = join(client.home, kind);
      writeFileSync(path, kind === 'user' ? CANARIES.commandUser : CANARIES.commandExperiment);
      const command = JSON.stringify(['cat', path]);
      await succeeds(client.command('profile', 'set', 'local', `${kind}TokenCommand=${command}`));
    }
    return client;
  },
  login: async () => {
    const client = newClient(services());
    await succeeds(client.command('login'));
    return client;
  },
  'expired login': async () => {
    const client = newClient(services());
    await succeeds(client.command('login'));
    age(client);
    return client;
  },
};

function clientWith(source: string): Promise<Client> {
  return SOURCES[source]?.() ?? expect.fail(source);
}

async function succeeds(running: Promise<Ended>): Promise<Ended> {
  const ended = await running;
  if (ended.exitCode !== 0) throw new Error(ended.stderr);
  return ended;
}

/**
 * Runs commands, and looks at all that they print. Eight at a time: they wait more than they work.
 *
 * @param turn half of them are run with `--json`: with the next number the other half
 */
async function tryAll(
  client: Client,
  secrets: Readonly<Record<string, string>>,
  names: readonly string[],
  turn: number,
  ...flags: readonly string[]
) {
  const { port } = new URL(origin);
  const leaks: string[] = [];
  const tryOne = async (name: string, json: readonly string[]): Promise<void> => {
    const args = (COMMANDS[name] ?? []).map((word) => (word === 'taken' ? port : word));
    const ended = await client.command('--debug', ...flags, ...json, ...name.split(' '), ...args);
    if (json.length > 0 && ended.exitCode !== 0) reportOf(ended);
    for (const [kind, secret] of Object.entries(secrets)) {
      const own = PRINTS[name]?.test(kind);
      for (const stream of ['stdout', 'stderr'] as const) {
        if (own && stream === 'stdout') continue;
        if ([secret, encodeURIComponent(secret)].some((text) => ended[stream].includes(text))) {
          leaks.push(`${name} ${json.join('')}: ${kind} on ${stream}`);
        }
      }
    }
  };
  const waiting = names.filter((name) => name !== 'logout').entries();
  const worker = async (): Promise<void> => {
    for (const [index, name] of waiting) await tryOne(name, (index + turn) % 2 === 0 ? [] : ['--json']);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  await tryOne('logout', ['--json']);
  return leaks;
}

/** Each source of tokens with a way in which services fail; every second command is run with `--json`. */
test.each<[string, Partial<Mood>, string[], (readonly string[])?]>([
  ['environment', { status: 404, how: 'html' }, ['environmentUser', 'environmentExperiment']],
  ['files', { status: 403, portal: 'echo', identity: 'echo' }, ['fileUser', 'fileExperiment', 'device']],
  ['machine', { status: 400, identity: 'echo' }, ['machine']],
  ['job', { status: 400, identity: 'echo' }, ['idToken']],
  ['job', { status: 403, portal: 'echo' }, ['runner']],
  ['commands', { status: 401, portal: 'echo' }, ['commandUser', 'commandExperiment']],
  ['login', { status: 422, identity: 'echo' }, ['access', 'experiment', 'refresh', 'device']],
  ['expired login', { status: 500, identity: 'echo' }, ['refresh', 'device']],
  ['environment', { how: 'reset', portal: 'echo' }, ['environmentUser', 'environmentExperiment']],
  // It is waited for, so not with every command.
  [
    'environment',
    { how: 'hang', portal: 'echo' },
    ['environmentUser', 'environmentExperiment'],
    ['reserve', 'list', 'project list', 'user show'],
  ],
])(
  'services that repeat in every error what they were sent, or break off: %s, %j: no command prints it',
  async (source, changes, sent, names = ASKING) => {
    const client = await clientWith(source);
    mood = { ...WELL, ...changes };
    turn += 1;
    const timeout = changes.how === 'hang' ? '2' : '60';
    expect(await tryAll(client, CANARIES, names, turn, '--timeout', timeout)).toEqual([]);
    // They were there to be repeated.
    expect([...heard]).toEqual(expect.arrayContaining(sent));
  },
);

test.each([0, 1])(
  'the reference server: no token of a login or of the portal is printed; turn %i',
  async (turn) => {
    const served = await serveHere('--auto-approve', 'lead');
    const client = newClient(served.env);
    const login = await succeeds(client.command('login', '--debug'));
    await succeeds(client.command('reserve', ...LINK, '--debug'));
    const { accessToken, refreshToken, portalTokens } = storedLogin(client);
    const [experiment] = Object.values<string>(Object(portalTokens));
    if (experiment === undefined) throw new Error('no experiment token was kept');
    expect(await tryAll(client, { accessToken, refreshToken, experiment }, ALL, turn)).toEqual([]);
    const logged = served.output;
    for (const secret of [accessToken, refreshToken, experiment]) {
      expect(login.stdout + login.stderr + logged.stdout + logged.stderr).not.toContain(secret);
    }
  },
);

test('--debug tells requests and replies on stderr; stdout is the result, and the last line of stderr the error object', async () => {
  const client = await clientWith('environment');
  const { stdout, stderr, exitCode } = await client.command('project', 'list', '--debug', '--json');
  expect(exitCode).toBe(0);
  expect(stderr).toContain(`→ GET ${origin}/portal/apis/projects/v1alpha1/projects/\n`);
  expect(stderr).toContain('authorization: [secret]\n');
  expect(stderr).toMatch(/← 200 after \d+ ms\n/);
  expect(await client.command('project', 'list', '--json')).toEqual({ stdout, stderr: '', exitCode: 0 });
  const refused = await client.command('reserve', ...LINK, '--debug', '--json');
  expect(refused.stderr).toContain('slices-experiment-token: [secret]\n');
  expect(reportOf(refused)).toMatchObject({ code: 'site_invalid', exitCode: 6 });
});

/** With characters that JSON may escape and a form must encode. */
const ODD = {
  SLICES_CONN_USER_TOKEN: 'canary/user+==',
  SLICES_CONN_EXPERIMENT_TOKEN: 'canary-experiment',
  SLICES_CONN_TOKEN_PLACEMENT: 'experiment',
};
const refusal = (said: unknown): Reply => ({
  status: 422,
  json: { detail: [{ loc: ['Site'], msg: `you sent ${said}`, type: 'x' }] },
});

test.each<[string, readonly string[], RegExp, (asked: Recorded, url: string) => Reply]>([
  [
    'as it was',
    ['reserve', ...LINK],
    /error: you sent Bearer \[secret\]\n/,
    ({ headers }) => refusal(headers.authorization),
  ],
  ['in a body', ['reserve', ...LINK], /error: you sent /, ({ body }) => refusal(body)],
  [
    'in a success',
    ['project', 'list'],
    /error: /,
    ({ headers }) => ({ json: { projects: headers.authorization } }),
  ],
  [
    'in the form of a device login',
    ['login', '--wait', '5'],
    /error: /,
    ({ path, body }, url) => {
      if (path !== '/auth/token') return providerReply(path, url, { device_code: 'canary/device+==' }) ?? {};
      return { status: 400, json: { error: 'invalid_request', error_description: `you sent ${body}` } };
    },
  ],
])('a service that repeats what it was sent, in its own spelling: %s', async (_, args, says, answer) => {
  const client = newClient({ ...pointingAt((await record(answer)).url), ...ODD });
  const { stdout, stderr } = await client.command(...args, '--debug');
  expect(stderr).toMatch(says);
  // The stack that --debug shows names this file.
  expect((stdout + stderr).replaceAll('canary.test.ts', '')).not.toMatch(/canary/);
});

test('a token command below a file can’t be run: 2, not a bug', async () => {
  const client = newClient({});
  const command = JSON.stringify([`${process.execPath}/x`]);
  await client.command('profile', 'set', 'local', `userTokenCommand=${command}`);
  expect(reportOf(await client.command('project', 'list', '--json'))).toMatchObject({
    code: 'usage',
    exitCode: 2,
  });
});
