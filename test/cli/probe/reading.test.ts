import { describe, expect, test } from 'vitest';
import { devicesOf, readDevices } from '../../../src/cli/probe/devices.ts';
import { heardIn, rightStack, stackIn, stackText } from '../../../src/cli/probe/stacks.ts';
import { BE } from './evidence.ts';

describe('a line of tcpdump', () => {
  test.each([
    [
      '11:29:08.250229 02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype 802.1Q-QinQ (0x88a8), length 50: vlan 1001, p 0, ethertype 802.1Q (0x8100), vlan 17, p 0, ethertype ARP (0x0806), Request who-has 10.0.0.2 tell 10.0.0.1, length 28',
      '88a8:1001 8100:17',
    ],
    [
      '11:29:09.1 02:00:00:00:00:01 > 33:33:00:00:00:02, ethertype 802.1Q (0x8100), length 74: vlan 4094, p 7, DEI, ethertype IPv6 (0x86dd), fe80::1 > ff02::2: ICMP6, router solicitation, length 16',
      '8100:4094',
    ],
    [
      '11:29:09.1 02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff, ethertype ARP (0x0806), length 46: Request who-has 10.0.0.2',
      undefined,
    ],
    ['', undefined],
  ])('%s', (line, text) => {
    const stack = stackIn(line);
    expect(stack && stackText(stack)).toBe(text);
  });

  test('frames of others are not about the reservation', () => {
    expect(heardIn([{ ethertype: '8100', id: 5 }], BE)).toBeUndefined();
    expect(
      heardIn(
        [
          { ethertype: '8100', id: 5 },
          { ethertype: '8100', id: 17 },
        ],
        BE,
      ),
    ).toBeUndefined();
    expect(heardIn([], BE)).toBeUndefined();
    expect(heardIn(rightStack(BE), BE)).toBe('right');
  });
});

describe('what ip -j -d -s link prints', () => {
  /** Of iproute2 6.1 on Linux 6.1, shortened. */
  const PRINTED = [
    {
      ifindex: 1,
      ifname: 'lo',
      flags: ['LOOPBACK', 'UP', 'LOWER_UP'],
      mtu: 65536,
      address: '00:00:00:00:00:00',
    },
    {},
    {
      ifname: 'eth1',
      flags: ['NO-CARRIER', 'BROADCAST', 'UP'],
      mtu: 1508,
      stats64: { rx: { packets: 3, bytes: 1 } },
    },
    {
      ...{ ifname: 'scq', link: 'eth1', flags: ['BROADCAST', 'UP', 'LOWER_UP'], mtu: 1504 },
      linkinfo: { info_kind: 'vlan', info_data: { protocol: '802.1ad', id: 1001, flags: ['REORDER_HDR'] } },
    },
    {
      ifname: 'scq.17',
      link: 'scq',
      mtu: 1500,
      linkinfo: { info_kind: 'vlan', info_data: { protocol: '802.1Q', id: 17 } },
    },
    { ifname: 'vx', mtu: 1500, linkinfo: { info_kind: 'vxlan', info_data: { id: 42 } } },
  ];

  test('becomes devices', () => {
    const plain = {
      parent: undefined,
      isUp: false,
      hasCarrier: false,
      isMute: false,
      mtu: 1500,
      received: 0,
      tag: undefined,
    };
    expect(readDevices(JSON.stringify(PRINTED))).toEqual([
      { ...plain, name: 'lo', isUp: true, hasCarrier: true, mtu: 65536 },
      { ...plain, name: 'eth1', isUp: true, mtu: 1508, received: 3 },
      {
        ...plain,
        name: 'scq',
        parent: 'eth1',
        isUp: true,
        hasCarrier: true,
        mtu: 1504,
        tag: { ethertype: '88a8', id: 1001 },
      },
      { ...plain, name: 'scq.17', parent: 'scq', tag: { ethertype: '8100', id: 17 } },
      { ...plain, name: 'vx' },
    ]);
  });

  test('is read again where devices came or went meanwhile, and at last taken as it is', async () => {
    for (const [interrupted, readings] of [
      [2, 3],
      [9, 5],
    ] as const) {
      let count = 0;
      const runProgram = async () => {
        count += 1;
        const stderr = count > interrupted ? '' : 'Dump was interrupted and may be inconsistent.\n';
        return { exitCode: 0, stdout: '[]', stderr };
      };
      await devicesOf({ isRoot: () => false, runProgram });
      expect(count).toBe(readings);
    }
  });

  test.each(['', 'BusyBox v1.35', '{}', '[{"ifname":1}]'])('anything else is said: %s', (text) => {
    expect(() => readDevices(text)).toThrow("can't be read");
  });
});
