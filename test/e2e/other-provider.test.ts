import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { IDS } from '../fixtures/tokens.ts';
import { reportOf, typed } from './command.ts';
import { newClient, pointingAt, type Recorded, type Reply, record } from './served.ts';

/** As authentik has it. */
const ISSUER_PATH = '/application/o/slices';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const DEVICE_CODE = 'canary.device~code';
const ACCESS_TOKEN = 'canary-opaque/access+token==';
/** The code that a person enters. */
const USER_CODE = '731 902 448';

/** What the provider answers to the polls of a login, one after the other; the last one again and again. */
type PollAnswer = 'authorization_pending' | 'slow_down' | 'tokens';

/**
 * An identity provider and a portal by another hand, on one origin. What they do otherwise than the reference server: the issuer has a path and ends in a slash, it demands PKCE, a device request gets neither `interval` nor a complete address,
 * pending polls and hasty ones get statuses other than 400, and a login gets an opaque token of type `bearer`, of which nothing more is
 * known. The paths are written out, as another implementer reads them in the API.
 *
 * @param polls see {@link PollAnswer}
 */
async function otherProvider(...polls: readonly PollAnswer[]) {
  /** What a strict server objects to in a request. */
  const objections: string[] = [];
  let [challenge, polled] = ['', 0];
  /** Refuses a request that is not as it must be (RFC 6749 §5.2). */
  const object = ({ method, path }: Recorded, what: string): Reply => {
    objections.push(`${method} ${path}: ${what}`);
    return { status: 400, json: { error: 'invalid_request' } };
  };
  /** A form with these members and no others, each once (RFC 6749 §3.2), from a client without a secret. */
  const isForm = ({ headers, body, path }: Recorded, names: string): boolean =>
    /^application\/x-www-form-urlencoded(?:; ?charset=utf-8)?$/i.test(headers['content-type'] ?? '') &&
    headers.authorization === undefined &&
    !path.includes('?') &&
    [...new URLSearchParams(body).keys()].toSorted().join(' ') === names &&
    new URLSearchParams(body).get('client_id') === 'slices-conn';

  function poll(asked: Recorded): Reply {
    polled += 1;
    const form = new URLSearchParams(asked.body);
    const hash = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const isDue = form.get('grant_type') === DEVICE_GRANT && form.get('device_code') === DEVICE_CODE;
    if (!isForm(asked, 'client_id code_verifier device_code grant_type') || !isDue || hash !== challenge) {
      return object(asked, 'a poll');
    }
    const answer = polls[polled - 1] ?? polls.at(-1);
    if (answer === 'authorization_pending') return { status: 428, json: { error: answer } };
    if (answer === 'slow_down')
      return { status: 403, json: { error: answer, error_description: 'Too often' } };
    return { json: { access_token: ACCESS_TOKEN, token_type: 'bearer' } };
  }

  const server = await record((asked, origin): Reply => {
    const question = `${asked.method} ${asked.path.split('?')[0]}`;
    switch (question) {
      case `GET ${ISSUER_PATH}/.well-known/openid-configuration`:
        return {
          json: {
            issuer: `${origin}${ISSUER_PATH}/`,
            authorization_endpoint: `${origin}/authorize`,
            device_authorization_endpoint: `${origin}/oauth/device/code`,
            token_endpoint: `${origin}/oauth/token`,
            token_endpoint_auth_methods_supported: ['client_secret_post', 'none'],
            response_types_supported: ['code'],
            code_challenge_methods_supported: ['S256'],
            // At another host: a login needs no key set.
            jwks_uri: 'https://keys.example.invalid/jwks.json',
          },
        };
      case 'POST /oauth/device/code': {
        const form = new URLSearchParams(asked.body);
        challenge = form.get('code_challenge') ?? '';
        const isStrict = isForm(asked, 'client_id code_challenge code_challenge_method scope');
        if (!isStrict || form.get('code_challenge_method') !== 'S256')
          return object(asked, 'a device request');
        const verification_uri = `${origin}${ISSUER_PATH}/activate`;
        return {
          json: { device_code: DEVICE_CODE, user_code: USER_CODE, verification_uri, expires_in: 300 },
        };
      }
      case 'POST /oauth/token':
        return poll(asked);
    }
    if (!question.includes('/apis/')) return { status: 404, text: '<h1>Not Found</h1>' };
    if (asked.headers.authorization !== `Bearer ${ACCESS_TOKEN}`) return object(asked, 'user token');
    const demo = { name: 'demo', role: 'lead' };
    switch (question) {
      case 'GET /portal/apis/projects/v1alpha1/projects/':
        return { json: { projects: [{ id: IDS.project, ...demo }] } };
      case 'GET /portal/apis/experiments/v1alpha1/experiments/':
        return { json: { experiments: [{ id: IDS.experiment, project_id: IDS.project, ...demo }] } };
    }
    return { status: 404, text: '<h1>Not Found</h1>' };
  });
  const [base_url, portal_url, auth_url] = ['/net', '/portal', ISSUER_PATH].map((path) => server.url + path);
  const addresses = { base_url: `${base_url}`, portal_url: `${portal_url}`, auth_url: `${auth_url}` };
  return {
    ...{ addresses, objections, requests: server.requests },
    polls: () => polled,
    /** What must never be printed. */
    secrets: [DEVICE_CODE, ACCESS_TOKEN],
  };
}

