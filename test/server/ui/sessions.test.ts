import { afterAll, describe, expect, test } from 'vitest';
import { hash } from '../../../src/server/identity/records.ts';
import type { PageTokens } from '../../../src/server/ui/provider-client.ts';
import { createPageSessions, type PageSessionsOptions } from '../../../src/server/ui/sessions.ts';
import { openStores, type Stores } from '../../../src/store/stores.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { NOW } from '../../fixtures/tokens.ts';

const postgres = usePostgres();
const HOUR = 3_600_000;

/** The tokens after so many renewals, at an instant. */
const tokens = (renewals: number, at = NOW): PageTokens => ({
  access: `access ${renewals}`,
  refresh: `refresh ${renewals}`,
  issuedAt: at,
  expiresAt: at + HOUR,
  refreshExpiresAt: at + 10 * HOUR,
});

const opened: Stores[] = [];
afterAll(async () => {
  for (const stores of opened) await stores.close();
});

describe.each(['SQLite', 'PostgreSQL'])('sessions of the page on %s', (engine) => {
  /** Replicas on one database, each with the clock and the provider of the test. */
  async function world() {
    const stores = await openStores(engine === 'SQLite' ? ':memory:' : await postgres.emptied());
    opened.push(stores);
    const { pageSessions: store } = stores;
    const state = { now: NOW, refreshed: [] as string[], revoked: [] as string[], ended: false };
    let answer: (given: PageTokens) => Promise<PageTokens | undefined> = async (given) =>
      state.ended ? undefined : tokens(Number(given.refresh?.split(' ')[1]) + 1, state.now);
    const replica = (changes: Partial<PageSessionsOptions> = {}) =>
      createPageSessions({
        store,
        baseUrl: 'http://offline.localhost',
        refresh: async (given) => {
          state.refreshed.push(String(given.refresh));
          return answer(given);
        },
        revoke: async ({ refresh }) => void state.revoked.push(String(refresh)),
        now: () => state.now,
        log: () => undefined,
        ...changes,
      });
    const answerWith = (other: typeof answer): void => {
      answer = other;
    };
    return { state, store, replica, answerWith };
  }

  test('a row that was stolen from the database decrypts to nothing without the cookie', async () => {
    const { store, replica } = await world();
    const id = await replica().start(tokens(0));
    const row = await store.find(hash(id));
    expect(JSON.stringify(row)).not.toMatch(new RegExp(`access|refresh|${id}`));
    // Copied to the row of an id that the thief knows.
    const known = await replica().start(tokens(7));
    await store.replace({ key: hash(known), version: 1, sealed: row?.sealed ?? '', expiresAt: NOW + HOUR });
    expect(await replica().open(known)).toBeUndefined();
    expect(await replica({ baseUrl: 'http://offline.localhost/other' }).open(id)).toBeUndefined();
    expect(await replica().open(id)).toMatchObject({ tokens: tokens(0) });
  });

  test.each(['', 'x', 'A'.repeat(43), '../../etc/passwd', '"', 'é'])('there is none of id %j', async (id) => {
    expect(await (await world()).replica().open(id)).toBeUndefined();
  });

  test('access tokens are renewed once, whoever asks: parallel requests and other replicas', async () => {
    const { state, replica } = await world();
    const [one, other] = [replica(), replica()];
    const id = await one.start(tokens(0));
    state.now += HOUR - 29_000;
    const asked = await Promise.all([one, one, other, one, other].map((each) => each.open(id)));
    expect(asked.map((session) => session?.tokens.access)).toEqual(Array(5).fill('access 1'));
    expect(state.refreshed).toEqual(['refresh 0']);
    expect((await other.open(id, { refused: 'access 0' }))?.tokens.access).toBe('access 1');
    expect((await other.open(id, { refused: 'access 1' }))?.tokens.access).toBe('access 2');
  });

  test('while the provider is away, the token is used to its end', async () => {
    const { state, replica, answerWith } = await world();
    const id = await replica().start(tokens(0));
    answerWith(async () => {
      throw new Error('away');
    });
    state.now += HOUR - 1000;
    expect((await replica().open(id))?.tokens.access).toBe('access 0');
    state.now += 1000;
    await expect(replica().open(id)).rejects.toThrow('away');
    answerWith(async () => tokens(1, state.now));
    expect((await replica().open(id))?.tokens.access).toBe('access 1');
  });

  test('it ends when the provider says so, at the refresh token’s end, and with a token that can’t be renewed', async () => {
    const { state, store, replica } = await world();
    const id = await replica().start(tokens(0));
    state.ended = true;
    expect(await replica().open(id, { refused: 'access 0' })).toBeUndefined();
    expect(await store.find(hash(id))).toBeUndefined();
    const unused = await replica().start(tokens(0));
    const short = await replica().start({ ...tokens(0), refresh: undefined });
    expect((await replica().open(short))?.tokens.access).toBe('access 0');
    state.now += HOUR;
    expect(await replica().open(short)).toBeUndefined();
    state.now += 9 * HOUR;
    expect(await replica().open(unused)).toBeUndefined();
    // Swept with the next login, an hour later since clocks differ.
    expect(await store.find(hash(unused))).toBeDefined();
    state.now += HOUR + 1;
    await replica().start(tokens(0, state.now));
    expect(await store.find(hash(unused))).toBeUndefined();
  });

  test('a logout during a renewal ends what comes of it', async () => {
    const { state, replica, answerWith } = await world();
    const id = await replica().start(tokens(0));
    answerWith(async () => {
      await replica().end(id);
      return tokens(1, state.now);
    });
    expect(await replica().open(id, { refused: 'access 0' })).toBeUndefined();
    expect(state.revoked).toEqual(['refresh 0', 'refresh 1']);
  });
});
