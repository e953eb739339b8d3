import { type CryptoKey, errors, type JWTVerifyOptions, jwtVerify } from 'jose';
import * as v from 'valibot';
import { forIssuer, isServiceAddress } from '../contract/addresses.ts';
import {
  ConnectivityClaims,
  ExperimentClaims,
  ProjectClaims,
  ServiceClaims,
  UserClaims,
} from '../contract/claims.ts';
import { ID_PREFIXES, idKind } from '../contract/fields.ts';
import { isObject, withoutNulls } from '../contract/json.ts';
import { type CompactToken, readCompact } from './compact.ts';
import { type Algorithm, ISSUER_ALGORITHMS, type KeySet, SERVICE_ALGORITHMS } from './key-set.ts';
import { TokenError } from './token-error.ts';
import type { RememberedToken, VerifiedTokens } from './verified-tokens.ts';

/** How far `iat` may lie ahead of this machine's clock, in seconds (contract/README.md, "Tokens"). `exp` has no leeway. */
export const IAT_LEEWAY = 60;

/** The kinds of tokens: four told apart by their subject, and a service's own (contract/README.md, "Authentication" 6). */
export type TokenKind = 'user' | 'project' | 'experiment' | 'connectivity' | 'service';

/** A kind of token in a sentence. @example kindText('experiment') // 'an experiment token' */
export function kindText(kind: TokenKind): string {
  return `${kind === 'experiment' ? 'an' : 'a'} ${kind} token`;
}

/** Which issuers are trusted for one kind of token. */
export interface Trust {
  /** Each accepted `iss` with the keys it signs with; one slash at its end more or less is the same issuer. */
  issuers: ReadonlyMap<string, KeySet>;
  /** When set, `aud` must name it. */
  audience?: string;
  /** The ids of clients: a user token for one of them, without a scope, is an ID token; see `isIdToken`. */
  clients?: readonly string[];
  /** Milliseconds since the Unix epoch. Default: the machine's clock. */
  now?: () => number;
  /** Where tokens that verified are remembered. Default: nowhere. */
  verified?: VerifiedTokens;
}

/**
 * The kind that a token claims to be, by its subject's prefix; without one it is a service's own. A token with a reservation in it
 * is about that, whatever its subject: it must name it.
 */
export function claimedKind(claims: { sub?: unknown; [name: string]: unknown }): TokenKind {
  const kind = typeof claims.sub === 'string' ? idKind(claims.sub) : undefined;
  if (kind === undefined) return isObject(claims['connectivity']) ? 'connectivity' : 'service';
  return kind === 'reservation' ? 'connectivity' : kind;
}

type ClaimsSchema = v.GenericSchema<unknown, ServiceClaims>;

/** How a token of one kind is checked. */
export interface KindRules<Schema extends ClaimsSchema = ClaimsSchema> {
  kind: TokenKind;
  schema: Schema;
  /** The algorithms that may sign it. */
  algorithms: readonly Algorithm[];
  /** The `typ` that it must have. Default: none, or that of any JWT. */
  type?: RegExp;
}

/** The rules of each kind. A connectivity token may be signed with any asymmetric algorithm of its key's own type. */
export const KIND_RULES = {
  user: { kind: 'user', schema: UserClaims, algorithms: ISSUER_ALGORITHMS },
  project: { kind: 'project', schema: ProjectClaims, algorithms: ISSUER_ALGORITHMS },
  experiment: { kind: 'experiment', schema: ExperimentClaims, algorithms: ISSUER_ALGORITHMS },
  connectivity: { kind: 'connectivity', schema: ConnectivityClaims, algorithms: SERVICE_ALGORITHMS },
  service: { kind: 'service', schema: ServiceClaims, algorithms: ISSUER_ALGORITHMS },
} as const satisfies Readonly<Record<TokenKind, KindRules>>;

/**
 * Verifies a user token (contract/README.md, "User token"): ES256, a trusted issuer, the audience where one is set, the times,
 * and a subject that is a user.
 *
 * @throws TokenError with the reason
 */
export async function verifyUserToken(token: string, trust: Trust): Promise<UserClaims> {
  return verifyAs(KIND_RULES.user, token, trust);
}

/** Verifies a project token (contract/README.md, "Project token"). @throws TokenError with the reason */
export async function verifyProjectToken(token: string, trust: Trust): Promise<ProjectClaims> {
  return verifyAs(KIND_RULES.project, token, trust);
}

/** Verifies an experiment token (contract/README.md, "Getting an experiment token"). @throws TokenError with the reason */
export async function verifyExperimentToken(token: string, trust: Trust): Promise<ExperimentClaims> {
  return verifyAs(KIND_RULES.experiment, token, trust);
}

