import { describe, expect, test } from 'vitest';
import { parseAssignments } from '../../../src/cli/profile/profile.ts';
import { KEY_NAMES } from '../../../src/session/profiles/profile-keys.ts';
import { failureOf } from '../../fixtures/failures.ts';

const LONG = 'x'.repeat(1_000_000);
const TOKEN = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2ln';

describe('the value of a key', () => {
  test.each<[string, string, unknown?]>([
    ['baseUrl', 'https://conn.example.org'],
    ['baseUrl', 'https://conn.example.org/', 'https://conn.example.org'],
    ['baseUrl', 'https://conn.example.org/api//', 'https://conn.example.org/api'],
    ['baseUrl', 'HTTPS://Conn.Example.org:443/API', 'https://conn.example.org/API'],
    ['baseUrl', 'https://conn.example.org:8443'],
    ['baseUrl', 'https://conn.example.org/a=b'],
    ['portalUrl', 'http://127.0.0.1:4280/portal'],
    ['authUrl', 'http://[::1]:4280/auth'],
    ['clientId', 'a=b'],
    ['scope', 'openid'],
    ['scope', 'openid offline_access'],
    ['apiGroups', 'projects.slices.example,e'],
    ['experimentTokenHeader', "!#$%&'*+-.^_`|~"],
    ['tokenPlacement', 'experiment'],
    ['userTokenCommand', '["token"]', ['token']],
    ['experimentTokenCommand', ' [ "a b" , "{experiment}" ] ', ['a b', '{experiment}']],
    ['caFile', '/etc/ssl/lab.pem'],
    ['insecure', 'true', true],
    ['insecure', 'false', false],
    ['tz', 'europe/brussels', 'Europe/Brussels'],
    ['project', 'demo'],
    ['experiment', 'with spaces é'],
  ])('%s=%s', (key, typed, value = typed) => {
    expect(parseAssignments([`${key}=${typed}`])).toEqual({ set: { [key]: value }, unset: [] });
  });

  const ADDRESSES = `javascript:alert(1) conn.example.org //conn.example.org /api https:conn.example.org https://
    ftp://conn.example.org file:///etc/passwd https://user:pw@conn.example.org https://user@conn.example.org
    https://:pw@conn.example.org https://conn.example.org?a=b https://conn.example.org/?
    https://conn.example.org/#here https://conn.example.org:99999 https://conn${'\u202e'}.example.org`;
  const ADDRESS_KEYS = 'baseUrl portalUrl authUrl';

  test.each<[keys: string, why: string, values: string[]]>([
    [ADDRESS_KEYS, 'address', ADDRESSES.split(/\s+/)],
    [ADDRESS_KEYS, 'address', [' https://conn.example.org', 'https://conn.example.org/a b']],
    [ADDRESS_KEYS, 'control', ['https://conn.exa\tmple.org', 'https://conn.example.org\r\n']],
    [ADDRESS_KEYS, 'long', [`https://conn.example.org/${LONG}`]],
    ['clientId', 'spaces', ['two words']],
    ['clientId', 'ASCII', ['é']],
    ['scope', 'single spaces', [' openid', 'openid  userinfo', 'open"id']],
    ['apiGroups', 'letters', ['..,b', 'a/b,c', 'a,b?c', 'a', 'a,b,c', 'a,']],
    ['experimentTokenHeader', 'header', ['bad header', 'bad:header']],
    ['experimentTokenHeader', 'control', ['bad\r\nX-Evil: 1']],
    ['experimentTokenHeader', 'purpose', ['Authorization', 'content-TYPE']],
    ['tokenPlacement', 'user or experiment', ['everywhere', 'toString']],
    ['userTokenCommand', 'JSON array', ['slices user jwt', '[]', '[""]', '["a",1]', '["a",["b"]]']],
    ['userTokenCommand', 'JSON array', ['{"0":"a"}', '"slices"', 'null', '["a"', `["${LONG}"]`]],
    ['userTokenCommand', 'control', ['["a\\u0000"]']],
    ['experimentTokenCommand', 'long', [JSON.stringify(Array(65).fill('a'))]],
    ['experimentTokenCommand', 'secret', [`["echo","${TOKEN}"]`]],
    ['caFile', 'absolute', ['lab.pem', '~/lab.pem', '-']],
    ['insecure', 'true or false', ['yes', 'TRUE', '1']],
    ['project', 'control', ['a\u001b[2J', 'a\u009b']],
    ['project', 'long', [LONG]],
    ['experiment', 'secret', [TOKEN]],
  ])('%s: a wrong one is refused (%s), and not repeated', async (keys, why, values) => {
    for (const key of keys.split(' ')) {
      for (const typed of values) {
        const failure = await failureOf(() => parseAssignments([`${key}=${typed}`]));
        expect(failure.code).toBe('usage');
        expect(failure.message).toBe(`This is not a value for ${key}.`);
        expect([typed.slice(0, 80), failure.facts.why]).toEqual([
          typed.slice(0, 80),
          expect.stringContaining(why),
        ]);
        if (typed.length > 8) expect(failure.message + JSON.stringify(failure.facts)).not.toContain(typed);
      }
    }
  });
});

describe('several assignments at once', () => {
  test('are all applied, and an empty value unsets its key', () => {
    expect(parseAssignments(['project=demo', 'clientId=', 'insecure=true', 'experiment='])).toEqual({
      set: { project: 'demo', insecure: true },
      unset: ['clientId', 'experiment'],
    });
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
    ['BASEURL=https://conn.example.org', 'baseUrl'],
    ['header=x', 'experimentTokenHeader'],
    ['expriment=x', 'experiment'],
    ...['nonsense=x', '=x', '', '__proto__=x', 'constructor=x', `${LONG}=x`].map(
      (word): [string, undefined] => [word, undefined],
    ),
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
