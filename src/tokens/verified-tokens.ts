import { hash } from 'node:crypto';
import type { CryptoKey } from 'jose';
import type { ServiceClaims } from '../contract/claims.ts';
import type { Algorithm } from './algorithms.ts';

/** What was found out about a token that does not change while its key stays the same. */
export interface RememberedToken {
  /** What its claims were held against; each kind of token has its own. */
  schema: unknown;
  claims: ServiceClaims;
  kid: string | undefined;
  algorithm: Algorithm;
  /** What its signature was checked with. */
  key: CryptoKey;
}

/** How many tokens are remembered when nothing else is said: some megabytes. */
const DEFAULT_CAPACITY = 4096;

/** A token that is longer is not remembered, in characters: what is kept of one is as large as it. */
const MAX_REMEMBERED_LENGTH = 8192;

/**
 * Tokens that verified: a script sends the same ones with each request, and the check of a signature costs more than
 * all else that is done about them.
 *
 * Only what can't change is kept; whoever finds a token here still asks the issuer's key set for its key, and checks
 * times and audience. A token is known by its SHA-256, so that none can be read out of this process's memory. The one
 * that was not used for longest makes room for another.
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

  /** What is known about a token, byte for byte the same. Frozen: every request with it gets the same object. */
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
    this.#tokens.set(digest(token), verified);
    if (this.#tokens.size <= this.#capacity) return;
    const [oldest] = this.#tokens.keys();
    if (oldest !== undefined) this.#tokens.delete(oldest);
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
