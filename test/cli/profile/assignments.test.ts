import { describe, expect, test } from 'vitest';
import { parseAssignments } from '../../../src/cli/profile/profile.ts';
import { KEY_NAMES } from '../../../src/session/profiles/profile-keys.ts';
import { failureOf } from '../../fixtures/failures.ts';

const LONG = 'x'.repeat(1_000_000);
const TOKEN = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2ln';

describe('the value of a key', () => {
  test.each<[string, string, unknown]>([
    ['baseUrl', 'https://conn.example.org', 'https://conn.example.org'],
    ['baseUrl', 'https://conn.example.org/', 'https://conn.example.org'],
    ['baseUrl', 'https://conn.example.org/api//', 'https://conn.example.org/api'],
    ['baseUrl', 'HTTPS://Conn.Example.org:443/API', 'https://conn.example.org/API'],
    ['baseUrl', 'https://conn.example.org:8443', 'https://conn.example.org:8443'],
    ['baseUrl', 'https://conn.example.org/a=b', 'https://conn.example.org/a=b'],
    ['portalUrl', 'http://127.0.0.1:4280/portal', 'http://127.0.0.1:4280/portal'],
    ['authUrl', 'http://[::1]:4280/auth', 'http://[::1]:4280/auth'],
    ['clientId', 'slices-conn', 'slices-conn'],
    ['clientId', 'a=b', 'a=b'],
    ['scope', 'openid', 'openid'],
    ['scope', 'openid offline_access', 'openid offline_access'],
    ['apiGroups', 'projects.slices.example,e', 'projects.slices.example,e'],
    ['experimentTokenHeader', 'X-Experiment', 'X-Experiment'],
    ['experimentTokenHeader', "!#$%&'*+-.^_`|~", "!#$%&'*+-.^_`|~"],
    ['tokenPlacement', 'experiment', 'experiment'],
    ['userTokenCommand', '["token"]', ['token']],
    ['experimentTokenCommand', ' [ "a b" , "{experiment}" ] ', ['a b', '{experiment}']],
    ['caFile', '/etc/ssl/lab.pem', '/etc/ssl/lab.pem'],
    ['insecure', 'true', true],
    ['insecure', 'false', false],
    ['project', 'demo', 'demo'],
    ['experiment', 'exp_portal.example.org_01', 'exp_portal.example.org_01'],
    ['experiment', 'with spaces é', 'with spaces é'],
  ])('%s=%s', (key, typed, value) => {
    expect(parseAssignments([`${key}=${typed}`])).toEqual({ set: { [key]: value }, unset: [] });
  });

  test.each<[string, string, string]>([
    ...['baseUrl', 'portalUrl', 'authUrl'].flatMap((key): [string, string, string][] =>
      [
        ['javascript:alert(1)', 'address'],
        ['conn.example.org', 'address'],
        ['//conn.example.org', 'address'],
        ['/api', 'address'],
        ['https:conn.example.org', 'address'],
        ['https://', 'address'],
        ['ftp://conn.example.org', 'address'],
        ['file:///etc/passwd', 'address'],
        ['https://user:pw@conn.example.org', 'address'],
        ['https://user@conn.example.org', 'address'],
        ['https://:pw@conn.example.org', 'address'],
        ['https://conn.example.org?a=b', 'address'],
        ['https://conn.example.org/?', 'address'],
        ['https://conn.example.org/#here', 'address'],
        ['https://conn.example.org/a b', 'address'],
        [' https://conn.example.org', 'address'],
        ['https://conn.example.org:99999', 'address'],
        ['https://conn.exa\tmple.org', 'control'],
        ['https://conn.example.org\r\n', 'control'],
        ['https://conn\u202e.example.org', 'address'],
        [`https://conn.example.org/${LONG}`, 'long'],
      ].map(([typed = '', why = '']) => [key, typed, why]),
    ),
    ['clientId', 'two words', 'spaces'],
    ['clientId', 'é', 'ASCII'],
    ['scope', ' openid', 'single spaces'],
    ['scope', 'openid  userinfo', 'single spaces'],
    ['scope', 'open"id', 'single spaces'],
    ...['..,b', 'a/b,c', 'a,b?c', 'a', 'a,b,c', 'a,'].map((typed): [string, string, string] => [
      ...(['apiGroups', typed, 'letters'] as const),
    ]),
    ['experimentTokenHeader', 'bad header', 'header'],
    ['experimentTokenHeader', 'bad:header', 'header'],
    ['experimentTokenHeader', 'bad\r\nX-Evil: 1', 'control'],
    ['experimentTokenHeader', 'Authorization', 'purpose'],
    ['experimentTokenHeader', 'content-TYPE', 'purpose'],
    ['tokenPlacement', 'everywhere', 'user or experiment'],
    ['tokenPlacement', 'toString', 'user or experiment'],
    ['userTokenCommand', 'slices user jwt', 'JSON array'],
    ['userTokenCommand', '[]', 'JSON array'],
    ['userTokenCommand', '[""]', 'JSON array'],
    ['userTokenCommand', '["a",1]', 'JSON array'],
    ['userTokenCommand', '["a",["b"]]', 'JSON array'],
    ['userTokenCommand', '{"0":"a"}', 'JSON array'],
    ['userTokenCommand', '"slices"', 'JSON array'],
    ['userTokenCommand', 'null', 'JSON array'],
    ['userTokenCommand', '["a"', 'JSON array'],
    ['userTokenCommand', '["a\\u0000"]', 'control'],
    ['experimentTokenCommand', JSON.stringify(Array(65).fill('a')), 'long'],
    ['experimentTokenCommand', `["${LONG}"]`, 'JSON array'],
    ['experimentTokenCommand', `["echo","${TOKEN}"]`, 'secret'],
    ['caFile', 'lab.pem', 'absolute'],
    ['caFile', '~/lab.pem', 'absolute'],
    ['caFile', '-', 'absolute'],
    ['insecure', 'yes', 'true or false'],
    ['insecure', 'TRUE', 'true or false'],
    ['insecure', '1', 'true or false'],
    ['project', 'a\u001b[2J', 'control'],
    ['project', 'a\u009b', 'control'],
    ['project', LONG, 'long'],
    ['experiment', TOKEN, 'secret'],
  ])('%s: case %# is refused, and not repeated', async (key, typed, why) => {
    const failure = await failureOf(() => parseAssignments([`${key}=${typed}`]));
    expect(failure.code).toBe('usage');
    expect(failure.message).toMatch(/^This is not a value for \w+\.$/);
    expect(failure.facts.why).toContain(why);
    if (typed.length > 8) expect(failure.message + JSON.stringify(failure.facts)).not.toContain(typed);
  });
});

