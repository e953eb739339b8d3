import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { DAY, HOUR } from '../../contract/durations.ts';
import { readJson } from '../../contract/json.ts';
import type { Log } from '../log.ts';
import type { PageTokens } from './provider-client.ts';

/**
 * The secret that opens a session: two random texts of 43 characters, of which neither alone is worth anything. The
 * browser sends its
 * cookies to every port of this host (RFC 6265 §8.5), and takes them from every port. The page's storage belongs to one origin.
 */
export interface SessionSecret {
  /** The half in the cookie, which no script can read. */
  cookie: string;
  /** The half in the page's storage, which the page sends with its own requests. */
  stored: string;
}

/** A session of the page as it is stored: nothing in it can be read without the browser's secret. */
export interface StoredPageSession {
  /** Derived from the secret, base64url. */
  key: string;
  /** The tokens, encrypted. */
  sealed: string;
  /** Counts the renewals of its tokens. */
  version: number;
  /** The number of replicas that have begun to renew this version. */
  turn: number;
  /** Milliseconds. */
  expiresAt: number;
}

/** Where the sessions are. Each method is one atomic step, so that replicas on one database agree. */
export interface PageSessionStore {
  add(session: Pick<StoredPageSession, 'key' | 'sealed' | 'expiresAt'>): Promise<void>;
  find(key: string): Promise<StoredPageSession | undefined>;
  /** Sets about renewing a version. @returns false where another has, or the session has ended */
  claim(session: Pick<StoredPageSession, 'key' | 'version' | 'turn'>): Promise<boolean>;
  /** Lets others renew a version, after it could not be done. */
  giveBack(session: Pick<StoredPageSession, 'key' | 'version'>): Promise<void>;
  /** Stores the next version. @returns false where there is one already, or the session has ended */
  replace(session: Pick<StoredPageSession, 'key' | 'version' | 'sealed' | 'expiresAt'>): Promise<boolean>;
  remove(key: string): Promise<void>;
  /** Removes sessions that expired before an instant, in milliseconds. */
  sweep(before: number): Promise<void>;
}

/** A session that is open: its key in the database, and its tokens. */
export interface PageSession {
  key: string;
  tokens: PageTokens;
}

/** The sessions of the page, by the secrets that browsers have. */
export interface PageSessions {
  /** Starts a session. */
  start(tokens: PageTokens): Promise<SessionSecret>;
  /**
   * A session with an access token that is valid for some time; it is renewed here where it must be.
   *
   * @param secret as it came in: any texts
   * @param refused an access token that was not accepted and must be replaced
   * @returns undefined where there is no such session, or it has ended
   */
  open(secret: SessionSecret, refused?: string): Promise<PageSession | undefined>;
  /** Ends a session, here and at the identity provider. */
  end(secret: SessionSecret): Promise<void>;
}

/** Options of {@link createPageSessions}. */
export interface PageSessionsOptions {
  store: PageSessionStore;
  /** `{base_url}`: a session of one server is not one of another. */
  baseUrl: string;
  /** Renews tokens. @returns undefined where the provider says that the login has ended; rejects where it can't say */
  refresh: (tokens: PageTokens) => Promise<PageTokens | undefined>;
  /** Ends the login of tokens at the provider. */
  revoke: (tokens: PageTokens) => Promise<void>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  log: Log;
}

/** How long an access token must still be valid when it is used, in milliseconds; less where it is made for less. */
const TOKEN_MARGIN_MS = 30_000;
/** How long a replica waits for another that has set about renewing a token before it does so itself, in milliseconds. */
const RENEWAL_TURN_MS = 15_000;
/** How often it looks meanwhile, in milliseconds. */
const RENEWAL_POLL_MS = 100;
/** How long a session lasts without use where the provider does not say, in milliseconds: 30 days. */
const UNUSED_SESSION_MS = 30 * DAY;
/** How long sessions that have expired are kept, in milliseconds: clocks of replicas differ. */
const SWEEP_MARGIN = HOUR;

const Tokens = v.object({
  access: v.string(),
  refresh: v.optional(v.string()),
  issuedAt: v.number(),
  expiresAt: v.number(),
  refreshExpiresAt: v.optional(v.number()),
});

/**
 * The sessions of the page (src/README.md, "The page"). The browser has a random secret in two halves; row and encryption key
 * in the database are derived from both (HKDF, RFC 5869). So neither a cookie nor a copy of the database opens a session, and
 * a session ends on every replica when its row is removed.
 */
