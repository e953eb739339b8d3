import { describe, expect, test } from 'vitest';
import { nearestSite, siteName } from '../../src/cli/values.ts';
import {
  bandwidthWord,
  formatBandwidth,
  formatVolume,
  MAX_BANDWIDTH,
  parseBandwidth,
  parseDuration,
  parseVolume,
  withLastingVolume,
} from '../../src/contract/amounts.ts';
import { SITES } from '../../src/contract/links.ts';
import { failureOf } from '../fixtures/failures.ts';

describe('the nearest site', () => {
  test.each([
    ['pl-poznan', 'pl-poznan1'],
    ['poznan', 'pl-poznan1'],
    ['be-gnet1', 'be-gent1'],
    ['BE-GENT1', 'be-gent1'],
    ['be_gent1', 'be-gent1'],
    ['frlille', 'fr-lille'],
    ['es-upvehy', 'es-upvehu'],
    ['be-gent1-bi-vm1', 'be-gent1'],
  ])('to %s is %s', (typed, site) => {
    expect(nearestSite(typed)).toBe(site);
  });

  test.each(['', 'x', 'kt', 'fr', 'fr-', 'london', 'de-berlin', 'a-site-with-a-long-name'])(
    'to %j does not exist: it is too different from every site',
    (typed) => {
      expect(nearestSite(typed)).toBeUndefined();
    },
  );
});

describe('a typed site', () => {
  test.each([...SITES, 'de-berlin', 'a', '1', 'x'.repeat(63)])('%s has the form of a site', (name) => {
    expect(siteName(name)).toBe(name);
  });

  test.each([
    ...['', ' ', 'BE-GENT1', 'be_gent1', 'be gent1', ' be-gent1', 'be-gent1\n', '-be-gent1', 'be-gent1-'],
    ...['be.gent1', 'gënt', 'x'.repeat(64), '../etc'],
  ])('%j is refused as usage', async (name) => {
    const { code, message, facts } = await failureOf(() => siteName(name));
    expect([code, facts.fix]).toEqual(['usage', 'slices-conn sites']);
    expect(message.startsWith(`${JSON.stringify(name)} is not a site name.`)).toBe(true);
  });

  test('the refusal names the site that is meant, whichever the service has', async () => {
    for (const typed of ['LAB-ONE1', 'lab_one1', 'lab.one1']) {
      expect((await failureOf(() => siteName(typed))).message).toMatch(/ Did you mean lab-one1\?$/);
    }
    expect((await failureOf(() => siteName('London!'))).message).not.toContain('mean');
  });
});

describe('a bandwidth', () => {
  test.each<[number, ...string[]]>([
    [1, '1', '0.001G'],
    [100, '100', '100M', '100 Mbit/s', '100.0'],
    [1000, '1G', ' 1G ', '1 Gbps', '1Gbit', '1Gb/s', '1 GBit/s'],
    [10_000, '10gbit', '10 Gbits/s'],
    [2500, '2.5G'],
    [4350, '4.35G'],
    [1001, '1.001G'],
    [500_000, '0.5T'],
    [1_000_000, '1T'],
    [MAX_BANDWIDTH, '999999999999999', '999999999999.999G'],
  ])('%i Mbps is %s', (mbps, ...texts) => {
    for (const text of texts) expect(parseBandwidth(text)).toBe(mbps);
  });

  test.each([
    ...['', ' ', ...'0 0.0000G 1.5 0.0005G -1 1e3 0x10 100k 1GB/s 1GBps 1P 1GM'.split(' ')],
    ...['1G 2G', '1,500M', '1_000', '1.G', '.5G', '١٠٠', 'Infinity', '1000000000000000'],
  ])('%j is refused as usage, with an example', async (text) => {
    const { code, message, facts } = await failureOf(() => parseBandwidth(text));
    expect([code, facts.fix]).toEqual(['usage', undefined]);
    expect(message).toContain(JSON.stringify(text));
    expect(facts.why).toMatch(/\S/);
  });

  test.each([
    [1, '1 Mbps', '1M'],
    [999, '999 Mbps', '999M'],
    [1000, '1 Gbps', '1G'],
    [2500, '2.5 Gbps', '2.5G'],
    [1001, '1.001 Gbps', '1.001G'],
    [100_000, '100 Gbps', '100G'],
  ])('%i Mbps are written as %s, and typed as %s', (mbps, text, word) => {
    expect([formatBandwidth(mbps), bandwidthWord(mbps)]).toEqual([text, word]);
  });
});

test.each<[(text: string) => number, string, string, string]>([
  [parseBandwidth, '1,000', '1000', '1.000'],
  [parseBandwidth, '10,500 Mbps', '10500 Mbps', '10.500 Mbps'],
  [parseBandwidth, '1,000,000', '1000000', 'thousands'],
  [parseVolume, '1,500T', '1500T', '1.500T'],
  [parseDuration, '1,000h', '1000h', '1.000h'],
  [parseBandwidth, '1GB', '8G for bytes', '1G for bits'],
])('what could mean two things is refused with both: %#', async (parse, text, one, other) => {
  const { code, facts } = await failureOf(() => parse(text));
  expect(code).toBe('usage');
  expect(facts.why).toContain(one);
  expect(facts.why).toContain(other);
});

describe('a volume, in bytes', () => {
  test.each<[number, ...string[]]>([
    [1, '1B'],
    [1000, '1k'],
    [1536, '1.5KiB'],
    [800e9, '800G', '800 GB'],
    [1.5e12, '1.5T'],
    [2 * 1024 ** 4, '2TiB', '2Ti'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991B'],
  ])('%d is %s', (bytes, ...texts) => {
    for (const text of texts) expect(parseVolume(text)).toBe(bytes);
  });

  test.each([
    ...['', 'T', '50X', '-1G', '1e12', '50Gb', '2tib', '2iB', '١G'],
    ...['0B', '0.5B', '1.0001K', '9.1P', '9007199254740992B', '500', '5000000'],
  ])('%j is refused, with what is wrong', async (text) => {
    const { code, facts } = await failureOf(() => parseVolume(text));
    expect([code, facts.fix]).toEqual(['usage', undefined]);
    expect(facts.why).toMatch(/^(?:Write it as|It must be|The most is) /);
  });

  test.each<[number, number | undefined, number, number]>([
    [500, undefined, 7_500_000, 1],
    [1e6, 1000, 7_500_000, 1],
    [100e9, undefined, 100e9, 13_333],
    [100e9, 5000, 100e9, 5000],
  ])('%d bytes at most at %j Mbps last a minute: %d at %d', (volume, most, sent, bandwidth) => {
    expect(withLastingVolume({ volume, bandwidth: most })).toEqual({ volume: sent, bandwidth });
    expect(sent / (125 * bandwidth)).toBeGreaterThanOrEqual(60_000);
  });

  test.each<[number, string]>([
    [1, '1 B'],
    [1500, '1.5 kB'],
    [800e9, '800 GB'],
    [2 * 1024 ** 4, '2.2 TB'],
    [Number.MAX_SAFE_INTEGER, '9.01 PB'],
  ])('%d is written as %s', (bytes, text) => {
    expect(formatVolume(bytes)).toBe(text);
  });
});
