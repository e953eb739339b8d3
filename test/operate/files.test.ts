import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import type { ServeOptions } from '../../src/operate/options.ts';
import { serve } from '../../src/operate/serve.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import type { Connection } from '../../src/session/login/connection.ts';
import { SERVER_FILE } from '../../src/store/stores.ts';
import { commandWorld, connectionTo, serverCommands } from '../fixtures/command-world.ts';
import { failureOf } from '../fixtures/failures.ts';
import { SERVE_DEFAULTS } from '../fixtures/serve-defaults.ts';
import { smallTopology } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** No command here sends a request. */
const NOBODY: Connection = {
  fetch: () => Promise.reject(new Error('a service was asked')),
  userToken: {
    origin: 'offline',
    where: 'nowhere',
    get: () => Promise.reject(new Error('a token was asked for')),
  },
  close: async () => undefined,
};

let folder = '';
beforeEach(() => {
  folder = temporaryFolder();
});

function started(changes: Partial<ServeOptions>) {
  return serve(
    { ...SERVE_DEFAULTS, ...changes },
    { defaultFolder: join(folder, 'default'), write: () => undefined, now: Date.now, random: () => 0.5 },
  );
}

describe('row 51: a server’s data folder', () => {
  test('that others can write to is refused before anything in it is opened', async () => {
    const data = join(folder, 'data');
    mkdirSync(data);
    writeFileSync(join(data, 'slices-conn.sqlite'), 'planted', { mode: 0o600 });
    chmodSync(data, 0o777);
    const failure = await failureOf(() => started({ data }));
    expect(failure).toMatchObject({ code: 'state_unusable', facts: { fix: `chmod go-w ${data}` } });
    expect(readdirSync(data)).toEqual(['slices-conn.sqlite']);
    expect(readFileSync(join(data, 'slices-conn.sqlite'), 'utf8')).toBe('planted');
  });

  test('with a -wal file that others could have written is refused', async () => {
    const wal = join(folder, 'slices-conn.sqlite-wal');
    writeFileSync(wal, 'planted');
    chmodSync(wal, 0o666);
    const failure = await failureOf(() => started({ data: folder }));
    expect(failure.message).toContain(wal);
    expect(readdirSync(folder)).not.toContain('slices-conn.sqlite');
  });
});

test('a second server on a data folder has its address, and says so; one that follows may have another', async () => {
  const data = join(folder, 'shared');
  const first = await started({ data });
  const base = first.addresses.connectivity;
  for (const options of [{ data }, { data, baseUrl: base.replace('127.0.0.1', 'localhost') }]) {
    const { code, message, facts } = await failureOf(() => started(options));
    expect([code, message]).toEqual(['file_unusable', `The server ${base} is using the data in ${data}.`]);
    expect(facts.fix).toEqual({ data: `${data}-2` });
  }
  const second = await started({ data, baseUrl: base });
  expect([first.warnings.length, second.warnings.length]).toEqual([0, 1]);
  await second.stop();
  await first.stop();
  const next = await started({ data });
  expect(next.warnings).toEqual([]);
  expect(next.addresses.connectivity).not.toBe(base);
  await next.stop();
});

test('reservations on links that the topology lacks are counted at the start', async () => {
  const topology = join(folder, 'topology.json');
  writeFileSync(topology, JSON.stringify(smallTopology(4)));
  const before = await createReferenceServer({ database: join(folder, SERVER_FILE) });
  const { run } = commandWorld(connectionTo(before), { now: Date.now });
  const link = ['be-gent1', 'gr-uth', '--bandwidth', '1M', '--start-now', '--for', '1h'];
  expect(await run('--offline', 'reserve', ...link)).toMatchObject({ exitCode: 0 });
  await before.close();
  for (const [options, warnings] of [
    [
      { data: folder, topology },
      [expect.stringMatching(/^1 reservation that has not ended is on links that/)],
    ],
    [{ data: folder }, []],
  ] as const) {
    const server = await started(options);
    expect(server.warnings).toEqual(warnings);
    await server.stop();
  }
});

test.each<[string, string, string, unknown]>([
  [
    'what is no JSON',
    '{\n  "sites": [],\n  nothing\n}',
    'is not JSON.',
    'It is wrong from line 3, column 3 on.',
  ],
  [
    'JSON that ends too soon',
    '{\n  "sites": [',
    'is not JSON.',
    'It ends too soon, or a value in it is wrong.',
  ],
  ['a member twice', '{"sites": [], "sites": []}', 'is not JSON.', 'An object names a member twice.'],
  [
    'a rule that is broken',
    JSON.stringify({ ...smallTopology(4), sites: ['be-gent1'] }),
    "can't be used.",
    ['Link be-gent1 – pl-poznan1 names pl-poznan1, which is not a site.'],
  ],
])('a topology with %s: its file, and where', async (_, text, message, where) => {
  const topology = join(folder, 'topology.json');
  writeFileSync(topology, text);
  const failure = await failureOf(() => started({ memory: true, topology }));
  expect(failure.message).toBe(`The topology ${topology} ${message}`);
  expect(failure.facts.lines ?? failure.facts.why).toEqual(where);
});

describe('the ready file', () => {
  test('row 51: replaces a planted link, whose target is not touched', async () => {
    const [readyFile, elsewhere] = [join(folder, 'ready.json'), join(folder, 'elsewhere')];
    writeFileSync(elsewhere, 'mine');
    for (const end of ['', '.tmp', `.${process.pid}.tmp`]) symlinkSync(elsewhere, `${readyFile}${end}`);
    const umask = process.umask(0);
    const server = await started({ memory: true, readyFile }).finally(() => process.umask(umask));
    expect(readFileSync(elsewhere, 'utf8')).toBe('mine');
    expect(JSON.parse(readFileSync(readyFile, 'utf8'))).toMatchObject({ pid: process.pid });
    expect(statSync(readyFile).mode & 0o777).toBe(0o644);
    await server.stop();
    expect(existsSync(readyFile)).toBe(false);
  });

  test.each<[string, string[]]>([
    ['a flag that means nothing alone', ['--audience', 'x']],
    ['an issuer that is none', ['--trust', 'x']],
    ['a database that is none', ['--database', 'x']],
    ['a CA file that can’t be read', ['--trust', 'https://idp.example.org', '--ca-file', '/none.pem']],
    ['a server that does not start', []],
  ])('row 55: of an earlier server is removed when a start fails: %s', async (_, args) => {
    const world = commandWorld(NOBODY, {
      stopSignal: async () => 'terminated',
      server: serverCommands({
        serve: () => Promise.reject(new Failure('network', 'The port is taken.')),
      }),
    });
    world.files.set('/ready.json', 'left over');
    expect(await world.run('serve', '--ready-file', '/ready.json', ...args)).not.toMatchObject({
      exitCode: 0,
    });
    expect(world.files.has('/ready.json')).toBe(false);
  });
});
