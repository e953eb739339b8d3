import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it, test } from 'vitest';
import { parse } from 'yaml';
import { type PlanContent, readPlan } from '../../../src/cli/plan/plan-file.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { NOW } from '../../fixtures/tokens.ts';

const HOUR = 3_600_000;
const TIMES = { now: NOW, zone: 'Europe/Brussels' };

const read = (text: string): PlanContent => readPlan(Buffer.from(text), 'demo.yaml', TIMES);

/** The failure of a file: its message and its lines, as a person reads them. */
function errorsOf(text: string): string[] {
  try {
    read(text);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    expect(error.code).toBe('usage');
    return [error.message, ...(error.facts.lines ?? []).map(String)];
  }
  return [];
}

const LINK = 'sites: [be-gent1, pl-poznan1], bandwidth: 1G';
const WHEN = 'start: 2026-12-01T09:00:00Z, for: 8h';

/** A file with these lines below `reservations`. `LINK` and `WHEN` stand for the fields of one. */
const file = (...lines: string[]): string =>
  ['version: 1', 'reservations:', ...lines.map((line) => `  ${line}`), '']
    .join('\n')
    .replaceAll('LINK', LINK)
    .replaceAll('WHEN', WHEN);

/** Each first line of a table with the one below it: a line below `reservations`, and what is told of it. */
function table(text: string): [line: string, error: string][] {
  const lines = text.trim().split('\n');
  return lines.flatMap((line, at) => (at % 2 === 0 ? [[line.trim(), lines[at + 1]?.trim() ?? '']] : []));
}

describe('a plan file', () => {
  it('is read with its defaults', () => {
    const plan = read(`
version: 1
experiment: demo
defaults:
  start: 2026-12-01T09:00:00Z
  for: 8h
  bandwidth: 100
reservations:
  gent-poznan:
    sites: [be-gent1, pl-poznan1]
    bandwidth: 1G
  budapest: {sites: [hu-sztaki, pl-poznan1], end: 2026-12-02T09:00:00Z}
  soon: {sites: [be-gent1, se-kth], start: now, for: 2h}
`);
    const start = Date.parse('2026-12-01T09:00:00Z');
    expect(plan).toEqual({
      experiment: 'demo',
      reservations: [
        {
          ...{ name: 'gent-poznan', site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000 },
          ...{ start, end: start + 8 * HOUR, length: 8 * HOUR, place: 'demo.yaml:10:12' },
        },
        {
          ...{ name: 'budapest', site1: 'hu-sztaki', site2: 'pl-poznan1', bandwidth: 100 },
          ...{ start, end: start + 24 * HOUR, length: 24 * HOUR, place: 'demo.yaml:12:21' },
        },
        {
          ...{ name: 'soon', site1: 'be-gent1', site2: 'se-kth', bandwidth: 100 },
          ...{ start: 'now', end: NOW + 2 * HOUR, length: 2 * HOUR, place: 'demo.yaml:13:17' },
        },
      ],
    });
  });

  const A = 'a: {sites: [x, y], bandwidth: 5, start: now, for: 1h}';
  test.each<[string, string]>([
    ['JSON', '{"version":1,"reservations":{"a":{"sites":["x","y"],"bandwidth":5,"start":"now","for":"1h"}}}'],
    [
      'JSON with tabs',
      '{\n\t"version": 1,\n\t"reservations": {\n\t\t"a": {"sites": ["x", "y"],\n\t\t\t"bandwidth": "5M", "start": "now", "for": "PT1H"}\n\t}\n}\n',
    ],
    ['YAML with an alias', file(A.replace('{', '&a {'), 'b: *a')],
    ['a byte order mark', `\ufeff${file(A)}`],
    ['Windows lines', file(A).replaceAll('\n', '\r\n')],
    ['names that objects have already', file(A.replace('a', 'constructor'), A.replace('a', 'prototype'))],
  ])('may be %s', (_, text) => {
    expect(read(text).reservations[0]).toMatchObject({ site1: 'x', bandwidth: 5, length: HOUR });
  });

  it.each([
    ['Asia/Tokyo', 'start: 2026-12-01 10:00, end: 2026-12-01 12:00', '01T01:00', '01T03:00'],
    [
      'Europe/Brussels',
      'start: 1 Dec 2026 10:00, end: "Tue, 1st December 2026 12:00"',
      '01T09:00',
      '01T11:00',
    ],
    ['+01:00', 'start: 2026-12-01T10:00, end: 2026-12-01 12:00 +02:00', '01T09:00', '01T10:00'],
    ['UTC', 'start: 2026-12-01, end: 2026-12-02', '01T00:00', '03T00:00'],
  ])('has a zone for the times that name none: %s', (zone, period, start, end) => {
    const { reservations } = read(`tz: ${zone}\n${file(`a: {LINK, ${period}}`)}`);
    const at = (time: string) => Date.parse(`2026-12-${time}:00Z`);
    expect(reservations[0]).toMatchObject({ start: at(start), end: at(end) });
  });

  it('has what is asked of routes, of each reservation or for all', () => {
    const defaults = 'defaults: {avoid: [d, e], via: c}\n';
    const { reservations } = read(
      defaults + file('a: {LINK, WHEN}', 'b: {LINK, WHEN, via: [], direct: true}'),
    );
    expect(reservations[0]).toMatchObject({ via: ['c'], avoid: ['d', 'e'] });
    expect(reservations[1]).toMatchObject({ via: [], avoid: ['d', 'e'], direct: true });
  });

  it('may be that of the README, or want nothing', () => {
    const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
    const [, text = ''] = /## Several links at once[\s\S]*?```yaml\n([\s\S]*?)```/.exec(readme) ?? [];
    expect(read(text).reservations.map(({ name }) => name)).toEqual(['gent-poznan', 'budapest', 'kth']);
    expect(read('version: 1\nreservations: {}\n')).toEqual({ experiment: undefined, reservations: [] });
  });
});

