import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { shellWord } from '../../src/contract/failure.ts';
import type { Topology } from '../../src/contract/links.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { newMachine, reservationIn, tagsOf } from '../e2e/command.ts';
import { LAUNCHER } from '../e2e/served.ts';
import { type CommandWorld, commandWorld, connectionTo } from '../fixtures/command-world.ts';
import { COMPILED } from '../fixtures/compiled.ts';
import {
  type Bench,
  endsOf,
  type Frame,
  type Guest,
  machineOf,
  missingPackages,
  processorFault,
  startBench,
  type Which,
  type WireEnd,
  wiresOver,
} from './guests.ts';

const missing = missingPackages();
const fault = missing.length > 0 ? `to install: ${missing.join(' ')}` : processorFault();
const TITLE =
  fault === undefined ? 'two servers and the network between them' : `NOT TESTED with real packets: ${fault}`;
if (fault !== undefined) process.stderr.write(`vlan and probe are ${TITLE}.\n`);

const isLong = process.env['PROVE_PACKETS'] !== undefined;
/** How often each fault is made; the long form of `npm run prove` makes each ten times. */
const ROUNDS = Number(process.env['PROVE_PACKETS'] ?? 1);

/** A link and what becomes of its frames; each has tags of its own, so that all are tried at the same time. */
interface Link {
  readonly sites: readonly [string, string];
  readonly s: readonly [number, number];
  readonly c: readonly [number, number];
  readonly addresses: readonly [string, string];
  /** Whether the network loses a frame. */
  readonly loses?: (frame: Frame) => boolean;
}

/** What is wrong with a link, or with its end at the second server, and what probe says at both ends. */
interface Fault {
  readonly name: string;
  /** Changes what is typed at the second server. @param names of the two devices */
  readonly change?: (script: string, link: Link, names: Names) => string;
  readonly loses?: Link['loses'];
  readonly verdicts: readonly [string, string];
}

const tags = (s: number, c: number, script: string): string =>
  script.replace(/ id \d+$/m, ` id ${s}`).replace(/( proto 802\.1Q) id \d+$/m, `$1 id ${c}`);

/** The devices that a script of `vlan` makes. */
type Names = Record<'outer' | 'inner', string>;

function namesIn(script: string): Names {
  const [outer = '', inner = ''] = [...script.matchAll(/ name (\S+)/g)].map(([, name]) => name);
  return { outer, inner };
}

