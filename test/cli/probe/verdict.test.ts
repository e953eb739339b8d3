import { describe, expect, test } from 'vitest';
import { heardVerdict, ownEnd, type Verdict } from '../../../src/cli/probe/verdict.ts';
import type { End } from '../../../src/vlan/end.ts';
import { BE, devicesIn, PAIR, PEER } from './evidence.ts';

/** The devices of an end with other tags. */
const on = (outer: string, inner: string) => `eth1 1508, m@eth1 ${outer} 1504, m.1@m ${inner} 1500`;
const own = (devices: string, end: End = BE) => ownEnd(end, devicesIn(devices));
const heard = (stacks: string, { end = BE, peer = PEER, arp = false as boolean | null } = {}): Verdict =>
  heardVerdict(end, peer, ['10.0.0.1/24'], { heard: stacks === '' ? [] : stacks.split(', '), arp });

describe('the own devices (vlan/README.md, "What probe decides, in this order")', () => {
  const device = 'own_device';
  test.each<[devices: string, code: string, says: string]>([
    [on('88a8:17', '8100:1001'), 'own_tags_swapped', 'm has the C-tag 17, and m.1 on it the S-tag 1001'],
    [on('8100:1001', '8100:17'), 'own_ethertype', 'the frames of m have 0x8100, and 0x88a8 is due'],
    [on('88a8:1001', '88a8:17'), 'own_ethertype', 'the frames of m.1 have 0x88a8, and 0x8100 is due'],
    [on('88a8:2002', '8100:23'), 'own_other_sites_tags', '2002 and 23. At be-gent1 they are 1001 and 17'],
    [on('88a8:1001', '8100:23'), 'own_other_sites_tags', 'pl-poznan1'],
    [
      `${on('8100:1001', '8100:17')}, x@eth1 88a8:17 1504, y@x 8100:1001 1500`,
      'own_tags_swapped',
      'x has the C-tag',
    ],
    ['eth0 1500', device, 'no network device eth1. There is eth0.'],
    ['eth1 1500', device, 'No device on eth1 has the S-tag 1001'],
    ['eth1 1500, eth0 1500, m@eth0 88a8:1001 1504, m.1@m 8100:17 1500', device, 'No device on eth1'],
    ['eth1 1500, scq@eth0 88a8:1001 1504', device, 'scq is a device on eth0 with the tag 1001.'],
    [`eth1 1500, ${PAIR.split(', ')[0]}`, device, 'there is no device on it with the C-tag 17'],
    [`eth1 1508 down, ${PAIR}`, device, 'eth1 is down'],
    [`eth1 1508, ${PAIR} down`, device, 'scq.17 is down'],
    [`eth1 1508 unplugged, ${PAIR}`, device, 'eth1 has no carrier'],
    [`eth1 1500, ${PAIR}`, 'own_mtu', 'The MTU of eth1 is 1500, and 1508 is due'],
    [`eth1 1508, ${PAIR.replace(/1500$/, '1496')}`, 'own_mtu', 'scq.17 is 1496, and 1500 is due'],
  ])('%s: %s', (devices, verdict, says) => {
    expect(own(devices)).toMatchObject({ verdict, end: 'own', says: expect.stringContaining(says) });
  });

  test('what is right counts, whatever else is left behind', () => {
    const left = 'm@eth1 88a8:17 1504, m.1@m 8100:1001 1500';
    expect(own(`eth1 9000, ${left}, ${PAIR}`)).toMatchObject({ stack: '88a8:1001 8100:17' });
    // S-tag and C-tag that are equal can't be swapped.
    const end = { ...BE, sTag: 17, otherSTag: 17, otherCTag: 17 };
    expect(own(on('88a8:17', '8100:17'), end)).toMatchObject({ stack: '88a8:17 8100:17' });
    expect(own(on('8100:1001', '8100:17'), { ...BE, outer: '802.1q' })).toHaveProperty('stack');
  });

  test.each([
    ['88a8:1001 8100:1001', 'own_other_sites_tags', 1],
    ['88a8:1001 8100:99', 'own_device', 2],
    ['88a8:1 8100:1001', 'own_tags_swapped', 1],
  ])('where the other site’s C-tag is this site’s S-tag: %s', (made, verdict, repairs) => {
    const end = { ...BE, sTag: 1001, cTag: 1, otherSTag: 1001, otherCTag: 1001 };
    const [outer = '', inner = ''] = made.split(' ');
    expect(own(on(outer, inner), end)).toMatchObject({ verdict, repair: { length: repairs } });
  });

  test.each<[devices: string, repair: string[], configure?: true]>([
    [`eth1 1400, ${PAIR}`, ['ip link set dev eth1 mtu 1508']],
    [`eth1 1508, ${PAIR} down`, ['ip link set dev scq.17 up']],
    [on('88a8:17', '8100:1001'), ['ip link del m'], true],
    // With a device of another reservation on it.
    [`${on('88a8:17', '8100:1001')}, b@m 8100:9 1500`, ['ip link del m.1'], true],
    // The kernel takes the S-tag once.
    [
      'eth1 1500, s@eth1 88a8:1001 1500',
      ['ip link add link s name scq.17 mtu 1500 type vlan proto 802.1Q id 17', 'ip link set dev scq.17 up'],
    ],
    ['eth1 1500, scq@eth1 88a8:1001 1500', [], true],
    ['eth1 1500', [], true],
  ])('%s is repaired by %j', (devices, repair, configure) => {
    expect(own(devices)).toEqual(expect.objectContaining({ repair, ...(configure && { configure }) }));
    if (!configure) expect(own(devices)).not.toHaveProperty('configure');
  });
});

