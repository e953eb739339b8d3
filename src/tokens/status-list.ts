import { base64url } from 'jose';
import * as v from 'valibot';
import { bodyOf, readUpTo, setBounded, withinTime } from '../contract/bounded.ts';
import { StatusClaim, StatusListClaims } from '../contract/claims.ts';
import { STATUS_LIST_TYPE } from '../contract/routes.ts';
import type { Send } from '../contract/sending.ts';
import { MAX_TOKEN_LENGTH } from './compact.ts';
import { SERVICE_ALGORITHMS } from './key-set.ts';
import { reasonOf } from './remote-key-set.ts';
import { TokenError } from './token-error.ts';
import { type KindRules, type Trust, verifyAs } from './verify.ts';

/** The status of a token in a list. */
export interface TokenStatus {
  /** False for a reservation that was deleted, or that was changed after the token was signed. */
  stands: boolean;
  /** Of which instant the list is, in milliseconds. */
  at: number;
}

/** Where lists come from. */
export interface StatusSource {
  /** Must not follow redirects. */
  send: Send;
  /** How long a fetch may take, in milliseconds. Default: `send` has a limit of its own. */
  timeout?: number;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** The largest list that is read, in bytes: a token of some KiB can hold one of gigabytes. */
const MAX_LIST = 16 * 1_048_576;
/** How many lists are kept. */
const MOST_KEPT = 64;

const RULES: KindRules<typeof StatusListClaims> = {
  kind: 'service',
  schema: StatusListClaims,
  algorithms: SERVICE_ALGORITHMS,
  type: /^(?:application\/)?statuslist\+jwt$/i,
};

/**
 * Asks the issuers of tokens whether they stand, by the lists that the tokens name (draft-ietf-oauth-status-list §8). A list is
 * used for as long as it says (`ttl`), and asked for anew where it is older than the token.
 *
 * @returns a function of a verified token's claims, and of the keys of its issuer. Undefined for a token that names no list of its
 *   issuer's own origin: nothing is sent elsewhere. It throws TokenError, code `keys_unreachable`, where the list can't be had, and
 *   another code where it proves nothing
 */
export function statusLists({ send, timeout = Number.POSITIVE_INFINITY, now }: StatusSource) {
  const kept = new Map<string, StatusListClaims>();

  async function load(uri: string, { issuers }: Pick<Trust, 'issuers'>, isAnew: boolean) {
    const token = await withinTime(timeout, (signal) => fetchList(uri, { send, signal, isAnew })).catch(
      (cause: unknown) => {
        if (cause instanceof TokenError) throw cause;
        const message = `The status list at ${uri} can't be had${reasonOf(cause)}`;
        throw new TokenError('keys_unreachable', message, { cause });
      },
    );
    const claims = await verifyAs(RULES, token, { issuers, now });
    if (claims.sub !== uri) throw new TokenError('claims', `What ${uri} answers is another status list.`);
    setBounded(kept, uri, claims, MOST_KEPT);
    return claims;
  }

  return async (
    claims: { iss: string; iat: number; status?: unknown },
    trust: Pick<Trust, 'issuers'>,
  ): Promise<TokenStatus | undefined> => {
    const place = v.safeParse(StatusClaim, claims.status);
    if (!place.success) return undefined;
    const { idx, uri } = place.output.status_list;
    const isOwn = URL.canParse(uri) && URL.canParse(claims.iss);
    if (!isOwn || new URL(uri).origin !== new URL(claims.iss).origin) return undefined;
    const known = kept.get(uri);
    const isFresh = known && now() / 1000 < Math.min(known.exp, known.iat + (known.ttl ?? 0));
    let list = isFresh ? known : await load(uri, trust, false);
    if (list.iat < claims.iat) list = await load(uri, trust, true);
    return { stands: (await statusIn(list, idx)) === 0, at: list.iat * 1000 };
  };
}

/** The status at a place (draft-ietf-oauth-status-list §4.1, §8.3); 0 is valid. @throws TokenError `malformed`, `claims` */
async function statusIn({ status_list: { bits, lst } }: StatusListClaims, idx: number): Promise<number> {
  const found = await inflated(lst);
  const byte = found[Math.floor((idx * bits) / 8)];
  if (byte === undefined) throw new TokenError('claims', 'The status list has no place of this number.');
  return (byte >> ((idx * bits) % 8)) & (2 ** bits - 1);
}

async function inflated(lst: string): Promise<Uint8Array> {
  try {
    const body = new Blob([Uint8Array.from(base64url.decode(lst))]).stream();
    const { bytes, whole } = await readUpTo(
      bodyOf({ body: body.pipeThrough(new DecompressionStream('deflate')) }),
      MAX_LIST,
    );
    if (whole) return bytes;
  } catch (cause) {
    throw new TokenError('malformed', "The status list can't be decompressed.", { cause });
  }
  throw new TokenError('malformed', `The status list has more than ${MAX_LIST} bytes.`);
}

async function fetchList(
  url: string,
  { send, signal, isAnew }: { send: Send; signal: AbortSignal; isAnew: boolean },
): Promise<string> {
  const anew = isAnew ? ({ cache: 'no-cache' } as const) : {};
  const response = await send({ method: 'GET', url, headers: { accept: STATUS_LIST_TYPE }, signal, ...anew });
  const { bytes, whole } = await readUpTo(bodyOf(response), MAX_TOKEN_LENGTH);
  if (response.status !== 200) {
    throw new TokenError(
      'keys_unreachable',
      `The status list at ${url} can't be had: the reply's status is ${response.status}.`,
    );
  }
  if (!whole) throw new TokenError('malformed', `What ${url} answers is too large.`);
  return new TextDecoder().decode(bytes).trim();
}
