import * as v from 'valibot';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { KEY_SET_PATH } from '../../../src/contract/routes.ts';
import { createReferenceServer, type ReferenceServer } from '../../../src/reference-server.ts';
import {
  type KeyStore,
  READ_EVERY,
  READ_PAUSE,
  rotateByHand,
  SERVICES,
} from '../../../src/server/keys/key-ring.ts';
import { PUBLISHED_AFTER, PUBLISHED_AHEAD } from '../../../src/server/keys/rotation-rules.ts';
import { openStores } from '../../../src/store/stores.ts';
import { readKeySet } from '../../../src/tokens/key-set.ts';
import { remoteKeySet } from '../../../src/tokens/remote-key-set.ts';
import { verifyConnectivityToken, verifyUserToken } from '../../../src/tokens/verify.ts';
import { send, signedBy } from '../../fixtures/asked-server.ts';
import {
  answer,
  type IdentityServer,
  logIn,
  partOf,
  refresh,
  refreshTokenIn,
  send as sendTo,
  startIdentity,
  tokensIn,
} from '../../fixtures/identity.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { booking, CONNECTIVITY, DAY, EXPERIMENTS, NOW, SIGNED } from '../../fixtures/service.ts';
import { faultOf } from '../../fixtures/tokens.ts';

const postgres = usePostgres();
/** Does some work with a database's keys, and learns the numbers of the keys before and after it. */
async function withKeys<Answer>(
  database: string,
  work: (keys: KeyStore) => Promise<Answer>,
): Promise<Answer> {
  const stores = await openStores(database);
  const learn = async (): Promise<void> => {
    for (const service of SERVICES) {
      for (const { number, jwk } of await stores.keys.keys(service)) numbers.set(jwk.kid, number);
    }
  };
  try {
    await learn();
    const answer = await work(stores.keys);
    await learn();
    return answer;
  } finally {
    await stores.close();
  }
}

/** What the command does next to the database (`slices-conn serve rotate-keys`). */
const rotateIn = (database: string, now: number, retireNow = false): Promise<void> =>
  withKeys(database, async (keys) => {
    for (const service of SERVICES) await rotateByHand(service, keys, { retireNow, now });
  });

/** The numbers of the keys of all databases, by their kids. */
const numbers = new Map<unknown, number>();
/** The number of the key that signed a token. */
const keyOf = (token: string): number | undefined => numbers.get(partOf(token, 'header')['kid']);

describe('row 27: two servers on one database', () => {
  let database: string;
  let clock: number;
  let one: ReferenceServer;
  let other: ReferenceServer;

  beforeEach(async () => {
    database = await postgres.withTables();
    clock = NOW;
    const open = (): Promise<ReferenceServer> => createReferenceServer({ database, now: () => clock });
    [one, other] = [await open(), await open()];
    await withKeys(database, async () => undefined);
  });
  afterEach(async () => {
    await one.close();
    await other.close();
  });

  /** The numbers of the keys that a server publishes. */
  const published = async (server: ReferenceServer, path = ''): Promise<(number | undefined)[]> =>
    readKeySet(JSON.parse((await send(server, 'GET', `${path}${KEY_SET_PATH}`)).text)).keys.map(({ kid }) =>
      numbers.get(kid),
    );

  /** A proof of a new reservation. */
  async function book(server: ReferenceServer): Promise<string> {
    const body = booking({
      start_date: new Date(clock + 1000).toISOString(),
      end_date: new Date(clock + DAY).toISOString(),
    });
    const headers = { ...(await signedBy(server)), ...SIGNED };
    const reply = await send(server, 'POST', CONNECTIVITY, { headers, body });
    if (reply.status !== 201) throw new Error(`${reply.status} ${reply.text}`);
    return reply.text;
  }

  /** Someone who verifies proofs with the key set that they fetch, from the other server. */
  function verifier(freshFor?: number) {
    const { connectivity } = other.addresses;
    let fetched = 0;
    const keys = remoteKeySet({
      url: `${connectivity}${KEY_SET_PATH}`,
      now: () => clock,
      fetch: (request) => {
        fetched += 1;
        return other.fetch(request);
      },
      ...(freshFor === undefined ? {} : { freshFor }),
    });
    const trust = { issuers: new Map([[connectivity, keys]]), now: () => clock };
    return {
      fetches: () => fetched,
      verify: (token: string) => faultOf(verifyConnectivityToken(token, trust)),
    };
  }

  test('the new key is published before it signs, the old one until its last token has expired', async () => {
    const [usual, patient] = [verifier(), verifier(7 * DAY)];
    const old = await book(one);
    expect(keyOf(old)).toBe(1);
    for (const each of [usual, patient]) expect(await each.verify(old)).toBe('accepted');

    await rotateIn(database, clock);
    clock += READ_EVERY;
    for (const path of ['', '/portal', '/auth']) {
      for (const server of [one, other]) expect(await published(server, path)).toEqual([1, 2]);
    }
    clock = NOW + PUBLISHED_AHEAD - 1;
    expect(keyOf(await book(one))).toBe(1);
    clock += 1;
    const proofs = [await book(one), await book(other)];
    expect(proofs.map(keyOf)).toEqual([2, 2]);

    // Who keeps a key set for as long as ours do never meets a key that it does not know; others ask once.
    const [before, asked] = [usual.fetches(), patient.fetches()];
    expect(asked).toBe(1);
    for (const proof of [old, ...proofs]) {
      for (const each of [usual, patient]) expect(await each.verify(proof)).toBe('accepted');
    }
    expect(usual.fetches()).toBe(before + 1);
    expect(patient.fetches()).toBe(asked + 1);

    // The old proof is good until its last second, a day after it was made.
    const { exp } = v.parse(v.object({ exp: v.number() }), partOf(old, 'payload'));
    clock = exp * 1000 - 1;
    expect(await usual.verify(old)).toBe('accepted');
    clock = exp * 1000;
    expect(await usual.verify(old)).toBe('expired');
    const [noted] = await publishedUntil(database);
    expect(noted).toBeGreaterThanOrEqual(exp * 1000 + PUBLISHED_AFTER);
    expect(noted).toBeLessThanOrEqual(exp * 1000 + PUBLISHED_AFTER + 2 * 3_600_000);
    clock = Number(noted) - 1;
    for (const server of [one, other]) expect(await published(server)).toEqual([2, 1]);
    clock += 1;
    for (const server of [one, other]) expect(await published(server)).toEqual([2]);
  });

  test('one second after a retirement no server signs with the retired keys (THREATS.md 101)', async () => {
    // Both servers have signed with the first keys a moment ago, and noted until when their tokens last.
    for (const server of [one, other]) expect(keyOf(await book(server))).toBe(1);
    await rotateIn(database, clock, true);
    clock += 1000;
    for (const server of [one, other]) {
      expect(keyOf(await server.signIn('lead'))).toBe(2);
      expect(keyOf(await book(server))).toBe(2);
    }
  });

  test('by age, as the server was told', async () => {
    const rotating = await createReferenceServer({ database, now: () => clock, rotateKeysEvery: 90 * DAY });
    clock = NOW + 90 * DAY - PUBLISHED_AHEAD;
    await rotating.signIn('lead');
    clock = NOW + 90 * DAY;
    const signed = [await rotating.signIn('lead'), await one.signIn('lead')];
    await rotating.close();
    await withKeys(database, async () => undefined);
    expect(signed.map(keyOf)).toEqual([2, 2]);
  });

  test('a server that has not read the new keys yet asks for them when a token needs one', async () => {
    await published(other);
    await rotateIn(database, clock, true);
    clock += READ_PAUSE;
    const fresh = await createReferenceServer({ database, now: () => clock });
    const token = await fresh.signIn('lead');
    const authorization = `Bearer ${token}`;
    expect(keyOf(token)).toBe(2);
    await fresh.close();
    expect((await send(other, 'GET', EXPERIMENTS, { headers: { authorization } })).status).toBe(200);
  });
});

