import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { MAX_REPLY } from '../../../src/client/exchange.ts';
import type { IdentityClient } from '../../../src/client/identity.ts';
import { NOT_ACCEPTED } from '../../../src/contract/ci-rules.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { Secret } from '../../../src/contract/secret.ts';
import type { Outgoing } from '../../../src/contract/sending.ts';
import {
  type Job,
  jobIn,
  jobToken,
  loginInJob,
  shortCredentials,
  unsetInJob,
} from '../../../src/session/login/job-login.ts';
import type { TokenSource } from '../../../src/session/login/token-source.ts';
import { Profiles } from '../../../src/session/profiles/profiles.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { makeKey, makeToken, NOW } from '../../fixtures/tokens.ts';

const profile = await new Profiles(temporaryFolder(), {}).resolve('local');
const MINUTE = 60_000;

const login: TokenSource = { origin: 'login', where: 'login', get: async () => new Secret('of-login') };

/** A job of GitHub, of GitLab; its secret tells it from others. */
const job = (asksAnew: boolean, secret = 'a'): Job => ({
  variable: asksAnew ? 'ACTIONS_ID_TOKEN_REQUEST_URL' : 'SLICES_CONN_ID_TOKEN',
  secret: async () => new Secret(secret),
  asksAnew,
  idToken: async (audience) => new Secret(`id-token-for-${audience}`),
});

/** A machine on which jobs run one after the other, and what its identity provider was asked. */
function machine(answer: 'offered' | 'not offered' | Failure = 'offered', ofLogin = login.get) {
  const folder = join(temporaryFolder(), 'jobs');
  const asked: string[] = [];
  let now = NOW;
  const identity: Pick<IdentityClient, 'exchange'> = {
    async exchange(idToken, { experiment = 'any' }) {
      if (answer === 'not offered') return undefined;
      asked.push(`${(await idToken('idp')).reveal()} ${experiment}`);
      if (answer instanceof Failure) throw answer;
      const accessToken = new Secret(`token-${asked.length}`);
      return { accessToken, refreshToken: undefined, expiresAt: now + 15 * MINUTE };
    },
  };
  const credentialsOf = (name: string) =>
    shortCredentials(folder, name, { profile, underLock: (_, work) => work(), now: () => now });
  return {
    asked,
    folder,
    pass: (milliseconds: number) => {
      now += milliseconds;
    },
    /** A command of a job. */
    async command(of: Job, experiment?: string): Promise<string> {
      const options = {
        profile: { ...profile, ...(experiment === undefined ? {} : { experiment }) },
        identity: async () => identity,
        credentialsOf,
        now: () => now,
      };
      return (await jobToken(of, { ...login, get: ofLogin }, options).get()).reveal();
    },
  };
}

