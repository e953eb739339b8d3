import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Machine, ProgramResult } from '../../../src/cli/context.ts';
import { LISTENING } from '../../../src/cli/probe/evidence.ts';
import { Failure } from '../../../src/contract/failure.ts';
import type { ReferenceServer } from '../../../src/reference-server.ts';
import { reportOf, reservationIn } from '../../e2e/command.ts';
import { type CommandWorld, offlineWorld } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';

const SITE = 'be-gent1';
const FLAGS = ['--site', SITE, '--dev', 'eth1', '--peer', '10.0.0.2'];
const pinged = (received: number): ProgramResult => ({
  exitCode: received === 0 ? 1 : 0,
  stdout: `3 packets transmitted, ${received} received, 0% packet loss, time 400ms`,
  stderr: '',
});
const [PING_LOST, PING] = [pinged(0), pinged(3)];
const ok = (stdout = ''): ProgramResult => ({ exitCode: 0, stdout, stderr: '' });
const missing = (program: string) => new Failure('command_not_found', `There is no command "${program}".`);

let now = NOW;
let world: CommandWorld & { server: ReferenceServer };
/** What each program of this machine does; those that are not named are missing. */
let programs: Record<
  string,
  (call: readonly string[], input: string) => Promise<ProgramResult> | ProgramResult
>;
let calls: string[];
let isRoot = true;
let stop: (stopped: 'interrupted' | 'terminated') => void;
let tags: [number, number];
const machine: Machine = {
  isRoot: () => isRoot,
  async runProgram(call, { input = '', signal, onLine, onNotice } = {}) {
    calls.push(call.join(' '));
    const [program = ''] = call;
    const found = programs[program];
    if (!found) throw missing(program);
    const result = await found(call, input);
    for (const line of result.stdout.split('\n').slice(0, -1)) onLine?.(line);
    for (const line of result.stderr.split('\n').slice(0, -1)) onNotice?.(line);
    if (program === 'tcpdump' && result.exitCode === 0) {
      await new Promise((resolve) => signal?.addEventListener('abort', resolve));
    }
    return result;
  },
};
const links = (...more: object[]) =>
  JSON.stringify([
    { ifname: 'eth1', flags: ['UP', 'LOWER_UP'], mtu: 1508 },
    { ifname: 'sco', link: 'eth1', flags: ['UP', 'LOWER_UP'], mtu: 1504, linkinfo: vlan('802.1ad', tags[0]) },
    { ifname: 'sco.i', link: 'sco', flags: ['UP', 'LOWER_UP'], mtu: 1500, linkinfo: vlan('802.1Q', tags[1]) },
    ...more,
  ]);
const vlan = (protocol: string, id: number) => ({ info_kind: 'vlan', info_data: { protocol, id } });
const ip = (call: readonly string[]): ProgramResult => {
  if (call.includes('link') && call.includes('-s')) return ok(links());
  if (call.includes('address'))
    return ok('[{"addr_info":[{"local":"10.0.0.1","prefixlen":24},{"local":"fe80::1","prefixlen":64}]}]');
  return ok();
};
const tcpdump =
  (...stacks: string[]) =>
  (): ProgramResult => ({
    exitCode: 0,
    stdout: stacks.map((line) => `${line}\n`).join(''),
    stderr: 'tcpdump: verbose output suppressed\nlistening on eth1, link-type EN10MB\n',
  });
const NO_ARP = () => ({ ...ok('Received 0 response(s)'), exitCode: 1 });
/** The programs where nothing comes from the other end. */
const SILENT = { ping: () => PING_LOST, tcpdump: tcpdump(), arping: NO_ARP };
const probeOf = (file: string, ...args: string[]) => world.run('--offline', 'probe', file, ...FLAGS, ...args);
const probe = (...args: string[]) => probeOf('link.jwt', ...args);
const json = async (...args: string[]) => {
  const { stdout, stderr, exitCode } = await probe('--json', ...args);
  if (stdout === '') throw new Error(stderr);
  return { exitCode, stderr, ...JSON.parse(stdout) };
};

beforeAll(async () => {
  world = await offlineWorld({
    ...machine,
    now: () => now,
    sleep: async (milliseconds, signal) => {
      now += milliseconds;
      await new Promise(setImmediate);
      signal?.throwIfAborted();
    },
    stopSignal: () =>
      new Promise((resolve) => {
        stop = resolve;
      }),
  });
  const { stdout } = await world.run(
    ...['--offline', '--json', 'reserve', SITE, 'pl-poznan1', '--bandwidth', '1G'],
    ...['--start-now', '--for', '2h'],
  );
  const result = JSON.parse(stdout);
  const { site1_s_tag, site1_c_tag } = reservationIn(result);
  tags = [site1_s_tag, site1_c_tag];
  world.files.set('link.jwt', result.token);
});
afterAll(() => world.server.close());

