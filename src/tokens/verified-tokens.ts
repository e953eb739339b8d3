import { hash } from 'node:crypto';
import type { CryptoKey } from 'jose';
import { setBounded } from '../contract/bounded.ts';
import type { ServiceClaims } from '../contract/claims.ts';
import type { Algorithm } from './key-set.ts';

/** The result of a verification that holds as long as the issuer's key stays the same. */
export interface RememberedToken {
  /** The schema of its claims; each kind of token has its own. */
  schema: unknown;
  /** The audience that it was checked for. */
  audience: string | undefined;
  claims: ServiceClaims;
  kid: string | undefined;
  algorithm: Algorithm;
  /** The key that its signature was checked with. */
  key: CryptoKey;
}

/** The most tokens that are remembered by default: some megabytes. */
const DEFAULT_CAPACITY = 4096;

/** The longest token that is remembered, in characters: an entry is as large as its token. */
const MAX_REMEMBERED_LENGTH = 8192;

/**
 * Remembers tokens that verified. A script sends the same tokens with each request, and checking a signature costs more
 * than the rest of the verification.
 *
 * Times, audience and the issuer's key may change, so the caller compares them each time. A token is stored by its
 * SHA-256, so that it can't be read out of this process's memory. At capacity, the least recently used token is evicted.
 */
export class VerifiedTokens {
  readonly #capacity: number;
  readonly #tokens = new Map<string, RememberedToken>();

  /** @param capacity how many are remembered, 1 at least */
  constructor(capacity: number = DEFAULT_CAPACITY) {
    this.#capacity = capacity;
  }

  /** How many tokens are remembered. */
  get size(): number {
    return this.#tokens.size;
  }

  /** The result for exactly this token. Frozen: every request with it gets the same object. */
  find(token: string): RememberedToken | undefined {
    if (token.length > MAX_REMEMBERED_LENGTH) return undefined;
    const name = digest(token);
    const known = this.#tokens.get(name);
    if (known) {
      this.#tokens.delete(name);
      this.#tokens.set(name, known);
    }
    return known;
  }

  /** Remembers a token that passed every check. */
  keep(token: string, verified: RememberedToken): void {
    if (token.length > MAX_REMEMBERED_LENGTH) return;
    deepFreeze(verified.claims);
    setBounded(this.#tokens, digest(token), verified, this.#capacity);
  }

  /** Forgets a token: it expired, or its key is another now. */
  forget(token: string): void {
    this.#tokens.delete(digest(token));
  }
}

function digest(token: string): string {
  return hash('sha256', token, 'base64url');
}

/** A stack instead of recursion, since nesting is the signer's choice. */
function deepFreeze(value: object): void {
  const left = [value];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    Object.freeze(next);
    for (const inner of Object.values(next))
      if (typeof inner === 'object' && inner !== null) left.push(inner);
  }
}
