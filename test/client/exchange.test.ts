import { http } from 'msw';
import * as v from 'valibot';
import { describe, expect, test, vi } from 'vitest';
import { createConnectivityClient } from '../../src/client/connectivity.ts';
import { exchange, MAX_REPLY, readAs, readTokenInput, type TokenInput } from '../../src/client/exchange.ts';
import { createPortalClient } from '../../src/client/portal.ts';
import type { FailureCode } from '../../src/contract/failure.ts';
import { Secret } from '../../src/contract/secret.ts';
import type { Outgoing } from '../../src/contract/sending.ts';
import { failureOf } from '../fixtures/failures.ts';
import { remove } from '../fixtures/single-changes.ts';
import { type Answer, answeredBy, inTurn } from './answers.ts';
import { cut, endless, html, json, text } from './replies.ts';

const URL_ = 'https://conn.example.org/apis/v1alpha1/connectivity';

const get = (): Outgoing => ({ method: 'GET', url: URL_, headers: {} });
const post = (): Outgoing => ({ ...get(), method: 'POST', body: '{"tokens":["eyJ"]}' });

/** The failure that follows from this answer. */
async function failure(answer: Response | Answer, request = get()) {
  return failureOf(() => exchange(answeredBy(...inTurn(answer)).send, request));
}

const detail = (...loc: string[]) => ({ detail: [{ loc, msg: 'No.', type: 'NotValid' }] });
const coded = (code: string) => ({ code, ...detail() });

describe('what a status means (cli/README.md, "Exit codes")', () => {
  test.each<[string, number, unknown, FailureCode]>([
    ['without a body', 400, undefined, 'request_rejected'],
    ['with a code of the reference server', 400, coded('body_unreadable'), 'body_unreadable'],
    ['with a code that nobody knows', 400, coded('teapot'), 'request_rejected'],
    ['about the bandwidth', 400, detail('Bandwidth'), 'bandwidth_unavailable'],

    ['without a body', 401, undefined, 'token_invalid'],
    ['for a token that has expired', 401, coded('token_expired'), 'token_expired'],
    ['with another code', 401, coded('not_found'), 'token_invalid'],

    ['without a code', 403, { detail: 'Forbidden.' }, 'forbidden'],
    ['for the scope', 403, coded('scope_missing'), 'scope_missing'],
    ['with a code that nobody knows', 403, coded('teapot'), 'forbidden'],
    ['with a code of tokens that nobody knows', 403, coded('token_weird'), 'token_invalid'],
    ['about a date', 403, detail('Date'), 'date_invalid'],

    ['without a body', 404, undefined, 'not_found'],

    ['without a body', 405, undefined, 'request_rejected'],
    ['without a detail', 409, {}, 'request_rejected'],
    ['with a detail about nothing known', 409, detail('body', 'end_date'), 'request_rejected'],
    ['with a detail about a date', 409, detail('Date'), 'date_invalid'],
    ['for a name', 409, coded('name_taken'), 'name_taken'],

    ['about a site', 422, detail('Site'), 'site_invalid'],
    ['about the bandwidth', 422, detail('Bandwidth'), 'bandwidth_unavailable'],
    [
      'about the bandwidth, more exactly',
      422,
      { code: 'vlans_unavailable', ...detail('Bandwidth') },
      'vlans_unavailable',
    ],
    [
      'about several, of which the first counts',
      422,
      { detail: [...detail('Date').detail, ...detail('Site').detail] },
      'date_invalid',
    ],
    [
      'as FastAPI words it',
      422,
      { detail: [{ loc: ['body', 'site1'], msg: 'field required', type: 'missing' }] },
      'request_rejected',
    ],
    ['with a detail that is a text', 422, { detail: 'No.' }, 'request_rejected'],

    ['without a body', 429, undefined, 'too_many_requests'],
    ['without a body', 500, undefined, 'unavailable'],
    ['that says so itself', 500, coded('internal'), 'internal'],
    ['without a body', 503, undefined, 'unavailable'],
    ['that nobody knows', 503, coded('outcome_unknown'), 'outcome_unknown'],
  ])('%s: %i', async (_, status, body, code) => {
    const found = await failure(body === undefined ? new Response(null, { status }) : json(body, status));
    expect(found.code).toBe(code);
    if (body === undefined)
      expect(await failure(html(status))).toMatchObject({ code, message: found.message });
    expect(found.facts.httpStatus).toBe(status);
    expect(found.facts.retryable).toBe(code !== 'outcome_unknown' && (status === 429 || status >= 500));
    expect(found.message).toMatch(/\S/);
  });

  test.each<[number, FailureCode]>([
    [404, 'not_found'],
    [503, 'unavailable'],
  ])('the status decides first: a reply without end with %i is %s', async (status, code) => {
    expect((await failure(endless({ bytes: 0 }, status))).code).toBe(code);
  });

  test.each<[unknown, string | undefined]>([
    ['http://127.0.0.1:4280', 'slices-conn login http://127.0.0.1:4280'],
    ['https://x.org/$(id)', "slices-conn login 'https://x.org/$(id)'"],
    ['javascript:alert(1)', undefined],
    [undefined, undefined],
  ])(
    'of a wrong Host: the next step is a login at the address that the server answers for, %j',
    async (address, fix) => {
      const [problem] = detail().detail;
      const body = {
        code: 'host_unknown',
        detail: [{ ...problem, code: 'host_unknown', facts: { address } }],
      };
      expect(await failure(json(body, 421))).toMatchObject({ code: 'host_unknown', facts: { fix } });
    },
  );

  test.each([
    [403, 'unavailable', 'forbidden'],
    [403, 'site_unknown', 'forbidden'],
    [400, 'token_expired', 'request_rejected'],
    [409, 'not_found', 'request_rejected'],
  ])('a code of another status is ignored: %i with %s is %s', async (status, named, code) => {
    expect((await failure(json(coded(named), status))).code).toBe(code);
  });
});