const KEYS = 'sites, bandwidth, start, end, for, via, avoid, direct, description.';

describe('what is wrong is told with file, line and column', () => {
  test.each(
    table(`
      a: {LINK, WHEN, bandwith: 2G}
      3:91: "bandwith" is not a key of a reservation. Did you mean bandwidth?
      a: {LINK, WHEN, xyzzy: 2}
      3:91: "xyzzy" is not a key of a reservation. Its keys are ${KEYS}
      a:
      3:5: Here belong the keys of a reservation: ${KEYS}
      a: *b
      3:6: Here belong the keys of a reservation: ${KEYS}
      a: {bandwidth: 1G}
      3:3: a has no sites, and no start, and no end or for.
      a: {sites: [be-gent1], bandwidth: 1G, WHEN}
      3:14: sites must be the two ends of a link, such as [be-gent1, pl-poznan1].
      a: {sites: [be-gent1, be-gent1], bandwidth: 1G, WHEN}
      3:25: A link has two different ends, and both are be-gent1.
      a: {sites: [x, y], bandwidth: 2.5, WHEN}
      3:33: "2.5" is not a bandwidth. It must be a whole number of Mbps.
      a: {LINK, start: now, for: 90}
      3:70: "90" is not a duration. Write it as 90m, 2h, 2h30m, 3d, 1w or P3D.
      a: {LINK, WHEN, end: 2026-12-02T09:00:00Z}
      3:87: end and for can't be given together.
      a: {LINK, start: 2026-12-01T09:00:00Z, end: 2026-12-01T08:00:00Z}
      3:87: a would end before it starts.
      a: {LINK, start: now, end: 2026-12-01T08:00:00Z}
      3:70: a starts now, and needs a duration: write "for: 2h" in place of the end.
      a: {LINK, start: 2026-02-30 10:00Z, for: 1h}
      3:60: There is no day or time "2026-02-30 10:00Z".
      a: {LINK, start: soon, for: 1h}
      3:60: "soon" is not an absolute time. Write it as 2026-12-01T10:00:00Z, or now.
      a: !link {LINK, WHEN}
      3:6: Unresolved tag: !link.
      a: {LINK, WHEN, description: null}
      3:104: Here belongs one value.
      a: {LINK, WHEN, avoid: {a: b}}
      3:98: Here belongs one value.
      a: {LINK, WHEN, direct: yes}
      3:99: "yes" is neither true nor false.
      a: {LINK, WHEN, via: [X]}
      3:97: "X" is not a site name. Did you mean x? It has lower-case letters, digits and dashes only.
      a: {LINK, WHEN, via: [c], avoid: [c]}
      3:3: via and avoid both name c.
    `),
  )('%s', (line, error) => {
    expect(errorsOf(file(line))).toEqual([`demo.yaml:${error}`]);
  });

  const WRITE =
    'Write 2026-12-01T14:00+01:00 (Europe/Brussels), or tz: Europe/Brussels once at the head of the file.';
  const [BEGINS, NAMES] = [
    '1:1: A plan file begins with "version: 1", and has reservations by their names.',
    'Names have 1 to 64 characters of a to z, 0 to 9 and -, and begin with a letter.',
  ];
  test.each<[string, string]>([
    ['', BEGINS],
    ['- 1', BEGINS],
    ['reservations: {}', '1:1: "version: 1" is missing.'],
    ['version: 2\nreservations: {}', '1:10: This program reads plan files of version 1: write "version: 1".'],
    [
      'version: 1',
      '1:1: reservations are missing: names, each with sites, bandwidth, start, and end or for.',
    ],
    [
      'version: 1\nreservations:\n',
      '2:14: reservations must be names, each with what it wants; {} for none.',
    ],
    [
      'version: 1\nreservation: {}\nreservations: {}',
      '2:1: "reservation" is not a key of a plan file. Did you mean reservations?',
    ],
    [
      'version: 1\ndefaults: {site: 1}\nreservations: {}',
      '2:12: "site" is not a key of defaults. Did you mean sites?',
    ],
    [
      file('a: {LINK, WHEN}', 'b: {LINK, WHEN}', 'a: {LINK, WHEN}'),
      '5:3: "a" is given twice; the first is in line 3.',
    ],
    [
      '{"version":1,"version":1,"reservations":{}}',
      '1:14: "version" is given twice; the first is in line 1.',
    ],
    [file('Gent_1: {LINK, WHEN}'), `3:3: "Gent_1" is not a name of a reservation. ${NAMES}`],
    [
      file('a: {LINK, start: 2026-12-01 14:00-16:00, for: 1h}'),
      `3:60: "2026-12-01 14:00-16:00" is not a time. A start and an end are two times: start: '2026-12-01 14:00' end: '2026-12-01 16:00'. Offsets go from -12:00 to +14:00.`,
    ],
    [
      file('a: {LINK, start: 2026-12-01T09:00:00Z, end: 14:00}'),
      `3:87: "14:00" is not an absolute time. ${WRITE}`,
    ],
    [file('a: {LINK, start: 2026-12-01 14:00, for: 1h}'), `3:60: "2026-12-01 14:00" names no zone. ${WRITE}`],
    [
      `tz: Asia/Tokyo\n${file('a: {LINK, start: now, for: 1h}', 'b: {LINK, start: friday next week 9:00, for: 1h}')}`,
      '5:60: "friday next week 9:00" is not an absolute time. Write 2026-11-06 09:00.',
    ],
    [
      `tz: Brussels\n${file('a: {LINK, start: 2026-12-10 09:00, for: 1h}')}`,
      '1:5: "Brussels" is not a time zone. Write it as Europe/Brussels, UTC or +01:00.',
    ],
    [
      `${file('a: {LINK, WHEN}')}---\nversion: 1\n`,
      '4:1: A plan is one document, and "---" begins another one: two documents are two plans.',
    ],
    [
      'version: 1\ndefaults: {start: soon, for: 1h}\nreservations:\n  a: {LINK}\n  b: {LINK}\n'.replaceAll(
        'LINK',
        LINK,
      ),
      '2:19: "soon" is not an absolute time. Write it as 2026-12-01T10:00:00Z, or now.',
    ],
    ['['.repeat(20_000), expect.stringMatching(/^demo\.yaml:1:\d+: This is nested too deeply\.$/)],
  ])('%#: %.60s', (text, error) => {
    expect(errorsOf(text)).toEqual([typeof error === 'string' ? `demo.yaml:${error}` : error]);
  });

  test('the end that is advised follows the start that is advised', () => {
    const [, ...errors] = errorsOf(`tz: UTC\n${file('a: {LINK, start: friday 9:00, end: 10:00}')}`);
    expect(errors.join()).toMatch(/Write 2026-11-06 09:00.*Write 2026-11-06 10:00/);
  });

  it('4,000 aliases, which take no longer than as many words (THREATS.md 109)', () => {
    const keys = (key: string): string => file('&a a:', ...Array.from({ length: 4000 }, () => `  ${key}: 1`));
    const timeOf = (text: string): number => {
      const began = performance.now();
      expect(errorsOf(text)[0]).toBe('demo.yaml has 4001 errors.');
      return performance.now() - began;
    };
    const bare = timeOf(keys('a'));
    expect(timeOf(keys('*a ')) / bare).toBeLessThan(10);
  });

  it('several at once, in the order of the file, twenty of them, and how many more there are', () => {
    expect(errorsOf(file('a: {bandwidth: fast}', 'b: {LINK, start: soon, fro: 1h}'))).toEqual([
      'demo.yaml has 5 errors.',
      'demo.yaml:3:3: a has no sites, and no start, and no end or for.',
      'demo.yaml:3:18: "fast" is not a bandwidth. Write it as 100 (Mbps), 100M, 1G or 2.5G.',
      'demo.yaml:4:3: b has no end or for.',
      'demo.yaml:4:60: "soon" is not an absolute time. Write it as 2026-12-01T10:00:00Z, or now.',
      `demo.yaml:4:66: "fro" is not a key of a reservation. Its keys are ${KEYS}`,
    ]);
    const errors = errorsOf(file(...Array.from({ length: 30 }, (_, at) => `a${at}: {}`)));
    expect(errors).toHaveLength(22);
    expect([errors[0], errors.at(-1)]).toEqual(['demo.yaml has 30 errors.', 'and 10 more']);
  });

  it('a file that is too large, and one that is not text', () => {
    expect(errorsOf(`#${'x'.repeat(1_048_576)}`)).toEqual(['demo.yaml is too large.']);
    expect(() => readPlan(Uint8Array.of(0xff, 0xfe), 'demo.yaml', TIMES)).toThrow(
      'demo.yaml is not text in UTF-8.',
    );
  });
});

