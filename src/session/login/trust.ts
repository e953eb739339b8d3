import { createHash } from 'node:crypto';
import { join } from 'node:path';
import * as v from 'valibot';
import { issuerName } from '../../contract/addresses.ts';
import { Failure } from '../../contract/failure.ts';
import { readJson } from '../../contract/json.ts';
import { KEY_SET_PATH } from '../../contract/routes.ts';
import { privateFolder } from '../../files/private.ts';
import { readPrivateFile, writePrivateFile } from '../../files/whole.ts';
import { readCompact } from '../../tokens/compact.ts';
import { type KeySet, readKeySet } from '../../tokens/key-set.ts';
import {
  type KeySetCopy,
  type KeySetStore,
  type RemoteKeySetOptions,
  remoteKeySet,
} from '../../tokens/remote-key-set.ts';
import { TokenError } from '../../tokens/token-error.ts';
import {
  claimedKind,
  type TokenKind,
  type Trust,
  type VerifiedToken,
  verifyToken,
} from '../../tokens/verify.ts';
import type { Profile } from '../profiles/profiles.ts';

/** The trusted issuers of a kind of token. */
export type TrustByKind = (kind: TokenKind) => Trust;

/**
 * Trust in a profile's services and no others: each kind of token from the service that issues it.
 *
 * @param keysOf the keys of an issuer, asked for once
 * @param now milliseconds since the Unix epoch
 */
export function trustIn(
  {
    baseUrl,
    portalUrl,
    authUrl,
    issuer = authUrl,
  }: Pick<Profile, 'baseUrl' | 'portalUrl' | 'authUrl' | 'issuer'>,
  keysOf: (issuer: string) => KeySet,
  now: () => number,
): TrustByKind {
  const from = (address?: string): [string, KeySet][] =>
    address === undefined ? [] : [[address, keysOf(address)]];
  const [connectivity, portal, identity] = [from(baseUrl), from(portalUrl), from(issuer)];
  const issuers = {
    connectivity,
    project: portal,
    experiment: portal,
    // The spec has the portal issue user tokens; the identity provider may be an issuer of its own.
    user: [...identity, ...portal],
    service: [...connectivity, ...portal, ...identity],
  };
  return (kind) => ({ issuers: new Map(issuers[kind]), now });
}

/** Trusts the issuers of both. */
export function union(one: TrustByKind, other: TrustByKind): TrustByKind {
  return (kind) => ({
    ...one(kind),
    issuers: new Map([...one(kind).issuers, ...other(kind).issuers]),
  });
}

/** An issuer's keys as they are kept on this machine, up to a day old: nothing is fetched (THREATS.md 26). */
export function keptKeys(
  issuer: string,
  {
    stored,
    now,
    onStale,
  }: Pick<Required<RemoteKeySetOptions>, 'now' | 'onStale'> & { stored: (url: string) => KeySetStore },
): KeySet {
  const url = issuerName(issuer) + KEY_SET_PATH;
  return remoteKeySet({
    url,
    store: stored(url),
    now,
    onStale,
    fetch: async () => {
      throw new TokenError(
        'keys_unreachable',
        `No copy of the key set at ${url} from the last 24 hours is on this machine, and --offline fetches none.`,
      );
    },
  });
}

/** The keys or the issuer to verify with, in place of the profile's services. */
export interface VerificationSource {
  /** The keys to use, for any issuer. */
  keys?: KeySet;
  /** The one issuer to accept. */
  issuer?: string;
}

/**
 * Verifies a token of any kind. Its issuer must be the one of the profile that issues such tokens, unless the
 * caller names another or brings the keys; then the token's own `iss` must still be the one named, where one
 * is.
 *
 * @param issuerKeys the keys of an issuer that the caller named
 * @throws TokenError with the reason
 */
export async function verifyAny(
  token: string,
  trust: TrustByKind,
  source: VerificationSource,
  issuerKeys: (issuer: string) => KeySet,
): Promise<VerifiedToken> {
  const { claims } = readCompact(token);
  const own = trust(claimedKind(claims));
  if (source.keys === undefined && source.issuer === undefined) return verifyToken(token, own);
  const issuer = source.issuer ?? String(claims['iss']);
  const keys = source.keys ?? issuerKeys(issuer);
  return verifyToken(token, { ...own, issuers: new Map([[issuer, keys]]) });
}

const KeptKeySet = v.object({
  version: v.literal(1),
  url: v.string(),
  /** When it was fetched, in milliseconds. */
  at: v.number(),
  /** How far the issuer's clock was ahead then, in milliseconds, and when the machine had started. */
  ahead: v.optional(v.number()),
  bootedAt: v.optional(v.number()),
  keys: v.array(v.unknown()),
});

/**
 * Key sets on disk, one private file for each address (cli/README.md, "Files"). They are public, but a user
 * who could change them could make a forged reservation verify: a file or folder that others can write to is
 * not used.
 *
 * A file that can't be read or written causes no failure: the keys are fetched.
 *
 * How far an issuer's clock was ahead counts until this machine's clock is set: then the machine seems to
 * have started at another time.
 *
 * @param cacheFolder the cache folder
 * @param bootedAt when this machine started, by its clock as it is now, in milliseconds. Default: clocks are
 *   not compared
 * @returns the store of a key set, by its address
 */
export function keySetFiles(cacheFolder: string, bootedAt?: () => number): (url: string) => KeySetStore {
  return (url) => {
    const name = `${createHash('sha256').update(url).digest('hex').slice(0, 32)}.json`;
    /** Its path, in folders that are checked. */
    const path = (): string => join(privateFolder(join(privateFolder(cacheFolder), 'key-sets')), name);
    return {
      read: () => orNothing(() => readKept(path(), url, bootedAt?.())),
      write: ({ document: { keys }, at, ahead }) => {
        const clock = ahead === undefined ? {} : { ahead, bootedAt: bootedAt?.() };
        const kept = JSON.stringify({ version: 1, url, at, ...clock, keys });
        orNothing(() => writePrivateFile(path(), `${kept}\n`));
      },
    };
  };
}

/** How far the start of the machine may seem to move while its clock is not set, in milliseconds. */
const SAME_START = 5000;

function readKept(path: string, url: string, bootedAt = Number.NaN): KeySetCopy | undefined {
  const reading = readJson(readPrivateFile(path) ?? '');
  const result = v.safeParse(KeptKeySet, reading.ok ? reading.value : undefined);
  if (!result.success || result.output.url !== url) return undefined;
  const { keys, at, ahead, bootedAt: before = Number.NaN } = result.output;
  const isSameClock = Math.abs(bootedAt - before) <= SAME_START;
  return { document: readKeySet({ keys }), at, ahead: isSameClock ? ahead : undefined };
}

function orNothing<Answer>(work: () => Answer): Answer | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
