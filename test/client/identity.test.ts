import { createHash } from 'node:crypto';
import { http } from 'msw';
import { beforeEach, describe, expect, test } from 'vitest';
import { createIdentityClient } from '../../src/client/identity.ts';
import { Failure } from '../../src/contract/failure.ts';
import { Secret } from '../../src/contract/secret.ts';
import { type Send, sendFrom } from '../../src/contract/sending.ts';
import { failureOf as failureIn } from '../fixtures/failures.ts';
import { answeredBy } from './answers.ts';
import { html, json, text } from './replies.ts';

const AUTH = 'https://auth.example.org/auth';
const METADATA = {
  issuer: AUTH,
  token_endpoint: `${AUTH}/token`,
  device_authorization_endpoint: `${AUTH}/device/auth`,
  revocation_endpoint: `${AUTH}/revoke`,
};
const DEVICE = {
  device_code: 'canary-device-code',
  user_code: 'BCDF-GHJK',
  verification_uri: `${AUTH}/device`,
  verification_uri_complete: `${AUTH}/device?user_code=BCDF-GHJK`,
  expires_in: 600,
  interval: 5,
};
const TOKENS = { access_token: 'access', token_type: 'Bearer', expires_in: 3600, refresh_token: 'refresh' };

/** An answer, or the error of a request without an answer. */
type Answer = () => Response | Error;
const oauthError =
  (error: string, status = 400) =>
  (): Response =>
    json({ error }, status);
const pending = oauthError('authorization_pending');
const slowDown = oauthError('slow_down');
const success = (): Response => json(TOKENS);

/** A clock that moves only while someone sleeps. */
let clock: number;
/** The lengths of all sleeps, in seconds. */
let slept: number[];

beforeEach(() => {
  [clock, slept] = [Date.UTC(2026, 10, 21), []];
});

const now = (): number => clock;
const sleep = async (milliseconds: number, signal: AbortSignal): Promise<void> => {
  signal.throwIfAborted();
  slept.push(milliseconds / 1000);
  clock += milliseconds;
};

/** An identity provider. Each token request gets the next answer; the last answer repeats. */
function provider(answers: {
  metadata?: object;
  device?: object | Answer;
  token?: readonly Answer[];
  revoke?: Answer;
  authUrl?: string;
  issuer?: string;
  audience?: string;
  sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}) {
  const {
    authUrl = AUTH,
    metadata = {},
    device = {},
    token = [success],
    revoke = () => new Response(),
  } = answers;
  let polls = 0;
  const orThrown = (answer: Answer) => () => {
    const reply = answer();
    if (reply instanceof Response) return reply;
    throw reply;
  };
  const { fetch, sent } = answeredBy(
    http.get(`${authUrl.replace(/\/$/, '')}/.well-known/openid-configuration`, () =>
      json({ ...METADATA, ...metadata }),
    ),
    http.post(
      METADATA.device_authorization_endpoint,
      orThrown(typeof device === 'function' ? (device as Answer) : () => json({ ...DEVICE, ...device })),
    ),
    http.post(METADATA.revocation_endpoint, orThrown(revoke)),
    http.post(METADATA.token_endpoint, () => {
      const next = token[Math.min(polls, token.length - 1)] ?? success;
      polls += 1;
      return orThrown(next)();
    }),
  );
  return {
    client: createIdentityClient({
      send: sendFrom({ fetch }),
      authUrl,
      ...(answers.issuer === undefined ? {} : { issuer: answers.issuer }),
      ...(answers.audience === undefined ? {} : { audience: answers.audience }),
      clientId: 'slices-conn',
      name: 'lab',
      now,
      sleep: answers.sleep ?? sleep,
    }),
    sent,
    /** The forms that an endpoint got. */
    forms: (endpoint: string): Record<string, string>[] =>
      sent
        .filter(({ url }) => url === AUTH + endpoint)
        .map(({ body }) => Object.fromEntries(new URLSearchParams(body))),
  };
}

const never = new AbortController().signal;

async function logIn({ client }: ReturnType<typeof provider>) {
  return (await client.startLogin('openid offline_access')).wait(never);
}

