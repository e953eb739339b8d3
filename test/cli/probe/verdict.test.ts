import { describe, expect, test } from 'vitest';
import type { Device } from '../../../src/cli/probe/devices.ts';
import { type Stack, stackText } from '../../../src/cli/probe/stacks.ts';
import { type Evidence, type Verdict, verdictOf } from '../../../src/cli/probe/verdict.ts';
import { BE, device, evidence, PAIR, PEER } from './evidence.ts';

const stack = (text: string): Stack =>
  text.split(' ').map((tag) => {
    const [ethertype = '', id] = tag.split(':');
    return { ethertype, id: id === '?' ? undefined : Number(id) };
  });
const heard = (...texts: string[]): Partial<Evidence> => ({
  small: false,
  full: null,
  heard: texts.map(stack),
});
/** The devices of an end with other tags. */
const tagged = (outer: string, inner: string): Partial<Evidence> => ({
  devices: [device('eth1', { mtu: 1508 }), ...on('eth1', outer, inner)],
});
function on(parent: string, outer: string, inner: string): Device[] {
  return [
    device('made', { parent, tag: outer, mtu: 1504 }),
    device('made.1', { parent: 'made', tag: inner, mtu: 1500 }),
  ];
}
const changed = (name: string, change: Partial<Device>): Partial<Evidence> => ({
  devices: [device('eth1', { mtu: 1508 }), ...PAIR].map((one) =>
    one.name === name ? { ...one, ...change } : one,
  ),
});
const verdict = (changes: Partial<Evidence>): Verdict => verdictOf(BE, PEER, evidence(changes));