describe('probe', () => {
  const begin = (changes: typeof programs = {}) => {
    [calls, isRoot, now] = [[], true, NOW];
    programs = { ip, ping: () => PING, ...changes };
  };

  test('a link that works: 0, the checks, and nothing that needs root', async () => {
    begin();
    const { exitCode, stdout, stderr } = await probe();
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^The link works: 10\.0\.0\.2 answers packets of 1500 bytes\.\n/);
    const devices = `eth1 MTU 1508, sco 88a8:${tags[0]} MTU 1504, sco.i 8100:${tags[1]} MTU 1500`;
    expect(stdout).toMatch(new RegExp(` {2}✓ devices +${devices}\n`));
    expect(stdout).toMatch(/ {2}✓ small packets +84 bytes: 3 of 3 answered\n/);
    expect(calls.map((call) => call.split(' ')[0])).toEqual(['ip', 'ip', 'ping', 'ping']);
    expect(calls.at(-1)).toBe('ping -n -M do -c 3 -i 0.2 -W 2 -s 1472 -I sco.i 10.0.0.2');
  });

  test('--json: the four members, and whose they are; another verdict is 6 and no error', async () => {
    begin(SILENT);
    const { exitCode, stderr, ...result } = await json();
    expect([exitCode, stderr]).toEqual([6, '']);
    expect(Object.keys(result)).toEqual(['verdict', 'end', 'heard', 'checks', 'reservation', 'site']);
    expect(result).toMatchObject({ verdict: 'silent', end: null, heard: [], site: SITE });
    expect(result.checks.at(-1)).toEqual({ check: 'listening', ok: false, saw: 'nothing' });
    expect(now - NOW).toBeGreaterThanOrEqual(LISTENING);
  });

  test('says what to type at the other end', async () => {
    const line = `x, ethertype 802.1Q-QinQ (0x88a8), length 50: vlan ${tags[1]}, p 0, ethertype 802.1Q (0x8100), vlan ${tags[0]}, p 0, ethertype ARP`;
    begin({ ...SILENT, tcpdump: tcpdump(line) });
    const { exitCode, stdout } = await probe();
    expect(exitCode).toBe(6);
    expect(stdout).toMatch(/^The tags are swapped at pl-poznan1: its frames arrive as 88a8:\d+ 8100:\d+\.\n/);
    expect(stdout).toMatch(
      /\n {2}slices-conn --offline vlan con_\S+ --site pl-poznan1 --dev DEVICE --address ADDRESS \| sudo sh -ex\n$/,
    );
  });

  test('without root: what could not be done, and the command with sudo', async () => {
    begin({
      ping: () => PING_LOST,
      tcpdump: () => ({
        exitCode: 1,
        stdout: '',
        stderr: "tcpdump: eth1: You don't have permission to capture on that device\n",
      }),
      arping: () => ({ exitCode: 2, stdout: '', stderr: 'arping: socket: Operation not permitted\n' }),
    });
    isRoot = false;
    const { stdout } = await probe();
    expect(stdout).toContain('not asked: arping needs root');
    expect(stdout).toContain('nobody listened: tcpdump needs root');
    expect(stdout).toMatch(/Listen as root:\n {2}sudo slices-conn --offline probe link\.jwt --site be-gent1/);
  });

  test('full size: lost, too long, and what is offered', async () => {
    const lostAbove = (most: number) => (call: readonly string[]) =>
      Number(call[call.indexOf('-s') + 1]) > most ? PING_LOST : PING;
    begin({ ping: lostAbove(1468) });
    expect(await json()).toMatchObject({ verdict: 'path_mtu', end: 'path', exitCode: 6 });
    expect((await probe()).stdout).toMatch(
      /\n {2}ip link set dev sco\.i mtu 1496\n {2}slices-conn --offline vlan link\.jwt --site be-gent1 --dev eth1 --mtu 1496\n$/,
    );
    begin({ ping: lostAbove(1000) });
    expect((await probe()).stdout).toMatch(/or use a smaller --mtu with vlan, at both ends\.\n$/);
    begin({
      ping: (call) =>
        call.includes('1472')
          ? { ...PING_LOST, stderr: 'ping: local error: message too long, mtu=1496' }
          : PING,
    });
    expect(await json()).toMatchObject({ verdict: 'own_mtu', end: 'own' });
  });

  test('frames of another reservation with the same S-tag, which has a device here, say nothing of this one', async () => {
    const line = `x, ethertype 802.1Q-QinQ (0x88a8), length 50: vlan ${tags[0]}, p 0, ethertype 802.1Q (0x8100), vlan 99, p 0, ethertype ARP`;
    const others = links({ ifname: 'sco.99', link: 'sco', mtu: 1500, linkinfo: vlan('802.1Q', 99) });
    for (const [devices, verdict] of [
      [links(), 'far_c_tag'],
      [others, 'silent'],
    ]) {
      begin({
        ...{ ...SILENT, tcpdump: tcpdump(line) },
        ip: (call) => (call.includes('-s') && call.includes('link') ? ok(devices) : ip(call)),
      });
      expect(await json()).toMatchObject({ verdict });
    }
  });

  test('without tcpdump: devices are made that watch, and removed; after Ctrl-C too', async () => {
    let batches: string[] = [];
    let made: object[] = [];
    const watching = (call: readonly string[], input: string): ProgramResult => {
      if (call.includes('-batch')) {
        batches.push(input);
        const [, name] = / name (\S+)/.exec(input) ?? [];
        made = name === undefined ? made : [{ ifname: name, link: 'eth1', mtu: 1500 }];
        if (input.includes('link del')) made = [];
      }
      return call.includes('-s') ? ok(links(...made)) : ip(call);
    };
    const silent = { ping: () => PING_LOST, arping: NO_ARP, grep: () => ok() };
    begin({ ip: watching, ...silent });
    expect(await json()).toMatchObject({ verdict: 'silent', heard: [] });
    expect([batches.length, made]).toEqual([3, []]);

    batches = [];
    begin({
      ip(call, input) {
        if (input.includes('link add')) stop('interrupted');
        return watching(call, input);
      },
      ...silent,
    });
    const stopped = await probe();
    expect([stopped.exitCode, stopped.stdout]).toEqual([130, '']);
    expect([batches.length, made]).toEqual([2, []]);
  });

  test.each([
    ['ip', 'iproute2'],
    ['ping', 'iputils-ping'],
    // Without tcpdump counters are read.
    ['grep', 'grep'],
  ])('without %s: 3, and the package that has it', async (program, name) => {
    begin({ ...SILENT, grep: () => ok() });
    delete programs['tcpdump'];
    delete programs[program];
    expect(reportOf(await probe('--json'))).toMatchObject({
      ...{ code: 'not_supported', exitCode: 3, message: `There is no command "${program}".` },
      why: expect.stringContaining(name),
    });
  });

  test('the other end’s file is judged together with this end', async () => {
    begin(SILENT);
    world.files.set(
      'far.json',
      JSON.stringify({ verdict: 'own_tags_swapped', end: 'own', heard: [], checks: [] }),
    );
    const judged = await json('--far', 'far.json');
    expect(judged).toMatchObject({ verdict: 'far_tags_swapped', end: 'far' });
    expect(judged.checks.at(-1)).toMatchObject({ check: 'other_end', ok: false });
    world.files.set('far.json', '{}');
    expect(reportOf(await probe('--json', '--far', 'far.json'))).toMatchObject({
      exitCode: 2,
      code: 'file_unusable',
    });
  });

  test.each([
    [['--peer', 'host.example'], 'host.example is not an IP address.'],
    [['--peer', '10.0.0.1'], '10.0.0.1 is the address of this end.'],
  ])('%s: 2', async (args, message) => {
    begin();
    const report = reportOf(await probe('--json', ...args));
    expect(report).toMatchObject({ exitCode: 2, message: expect.stringContaining(message) });
  });

  describe('the reservation', () => {
    const reserved = async (file: string, ...period: string[]) => {
      const call = ['reserve', SITE, 'pl-poznan1', '--bandwidth', '1G', ...period];
      world.files.set(file, JSON.parse((await world.run('--offline', '--json', ...call)).stdout).token);
    };

    test('has not started: a warning, a check that fails, and to probe again then', async () => {
      await reserved('later.jwt', '--start', '+3h', '--for', '2h');
      begin(SILENT);
      const { exitCode, stdout, stderr } = await probeOf('later.jwt');
      expect(exitCode).toBe(6);
      expect(stderr).toMatch(
        /^warning: The reservation starts .* Until then the network carries nothing\.\n$/,
      );
      expect(stdout).toMatch(
        / {2}✗ reservation +con_\S+, not before \w{3} \d+ \w{3} \d\d:\d\d(?::\d\d)? UTC\n/,
      );
      expect(stdout).toMatch(
        /\nThe network carries nothing before the reservation starts\. Probe again then:\n {2}slices-conn --offline probe later\.jwt [^\n]*\n$/,
      );
      begin(SILENT);
      const { stdout: json } = await probeOf('later.jwt', '--json');
      expect(JSON.parse(json).checks[0]).toMatchObject({ check: 'reservation', ok: false });
      // What is wrong here can be mended before.
      begin({ ...SILENT, ip: (call) => (call.includes('link') ? ok('[]') : ip(call)) });
      expect((await probeOf('later.jwt')).stdout).toMatch(/^This machine has no network device eth1\./);
    });

    test.each([
      ['has ended', 600_000, 2, /The reservation ended at 2026-11-01T\S+Z\./],
      ['has expired with its token', 7_200_000, 9, /The token does not verify\./],
    ])('%s: nothing is run, and the command that removes its devices', async (_state, later, code, says) => {
      await reserved('short.jwt', '--start-now', '--for', '1m');
      begin();
      now += later;
      const report = reportOf(await probeOf('short.jwt', '--json', '--outer', '802.1q'));
      expect([report, calls]).toMatchObject([{ exitCode: code, message: expect.stringMatching(says) }, []]);
      expect(report.fix).toBe(
        `slices-conn --offline vlan short.jwt --site ${SITE} --dev eth1 --outer 802.1q --remove`,
      );
      expect((await world.run(...(report.fix ?? '').split(' ').slice(1))).exitCode).toBe(0);
    });
  });
});
