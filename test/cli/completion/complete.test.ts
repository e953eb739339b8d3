import { describe, expect, test } from 'vitest';
import {
  type Candidate,
  type CompletionSource,
  completionText,
  type Wanted,
} from '../../../src/cli/completion/candidates.ts';

const never = async (): Promise<never> => {
  throw new RangeError('nobody expected a question');
};
const NO_SOURCE: CompletionSource = {
  sites: never,
  profiles: never,
  experiments: never,
  projects: never,
  reservations: never,
  ends: never,
};
const candidate = (value: string, description = ''): Candidate => ({ value, description });

function wanted(changes: Partial<Wanted>): Wanted {
  return { typed: '', before: '', known: [], files: false, ...changes };
}

/** The answer when the sites are these. */
function withSites(sites: readonly Candidate[], typed: string, without: string[] = []): Promise<string> {
  return completionText(wanted({ typed, live: { kind: 'sites', without } }), {
    ...NO_SOURCE,
    sites: async () => sites,
  });
}

test.each<[string, string]>([
  ['tags', 'demo\u{e0041}'],
  ['a Hangul filler', 'demo\u3164'],
  ['half a Hangul filler', 'de\uffa0mo'],
  ['a variation selector', 'demo\ufe0f'],
  ['zero width', 'de\u200bmo'],
  ['a command', 'demo$(touch run)'],
])('row 60: a name with %s is never offered', async (_, name) => {
  expect(await withSites([candidate(name), candidate('demo')], '')).toBe('demo\t\n:0\n');
});

test('row 60: a name that a list holds twice is offered once', async () => {
  const twice = [candidate('demo', '$(touch run)'), candidate('demo', '$(touch run)')];
  expect(await withSites(twice, '')).toBe('demo\t$(touch run)\n:0\n');
});

describe('the answer to a shell', () => {
  const known = [candidate('list', 'list them'), candidate('login', 'log in'), candidate('reserve')];

  test.each<[string, Partial<Wanted>, string]>([
    ['nothing', {}, ':0\n'],
    ['files', { files: true }, ':1\n'],
    ['all', { known }, 'list\tlist them\nlogin\tlog in\nreserve\t\n:0\n'],
    ['what begins so', { known, typed: 'l' }, 'list\tlist them\nlogin\tlog in\n:0\n'],
    ['nothing that only holds it', { known, typed: 'serve' }, ':0\n'],
    ['files beside words', { known, typed: 'r', files: true }, 'reserve\t\n:1\n'],
    ['behind a flag', { known, typed: 'r', before: '--flag=' }, '--flag=reserve\t\n:0\n'],
  ])('%s', async (_, changes, text) => {
    expect(await completionText(wanted(changes), NO_SOURCE)).toBe(text);
  });

  test.each<[string, string[], string]>([
    ['', [], 'be-gent1\t\nfr-lille\t\nfr-nantes\t\npl-poznan1\t\n:0\n'],
    ['', ['be-gent1'], 'fr-lille\t\nfr-nantes\t\npl-poznan1\t\n:0\n'],
    ['fr-', [], 'fr-lille\t\nfr-nantes\t\n:0\n'],
    ['poznan', [], 'pl-poznan1\t\n:0\n'],
    ['poznan', ['pl-poznan1'], ':0\n'],
    ['po', [], ':0\n'],
    ['nt', [], ':0\n'],
    ['lille', ['be-gent1'], 'fr-lille\t\n:0\n'],
    ['fr-x', [], ':0\n'],
  ])(
    'for %j without %j the live values with this beginning are offered, else the only one that contains it',
    async (typed, without, text) => {
      const sites = ['be-gent1', 'fr-lille', 'fr-nantes', 'pl-poznan1'].map((value) => candidate(value));
      expect(await withSites(sites, typed, without)).toBe(text);
    },
  );

  test('several that contain it are not offered: a shell would replace the word by their common beginning', async () => {
    const sites = [candidate('aa-site1'), candidate('bb-site2')];
    expect(await withSites(sites, 'site')).toBe(':0\n');
  });

  test.each([
    '$(reboot)',
    '`id`',
    'a b',
    "a'b",
    'a"b',
    'a\\b',
    'a\nb',
    'a\tb',
    '-x',
    '--yes',
    ':1',
    '~root',
    'a;b',
    '*',
    '',
    'a{b,c}',
    '\u001b[2J',
    'a\u202eb',
    '=ls',
    '!!',
  ])('the live value %j, which a shell does not take as one plain word, is not offered', async (value) => {
    expect(await withSites([candidate(value), candidate('good')], '')).toBe('good\t\n:0\n');
  });

  test.each([
    'demo',
    'con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
    'größe',
    'a@b',
    'a:b',
    'a=b',
    'v1.2+x',
  ])('the live value %j is offered', async (value) => {
    expect(await withSites([candidate(value)], '')).toBe(`${value}\t\n:0\n`);
  });

  test('a description stays on its line and shows its control characters', async () => {
    const text = await withSites([candidate('x', 'one\ntwo\tthree\u001b[31m')], '');
    expect(text).toBe('x\tone\\u000atwo\\u0009three\\u001b[31m\n:0\n');
  });
});