describe('the token of a job', () => {
  test('is kept for its other commands, and not for another job on the same machine (row 160)', async () => {
    const { asked, command } = machine();
    expect(await command(job(true))).toBe('token-1');
    expect(await command(job(true))).toBe('token-1');
    expect(await command(job(true, 'b'))).toBe('token-2');
    expect(await command(job(true), 'second')).toBe('token-3');
    expect(asked).toEqual(['id-token-for-idp any', 'id-token-for-idp any', 'id-token-for-idp second']);
  });

  test('of GitHub is had anew before it ends', async () => {
    const { command, pass } = machine();
    expect(await command(job(true))).toBe('token-1');
    pass(13 * MINUTE);
    expect(await command(job(true))).toBe('token-1');
    pass(1.5 * MINUTE);
    expect(await command(job(true))).toBe('token-2');
  });

  test('of GitLab ends with its only ID token, whatever experiment is asked for', async () => {
    const { asked, command, pass } = machine();
    expect(await command(job(false))).toBe('token-1');
    pass(14.5 * MINUTE);
    expect(await command(job(false), 'second')).toBe('token-1');
    pass(MINUTE);
    expect((await failureOf(() => command(job(false)))).code).toBe('token_expired');
    expect(asked).toHaveLength(1);
  });

  test('is that of the login, where the provider takes no ID tokens', async () => {
    expect(await machine('not offered').command(job(true))).toBe('of-login');
    const none = async () => {
      throw new Failure('not_logged_in', 'You are not logged in.', { fix: 'slices-conn login' });
    };
    const failure = await failureOf(() => machine('not offered', none).command(job(true)));
    expect(failure.facts.why).toContain('takes no ID tokens');
    expect(failure.facts.fix).not.toBe('slices-conn login');
  });

  test.each([['another'], ['another', 'third'], []])(
    'of an ID token for %j is not asked for (row 163)',
    async (...aud) => {
      const { asked, command } = machine();
      const idToken = async () => new Secret(makeToken(makeKey(), { aud }));
      const failure = await failureOf(() => command({ ...job(false), idToken }));
      expect(failure).toMatchObject({ code: 'token_invalid' });
      expect(failure.facts.why).toBe(`Its aud is ${JSON.stringify(aud)}, and must be idp. Nothing was sent.`);
      expect(asked).toEqual([]);
    },
  );

  const ON_GITHUB = { repository: 'octo/measure', ref: 'refs/heads/dev', event_name: 'push' };
  const ON_GITLAB = { project_path: 'lab/measure', ref: 'dev', ref_type: 'branch', pipeline_source: 'push' };
  test.each<[string, object, string | undefined]>([
    ['a branch of GitHub', ON_GITHUB, '--github octo/measure --ref refs/heads/dev'],
    ['a branch of GitLab', ON_GITLAB, '--gitlab lab/measure --ref dev'],
    [
      'a tag of GitLab',
      { ...ON_GITLAB, ref: 'v1', ref_type: 'tag' },
      '--gitlab lab/measure --ref v1 --ref-type tag',
    ],
    ['a pull request', { ...ON_GITHUB, event_name: 'pull_request_target' }, undefined],
    ['a comment', { ...ON_GITHUB, event_name: 'issue_comment' }, undefined],
    ['what has the ref of one', { ...ON_GITHUB, ref: 'refs/pull/7/merge' }, undefined],
    ['a merge request', { ...ON_GITLAB, pipeline_source: 'merge_request_event' }, undefined],
    ['nobody knows what', { repository: 'octo/measure' }, undefined],
    ['another CI', { ref: 'dev' }, undefined],
  ])('a refusal says the reason, and the rule that would let in a job for %s', async (_, claims, words) => {
    const refused = new Failure('not_logged_in', 'No.', { why: 'invalid_grant: The rule has another ref.' });
    const idToken = async () => new Secret(makeToken(makeKey(), { aud: 'idp', ...claims }));
    for (const asksAnew of [true, false]) {
      const { facts } = await failureOf(() => machine(refused).command({ ...job(asksAnew), idToken }));
      const how = words === undefined ? 'says which jobs may act.' : 'lets it in by this command.';
      expect(facts.why).toBe(`The rule has another ref. A lead of the experiment ${how}`);
      expect(facts.fix).toBe(words && `slices-conn experiment ci add ${words}`);
    }
  });

  test.each([
    [NOT_ACCEPTED, false, true],
    [NOT_ACCEPTED, true, false],
    ['The rule has ref main, this job has dev.', false, false],
  ])(
    '%s: where a CI asks anew %s, it is said that an ID token is taken once: %s',
    async (why, asksAnew, due) => {
      const refused = new Failure('not_logged_in', 'No.', { why: `invalid_grant: ${why}` });
      const { facts } = await failureOf(() => machine(refused).command(job(asksAnew)));
      expect(String(facts.why).includes('it is taken once')).toBe(due);
    },
  );

  test.each([
    ['not_logged_in', 'not_logged_in'],
    ['unavailable', 'unavailable'],
  ] as const)('a refusal that is %s is %s, and is not kept', async (code, due) => {
    const { asked, command } = machine(new Failure(code, 'No.', { why: 'invalid_grant: because' }));
    const failure = await failureOf(() => command(job(true)));
    expect(failure.code).toBe(due);
    await failureOf(() => command(job(true)));
    expect(asked).toHaveLength(2);
  });

  test('of jobs of before is removed after two days', async () => {
    const { command, folder, pass } = machine();
    await command(job(true, 'old'));
    await command(job(true, 'older'));
    const [first = '', ...others] = readdirSync(join(folder, 'credentials'));
    const before = new Date(NOW - 49 * 60 * MINUTE);
    utimesSync(join(folder, 'credentials', first), before, before);
    for (const name of others) utimesSync(join(folder, 'credentials', name), new Date(NOW), new Date(NOW));
    pass(MINUTE);
    await command(job(true));
    const left = readdirSync(join(folder, 'credentials'));
    expect(left).not.toContain(first);
    expect(left).toEqual(expect.arrayContaining(others));
  });
});

