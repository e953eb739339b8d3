import { Failure } from '../../contract/failure.ts';
import { readJson } from '../../contract/json.ts';
import type { Session } from '../../session/session.ts';
import { type KeySet, localKeySet, readKeySet } from '../../tokens/key-set.ts';
import { remoteKeySet } from '../../tokens/remote-key-set.ts';
import { TokenError } from '../../tokens/token-error.ts';
import type { VerifiedToken } from '../../tokens/verifier.ts';
import type { Invocation, UserFiles } from '../invocation.ts';
import type { CardLine, Printer } from '../output.ts';
import { reservationCard } from '../reservation-card.ts';
import { readTokenFile } from '../token-file.ts';
import { checkedToken } from '../verified-token.ts';

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
  const { output, files, times } = invocation;
  const token = await readTokenFile(files, file);
  const session = await invocation.session();
  const { jwks, issuer } = flags;
  const keys = jwks === undefined ? undefined : await keysFrom(jwks, files, session, () => times().now);
  const source = { ...(keys ? { keys } : {}), ...(issuer === undefined ? {} : { issuer }) };
  const verified = await checkedToken(() => session.verify(token, source));
  const reservation = verified.kind === 'connectivity' ? verified.claims.connectivity : null;
  const result = { verified: true, kind: verified.kind, claims: verified.claims, reservation };
  await output.result(result, (print) => verifiedCard(print, verified, token, times().now));
}

/** The keys that --jwks names: an address, or a file. */
async function keysFrom(
  source: string,
  files: UserFiles,
  { fetch }: Session,
  now: () => number,
): Promise<KeySet> {
  if (/^https?:/i.test(source)) return remoteKeySet({ url: source, fetch, now });
  const reading = readJson(await files.read(source));
  if (!reading.ok) throw new Failure('file_unusable', `The file ${source} is not JSON.`);
  try {
    return localKeySet(readKeySet(reading.value));
  } catch (error) {
    if (error instanceof TokenError) throw new Failure('file_unusable', `The file ${source} is no key set.`);
    throw error;
  }
}

function verifiedCard(print: Printer, verified: VerifiedToken, token: string, now: number): string {
  const { kind, claims } = verified;
  if (kind === 'connectivity') {
    const proven = { reservation: claims.connectivity, verified: true, token, claims };
    return reservationCard(print, 'Verified:', proven, { now });
  }
  const lines: CardLine[] = Object.entries(claims).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  return print.card(`${print.paint.green('verified')}: ${kind} token`, lines);
}
