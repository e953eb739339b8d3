import { createServer } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import {
  type KeySetCopy,
  type KeySetStore,
  type RemoteKeySetOptions,
  remoteKeySet,
} from '../../src/tokens/remote-key-set.ts';
import type { TokenFault } from '../../src/tokens/token-error.ts';
import { createVerifier } from '../../src/tokens/verifier.ts';
import { verifyUserToken } from '../../src/tokens/verify.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';
import {
  claimsOf,
  errorOf,
  faultOf,
  ISSUER,
  keySetOf,
  makeKey,
  makeToken,
  NOW,
  SECONDS,
  type TestKey,
} from '../fixtures/tokens.ts';

const URL_OF_SET = `${ISSUER}/.well-known/jwks.json`;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const COOLDOWN = 30 * SECOND;
const FRESH = 10 * MINUTE;

const old = makeKey('ES256', { kid: 'old' });
const fresh = makeKey('ES256', { kid: 'new' }, 'new');

/** An issuer whose answer and clock the test sets, and which counts how often it is asked. */
function issuerOf(...keys: TestKey[]) {
  const state = {
    now: NOW,
    answer: async (): Promise<Response> => Response.json(keySetOf(...keys)),
    requests: [] as Request[],
    stale: [] as [string, number][],
    failures: [] as string[],
    /** Publishes other keys from now on. */
    publish(...others: TestKey[]) {
      state.answer = async () => Response.json(keySetOf(...others));
    },
    /** Can't be reached from now on. */
    fall() {
      state.answer = async () => {
        throw new TypeError('fetch failed');
      };
    },
  };
  const options: RemoteKeySetOptions = {
    url: URL_OF_SET,
    now: () => state.now,
    fetch: async (request) => {
      state.requests.push(request);
      return state.answer();
    },
    onStale: (url, age) => state.stale.push([url, age]),
    onFailure: (url) => state.failures.push(url),
  };
  const keySet = remoteKeySet(options);
  const trust = { issuers: new Map([[ISSUER, keySet]]), now: () => state.now };
  /** What becomes of a token that was signed just now. */
  const verify = (key: TestKey, header: Record<string, unknown> = {}) => {
    const seconds = Math.floor(state.now / SECOND);
    const claims = claimsOf('user', { iat: seconds, exp: seconds + 900 });
    return faultOf(verifyUserToken(makeToken(key, claims, { header }), trust));
  };
  return { state, verify, keySet, trust, options };
}

describe('fetching', () => {
  test('a set that is fresh for longer than a copy may stand in is fetched all the same', async () => {
    const { options, state } = issuerOf(old);
    const keys = remoteKeySet({ ...options, freshFor: 48 * HOUR });
    expect(await faultOf(keys.find('old', 'ES256'))).toBe('accepted');
    expect(state.requests).toHaveLength(1);
  });

  test('the request asks for the one address, without credentials, following no redirect', async () => {
    const { state, verify } = issuerOf(old);
    await verify(old);
    const [request] = state.requests;
    expect(request).toMatchObject({ url: URL_OF_SET, method: 'GET', redirect: 'manual' });
    expect([...(request?.headers ?? [])]).toEqual([['accept', 'application/json']]);
  });

  test('concurrent callers share one fetch, cold and stale', async () => {
    const { state, verify } = issuerOf(old);
    const gate = Promise.withResolvers<Response>();
    state.answer = () => gate.promise;
    const callers = Array.from({ length: 50 }, () => verify(old));
    gate.resolve(Response.json(keySetOf(old)));
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['accepted']));
    expect(state.requests).toHaveLength(1);

    state.now += FRESH;
    state.publish(old);
    expect(new Set(await Promise.all(Array.from({ length: 50 }, () => verify(old))))).toEqual(
      new Set(['accepted']),
    );
    expect(state.requests).toHaveLength(2);
  });

  test('a fetch that outlasts the cooldown is still shared', async () => {
    const { state, verify } = issuerOf(old);
    const gate = Promise.withResolvers<Response>();
    const asked = Promise.withResolvers<void>();
    state.answer = () => {
      asked.resolve();
      return gate.promise;
    };
    const first = verify(old);
    await asked.promise;
    state.now += 2 * COOLDOWN;
    const second = verify(old);
    gate.resolve(Response.json(keySetOf(old)));
    expect(await Promise.all([first, second])).toEqual(['accepted', 'accepted']);
    expect(state.requests).toHaveLength(1);
  });
});

