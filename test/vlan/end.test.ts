import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressFault, assumedOf, deviceFault, endAt, namesOf } from '../../src/vlan/end.ts';
import { end, RESERVATION } from './ends.ts';

describe('one end', () => {
  it('has the tags of its own site, and knows those of the other', () => {
    const [own, other] = [
      { sTag: 1001, cTag: 17 },
      { sTag: 2002, cTag: 34 },
    ];
    expect(endAt(RESERVATION, 'be-gent1', 'eth1')).toMatchObject({ ...own, otherSTag: 2002, otherCTag: 34 });
    expect(endAt(RESERVATION, 'pl-poznan1', 'eth1')).toMatchObject({ ...other, otherSite: 'be-gent1' });
  });

  it('has room for a tag more in each device below', () => {
    expect(end().mtu).toEqual({ inner: 1500, outer: 1504, device: 1508 });
    expect(end({ mtu: 9000 }).mtu).toEqual({ inner: 9000, outer: 9004, device: 9008 });
  });

  it('is none without sound names and numbers', () => {
    expect(() => endAt(RESERVATION, 'fr-lille', 'eth1')).toThrow(RangeError);
    expect(() => end({}, 'eth1; id')).toThrow(RangeError);
    expect(() => end({ mtu: 67 })).toThrow(RangeError);
    expect(() => end({ address: '10.0.0.1' })).toThrow(RangeError);
  });

  it('always has the same names, of 15 characters at most', () => {
    expect(end().names).toEqual({ outer: 'sc1001jdgs', inner: 'sc1001jdgs.17' });
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 15 }),
        fc.constantFrom('802.1ad', '802.1q'),
        fc.integer({ min: 1, max: 4094 }),
        fc.integer({ min: 1, max: 4094 }),
        (device, protocol, sTag, cTag) => {
          const { outer, inner } = namesOf(device, protocol, sTag, cTag);
          expect(outer).toMatch(/^sc\d{4}[a-z]{4}$/);
          expect(inner).toBe(`${outer}.${cTag}`);
          expect(inner.length).toBeLessThanOrEqual(15);
        },
      ),
    );
  });

  it('shares the outer device with all that have the same S-tag on the same device by the same protocol', () => {
    const outerOf = (...of: Parameters<typeof namesOf>) => namesOf(...of).outer;
    expect(outerOf('eth1', '802.1ad', 1001, 17)).toBe(outerOf('eth1', '802.1ad', 1001, 18));
    const others = new Set<string>();
    for (const device of ['eth0', 'eth1', 'eth2', 'bond0', 'ens1f0', 'ens1f1']) {
      for (const protocol of ['802.1ad', '802.1q'] as const) {
        for (let tag = 1; tag <= 4094; tag += 1) others.add(outerOf(device, protocol, tag, 1));
      }
    }
    expect(others.size).toBe(12 * 4094);
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
    ...['', '.', '..', 'sixteen-letters1', 'a b', 'a/b', 'a\nb', 'a%d', '$(id)', "a'b", 'a;b', '-h', 'a:b'],
    ...['é', 'a\u0000', 'lo', 'all', 'default'],
  ])('%j is none', (name) => {
    expect(deviceFault(name)).toMatch(/\.$/);
  });
});

describe('addresses', () => {
  it.each([
    ...['10.0.0.1/24', '192.168.255.254/32', '10.0.0.0/31', 'fd00::1/64', 'fd00::/127'],
    '2001:db8::10.0.0.1/64',
  ])('%s is one', (address) => {
    expect(addressFault(address, 1500)).toBeUndefined();
  });

  it.each([
    ...['10.0.0.1', '10.0.0/24', '10.0.0.256/24', '10.0.0.1/33', '10.0.0.1/0', '010.0.0.1/8', 'fd00::1'],
    ...['fd00:::1/64', 'fd00::1/129', 'fe80::1%eth0/64', 'host/24', '10.0.0.1/24;id', '10.0.0.0/24'],
    ...['10.0.0.255/24', '10.1.128.0/20', '127.0.0.1/8', '224.0.0.1/24', '0.0.0.1/8', 'fd00::/64', '::1/128'],
    ...['::/128', 'ff02::1/64', ''],
  ])('%j is none', (address) => {
    expect(addressFault(address, 1500)).toMatch(/\.$/);
  });

  it('have a smaller MTU advised only where there is one', () => {
    const advises = (choices: Parameters<typeof end>[0]) =>
      assumedOf(end(choices)).join(' ').includes('use --mtu');
    expect([{}, { mtu: 68 }, { mtu: 72 }, { mtu: 1280, address: 'fd00::1/64' }].map(advises)).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });

  it('of IPv6 need 1280 bytes', () => {
    expect(addressFault('fd00::1/64', 1279)).toBe('IPv6 needs an MTU of 1280 or more.');
  });

  it.each([
    ['300.0.0.1/24', '300.0.0.1 is not an IPv4 address: it has four numbers of 0 to 255'],
    ['10.0.0/24', '10.0.0 is not an IPv4 address'],
    ['fd00::12345/64', 'fd00::12345 is not an IPv6 address: it has eight groups of 0 to ffff'],
    ['10.0.0.1', 'An address has a prefix length'],
    ['10.0.0.1/33', 'The prefix length is 1 to 32.'],
  ])('%s is told what is wrong with it', (address, fault) => {
    expect(addressFault(address, 1500)).toContain(fault);
  });
});