/**
 * Verifies a signed connectivity token (contract/README.md, "Signed connectivity token"): besides signature, issuer and times,
 * its subject must be the id of the reservation inside it.
 *
 * @param expected the reservation's id, where the caller asked for a certain one
 * @throws TokenError with the reason
 */
export async function verifyConnectivityToken(
  token: string,
  trust: Trust,
  expected?: string,
): Promise<ConnectivityClaims> {
  return aboutOneReservation(await verifyAs(KIND_RULES.connectivity, token, trust), expected);
}

/** Verifies a service's own token (contract/README.md, "Authentication" 6): `iss`, `iat`, `exp`. @throws TokenError with the reason */
export async function verifyServiceToken(token: string, trust: Trust): Promise<ServiceClaims> {
  return verifyAs(KIND_RULES.service, token, trust);
}

/** A token that verified, told apart by its kind. */
export type VerifiedToken =
  | { kind: 'user'; claims: UserClaims }
  | { kind: 'project'; claims: ProjectClaims }
  | { kind: 'experiment'; claims: ExperimentClaims }
  | { kind: 'connectivity'; claims: ConnectivityClaims }
  | { kind: 'service'; claims: ServiceClaims };

/** Verifies a token of the kind that its subject claims. @throws TokenError with the reason */
export async function verifyToken(token: string, trust: Trust): Promise<VerifiedToken> {
  const read = trust.verified?.find(token) ?? readCompact(token);
  const kind = claimedKind(read.claims);
  const claims = await verifyAs<ClaimsSchema>(KIND_RULES[kind], token, trust, read);
  const verified = { kind, claims } as VerifiedToken;
  if (verified.kind === 'connectivity') aboutOneReservation(verified.claims);
  return verified;
}

function aboutOneReservation(claims: ConnectivityClaims, expected = claims.sub): ConnectivityClaims {
  if (claims.sub !== claims.connectivity.id) {
    throw new TokenError('claims', `The token is about ${claims.sub}, but the reservation in it is another.`);
  }
  if (claims.sub !== expected) {
    throw new TokenError('claims', `The token is about ${claims.sub}, not about ${expected}.`);
  }
  return claims;
}

/**
 * Verifies a token by the rules of one kind.
 *
 * @param read the result of {@link readCompact} for this very token, or what is remembered of it, where the caller has that
 *   already
 * @throws TokenError with the reason
 */
export async function verifyAs<Schema extends ClaimsSchema>(
  rules: KindRules<Schema>,
  token: string,
  trust: Trust,
  read: CompactToken | RememberedToken = trust.verified?.find(token) ?? readCompact(token),
): Promise<v.InferOutput<Schema>> {
  const { schema } = rules;
  const isKnown = 'schema' in read;
  if (isKnown && (await isStillSound(read, schema, trust))) return read.claims as v.InferOutput<Schema>;
  // The full check gives the reason if the token is refused now.
  if (isKnown) trust.verified?.forget(token);
  const sound = await checkedToken(rules, token, trust, isKnown ? readCompact(token) : read);
  trust.verified?.keep(token, { ...sound, schema, audience: trust.audience });
  return sound.claims;
}

/** Whether what is remembered of a token holds: its time has not passed, and its issuer is trusted here with the same key. */
async function isStillSound(
  { schema, audience, claims, kid, algorithm, key }: RememberedToken,
  due: ClaimsSchema,
  trust: Trust,
): Promise<boolean> {
  const now = (trust.now ?? Date.now)() / 1000;
  const begins = Math.max(claims.iat, claims.nbf ?? 0) - IAT_LEEWAY;
  if (schema !== due || audience !== trust.audience || now < begins || now >= claims.exp) return false;
  const keys = forIssuer(trust.issuers, claims.iss);
  return (await keys?.find(kid, algorithm).catch(() => undefined)) === key;
}

/** What a token's signature was made with. */
type Signature = Pick<RememberedToken, 'kid' | 'algorithm' | 'key'>;

