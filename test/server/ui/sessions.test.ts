import { afterAll, describe, expect, test } from 'vitest';
import type { PageTokens } from '../../../src/server/ui/provider-client.ts';
import { cookieName, createPageSessions, type PageSessionStore } from '../../../src/server/ui/sessions.ts';
import { openStores, type Stores } from '../../../src/store/stores.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { NOW } from '../../fixtures/tokens.ts';

const postgres = usePostgres();
const HOUR = 3_600_000;

/** The tokens after so many renewals, at an instant. */
const tokens = (renewals: number, at = NOW): PageTokens => ({
  access: `access ${renewals}`,
  refresh: `refresh ${renewals}`,
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
    const { pageSessions } = stores;
    /** The rows that were added, in order. */
    const rows: string[] = [];
    const store: PageSessionStore = {
      ...pageSessions,
      async add(session) {
        rows.push(session.key);
        await pageSessions.add(session);
      },
    };
    const state = { now: NOW, refreshed: [] as string[], revoked: [] as string[], ended: false };
    let answer: (given: PageTokens) => Promise<PageTokens | undefined> = async (given) =>
      state.ended ? undefined : tokens(Number(given.refresh?.split(' ')[1]) + 1, state.now);
    const replica = (baseUrl = 'http://offline.localhost') => {
      const client = {
        refresh: async (given: PageTokens) => {
          state.refreshed.push(String(given.refresh));
          return answer(given);
        },
        revoke: async ({ refresh }: PageTokens) => void state.revoked.push(String(refresh)),
      };
      const now = () => state.now;
      const sessions = createPageSessions({ store, baseUrl, client, now });
      type Secret = Awaited<ReturnType<typeof sessions.start>>;
      const asked = ({ cookie, stored }: Secret) =>
        new Request(baseUrl, {
          headers: { cookie: `${cookieName(baseUrl)}=${cookie}`, 'slices-session': stored },
        });
      return {
        start: sessions.start,
        open: (secret: Secret, refused?: string) => sessions.open(asked(secret), refused),
        end: (secret: Secret) => sessions.end(asked(secret)),
      };
    };
    const answerWith = (other: typeof answer): void => {
      answer = other;
    };
    return { state, store, rows, replica, answerWith };
  }

  test('a row that was stolen from the database decrypts to nothing without both halves of the secret (THREATS.md 98)', async () => {
    const { store, rows, replica } = await world();
    const secret = await replica().start(tokens(0));
    const row = await store.find(rows[0] ?? '');
    expect(row).toBeDefined();
    expect(JSON.stringify(row)).not.toMatch(new RegExp(`access|refresh|${secret.cookie}|${secret.stored}`));
    // Copied to the row of a session that the thief knows.
    const known = await replica().start(tokens(7));
    const expiresAt = NOW + HOUR;
    await store.replace({ key: rows[1] ?? '', version: 1, sealed: row?.sealed ?? '', expiresAt });
    expect(await replica().open(known)).toBeUndefined();
    expect(await replica('http://offline.localhost/other').open(secret)).toBeUndefined();
    expect(await replica().open(secret)).toEqual(tokens(0));
  });

  test('neither half opens or ends a session with anything but the other', async () => {
    const { state, replica } = await world();
    const secret = await replica().start(tokens(0));
    const { cookie, stored } = secret;
    const other = await replica().start(tokens(7));
    const texts = ['', 'x', 'A'.repeat(43), '../../etc/passwd', '"', 'é', `${cookie}.${stored}`];
    for (const wrong of [
      ...[...texts, cookie, other.stored].map((text) => ({ cookie, stored: text })),
      ...[...texts, stored, other.cookie].map((text) => ({ cookie: text, stored })),
      ...texts.map((text) => ({ cookie: text, stored: text })),
      { cookie: stored, stored: cookie },
      { cookie: cookie.slice(0, -1), stored: `${cookie.slice(-1)}${stored}` },
    ]) {
      expect(await replica().open(wrong)).toBeUndefined();
      await replica().end(wrong);
    }
    expect(state.revoked).toEqual([]);
    expect(await replica().open(secret)).toEqual(tokens(0));
  });

  test('access tokens are renewed once, whoever asks: parallel requests and other replicas', async () => {
    const { state, replica } = await world();
    const [one, other] = [replica(), replica()];
    const secret = await one.start(tokens(0));
    state.now += HOUR - 4000;
    const asked = await Promise.all([one, one, other, one, other].map((each) => each.open(secret)));
    expect(asked.map((session) => session?.access)).toEqual(Array(5).fill('access 1'));
    expect(state.refreshed).toEqual(['refresh 0']);
    expect((await other.open(secret, 'access 0'))?.access).toBe('access 1');
    expect((await other.open(secret, 'access 1'))?.access).toBe('access 2');
  });

  test('a session outlives a provider that is away while its token expires', async () => {
    const { state, replica, answerWith } = await world();
    const secret = await replica().start(tokens(0));
    answerWith(async () => {
      throw new Error('away');
    });
    state.now += HOUR;
    await expect(replica().open(secret)).rejects.toThrow('away');
    answerWith(async () => tokens(1, state.now));
    expect((await replica().open(secret))?.access).toBe('access 1');
  });

  test('it ends when the provider says so, at the refresh token’s end, and with a token that can’t be renewed', async () => {
    const { state, store, rows, replica } = await world();
    const secret = await replica().start(tokens(0));
    state.ended = true;
    expect(await replica().open(secret, 'access 0')).toBeUndefined();
    expect(await store.find(rows[0] ?? '')).toBeUndefined();
    const unused = await replica().start(tokens(0));
    const short = await replica().start({ ...tokens(0), refresh: undefined });
    expect((await replica().open(short))?.access).toBe('access 0');
    state.now += HOUR;
    expect(await replica().open(short)).toBeUndefined();
    state.now += 9 * HOUR;
    expect(await replica().open(unused)).toBeUndefined();
    // Swept with the next login, an hour later since clocks differ.
    expect(await store.find(rows[1] ?? '')).toBeDefined();
    state.now += HOUR + 1;
    await replica().start(tokens(0, state.now));
    expect(await store.find(rows[1] ?? '')).toBeUndefined();
  });

  test('a logout during a renewal ends what comes of it', async () => {
    const { state, replica, answerWith } = await world();
    const secret = await replica().start(tokens(0));
    answerWith(async () => {
      await replica().end(secret);
      return tokens(1, state.now);
    });
    expect(await replica().open(secret, 'access 0')).toBeUndefined();
    expect(state.revoked).toEqual(['refresh 0', 'refresh 1']);
  });
});
