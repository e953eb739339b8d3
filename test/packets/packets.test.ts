import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { shellWord } from '../../src/contract/failure.ts';
import type { Topology } from '../../src/contract/links.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { newMachine } from '../e2e/command.ts';
import { LAUNCHER } from '../e2e/served.ts';
import { type CommandRun, type CommandWorld, commandWorld, tokenOf } from '../fixtures/command-world.ts';
import {
  type Bench,
  type Frame,
  type Guest,
  machineOf,
  missingPackages,
  startBench,
  type Which,
} from './guests.ts';

const missing = missingPackages();
const TITLE =
  missing.length === 0
    ? 'two servers and the network between them'
    : `NOT TESTED with real packets: to install: ${missing.join(' ')}`;
if (missing.length > 0) process.stderr.write(`vlan and probe are ${TITLE}.\n`);

/** How often each fault is made; the long form of `npm run prove` makes each ten times. */
const ROUNDS = Number(process.env['PROVE_PACKETS'] ?? 1);
/** How many of the faults are made: the first ones; `npm run prove` makes all. */
const FAULTS_MADE = process.env['PROVE_PACKETS'] === undefined ? 4 : undefined;
/** Without tcpdump, the counters of devices must give the same verdicts. */
const LISTENERS = [
  { title: 'with tcpdump', without: [] },
  { title: 'without tcpdump', without: ['tcpdump'] },
].slice(0, FAULTS_MADE === undefined ? undefined : 1);

const SITES = ['be-gent1', 'pl-poznan1'] as const;
const ADDRESSES = ['10.0.0.1', '10.0.0.2'] as const;
/** Each site has tags of its own: the network between translates them. */
const [S, C] = [
  [1001, 2002],
  [17, 23],
] as const;
/** A second link of the first site has the same S-tags: its other site is the second server's too. */
const OTHER = { site: 'se-kth', c: [18, 24], addresses: ['10.0.1.1', '10.0.1.2'] } as const;
const linkTo = (site2: string, [c1, c2]: readonly [number, number]): Topology['links'][number] => ({
  ...{ site1: SITES[0], site2, bandwidth: 100_000 },
  ...{
    site1_s_tags: [S[0], S[0]],
    site1_c_tags: [c1, c1],
    site2_s_tags: [S[1], S[1]],
    site2_c_tags: [c2, c2],
  },
});
const TOPOLOGY: Topology = {
  sites: [...SITES, OTHER.site],
  links: [linkTo(SITES[1], C), linkTo(OTHER.site, OTHER.c)],
};

/** The first bytes behind the two addresses of a frame, such as `88a8:1001 8100:17 0800`. */
function stackOf({ bytes }: Pick<Frame, 'bytes'>): string {
  const words: string[] = [];
  for (let at = 12; ; at += 4) {
    const type = bytes.readUInt16BE(at);
    const kind = type.toString(16).padStart(4, '0');
    if (type !== 0x88a8 && type !== 0x8100) return [...words, kind].join(' ');
    words.push(`${kind}:${bytes.readUInt16BE(at + 2) & 0xfff}`);
  }
}

/** Translates the S-tag of an end, and the C-tags of both reservations behind it; passes all other frames on as they are. */
function translated({ from, bytes }: Frame): Buffer {
  const to = from === 0 ? 1 : 0;
  const [outer, inner] = stackOf({ bytes }).split(' ');
  if (outer !== `88a8:${S[from]}`) return bytes;
  const copy = Buffer.from(bytes);
  copy.writeUInt16BE(S[to], 14);
  const pair = [C, OTHER.c].find((c) => inner === `8100:${c[from]}`);
  if (pair) copy.writeUInt16BE(pair[to], 18);
  return copy;
}