const failureOf = (promise: Promise<unknown>) => failureIn(() => promise);

const network = () =>
  new Failure('network', 'https://auth.example.org can’t be reached.', { cause: reset() });
const reset = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

/** Equal to a secret that holds this text. */
const secretOf = (text: string) => ({
  asymmetricMatch: (found: unknown) => found instanceof Secret && found.reveal() === text,
});
const [ACCESS, REFRESH] = [secretOf('access'), secretOf('refresh')];

describe('a login', () => {
  test('sends the requests of RFC 8628, and returns the provider’s tokens', async () => {
    const odd = provider({ token: [pending, success] });
    const login = await odd.client.startLogin('openid offline_access');
    expect(login).toMatchObject({
      userCode: 'BCDF-GHJK',
      verificationUri: `${AUTH}/device`,
      verificationUriComplete: `${AUTH}/device?user_code=BCDF-GHJK`,
      expiresAt: clock + 600_000,
    });
    expect(await login.wait(never)).toEqual({
      accessToken: ACCESS,
      refreshToken: REFRESH,
      expiresAt: clock + 3_600_000,
    });
    expect(odd.forms('/device/auth')).toEqual([{ client_id: 'slices-conn', scope: 'openid offline_access' }]);
    const poll = {
      client_id: 'slices-conn',
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: 'canary-device-code',
    };
    expect(odd.forms('/token')).toEqual([poll, poll]);
    expect(slept).toEqual([5, 5]);
    expect(odd.sent.every(({ redirect }) => redirect === 'manual')).toBe(true);
    expect(odd.sent.map(({ url }) => url).join()).not.toContain('canary');
  });

  test('sends a challenge, and its verifier with each poll, where the provider lists PKCE with S256', async () => {
    const odd = provider({
      metadata: { code_challenge_methods_supported: ['plain', 'S256'] },
      token: [pending, success],
    });
    await logIn(odd);
    const [asked] = odd.forms('/device/auth');
    const polls = odd.forms('/token');
    const verifier = polls[0]?.['code_verifier'] ?? '';
    expect(verifier).toMatch(/^[\w.~-]{43,128}$/);
    expect(polls.map(({ code_verifier }) => code_verifier)).toEqual([verifier, verifier]);
    expect(asked).toMatchObject({
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    });
  });

  test('sends none where only plain is listed', async () => {
    const odd = provider({ metadata: { code_challenge_methods_supported: ['plain'] } });
    await logIn(odd);
    expect(Object.keys(odd.forms('/device/auth')[0] ?? {})).toEqual(['scope', 'client_id']);
  });

  test('names the audience as the resource in every request for a token (RFC 8707)', async () => {
    const audience = 'https://conn.example.org';
    const odd = provider({ audience });
    await logIn(odd);
    await odd.client.refresh(new Secret('old'));
    const forms = [...odd.forms('/device/auth'), ...odd.forms('/token')];
    expect(forms.map(({ resource }) => resource)).toEqual([audience, audience, audience]);
  });
});

test.each([
  ['access_token', '\u001b]52;c;eA==\u0007'],
  ['access_token', 'acc\u202ess'],
  ['refresh_token', 'refresh\n\u009b2J'],
  ['refresh_token', 'r\u00e9fresh'],
])('an %s with %j is refused where it enters (THREATS.md 110)', async (name, token) => {
  const odd = provider({ token: [() => json({ ...TOKENS, [name]: token })] });
  const login = await odd.client.startLogin('openid');
  const found = await failureOf(login.wait(never));
  expect([found.code, found.facts.why]).toEqual(['reply_invalid', expect.stringContaining(`Its ${name}`)]);
  expect(JSON.stringify([found.message, found.facts])).not.toContain(token);
});