/** What scripts do by many processes of `ip`, by one: each costs a guest a tenth of a second. */
function atOnce(...scripts: readonly string[]): string {
  const calls = scripts.flatMap((script) => [...script.matchAll(/^(?:\[ .* \|\| )?ip (.*)$/gm)]);
  return ['ip -batch - <<END', ...calls.map(([, call]) => call), 'END'].join('\n');
}

const FAULTS: readonly Fault[] = [
  { name: 'none', verdicts: ['ok', 'ok'] },
  {
    name: 'the network carries 1518 bytes',
    loses: ({ bytes }) => bytes.length > 1518,
    verdicts: ['path_mtu', 'path_mtu'],
  },
  {
    name: 'S-tag and C-tag swapped',
    change: (script, { s, c }) => tags(c[1], s[1], script),
    verdicts: ['far_tags_swapped', 'own_tags_swapped'],
  },
  {
    name: '802.1Q outside',
    change: (script) => script.replace('proto 802.1ad', 'proto 802.1Q'),
    verdicts: ['far_ethertype', 'own_ethertype'],
  },
  {
    name: 'another C-tag',
    change: (script, { s }) => tags(s[1], 99, script),
    verdicts: ['far_c_tag', 'own_device'],
  },
  {
    name: "the other site's tags",
    change: (script, { s, c }) => tags(s[0], c[0], script),
    verdicts: ['far_does_not_hear', 'own_other_sites_tags'],
  },
  {
    name: 'one tag',
    change: (script, { addresses }, { outer, inner }) =>
      `${script}\nip link del ${inner}\nip address add ${addresses[1]}/24 dev ${outer}`,
    verdicts: ['single_tagged', 'own_device'],
  },
  {
    name: 'frames are lost in one direction',
    loses: ({ from }) => from === 1,
    verdicts: ['silent', 'far_does_not_hear'],
  },
  {
    name: 'an MTU too small',
    change: (script, _, { inner }) => `${script}\nip link set dev ${inner} mtu 1400`,
    // It answers in pieces.
    verdicts: ['ok', 'own_mtu'],
  },
];

/**
 * Each fault with a link of its own. Without tcpdump, the counters of devices must give the same verdicts: that is part
 * of the long form.
 */
const CASES = [
  ...FAULTS.map((fault) => ({ ...fault, how: 'with tcpdump', without: [] })),
  ...(isLong ? FAULTS : []).map((fault) => ({ ...fault, how: 'without tcpdump', without: ['tcpdump'] })),
].map((fault, at) => {
  const link: Link = {
    sites: [`near-${at}`, `far-${at}`],
    s: [1101 + at, 2101 + at],
    c: [117 + at, 217 + at],
    addresses: [`10.1.${at}.1`, `10.1.${at}.2`],
    ...(fault.loses ? { loses: fault.loses } : {}),
  };
  return { ...fault, link };
});

/** Each site has tags of its own: the network between translates them. */
const MAIN: Link = {
  sites: ['be-gent1', 'pl-poznan1'],
  s: [1001, 2002],
  c: [17, 23],
  addresses: ['10.0.0.1', '10.0.0.2'],
};
/** A second link of the first site with the same S-tags: its other site is the second server's too. */
const OTHER: Link = {
  ...MAIN,
  sites: ['be-gent1', 'se-kth'],
  c: [18, 24],
  addresses: ['10.0.1.1', '10.0.1.2'],
};
const LINKS: readonly Link[] = [MAIN, OTHER, ...CASES.map(({ link }) => link)];

const TOPOLOGY: Topology = {
  sites: [...new Set(LINKS.flatMap(({ sites }) => sites))],
  links: LINKS.map(({ sites: [site1, site2], s, c }) => ({
    ...{ site1, site2, bandwidth: 100_000 },
    ...{ site1_s_tags: [s[0], s[0]], site1_c_tags: [c[0], c[0]] },
    ...{ site2_s_tags: [s[1], s[1]], site2_c_tags: [c[1], c[1]] },
  })),
};

/** A S-tag with the C-tag behind it. */
interface Tags {
  readonly s: number;
  readonly c: number;
}

/** The tags that the database has for both ends of each hop. @param route its sites, in order */
function hopsOf(database: string, id: string, route: readonly string[]): [Tags, Tags][] {
  const opened = new DatabaseSync(database, { readOnly: true });
  const rows = opened.prepare('SELECT * FROM hop WHERE reservation = ? ORDER BY position').all(id);
  opened.close();
  const tagsAt = (hop: number, site: string | undefined): Tags => {
    const row = rows[hop];
    const end =
      String(row?.['link'])
        .split('~')
        .indexOf(site ?? '') + 1;
    return { s: Number(row?.[`site${end}_s_tag`]), c: Number(row?.[`site${end}_c_tag`]) };
  };
  expect(rows.length).toBe(route.length - 1);
  return rows.map((_, at) => [tagsAt(at, route[at]), tagsAt(at, route[at + 1])]);
}

/** Lines for `tc`: what arrives at one device with its tags leaves the other with the other tags. */
function swap([from, its]: readonly [string, Tags], [to, other]: readonly [string, Tags]): string {
  return `qdisc add dev ${from} ingress
filter add dev ${from} ingress protocol 802.1ad flower vlan_id ${its.s} vlan_ethtype 802.1Q cvlan_id ${its.c} action vlan pop pipe action vlan modify id ${other.c} protocol 802.1Q pipe action vlan push id ${other.s} protocol 802.1ad pipe action mirred egress redirect dev ${to}`;
}

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

/**
 * The network: it translates the S-tag of an end, and the C-tag of a reservation behind it; all other frames pass as they
 * are. What a link loses, it loses whatever its tags are.
 */
function carried(frame: Frame): Buffer | undefined {
  const { bytes } = frame;
  const [from, to] = frame.from === 0 ? ([0, 1] as const) : ([1, 0] as const);
  const [outer, inner] = stackOf(frame).split(' ');
  const known = LINKS.filter(({ s }) => outer === `88a8:${s[from]}`);
  const [link] = known;
  if (!link) return bytes;
  if (known.some(({ loses }) => loses?.(frame))) return undefined;
  const copy = Buffer.from(bytes);
  copy.writeUInt16BE(link.s[to], 14);
  const pair = known.find(({ c }) => inner === `8100:${c[from]}`);
  if (pair) copy.writeUInt16BE(pair.c[to], 18);
  return copy;
}

/**
 * In CI packages that are missing are a failure: these tests would be green without having run. A processor can't be
 * installed.
 */
describe.skipIf(fault !== undefined && !(missing.length > 0 && process.env['CI']))(TITLE, () => {
  let bench: Bench;
  let guests: readonly [Guest, Guest];
  let server: ReferenceServer;
  /** Has the token of each link's reservation, which has begun, as `SITE1-SITE2.jwt`. */
  let world: CommandWorld;
  beforeAll(async () => {
    [bench, server] = await Promise.all([
      startBench({ carry: carried, withSite: true }),
      createReferenceServer({ now: Date.now, topology: TOPOLOGY }),
    ]);
    ({ guests } = bench);
    world = worldOf(server);
    const reserving = LINKS.map(async ({ sites }) => {
      const reserve = ['--json', 'reserve', ...sites, '--bandwidth', '1G', '--start-now', '--for', '2h'];
      world.files.set(fileOf(sites), JSON.parse(await printed(...reserve)).token);
    });
    await Promise.all(reserving);
  });
  afterAll(async () => {
    await bench?.close();
    await server?.close();
  });
  beforeEach(() => {
    bench.provider.carry = carried;
  });

  /** The command line on a machine that may run programs, with a server that it reaches. @param token its `link.jwt` */
  function worldOf(reached: ReferenceServer, token = ''): CommandWorld {
    const world = commandWorld(connectionTo(reached), {
      now: Date.now,
      sleep: (milliseconds, signal) => sleep(milliseconds, undefined, signal ? { signal } : {}),
      stopSignal: () => new Promise(() => undefined),
    });
    world.files.set('link.jwt', token);
    return world;
  }

  const fileOf = (sites: Link['sites']): string => `${sites.join('-')}.jwt`;

  /** What a command prints that must succeed. */
  async function printed(...args: string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await world.run('--offline', ...args);
    if (exitCode !== 0) throw new Error(stderr);
    return stdout;
  }

  /** What `vlan` prints for an end of a link. */
  const vlan = ({ sites }: Pick<Link, 'sites'>, which: Which, ...flags: string[]): Promise<string> =>
    printed('vlan', fileOf(sites), '--site', sites[which], '--dev', 'eth1', ...flags);

  /** Runs a script that must succeed. */
  async function inGuest(which: Which, script: string): Promise<string> {
    const { exitCode, stdout, stderr } = await guests[which].run(`set -e\n${script}`);
    if (exitCode !== 0) throw new Error(`${script} ended with ${exitCode}: ${stderr}`);
    return stdout;
  }

  const atBoth = <Result>(work: (which: Which) => Promise<Result>): Promise<[Result, Result]> =>
    Promise.all([work(0), work(1)]);

  test('what vlan prints carries 1500 bytes; the bytes on the wire; beside it a reservation with the same S-tag; the removal of both leaves what was there', async () => {
    // The other devices are the bench's own: a bridge counts the seconds.
    const links = () =>
      atBoth(async (which) => {
        const all: { ifname: string }[] = JSON.parse(await inGuest(which, 'ip -j -d link'));
        return all.filter(({ ifname }) => !['br0', 'port', 'vec0'].includes(ifname));
      });
    await atBoth((which) => inGuest(which, 'ip link set dev eth1 mtu 1508 up'));
    const before = await links();
    const made = await atBoth((which) => vlan(MAIN, which, '--address', `${MAIN.addresses[which]}/24`));
    await atBoth((which) => inGuest(which, made[which]));
    bench.provider.frames = [];
    const { stdout } = await guests[0].run(`ping -n -M do -s 1472 -c 2 -i 0.2 -W 120 ${MAIN.addresses[1]}`);
    expect(stdout).toContain(`1480 bytes from ${MAIN.addresses[1]}`);
    const full = bench.provider.frames.filter(({ bytes }) => bytes.length === 1522);
    const [s, c] = [MAIN.s, MAIN.c];
    expect(new Set(full.map((frame) => `${frame.from} ${stackOf(frame)}`))).toEqual(
      new Set([`0 88a8:${s[0]} 8100:${c[0]} 0800`, `1 88a8:${s[1]} 8100:${c[1]} 0800`]),
    );

    // The second comes to the devices of the first, and stays when they go: by --apply at one end, as printed at the other.
    const applied = async (...flags: readonly string[]): Promise<void> => {
      const call = ['vlan', fileOf(OTHER.sites), '--site', OTHER.sites[0], '--dev', 'eth1', ...flags];
      const machine = machineOf(guests[0]);
      const { exitCode, stderr } = await world.runIn(machine, '--offline', ...call, '--apply', '--yes');
      if (exitCode !== 0) throw new Error(stderr);
    };
    const pinged = () => inGuest(0, `ping -n -q -M do -s 1472 -c 1 -W 120 ${OTHER.addresses[1]}`);
    await Promise.all([
      applied('--address', `${OTHER.addresses[0]}/24`),
      inGuest(1, await vlan(OTHER, 1, '--address', `${OTHER.addresses[1]}/24`)),
    ]);
    await pinged();
    await atBoth(async (which) => inGuest(which, await vlan(MAIN, which, '--remove')));
    await pinged();
    await Promise.all([applied('--remove'), inGuest(1, await vlan(OTHER, 1, '--remove'))]);
    expect(await links()).toEqual(before);
  });

  // A route of two hops lacks one of what a route of three has.
  test.each([
    ...(isLong ? [{ hops: 2, route: ['be-gent1', 'pl-poznan1', 'hu-sztaki'] } as const] : []),
    { hops: 3, route: ['be-gent1', 'pl-poznan1', 'hu-sztaki', 'gr-uth'] } as const,
  ])(
    'a reservation of $hops hops, made offline: the kernel between swaps the tags that the database has for each site; vlan, probe at the far end, and the program itself in the first server',
    async ({ hops, route }) => {
      const { home, database, json, run } = newMachine();
      const [sites, addresses] = [[route[0], route[hops] ?? ''] as const, ['10.2.0.1', '10.2.0.2'] as const];
      const terms = ['--bandwidth', '10M', '--start-now', '--for', '2h'];
      // Others have taken the first tags of each hop but the last, of each more than of the next, so that all hops differ in both tags.
      for (let hop = 0; hop < hops - 1; hop += 1) {
        for (let count = hop + 1; count < hops; count += 1) {
          await json('reserve', route[hop] ?? '', route[hop + 1] ?? '', ...terms);
        }
      }
      const { via, ...reservation } = reservationIn(
        await json('reserve', ...sites, ...terms, '--save', 'link.jwt'),
      );
      expect(via).toEqual(route.slice(1, -1));
      const ends = endsOf(hops);
      const tagsOfEnd: Partial<Record<WireEnd, Tags>> = {};
      for (const [hop, tags] of hopsOf(database, reservation.id, route).entries()) {
        for (const at of [0, 1] as const) tagsOfEnd[ends[hop]?.[at] ?? 0] = tags[at];
      }
      const tagsAt = (end: WireEnd): Tags => tagsOfEnd[end] ?? { s: 0, c: 0 };
      expect(([0, 1] as const).map(tagsAt).flatMap(({ s, c }) => [s, c])).toEqual(tagsOf(reservation));
      const between = ([2, 4] as const).slice(0, hops - 1).map((end, site) => ({
        arriving: [`vec${2 * site}`, tagsAt(end)] as const,
        leaving: [`vec${2 * site + 1}`, tagsAt(end === 2 ? 3 : 5)] as const,
      }));
      for (const { arriving, leaving } of between) {
        expect([arriving[1].s === leaving[1].s, arriving[1].c === leaving[1].c]).toEqual([false, false]);
      }
      const swapping = between.flatMap(({ arriving, leaving }) => [
        swap(arriving, leaving),
        swap(leaving, arriving),
      ]);
      expect(await bench.site?.run(`tc -batch - <<END\n${swapping.join('\n')}\nEND`)).toMatchObject({
        ...{ exitCode: 0, stderr: '' },
      });
      // Each link is this process: what enters at its one end leaves it with the tags of the other.
      const { provider } = bench;
      provider.wires = wiresOver(hops);
      provider.carry = (frame) => {
        const [its, other] = [tagsAt(frame.from), tagsAt(provider.wires[frame.from] ?? 0)];
        if (!stackOf(frame).startsWith(`88a8:${its.s} 8100:${its.c} `)) return undefined;
        const copy = Buffer.from(frame.bytes);
        copy.writeUInt16BE(other.s, 14);
        copy.writeUInt16BE(other.c, 18);
        return copy;
      };
      provider.frames = [];

      await atBoth(async (which) => {
        const call = ['--offline', 'vlan', 'link.jwt', '--site', sites[which], '--dev', 'eth1'];
        const { stdout } = await run([...call, '--address', `${addresses[which]}/24`]);
        return inGuest(which, stdout);
      });
      const probe = (which: Which): string[] => [
        ...['--offline', '--json', 'probe', 'link.jwt', '--site', sites[which], '--dev', 'eth1'],
        ...['--peer', addresses[which === 0 ? 1 : 0]],
      ];
      cpSync(home, join(guests[0].folder, `home${hops}`), { recursive: true });
      // Here there is no such device; but the code that this compiles is a third of the program's work in the guest.
      await run(probe(0), { ownProcess: true });
      const environment = Object.entries(COMPILED).map((variable) => variable.join('='));
      const program = [...environment, process.execPath, LAUNCHER, ...probe(0)].map(shellWord).join(' ');
      const there = await createReferenceServer({ baseUrl: 'http://offline.localhost', database });
      const results = await Promise.all([
        guests[0].run(
          `cp -r home${hops} /tmp; cd /tmp/home${hops}; HOME=$PWD XDG_STATE_HOME=$PWD/state env ${program}`,
        ),
        worldOf(there, readFileSync(join(home, 'link.jwt'), 'utf8')).runIn(machineOf(guests[1]), ...probe(1)),
      ]).finally(() => there.close());
      for (const { exitCode, stdout, stderr } of results) {
        expect([exitCode, stderr], stdout).toEqual([0, '']);
        expect(JSON.parse(stdout)).toMatchObject({ verdict: 'ok', end: null, heard: [] });
      }
      const full = provider.frames.filter(({ bytes }) => bytes.length === 1522);
      expect(new Set(full.map((frame) => `${frame.from} ${stackOf(frame)}`))).toEqual(
        new Set(Object.entries(tagsOfEnd).map(([from, { s, c }]) => `${from} 88a8:${s} 8100:${c} 0800`)),
      );
      await atBoth((which) => inGuest(which, 'ip link del "$(ls /sys/class/net | grep -x "sc........")"'));
      const devices = between.flatMap(({ arriving, leaving }) => [arriving[0], leaving[0]]);
      await bench.site?.run(devices.map((device) => `tc qdisc del dev ${device} ingress`).join('\n'));
      provider.wires = wiresOver(1);
      provider.frames = [];
    },
  );

  /** What is typed at both ends for each case. */
  const typed = new Map<Link, readonly [string, string]>();
  test('each link and each fault is typed', async () => {
    const typing = CASES.map(async ({ link, change }) => {
      const scripts = await atBoth(async (which) => {
        const script = await vlan(link, which, '--address', `${link.addresses[which]}/24`);
        return which === 1 && change ? change(script, link, namesIn(script)) : script;
      });
      typed.set(link, scripts);
    });
    await Promise.all(typing);
    await atBoth((which) => inGuest(which, atOnce(...[...typed.values()].map((scripts) => scripts[which]))));
  });

  test.concurrent.each(CASES)(
    '$name, $how: $verdicts.0, $verdicts.1',
    async ({ link, verdicts, without }) => {
      const { sites, addresses } = link;
      const probed = async (which: Which) => {
        const flags = ['--site', sites[which], '--dev', 'eth1', '--peer', addresses[which === 0 ? 1 : 0]];
        const { exitCode, stdout, stderr } = await world.runIn(
          machineOf(guests[which], without),
          ...['--offline', '--json', 'probe', fileOf(sites), ...flags],
        );
        if (stdout === '') throw new Error(stderr);
        return { exitCode, ...JSON.parse(stdout) };
      };
      const wrong: unknown[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        if (round > 0) {
          await atBoth((which) => {
            const script = typed.get(link)?.[which] ?? '';
            return inGuest(which, atOnce(`ip link del ${namesIn(script).outer}`, script));
          });
        }
        // The far end tries to reach this one, as someone there does.
        const over = new AbortController();
        const pinging = guests[1].run(`exec ping -q -i 0.5 ${addresses[0]}`, { signal: over.signal });
        const begun = bench.provider.frames.length;
        const results = await atBoth(probed);
        over.abort();
        await pinging;
        const isRight = results.every(
          ({ verdict, exitCode }, which) =>
            verdict === verdicts[which] && exitCode === (verdict === 'ok' ? 0 : 6),
        );
        if (isRight) continue;
        const ids = [...link.s, ...link.c].map(String);
        const onWire = bench.provider.frames.slice(begun).flatMap((frame) => {
          const stack = stackOf(frame);
          return ids.some((id) => stack.includes(`:${id}`)) ? [`${frame.from} ${stack}`] : [];
        });
        wrong.push({ results, onWire: [...new Set(onWire)] });
      }
      expect(wrong, `${wrong.length} of ${ROUNDS}: ${JSON.stringify(wrong)}`).toEqual([]);
    },
    300_000 * ROUNDS,
  );

  test('probes leave nothing behind, and the first server has sent with the tags of its reservations only', async () => {
    const left = await atBoth((which) => inGuest(which, 'ls /sys/class/net'));
    const made = new Set([...typed.values()].flat().flatMap((script) => Object.values(namesIn(script))));
    const isLeft = (name: string): boolean => name.startsWith('sc') && !made.has(name);
    expect(left.map((names) => names.split('\n').filter(isLeft))).toEqual([[], []]);
    const due = LINKS.flatMap(({ s, c }) => [`88a8:${s[0]}`, `88a8:${s[0]} 8100:${c[0]}`]);
    const sent = bench.provider.frames.filter(({ from }) => from === 0).map(stackOf);
    const tags = new Set(sent.map((stack) => stack.split(' ').slice(0, -1).join(' ')));
    expect([...tags].filter((stack) => stack !== '' && !due.includes(stack))).toEqual([]);
  });
});
