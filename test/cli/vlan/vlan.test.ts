import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Machine, ProgramResult } from '../../../src/cli/context.ts';
import { offlineWorld } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';
import { person } from '../person.ts';

type World = Awaited<ReturnType<typeof offlineWorld>>;

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G'];
const AT = ['--site', 'be-gent1', '--dev', 'eth1'];

/** A machine with these devices, as `ip -j -d -s link` shows them, that writes down what it runs. */
function machineWith(
  links: readonly object[],
  answer?: (call: string) => Partial<ProgramResult> | undefined,
) {
  const ran: string[] = [];
  const machine: Machine = {
    isRoot: () => true,
    async runProgram(call) {
      const line = call.join(' ');
      if (line.startsWith('ip -j')) {
        const stdout = line.includes('address')
          ? '[{"addr_info":[{"local":"10.0.0.1","prefixlen":24}]}]'
          : JSON.stringify(links);
        return { exitCode: 0, stdout, stderr: '' };
      }
      ran.push(line);
      return { exitCode: 0, stdout: '', stderr: '', ...answer?.(line) };
    },
  };
  return { machine, ran };
}

const ETH1 = { ifname: 'eth1', flags: ['UP', 'LOWER_UP'], mtu: 1500 };
const LO = { ifname: 'lo', flags: ['UP', 'LOWER_UP'], mtu: 65536 };
const vlanLink = (ifname: string, link: string, protocol: string, id: number, mtu: number) => ({
  ...{ ifname, link, mtu, flags: ['UP', 'LOWER_UP'] },
  linkinfo: { info_kind: 'vlan', info_data: { protocol, id } },
});

let world: World;
let id: string;
let tags: { s: number; c: number };
let outer: string;
let inner: string;
/** The devices of the end as they are when it is configured. */
let made: readonly object[];

beforeAll(async () => {
  world = await offlineWorld({ variables: { SLICES_CONN_PROFILE: 'offline' } });
  const period = ['--start-now', '--for', '2h', '--name', 'gent-poznan'];
  const reservation = await reserved(...period, '--save', 'link.jwt');
  id = reservation.id;
  tags = { s: reservation.site1_s_tag, c: reservation.site1_c_tag };
  const shown = JSON.parse((await world.run('vlan', 'link.jwt', ...AT, '--json')).stdout);
  outer = shown.outer.name;
  inner = shown.inner.name;
  made = [
    LO,
    { ...ETH1, mtu: 1508 },
    vlanLink(outer, 'eth1', '802.1ad', tags.s, 1504),
    vlanLink(inner, outer, '802.1Q', tags.c, 1500),
  ];
});
afterAll(() => world.server.close());

/** Reserves the link. */
async function reserved(...flags: string[]) {
  const { stdout, stderr } = await world.run(...LINK, ...flags, '--json');
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout).reservation;
}

/** The same service and files, with a machine. */
async function withMachine(
  links: readonly object[],
  args: readonly string[],
  answer?: Parameters<typeof machineWith>[1],
) {
  const { machine, ran } = machineWith(links, answer);
  const run = await world.runIn(machine, 'vlan', 'link.jwt', ...AT, '--apply', ...args);
  return { ...run, ran };
}