/** The rows of the table (vlan/README.md, "What probe decides, in this order"), in their order, and what the docstring of `verdictOf` adds. */
const ROWS: [
  evidence: string,
  changes: Partial<Evidence>,
  verdict: string,
  end: Verdict['end'],
  says: string,
][] = [
  ['all is answered', {}, 'ok', null, '10.0.0.2 answers packets of 1500 bytes'],
  [
    'C outside, S inside',
    tagged('88a8:17', '8100:1001'),
    'own_tags_swapped',
    'own',
    'made has the C-tag 17, and made.1 on it the S-tag 1001',
  ],
  [
    'the outer one is 802.1Q',
    tagged('8100:1001', '8100:17'),
    'own_ethertype',
    'own',
    'the frames of made have 0x8100, and 0x88a8 is due',
  ],
  [
    'the inner one is 802.1ad',
    tagged('88a8:1001', '88a8:17'),
    'own_ethertype',
    'own',
    'the frames of made.1 have 0x88a8, and 0x8100 is due',
  ],
  [
    "the other site's tags",
    tagged('88a8:2002', '8100:23'),
    'own_other_sites_tags',
    'own',
    'the tags of pl-poznan1: 2002 and 23. At be-gent1 they are 1001 and 17',
  ],
  ["the other site's C-tag", tagged('88a8:1001', '8100:23'), 'own_other_sites_tags', 'own', 'pl-poznan1'],
  [
    'no such device',
    { devices: [device('eth0')] },
    'own_device',
    'own',
    'no network device eth1. There is eth0.',
  ],
  [
    'nothing on the device',
    { devices: [device('eth1')] },
    'own_device',
    'own',
    'No device on eth1 has the S-tag 1001',
  ],
  [
    'on another device',
    { devices: [device('eth1'), device('eth0'), ...on('eth0', '88a8:1001', '8100:17')] },
    'own_device',
    'own',
    'No device on eth1',
  ],
  [
    'one tag',
    { devices: [device('eth1'), ...PAIR.slice(0, 1)] },
    'own_device',
    'own',
    'scq has the S-tag 1001, but there is no device on it with the C-tag 17',
  ],
  ['the parent is down', changed('eth1', { isUp: false }), 'own_device', 'own', 'eth1 is down'],
  ['the inner one is down', changed('scq.17', { isUp: false }), 'own_device', 'own', 'scq.17 is down'],
  ['no carrier', changed('eth1', { hasCarrier: false }), 'own_device', 'own', 'eth1 has no carrier'],
  ['no address', { addresses: [] }, 'own_device', 'own', 'scq.17 has no address'],
  [
    "the parent's MTU",
    changed('eth1', { mtu: 1500 }),
    'own_mtu',
    'own',
    'The MTU of eth1 is 1500, and 1508 is due',
  ],
  [
    "the inner one's MTU",
    changed('scq.17', { mtu: 1496 }),
    'own_mtu',
    'own',
    'The MTU of scq.17 is 1496, and 1500 is due',
  ],
  [
    'heard 88a8:C 8100:S',
    heard('88a8:17 8100:1001'),
    'far_tags_swapped',
    'far',
    'arrive as 88a8:17 8100:1001',
  ],
  [
    "heard the other site's C and S",
    heard('88a8:23', '88a8:23 8100:2002'),
    'far_tags_swapped',
    'far',
    '88a8:23 8100:2002',
  ],
  [
    'heard 8100:S 8100:C',
    heard('8100:1001', '8100:1001 8100:17'),
    'far_ethertype',
    'far',
    'arrive as 8100:1001 8100:17, and 88a8:1001 8100:17 is due',
  ],
  [
    'heard 88a8:S 8100:other',
    heard('88a8:1001', '88a8:1001 8100:99'),
    'far_c_tag',
    'far',
    '88a8:1001 8100:99',
  ],
  ['heard 88a8:S and an unknown one', heard('88a8:1001 8100:?'), 'far_c_tag', 'far', '88a8:1001 8100:?'],
  ['heard one tag only', heard('88a8:1001'), 'single_tagged', 'far', '88a8:1001'],
  ['heard one tag only, 802.1Q', heard('8100:17'), 'single_tagged', 'far', '8100:17'],
  [
    'heard the right stack',
    heard('88a8:1001', '88a8:1001 8100:17'),
    'far_does_not_hear',
    'far',
    'does not hear be-gent1, or 10.0.0.2 is not its address',
  ],
  [
    'heard the right stack, and ARP is answered',
    { ...heard('88a8:1001 8100:17'), arp: true },
    'far_does_not_hear',
    'far',
    'A firewall there may drop ICMP',
  ],
  [
    'a wrong stack decides before the right one',
    heard('88a8:1001 8100:17', '88a8:17 8100:1001'),
    'far_tags_swapped',
    'far',
    '',
  ],
  ['heard nothing', heard(), 'silent', null, 'Nothing arrives from pl-poznan1'],
  ['heard frames of others only', heard('8100:5', '88a8:900 8100:17'), 'silent', null, 'Nothing arrives'],
  ['nobody could listen', { ...heard(), heard: null }, 'silent', null, 'only root can listen'],
  ["heard the other site's tags", heard('88a8:2002 8100:23'), 'silent', 'path', 'does not translate them'],
  [
    'full size lost, small passes again, 1496 passes',
    { full: 'lost', again: true, shorter: true },
    'path_mtu',
    'path',
    '4 bytes short',
  ],
  [
    'full size lost, small passes again, 1496 does not',
    { full: 'lost', again: true, shorter: false },
    'path_mtu',
    'path',
    '1496 bytes are lost too',
  ],
  [
    'full size lost, then small too',
    { full: 'lost', again: false, heard: [] },
    'silent',
    null,
    'Nothing arrives',
  ],
  ['message too long', { full: 'too_long' }, 'own_mtu', 'own', 'does not send packets of 1500 bytes'],
];