describe('the schema for editors', () => {
  const path = new URL('../../../src/cli/plan/plan.schema.json', import.meta.url);
  const accepts = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync(path, 'utf8')));
  const GOOD = [
    file('a: {LINK, WHEN}'),
    ...['1w2d', 'P3D', "'1 d 2,5 hours'"].map((length) => file(`a: {LINK, start: now, for: ${length}}`)),
    ...['4 Dec 2026 09:00 UTC', '2026-12-01 10:00 +01:00'].map((start) =>
      file(`a: {LINK, start: ${start}, for: 1h}`),
    ),
    `tz: UTC\n${file('a: {LINK, start: 2026-12-01, end: 2026-12-02 10:00}')}`,
    `tz: UTC\n${file("a: {LINK, start: 4 Dec 2026, end: 'Dec 5th 2026'}")}`,
    file('a: {LINK, start: 2026-12-01T10:00Z, end: 2026-12-02 Europe/Brussels}'),
    file("a: {sites: [x, y], bandwidth: '2,5 Gbps', WHEN}"),
    `$schema: ./plan.schema.json\n${file('a: {LINK, WHEN}')}`,
    `experiment: demo\ndefaults: {for: 1h}\n${file('a: {LINK, start: now}')}`,
    'version: 1\nreservations: {}',
  ];
  const BAD = [
    ...['version: 2\nreservations: {}', 'version: 1', 'reservations: {}', 'version: 1\nreservations: []'],
    ...['version: 1\nreservations: {}\nx: 1', `tz: 1\n${file('a: {LINK, WHEN}')}`],
    ...['A: {LINK, WHEN}', 'a: {LINK, WHEN, x: 1}', 'a: {LINK, WHEN, end: 2026-12-03T00:00:00Z}'].map((one) =>
      file(one),
    ),
    ...['2026-12-01 10:00', '4 Dec 2026 09:00', '4 Dec 09:00 UTC', '+2h'].map((start) =>
      file(`a: {LINK, start: ${start}, for: 1h}`),
    ),
    file('a: {LINK, start: 2026-12-01Z, end: 2026-12-02 10:00}'),
    ...['8', 'long'].map((length) => file(`a: {LINK, start: now, for: ${length}}`)),
    ...['[x]', '[x, x]', '[x, y, z]', '[x, Y]'].map((ends) =>
      file(`a: {sites: ${ends}, bandwidth: 1, WHEN}`),
    ),
    ...['fast', '0', '1.5'].map((rate) => file(`a: {sites: [x, y], bandwidth: ${rate}, WHEN}`)),
  ];

  /** Files about which schema and program can say the same: no key twice, and nothing that two values say together. */
  test.each([...GOOD.map((text) => [text, true] as const), ...BAD.map((text) => [text, false] as const)])(
    'and the program agree about %j',
    (text, isGood) => {
      expect([accepts(parse(text)), errorsOf(text).length === 0]).toEqual([isGood, isGood]);
    },
  );
});