describe('row 53: an issuer that does not answer', () => {
  const never = () => new Promise<Response>(() => undefined);

  test.each<[string, () => Promise<Response>]>([
    ['nothing', never],
    [
      'half a reply',
      async () => new Response(new ReadableStream({ start: (c) => c.enqueue(Buffer.from('{')) })),
    ],
  ])('%s: the verification fails in time, though the fetch heeds no signal', async (_, answer) => {
    const { options, state } = issuerOf(old);
    state.answer = answer;
    const error = await errorOf(remoteKeySet({ ...options, timeout: 30 }).find('old', 'ES256'));
    expect(error).toMatchObject({ code: 'keys_unreachable' });
    expect(error.message).toContain('within 0.03 s');
    expect(state.failures).toEqual([URL_OF_SET]);
    expect(state.requests[0]?.signal.aborted).toBe(true);
  });

  test('ten seconds is the limit that nobody has to set, of the exported verifier too', async () => {
    vi.useFakeTimers();
    try {
      const { options, state } = issuerOf(old);
      state.answer = never;
      const token = makeToken(old, claimsOf('user', { iat: SECONDS, exp: SECONDS + 900 }));
      const verifier = createVerifier({ issuers: { [ISSUER]: true }, fetch: never, now: () => NOW });
      const waiting = [remoteKeySet(options).find('old', 'ES256'), verifier.verify(token)].map(faultOf);
      await vi.advanceTimersByTimeAsync(9999);
      expect(vi.getTimerCount()).toBe(2);
      await vi.advanceTimersByTimeAsync(1);
      expect(await Promise.all(waiting)).toEqual(['keys_unreachable', 'keys_unreachable']);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test('others whose key is in the copy do not wait behind it', async () => {
    const { state, verify } = issuerOf(old);
    expect(await verify(old)).toBe('accepted');
    state.now += FRESH;
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<Response>();
    state.answer = () => {
      asked.resolve();
      return gate.promise;
    };
    let first = 'waiting';
    const waiting = verify(old).then((fault) => {
      first = fault;
    });
    await asked.promise;
    for (let other = 0; other < 5; other += 1) expect(await verify(old)).toBe('accepted');
    expect(first).toBe('waiting');
    gate.resolve(Response.json(keySetOf(old)));
    await waiting;
    expect(first).toBe('accepted');
    expect(state.requests).toHaveLength(2);
  });
});

describe("the issuer's clock", () => {
  /** A reply that the issuer made when its clock said this, after which so many milliseconds pass here. */
  const dated = (state: { now: number }, date: number | string, headers: object = {}, takes = 0) => {
    const said = typeof date === 'number' ? new Date(date).toUTCString() : date;
    return async () => {
      state.now += takes;
      return Response.json(keySetOf(old), { headers: { ...headers, date: said } });
    };
  };

  test.each<[string, number | string, object, number, number | undefined]>([
    ['the same second', NOW, {}, 0, 0],
    ['within the second of the date', NOW - 999, {}, 0, 0],
    ['an hour ahead', NOW + HOUR, {}, 0, HOUR],
    ['an hour behind', NOW - HOUR, {}, 0, SECOND - HOUR],
    ['a reply that took half a minute, dated at its begin', NOW, {}, 30 * SECOND, 0],
    ['a reply that took half a minute, dated at its end', NOW + 30 * SECOND, {}, 30 * SECOND, 0],
    ['a copy that a cache has had for five minutes', NOW - 5 * MINUTE, { age: '300' }, 0, 0],
    ['an age that is no number', NOW - 5 * MINUTE, { age: '-300' }, 0, SECOND - 5 * MINUTE],
    ['a date that is none', 'yesterday', {}, 0, undefined],
  ])('%s', async (_, date, headers, takes, ahead) => {
    const { state, keySet } = issuerOf(old);
    state.answer = dated(state, date, headers, takes);
    expect(await keySet.clockAhead()).toBe(ahead);
    expect(state.requests).toHaveLength(1);
  });

  test('is told by a fresh copy, and by that of an earlier process, without a fetch', async () => {
    const { options, state, keySet } = issuerOf(old);
    let kept: KeySetCopy | undefined;
    const store: KeySetStore = {
      read: () => kept,
      write: (copy) => {
        kept = copy;
      },
    };
    const first = remoteKeySet({ ...options, store });
    state.answer = dated(state, NOW + 45 * SECOND);
    await first.find('old', 'ES256');
    expect(kept).toMatchObject({ at: NOW, ahead: 45 * SECOND });
    state.now += FRESH - 1;
    for (const one of [first, remoteKeySet({ ...options, store })]) {
      expect(await one.clockAhead()).toBe(45 * SECOND);
    }
    expect(state.requests).toHaveLength(1);
    // This machine's clock was set since: what was compared does not count any more.
    state.now = NOW;
    kept = { document: keySetOf(old), at: state.now };
    state.answer = dated(state, state.now + HOUR);
    expect(await remoteKeySet({ ...options, store }).clockAhead()).toBe(HOUR);
    expect(state.requests).toHaveLength(2);
    expect(await keySet.clockAhead()).toBe(HOUR);
  });

  test('is not known of an issuer that can’t be reached; one that does not answer in time is told', async () => {
    const { options, state, keySet } = issuerOf(old);
    state.fall();
    expect(await keySet.clockAhead()).toBeUndefined();
    const late = new Failure('timeout', 'It did not answer in time.');
    const slow = remoteKeySet({ ...options, fetch: () => Promise.reject(late) });
    await expect(slow.clockAhead()).rejects.toBe(late);
  });
});

describe('made-up kids and faults', () => {
  test('row 25: 200 tokens with random kids cause at most one fetch per cooldown', async () => {
    const { state, verify } = issuerOf(old);
    expect(await verify(old)).toBe('accepted');
    state.requests.length = 0;
    state.now += COOLDOWN;
    for (const cooldown of [1, 2, 3]) {
      for (let token = 0; token < 200; token += 1) {
        expect(await verify(old, { kid: `random-${cooldown}-${token}` })).toBe('key_unknown');
        state.now += COOLDOWN / 400;
      }
      expect(state.requests).toHaveLength(cooldown);
      state.now += COOLDOWN / 2;
    }
  });

  test('200 tokens with a wrong signature cause at most one fetch per cooldown (THREATS.md 100)', async () => {
    const { state, verify } = issuerOf(old);
    expect(await verify(old)).toBe('accepted');
    state.requests.length = 0;
    for (const cooldown of [1, 2, 3]) {
      state.now += COOLDOWN;
      const faults = await Promise.all(Array.from({ length: 200 }, () => verify(fresh, { kid: 'old' })));
      expect(new Set(faults)).toEqual(new Set(['signature']));
      expect(state.requests).toHaveLength(cooldown);
    }
    // While such a fetch hangs, tokens of the published key do not wait for it.
    state.now += COOLDOWN;
    state.answer = () => new Promise(() => undefined);
    void verify(fresh, { kid: 'old' });
    expect(await verify(old)).toBe('accepted');
  });

  test('row 25: key set down and cold: one fetch per cooldown, not one per token', async () => {
    const { state, verify } = issuerOf(old);
    state.fall();
    for (const cooldown of [1, 2, 3]) {
      for (let token = 0; token < 50; token += 1) {
        expect(await verify(old)).toBe('keys_unreachable');
      }
      expect(state.requests).toHaveLength(cooldown);
      state.now += COOLDOWN - 1;
      expect(await verify(old)).toBe('keys_unreachable');
      expect(state.requests).toHaveLength(cooldown);
      state.now += 1;
    }
    expect(state.failures).toEqual([URL_OF_SET, URL_OF_SET, URL_OF_SET]);
    state.publish(old);
    expect(await verify(old)).toBe('accepted');
    expect(state.failures).toHaveLength(3);
  });

  test.each<[string, () => Response, TokenFault?]>([
    ['301', () => Response.redirect('https://evil.example/jwks.json', 301)],
    ['302', () => Response.redirect('https://evil.example/jwks.json', 302)],
    ['307 with keys', () => Response.json(keySetOf(old), { status: 307, headers: { location: '/' } })],
    ['204', () => new Response(null, { status: 204 })],
    ['404', () => new Response('not found', { status: 404 })],
    ['500 with keys', () => Response.json(keySetOf(old), { status: 500 }), 'keys_unreachable'],
    [
      'HTML',
      () => new Response('<!doctype html><h1>Sign in</h1>', { headers: { 'content-type': 'text/html' } }),
    ],
    ['text', () => new Response('keys')],
    ['nothing', () => new Response('')],
    ['a null body', () => new Response(null)],
    ['null', () => new Response('null')],
    ['a list', () => Response.json([old.jwk])],
    ['an object without keys', () => Response.json({})],
    ['keys that are no list', () => Response.json({ keys: { 0: old.jwk } })],
    ['a truncated list', () => new Response(JSON.stringify(keySetOf(old)).slice(0, -3))],
    ['keys twice', () => new Response(`{"keys":[],${JSON.stringify(keySetOf(old)).slice(1)}`)],
    ['invalid UTF-8', () => new Response(Buffer.from('{"keys":[],"x":"\xff"}', 'latin1'))],
    ['a body that breaks off', () => new Response(brokenStream()), 'keys_unreachable'],
  ])('row 26: an issuer that answers %s has no key set to use', async (_, answer, due = 'keys_invalid') => {
    const { state, verify } = issuerOf(old);
    state.answer = async () => answer();
    expect(await verify(old)).toBe(due);
    expect(state.requests.map((request) => request.url)).toEqual([URL_OF_SET]);
  });

  function brokenStream(): ReadableStream<Uint8Array> {
    return new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('{"keys":['));
        controller.error(new TypeError('terminated'));
      },
    });
  }

  test("row 26, row 46: the platform's fetch goes to this machine straight, not to a proxy and not to DNS, and follows no redirect", async () => {
    const asked: string[] = [];
    const server = createServer(({ headers, url }, response) => {
      asked.push(`${headers.host}${url}`);
      if (url === '/keys') response.end(JSON.stringify(keySetOf(old)));
      else response.writeHead(302, { location: '/keys' }).end();
    });
    const host = `no-server-knows-me.localhost:${await listenOnLoopback(server)}`;
    const found = (path: string) =>
      faultOf(remoteKeySet({ url: `http://${host}${path}` }).find('old', 'ES256'));
    try {
      expect(await found('/moved')).toBe('keys_invalid');
      expect(await found('/keys')).toBe('accepted');
      expect(asked).toEqual([`${host}/moved`, `${host}/keys`]);
    } finally {
      server.close().closeAllConnections();
    }
    expect(await found('/keys')).toBe('keys_unreachable');
  });

  test('row 10: a reply without end is cut off', async () => {
    const { state, verify } = issuerOf(old);
    const MIB = 1024 * 1024;
    let sent = 0;
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          sent += 1;
          controller.enqueue(new Uint8Array(MIB).fill(0x20));
          if (sent === 64) controller.close();
        },
      });
    state.answer = async () => new Response(endless());
    expect(await verify(old)).toBe('keys_invalid');
    expect(sent).toBeLessThan(8);
  });

  test.each<[string, unknown]>([
    ['a key of an unknown type', { kty: 'AKP', kid: 'pq', alg: 'ML-DSA-44', pub: 'AAAA' }],
    ['a key without a type', { kid: 'x' }],
    ['a kid that is a number', { kty: 'EC', kid: 5 }],
    ['null', null],
  ])('a key set that also holds %s still verifies by its other keys (RFC 7517 §5)', async (_, other) => {
    const { state, verify } = issuerOf(old);
    state.answer = async () => Response.json({ keys: [other, old.jwk] });
    expect(await verify(old)).toBe('accepted');
  });

  test('the error names the address and the status, and why is kept as its cause', async () => {
    const { state, keySet } = issuerOf(old);
    state.answer = async () => new Response('x', { status: 503 });
    const refused = await errorOf(keySet.find('old', 'ES256'));
    expect(refused.message).toContain(URL_OF_SET);
    expect(refused.message).toContain('503');
    state.now += COOLDOWN;
    state.fall();
    const unreachable = await errorOf(keySet.find('old', 'ES256'));
    expect(unreachable.message).toContain(URL_OF_SET);
    expect(unreachable.cause).toMatchObject({ cause: expect.any(TypeError) });
  });
});

