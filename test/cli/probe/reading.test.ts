import { expect, test } from 'vitest';
import type { Machine } from '../../../src/cli/context.ts';
import { devicesOf } from '../../../src/cli/probe/devices.ts';
import { stackIn } from '../../../src/cli/probe/stacks.ts';

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
    '',
  ],
])('a line of tcpdump: %s', (line, stack) => {
  expect(stackIn(line)).toBe(stack);
});

/** A machine on which `ip` prints this. */
const printing = (stdout: string, stderr: () => string = () => ''): Machine => ({
  isRoot: () => false,
  runProgram: async () => ({ exitCode: 0, stdout, stderr: stderr() }),
});

test('what ip -j -d -s link prints, here of iproute2 6.1 on Linux 6.1, becomes devices', async () => {
  const vlan = (protocol: string, id: number) => ({ info_kind: 'vlan', info_data: { protocol, id } });
  const up = ['UP', 'LOWER_UP'];
  const printed = [
    { ifindex: 1, ifname: 'lo', flags: ['LOOPBACK', ...up], mtu: 65536, address: '00:00:00:00:00:00' },
    {},
    { ifname: 'eth1', flags: ['NO-CARRIER', 'UP'], mtu: 1508, stats64: { rx: { packets: 3, bytes: 1 } } },
    { ifname: 'scq', link: 'eth1', flags: up, mtu: 1504, linkinfo: vlan('802.1ad', 1001) },
    { ifname: 'scq.17', link: 'scq', mtu: 1500, linkinfo: vlan('802.1Q', 17) },
    { ifname: 'vx', mtu: 1500, linkinfo: { info_kind: 'vxlan', info_data: { id: 42 } } },
  ];
  const plain = { isUp: false, hasCarrier: false, isMute: false, mtu: 1500, received: 0 };
  const isUp = { isUp: true, hasCarrier: true };
  expect(await devicesOf(printing(JSON.stringify(printed)))).toEqual([
    { ...plain, name: 'lo', ...isUp, mtu: 65536 },
    { ...plain, name: 'eth1', isUp: true, mtu: 1508, received: 3 },
    { ...plain, name: 'scq', parent: 'eth1', ...isUp, mtu: 1504, tag: '88a8:1001' },
    { ...plain, name: 'scq.17', parent: 'scq', tag: '8100:17' },
    { ...plain, name: 'vx' },
  ]);
});

test.each([
  [2, 3],
  [9, 5],
])('devices came or went %i times meanwhile: they are read %i times', async (interrupted, readings) => {
  let count = 0;
  const stderr = () => (++count > interrupted ? '' : 'Dump was interrupted and may be inconsistent.\n');
  await devicesOf(printing('[]', stderr));
  expect(count).toBe(readings);
});

test.each(['', 'BusyBox v1.35', '{}', '[{"ifname":1}]'])('anything else is said: %s', async (text) => {
  await expect(devicesOf(printing(text))).rejects.toThrow("can't be read");
});