export function createPageSessions(options: PageSessionsOptions): PageSessions {
  const { store, baseUrl, refresh, revoke, now, log } = options;
  const renewing = new Map<string, Promise<void>>();

  const { rowOf, seal, unseal } = sealer(baseUrl);

  async function read(
    secret: SessionSecret,
  ): Promise<{ stored: StoredPageSession; tokens: PageTokens } | undefined> {
    const stored = await store.find(rowOf(secret));
    const tokens = stored && stored.expiresAt > now() ? unseal(secret, stored.sealed) : undefined;
    return stored && tokens && { stored, tokens };
  }

  const isDue = ({ issuedAt, expiresAt }: PageTokens): boolean =>
    expiresAt - now() < Math.min(TOKEN_MARGIN_MS, (expiresAt - issuedAt) / 2);

  /** Renews one version of a session's tokens, or waits until another has. */
  async function renew(secret: SessionSecret, stored: StoredPageSession, tokens: PageTokens): Promise<void> {
    let seen = stored;
    // Measured by this machine's own waiting, since the clocks of replicas differ.
    let waited = 0;
    while (!((seen.turn === 0 || waited >= RENEWAL_TURN_MS) && (await store.claim(seen)))) {
      await sleep(RENEWAL_POLL_MS);
      const current = await store.find(stored.key);
      if (current?.version !== stored.version) return;
      waited = current.turn === seen.turn ? waited + RENEWAL_POLL_MS : 0;
      seen = current;
    }
    let renewed: PageTokens | undefined;
    try {
      renewed = await refresh(tokens);
    } catch (error) {
      await store.giveBack(stored);
      throw error;
    }
    if (!renewed) return store.remove(stored.key);
    const kept = await store.replace({ ...stored, sealed: seal(secret, renewed), expiresAt: endOf(renewed) });
    // The session was ended meanwhile, and so are the tokens that came after it.
    if (!kept) await revoke(renewed);
  }

  /** One renewal for all requests of this process that wait for it. */
  function renewOnce(secret: SessionSecret, stored: StoredPageSession, tokens: PageTokens): Promise<void> {
    const name = `${stored.key} ${stored.version}`;
    const underWay = renewing.get(name) ?? renew(secret, stored, tokens).finally(() => renewing.delete(name));
    renewing.set(name, underWay);
    return underWay;
  }

  const endOf = ({ refresh: renewable, refreshExpiresAt, expiresAt }: PageTokens): number =>
    renewable === undefined ? expiresAt : (refreshExpiresAt ?? now() + UNUSED_SESSION_MS);

  return {
    async start(tokens) {
      const random = (): string => randomBytes(32).toString('base64url');
      const secret = { cookie: random(), stored: random() };
      await store.add({ key: rowOf(secret), sealed: seal(secret, tokens), expiresAt: endOf(tokens) });
      await store.sweep(now() - SWEEP_MARGIN);
      return secret;
    },

    async open(secret, refused) {
      const found = await read(secret);
      if (!found) return undefined;
      const { stored, tokens } = found;
      const session = { key: stored.key, tokens };
      const isUsable = tokens.access !== refused && tokens.expiresAt > now();
      if (isUsable && !isDue(tokens)) return session;
      if (tokens.refresh === undefined) {
        if (isUsable) return session;
        await store.remove(stored.key);
        return undefined;
      }
      try {
        await renewOnce(secret, stored, tokens);
      } catch (error) {
        log('error', 'page_tokens_not_renewed', {
          why: error instanceof Error ? error.message : String(error),
        });
        // It is renewed early: while the provider is away, the token is used to its end.
        if (isUsable) return session;
        throw error;
      }
      const renewed = await read(secret);
      return renewed && { key: renewed.stored.key, tokens: renewed.tokens };
    },

    async end(secret) {
      const found = await read(secret);
      await store.remove(rowOf(secret));
      if (found) await revoke(found.tokens);
    },
  };
}

/** Derives a session's row and encryption key from its secret, and encrypts its tokens. */
function sealer(baseUrl: string) {
  const derived = ({ cookie, stored }: SessionSecret, purpose: 'row' | 'tokens'): Buffer =>
    Buffer.from(hkdfSync('sha256', `${cookie}.${stored}`, '', `slices-conn page ${purpose} ${baseUrl}`, 32));
  const rowOf = (secret: SessionSecret): string => derived(secret, 'row').toString('base64url');

  function seal(secret: SessionSecret, tokens: PageTokens): string {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', derived(secret, 'tokens'), nonce).setAAD(
      derived(secret, 'row'),
    );
    const sealed = Buffer.concat([cipher.update(JSON.stringify(tokens)), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** Undefined where a server with another base address stored it, or the row was changed. */
  function unseal(secret: SessionSecret, sealed: string): PageTokens | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    const decipher = createDecipheriv('aes-256-gcm', derived(secret, 'tokens'), bytes.subarray(0, 12), {
      authTagLength: 16,
    });
    try {
      decipher.setAAD(derived(secret, 'row')).setAuthTag(bytes.subarray(12, 28));
      const text = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]);
      const reading = readJson(text);
      return reading.ok && v.is(Tokens, reading.value) ? reading.value : undefined;
    } catch {
      return undefined;
    }
  }
  return { rowOf, seal, unseal };
}