describe('a stale copy', () => {
  test('row 26: stands in up to 24 h, with a warning once per failed fetch; then the keys are unreachable', async () => {
    const { state, verify } = issuerOf(old);
    expect(await verify(old)).toBe('accepted');
    state.fall();
    const told: [string, number][] = [];
    for (const age of [FRESH, FRESH + COOLDOWN, HOUR, 12 * HOUR, 24 * HOUR - 1]) {
      state.now = NOW + age;
      for (let token = 0; token < 5; token += 1) expect(await verify(old)).toBe('accepted');
      told.push([URL_OF_SET, age]);
      expect(state.stale).toEqual(told);
    }
    state.now = NOW + 24 * HOUR;
    expect(await verify(old)).toBe('keys_unreachable');
    state.now += COOLDOWN;
    expect(await verify(old)).toBe('keys_unreachable');
  });
});

const KEYS = {
  old,
  new: fresh,
  anew: makeKey('ES256', { kid: 'old' }, 'new'),
  es384: makeKey('ES384', { kid: 'old' }),
};
const isKey = (name: string | undefined): name is keyof typeof KEYS => Object.hasOwn(KEYS, name ?? '');

/**
 * Stories of an issuer with the key `old`, in steps: `old: signature` is what becomes of a token that this key signed just now,
 * `old as x` one that names the key x; `+600` is that so many seconds pass; `publish new old`, `fall` and `answer HTML` are
 * what the issuer does from then on. In the end so many fetches were made, and so many warnings of a stale copy.
 */
