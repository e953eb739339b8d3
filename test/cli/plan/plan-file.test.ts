import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it, test } from 'vitest';
import { parse } from 'yaml';
import { type PlanContent, readPlan } from '../../../src/cli/plan/plan-file.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { NOW } from '../../fixtures/tokens.ts';

const HOUR = 3_600_000;
const TIMES = { now: NOW, zone: 'Europe/Brussels' };

const read = (text: string): Promise<PlanContent> => readPlan(Buffer.from(text), 'demo.yaml', TIMES);

/** The failure of a file: its message and its lines, as a person reads them. */
async function errorsOf(text: string): Promise<string[]> {
  try {
    await read(text);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    expect(error.code).toBe('usage');
    return error.facts.lines === undefined
      ? [error.message]
      : [error.message, ...error.facts.lines.map(String)];
  }
  return [];
}

/** A file with these lines below `reservations`. */
const file = (...lines: string[]): string =>
  ['version: 1', 'reservations:', ...lines.map((line) => `  ${line}`), ''].join('\n');

const FIELDS = 'sites: [be-gent1, pl-poznan1], bandwidth: 1G';
const WHEN = 'start: 2026-12-01T09:00:00Z, for: 8h';

describe('a plan file', () => {
  it('is read with its defaults', async () => {
    const plan = await read(`
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

  test.each<[string, string]>([
    ['JSON', '{"version":1,"reservations":{"a":{"sites":["x","y"],"bandwidth":5,"start":"now","for":"1h"}}}'],
    [
      'JSON with tabs',
      '{\n\t"version": 1,\n\t"reservations": {\n\t\t"a": {"sites": ["x", "y"],\n\t\t\t"bandwidth": "5M", "start": "now", "for": "PT1H"}\n\t}\n}\n',
    ],
    ['YAML with an alias', file('a: &a {sites: [x, y], bandwidth: 5, start: now, for: 1h}', 'b: *a')],
    ['a byte order mark', `\ufeff${file('a: {sites: [x, y], bandwidth: 5, start: now, for: 1h}')}`],
    ['Windows lines', file('a: {sites: [x, y], bandwidth: 5, start: now, for: 1h}').replaceAll('\n', '\r\n')],
  ])('may be %s', async (_, text) => {
    const { reservations } = await read(text);
    expect(reservations[0]).toMatchObject({ name: 'a', site1: 'x', bandwidth: 5, length: HOUR });
  });

  it('takes names that objects have already', async () => {
    const { reservations } = await read(
      file(`constructor: {${FIELDS}, ${WHEN}}`, `prototype: {${FIELDS}, ${WHEN}}`),
    );
    expect(reservations.map(({ name }) => name)).toEqual(['constructor', 'prototype']);
  });

  it.each([
    ['Asia/Tokyo', 'start: 2026-12-01 10:00, end: 2026-12-01 12:00', '01:00', '03:00'],
    ['Europe/Brussels', 'start: 1 Dec 2026 10:00, end: "Tue, 1st December 2026 12:00"', '09:00', '11:00'],
    ['+01:00', 'start: 2026-12-01T10:00, end: 2026-12-01 12:00 +02:00', '09:00', '10:00'],
  ])('has a zone for the times that name none: %s', async (zone, period, start, end) => {
    const { reservations } = await read(`tz: ${zone}\n${file(`a: {${FIELDS}, ${period}}`)}`);
    const at = (time: string) => Date.parse(`2026-12-01T${time}:00Z`);
    expect(reservations[0]).toMatchObject({ start: at(start), end: at(end) });
  });

  it('has what is asked of routes, of each reservation or for all', async () => {
    const defaults = 'defaults: {avoid: [d, e], via: c}\n';
    const { reservations } = await read(
      defaults + file(`a: {${FIELDS}, ${WHEN}}`, `b: {${FIELDS}, ${WHEN}, via: [], direct: true}`),
    );
    expect(reservations[0]).toMatchObject({ via: ['c'], avoid: ['d', 'e'] });
    expect(reservations[1]).toMatchObject({ via: [], avoid: ['d', 'e'], direct: true });
  });

  it.each([
    ['via: [X]', /"X" is not a site name/],
    ['via: [X, Y]', /2 errors/],
    ['direct: yes', /"yes" is neither true nor false/],
    ['via: [c], avoid: [c]', /via and avoid both name c/],
    ['avoid: {a: b}', /Here belongs one value/],
  ])('is wrong with %s', async (route, says) => {
    await expect(read(file(`a: {${FIELDS}, ${WHEN}, ${route}}`))).rejects.toThrow(says);
  });

  it('names each site that there is not, beside what else is wrong, where it is told which there are', async () => {
    const text = file(
      `a: {sites: [be-gent, pl-poznan1], bandwidth: 1X, ${WHEN}}`,
      `b: {${FIELDS}, ${WHEN}, via: [far]}`,
    );
    const reading = readPlan(Buffer.from(text), 'demo.yaml', TIMES, ['be-gent1', 'pl-poznan1']);
    const lines = [
      'demo.yaml:3:15: There is no site be-gent. Did you mean be-gent1?',
      expect.stringContaining('demo.yaml:3:48: "1X"'),
      'demo.yaml:4:97: There is no site far.',
    ];
    await expect(reading).rejects.toMatchObject({ facts: { lines } });
  });

  it('takes a day alone as its beginning for a start, and as through it for an end', async () => {
    const { reservations } = await read(
      `tz: UTC\n${file(`a: {${FIELDS}, start: 2026-12-01, end: 2026-12-02}`)}`,
    );
    expect(reservations[0]?.length).toBe(48 * 3_600_000);
  });

  it('may be that of the README', async () => {
    const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
    const [, text = ''] = /## Several links at once[\s\S]*?```yaml\n([\s\S]*?)```/.exec(readme) ?? [];
    expect((await read(text)).reservations.map(({ name }) => name)).toEqual([
      'gent-poznan',
      'budapest',
      'kth',
    ]);
  });

  it('may want nothing', async () => {
    expect(await read('version: 1\nreservations: {}\n')).toEqual({ experiment: undefined, reservations: [] });
  });
});

const KEYS = 'Its keys are sites, bandwidth, start, end, for, via, avoid, direct, description.';

describe('what is wrong is told with file, line and column', () => {
  test.each<[string, string, string[]]>([
    [
      'an empty file',
      '',
      ['demo.yaml:1:1: A plan file begins with "version: 1", and has reservations by their names.'],
    ],
    [
      'a list',
      '- 1',
      ['demo.yaml:1:1: A plan file begins with "version: 1", and has reservations by their names.'],
    ],
    ['no version', 'reservations: {}', ['demo.yaml:1:1: "version: 1" is missing.']],
    [
      'another version',
      'version: 2\nreservations: {}',
      ['demo.yaml:1:10: This program reads plan files of version 1: write "version: 1".'],
    ],
    [
      'no reservations',
      'version: 1',
      ['demo.yaml:1:1: reservations are missing: names, each with sites, bandwidth, start, and end or for.'],
    ],
    [
      'reservations without a value',
      'version: 1\nreservations:\n',
      ['demo.yaml:2:14: reservations must be names, each with what it wants; {} for none.'],
    ],
    [
      'a mistyped key',
      file(`a: {${FIELDS}, ${WHEN}, bandwith: 2G}`),
      ['demo.yaml:3:91: "bandwith" is not a key of a reservation. Did you mean bandwidth?'],
    ],
    [
      'an unknown key',
      file(`a: {${FIELDS}, ${WHEN}, xyzzy: 2}`),
      [`demo.yaml:3:91: "xyzzy" is not a key of a reservation. ${KEYS}`],
    ],
    [
      'an unknown key at the top',
      'version: 1\nreservation: {}\nreservations: {}',
      ['demo.yaml:2:1: "reservation" is not a key of a plan file. Did you mean reservations?'],
    ],
    [
      'an unknown key of defaults',
      'version: 1\ndefaults: {site: 1}\nreservations: {}',
      ['demo.yaml:2:12: "site" is not a key of defaults. Did you mean sites?'],
    ],
    [
      'a name twice',
      file(`a: {${FIELDS}, ${WHEN}}`, `b: {${FIELDS}, ${WHEN}}`, `a: {${FIELDS}, ${WHEN}}`),
      ['demo.yaml:5:3: "a" is given twice; the first is in line 3.'],
    ],
    [
      'a key twice, in JSON',
      '{"version":1,"version":1,"reservations":{}}',
      ['demo.yaml:1:14: "version" is given twice; the first is in line 1.'],
    ],
    [
      'a name of another form',
      file(`Gent_1: {${FIELDS}, ${WHEN}}`),
      [
        'demo.yaml:3:3: "Gent_1" is not a name of a reservation. Names have 1 to 64 characters of a to z, 0 to 9 and -, and begin with a letter.',
      ],
    ],
    [
      'nothing but a name',
      file('a:'),
      [
        'demo.yaml:3:5: Here belong the keys of a reservation: sites, bandwidth, start, end, for, via, avoid, direct, description.',
      ],
    ],
    [
      'members that are missing',
      file('a: {bandwidth: 1G}'),
      ['demo.yaml:3:3: a has no sites, and no start, and no end or for.'],
    ],
    [
      'one site',
      file(`a: {sites: [be-gent1], bandwidth: 1G, ${WHEN}}`),
      ['demo.yaml:3:14: sites must be the two ends of a link, such as [be-gent1, pl-poznan1].'],
    ],
    [
      'the same site twice',
      file(`a: {sites: [be-gent1, be-gent1], bandwidth: 1G, ${WHEN}}`),
      ['demo.yaml:3:25: A link has two different ends, and both are be-gent1.'],
    ],
    [
      'a bandwidth',
      file(`a: {sites: [x, y], bandwidth: fast, ${WHEN}}`),
      ['demo.yaml:3:33: "fast" is not a bandwidth. Write it as 100 (Mbps), 100M, 1G or 2.5G.'],
    ],
    [
      'a part of a Mbps',
      file(`a: {sites: [x, y], bandwidth: 2.5, ${WHEN}}`),
      ['demo.yaml:3:33: "2.5" is not a bandwidth. It must be a whole number of Mbps.'],
    ],
    [
      'a relative time',
      file(`a: {${FIELDS}, start: tomorrow 09:00, for: 1h}`),
      [
        'demo.yaml:3:60: "tomorrow 09:00" is not an absolute time. Write 2026-11-02T09:00+01:00 (Europe/Brussels), or tz: Europe/Brussels once at the head of the file.',
      ],
    ],
    [
      'a key null',
      'version: 1\nnull: x\nreservations: {}\n',
      ['demo.yaml:2:1: The key null is nothing in YAML: write "null" in quotes.'],
    ],
    ...['{"version": 1, // x', '{"version": 1, /* x */', '["http://a", // x'].map(
      (text): [string, string, string[]] => [
        'a comment in JSON',
        `${text}\n}`,
        [
          `demo.yaml:1:${text.search(/\/[/*] ?x/) + 1}: JSON has no comments: leave them out, or write the plan as YAML.`,
        ],
      ],
    ),
    [
      'a range',
      file(`a: {${FIELDS}, start: 2026-12-01 14:00-16:00, for: 1h}`),
      [
        `demo.yaml:3:60: "2026-12-01 14:00-16:00" is not a time. A start and an end are two times: start: '2026-12-01 14:00' end: '2026-12-01 16:00'.`,
      ],
    ],
    [
      'a time of day',
      file(`a: {${FIELDS}, start: 2026-12-01T09:00:00Z, end: 14:00}`),
      [
        'demo.yaml:3:87: "14:00" is not an absolute time. Write 2026-12-01T14:00+01:00 (Europe/Brussels), or tz: Europe/Brussels once at the head of the file.',
      ],
    ],
    [
      'relative times, in the zone of the file',
      `tz: Asia/Tokyo\n${file(`a: {${FIELDS}, start: friday next week 9:00, end: +2h30m}`)}`,
      [
        'demo.yaml has 2 errors.',
        'demo.yaml:4:60: "friday next week 9:00" is not an absolute time. Write 2026-11-06 09:00.',
        'demo.yaml:4:88: "+2h30m" is not an absolute time. Write 2026-11-01 23:30.',
      ],
    ],
    [
      'what is no time',
      file(`a: {${FIELDS}, start: soon, end: later}`),
      [
        'demo.yaml has 2 errors.',
        'demo.yaml:3:60: "soon" is not an absolute time. Write it as 2026-12-01T10:00:00Z, or now.',
        'demo.yaml:3:71: "later" is not an absolute time. Write it as 2026-12-01T10:00:00Z.',
      ],
    ],
    [
      'a day that there is not',
      file(`a: {${FIELDS}, start: 2026-02-30 10:00Z, for: 1h}`),
      ['demo.yaml:3:60: There is no day or time "2026-02-30 10:00Z".'],
    ],
    [
      'a time without a zone: the machine that applies the file may be in another one',
      file(`a: {${FIELDS}, start: 2026-12-10 09:00, for: 1h}`),
      [
        'demo.yaml:3:60: "2026-12-10 09:00" names no zone. Write 2026-12-10T09:00+01:00 (Europe/Brussels), or tz: Europe/Brussels once at the head of the file.',
      ],
    ],
    [
      'a zone that there is not, and nothing that follows from it',
      `tz: Brussels\n${file(`a: {${FIELDS}, start: 2026-12-10 09:00, for: 1h}`)}`,
      ['demo.yaml:1:5: "Brussels" is not a time zone. Write it as Europe/Brussels, UTC or +01:00.'],
    ],
    [
      'a duration',
      file(`a: {${FIELDS}, start: now, for: 90}`),
      ['demo.yaml:3:70: "90" is not a duration. Write it as 90m, 2h, 2h30m, 3d, 1w or P3D.'],
    ],
    [
      'an end and a duration',
      file(`a: {${FIELDS}, ${WHEN}, end: 2026-12-02T09:00:00Z}`),
      ["demo.yaml:3:87: end and for can't be given together."],
    ],
    [
      'an end before the start',
      file(`a: {${FIELDS}, start: 2026-12-01T09:00:00Z, end: 2026-12-01T08:00:00Z}`),
      ['demo.yaml:3:87: a would end before it starts.'],
    ],
    [
      'an end of one that starts now',
      file(`a: {${FIELDS}, start: now, end: 2026-12-01T08:00:00Z}`),
      ['demo.yaml:3:70: a starts now, and needs a duration: write "for: 2h" in place of the end.'],
    ],
    ['a tag of its own', file(`a: !link {${FIELDS}, ${WHEN}}`), ['demo.yaml:3:6: Unresolved tag: !link.']],
    [
      'an alias of nothing',
      file('a: *b'),
      [
        'demo.yaml:3:6: Here belong the keys of a reservation: sites, bandwidth, start, end, for, via, avoid, direct, description.',
      ],
    ],
    [
      'two documents',
      `${file(`a: {${FIELDS}, ${WHEN}}`)}---\nversion: 1\n`,
      ['demo.yaml:4:1: A plan is one document, and "---" begins another one: two documents are two plans.'],
    ],
    [
      'broken JSON',
      '{"version":1,\n"reservations":{"a":{]}',
      [expect.any(String), expect.stringMatching(/^demo\.yaml:2:/), expect.stringMatching(/^demo\.yaml:2:/)],
    ],
    [
      '20,000 lists in each other',
      '['.repeat(20_000),
      [expect.stringMatching(/^demo\.yaml:1:\d+: This is nested too deeply\.$/)],
    ],
  ])('%s', async (_, text, errors) => {
    expect(await errorsOf(text)).toEqual(errors);
  });

  it('more than 64 reservations, of which some may exist already', async () => {
    const aliases = Array.from({ length: 99 }, (_, at) => `a${at + 1}: *a`);
    expect((await read(file(`a0: &a {${FIELDS}, ${WHEN}}`, ...aliases))).reservations).toHaveLength(100);
  });

  it('4,000 aliases, which take no longer than as many words (THREATS.md 109)', async () => {
    const keys = (key: string): string => file('&a a:', ...Array.from({ length: 4000 }, () => `  ${key}: 1`));
    const timeOf = async (text: string): Promise<number> => {
      const began = performance.now();
      expect((await errorsOf(text))[0]).toBe('demo.yaml has 4001 errors.');
      return performance.now() - began;
    };
    const bare = await timeOf(keys('a'));
    expect((await timeOf(keys('*a '))) / bare).toBeLessThan(10);
  });

  it('several at once, in the order of the file', async () => {
    const text = file('a: {bandwidth: fast}', `b: {${FIELDS}, start: soon, fro: 1h}`);
    expect(await errorsOf(text)).toEqual([
      'demo.yaml has 5 errors.',
      'demo.yaml:3:3: a has no sites, and no start, and no end or for.',
      'demo.yaml:3:18: "fast" is not a bandwidth. Write it as 100 (Mbps), 100M, 1G or 2.5G.',
      'demo.yaml:4:3: b has no end or for.',
      'demo.yaml:4:60: "soon" is not an absolute time. Write it as 2026-12-01T10:00:00Z, or now.',
      'demo.yaml:4:66: "fro" is not a key of a reservation. Its keys are sites, bandwidth, start, end, for, via, avoid, direct, description.',
    ]);
  });

  it('an error in the defaults once', async () => {
    const text = `version: 1\ndefaults: {start: soon, for: 1h}\nreservations:\n  a: {${FIELDS}}\n  b: {${FIELDS}}\n`;
    expect(await errorsOf(text)).toEqual([
      'demo.yaml:2:19: "soon" is not an absolute time. Write it as 2026-12-01T10:00:00Z, or now.',
    ]);
  });

  it('twenty of them, and how many more there are', async () => {
    const errors = await errorsOf(file(...Array.from({ length: 30 }, (_, at) => `a${at}: {}`)));
    expect(errors).toHaveLength(22);
    expect([errors[0], errors.at(-1)]).toEqual(['demo.yaml has 30 errors.', 'and 10 more']);
  });

  it('a file that is too large, and one that is not text', async () => {
    expect(await errorsOf(`#${'x'.repeat(1_048_576)}`)).toEqual(['demo.yaml is too large.']);
    await expect(readPlan(Uint8Array.of(0xff, 0xfe), 'demo.yaml', TIMES)).rejects.toThrow(
      'demo.yaml is not text in UTF-8.',
    );
  });
});

describe('the schema for editors', () => {
  const path = new URL('../../../src/cli/plan/plan.schema.json', import.meta.url);
  const accepts = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync(path, 'utf8')));

  /** Files about which schema and program can say the same: no key twice, and nothing that two values say together. */
  test.each<[string, boolean]>([
    [file(`a: {${FIELDS}, ${WHEN}}`), true],
    [file(`a: {${FIELDS}, start: now, for: 1w2d}`), true],
    [file(`a: {${FIELDS}, start: now, for: P3D}`), true],
    [
      `tz: UTC\n${file('a: {sites: [x, y], bandwidth: 100, start: 2026-12-01, end: 2026-12-02 10:00}')}`,
      true,
    ],
    [file('a: {sites: [x, y], bandwidth: 100, start: 2026-12-01 10:00, for: 1h}'), false],
    [file('a: {sites: [x, y], bandwidth: 100, start: 4 Dec 2026 09:00, for: 1h}'), false],
    [file('a: {sites: [x, y], bandwidth: 100, start: 4 Dec 09:00 UTC, for: 1h}'), false],
    [file('a: {sites: [x, y], bandwidth: 100, start: 4 Dec 2026 09:00 UTC, for: 1h}'), true],
    [`tz: UTC\n${file("a: {sites: [x, y], bandwidth: 100, start: 4 Dec 2026, end: 'Dec 5th 2026'}")}`, true],
    [file('a: {sites: [x, y], bandwidth: 100, start: 2026-12-01Z, end: 2026-12-02 10:00}'), false],
    [file('a: {sites: [x, y], bandwidth: 100, start: 2026-12-01 10:00 +01:00, for: 1h}'), true],
    [
      file('a: {sites: [x, y], bandwidth: 100, start: 2026-12-01T10:00Z, end: 2026-12-02 Europe/Brussels}'),
      true,
    ],
    [`tz: 1\n${file(`a: {${FIELDS}, ${WHEN}}`)}`, false],
    [file(`a: {${FIELDS}, start: now, for: '1 d 2,5 hours'}`), true],
    [file(`a: {sites: [x, y], bandwidth: '2,5 Gbps', ${WHEN}}`), true],
    [`$schema: ./plan.schema.json\n${file(`a: {${FIELDS}, ${WHEN}}`)}`, true],
    [`experiment: demo\ndefaults: {for: 1h}\n${file(`a: {${FIELDS}, start: now}`)}`, true],
    ['version: 1\nreservations: {}', true],
    ['version: 2\nreservations: {}', false],
    ['version: 1', false],
    ['reservations: {}', false],
    ['version: 1\nreservations: []', false],
    ['version: 1\nreservations: {}\nx: 1', false],
    [file(`A: {${FIELDS}, ${WHEN}}`), false],
    [file(`a: {${FIELDS}, ${WHEN}, x: 1}`), false],
    [file(`a: {${FIELDS}, ${WHEN}, end: 2026-12-03T00:00:00Z}`), false],
    [file(`a: {sites: [x], bandwidth: 1, ${WHEN}}`), false],
    [file(`a: {sites: [x, x], bandwidth: 1, ${WHEN}}`), false],
    [file(`a: {sites: [x, y, z], bandwidth: 1, ${WHEN}}`), false],
    [file(`a: {sites: [x, Y], bandwidth: 1, ${WHEN}}`), false],
    [file(`a: {sites: [x, y], bandwidth: fast, ${WHEN}}`), false],
    [file(`a: {sites: [x, y], bandwidth: 0, ${WHEN}}`), false],
    [file(`a: {sites: [x, y], bandwidth: 1.5, ${WHEN}}`), false],
    [file(`a: {${FIELDS}, start: +2h, for: 8h}`), false],
    [file(`a: {${FIELDS}, start: now, for: 8}`), false],
    [file(`a: {${FIELDS}, start: now, for: long}`), false],
  ])('and the program agree about %j', async (text, isGood) => {
    expect([accepts(parse(text)), await errorsOf(text)]).toEqual([isGood, isGood ? [] : expect.any(Array)]);
    expect((await errorsOf(text)).length > 0).toBe(!isGood);
  });
});