describe('the message of a refusal', () => {
  test.each<[string, unknown, string]>([
    [
      'the status, where the service says no more than its phrase',
      { detail: 'Bad Request' },
      'The service answered with status 400.',
    ],
    [
      'the status, where the detail is of no use',
      { detail: [5, null, 'x'] },
      'The service answered with status 400.',
    ],
    ['the status, where the body is cut', '{"detail":', 'The service answered with status 400.'],
    [
      'the status, where the body names a member twice',
      '{"detail":"a","detail":"b"}',
      'The service answered with status 400.',
    ],
  ])('%s', async (_, body, message) => {
    const reply = typeof body === 'string' ? text(body, 'application/json', 400) : json(body, 400);
    expect((await failure(reply)).message).toBe(message);
  });

  test.each([
    [401, 'Unauthorized', 'The service did not accept the token.'],
    [403, 'Forbidden', 'The service does not allow this.'],
    [404, 'Not Found', 'The service does not have this.'],
    [503, 'Service Unavailable', 'The service is not available at the moment.'],
  ])('%i with %j alone is said in our words', async (status, phrase, message) => {
    expect((await failure(json({ detail: phrase }, status))).message).toBe(message);
  });

  test('holds all messages of the body', async () => {
    const both = {
      detail: [...detail('Site').detail, { loc: ['Date'], msg: 'Too late.', type: 'NotValid' }],
    };
    const { message, facts } = await failure(json(both, 422));
    expect(`${message} ${facts.why}`).toBe('No. Too late.');
    expect(facts.details).toEqual(both.detail);
  });

  test('a missing scope leads to a new login (THREATS.md 50)', async () => {
    expect((await failure(json(coded('scope_missing'), 403))).facts.fix).toBe('slices-conn login');
    expect((await failure(json(coded('role_not_allowed'), 403))).facts.fix).toBeUndefined();
  });

  test('row 67: an unknown loc is kept unchanged, and printed for people', async () => {
    const { code, message, facts } = await failure(json(detail('body', 'bandwidth'), 422));
    expect({ code, message }).toEqual({ code: 'request_rejected', message: 'body.bandwidth: No.' });
    expect(facts.details).toEqual([{ loc: ['body', 'bandwidth'], msg: 'No.', type: 'NotValid' }]);
  });
});