describe('the job that a program runs in', () => {
  const RUNNER = {
    ACTIONS_ID_TOKEN_REQUEST_URL: 'https://run.example.org/x?api-version=2.0',
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'secret',
  };
  /** What a runner that answers like this is asked, and gives. */
  async function ask(status: number, body: string) {
    const sent: Outgoing[] = [];
    const found = jobIn(RUNNER, (address) => async (request) => {
      expect(address).toBe(RUNNER.ACTIONS_ID_TOKEN_REQUEST_URL);
      sent.push(request);
      return { status, headers: new Headers(), body: new Response(body).body };
    });
    const token = await found?.idToken('https://conn.example.org/auth');
    return { token: token?.reveal(), sent };
  }

  test('asks its runner as the toolkit of GitHub does', async () => {
    const { token, sent } = await ask(200, '{"count":1,"value":"a.b.c"}');
    expect(token).toBe('a.b.c');
    expect(sent).toMatchObject([
      {
        url: 'https://run.example.org/x?api-version=2.0&audience=https%3A%2F%2Fconn.example.org%2Fauth',
        headers: { authorization: 'Bearer secret' },
      },
    ]);
  });

  test.each([
    [200, '', 'reply_invalid'],
    [200, '{"value":7}', 'reply_invalid'],
    [200, '{"value":"a\u0007b"}', 'reply_invalid'],
    [200, `{"value":"a.b.c","more":"${'x'.repeat(MAX_REPLY)}"}`, 'reply_invalid'],
    [302, '{"value":"a.b.c"}', 'reply_invalid'],
    [403, '{"value":"a.b.c"}', 'token_missing'],
    [429, '', 'unavailable'],
    [503, '{"value":"a.b.c"}', 'unavailable'],
  ])('row 161: a runner that answers %i %s gives none', async (status, body, code) => {
    const failure = await failureOf(() => ask(status, body));
    expect(failure).toMatchObject({ code });
    expect(JSON.stringify(failure.facts)).not.toContain('secret');
  });

  test.each<[string, Record<string, string>, string | undefined]>([
    ['nothing', {}, undefined],
    ['an address without its secret', { ...RUNNER, ACTIONS_ID_TOKEN_REQUEST_TOKEN: '' }, undefined],
    ['what is no address', { ...RUNNER, ACTIONS_ID_TOKEN_REQUEST_URL: 'runner' }, undefined],
    ['GitHub’s', RUNNER, 'ACTIONS_ID_TOKEN_REQUEST_URL'],
    ['GitLab’s', { SLICES_CONN_ID_TOKEN: 'a.b.c' }, 'SLICES_CONN_ID_TOKEN'],
    ['one that was named', { ...RUNNER, SLICES_CONN_ID_TOKEN: 'a.b.c' }, 'SLICES_CONN_ID_TOKEN'],
  ])('of an environment with %s', (_, env, variable) => {
    const never = () => async () => {
      throw new Error('nobody is asked yet');
    };
    expect(jobIn(env, never)?.variable).toBe(variable);
  });

  test.each([
    ['GITHUB_ACTIONS', 'id-token: write'],
    ['GITLAB_CI', 'aud: http://127.0.0.1:4280/auth'],
  ])('without ID tokens, where %s is set, needs %s', async (variable, needed) => {
    const none = async () => {
      throw new Failure('not_logged_in', 'You are not logged in.', { fix: 'slices-conn login' });
    };
    const { facts } = await failureOf(() =>
      loginInJob({ [variable]: 'true' }, { ...login, get: none }, profile).get(),
    );
    expect(facts.why).toContain(needed);
    expect(facts.fix).toBe('slices-conn help environment');
    expect(loginInJob({}, login, profile)).toBe(login);
  });

  const ON_GITHUB = { GITHUB_ACTIONS: 'true' };
  const ON_GITLAB = { GITLAB_CI: 'true' };
  const SERVICES = ['SLICES_CONN_BASE_URL', 'SLICES_CONN_PORTAL_URL', 'SLICES_CONN_AUTH_URL'];
  const named = Object.fromEntries(SERVICES.map((name) => [name, 'http://127.0.0.1:4280']));
  test.each<[string, Record<string, string>, string, string | undefined]>([
    ['no service', ON_GITHUB, 'http://127.0.0.1:4280', SERVICES.join(', ')],
    [
      'no portal',
      { ...ON_GITLAB, ...named, SLICES_CONN_PORTAL_URL: '' },
      'http://127.0.0.1:4280',
      SERVICES[1],
    ],
    ['all of them', { ...ON_GITHUB, ...named }, 'http://127.0.0.1:4280', undefined],
    ['none, of another machine', ON_GITHUB, 'https://conn.example.org', undefined],
    ['none, in no job', {}, 'http://127.0.0.1:4280', undefined],
  ])('that names %s', (_, env, url, unset) => {
    const why = unsetInJob(env, new URL(url))?.why;
    expect(why).toBe(unset && `This job has no ${unset}: slices-conn experiment ci add prints their values.`);
  });
});
