import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressFault, deviceFault, endAt, namesOf } from '../../src/vlan/end.ts';
import { iproute2 } from '../../src/vlan/iproute2.ts';
import { end, RESERVATION } from './ends.ts';

describe('one end', () => {
  it('has the tags of its own site, and knows those of the other', () => {
    expect(endAt(RESERVATION, 'be-gent1', 'eth1')).toMatchObject({
      sTag: 1001,
      cTag: 17,
      otherSTag: 2002,
      otherCTag: 34,
    });
    expect(endAt(RESERVATION, 'pl-poznan1', 'eth1')).toMatchObject({
      sTag: 2002,
      cTag: 34,
      otherSite: 'be-gent1',
    });
    expect(endAt(RESERVATION, 'fr-lille', 'eth1')).toBeUndefined();
  });

  it('has room for a tag more in each device below', () => {
    expect(endAt(RESERVATION, 'be-gent1', 'eth1')?.mtu).toEqual({ inner: 1500, outer: 1504, device: 1508 });
    expect(endAt(RESERVATION, 'be-gent1', 'eth1', { mtu: 9000 })?.mtu).toEqual({
      inner: 9000,
      outer: 9004,
      device: 9008,
    });
  });

  it('is none without sound names and numbers', () => {
    expect(() => end({}, 'eth1; id')).toThrow(RangeError);
    expect(() => end({ mtu: 67 })).toThrow(RangeError);
    expect(() => end({ address: '10.0.0.1' })).toThrow(RangeError);
  });

  it('always has the same names, of 15 characters at most, whatever the id', () => {
    expect(namesOf(RESERVATION.id, 'be-gent1', 17)).toEqual({ outer: 'sc5xdtpydn', inner: 'sc5xdtpydn.17' });
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.integer({ min: 1, max: 4094 }), (id, site, tag) => {
        const { outer, inner } = namesOf(id, site, tag);
        expect(outer).toMatch(/^sc[0-9a-z]{8}$/);
        expect(inner).toBe(`${outer}.${tag}`);
        expect(inner.length).toBeLessThanOrEqual(15);
      }),
    );
  });

  it('has other names at the other site and for another reservation', () => {
    const names = new Set<string>();
    for (let at = 0; at < 5000; at += 1) {
      for (const site of ['be-gent1', 'pl-poznan1']) names.add(namesOf(`con_localhost_${at}`, site, 1).outer);
    }
    expect(names.size).toBe(10_000);
  });
});

describe('text for iproute2', () => {
  it('makes both devices, the parent first', () => {
    const made = end({ address: '10.0.0.1/24' });
    const { outer, inner } = made.names;
    expect(iproute2(made).commands).toEqual([
      'ip link set dev eth1 mtu 1508 up',
      `ip link add link eth1 name ${outer} mtu 1504 type vlan proto 802.1ad id 1001`,
      `ip link add link ${outer} name ${inner} mtu 1500 type vlan proto 802.1Q id 17`,
      `ip address add 10.0.0.1/24 dev ${inner}`,
      `ip link set dev ${outer} up`,
      `ip link set dev ${inner} up`,
    ]);
    expect(iproute2(made).text.filter((line) => !line.startsWith('#'))).toEqual(iproute2(made).commands);
    expect(iproute2(made).removal.at(-1)).toBe(`ip link del ${outer}`);
    expect(iproute2(made).removal.join('\n')).toContain('The MTU of eth1 stays as it is.');
  });
});

describe('names of network devices', () => {
  it.each(['eth1', 'enp94s0f1np1', 'bond0.100', 'a', 'br-0123456789ab', '_x', 'ens1f0@x'])(
    '%s is one',
    (name) => {
      expect(deviceFault(name)).toBeUndefined();
    },
  );

  it.each([
    '',
    '.',
    '..',
    'sixteen-letters1',
    'a b',
    'a/b',
    'a\nb',
    'a%d',
    '$(id)',
    "a'b",
    'a;b',
    '-h',
    'a:b',
    'é',
    'a\u0000',
  ])('%j is none', (name) => {
    expect(deviceFault(name)).toMatch(/\.$/);
  });
});

describe('addresses', () => {
  it.each(['10.0.0.1/24', '192.168.255.254/32', 'fd00::1/64', '::1/128', '2001:db8::10.0.0.1/64'])(
    '%s is one',
    (address) => {
      expect(addressFault(address, 1500)).toBeUndefined();
    },
  );

  it.each([
    '10.0.0.1',
    '10.0.0/24',
    '10.0.0.256/24',
    '10.0.0.1/33',
    '10.0.0.1/0',
    '010.0.0.1/8',
    'fd00::1',
    'fd00:::1/64',
    'fd00::1/129',
    'fe80::1%eth0/64',
    'host/24',
    '10.0.0.1/24;id',
    '',
  ])('%j is none', (address) => {
    expect(addressFault(address, 1500)).toMatch(/\.$/);
  });

  it('of IPv6 need 1280 bytes', () => {
    expect(addressFault('fd00::1/64', 1279)).toBe('IPv6 needs an MTU of 1280 or more.');
  });
});
