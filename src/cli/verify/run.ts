import { Failure, shellWord } from '../../contract/failure.ts';
import { readJson } from '../../contract/json.ts';
import { isProtected, UNPROTECTED } from '../../contract/loopback.ts';
import { OFFLINE_URL } from '../../session/profiles/profile-keys.ts';
import type { Session } from '../../session/session.ts';
import { claimedClaims } from '../../tokens/claimed.ts';
import { type KeySet, localKeySet, readKeySet } from '../../tokens/key-set.ts';
import { remoteKeySet } from '../../tokens/remote-key-set.ts';
import { TokenError } from '../../tokens/token-error.ts';
import { claimedKind, type VerifiedToken } from '../../tokens/verify.ts';
import type { Invocation } from '../invocation.ts';
import { reservationCard } from '../print/cards.ts';
import { type CardLine, type Printer, valueText } from '../print/output.ts';
import type { TimeContext } from '../times.ts';
import { readTokenFile } from '../tokens.ts';
import type { Files } from '../world.ts';
import { sessionForTokens, verifySaved } from './saved-token.ts';

/** The flags of the command, as typed. */
export interface VerifyFlags {
  jwks?: string;
  issuer?: string;
}

/** Verifies a token of any kind. */
export async function verify(
  invocation: Invocation,
  [file = '-']: readonly string[],
  flags: VerifyFlags,
): Promise<void> {
  const { output, files, now } = invocation;
  const token = await readTokenFile(invocation, file);
  const { offline = false } = invocation.flags;
  const session = await sessionForTokens(invocation);
  const { jwks, issuer } = flags;
  if (offline && jwks !== undefined && isAddress(jwks) && !jwks.startsWith(`${OFFLINE_URL}/`)) {
    throw new Failure('usage', '--offline fetches no key set.', {
      why: `${jwks} is an address; give a file, or leave --offline out.`,
    });
  }
  const keys = jwks === undefined ? undefined : await keysFrom(jwks, files, session, now);
  const source = { keys, issuer };
  const verified = await verifySaved(invocation, session, token, { source }).catch((error: unknown) => {
    throw withIssuer(error, token, session.profile.name);
  });
  const reservation = verified.kind === 'connectivity' ? verified.claims.connectivity : null;
  const result = { verified: true, kind: verified.kind, claims: verified.claims, reservation };
  const times = await invocation.times();
  await output.result(result, (print) => verifiedCard(print, verified, token, times));
}

/** Adds the claimed issuer to a failure about the issuer: a verifier's own messages repeat no claim. */
function withIssuer(error: unknown, token: string, profile: string): unknown {
  if (!(error instanceof Failure && error.cause instanceof TokenError && error.cause.code === 'issuer'))
    return error;
  const { iss, ...claims } = claimedClaims(token);
  const key =
    claimedKind(claims) === 'user' ? `, or slices-conn profile set ${shellWord(profile)} issuer=URL` : '';
  return error.with({
    why: `${error.cause.message} The token says ${JSON.stringify(iss)}. To accept that issuer: --issuer URL${key}.`,
  });
}

function isAddress(source: string): boolean {
  return /^https?:/i.test(source);
}

/** The keys that --jwks names: an address, or a file. */
async function keysFrom(
  source: string,
  files: Files,
  { send, profile }: Session,
  now: () => number,
): Promise<KeySet> {
  const isOwn = source.startsWith(`${OFFLINE_URL}/`);
  if (
    isAddress(source) &&
    !isOwn &&
    !(URL.canParse(source) && isProtected(new URL(source), profile.insecure))
  ) {
    throw new Failure('usage', `${source} is not an https address.`, { why: UNPROTECTED });
  }
  // The session's way has a limit of its own, which --timeout sets.
  if (isAddress(source)) return remoteKeySet({ url: source, send, timeout: Number.POSITIVE_INFINITY, now });
  const reading = readJson(await files.read(source));
  if (!reading.ok) throw new Failure('file_unusable', `The file ${source} is not JSON.`);
  try {
    return localKeySet(readKeySet(reading.value));
  } catch (error) {
    if (error instanceof TokenError)
      throw new Failure('file_unusable', `The file ${source} is not a key set.`);
    throw error;
  }
}

function verifiedCard(print: Printer, verified: VerifiedToken, token: string, times: TimeContext): string {
  const { kind, claims } = verified;
  if (kind === 'connectivity') {
    const proven = { reservation: claims.connectivity, verified: true, token, claims };
    return reservationCard(print, 'Verified:', proven, { times });
  }
  const lines: CardLine[] = Object.entries(claims).map(([name, value]) => [name, valueText(value)]);
  return print.card(`${print.paint.green('verified')}: ${kind} token`, lines);
}