/** Until when the connectivity service's old keys stay, asked as the command does. */
const publishedUntil = (database: string): Promise<(number | undefined)[]> =>
  withKeys(database, async (store) =>
    (await store.keys('connectivity')).map(({ lastExpiry }) => lastExpiry + PUBLISHED_AFTER),
  );

describe('row 27: the identity provider', () => {
  async function verified(server: IdentityServer, token: string): Promise<string> {
    const { issuer } = server;
    const keys = remoteKeySet({
      url: `${issuer}${KEY_SET_PATH}`,
      fetch: async (request) => {
        const { status, text } = await sendTo(server, 'GET', request.url);
        return new Response(text, { status });
      },
    });
    return faultOf(verifyUserToken(token, { issuers: new Map([[issuer, keys]]) }));
  }

  test('signs with the new key once it is its turn, and sessions go on', async () => {
    const server = await startIdentity();
    const replica = await server.replica();
    const session = await logIn(server);
    await rotateIn(server.file, Date.now());
    expect(keyOf(session.access_token)).toBe(1);
    server.advance(READ_EVERY);
    const waiting = tokensIn(await refresh(replica, session.refresh_token));
    expect(keyOf(waiting.access_token)).toBe(1);
    server.advance(PUBLISHED_AHEAD);
    for (const target of [server, replica]) {
      const login = await logIn(target);
      for (const token of [login.access_token, String(login.id_token)]) expect(keyOf(token)).toBe(2);
      expect(await verified(server, login.access_token)).toBe('accepted');
    }
    for (const { access_token } of [session, waiting])
      expect(await verified(server, access_token)).toBe('accepted');
    const renewed = tokensIn(await refresh(server, String(waiting.refresh_token)));
    expect(keyOf(renewed.access_token)).toBe(2);
  });

  test('whose key is retired at once keeps its sessions: a refresh gives a token that verifies', async () => {
    const server = await startIdentity();
    const replica = await server.replica();
    const session = await logIn(server);
    await rotateIn(server.file, Date.now(), true);
    server.advance(READ_EVERY);
    expect(await verified(server, session.access_token)).toBe('key_unknown');
    const reply = await refresh(replica, session.refresh_token);
    expect(answer(reply)).toBe('200');
    expect(keyOf(tokensIn(reply).access_token)).toBe(2);
    expect(await verified(server, tokensIn(reply).access_token)).toBe('accepted');
    expect(answer(await refresh(server, refreshTokenIn(reply)))).toBe('200');
    expect(server.log.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