describe('vlan', () => {
  it('gives the same text for an id, a name, a file and standard input', async () => {
    world.files.set('-', world.files.get('link.jwt') ?? '');
    const texts = await Promise.all(
      [id, 'gent-poznan', 'link.jwt', '-'].map((argument) =>
        world.run('vlan', argument, ...AT, '--address', '10.0.0.1/24'),
      ),
    );
    const [{ stdout = '', stderr = '' } = {}] = texts;
    expect(stdout).toContain(
      `ip link add link eth1 name ${outer} mtu 1504 type vlan proto 802.1ad id ${tags.s}`,
    );
    expect(stdout).toContain(
      `ip link add link ${outer} name ${inner} mtu 1500 type vlan proto 802.1Q id ${tags.c}`,
    );
    expect(stdout).toContain('# Assumed: the outer tag is 802.1ad (0x88a8)');
    for (const text of texts) expect(text).toEqual({ exitCode: 0, stdout, stderr });
    expect(stderr).toMatch(/^be-gent1: eth1 → .*MTU 1508 → 1504 → 1500\.\nAssumed: /);
  });

  it('has one shape for --json and --format json', async () => {
    const shown = await world.run('vlan', 'link.jwt', ...AT, '--json');
    expect(await world.run('vlan', 'link.jwt', ...AT, '--format', 'json')).toEqual(shown);
    expect(shown.stderr).toBe('');
    expect(JSON.parse(shown.stdout)).toMatchObject({ reservation: id, outer: { id: tags.s }, files: [] });
  });

  const [SITE, DEV] = ['--site be-gent1', '--dev eth1'];
  it.each([
    [`--site be-gent ${DEV}`, 'between be-gent1 and pl-poznan1', 'Did you mean be-gent1?', SITE],
    [DEV, 'The site of this server is missing', SITE],
    [SITE, 'slices-conn vlan needs --dev'],
    [`${SITE} --dev a/b`, '"a/b" is not a device'],
    [`${SITE} --dev eth1\nreboot`, 'is not a device'],
    [`${SITE} ${DEV} --address 10.0.0.1`, '"10.0.0.1" is not an address', 'prefix length'],
    [`${SITE} ${DEV} --mtu 67`, '"67" is not an MTU', '68 to 65527'],
    [`${SITE} ${DEV} --format netplan --apply`, '--apply runs the commands of iproute2 only'],
    [`${SITE} ${DEV} --apply --out x`, "--out and --apply can't be given together."],
    [`${SITE} ${DEV} --format netplan --remove --out x`, "--out and --remove can't be given together."],
    [`${SITE} ${DEV} --out x`, 'iproute2 has no files', '> FILE'],
  ])('exit 2 for %j', async (flags, ...parts) => {
    const { exitCode, stdout, stderr } = await world.run('vlan', 'link.jwt', ...flags.split(' '));
    expect([exitCode, stdout]).toEqual([2, '']);
    for (const part of parts) expect(stderr).toContain(part);
  });

  it('exit 9 for a changed token, and for a token of another kind', async () => {
    const token = String(world.files.get('link.jwt')).trim();
    world.files.set('changed.jwt', `${token.slice(0, -4)}AAAA`);
    world.files.set('user.jwt', await world.server.signIn('lead'));
    for (const [file, says] of [
      ['changed.jwt', 'does not verify'],
      ['user.jwt', 'It is a user token.'],
    ] as const) {
      const { exitCode, stdout, stderr } = await world.run('vlan', file, ...AT);
      expect([exitCode, stdout]).toEqual([9, '']);
      expect(stderr).toContain(says);
    }
  });

  it('a token of the built-in server: says that --offline is needed, and that each user has their own', async () => {
    const own = ['vlan', 'link.jwt', ...AT];
    const elsewhere = await world.runIn({ variables: {} }, ...own);
    expect(elsewhere.exitCode).toBe(9);
    expect(elsewhere.stderr).toContain(`try: slices-conn --offline ${own.join(' ')}\n`);
    const another = await offlineWorld({ variables: { SLICES_CONN_PROFILE: 'offline' } });
    another.files.set('link.jwt', String(world.files.get('link.jwt')));
    const sudo = await another.run(...own);
    await another.server.close();
    expect(sudo.exitCode).toBe(9);
    expect(sudo.stderr).toContain('with sudo it is root’s');
  });

  it('makes nothing for a reservation that this machine has deleted, whatever its token says', async () => {
    const gone = await reserved('--start-now', '--for', '1h', '--save', 'gone.jwt');
    await world.run('delete', gone.id, '--yes');
    const { exitCode, stderr } = await world.run('vlan', 'gone.jwt', ...AT);
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/^error: The reservation was deleted\.\n/)]);
    expect((await world.run('vlan', 'gone.jwt', ...AT, '--remove')).exitCode).toBe(0);
  });

  it('takes an ended reservation, and then an expired token, with --remove only', async () => {
    await reserved('--start-now', '--for', '1m', '--save', 'short.jwt');
    for (const [later, exitCode, says] of [
      [600_000, 2, 'The reservation ended'],
      [7_200_000, 9, 'An expired token is good only for removing what was made with it.'],
    ] as const) {
      const now = () => NOW + later;
      const refused = await world.runIn({ now }, 'vlan', 'short.jwt', ...AT);
      expect([refused.exitCode, refused.stdout]).toEqual([exitCode, '']);
      expect(refused.stderr).toContain(says);
      const removed = await world.runIn({ now }, 'vlan', 'short.jwt', ...AT, '--remove');
      expect([removed.exitCode, removed.stdout]).toEqual([
        0,
        expect.stringMatching(/\n\[ ! -e .* ip link del (sc\w{8})\.\d+ .*\n.*\1\/upper_.* ip link del \1 /),
      ]);
    }
    const token = String(world.files.get('short.jwt')).trim();
    world.files.set('forged.jwt', `${token.slice(0, -4)}AAAA`);
    const forged = await world.runIn({ now: () => NOW + 7_200_000 }, 'vlan', 'forged.jwt', ...AT, '--remove');
    expect(forged.exitCode).toBe(9);
  });

  it('removes the devices of a reservation that the service has no more by what this machine knows of it', async () => {
    const { id: gone } = await reserved('--start', '+8h', '--for', '1h');
    await world.run('delete', gone, '--yes');
    const { exitCode, stdout: removal, stderr } = await world.run('vlan', gone, ...AT, '--remove');
    expect([exitCode, stderr]).toEqual([
      0,
      expect.stringMatching(/^The service has this reservation no more\./),
    ]);
    expect(removal).toMatch(/ip link del sc\w{8}\.\d+ /);
    const refused = await world.run('vlan', gone, ...AT);
    const deleted =
      /^error: The reservation was deleted\.\n {2}why: Its tags may be .*\n {2}try: slices-conn vlan .* --remove\n$/;
    expect([refused.exitCode, refused.stderr]).toEqual([3, expect.stringMatching(deleted)]);
    const unknown = `${gone.slice(0, -1)}${gone.endsWith('0') ? '1' : '0'}`;
    for (const [words, advised] of [
      [['--remove'], /try: ip -d link show type vlan\n$/],
      [[], /try: slices-conn list --all\n$/],
    ] as const) {
      const { exitCode, stderr } = await world.run('vlan', unknown, ...AT, ...words);
      expect([exitCode, stderr]).toEqual([3, expect.stringMatching(advised)]);
    }
  });
});

