import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { CONFIGURATION_OF, describeEnd, type Format } from '../../src/vlan/formats.ts';
import { anyText } from '../fixtures/any-text.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { end, RESERVATION } from './ends.ts';

const FORMATS = Object.keys(CONFIGURATION_OF).filter((name): name is Format => name !== 'json');

/** Text of a reservation that its service made up to do harm. */
const HOSTILE = fc.oneof(
  anyText({ minLength: 1 }),
  fc.constantFrom(
    ...['a\nip link del eth0\n', "a'; reboot; '", '$(reboot)', '`reboot`', 'a\r\n[NetDev]\nName=x'],
    ...['"}\n- hosts: all', '{{ 7*7 }}', '\u001b[31m', '\u2028x', '\u202egpj'],
  ),
);

describe.each(FORMATS)('text for %s', (format) => {
  const of = CONFIGURATION_OF[format];

  it.each([
    ['', {}],
    ['-address', { address: '10.0.0.1/24' }],
    ['-ipv6', { address: 'fd00::1/64', mtu: 9000, outer: '802.1q' as const }],
  ])('is as it was tried%s', async (variant, choices) => {
    const { text, removal } = of(end(choices));
    const all = `${[...text, '', '=== removal', ...removal].join('\n')}\n`;
    await expect(all).toMatchFileSnapshot(`golden/${format}${variant}.txt`);
  });

  it('always deletes the devices when it removes, which files alone would leave behind', () => {
    const { outer, inner } = of(end()).names;
    for (const lines of [of(end()).remove, of(end()).removal]) {
      expect(lines.join('\n')).toContain(`ip link del ${inner} `);
      expect(lines.join('\n')).toMatch(new RegExp(`/${outer}/upper_.*ip link del ${outer} `));
    }
  });

  it('has what a service says in comments only, and there on one line of ASCII', () => {
    const plain = of(end());
    fc.assert(
      fc.property(HOSTILE, HOSTILE, (site, date) => {
        const made = of(
          end({}, 'eth1', { site1: site, site2: `${site}2`, start_date: date, end_date: date }),
        );
        const toTools = (lines: readonly string[]) => lines.filter((line) => !line.startsWith('#'));
        for (const part of ['text', 'removal'] as const) {
          expect(made[part].join('')).toMatch(/^[\x20-\x7e]*$/);
          expect(toTools(made[part])).toEqual(toTools(plain[part]));
        }
        for (const part of ['commands', 'remove'] as const) expect(made[part]).toEqual(plain[part]);
      }),
      { numRuns: 50 },
    );
  });
});

describe('a second reservation on the same device', () => {
  it('shares only files of the same content', () => {
    for (const format of FORMATS) {
      const one = new Map(CONFIGURATION_OF[format](end()).files.map(({ path, content }) => [path, content]));
      for (const changes of [{ site1_c_tag: 18 }, { site1_s_tag: 1002 }]) {
        const { files } = CONFIGURATION_OF[format](end({}, 'eth1', changes));
        for (const { path, content } of files) expect(one.get(path) ?? content).toBe(content);
      }
    }
  });

  it('with the same S-tag has the outer device of the first, and removes only what is its own', () => {
    for (const format of FORMATS) {
      const [first, second] = [
        CONFIGURATION_OF[format](end()),
        CONFIGURATION_OF[format](end({}, 'eth1', { site1_c_tag: 18 })),
      ];
      expect(second.names.outer).toBe(first.names.outer);
      expect(second.names.inner).not.toBe(first.names.inner);
      const own = second.files.filter(({ path }) => !first.files.some((file) => file.path === path));
      const removing = second.remove.filter((line) => /\brm /.test(line));
      expect(removing[0] ?? '').toBe(
        own.length === 0 ? '' : `rm -f ${own.map(({ path }) => path).join(' ')}`,
      );
      for (const line of removing.slice(1)) expect(line).toContain(' || ');
    }
  });

  it('adds its VLAN to a device of systemd-networkd, beside the first', () => {
    const dropIns = [1001, 1002].map((tag) =>
      CONFIGURATION_OF.networkd(end({}, 'eth1', { site1_s_tag: tag })).files.find(({ path }) =>
        path.endsWith('.conf'),
      ),
    );
    expect(new Set(dropIns.map((file) => dirname(file?.path ?? ''))).size).toBe(1);
    expect(new Set(dropIns.map((file) => file?.path)).size).toBe(2);
  });
});

it('as JSON there is one shape for all formats, and with --remove the commands remove', () => {
  for (const format of FORMATS) {
    const configuration = CONFIGURATION_OF[format](end());
    const described = describeEnd(end(), configuration, false);
    expect(described).toMatchObject({
      ...{ reservation: RESERVATION.id, site: 'be-gent1', device: 'eth1', device_mtu: 1508, address: null },
      outer: { id: 1001, protocol: '802.1ad', ethertype: '0x88a8', mtu: 1504 },
      inner: { id: 17, protocol: '802.1Q', ethertype: '0x8100', mtu: 1500 },
      assumed: expect.arrayContaining([expect.stringContaining('802.1ad (0x88a8)')]),
    });
    const removing = describeEnd(end(), configuration, true);
    expect(removing).toEqual({ ...described, files: [], commands: described.remove });
  }
});

