import { tmpdir } from 'node:os';
import { Option } from 'commander';
import { describe, expect, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import { readServerAudit } from '../../src/operate/audit.ts';
import {
  type AuditOptions,
  type RotateKeysOptions,
  SERVER_OPTIONS,
  type ServeOptions,
} from '../../src/operate/options.ts';
import { rotateKeys } from '../../src/operate/rotate-keys.ts';
import { serve } from '../../src/operate/serve.ts';
import { allowedDangers, checkSettings } from '../../src/operate/settings.ts';
import { commandWorld, NO_SERVICE, serverCommands } from '../fixtures/command-world.ts';

/** What `serve` does with typed flags: the options that it would start with, or the refusal. */
async function typed(line: string): Promise<{
  options?: ServeOptions | undefined;
  error: { code: string; message: string; why?: string; fix?: string };
}> {
  let options: ServeOptions | undefined;
  const { run } = commandWorld(NO_SERVICE, {
    server: serverCommands({
      async serve(asked) {
        checkSettings(asked);
        options = asked;
        throw new Failure('network', 'It starts no further.');
      },
    }),
    stopSignal: () => new Promise(() => undefined),
  });
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  const { stderr } = await run('serve', '--json', ...words);
  return { options, ...JSON.parse(stderr) };
}

test('every flag is declared under the name of its value', () => {
  for (const table of Object.values(SERVER_OPTIONS)) {
    for (const [name, { flags }] of Object.entries(table)) {
      expect(new Option(flags).attributeName()).toBe(name);
    }
  }
});

const A = 'https://a.example.org';

test.each<[string, Partial<ServeOptions>]>([
  [
    `--trust ${A} --trust https://b.example.org=project,experiment --ui-client-id page`,
    {
      trust: [{ issuer: A }, { issuer: 'https://b.example.org', kinds: ['project', 'experiment'] }],
      uiClientId: 'page',
    },
  ],
  [
    '--ci-issuer github --ci-issuer gitlab=https://gitlab.example.org/',
    {
      ciIssuer: {
        github: 'https://token.actions.githubusercontent.com',
        gitlab: 'https://gitlab.example.org',
      },
    },
  ],
  ['--metrics 9464', { metrics: { host: '127.0.0.1', port: 9464 } }],
  ['--metrics [::1]:0 --no-ui', { metrics: { host: '::1', port: 0 }, ui: false }],
  ['--base-url http://conn.localhost/net/', { baseUrl: 'http://conn.localhost/net' }],
])('%s is read', async (line, due) => {
  expect((await typed(line)).options).toMatchObject(due);
});

test('row 59: serve takes the limits of one experiment, and has none by default', async () => {
  const limits = { maxShare: 25, maxLive: 10 };
  expect((await typed('--max-share 25 --max-live 10')).options).toMatchObject(limits);
  const { options } = await typed('');
  for (const name of Object.keys(limits)) expect(options).not.toHaveProperty(name);
});

test.each<[string, RegExp]>([
  ['--auto-approve alice', /no user "alice"/],
  ['--audience x', /^--audience needs --trust\.$/],
  ['--ui-client-id x', /^--ui-client-id needs --trust\.$/],
  ['--any-audience', /^--any-audience needs --trust\.$/],
  ['--projects-api-group a/b', /--projects-api-group/],
  ['--tls-cert c', /^--tls-key is missing\.$/],
  ['--tls-key c', /^--tls-cert is missing\.$/],
  ...['?x', '?', '#x'].map((end): [string, RegExp] => [`--base-url ${A}${end}`, /--base-url/]),
  ['--base-url http://:pw@a.example.org', /--base-url/],
  ['--administrator exp_h_1', /--administrator/],
  [
    `--administrator user_h_1 --trust ${A} --trust https://b.example.org`,
    /^user_h_1 may be a user of several issuers\.$/,
  ],
  [`--trust ${A}=project,experiment`, /user tokens/],
  [`--trust ${A}=service`, /--trust/],
  ['--ci-issuer jenkins', /--ci-issuer/],
  ['--ci-issuer github --ci-issuer github=https://ghe.example.org', /--ci-issuer/],
  ['--metrics 99999', /--metrics/],
  ...['0', '101', '12.5', '50%'].map((share): [string, RegExp] => [`--max-share ${share}`, /--max-share/]),
  ...['0', '-1', 'many'].map((live): [string, RegExp] => [`--max-live ${live}`, /--max-live/]),
  ['--port 9464 --metrics 9464', /^--port and --metrics are both 9464\.$/],
  ['--host :: --port 9464 --metrics 9464', /^--port and --metrics are both 9464\.$/],
  ['--ci-issuer gitlab=http://gitlab.example.org', /--ci-issuer .* must be an https address/],
  ["--host '' --data x", /host to listen on is empty/],
  ['--tls-cert c --tls-key k --base-url http://127.0.0.1:4280', /is not https/],
  ['--behind-proxy --base-url http://slices.example.org', /is not https/],
  ['--behind-proxy', /^--behind-proxy needs --base-url\.$/],
])('%s is refused', async (line, message) => {
  expect((await typed(line)).error).toMatchObject({ code: 'usage', message: expect.stringMatching(message) });
});

const TLS = '--tls-cert cert.pem --tls-key key.pem';
const ISSUER = '--trust https://login.example.org';
const TRUST = `${ISSUER} --audience https://slices.example.org`;
const BASE = '--base-url https://slices.example.org';

const USERS = /built-in users/;
const KEY = /--memory/;
const HTTP = /plain http/;
const NAME = /--base-url URL/;
const AUDIENCE = /--audience AUDIENCE/;

test.each([
  '',
  '--memory --auto-approve lead',
  '--host localhost',
  '--host ::1',
  '--port 9464 --metrics 9465',
  '--host 127.0.0.2 --port 9464 --metrics 9464',
  '--host 127.8.9.10',
  '--host ::ffff:127.0.0.1',
  '--host conn.localhost',
  '--base-url http://conn.localhost:4281/net',
  TRUST,
  ISSUER,
  `${TLS} --memory`,
])('row 42: on this machine alone all settings are accepted: %s', async (line) => {
  const { options } = await typed(line);
  if (!options) throw new Error('refused');
  expect(allowedDangers({ ...options, insecureBuiltInUsers: true, insecureHttp: true })).toEqual([]);
});

describe('row 42: a server that others can reach needs users, a stored key, TLS and a name', () => {
  test.each<[string, string, RegExp[]]>([
    ['nothing of it', '--host 0.0.0.0 --memory', [USERS, KEY, HTTP, NAME]],
    ['row 50: no audience', `--host 0.0.0.0 ${ISSUER} ${TLS} ${BASE}`, [AUDIENCE]],
    ['row 50: no audience, behind a proxy', `${ISSUER} --behind-proxy ${BASE}`, [AUDIENCE]],
    ['all of it', `--host 0.0.0.0 ${TRUST} ${TLS} ${BASE}`, []],
    ['a proxy in place of TLS', `--host 0.0.0.0 ${TRUST} --behind-proxy ${BASE}`, []],
    ['a proxy on this machine', `${TRUST} --behind-proxy ${BASE}`, []],
    ['PostgreSQL', `--host :: ${TRUST} ${TLS} ${BASE} --database postgres://x@y/z`, []],
    ['an address of its own', `--host 192.0.2.1 ${TRUST} ${TLS}`, []],
    ['built-in users', `--host 192.0.2.1 ${TLS}`, [USERS]],
    ['built-in users behind a proxy', `--behind-proxy ${BASE}`, [USERS]],
    ['built-in users by its name alone', '--base-url http://slices.example.org', [USERS, HTTP]],
    ['a key that is thrown away', `--host 192.0.2.1 ${TRUST} ${TLS} --memory`, [KEY]],
    ['plain http', `--host 192.0.2.1 ${TRUST}`, [HTTP]],
    ...['0.0.0.0', '0', '::', '0::0'].map((host): [string, string, RegExp[]] => [
      `no name: ${host}`,
      `--host ${host} ${TRUST} ${TLS}`,
      [NAME],
    ]),
    ['what only begins like loopback', '--host 127.0.0.1.example.org', [USERS, HTTP]],
    ['another address in another family’s words', '--host ::ffff:192.0.2.1', [USERS, HTTP]],
    ['allowed users', '--host 192.0.2.1 --memory --insecure-built-in-users', [KEY, HTTP]],
    ['allowed plain http', '--host 192.0.2.1 --memory --insecure-http', [USERS, KEY]],
  ])('%s', async (_, line, due) => {
    const { options, error } = await typed(line);
    expect(options === undefined).toBe(due.length > 0);
    const named = [USERS, KEY, HTTP, NAME, AUDIENCE].filter((danger) => danger.test(error.why ?? ''));
    expect(named).toEqual(due);
  });

  test('row 50: --any-audience accepts tokens for any audience, and a warning says so', async () => {
    const line = `--host 192.0.2.1 ${ISSUER} ${TLS} ${BASE}`;
    expect((await typed(line)).error.why).toContain('--any-audience');
    const { options } = await typed(`${line} --any-audience`);
    expect(options && allowedDangers(options)).toEqual([
      'Tokens are taken whatever service they were issued for.',
    ]);
  });

  test('with all --insecure flags it starts, and warns about each risk', async () => {
    const line =
      '--host 192.0.2.1 --base-url http://slices.example.org --insecure-built-in-users --insecure-http';
    const { options } = await typed(line);
    expect(options && allowedDangers(options)).toEqual([
      expect.stringMatching(USERS),
      expect.stringMatching(HTTP),
    ]);
    expect(options && allowedDangers({ ...options, tlsCert: 'c' })).toHaveLength(1);
  });

  test('--auto-approve is refused with all --insecure flags too', async () => {
    const { error } = await typed(`--host 192.0.2.1 ${TLS} --auto-approve lead --insecure-built-in-users`);
    expect(error.why).toMatch(/--auto-approve/);
  });
});

test.each([
  ['--host 0.0.0.0 --memory', '--host 127.0.0.1 --memory'],
  ['--base-url http://a.example.org --auto-approve lead', '--auto-approve lead --host 127.0.0.1'],
  [
    '--trust https://login.example.org=user,experiment --host 192.0.2.1 --max-live 3 --audience x',
    '--trust https://login.example.org=user,experiment --host 192.0.2.1 --max-live 3 --audience x --base-url https://slices.example.org --tls-cert cert.pem --tls-key key.pem',
  ],
  [
    "--behind-proxy --base-url https://a.example.org --data 'my data' --directory a.json",
    "--behind-proxy --base-url https://a.example.org --data 'my data' --audience https://a.example.org --trust https://login.example.org",
  ],
  [
    '--memory --host :: --tls-cert c --tls-key k --any-audience --trust https://login.example.org',
    '--host :: --tls-cert c --tls-key k --any-audience --trust https://login.example.org --base-url https://slices.example.org',
  ],
])('the next step is the typed command, with other flags: %s', async (line, advised) => {
  const { error } = await typed(`--name 'my lab' ${line}`);
  expect(error.fix).toBe(`slices-conn serve --json --name 'my lab' ${advised}`);
});

const place = { defaultFolder: tmpdir(), now: Date.now, random: Math.random, write: () => undefined };
/** The real commands; no address here gets as far as a database. */
const server = serverCommands({
  serve: (options: ServeOptions) => serve(options, place),
  rotateKeys: (options: RotateKeysOptions, confirm) => rotateKeys(options, { ...place, confirm }),
  readAudit: (options: AuditOptions, take) => readServerAudit(options, tmpdir(), take),
});
const world = () => commandWorld(NO_SERVICE, { server, stopSignal: () => new Promise(() => undefined) });

describe('row 52: a password in the address of a database', () => {
  const COMMANDS = [
    ['serve'],
    ['serve', 'audit'],
    ['serve', 'rotate-keys'],
    ['serve', 'rotate-keys', '--retire-now'],
    ['serve', 'backup', 'copy.sqlite'],
  ];
  const ADDRESSES = [
    'postgres://someone:hunter2@db.example.org/slices',
    'postgresql://:hunter2@127.0.0.1/slices',
    'postgres://someone@db.example.org/slices?password=hunter2',
    'postgres://someone:hunter2@slices?service=%',
    'mysql://someone:hunter2@db.example.org/slices',
    'host=db.example.org password=hunter2',
  ];
  const cases = COMMANDS.flatMap((command) =>
    ADDRESSES.map((address) => [command.join(' '), address] as const),
  );

  test.each(cases)(
    '%s --database %s: exit 2 before anything is opened, and the password is not printed',
    async (command, address) => {
      const { run } = world();
      for (const format of [[], ['--json']]) {
        const { exitCode, stdout, stderr } = await run(
          ...command.split(' '),
          '--database',
          address,
          ...format,
        );
        expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
        expect(stderr).not.toContain('hunter2');
      }
    },
  );

  test.each(ADDRESSES.slice(0, 3))('%s: the refusal says where a password can be given', async (address) => {
    const { stderr } = await world().run('serve', '--database', address);
    for (const place of ['PGPASSWORD', 'PGPASSFILE']) expect(stderr).toContain(place);
  });
});