describe('vlan --out', () => {
  const netplan = ['vlan', 'link.jwt', ...AT, '--format', 'netplan', '--out', 'root'];

  it('writes the files below the folder, lists them, and replaces other ones only with --yes', async () => {
    const { exitCode, stdout, stderr } = await world.run(...netplan);
    const yaml = `root/etc/netplan/60-slices-${outer}.yaml`;
    const dropIn = `root/etc/systemd/network/10-netplan-${outer}.netdev.d/50-slices.conf`;
    const own = `root/etc/netplan/61-slices-${inner}.yaml`;
    expect([exitCode, stdout]).toEqual([0, `${yaml}\n${own}\n${dropIn}\n`]);
    expect(stderr).toContain('netplan apply');
    expect(stderr).toContain('Assumed: the outer tag is 802.1ad (0x88a8)');
    expect(stderr).toContain('Assumed: the network carries packets of 1500 bytes');
    expect(world.files.get(dropIn)).toBe('[VLAN]\nProtocol=802.1ad\n');
    // The same content again is no replacement.
    expect(await world.run(...netplan)).toMatchObject({ exitCode: 0 });
    world.files.set(yaml, 'mine');
    const refused = await world.run(...netplan);
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain(`Other content is in ${yaml}`);
    expect(world.files.get(yaml)).toBe('mine');
    const written = await world.run(...netplan, '--yes', '--json');
    expect(JSON.parse(written.stdout)).toMatchObject({ written: [yaml, own, dropIn] });
    expect(world.files.get(yaml)).toContain('id: ');
  });
});