async function checkedToken<Schema extends ClaimsSchema>(
  { kind, schema, algorithms, type }: KindRules<Schema>,
  token: string,
  trust: Trust,
  { header, claims: found }: CompactToken,
): Promise<Signature & { claims: v.InferOutput<Schema> }> {
  if (header['crit'] !== undefined || header['b64'] !== undefined) {
    throw new TokenError('malformed', 'The token needs an extension that is not supported (crit, b64).');
  }
  checkType(header['typ'], type);
  const { iss } = found;
  const keys = typeof iss === 'string' ? forIssuer(trust.issuers, iss) : undefined;
  if (!keys) {
    const due = [...trust.issuers.keys()].join(' or ');
    throw new TokenError(
      'issuer',
      `The token's issuer is not trusted for this kind of token. Trusted is ${due}.`,
    );
  }
  checkKind(kind, header, found, trust);
  const asIs = v.safeParse(schema, found);
  // Many issuers write null for a claim that is absent.
  const result = asIs.success ? asIs : v.safeParse(schema, withoutNulls(found));
  if (!result.success) {
    const [issue] = result.issues;
    throw new TokenError('claims', `The token's claim ${v.getDotPath(issue) ?? ''} is missing or wrong.`);
  }
  const claims = result.output;
  const now = (trust.now ?? Date.now)();
  // Of the portal's tokens only the user's has an audience in the API as it is given; an audience in another one must fit too.
  const isAddressed = kind === 'service' || kind === 'user' || claims['aud'] !== undefined;
  try {
    const signed = await signatureOf(token, keys, {
      algorithms: [...algorithms],
      issuer: claims.iss,
      ...(trust.audience === undefined || !isAddressed ? {} : { audience: spellings(trust.audience) }),
      requiredClaims: ['iat', 'exp'],
      currentDate: new Date(now),
      clockTolerance: IAT_LEEWAY,
    });
    checkTimes(claims, now);
    return { claims, ...signed };
  } catch (error) {
    throw refused(error, claims, algorithms, trust);
  }
}

/** @throws TokenError `kind` */
function checkKind(
  kind: TokenKind,
  header: CompactToken['header'],
  claims: CompactToken['claims'],
  { clients }: Trust,
): void {
  const claimed = claimedKind(claims);
  if (claimed !== kind) {
    if (kind === 'service')
      throw new TokenError('kind', `This is ${kindText(claimed)}, not a service's own.`);
    const subject = kind === 'connectivity' ? 'reservation' : kind;
    throw new TokenError('kind', `The token's subject is not a ${subject} (${ID_PREFIXES[subject]}_…).`);
  }
  if (kind === 'user' && isIdToken(header, claims, clients)) {
    throw new TokenError(
      'kind',
      'The token is an ID token: it says who logged in, and is not an access token.',
    );
  }
}

/** Portal tokens carry `JWT` or no type; an access token of RFC 9068 says so (RFC 8725 §3.11). */
function checkType(typ: unknown, due?: RegExp): void {
  if (typ === undefined && !due) return;
  if (typeof typ === 'string' && (due ?? /^(?:application\/)?(?:at\+)?jwt$/i).test(typ)) return;
  throw new TokenError('kind', 'The token has an unknown type (typ).');
}

/** The issuer's key, which made the token's signature. @throws TokenError; what jose throws */
async function signatureOf(token: string, keys: KeySet, options: JWTVerifyOptions): Promise<Signature> {
  let signed: Signature | undefined;
  const find = async ({ kid, alg }: { kid?: unknown; alg: string }): Promise<CryptoKey> => {
    if (kid !== undefined && typeof kid !== 'string') {
      throw new TokenError('key_unknown', "The token's key id (kid) is not a text.");
    }
    // jose has checked that it is one of those that are allowed.
    const algorithm = alg as Algorithm;
    signed = { kid, algorithm, key: await keys.find(kid, algorithm) };
    return signed.key;
  };
  const verify = (key: typeof find): Promise<unknown> =>
    jwtVerify(token, key, options).catch((error: unknown) => {
      if (!isNullStart(error)) throw error;
    });
  try {
    await verify(find);
  } catch (error) {
    if (!(error instanceof errors.JWSSignatureVerificationFailed) || !signed) throw error;
    const other = await keys.findOther?.(signed.kid, signed.algorithm, signed.key);
    if (!other) throw error;
    await verify(async () => other);
    signed.key = other;
  }
  if (!signed) throw new TokenError('key_unknown', 'The token names no key (kid).');
  const { modulusLength: bits }: { name: string; modulusLength?: number } = signed.key.algorithm;
  // OpenSSL takes one of RSA-PSS without the zero bytes at its start too (RFC 8017 §8.1.2). It has whole bytes, in base64url.
  const due = bits === undefined ? undefined : Math.ceil((Math.ceil(bits / 8) * 4) / 3);
  if (due !== undefined && token.length - token.lastIndexOf('.') - 1 !== due)
    throw new errors.JWSSignatureVerificationFailed();
  return signed;
}

/** Whether all that jose found is an `nbf` of null, as some issuers write where there is none. It looks at it after the others but `exp`. */
function isNullStart(error: unknown): boolean {
  if (!(error instanceof errors.JWTClaimValidationFailed)) return false;
  return error.claim === 'nbf' && error.reason === 'invalid' && error.payload.nbf === null;
}

