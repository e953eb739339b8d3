import { type CryptoKey, compactVerify, errors } from 'jose';
import * as v from 'valibot';
import {
  type ConnectivityClaims,
  ConnectivityClaimsReply,
  ExperimentClaims,
  ProjectClaims,
  ServiceClaims,
  UserClaims,
} from '../contract/claims.ts';
import { ID_PREFIXES, idKind } from '../contract/ids.ts';
import { forIssuer, isServiceAddress, sameIssuer } from '../contract/issuer-address.ts';
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

function rules<Schema extends ClaimsSchema>(
  kind: TokenKind,
  schema: Schema,
  algorithms: readonly Algorithm[] = ISSUER_ALGORITHMS,
): KindRules<Schema> {
  return { kind, schema, algorithms };
}

/** The rules of each kind. A connectivity token may be signed with any asymmetric algorithm of its key's own type. */
export const KIND_RULES = {
  user: rules('user', UserClaims),
  project: rules('project', ProjectClaims),
  experiment: rules('experiment', ExperimentClaims),
  connectivity: rules('connectivity', ConnectivityClaimsReply, SERVICE_ALGORITHMS),
  service: rules('service', ServiceClaims),
};

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
  const read = readCompact(token);
  const kind = claimedKind(read.claims);
  switch (kind) {
    case 'user':
      return { kind, claims: await verifyAs(KIND_RULES.user, token, trust, read) };
    case 'project':
      return { kind, claims: await verifyAs(KIND_RULES.project, token, trust, read) };
    case 'experiment':
      return { kind, claims: await verifyAs(KIND_RULES.experiment, token, trust, read) };
    case 'connectivity':
      return {
        kind,
        claims: aboutOneReservation(await verifyAs(KIND_RULES.connectivity, token, trust, read)),
      };
    case 'service':
      return { kind, claims: await verifyAs(KIND_RULES.service, token, trust, read) };
  }
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
  read?: CompactToken | RememberedToken,
): Promise<v.InferOutput<Schema>> {
  const { kind, schema } = rules;
  const [parts, found] = read && 'schema' in read ? [undefined, read] : [read, trust.verified?.find(token)];
  const known = found && (await stillSound(found, schema, token, trust));
  const sound = known ?? (await checkedToken(rules, token, trust, parts ?? readCompact(token)));
  const { claims } = sound;
  checkTimes(claims, (trust.now ?? Date.now)());
  // Of the portal's tokens only the user's has an audience in the API as it is given; an audience in another one must fit too.
  const aud = claims['aud'];
  const isAddressed = kind === 'service' || kind === 'user' || aud !== undefined;
  const { audience: due } = trust;
  if (due !== undefined && isAddressed && !audiences(aud).some((found) => sameAudience(found, due))) {
    const named = audiences(aud).find((found) => typeof found === 'string' && isServiceAddress(found));
    const is = named === undefined ? `is not meant for ${due}` : `is meant for ${named}, not for ${due}`;
    throw new TokenError('audience', `The token ${is}.`);
  }
  if (!known) trust.verified?.keep(token, { ...sound, schema });
  return claims;
}

/** The facts of a token that are remembered as long as its issuer is trusted here and publishes the same key. */
async function stillSound<Schema extends ClaimsSchema>(
  known: RememberedToken,
  schema: Schema,
  token: string,
  { verified, issuers, now = Date.now }: Trust,
): Promise<Signed<Schema> | undefined> {
  if (known.schema !== schema) return undefined;
  const { claims, kid, algorithm, key } = known;
  const isCurrent = claims.exp > now() / 1000;
  const found = isCurrent
    ? await forIssuer(issuers, claims.iss)
        ?.find(kid, algorithm)
        .catch(() => undefined)
    : undefined;
  if (found === key) return known as Signed<Schema>;
  // The full check that follows gives the reason if the token is refused now.
  verified?.forget(token);
  return undefined;
}

/** A token whose signature is sound and whose claims have their form. */
interface Signed<Schema extends ClaimsSchema> {
  claims: v.InferOutput<Schema>;
  kid: string | undefined;
  algorithm: Algorithm;
  key: CryptoKey;
}