describe('row 1, 2: a redirect is an error, and nothing is sent again', () => {
  test.each([301, 302, 303, 307, 308])('%i', async (status) => {
    for (const request of [get(), post()]) {
      const redirect = () =>
        new Response(null, { status, headers: { location: 'https://evil.example.org/' } });
      const { send, sent } = answeredBy(http.all(URL_, redirect));
      const found = await failureOf(() => exchange(send, request));
      expect(found).toMatchObject({ code: 'reply_invalid', facts: { httpStatus: status } });
      expect(sent).toHaveLength(1);
      expect(sent[0]?.redirect).toBe('manual');
    }
  });
});

describe('row 10, 12: no reply, or half of one', () => {
  const refused: Answer = () => {
    throw new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') });
  };

  test.each<[string, Answer]>([
    ['no connection', refused],
    ['a body that breaks off', () => cut('{"id":')],
  ])(
    '%s: GET may be tried again; a POST may have taken effect, and the failure says so',
    async (_, answer) => {
      const read = await failure(answer);
      expect(read).toMatchObject({ code: 'network', facts: { retryable: true } });
      expect(read.message).toContain('https://conn.example.org');
      const sent = await failure(answer, post());
      expect(sent).toMatchObject({ code: 'network', facts: { retryable: false, maybeDone: true } });
      expect(sent.facts.why).toContain('may have taken effect');
    },
  );

  test.each<[string, Outgoing, boolean | undefined]>([
    ['a GET', get(), undefined],
    ['a POST, which may have taken effect', post(), true],
  ])('a mistake in what sends %s is a bug, not a lost connection', async (_, request, maybeDone) => {
    const send = async () => {
      throw new TypeError('x is undefined');
    };
    const { code, facts } = await failureOf(() => exchange(send, request));
    expect(code).toBe('bug');
    expect(facts.maybeDone).toBe(maybeDone);
    expect(String(facts.why).includes('may have taken effect')).toBe(maybeDone === true);
  });

  test('a body over 1 MiB is cut off, not read to its end', async () => {
    const read = { bytes: 0 };
    const found = await failure(endless(read));
    expect(found.code).toBe('reply_invalid');
    expect(read.bytes).toBeLessThan(2 * MAX_REPLY);
  });

  test('no failure holds the sent body', async () => {
    for (const answer of [refused, () => html(503), () => new Response(null, { status: 307 })]) {
      const { message, facts } = await failure(answer, post());
      expect(`${message} ${JSON.stringify(facts)}`).not.toContain('eyJ');
    }
  });
});