describe('several assignments at once', () => {
  test('are all applied, and an empty value unsets its key', () => {
    expect(parseAssignments(['project=demo', 'clientId=', 'insecure=true', 'experiment='])).toEqual({
      set: { project: 'demo', insecure: true },
      unset: ['clientId', 'experiment'],
    });
  });

  test.each(KEY_NAMES)('%s can be unset', (key) => {
    expect(parseAssignments([`${key}=`])).toEqual({ set: {}, unset: [key] });
  });

  test.each([[['project=a', 'project=b']], [['project=', 'project=b']], [['project=a', 'project=']]])(
    '%j is refused, because it assigns a key twice',
    async (words) => {
      const failure = await failureOf(() => parseAssignments(words));
      expect(failure).toMatchObject({ code: 'usage', message: 'The key project is given twice.' });
    },
  );
});

describe('a word without a known key or a value', () => {
  test.each<[string, string | undefined]>([
    ['basUrl=https://conn.example.org', 'baseUrl'],
    ['BASEURL=https://conn.example.org', 'baseUrl'],
    ['clientID=x', 'clientId'],
    ['header=x', 'experimentTokenHeader'],
    ['expriment=x', 'experiment'],
    ['nonsense=x', undefined],
    ['=x', undefined],
    ['', undefined],
    ['__proto__=x', undefined],
    ['constructor=x', undefined],
    ['toString=x', undefined],
    [`${LONG}=x`, undefined],
  ])('case %#: an unknown key is refused with the most similar key', async (word, near) => {
    const failure = await failureOf(() => parseAssignments([word]));
    expect(failure.code).toBe('usage');
    expect(failure.message).toMatch(/^A profile has no key "/);
    expect(failure.message.length).toBeLessThan(100);
    for (const key of KEY_NAMES) expect(failure.facts.why).toContain(key);
    expect(/ Did you mean (\w+)\?$/.exec(failure.message)?.[1]).toBe(near);
  });

  test.each([
    ['ciClientId', 'Machines log in as slices-conn-ci, always.'],
    ['projectsApiGroup', 'It is a part of apiGroups now: apiGroups=PROJECTS,EXPERIMENTS.'],
    ['experimentsApiGroup', 'It is a part of apiGroups now: apiGroups=PROJECTS,EXPERIMENTS.'],
  ])('%s, which was there once: what took its place', async (key, why) => {
    const { facts } = await failureOf(() => parseAssignments([`${key}=x`]));
    expect(facts.why).toBe(why);
  });

  test('a key without a value is refused', async () => {
    const failure = await failureOf(() => parseAssignments(['project']));
    expect(failure).toMatchObject({ code: 'usage', message: 'No value is given for project.' });
    expect(failure.facts.why).toContain('project=');
  });
});
