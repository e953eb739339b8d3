import { join } from 'node:path';
import { LAST_SECOND } from '../../contract/claims.ts';
import { Failure } from '../../contract/failure.ts';
import { readCompact } from '../../tokens/compact.ts';
import { createIssuer } from '../../tokens/issuer.ts';
import {
  DEFAULT_KID,
  generateSigningKey,
  importSigningKey,
  KeyFormatError,
  type SigningKey,
} from '../../tokens/signing-key.ts';
import { claimedKind, kindText } from '../../tokens/verify.ts';
import type { Context, Files } from '../context.ts';
import { type CardLine, valueText } from '../print/output.ts';
import { timeTeller } from '../times.ts';
import { checkedToken, readTokenFile } from '../tokens.ts';

/** The flags of the command, as typed. */
export interface IssueFlags {
  key: string;
  issuer: string;
  /** Seconds. */
  ttl?: number;
  sub?: string;
  aud?: string;
  claim?: Record<string, unknown>;
}

/** Shows what a token claims, unverified. */
export async function inspect(context: Context, [file = '-']: readonly string[]): Promise<void> {
  const {
    output,
    clock: { times },
  } = context;
  const token = await readTokenFile(context, file);
  const { header, claims } = await checkedToken(() => readCompact(token));
  const kind = claimedKind(claims);
  const shown = await times();
  await output.result({ verified: false, kind, header, claims }, (print) => {
    const tell = timeTeller(shown);
    const lines: CardLine[] = [
      ...Object.entries(header).map(([name, value]): CardLine => [`header ${name}`, valueText(value)]),
      ...Object.entries(claims).map(([name, value]): CardLine => [name, claimText(name, value, tell)]),
    ];
    return print.card(`${print.paint.yellow('not verified')}: claims to be ${kindText(kind)}`, lines);
  });
}

/** Signs a token with the person's own key. */
export async function issue(
  { files, output, clock: { now } }: Context,
  _args: readonly string[],
  flags: IssueFlags,
): Promise<void> {
  const key = await readKey(files, flags.key);
  const issuer = createIssuer({
    issuer: flags.issuer,
    key,
    ttl: flags.ttl,
    now,
  });
  const token = await issuer.issue({
    ...flags.claim,
    ...(flags.sub === undefined ? {} : { sub: flags.sub }),
    ...(flags.aud === undefined ? {} : { aud: flags.aud }),
  });
  output.text({ token, claims: readCompact(token).claims }, token);
}

/** Makes a key pair and its key set. */
export async function keygen(
  { files, output }: Context,
  _args: readonly string[],
  { out }: { out: string },
): Promise<void> {
  const jwk = await generateSigningKey();
  const { publicJwk } = await importSigningKey(jwk);
  const keyFile = join(out, 'key.json');
  const keySetFile = join(out, 'jwks.json');
  await files.makeFolder(out);
  // Replacing a key would lose it, and its tokens would not verify any more.
  for (const path of [keyFile, keySetFile]) await files.checkAbsent(path);
  await files.writePrivate(keyFile, `${JSON.stringify(jwk, null, 2)}\n`);
  await files.writePublic(keySetFile, `${JSON.stringify({ keys: [publicJwk] }, null, 2)}\n`);
  await output.result({ kid: DEFAULT_KID, key: keyFile, jwks: keySetFile }, (print) =>
    print.card(`Made an ES256 key pair, kid ${DEFAULT_KID}`, [
      ['private', `${keyFile} (keep it secret)`],
      ['public', keySetFile],
    ]),
  );
}

async function readKey(files: Files, path: string): Promise<SigningKey> {
  const text = new TextDecoder().decode(await files.read(path));
  try {
    return await importSigningKey(text);
  } catch (error) {
    if (!(error instanceof KeyFormatError)) throw error;
    throw new Failure('file_unusable', `The file ${path} can't be used as a key.`, {
      why: error.message,
      fix: 'slices-conn token keygen',
    });
  }
}

function claimText(name: string, value: unknown, tell: (instant: number) => string): string {
  const isTime = ['iat', 'exp', 'nbf', 'auth_time'].includes(name) && typeof value === 'number';
  // Beyond this a Date can't hold the value.
  return isTime && Math.abs(value) < LAST_SECOND ? tell(value * 1000) : valueText(value);
}