describe('a wrong body of a successful reply is exit 9', () => {
  const schema = v.object({ id: v.string() });
  const read = async (response: Response) =>
    readAs(schema, await exchange(answeredBy(...inTurn(response)).send, get()), 'thing');

  test.each<[string, Response]>([
    ['JSON', json({ id: 'a' })],
    ['JSON with members that nobody knows', json({ id: 'a', more: [1] })],
    ['JSON with another JSON type', text('{"id":"a"}', 'application/problem+json')],
    ['JSON with a charset', text('{"id":"a"}', 'application/json; charset=utf-8')],
    ['JSON without a type', new Response(new TextEncoder().encode('{"id":"a"}'))],
    ['any 2xx', json({ id: 'a' }, 203)],
  ])('%s is read', async (_, response) => {
    expect(await read(response)).toEqual({ id: 'a' });
  });

  test.each<[string, Response]>([
    ['an HTML page', html()],
    ['JSON that says it is HTML', text('{"id":"a"}', 'text/html')],
    ['nothing', new Response('', { status: 200 })],
    ['nothing, 204', new Response(null, { status: 204 })],
    ['half an object', text('{"id":"a"', 'application/json')],
    ['a member named twice', text('{"id":"a","id":"b"}', 'application/json')],
    ['another object', json({ name: 'a' })],
    ['null', json(null)],
    ['a list', json([])],
  ])('%s is refused', async (_, response) => {
    const found = await failureOf(() => read(response));
    expect(found.code).toBe('reply_invalid');
    expect(found.message).toContain('thing');
    expect(found.facts.httpStatus).toBe(response.status);
  });

  test.each<[string, string, string, string?]>([
    ['<html>', 'application/json', "can't be read as JSON"],
    ['{"id":', 'application/problem+json', "can't be read as JSON"],
    ['<html>', 'text/html', 'is text/html', 'It is an HTML page: is the address right?'],
    ['<html>', 'text/plain', 'is text/plain'],
    ['', 'application/json', 'is empty'],
  ])('%j as %s: the reply %s', async (body, type, says, why) => {
    const found = await failureOf(() => read(text(body, type)));
    expect(found.message).toBe(`The thing should have been JSON, but the reply ${says}.`);
    expect(found.facts.why).toBe(why);
  });
});

describe('row 53: a service that does not answer', () => {
  const never = () => new Promise<Response>(() => undefined);
  const halfReply = async () =>
    new Response(new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from('{')) }));

  test.each<[string, () => Promise<Response>]>([
    ['nothing', never],
    ['half a reply', halfReply],
  ])('%s: the call fails within its limit, though what sends it ignores the signal', async (_, send) => {
    const read = await failureOf(() => exchange(send, get(), [], 20));
    expect(read).toMatchObject({
      code: 'timeout',
      message: 'https://conn.example.org did not answer within 0.02 s.',
      facts: { retryable: true },
    });
    expect(read.facts.maybeDone ?? false).toBe(false);
    const written = await failureOf(() => exchange(send, post(), [], 20));
    expect(written).toMatchObject({ code: 'timeout', facts: { maybeDone: true, retryable: false } });
  });

  test('the exported clients wait for a minute, unless told otherwise', async () => {
    vi.useFakeTimers();
    try {
      const userToken = async () => new Secret('a');
      const portal = createPortalClient({
        fetch: never,
        portalUrl: 'https://portal.example.org',
        projectsApiGroup: 'projects',
        experimentsApiGroup: 'experiments',
        userToken,
      });
      const connectivity = createConnectivityClient({
        fetch: never,
        baseUrl: 'https://conn.example.org',
        userToken,
        experimentToken: userToken,
        trust: { issuers: new Map() },
      });
      const asked = [portal.projects(), remove(connectivity, 'con_a'), connectivity.links()];
      const failures = asked.map((waiting) => failureOf(() => waiting));
      await vi.advanceTimersByTimeAsync(59_999);
      expect(vi.getTimerCount()).toBe(asked.length);
      await vi.advanceTimersByTimeAsync(1);
      expect((await Promise.all(failures)).map(({ code }) => code)).toEqual(asked.map(() => 'timeout'));
    } finally {
      vi.useRealTimers();
    }
  });
});

test.each<[string, TokenInput]>([
  ['a text', 'token'],
  ['a text from a file, which ends in a line end', 'token\n'],
  ['a function', () => 'token'],
  ['a function that takes its time', async () => 'token'],
  ['a secret', new Secret('token')],
  ['a function of a secret', async () => new Secret('token')],
])('a token is given to the clients as %s', async (_, given) => {
  expect((await readTokenInput(given)).reveal()).toBe('token');
});

test.each([undefined, null, 5, {}, () => undefined])('a token is not given as %s', async (wrong) => {
  // Plain JavaScript can pass such values.
  expect(await failureOf(() => readTokenInput(wrong as never))).toMatchObject({ code: 'usage' });
});
