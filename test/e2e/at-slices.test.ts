import { globSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { EXPERIMENT, openSlicesSite, type SiteSwitches, type SlicesSite } from '../fixtures/slices-site.ts';
import { reportOf, reservationIn, typed } from './command.ts';
import { type Client, newClient } from './served.ts';

// From an empty home, with the official client logged in, against a stand-in of the services that people at SLICES have.

const PERIOD = ['--start', '+1h', '--for', '2h'];
const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G'];
const PLAN = `version: 1
defaults: {start: 2099-12-01T10:00:00Z, for: 2h}
reservations:
  a: {sites: [be-gent1, pl-poznan1], bandwidth: 1G, description: of the plan}
  b: {sites: [be-gent1, fr-lille], bandwidth: 2G}
`;

/** A person's machine with the official client on the PATH. */
function machineAt({ bin }: Pick<SlicesSite, 'bin'>, env: Readonly<Record<string, string>> = {}): Client {
  return newClient({
    PATH: `${bin}:${process.env['PATH']}`,
    SLICES_EXPERIMENT: EXPERIMENT.name,
    ...env,
  });
}

/** A machine at a service of its own, after the one command. */
async function loggedIn(switches: SiteSwitches = {}, env: Readonly<Record<string, string>> = {}) {
  const site = await openSlicesSite(switches);
  const client = machineAt(site, env);
  await run(client, 'login', site.url, '--with-slices');
  return { site, client };
}

/** Runs a command that must succeed. */
async function run(client: Client, ...args: string[]): Promise<{ stdout: string; stderr: string }> {
  const ended = await client.command(...args);
  if (ended.exitCode !== 0)
    throw new Error(`${args.join(' ')} ended with ${ended.exitCode}: ${ended.stderr}`);
  return ended;
}

const fail = async (client: Client, ...args: string[]) => reportOf(await client.command(...args, '--json'));

describe('after one command', () => {
  let site: SlicesSite;
  let client: Client;
  let id = '';
  beforeAll(async () => {
    ({ site, client } = await loggedIn());
    ({ id } = reservationIn(await client.result(...LINK, ...PERIOD, '--save', 'link.jwt')));
  });

  test('the profile has the address and both programs; nothing but the service was asked', async () => {
    const { stdout } = await run(client, 'profile', 'show');
    for (const value of [site.url, 'get-for-audience', '{experiment}', 'experiment'])
      expect(stdout).toContain(value);
    expect(
      site.requests.filter(
        (line) =>
          !/^(?:GET \/(?:\.well-known\/jwks\.json|api-spec)|\w+ \/apis\/v1alpha1\/connectivity)/.test(line),
      ),
    ).toEqual([]);
  });

  test('list, show, verify and vlan', async () => {
    expect(await client.result('list')).toMatchObject({
      items: [{ id, state: 'scheduled', source: 'service' }],
    });
    expect((await run(client, 'list')).stderr).toContain('does not list reservations');
    expect(await client.result('show', id)).toMatchObject({ verified: true, reservation: { id } });
    await run(client, 'verify', 'link.jwt');
    const { stdout } = await run(client, 'vlan', id, '--site', 'be-gent1', '--dev', 'eth1');
    expect(stdout).toContain(String(site.reservations.get(id)?.site1_s_tag));
  });

  test('update and delete, by a name that stays on this machine, which is said once', async () => {
    const there = site.reservations.size;
    const named = await run(client, ...LINK, ...PERIOD, '--name', 'backup', '--description', 'nightly');
    expect(named.stderr.match(/keeps no/g)).toHaveLength(1);
    await run(client, 'update', 'backup', '--bandwidth', '2G', '--extend', '1h');
    expect([...site.reservations.values()].at(-1)).toMatchObject({ bandwidth: 2000 });
    await run(client, 'delete', 'backup', '--yes');
    expect(site.reservations.size).toBe(there);
  });

  test('run books for as long as the command runs', async () => {
    const there = site.reservations.size;
    const command = ['--', 'sh', '-c', 'echo $SLICES_CONN_SITE1_S_TAG'];
    const link = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--for', '1h'];
    const { stdout } = await client.start('run', ...link, ...command).ended;
    expect(stdout).toMatch(/^3\d{3}\n$/);
    expect(site.reservations.size).toBe(there);
  });

  test('a second command within a minute does not call the official client at all', async () => {
    const before = site.calls();
    await run(client, ...LINK, ...PERIOD);
    expect(site.calls()).toEqual(before);
    expect(before.filter((line) => line.startsWith('auth'))).toHaveLength(1);
    await run(client, 'logout');
    await run(client, 'status');
    expect(site.calls().length).toBeGreaterThan(before.length);
  });

  test('status, experiment list and experiment use know the experiment by its token', async () => {
    const { stdout } = await run(client, 'status');
    for (const part of [EXPERIMENT.name, 'lead', 'alice']) expect(stdout).toContain(part);
    expect((await run(client, 'experiment', 'list')).stdout).toContain(EXPERIMENT.id);
    expect((await run(client, 'experiment', 'use', EXPERIMENT.name)).stdout).toContain(EXPERIMENT.id);
  });
});

test('apply twice changes nothing, and again after both were deleted elsewhere it makes them anew', async () => {
  const { site, client } = await loggedIn();
  writeFileSync(join(client.home, 'demo.yaml'), PLAN);
  const planned = await run(client, 'plan', 'demo.yaml');
  expect(planned.stdout).toContain("can't be asked whether");
  await run(client, 'apply', 'demo.yaml');
  const first = [...site.reservations.keys()];
  expect(first).toHaveLength(2);
  expect((await run(client, 'apply', 'demo.yaml')).stdout).toMatch(/Nothing to do/);
  expect([...site.reservations.keys()]).toEqual(first);
  site.reservations.clear();
  await run(client, 'apply', 'demo.yaml');
  expect(site.reservations.size).toBe(2);
  // One update needs no batch; two do.
  writeFileSync(join(client.home, 'demo.yaml'), PLAN.replace('bandwidth: 1G', 'bandwidth: 3G'));
  await run(client, 'apply', 'demo.yaml', '--yes');
  expect([...site.reservations.values()].map(({ bandwidth }) => bandwidth).toSorted()).toEqual([2000, 3000]);
  writeFileSync(join(client.home, 'demo.yaml'), PLAN.replace('2G', '4G'));
  expect(await fail(client, 'apply', 'demo.yaml', '--yes')).toMatchObject({
    code: 'not_supported',
    why: expect.stringContaining('would update a'),
  });
  writeFileSync(join(client.home, 'demo.yaml'), PLAN);
  // Where the service can't be asked for what the file names, nothing is made.
  site.fates = Array.from({ length: 12 }, () => '500' as const);
  expect(await fail(client, 'apply', 'demo.yaml')).toMatchObject({ code: 'unavailable', exitCode: 7 });
  expect(site.reservations.size).toBe(2);
});

test('where the service signs nothing, --allow-unsigned leads through', async () => {
  const { site, client } = await loggedIn({ signs: false });
  writeFileSync(join(client.home, 'demo.yaml'), PLAN);
  const refused = await fail(client, 'apply', 'demo.yaml');
  expect(refused).toMatchObject({ code: 'unsigned', exitCode: 9 });
  await run(client, ...typed(refused.fix));
  const [id = ''] = site.reservations.keys();
  await run(client, 'vlan', id, '--site', 'be-gent1', '--dev', 'eth1', '--allow-unsigned');
  const flags = ['--bandwidth', '1G', '--for', '1h', '--allow-unsigned'];
  expect(await client.start('run', 'be-gent1', 'pl-poznan1', ...flags, '--', 'true').ended).toMatchObject({
    exitCode: 0,
  });
  expect(site.reservations.size).toBe(2);
});

describe('the way in', () => {
  test('login ADDRESS names the one command', async () => {
    const site = await openSlicesSite();
    const { fix } = await fail(machineAt(site), 'login', site.url);
    expect(typed(fix)).toEqual(['login', site.url, '--with-slices']);
  });

  test.each<[string, Readonly<Record<string, string>>, RegExp]>([
    ['no program', { PATH: '/usr/bin:/bin' }, /Activate its virtual environment, or give its path/],
    ['nobody is logged in', { SLICES_LOGGED_OUT: 'yes' }, /user credentials.*\n.*slices auth login/s],
  ])('%s: what to type, and nothing is kept', async (_, env, says) => {
    const site = await openSlicesSite();
    const client = machineAt(site, env);
    const { exitCode, stderr } = await client.command('login', site.url, '--with-slices');
    expect([exitCode === 0, stderr]).toEqual([false, expect.stringMatching(says)]);
    expect((await client.command('profile', 'list')).stdout).not.toContain(site.url);
  });

  test('an address where no service answers is not kept', async () => {
    const client = machineAt(await openSlicesSite());
    const refused = await fail(client, 'login', 'http://127.0.0.1:1', '--with-slices');
    expect(refused).toMatchObject({ code: 'network', exitCode: 7 });
    expect((await client.command('profile', 'list')).stdout).not.toContain('127.0.0.1:1');
  });

  test('a service that wants the tokens the other way round: which setting to try', async () => {
    const { client } = await loggedIn({ placement: 'user' });
    const refused = await fail(client, ...LINK, ...PERIOD);
    expect(typed(refused.fix)).toEqual(['profile', 'set', 'slices', 'tokenPlacement=user']);
    await run(client, ...typed(refused.fix));
    await run(client, ...LINK, ...PERIOD);
  });
});

test('the programs run side by side, and take nothing of --start-now --for', async () => {
  const { site, client } = await loggedIn();
  await run(client, 'logout');
  // Each waits until the other has begun.
  const [program, begun] = [join(site.bin, 'slices'), join(site.bin, 'begun')];
  renameSync(program, `${program}-itself`);
  const waiting = `echo >>${begun}; until [ $(wc -l <${begun}) -ge 2 ]; do sleep 0.01; done`;
  writeFileSync(program, `#!/bin/sh\n${waiting}; exec ${program}-itself "$@"\n`, { mode: 0o755 });
  const made = reservationIn(await client.result(...LINK, '--start-now', '--for', '2h'));
  // 5 s are added for the way, and none of them is spent on the programs.
  const least = Math.floor(statSync(begun).mtimeMs) + 7_200_000 + 5000;
  expect(Date.parse(made.end_date)).toBeGreaterThanOrEqual(least);
});

test('a program that prints no token: the kind is said, never the content', async () => {
  const { site, client } = await loggedIn();
  await run(client, 'logout');
  for (const [script, kind] of [
    ['echo "<html><body>"; echo "</body>"', '2 lines of HTML'],
    ['echo \'{"token": 1}\'', 'a line of JSON'],
    ['echo one two', 'a line of text'],
    ['true', 'It printed nothing'],
  ] as const) {
    writeFileSync(join(site.bin, 'slices'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const { code, why, fix } = await fail(client, ...LINK, ...PERIOD);
    expect([code, why, fix]).toEqual(['not_logged_in', expect.stringContaining(kind), 'slices auth login']);
    expect(why).not.toMatch(/body|one two|token": 1/);
  }
});

test('a request that was never answered is settled by hand, with a question', async () => {
  const { site, client } = await loggedIn();
  site.fates = ['cut'];
  expect(await fail(client, ...LINK, ...PERIOD)).toMatchObject({ exitCode: 7, maybeDone: true });
  const { stderr } = await run(client, 'list');
  const [, key = ''] = /list --forget (\S+)/.exec(stderr) ?? [];
  expect(await fail(client, 'list', '--forget', key)).toMatchObject({ exitCode: 2 });
  await run(client, 'list', '--forget', key, '--yes');
  expect((await run(client, 'list')).stdout).toContain('No reservation');
  expect(await fail(client, 'list', '--forget', key, '--yes')).toMatchObject({ code: 'usage' });
});

test('the kept tokens are readable by their owner alone', async () => {
  const { client } = await loggedIn();
  const files = globSync('**/commands/**/*.json', { cwd: client.home }).map((file) =>
    join(client.home, file),
  );
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) expect(statSync(file).mode & 0o077).toBe(0);
});