async function checkedToken<Schema extends ClaimsSchema>(
  { kind, schema, algorithms, type }: KindRules<Schema>,
  token: string,
  trust: Trust,
  { header, claims }: CompactToken,
): Promise<Signed<Schema>> {
  checkExtensions(header);
  const algorithm = algorithms.find((allowed) => allowed === header['alg']);
  if (algorithm === undefined) {
    throw new TokenError('algorithm', `The token is not signed with ${algorithms.join(', ')}.`);
  }
  checkType(header['typ'], type);
  const keys = typeof claims['iss'] === 'string' ? forIssuer(trust.issuers, claims['iss']) : undefined;
  if (!keys) {
    const due = [...trust.issuers.keys()].join(' or ');
    throw new TokenError(
      'issuer',
      `The token's issuer is not trusted for this kind of token. Trusted is ${due}.`,
    );
  }
  const kid = header['kid'];
  if (kid !== undefined && typeof kid !== 'string') {
    throw new TokenError('key_unknown', "The token's key id (kid) is not a text.");
  }
  const key = await signingKey(token, keys, kid, algorithm);

  const claimed = claimedKind(claims);
  if (claimed !== kind) {
    if (kind === 'service')
      throw new TokenError('kind', `This is ${kindText(claimed)}, not a service's own.`);
    const subject = kind === 'connectivity' ? 'reservation' : kind;
    throw new TokenError('kind', `The token's subject is not a ${subject} (${ID_PREFIXES[subject]}_…).`);
  }
  if (kind === 'user' && isIdToken(header, claims, trust.clients)) {
    throw new TokenError(
      'kind',
      'The token is an ID token: it says who logged in, and is not an access token.',
    );
  }
  const asIs = v.safeParse(schema, claims);
  // Many issuers write null for a claim that is absent.
  const result = asIs.success ? asIs : v.safeParse(schema, withoutNulls(claims));
  if (!result.success) {
    const [issue] = result.issues;
    throw new TokenError('claims', `The token's claim ${v.getDotPath(issue) ?? ''} is missing or wrong.`);
  }
  return { claims: result.output, kid, algorithm, key };
}

/** Portal tokens carry `JWT` or no type; an access token of RFC 9068 says so (RFC 8725 §3.11). */
function checkType(typ: unknown, due?: RegExp): void {
  if (typ === undefined && !due) return;
  if (typeof typ === 'string' && (due ?? /^(?:application\/)?(?:at\+)?jwt$/i).test(typ)) return;
  throw new TokenError('kind', 'The token has an unknown type (typ).');
}

/** Extensions are not supported, so a token must not name one as critical (RFC 7515 §4.1.11; RFC 7797 §7). */
function checkExtensions(header: CompactToken['header']): void {
  if (header['b64'] !== undefined) {
    throw new TokenError('malformed', 'An unencoded payload is not supported.');
  }
  if (header['crit'] !== undefined) {
    throw new TokenError('malformed', 'The token needs an extension that is not supported (crit).');
  }
}

/** The issuer's key, which made the token's signature. @throws TokenError */
async function signingKey(
  token: string,
  keys: KeySet,
  kid: string | undefined,
  algorithm: Algorithm,
): Promise<CryptoKey> {
  const key = await keys.find(kid, algorithm);
  try {
    await checkSignature(token, key, algorithm);
    return key;
  } catch (error) {
    if (!(error instanceof TokenError) || error.code !== 'signature') throw error;
    const other = await keys.findOther?.(kid, algorithm, key);
    if (!other) throw error;
    await checkSignature(token, other, algorithm);
    return other;
  }
}

async function checkSignature(token: string, key: CryptoKey, algorithm: Algorithm): Promise<void> {
  try {
    await compactVerify(token, key, { algorithms: [algorithm] });
  } catch (cause) {
    if (cause instanceof errors.JWSSignatureVerificationFailed) {
      throw new TokenError(
        'signature',
        "The token's signature is wrong: the token was changed or signed by another key. Was the server restarted with new keys?",
      );
    }
    throw new TokenError('malformed', "The issuer's key can't be used for this token.", { cause });
  }
}

function checkTimes({ iat, exp, nbf = 0 }: ServiceClaims, now: number): void {
  const seconds = now / 1000;
  if (iat > seconds + IAT_LEEWAY) {
    const ahead = Math.round(iat - seconds);
    throw new TokenError(
      'not_yet',
      `The token was issued ${ahead} s in the future, by this machine's clock (${new Date(now).toISOString()}). Is the clock right?`,
    );
  }
  if (nbf > seconds + IAT_LEEWAY) {
    throw new TokenError('not_yet', `The token is not valid before ${new Date(nbf * 1000).toISOString()}.`);
  }
  if (exp <= seconds) {
    throw new TokenError('expired', `The token expired ${Math.ceil(seconds - exp)} s ago.`, {
      expiresAt: exp * 1000,
    });
  }
  if (exp <= iat) throw new TokenError('claims', 'The token expires before it was issued.');
}

/** Whether a token's audience is the due one. Both may be one origin, where a slash at the end says nothing (RFC 3986 §6.2.3). */
function sameAudience(found: unknown, due: string): boolean {
  const isOrigin = /^https?:\/\/[^/?#]+\/?$/.test(due);
  return found === due || (typeof found === 'string' && isOrigin && sameIssuer(found, due));
}

function audiences(aud: unknown): unknown[] {
  return Array.isArray(aud) ? aud : [aud];
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