describe('what is heard where small packets are not answered', () => {
  test.each<[stacks: string, verdict: string, end: Verdict['end'], says: string]>([
    ['88a8:17 8100:1001', 'far_tags_swapped', 'far', 'arrive as 88a8:17 8100:1001'],
    ['88a8:23, 88a8:23 8100:2002', 'far_tags_swapped', 'far', '88a8:23 8100:2002'],
    ['8100:1001, 8100:1001 8100:17', 'far_ethertype', 'far', '8100:17, and 88a8:1001 8100:17 is due'],
    ['88a8:1001, 88a8:1001 8100:99', 'far_c_tag', 'far', '88a8:1001 8100:99'],
    ['88a8:1001 8100:?', 'far_c_tag', 'far', '88a8:1001 8100:?'],
    ['88a8:1001', 'single_tagged', 'far', '88a8:1001'],
    ['8100:17', 'single_tagged', 'far', '8100:17'],
    ['88a8:1001, 88a8:1001 8100:17', 'far_does_not_hear', 'far', 'does not hear be-gent1, or 10.0.0.2 is'],
    ['88a8:1001 8100:17, 88a8:17 8100:1001', 'far_tags_swapped', 'far', ''],
    ['', 'silent', null, 'Nothing arrives from pl-poznan1'],
    ['8100:5, 8100:5 8100:17, 88a8:900 8100:17', 'silent', null, 'Nothing arrives'],
    ['88a8:2002 8100:23', 'silent', 'path', 'does not translate them'],
  ])('%s: %s', (stacks, verdict, end, says) => {
    expect(heard(stacks)).toMatchObject({ verdict, end, says: expect.stringContaining(says) });
  });

  test('an answer to ARP, and nobody who could listen', () => {
    expect(heard('88a8:1001 8100:17', { arp: true }).says).toContain('A firewall there may drop ICMP');
    const deaf = heardVerdict(BE, PEER, ['10.0.0.1/24'], { heard: null, arp: null });
    expect(deaf).toMatchObject({ verdict: 'silent', says: expect.stringContaining('only root can listen') });
  });

  test('an address that is in no network of this end is said, where nothing else is wrong', () => {
    const outside = '192.168.7.2 is not in the network of 10.0.0.1/24.';
    for (const stacks of ['', '88a8:1001 8100:17']) {
      expect(heard(stacks).says).not.toContain('is not in the network');
      expect(heard(stacks, { peer: '192.168.7.2' }).says).toContain(outside);
    }
    const v6 = heardVerdict(BE, 'fd00::2', ['fd00::1/64'], { heard: [], arp: null });
    expect(v6.says).not.toContain('is not in the network');
  });

  test('equal tags can’t be swapped; with --outer 802.1q, 0x88a8 is the wrong ethertype', () => {
    const equal = { ...BE, sTag: 17, otherSTag: 17, otherCTag: 17 };
    expect(heard('88a8:17 8100:17', { end: equal }).verdict).toBe('far_does_not_hear');
    expect(heard('88a8:1001 8100:17', { end: { ...BE, outer: '802.1q' } }).verdict).toBe('far_ethertype');
  });
});