describe('row 9: the pace', () => {
  test.each([
    [0, 1],
    ['0', 1],
    ['5', 5],
    [undefined, 5],
    [7, 7],
  ])('interval %j means %i s', async (interval, seconds) => {
    await logIn(provider({ device: { interval }, token: [pending, success] }));
    expect(slept).toEqual([seconds, seconds]);
  });

  const LONG = 'x'.repeat(5000);
  test.each<object>([
    ...[-1, '-1', 'soon', [], true].map((interval) => ({ interval })),
    ...[1e12, 86_401, 0, -1, null, 'soon', undefined].map((expires_in) => ({ expires_in })),
    { verification_uri: `${AUTH}/${LONG}` },
    { verification_uri_complete: `${AUTH}/${LONG}` },
    { user_code: LONG },
  ])('row 55: %j is a clear error, and nobody is asked for tokens', async (device) => {
    const odd = provider({ device });
    expect(await failureOf(logIn(odd))).toMatchObject({ code: 'reply_invalid' });
    expect(odd.forms('/token')).toEqual([]);
  });

  test.each([1e306, Number.MAX_VALUE, 1e15, 315_576_001])(
    'row 55: a token with a lifetime of %d s counts as ten years, and its expiry is a date',
    async (expires_in) => {
      const { expiresAt = 0 } = await logIn(provider({ token: [() => json({ ...TOKENS, expires_in })] }));
      expect(expiresAt).toBe(clock + 315_576_000_000);
      expect(new Date(expiresAt).toISOString()).toMatch(/^20\d\d-/);
    },
  );

  test('row 55: 20,000 nested arrays beside the tokens are a clear error', async () => {
    const deep = `{"access_token":"a","token_type":"Bearer","x":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    const odd = provider({ token: [() => text(deep, 'application/json')] });
    expect((await failureOf(logIn(odd))).code).toBe('reply_invalid');
  });

  test('an interval longer than the code’s lifetime: the client does not poll again', async () => {
    const odd = provider({ device: { interval: 1e9 } });
    expect(await failureOf(logIn(odd))).toMatchObject({ code: 'code_expired' });
    expect(slept).toEqual([600]);
  });

  test('slow_down adds five seconds to all later pauses', async () => {
    const token = [pending, slowDown, pending, slowDown, pending, success];
    await logIn(provider({ token }));
    expect(slept).toEqual([5, 5, 10, 10, 15, 15]);
  });

  test('the seconds of slow_down stay after a failure', async () => {
    await logIn(provider({ device: { interval: 1 }, token: [slowDown, network, pending, success] }));
    expect(slept).toEqual([1, 6, 12, 6]);
  });
});

describe('row 8: the client waits out lost replies and busy servers until the code expires', () => {
  const page = (status: number) => () => html(status);
  test.each<[string, Answer]>([
    ['a connection that was reset, as our transport tells it', network],
    ['a timeout, as our transport tells it', () => new Failure('timeout', 'It did not answer in time.')],
    ['a connection that was reset', reset],
    ['502 with a page', page(502)],
    ['503 with a page', page(503)],
    ['504 with nothing', () => new Response(null, { status: 504 })],
    ['500 with JSON', () => json({ error: 'server_error' }, 500)],
    ['429 without Retry-After', () => new Response(null, { status: 429 })],
    ['429 with JSON', () => json({ error: 'too_many_requests' }, 429)],
    ['503 with JSON', () => json({ error: 'temporarily_unavailable' }, 503)],
  ])('%s', async (_name, answer) => {
    const odd = provider({ token: [answer, answer, answer, success] });
    expect(await logIn(odd)).toMatchObject({ accessToken: ACCESS });
    expect(slept).toEqual([5, 10, 20, 40]);
  });

  test('the pauses grow to one minute at most, and end when the code expires', async () => {
    const odd = provider({ token: [page(503)] });
    expect(await failureOf(logIn(odd))).toMatchObject({ code: 'code_expired' });
    expect(slept.slice(0, 6)).toEqual([5, 10, 20, 40, 60, 60]);
    expect(Math.max(...slept)).toBe(60);
    expect(slept.reduce((sum, pause) => sum + pause)).toBe(600);
  });

  test('an answer resets the pauses', async () => {
    await logIn(provider({ token: [network, network, pending, network, success] }));
    expect(slept).toEqual([5, 10, 20, 5, 10]);
  });

  test.each([
    ['30', 30],
    ['120', 120],
    ['1', 10],
    ['-5', 10],
    ['Wed, 21 Oct 2099 07:28:00 GMT', 10],
    ['99999999999', 10],
  ])('Retry-After: %s means %i s', async (value, seconds) => {
    const busy = () => new Response(null, { status: 503, headers: { 'retry-after': value } });
    await logIn(provider({ token: [busy, success] }));
    expect(slept).toEqual([5, seconds]);
  });

  test('the client does not poll after the code has expired', async () => {
    const odd = provider({ device: { expires_in: 12 }, token: [pending] });
    expect(await failureOf(logIn(odd))).toMatchObject({ code: 'code_expired' });
    expect(slept).toEqual([5, 5, 2]);
    expect(odd.forms('/token')).toHaveLength(2);
  });
});

describe('a provider that deviates from the RFCs', () => {
  const { verification_uri, ...DEVICE_1 } = DEVICE;
  const MANY_NULLS = {
    scopes_supported: null,
    grant_types_supported: null,
    code_challenge_methods_supported: null,
  };
  test.each<[string, Parameters<typeof provider>[0]]>([
    [
      'an address by its old name',
      { device: () => json({ ...DEVICE_1, verification_url: verification_uri }) },
    ],
    ['numbers as texts', { device: { expires_in: '600', interval: '5' } }],
    ['empty optional members', { device: { verification_uri_complete: '', interval: '' } }],
    ['null for what is absent', { device: { verification_uri_complete: null, interval: null } }],
    ['null in its metadata', { metadata: { ...MANY_NULLS, revocation_endpoint: null } }],
    ['empty members beside the token', { token: [() => json({ ...TOKENS, scope: '', id_token: '' })] }],
    [
      'members of other types beside it',
      { token: [() => json({ ...TOKENS, scope: ['openid'], id_token: 5 })] },
    ],
    ['tokens as text', { token: [() => text(JSON.stringify(TOKENS), 'text/plain')] }],
    ['a byte order mark', { token: [() => text(`\ufeff${JSON.stringify(TOKENS)}`, 'application/json')] }],
    ...[200, 400, 401, 403, 428].map((status): [string, Parameters<typeof provider>[0]] => [
      `authorization_pending with ${status} as HTML`,
      { token: [() => text('{"error":"authorization_pending"}', 'text/html', status), success] },
    ]),
  ])('is understood: %s', async (_, answers) => {
    expect(await logIn(provider(answers))).toMatchObject({ accessToken: ACCESS });
  });

  test.each<[object, string]>([
    [{ device: { user_code: 5 } }, 'Its user_code is 5; it must be string.'],
    [{ device: { device_code: ['canary'] } }, 'Its device_code is Array; it must be string.'],
    [{ device: { verification_uri: '' } }, 'It has no verification_uri.'],
    [{ device: { expires_in: 'soon' } }, 'Its expires_in is "soon"; it must be number.'],
    [{ device: { interval: -1 } }, 'Its interval is -1; it must be >=0.'],
    [
      { token: [() => json({ ...TOKENS, token_type: 'mac' })] },
      'Its token_type is "mac"; it must be "bearer".',
    ],
    [
      { token: [() => json({ ...TOKENS, access_token: { of: 'canary' } })] },
      'Its access_token is Object; it must be string.',
    ],
    [{ token: [() => json({ ...TOKENS, expires_in: true })] }, 'Its expires_in is true; it must be number.'],
    [{ token: [() => html()] }, 'It is an HTML page.'],
    [{ token: [() => html(404)] }, 'Its status is 404.'],
    [{ metadata: { scopes_supported: 'openid' } }, 'Its scopes_supported is "openid"; it must be Array.'],
    [{ metadata: { grant_types_supported: [1] } }, 'Its grant_types_supported.0 is 1; it must be string.'],
    [{ metadata: { token_endpoint: 5 } }, 'Its token_endpoint is 5; it must be string.'],
  ])('is told what is wrong: %j', async (answers, why) => {
    expect(await failureOf(logIn(provider(answers)))).toMatchObject({
      code: 'reply_invalid',
      facts: { why },
    });
  });

  test.each<[string, () => Response]>([
    ['404', () => html(404)],
    ['403', () => json({}, 403)],
    ['503', () => html(503)],
    ['a redirect', () => new Response(null, { status: 302, headers: { location: '/' } })],
    ['JSON that is none', () => json({ issuer: null })],
  ])('is asked for its OAuth metadata where OpenID Connect’s address answers with %s', async (_, answer) => {
    const asked = (oauth: () => Response) =>
      createIdentityClient({
        send: async ({ url }) =>
          url.endsWith('/.well-known/openid-configuration')
            ? answer()
            : url === 'https://auth.example.org/.well-known/oauth-authorization-server/auth'
              ? oauth()
              : json(DEVICE),
        authUrl: AUTH,
        ...{ clientId: 'c', name: 'lab', now, sleep },
      }).startLogin('openid');
    expect(await asked(() => json(METADATA))).toMatchObject({ userCode: DEVICE.user_code });
    const failure = await failureOf(asked(() => html(404)));
    const isAway = answer().status === 503;
    expect([failure.code, failure.facts.fix]).toEqual(
      isAway ? ['unavailable', undefined] : ['reply_invalid', 'slices-conn profile show lab'],
    );
    if (!isAway)
      expect(failure.facts.why).toMatch(
        /^https:\S+openid-configuration has no metadata\. .* Is the address right\?$/,
      );
  });
});

describe('the end of a login', () => {
  test.each([
    ['invalid_grant', 400, 'code_expired'],
    ['authorization_declined', 400, 'login_denied'],
    ['code_expired', 400, 'code_expired'],
    ['bad_verification_code', 400, 'code_expired'],
    ['access_denied', 200, 'login_denied'],
    ['expired_token', 403, 'code_expired'],
    ['invalid_request', 400, 'request_rejected'],
    ['invalid_client', 401, 'request_rejected'],
    ['unauthorized_client', 403, 'request_rejected'],
  ])('%s with %i becomes %s', async (error, status, code) => {
    const odd = provider({ token: [oauthError(error, status)] });
    expect(await failureOf(logIn(odd))).toMatchObject({ code });
    expect(odd.forms('/token')).toHaveLength(1);
  });

  test('401 with a challenge is a refusal like any other', async () => {
    const challenge = () =>
      Response.json(
        { error: 'invalid_client', error_description: 'who is that?' },
        { status: 401, headers: { 'www-authenticate': 'Basic realm="tokens"' } },
      );
    const failure = await failureOf(logIn(provider({ token: [challenge] })));
    expect(failure).toMatchObject({ code: 'request_rejected', facts: { httpStatus: 401 } });
  });

  test.each<[string, Answer]>([
    ['nothing', () => new Response()],
    ['JSON without a token', () => json({ token_type: 'Bearer' })],
    ['an empty token', () => json({ ...TOKENS, access_token: '' })],
    ['a negative lifetime', () => json({ ...TOKENS, expires_in: -1 })],
    ['a list', () => json([TOKENS])],
    ['JSON in pieces', () => text('{"access_token":"acc', 'application/json')],
    ['a redirect', () => new Response(null, { status: 307, headers: { location: 'https://evil.invalid' } })],
  ])('%s in place of tokens is an invalid reply', async (_name, answer) => {
    const odd = provider({ token: [answer] });
    expect(await failureOf(logIn(odd))).toMatchObject({ code: 'reply_invalid' });
    expect(odd.forms('/token')).toHaveLength(1);
  });

  test('an aborted wait rejects at once, with the reason', async () => {
    const untilAborted = (_: number, signal: AbortSignal): Promise<never> =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const odd = provider({ token: [pending], sleep: untilAborted });
    const login = await odd.client.startLogin('openid');
    const [giving, reason] = [new AbortController(), new Error('enough')];
    const waiting = login.wait(giving.signal);
    giving.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(odd.forms('/token')).toEqual([]);
  });

  test('a wait that is aborted during a request rejects before the reply', async () => {
    const giving = new AbortController();
    const client = createIdentityClient({
      send: async ({ method, url }) => {
        if (method === 'GET') return json(METADATA);
        if (url === METADATA.device_authorization_endpoint) return json(DEVICE);
        setImmediate(() => giving.abort(new Error('enough')));
        return new Promise(() => undefined);
      },
      authUrl: AUTH,
      ...{ clientId: 'c', name: 'lab', now, sleep },
    });
    const { wait } = await client.startLogin('openid');
    await expect(wait(giving.signal)).rejects.toThrow('enough');
  });
});

describe('row 4: the discovery document', () => {
  test.each<[string, object]>([
    ['another issuer', { issuer: 'https://evil.invalid' }],
    ['an issuer on another path', { issuer: 'https://auth.example.org/other' }],
    ['a foreign token endpoint', { token_endpoint: 'https://evil.invalid/token' }],
    ['a foreign device endpoint', { device_authorization_endpoint: 'https://evil.invalid/device' }],
    ['a foreign revocation endpoint', { revocation_endpoint: 'https://evil.invalid/revoke' }],
    ['its host with a user', { token_endpoint: 'https://auth.example.org@evil.invalid/token' }],
    ['a user on its host', { token_endpoint: 'https://user:secret@auth.example.org/token' }],
    ['its issuer with two slashes', { issuer: `${AUTH}//` }],
    ['another port', { token_endpoint: 'https://auth.example.org:444/token' }],
    ['no address', { token_endpoint: 'token' }],
  ])('%s is refused before anything is sent', async (_name, metadata) => {
    const odd = provider({ metadata });
    expect(await failureOf(odd.client.startLogin('openid'))).toMatchObject({ code: 'reply_invalid' });
    expect(odd.sent.filter(({ method }) => method === 'POST')).toEqual([]);
  });

  test('another issuer: the message has both, and the command that accepts it', async () => {
    const { client } = provider({ metadata: { issuer: 'https://id.example.org/realms/a b' } });
    const { facts } = await failureOf(client.startLogin('openid'));
    expect(facts.why).toBe(
      `It calls itself "https://id.example.org/realms/a b"; the profile expects "${AUTH}".`,
    );
    expect(facts.fix).toBeUndefined();
    const odd = provider({ metadata: { issuer: 'https://id.example.org/realms/a' } });
    expect((await failureOf(odd.client.startLogin('openid'))).facts).toEqual({
      why: `It calls itself "https://id.example.org/realms/a"; the profile expects "${AUTH}".`,
      fix: 'slices-conn profile set lab issuer=https://id.example.org/realms/a',
    });
  });

  test('the issuer that the profile names is accepted, and endpoints at its origin', async () => {
    const issuer = 'https://id.example.org';
    const metadata = { issuer: `${issuer}/`, revocation_endpoint: 'https://id.example.org/revoke' };
    const { client } = provider({ issuer, metadata });
    expect(await (await client.startLogin('openid')).wait(never)).toMatchObject({ accessToken: ACCESS });
    const own = provider({ issuer });
    expect((await failureOf(own.client.startLogin('openid'))).facts.fix).toBe(
      `slices-conn profile set lab issuer=${AUTH}`,
    );
  });

  test('a key set anywhere: a login does not use it', async () => {
    const odd = provider({ metadata: { jwks_uri: 'https://keys.invalid/jwks' } });
    expect(await logIn(odd)).toMatchObject({ accessToken: ACCESS });
    expect(odd.sent.map(({ url }) => url).join()).not.toContain('keys.invalid');
  });

  test('without a device or token endpoint a login says what else can be done; a refresh works', async () => {
    for (const name of ['token_endpoint', 'device_authorization_endpoint']) {
      const failure = await failureOf(
        provider({ metadata: { [name]: undefined } }).client.startLogin('openid'),
      );
      expect(failure).toMatchObject({
        code: 'not_supported',
        facts: { fix: 'slices-conn help environment' },
      });
      expect(failure.facts.why).toMatch(
        new RegExp(`no ${name} .*SLICES_CONN_USER_TOKEN, .* userTokenCommand`),
      );
    }
    const odd = provider({ metadata: { device_authorization_endpoint: undefined } });
    expect(await odd.client.refresh(new Secret('old'))).toMatchObject({ accessToken: ACCESS });
  });

  test.each(['unauthorized_client', 'unsupported_grant_type'])(
    '%s to a device request says what else can be done',
    async (error) => {
      const failure = await failureOf(provider({ device: oauthError(error) }).client.startLogin('openid'));
      expect(failure).toMatchObject({ code: 'request_rejected', facts: { httpStatus: 400 } });
      expect(failure.facts.why).toMatch(new RegExp(`^${error}\\. .*userTokenCommand`));
    },
  );

  test.each<[string, string, string]>([
    ['only the discovery document ends its issuer in a slash', AUTH, `${AUTH}/`],
    ['only the profile ends it in a slash', `${AUTH}/`, AUTH],
    ['both do', `${AUTH}/`, `${AUTH}/`],
  ])('row 62: a login where %s', async (_name, authUrl, issuer) => {
    const { client } = provider({ metadata: { issuer }, authUrl });
    expect(await (await client.startLogin('openid')).wait(never)).toMatchObject({ accessToken: ACCESS });
  });

  test('it is fetched again after a failure', async () => {
    let away = true;
    const send: Send = async ({ method, url }) => {
      if (method !== 'GET') return url.endsWith('/token') ? json(TOKENS) : json(DEVICE);
      return away ? html(503) : json(METADATA);
    };
    const client = createIdentityClient({ send, authUrl: AUTH, clientId: 'c', name: 'lab', now, sleep });
    expect(await failureOf(client.refresh(new Secret('refresh')))).toMatchObject({ code: 'unavailable' });
    away = false;
    expect(await client.refresh(new Secret('refresh'))).toMatchObject({ accessToken: ACCESS });
  });
});