describe('the verdict', () => {
  test.each(ROWS)('%s', (_evidence, changes, code, end, says) => {
    const found = verdict(changes);
    expect([found.verdict, found.end]).toEqual([code, end]);
    expect(found.says).toContain(says);
  });

  test('an address that is in no network of this end is said, where nothing else is wrong', () => {
    for (const [peer, says] of [
      [PEER, false],
      ['192.168.7.2', true],
    ] as const) {
      for (const stacks of [[], ['88a8:1001 8100:17']]) {
        const found = verdictOf(BE, peer, evidence(heard(...stacks)));
        expect(found.says.includes('192.168.7.2 is not in the network of 10.0.0.1/24.')).toBe(says);
      }
    }
    const v6 = verdictOf(BE, 'fd00::2', evidence({ ...heard(), addresses: ['fd00::1/64'] }));
    expect(v6.says).not.toContain('is not in the network');
  });

  test('an earlier row decides before a later one', () => {
    const swappedAndSilent = { ...tagged('88a8:17', '8100:1001'), ...heard('8100:1001 8100:17') };
    expect(verdict(swappedAndSilent).verdict).toBe('own_tags_swapped');
    const both = [...on('eth1', '8100:1001', '8100:17'), ...on('eth1', '88a8:17', '8100:1001').map(renamed)];
    expect(verdict({ devices: [device('eth1'), ...both] }).verdict).toBe('own_tags_swapped');
  });

  test('what is right counts, whatever else is left behind', () => {
    const left = on('eth1', '88a8:17', '8100:1001');
    expect(verdict({ devices: [device('eth1', { mtu: 9000 }), ...left, ...PAIR] }).verdict).toBe('ok');
  });

  test('where S-tag and C-tag are equal, they can’t be swapped', () => {
    const end = { ...BE, sTag: 17, otherSTag: 17, otherCTag: 17 };
    const right = [device('eth1', { mtu: 1508 }), ...on('eth1', '88a8:17', '8100:17')];
    expect(verdictOf(end, PEER, evidence({ devices: right })).verdict).toBe('ok');
    const found = verdictOf(end, PEER, evidence({ devices: right, ...heard('88a8:17 8100:17') }));
    expect(found.verdict).toBe('far_does_not_hear');
  });

  test.each([
    ['88a8:1001 8100:1001', 'own_other_sites_tags'],
    ['88a8:1001 8100:99', 'own_device'],
    ['88a8:1 8100:1001', 'own_tags_swapped'],
  ])('where the other site’s C-tag is this site’s S-tag: %s', (made, code) => {
    const end = { ...BE, sTag: 1001, cTag: 1, otherSTag: 1001, otherCTag: 1001 };
    const [outer = '', inner = ''] = made.split(' ');
    const found = verdictOf(end, PEER, evidence(tagged(outer, inner)));
    expect([found.verdict, found.repair?.length]).toEqual([code, code === 'own_device' ? 2 : 1]);
  });

  test('with --outer 802.1q, 0x88a8 is the wrong ethertype', () => {
    const end = { ...BE, outer: '802.1q' as const };
    const right = [device('eth1', { mtu: 1508 }), ...on('eth1', '8100:1001', '8100:17')];
    expect(verdictOf(end, PEER, evidence({ devices: right })).verdict).toBe('ok');
    const found = verdictOf(end, PEER, evidence({ devices: right, ...heard('88a8:1001 8100:17') }));
    expect(found.verdict).toBe('far_ethertype');
    expect(stackText(stack('8100:1001 8100:?'))).toBe('8100:1001 8100:?');
  });
});

function renamed(one: Device): Device {
  return { ...one, name: `x${one.name}`, parent: one.parent === 'made' ? 'xmade' : one.parent };
}

test.each([
  [changed('eth1', { mtu: 1400 }), ['ip link set dev eth1 mtu 1508'], undefined],
  [changed('scq.17', { isUp: false }), ['ip link set dev scq.17 up'], undefined],
  [{ full: 'lost', again: true, shorter: true }, ['ip link set dev scq.17 mtu 1496'], undefined],
  [tagged('88a8:17', '8100:1001'), ['ip link del made'], true],
  // With a device of another reservation on it.
  [
    {
      devices: [
        ...(tagged('88a8:17', '8100:1001').devices ?? []),
        device('b', { parent: 'made', tag: '8100:9' }),
      ],
    },
    ['ip link del made.1'],
    true,
  ],
  // The kernel takes the S-tag once.
  [
    { devices: [device('eth1'), device('s', { parent: 'eth1', tag: '88a8:1001' })] },
    ['ip link add link s name scq.17 mtu 1500 type vlan proto 802.1Q id 17', 'ip link set dev scq.17 up'],
    undefined,
  ],
  [{ devices: [device('eth1'), device('scq', { parent: 'eth1', tag: '88a8:1001' })] }, [], true],
  [{ devices: [device('eth1')] }, [], true],
] as const)('what repairs it: %#', (changes, repair, configure) => {
  expect(verdict(changes)).toMatchObject({ repair });
  expect(verdict(changes).configure).toBe(configure);
});