/** In CI packages that are missing are a failure: these tests would be green without having run. */
describe.skipIf(missing.length > 0 && !process.env['CI'])(TITLE, () => {
  let bench: Bench;
  let guests: readonly [Guest, Guest];
  let server: ReferenceServer;
  let worlds: readonly [CommandWorld, CommandWorld];
  /** What makes each end, and what removes it. */
  const up: [string, string] = ['', ''];
  const down: [string, string] = ['', ''];
  beforeAll(async () => {
    [bench, server] = await Promise.all([
      startBench({ carry: translated }),
      createReferenceServer({ now: Date.now, topology: TOPOLOGY }),
    ]);
    ({ guests } = bench);
    worlds = [worldOf(0), worldOf(1)];
    const [token, other] = [await booked(SITES[1]), await booked(OTHER.site)];
    for (const { files } of worlds) files.set('link.jwt', token).set('other.jwt', other);
    for (const which of [0, 1] as const) {
      const vlan = ['vlan', 'link.jwt', '--site', SITES[which], '--dev', 'eth1'];
      up[which] = await printed(...vlan, '--address', `${ADDRESSES[which]}/24`);
      down[which] = await printed(...vlan, '--remove');
    }
  });
  afterAll(async () => {
    await bench?.close();
    await server?.close();
  });
  beforeEach(() => {
    bench.provider.carry = translated;
  });

  function worldOf(which: Which, without: readonly string[] = []): CommandWorld {
    const connection = {
      fetch: server.fetch,
      userToken: tokenOf(() => server.signIn('lead')),
      close: async () => undefined,
    };
    const world = commandWorld(connection, {
      now: Date.now,
      sleep: (milliseconds, signal) => sleep(milliseconds, undefined, signal ? { signal } : {}),
      machine: machineOf(guests[which], without),
      stopSignal: () => new Promise(() => undefined),
    });
    const link = worlds?.[which].files.get('link.jwt');
    if (link !== undefined) world.files.set('link.jwt', link);
    return world;
  }

  /** What a command prints that must succeed. */
  async function printed(...args: string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await worlds[0].run('--offline', ...args);
    if (exitCode !== 0) throw new Error(stderr);
    return stdout;
  }

  /** The signed token of a reservation that has begun. */
  async function booked(site2: string): Promise<string> {
    const reserve = ['reserve', SITES[0], site2, '--bandwidth', '1G', '--start-now', '--for', '2h'];
    return JSON.parse(await printed('--json', ...reserve)).token;
  }

  /** Runs a script that must succeed. */
  async function inGuest(which: Which, script: string): Promise<string> {
    const { exitCode, stdout, stderr } = await guests[which].run(`set -e\n${script}`);
    if (exitCode !== 0) throw new Error(`${script} ended with ${exitCode}: ${stderr}`);
    return stdout;
  }

  /** Makes both ends anew, after changes to what is typed. */
  async function makeEnds(changed: (script: string, which: Which) => string = (script) => script) {
    const clean =
      'for d in $(ls /sys/class/net); do case $d in sc*) ip link del $d 2>/dev/null || :;; esac; done';
    await Promise.all(
      ([0, 1] as const).map((which) => inGuest(which, `${clean}\n${changed(up[which], which)}`)),
    );
  }

  test('what vlan prints carries 1500 bytes; the bytes on the wire; beside it a reservation with the same S-tag; the removal of both leaves what was there', async () => {
    // The other devices are the bench's own: a bridge counts the seconds.
    const links = () =>
      Promise.all(
        ([0, 1] as const).map(async (which) => {
          const all: { ifname: string }[] = JSON.parse(await inGuest(which, 'ip -j -d link'));
          return all.filter(({ ifname }) => !['br0', 'port', 'vec0'].includes(ifname));
        }),
      );
    await Promise.all(([0, 1] as const).map((which) => inGuest(which, 'ip link set dev eth1 mtu 1508 up')));
    const before = await links();
    await makeEnds();
    bench.provider.frames = [];
    const { stdout } = await guests[0].run(`ping -n -M do -s 1472 -c 2 -i 0.2 -W 5 ${ADDRESSES[1]}`);
    expect(stdout).toContain(`1480 bytes from ${ADDRESSES[1]}`);
    const full = bench.provider.frames.filter(({ bytes }) => bytes.length === 1522);
    expect(new Set(full.map((frame) => `${frame.from} ${stackOf(frame)}`))).toEqual(
      new Set([`0 88a8:${S[0]} 8100:${C[0]} 0800`, `1 88a8:${S[1]} 8100:${C[1]} 0800`]),
    );

    // The second comes to the devices of the first, and stays when they go: by --apply at one end, as printed at the other.
    const other = (at: (which: Which) => readonly string[]) => {
      const vlan = ['--offline', 'vlan', 'other.jwt', '--dev', 'eth1'];
      return Promise.all([
        printed(...vlan, '--site', OTHER.site, ...at(1)).then((text) => inGuest(1, text)),
        worlds[0]
          .run(...vlan, '--site', SITES[0], ...at(0), '--apply', '--yes')
          .then(({ exitCode, stderr }) => {
            if (exitCode !== 0) throw new Error(stderr);
          }),
      ]);
    };
    const pinged = () => inGuest(0, `ping -n -q -M do -s 1472 -c 1 -W 5 ${OTHER.addresses[1]}`);
    await other((which) => ['--address', `${OTHER.addresses[which]}/24`]);
    await pinged();
    await Promise.all(([0, 1] as const).map((which) => inGuest(which, down[which])));
    await pinged();
    await other(() => ['--remove']);
    expect(await links()).toEqual(before);
  });

  test('the program itself in a server, with a reservation made offline', async () => {
    // The tags of this reservation are the same at both ends.
    bench.provider.carry = ({ bytes }) => bytes;
    const { home, json, run } = newMachine();
    await json('reserve', ...SITES, '--bandwidth', '1G', '--start-now', '--for', '2h', '--save', 'link.jwt');
    await makeEnds(() => '');
    for (const which of [0, 1] as const) {
      const vlan = ['vlan', 'link.jwt', '--site', SITES[which], '--dev', 'eth1'];
      const { stdout } = await run(['--offline', ...vlan, '--address', `${ADDRESSES[which]}/24`]);
      await inGuest(which, stdout);
    }
    cpSync(home, join(guests[0].folder, 'home'), { recursive: true });
    const probe = ['probe', 'link.jwt', '--site', SITES[0], '--dev', 'eth1', '--peer', ADDRESSES[1]];
    const words = [process.execPath, LAUNCHER, '--offline', '--json', ...probe];
    const { exitCode, stdout, stderr } = await guests[0].run(
      `cp -r home /tmp; cd /tmp/home; HOME=$PWD XDG_STATE_HOME=$PWD/state ${words.map(shellWord).join(' ')}`,
    );
    expect([exitCode, stderr], stdout).toEqual([0, '']);
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'ok', end: null, heard: [] });
  });

  /** What is probed at each end at the same time, and what comes out. */
  interface Fault {
    name: string;
    /** Changes what is typed at an end. */
    typed?: (script: string, which: Which) => string;
    carry?: (frame: Frame) => Buffer | undefined;
    /** The verdicts of both ends; of one end, undefined means that the other one only pings. */
    verdicts: readonly [string, string | undefined];
  }

  const at1 = (change: (script: string) => string) => (script: string, which: Which) =>
    which === 1 ? change(script) : script;
  const tags = (s: number, c: number) => (script: string) =>
    script.replace(/ id \d+$/m, ` id ${s}`).replace(/( proto 802\.1Q) id \d+$/m, `$1 id ${c}`);

  const FAULTS: readonly Fault[] = [
    { name: 'none', verdicts: ['ok', 'ok'] },
    {
      name: 'the network carries 1518 bytes',
      carry: (frame) => (frame.bytes.length > 1518 ? undefined : translated(frame)),
      verdicts: ['path_mtu', 'path_mtu'],
    },
    {
      name: 'S-tag and C-tag swapped',
      typed: at1(tags(C[1], S[1])),
      verdicts: ['far_tags_swapped', 'own_tags_swapped'],
    },
    {
      name: '802.1Q outside',
      typed: at1((script) => script.replace('proto 802.1ad', 'proto 802.1Q')),
      verdicts: ['far_ethertype', 'own_ethertype'],
    },
    { name: 'another C-tag', typed: at1(tags(S[1], 99)), verdicts: ['far_c_tag', 'own_device'] },
    {
      name: "the other site's tags",
      typed: at1(tags(S[0], C[0])),
      verdicts: ['far_does_not_hear', 'own_other_sites_tags'],
    },
    {
      name: 'one tag',
      typed: at1((script) => `${script}\nip link del $inner; ip address add ${ADDRESSES[1]}/24 dev $outer`),
      verdicts: ['single_tagged', 'own_device'],
    },
    {
      name: 'frames are lost in one direction',
      carry: (frame) => (frame.from === 1 ? undefined : translated(frame)),
      verdicts: ['silent', 'far_does_not_hear'],
    },
    {
      name: 'an MTU too small',
      typed: at1((script) => `${script}\nip link set dev $inner mtu 1400`),
      // It answers in pieces.
      verdicts: ['ok', 'own_mtu'],
    },
  ];

  async function probed(world: CommandWorld, which: Which): Promise<CommandRun> {
    const peer = ADDRESSES[which === 0 ? 1 : 0];
    const flags = ['--site', SITES[which], '--dev', 'eth1', '--peer', peer];
    return world.run('--offline', '--json', 'probe', 'link.jwt', ...flags);
  }

  describe.each(LISTENERS)('$title', ({ without }) => {
    test.each(FAULTS.slice(0, FAULTS_MADE))('$name: $verdicts', async ({ typed, carry, verdicts }) => {
      const both = [worldOf(0, without), worldOf(1, without)] as const;
      for (let round = 0; round < ROUNDS; round += 1) {
        bench.provider.carry = translated;
        await makeEnds((script, which) => {
          const [outer = '', inner = ''] = [...script.matchAll(/ name (\S+)/g)].map(([, name]) => name);
          return `outer=${outer} inner=${inner}\n${(typed ?? ((same) => same))(script, which)}`;
        });
        bench.provider.carry = carry ?? translated;
        bench.provider.frames = [];
        // The far end tries to reach this one, as someone there does.
        const over = new AbortController();
        const pinging = guests[1].run(`exec ping -q -i 0.5 ${ADDRESSES[0]}`, { signal: over.signal });
        const [here, there] = await Promise.all([probed(both[0], 0), probed(both[1], 1)]);
        over.abort();
        await pinging;
        const results = [here, there].map(({ exitCode, stdout, stderr }) => {
          if (stdout === '') throw new Error(stderr);
          return { exitCode, ...JSON.parse(stdout) };
        });
        expect(results, JSON.stringify(results)).toMatchObject(
          verdicts.map((verdict) => ({ verdict, exitCode: verdict === 'ok' ? 0 : 6 })),
        );
        const sent = new Set(
          bench.provider.frames
            .filter(({ from }) => from === 0)
            .map((frame) => stackOf(frame).split(' ').slice(0, -1).join(' ')),
        );
        for (const stack of sent) {
          expect(['', `88a8:${S[0]}`, `88a8:${S[0]} 8100:${C[0]}`]).toContain(stack);
        }
      }
    });
  });
});