describe('row 18: a refresh', () => {
  test('sends the token once, in the body, and takes it back where the provider keeps it', async () => {
    const odd = provider({ token: [() => json({ ...TOKENS, refresh_token: 'old' })] });
    expect(await odd.client.refresh(new Secret('old'))).toEqual({
      accessToken: ACCESS,
      refreshToken: secretOf('old'),
      expiresAt: clock + 3_600_000,
    });
    expect(odd.forms('/token')).toEqual([
      { client_id: 'slices-conn', grant_type: 'refresh_token', refresh_token: 'old' },
    ]);
  });

  test.each<[string, Answer, string, boolean]>([
    ['503', oauthError('temporarily_unavailable', 503), 'unavailable', true],
    ['500 with a page', () => html(500), 'unavailable', true],
    ['429', () => new Response(null, { status: 429 }), 'unavailable', true],
    ['invalid_grant', oauthError('invalid_grant'), 'not_logged_in', false],
    ['500 that says invalid_grant', oauthError('invalid_grant', 500), 'unavailable', true],
    ['another error', oauthError('invalid_scope'), 'request_rejected', false],
  ])('%s', async (_name, answer, code, retryable) => {
    const failure = await failureOf(provider({ token: [answer] }).client.refresh(new Secret('canary')));
    expect(failure.code).toBe(code);
    expect(failure.facts.retryable ?? false).toBe(retryable);
    expect(JSON.stringify({ ...failure.facts, message: failure.message })).not.toContain('canary');
  });
});

test('a provider that says why it is not available is believed, without what was sent', async () => {
  const body = { error: 'temporarily_unavailable', error_description: 'No keys for canary.' };
  const odd = provider({ token: [() => json(body, 503)] });
  const failure = await failureOf(odd.client.refresh(new Secret('canary')));
  expect(failure).toMatchObject({ code: 'unavailable' });
  expect(failure.facts.why).toMatch(/^No keys for /);
  expect(failure.facts.why).not.toContain('canary');
});

describe('a revocation', () => {
  test('names the token and its kind', async () => {
    const odd = provider({});
    const [accessToken, refreshToken] = [new Secret('new'), new Secret('old')];
    expect(await odd.client.revoke({ accessToken, refreshToken })).toBe(true);
    expect(await odd.client.revoke({ accessToken, refreshToken: undefined })).toBe(true);
    expect(odd.forms('/revoke')).toEqual([
      { client_id: 'slices-conn', token: 'old', token_type_hint: 'refresh_token' },
      { client_id: 'slices-conn', token: 'new', token_type_hint: 'access_token' },
    ]);
  });
});