test('an identity provider by another hand, with an opaque token and no refresh: from login to logout, and no secret is printed', async () => {
  const provider = await otherProvider('authorization_pending', 'slow_down', 'tokens');
  const env = pointingAt(provider.addresses);
  const client = newClient(env);
  const [printed, pauses]: [string[], number[]] = [[], []];
  const run = async (...args: string[]) => {
    const ended = await client.run(args, { env, pauses });
    printed.push(ended.stdout, ended.stderr);
    return ended;
  };
  const login = await run('login', '--debug');
  expect(provider.objections).toEqual([]);
  expect(login.stderr).toContain(`\n  ${provider.addresses.auth_url}/activate\n`);
  expect(login.stderr).toContain(`\n  ${USER_CODE}\n`);
  for (const said of ['unknown: the token is opaque', 'no expiry known', 'the session ends with it'])
    expect(login.stdout).toContain(said);
  expect(login.exitCode).toBe(0);
  // Polls come 5 s apart where no interval is given, and 5 s later still after slow_down.
  expect(provider.polls()).toBe(3);
  expect(pauses).toEqual([5000, 5000, 10_000]);

  const status = await run('status', '--json');
  expect(JSON.parse(status.stdout)).toMatchObject({
    ...{ profile: 'local', addresses: provider.addresses, sub: null, name: null },
    roles: (['project', 'experiment'] as const).map((kind) => ({
      ...{ kind, id: IDS[kind], name: 'demo', role: 'lead', expires_at: null },
    })),
    tokens: [{ kind: 'user', source: 'login', sub: null, expires_at: null }],
  });
  const asked = provider.requests.length;
  expect((await run('logout', '--debug')).stdout).toBe(`Logged out of ${provider.addresses.base_url}.\n`);
  expect(client.logins).toEqual([]);
  expect(provider.requests.slice(asked).filter(({ method }) => method === 'POST')).toEqual([]);
  expect(await run('status')).toMatchObject({ exitCode: 4 });
  expect(provider.objections).toEqual([]);
  for (const secret of provider.secrets)
    for (const text of [secret, encodeURIComponent(secret)]) expect(printed.join('\n')).not.toContain(text);
});

test('an identity provider that calls itself by another address: the next step accepts it, for this login alone', async () => {
  const provider = await otherProvider('tokens');
  const { base_url, portal_url, auth_url } = provider.addresses;
  const here = auth_url.replace('127.0.0.1', 'localhost');
  const client = newClient({});
  const run = (...args: string[]) => client.run(args, { env: {} });
  const addresses = [`baseUrl=${base_url}`, `portalUrl=${portal_url}`, `authUrl=${here}`];
  expect(await run('profile', 'set', 'lab', ...addresses)).toMatchObject({ exitCode: 0 });
  const refused = reportOf(await run('--profile', 'lab', 'login', '--json'));
  expect(refused).toMatchObject({ exitCode: 9, code: 'reply_invalid' });
  expect(refused.why).toBe(`It calls itself "${auth_url}/"; the profile expects "${here}".`);
  expect(provider.polls()).toBe(0);
  expect(await run(...typed(refused.fix))).toMatchObject({ exitCode: 0 });
  expect(await run('--profile', 'lab', 'login')).toMatchObject({ exitCode: 0 });
  expect(provider.objections).toEqual([]);
  expect(await run('--profile', 'lab', 'status')).toMatchObject({ exitCode: 0 });
  // The login is kept for that issuer.
  expect(await run('profile', 'set', 'lab', 'issuer=')).toMatchObject({ exitCode: 0 });
  expect(await run('--profile', 'lab', 'status')).toMatchObject({ exitCode: 4 });
});