describe('vlan --apply', () => {
  const all = () => [
    'ip link set dev eth1 mtu 1508 up',
    `ip link add link eth1 name ${outer} mtu 1504 type vlan proto 802.1ad id ${tags.s}`,
    `ip link add link ${outer} name ${inner} mtu 1500 type vlan proto 802.1Q id ${tags.c}`,
    `ip link set dev ${outer} up`,
    `ip link set dev ${inner} up`,
  ];

  it('is for root, and says what to type', async () => {
    const { exitCode, stderr } = await world.run('vlan', 'link.jwt', ...AT, '--apply');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('Only root may change network devices.');
    expect(stderr).toContain('slices-conn vlan link.jwt --site be-gent1 --dev eth1 | sudo sh -ex');
    expect(stderr).toContain('try: sudo slices-conn vlan link.jwt --site be-gent1 --dev eth1 --apply');
  });

  it('needs --yes without a terminal, and asks on one', async () => {
    const refused = await withMachine([LO, ETH1], []);
    expect([refused.exitCode, refused.ran]).toEqual([2, []]);
    const { machine, ran } = machineWith([LO, ETH1]);
    const { ask, questions } = person('n', 'y');
    const apply = () => world.runIn({ ...machine, ask }, 'vlan', 'link.jwt', ...AT, '--apply');
    const declined = await apply();
    expect([declined.exitCode, ran, questions]).toEqual([0, [], ['Run these 5 commands? [y/N] ']]);
    expect(declined.stderr).toContain(
      all()
        .map((line) => `  ${line}\n`)
        .join(''),
    );
    await apply();
    expect(ran).toEqual(all());
  });

  it('makes what is missing only, and nothing where everything is there', async () => {
    expect((await withMachine([LO, ETH1], ['--yes'])).ran).toEqual(all());
    const again = await withMachine(made, ['--yes']);
    expect([again.exitCode, again.ran]).toEqual([0, []]);
    expect(again.stdout).toContain('Everything is there already');
    expect((await withMachine(made, ['--yes', '--address', '10.0.0.1/24'])).ran).toEqual([]);
    expect((await withMachine(made, ['--yes', '--address', '10.0.0.2/24'])).ran).toEqual([
      `ip address replace 10.0.0.2/24 dev ${inner}`,
    ]);
    // A larger MTU stays.
    expect((await withMachine([{ ...ETH1, mtu: 9000 }], ['--yes'])).ran).toEqual(all().slice(1));
  });

  it('shares the device with the S-tag with other reservations: makes its MTU no smaller, and leaves it to them', async () => {
    const other = vlanLink(`${outer}.99`, outer, '802.1Q', 99, 1496);
    const before = [LO, { ...ETH1, mtu: 1504 }, vlanLink(outer, 'eth1', '802.1ad', tags.s, 1500), other];
    const [raise = '', , add = '', , up = ''] = all();
    expect((await withMachine(before, ['--yes'])).ran).toEqual([
      ...[raise, `ip link set dev ${outer} mtu 1504`, add, up],
    ]);
    const larger = [LO, { ...ETH1, mtu: 9008 }, vlanLink(outer, 'eth1', '802.1ad', tags.s, 9004), other];
    expect((await withMachine(larger, ['--yes'])).ran).toEqual([add, up]);
    const removed = await withMachine([...made, other], ['--remove', '--yes']);
    expect(removed.ran).toEqual([`ip link del ${inner}`]);
    expect(removed.stdout).toContain(`${outer} carries another device`);
    const gone = await withMachine(before, ['--remove', '--yes']);
    expect([gone.exitCode, gone.ran]).toEqual([0, []]);
  });

  it('stops at devices that are in the way, before anything is changed', async () => {
    const conflicts: [object, string][] = [
      [{ ifname: outer, flags: [], mtu: 1500 }, 'its tag is none, and 88a8'],
      [vlanLink(outer, 'eth2', '802.1ad', tags.s, 1504), 'its device below is eth2'],
      [vlanLink(outer, 'eth1', '802.1ad', tags.s + 1, 1504), `its tag is 88a8:${tags.s + 1}`],
      [vlanLink(outer, 'eth1', '802.1Q', tags.s, 1504), `its tag is 8100:${tags.s}`],
      [vlanLink(inner, outer, '802.1Q', tags.c, 1496), 'its MTU is 1496, and 1500 is due'],
      [vlanLink('other', 'eth1', '802.1ad', tags.s, 1504), `its name is other, and ${outer} is due`],
    ];
    for (const [link, why] of conflicts) {
      const { exitCode, stderr, ran } = await withMachine([LO, ETH1, link], ['--yes']);
      expect([exitCode, ran]).toEqual([2, []]);
      expect(stderr).toContain(why);
    }
    const missing = await withMachine([LO, { ...ETH1, ifname: 'eth10' }], ['--yes']);
    expect(missing.stderr).toContain('This machine has no network device eth1.');
    expect(missing.stderr).toContain('Did you mean eth10?');
  });

  it('takes back what it did when a command fails, and nothing else', async () => {
    const failing = (call: string) =>
      call.includes(`name ${inner}`)
        ? { exitCode: 2, stderr: 'RTNETLINK answers: Operation not supported\n' }
        : undefined;
    const { exitCode, stderr, ran } = await withMachine([LO, ETH1], ['--yes'], failing);
    expect(exitCode).toBe(3);
    expect(stderr).toContain('This kernel has no 802.1Q');
    expect(stderr).toMatch(/try: sudo modprobe 8021q\n$/);
    expect(ran).toEqual([...all().slice(0, 3), `ip link del ${outer}`, 'ip link set dev eth1 mtu 1500']);
    expect(stderr).toContain('RTNETLINK answers: Operation not supported.');
    const stuck = await withMachine(
      [LO, ETH1],
      ['--yes'],
      (call) =>
        failing(call) ?? (call.startsWith('ip link del') ? { exitCode: 1, stderr: 'busy' } : undefined),
    );
    expect(stuck.stderr).toContain(`ip link del ${outer}: It said: busy.`);
  });

  it('removes with --remove its own devices only', async () => {
    expect((await withMachine(made, ['--remove', '--yes'])).ran).toEqual([`ip link del ${outer}`]);
    const none = await withMachine([LO, ETH1], ['--remove', '--yes']);
    expect([none.exitCode, none.ran]).toEqual([0, []]);
    expect(none.stdout).toContain('nothing to remove');
    const other = await withMachine([LO, { ifname: outer, flags: [], mtu: 1500 }], ['--remove', '--yes']);
    expect([other.exitCode, other.ran]).toEqual([2, []]);
  });
});