test.each<[string, string, fetches: number, warnings: number]>([
  ['a copy is used while it is fresh', 'old: accepted, +599, old: accepted, +1, old: accepted', 2, 0],
  [
    'row 25: a key for another algorithm causes no fetch',
    'publish es384, old: algorithm, +30, old: algorithm, +30, old: algorithm',
    1,
    0,
  ],
  [
    'an issuer that begins anew with another key under its kid is believed after one fetch (THREATS.md 99)',
    'old: accepted, +30, publish anew, anew: accepted, anew: accepted, old: signature',
    2,
    0,
  ],
  [
    'row 25: a clock that is set back does not stop the fetches',
    '+86400, fall, old: keys_unreachable, +-86400, publish old, old: accepted',
    2,
    0,
  ],
  [
    'a copy that was fetched before the clock was set back is not fresh until then (THREATS.md 85)',
    '+86400, old: accepted, +-86400, publish new, new: accepted, old: key_unknown, +599, new: accepted',
    2,
    0,
  ],
  [
    'row 26: a stale copy is replaced as soon as the issuer is back, and its age starts anew',
    'old: accepted, fall, +82800, old: accepted, publish old, +30, old: accepted, fall, +82800, old: accepted',
    4,
    2,
  ],
  [
    'row 26: a copy that is still fresh is no stale one',
    'old: accepted, fall, +30, old as x: key_unknown, old: accepted',
    2,
    0,
  ],
  [
    'row 26: an answer in HTML does not cost the copy',
    'old: accepted, +600, answer HTML, old: accepted',
    2,
    1,
  ],
  [
    'row 27: a new kid is accepted after one refetch, and the old key still verifies',
    'old: accepted, publish new old, +30, new: accepted, old: accepted, new: accepted',
    2,
    0,
  ],
  [
    'row 27: random kids within the cooldown delay a rotation by no more than the cooldown',
    'old: accepted, +30, old as x: key_unknown, publish new old, new: key_unknown, +30, new: accepted',
    3,
    0,
  ],
  [
    'row 27: a key that is published no more verifies nothing once the copy is refreshed',
    'old: accepted, publish new, +600, old: key_unknown, new: accepted',
    2,
    0,
  ],
])('%s', async (_, story, fetches, warnings) => {
  const { state, verify } = issuerOf(old);
  for (const step of story.split(', ')) {
    const [, name, kid, due] = /^(\w+)(?: as (\w+))?: (\w+)$/.exec(step) ?? [];
    if (isKey(name)) expect([step, await verify(KEYS[name], kid ? { kid } : {})]).toEqual([step, due]);
    else if (step.startsWith('+')) state.now += Number(step.slice(1)) * SECOND;
    else if (step === 'fall') state.fall();
    else if (step === 'answer HTML') state.answer = async () => new Response('<html>');
    else
      state.publish(
        ...step
          .split(' ')
          .filter(isKey)
          .map((key) => KEYS[key]),
      );
  }
  expect([state.requests.length, state.stale.length]).toEqual([fetches, warnings]);
});