/** What is thrown for a token that jose refused. The cause does not go with it: it holds the claims. */
function refused(
  error: unknown,
  { aud, exp, nbf = 0 }: ServiceClaims,
  algorithms: readonly Algorithm[],
  { audience, now = Date.now }: Trust,
): unknown {
  // What a key set says, which may be of another bundle than this one.
  if (!(error instanceof errors.JOSEError || error instanceof TypeError)) return error;
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return new TokenError(
      'signature',
      "The token's signature is wrong: the token was changed or signed by another key. Was the server restarted with new keys?",
    );
  }
  // Its form was read already: what jose finds missing is the algorithm.
  if (error instanceof errors.JOSEAlgNotAllowed || error instanceof errors.JWSInvalid)
    return new TokenError('algorithm', `The token is not signed with ${algorithms.join(', ')}.`);
  if (error instanceof errors.JWTExpired) return expired(exp, now());
  if (!(error instanceof errors.JWTClaimValidationFailed))
    return new TokenError('malformed', "The issuer's key can't be used for this token.", { cause: error });
  if (error.claim === 'nbf' && error.reason === 'check_failed')
    return new TokenError('not_yet', `The token is not valid before ${new Date(nbf * 1000).toISOString()}.`);
  if (error.claim !== 'aud')
    return new TokenError('claims', `The token's claim ${error.claim} is missing or wrong.`);
  const named = [aud].flat().find((one) => typeof one === 'string' && isServiceAddress(one));
  const is =
    named === undefined ? `is not meant for ${audience}` : `is meant for ${named}, not for ${audience}`;
  return new TokenError('audience', `The token ${is}.`);
}

const expired = (exp: number, now: number): TokenError =>
  new TokenError('expired', `The token expired ${Math.ceil(now / 1000 - exp)} s ago.`, {
    expiresAt: exp * 1000,
  });

/** What jose leaves open: an `iat` in the future, and `exp` without leeway, to the millisecond. */
function checkTimes({ iat, exp }: ServiceClaims, now: number): void {
  const seconds = now / 1000;
  if (iat > seconds + IAT_LEEWAY) {
    const ahead = Math.round(iat - seconds);
    throw new TokenError(
      'not_yet',
      `The token was issued ${ahead} s in the future, by this machine's clock (${new Date(now).toISOString()}). Is the clock right?`,
    );
  }
  if (exp <= seconds) throw expired(exp, now);
  if (exp <= iat) throw new TokenError('claims', 'The token expires before it was issued.');
}

/** An audience that is an origin, with a slash at its end and without, which says nothing there (RFC 3986 §6.2.3). */
function spellings(audience: string): string[] {
  const [, origin] = /^(https?:\/\/[^/?#]+)\/?$/.exec(audience) ?? [];
  return origin === undefined ? [audience] : [origin, `${origin}/`];
}

/** Claims that only an ID token has (OpenID Connect Core 1.0 §2, §3.3.2.11). */
const ID_TOKEN_CLAIMS = ['at_hash', 'c_hash', 's_hash', 'nonce'] as const;

/**
 * Whether a signed token is an ID token: it tells a client who logged in, and gives access to nothing (OpenID Connect
 * Core 1.0 §2). Providers sign both with one key, so that only what they say tells them apart. The first row that fits
 * decides.
 *
 * | the token has                                                       | it is       |
 * |---------------------------------------------------------------------|-------------|
 * | header `typ` `at+jwt` (RFC 9068 §2.1)                               | access token |
 * | claim `typ` `Bearer`, `ID` (Keycloak)                               | access, ID token |
 * | claim `at_hash`, `c_hash`, `s_hash` or `nonce`                      | ID token    |
 * | claim `scope` or `scp`                                              | access token |
 * | an `aud` that names the client it was issued to: `azp`, or `clients` | ID token    |
 * | nothing of it                                                       | access token |
 *
 * @param clients the client ids that are known here
 */
export function isIdToken(
  header: Readonly<Record<string, unknown>>,
  claims: Readonly<Record<string, unknown>>,
  clients: readonly string[] = [],
): boolean {
  if (typeof header['typ'] === 'string' && /^(?:application\/)?at\+jwt$/i.test(header['typ'])) return false;
  if (claims['typ'] === 'Bearer') return false;
  if (claims['typ'] === 'ID' || ID_TOKEN_CLAIMS.some((name) => Object.hasOwn(claims, name))) return true;
  if ((claims['scope'] ?? claims['scp'] ?? undefined) !== undefined) return false;
  const { aud, azp } = claims;
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  return audiences.some(
    (audience) => typeof audience === 'string' && (audience === azp || clients.includes(audience)),
  );
}
