import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { Failure } from '../../contract/failure.ts';
import { readCompact } from '../../tokens/compact.ts';
import { createIssuer, DEFAULT_TTL } from '../../tokens/issuer.ts';
import {
  DEFAULT_KID,
  generateSigningKey,
  importSigningKey,
  KeyFormatError,
  type SigningKey,
} from '../../tokens/signing-key.ts';
import { claimedKind } from '../../tokens/verify.ts';
import type { Invocation, Invoke, UserFiles } from '../invocation.ts';
import type { CardLine } from '../output.ts';
import { formatTime } from '../times.ts';
import { readTokenFile } from '../token-file.ts';
import { checkedToken } from '../verified-token.ts';

interface IssueFlags {
  key: string;
  issuer: string;
  ttl: number;
  sub?: string;
  aud?: string;
  claim?: Record<string, unknown>;
}

/** `slices-conn token inspect | issue | keygen`: tokens of one's own (SPEC.md, "Authentication" 6). */
export function tokenCommand(invoke: Invoke): Command {
  const command = new Command('token').summary('look into tokens; issue your own');
  command.addCommand(
    new Command('inspect')
      .summary('show what a token claims, without verifying it')
      .argument('[file]', 'the token; - or nothing for standard input')
      .action(invoke(inspect)),
  );
  command.addCommand(
    new Command('issue')
      .summary('sign a token with your own key (ES256)')
      .requiredOption('--key <file>', 'private key: a JWK, or PKCS#8 in PEM')
      .requiredOption('--issuer <url>', 'the token’s iss')
      .option('--ttl <seconds>', 'lifetime', wholeSeconds, DEFAULT_TTL)
      .option('--sub <subject>', 'the token’s sub')
      .option('--aud <audience>', 'the token’s aud')
      .option(
        '--claim <name=value>',
        'a further claim; the value is JSON where it can be; may be repeated',
        addClaim,
      )
      .action(invoke<IssueFlags>(issue)),
  );
  command.addCommand(
    new Command('keygen')
      .summary('make a key pair: key.json (private) and jwks.json (public)')
      .option('--out <dir>', 'where to write them', '.')
      .action(invoke<{ out: string }>(keygen)),
  );
  return command.addHelpText(
    'after',
    `
Examples:
  slices-conn token keygen --out keys
  slices-conn token issue --key keys/key.json --issuer https://svc.example.org --sub robot --claim admin=true
  slices-conn token issue --key keys/key.json --issuer https://svc.example.org |
    slices-conn verify --jwks keys/jwks.json --issuer https://svc.example.org`,
  );
}

async function inspect({ files, output, times }: Invocation, [file = '-']: readonly string[]): Promise<void> {
  const token = await readTokenFile(files, file);
  const { header, claims } = await checkedToken(() => readCompact(token));
  const kind = claimedKind(claims);
  await output.result({ verified: false, kind, header, claims }, (print) => {
    const lines: CardLine[] = [
      ...Object.entries(header).map(([name, value]): CardLine => [`header ${name}`, shown(value)]),
      ...Object.entries(claims).map(([name, value]): CardLine => [name, claimText(name, value, times().now)]),
    ];
    return print.card(`${print.paint.yellow('not verified')}: claims to be a ${kind} token`, lines);
  });
}

async function issue(
  { files, output, times }: Invocation,
  _args: readonly string[],
  flags: IssueFlags,
): Promise<void> {
  const key = await readKey(files, flags.key);
  const issuer = createIssuer({ issuer: flags.issuer, key, ttl: flags.ttl, now: () => times().now });
  const token = await issuer.issue({
    ...flags.claim,
    ...(flags.sub === undefined ? {} : { sub: flags.sub }),
    ...(flags.aud === undefined ? {} : { aud: flags.aud }),
  });
  output.text({ token, claims: readCompact(token).claims }, token);
}

async function keygen(
  { files, output }: Invocation,
  _args: readonly string[],
  { out }: { out: string },
): Promise<void> {
  const jwk = await generateSigningKey();
  const { publicJwk } = await importSigningKey(jwk);
  const keyFile = join(out, 'key.json');
  const keySetFile = join(out, 'jwks.json');
  await files.writePrivate(keyFile, `${JSON.stringify(jwk, null, 2)}\n`);
  await files.writePublic(keySetFile, `${JSON.stringify({ keys: [publicJwk] }, null, 2)}\n`);
  await output.result({ kid: DEFAULT_KID, key: keyFile, jwks: keySetFile }, (print) =>
    print.card(`Made an ES256 key pair, kid ${DEFAULT_KID}`, [
      ['private', `${keyFile} (keep it secret)`],
      ['public', keySetFile],
    ]),
  );
}

async function readKey(files: UserFiles, path: string): Promise<SigningKey> {
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

function wholeSeconds(text: string): number {
  if (/^[1-9][0-9]{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of seconds.');
}

/** Claims that the issuer sets by itself, or that have a flag of their own. */
const RESERVED = ['iss', 'iat', 'exp', 'sub', 'aud'];

function addClaim(text: string, previous: Record<string, unknown> = {}): Record<string, unknown> {
  const at = text.indexOf('=');
  const name = text.slice(0, Math.max(at, 0));
  if (name === '') throw new InvalidArgumentError('It must be name=value.');
  if (RESERVED.includes(name)) throw new InvalidArgumentError(`${name} is set by a flag, not by --claim.`);
  const value = text.slice(at + 1);
  try {
    return { ...previous, [name]: JSON.parse(value) };
  } catch {
    return { ...previous, [name]: value };
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function claimText(name: string, value: unknown, now: number): string {
  const isTime = ['iat', 'exp', 'nbf', 'auth_time'].includes(name) && typeof value === 'number';
  // Beyond this a Date can't hold the value.
  return isTime && Math.abs(value) < 8.64e12 ? formatTime(value * 1000, now) : shown(value);
}