const run = promisify(execFile);
/** Whether a program is installed here. Without it its part is not tried, and the golden files speak alone. */
const has = async (program: string): Promise<boolean> =>
  run('sh', ['-c', `command -v ${program}`]).then(
    () => true,
    () => false,
  );

const [HAS_NMCLI, HAS_NETPLAN, HAS_ANSIBLE, HAS_IFUP] = await Promise.all(
  // Its own script: another program has an `ifup` too, with other options.
  ['nmcli', 'netplan', 'ansible-playbook', '/lib/ifupdown/settle-dad.sh'].map(has),
);

describe('the real tools take it', () => {
  let root: string;
  beforeAll(() => {
    root = temporaryFolder();
  });

  const put = async (folder: string, files: readonly { path: string; content: string }[]): Promise<void> => {
    for (const { path, content } of files) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content, { mode: 0o600 });
    }
  };

  it.skipIf(!HAS_NMCLI)('nmcli --offline (skipped where network-manager is not installed)', async () => {
    const { commands } = CONFIGURATION_OF.nmcli(end({ address: '10.0.0.1/24' }));
    const adding = commands.flatMap((line) => /nmcli connection add [^&]*/.exec(line)?.[0] ?? []);
    expect(adding).toHaveLength(3);
    const profiles = await Promise.all(
      adding.map((line) => run('sh', ['-c', line.replace('nmcli', 'nmcli --offline')])),
    );
    const [below = '', outer = '', inner = ''] = profiles.map(({ stdout }) => stdout);
    expect(below).toMatch(/interface-name=eth1\n[\s\S]*mtu=1508/);
    expect(outer).toMatch(/mtu=1504\n[\s\S]*id=1001\nparent=eth1\nprotocol=802.1ad/);
    expect(inner).toMatch(/mtu=1500\n[\s\S]*id=17\n[\s\S]*protocol=802.1Q\n[\s\S]*address1=10.0.0.1\/24/);
  });

  it.skipIf(!HAS_NETPLAN)('netplan generate (skipped where netplan.io is not installed)', async () => {
    const folder = join(root, 'netplan');
    const { files, text } = CONFIGURATION_OF.netplan(end({ address: 'fd00::1/64' }));
    const [yaml] = files;
    // What is printed is as good as the files.
    await put(folder, [{ path: yaml?.path ?? '', content: `${text.join('\n')}\n` }]);
    const { stderr } = await run('netplan', ['generate', '--root-dir', folder]);
    expect(stderr).toBe('');
    const { outer, inner } = end().names;
    const made = (name: string) =>
      readFile(join(folder, 'run', `systemd/network/10-netplan-${name}.netdev`), 'utf8');
    expect(await made(inner)).toMatch(/\b[Ii]d=17\n/);
    expect(await made(outer)).toMatch(/MTUBytes=1504\n[\s\S]*Id=1001/);
  });

  it.skipIf(!HAS_ANSIBLE)(
    'ansible-playbook --check (skipped where ansible-core is not installed)',
    async () => {
      const { text, removal } = CONFIGURATION_OF.ansible(end({ address: '10.0.0.1/24' }));
      const paths = await Promise.all(
        Object.entries({ text, removal }).map(async ([name, lines]) => {
          const path = join(root, `${name}.yml`);
          await writeFile(path, `${lines.join('\n')}\n`);
          return path;
        }),
      );
      // One start of Python for both.
      const { stdout } = await run(
        'ansible-playbook',
        ['--check', '-c', 'local', '-i', 'localhost,', ...paths],
        { env: { ...process.env, HOME: root, ANSIBLE_LOCAL_TEMP: root } },
      );
      expect(stdout).toMatch(/ok=[1-9].*failed=0/);
    },
  );

  it.skipIf(!HAS_IFUP)('ifup --no-act (skipped where ifupdown is not installed)', async () => {
    const { files } = CONFIGURATION_OF.ifupdown(end({ address: '10.0.0.1/24' }));
    await put(root, [
      ...files,
      { path: '/interfaces', content: `source ${root}/etc/network/interfaces.d/*\n` },
    ]);
    const { outer, inner } = end().names;
    const { stderr } = await run('ifup', [
      ...['--no-act', '--force', '--verbose', '--no-scripts', '--state-dir', root],
      ...['--interfaces', join(root, 'interfaces'), outer, inner.replace('.', '-')],
    ]);
    expect(stderr).toContain(`ip link add link eth1 name ${outer} mtu 1504 type vlan proto 802.1ad id 1001`);
    expect(stderr).toMatch(/\n *ip addr add 10\.0\.0\.1/);
    expect(stderr).not.toContain('ip address');
  });
});
