import { createHash, hkdfSync, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse as parseCookie } from 'hono/utils/cookie';
import { CompactEncrypt, compactDecrypt, errors } from 'jose';
import { DAY, HOUR } from '../../contract/durations.ts';
import type { PageClient, PageTokens } from './provider-client.ts';

/**
 * The secret that opens a session: two random texts of 43 characters, of which neither alone is worth anything. The
 * browser sends its cookies to every port of this host (RFC 6265 §8.5), and takes them from every port. The page's storage
 * belongs to one origin.
 */
interface SessionSecret {
  /** The half in the cookie, which no script can read. */
  cookie: string;
  /** The half in the page's storage, which the page sends with its own requests. */
  stored: string;
}

/** The header with the half of a session's secret that the page keeps. */
const SESSION_HEADER = 'Slices-Session';

/**
 * The name of the session's cookie. Its prefix makes browsers accept it from this very host only, and over TLS only. Cookies
 * know neither ports nor, with this prefix, paths: the name holds a part of the base address's hash, so that two servers at
 * one host don't overwrite each other's.
 */
export function cookieName(baseUrl: string): string {
  return `__Host-slices-conn-${createHash('sha256').update(baseUrl).digest('hex').slice(0, 12)}`;
}

/** A session of the page as it is stored: nothing in it can be read without the browser's secret. */
export interface StoredPageSession {
  /** Derived from the secret, base64url. */
  key: string;
  /** The tokens, encrypted (a compact JWE). */
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

/** Options of {@link createPageSessions}. */
export interface PageSessionsOptions {
  store: PageSessionStore;
  /** `{base_url}`: a session of one server is not one of another. */
  baseUrl: string;
  client: Pick<PageClient, 'refresh' | 'revoke'>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** The sessions of the page, by the secrets that browsers have. */
export type PageSessions = ReturnType<typeof createPageSessions>;

/** How long an access token must still be valid when it is used, in milliseconds. */
const TOKEN_MARGIN_MS = 5000;
/** How long a replica waits for another that has set about renewing a token before it does so itself, in milliseconds. */
const RENEWAL_TURN_MS = 15_000;
/** How often it looks meanwhile, in milliseconds. */
const RENEWAL_POLL_MS = 100;
/** How long a session lasts without use where the provider does not say, in milliseconds: 30 days. */
const UNUSED_SESSION_MS = 30 * DAY;
/** What an encrypted row may be (RFC 7516): the key that is derived from the secret encrypts it itself. */
const SEALED_BY = { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] };
/** How long sessions that have expired are kept, in milliseconds: clocks of replicas differ. */
const SWEEP_MARGIN = HOUR;

/**
 * The sessions of the page (src/README.md, "The page"). The browser has a random secret in two halves; row and encryption key
 * in the database are derived from both (HKDF, RFC 5869). So neither a cookie nor a copy of the database opens a session, and
 * a session ends on every replica when its row is removed.
 */
export function createPageSessions({ store, baseUrl, client, now }: PageSessionsOptions) {
  const name = cookieName(baseUrl);

  /** The secret of a request, any texts; undefined where a half is missing. */
  function secretIn({ headers }: Request): SessionSecret | undefined {
    const cookie = parseCookie(headers.get('cookie') ?? '', name)[name];
    const stored = headers.get(SESSION_HEADER);
    return cookie === undefined || stored === null ? undefined : { cookie, stored };
  }

  const derived = ({ cookie, stored }: SessionSecret, purpose: 'row' | 'tokens'): Buffer =>
    Buffer.from(hkdfSync('sha256', `${cookie}.${stored}`, '', `slices-conn page ${purpose} ${baseUrl}`, 32));
  const rowOf = (secret: SessionSecret): string => derived(secret, 'row').toString('base64url');

  const seal = (secret: SessionSecret, tokens: PageTokens): Promise<string> =>
    new CompactEncrypt(Buffer.from(JSON.stringify(tokens)))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .encrypt(derived(secret, 'tokens'));

  /** Undefined where the row was changed. */
  async function unseal(secret: SessionSecret, sealed: string): Promise<PageTokens | undefined> {
    try {
      const { plaintext } = await compactDecrypt(sealed, derived(secret, 'tokens'), SEALED_BY);
      return JSON.parse(Buffer.from(plaintext).toString());
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }

  async function read(
    secret: SessionSecret,
  ): Promise<{ stored: StoredPageSession; tokens: PageTokens } | undefined> {
    const stored = await store.find(rowOf(secret));
    const tokens = stored && stored.expiresAt > now() ? await unseal(secret, stored.sealed) : undefined;
    return stored && tokens && { stored, tokens };
  }

  const endOf = ({ refresh: renewable, refreshExpiresAt, expiresAt }: PageTokens): number =>
    renewable === undefined ? expiresAt : (refreshExpiresAt ?? now() + UNUSED_SESSION_MS);

  /** Renews one version of a session's tokens, or waits until another request or replica has: a refresh token can be used once. */
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
      renewed = await client.refresh(tokens);
    } catch (error) {
      await store.giveBack(stored);
      throw error;
    }
    if (!renewed) return store.remove(stored.key);
    const sealed = await seal(secret, renewed);
    const kept = await store.replace({ ...stored, sealed, expiresAt: endOf(renewed) });
    // The session was ended meanwhile, and so are the tokens that came after it.
    if (!kept) await client.revoke(renewed);
  }

  return {
    /** Starts a session. */
    async start(tokens: PageTokens): Promise<SessionSecret> {
      const random = (): string => randomBytes(32).toString('base64url');
      const secret = { cookie: random(), stored: random() };
      const sealed = await seal(secret, tokens);
      await store.add({ key: rowOf(secret), sealed, expiresAt: endOf(tokens) });
      await store.sweep(now() - SWEEP_MARGIN);
      return secret;
    },

    /**
     * The tokens of a request's session. An access token that expires soon is renewed first.
     *
     * @param refused an access token that was not accepted and must be replaced
     * @returns undefined where there is no such session, or it has ended
     */
    async open(request: Request, refused?: string): Promise<PageTokens | undefined> {
      const secret = secretIn(request);
      const found = secret && (await read(secret));
      if (!found) return undefined;
      const { stored, tokens } = found;
      if (tokens.access !== refused && tokens.expiresAt - now() > TOKEN_MARGIN_MS) return tokens;
      await renew(secret, stored, tokens);
      return (await read(secret))?.tokens;
    },

    /** Ends a request's session, if it has one, here and at the identity provider. */
    async end(request: Request): Promise<void> {
      const secret = secretIn(request);
      const found = secret && (await read(secret));
      if (secret) await store.remove(rowOf(secret));
      if (found) await client.revoke(found.tokens);
    },
  };
}
