import { expect, test } from 'vitest';
import { eventLine } from '../../../src/cli/serve/events.ts';
import type { EventFields, ServerCommands, ServeWith } from '../../../src/cli/serve/server.ts';
import { instant, sentence } from '../../../src/contract/said.ts';
import type { RunningServer } from '../../../src/operate/serve.ts';
import { commandWorld, NO_SERVICE, serverCommands } from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { IDS, NOW } from '../../fixtures/tokens.ts';
import { person } from '../person.ts';

const BASE = 'http://127.0.0.1:4280';
const BOOKED = {
  reservation: IDS.reservation,
  link: 'be-gent1~pl-poznan1 fr-slices~pl-poznan1',
  bandwidth: 2500,
  start_date: '2026-11-01T22:00:00.000Z',
  end_date: '2026-11-01T22:30:00.000Z',
  name: 'alice',
};

/** Runs `serve` with a server that reports one event and stops, on a terminal or not. */
async function serve(
  flags: readonly string[],
  { columns, server = {} }: { columns?: number; server?: Partial<RunningServer> } = {},
) {
  const given: ServeWith[] = [];
  const connection = NO_SERVICE;
  const [stdout, stderr] = [recordedStream(columns), recordedStream(columns)];
  const { run } = commandWorld(connection, {
    stdout,
    stderr,
    variables: { TZ: 'Europe/Brussels' },
    stopSignal: async () => 'terminated',
    server: serverCommands({
      async serve(_flags, parts) {
        given.push(parts);
        parts.show?.('info', 'created', BOOKED);
        return {
          addresses: { connectivity: BASE, portal: `${BASE}/portal`, identity: `${BASE}/auth` },
          listen: '127.0.0.1:4280',
          loginPage: `${BASE}/auth/device`,
          users: [
            { name: 'alice', roles: [{ role: 'lead', project: 'p', experiment: null }] },
            { name: 'bob', roles: [] },
          ],
          data: '/var/lib/slices-conn',
          warnings: [],
          stop: async () => undefined,
          ...server,
        };
      },
    }),
  });
  const { exitCode } = await run('--color', 'never', 'serve', ...flags);
  return { exitCode, stdout: stdout.text, stderr: stderr.text, shows: given[0]?.show !== undefined };
}

test.each([
  [[], '/home/somebody/serve'],
  [['--data', '/var/lib/slices-conn'], '/var/lib/slices-conn'],
])('the commands for a server %j say on whose database they work', async (flags, database) => {
  const { ask, questions } = person('y');
  const rotateKeys: ServerCommands['rotateKeys'] = async (_flags, confirm) => {
    await confirm();
    return [];
  };
  const backUp = async () => ({ bytes: 1, reservations: 0 });
  const { run } = commandWorld(NO_SERVICE, { ask, server: serverCommands({ rotateKeys, backUp }) });
  for (const words of [
    ['rotate-keys', '--retire-now'],
    ['backup', 'copy'],
  ])
    expect(JSON.parse((await run('serve', ...words, ...flags, '--json')).stdout)).toMatchObject({ database });
  expect(questions).toEqual([expect.stringContaining(`every signing key of ${database} now?`)]);
});

test('on a terminal it says where it is, who can log in, where the data is, how to go on, and what happens', async () => {
  const { exitCode, stdout, stderr } = await serve([], { columns: 100 });
  expect(exitCode).toBe(0);
  expect(stdout.split('\n')).toEqual([
    `Serving at ${BASE}`,
    `  log in  ${BASE}/auth/device`,
    `  API     ${BASE}/api-docs`,
    `  portal  ${BASE}/portal`,
    '  users   alice  lead of project p',
    '          bob    no role',
    '  data    /var/lib/slices-conn',
    '  use it  slices-conn login',
    '  stop    Ctrl-C',
    '',
  ]);
  expect(stderr.replaceAll(/\s+/g, ' ')).toMatch(
    /^\d\d:\d\d:\d\d created be-gent1 – pl-poznan1, fr-slices – pl-poznan1, 2.5 Gbps, Sun 1 Nov 23:00 – 23:30, by alice \(….{6}\) /,
  );
  expect(stderr).toContain('with times in Europe/Brussels');
});

test.each<[string, string[], number | undefined, boolean]>([
  ['without a terminal the log is JSON', [], undefined, false],
  ['--log json on a terminal too', ['--log', 'json'], 100, false],
  ['--log text without a terminal', ['--log', 'text'], undefined, true],
])('%s', async (_, flags, columns, shows) => {
  const asked = await serve(flags, columns === undefined ? {} : { columns });
  expect([asked.exitCode, asked.shows]).toEqual([0, shows]);
});

test.each([
  ['http://127.0.0.1:4399', 'https://auth.example.org', 'slices-conn login http://127.0.0.1:4399'],
  ['http://127.0.0.1:4280', 'https://auth.example.org', 'slices-conn login http://127.0.0.1:4280'],
  // `login` takes an origin, and no plain http beyond this machine.
  ...['https://conn.example.org/lab', 'http://conn.example.org'].map((base) => [
    base,
    `${base}/auth`,
    `slices-conn profile set here baseUrl=${base} portalUrl=${base}/portal authUrl=${base}/auth && slices-conn --profile here login`,
  ]),
])('at %s, with logins at %s, the command for another terminal is: %s', async (base, identity, command) => {
  const addresses = { connectivity: base, portal: `${base}/portal`, identity };
  const { stdout } = await serve([], { columns: 300, server: { addresses } });
  expect(/^ {2}use it +(.*)$/m.exec(stdout)?.[1]).toBe(command);
});

const refusal = { method: 'POST', path: '/x', status: 422, code: 'bandwidth_unavailable' };
const full = sentence`Full from ${instant(Date.parse('2026-11-01T22:00:00Z'))} on.`;
test.each<[string, EventFields, string | undefined]>([
  ['login', { name: 'alice', client: 'slices-conn' }, 'login     name alice, client slices-conn'],
  [
    'request',
    { ...refusal, why: full },
    'refused   Full from Sun 1 Nov 23:00 on. (422 bandwidth_unavailable)',
  ],
  ['request', refusal, 'refused   POST /x (422 bandwidth_unavailable)'],
  ['request', { method: 'GET', path: '/favicon.ico', status: 404, code: 'not_found' }, undefined],
  ['request', { method: 'POST', path: '/auth/token', status: 400 }, undefined],
  ['request', { method: 'GET', path: '/x', status: 200 }, undefined],
  ['key_made', { kid: 'key2' }, undefined],
  ['bug', { why: 'Error: no\n    at here' }, 'error     bug: Error: no'],
  ['store_unavailable', { why: 'No.', times: 7 }, 'error     store unavailable: No. (7 more times)'],
  ['database_made', { file: '/x.sqlite' }, 'database made  file /x.sqlite'],
  ['failover_loses', { why: 'It is empty.' }, 'failover loses  It is empty.'],
  ['deleted', { reservation: 'con_x', by: 'user_x' }, 'deleted   by user_x, reservation con_x'],
  ['stopping', { drain: 5 }, 'stopping  in 5 s (--drain)'],
  ['stopping', { drain: 0 }, 'stopping  after the requests under way'],
])('the line of %s, %j', (event, fields, line) => {
  const level = line?.startsWith('error') ? 'error' : 'info';
  const text = eventLine({ level, event, fields }, { now: NOW, zone: 'Europe/Brussels' });
  expect(text?.slice(10)).toBe(line);
});
