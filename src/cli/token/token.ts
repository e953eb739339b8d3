import { join } from 'node:path';
import { LAST_SECOND } from '../../contract/claims.ts';
import { secondsIn } from '../../contract/durations.ts';
import { Failure } from '../../contract/failure.ts';
import type { OptionsOf, OptionTable } from '../../contract/flags.ts';
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
import type { CommandFile } from '../command.ts';
import type { Files } from '../context.ts';
import { type CardLine, valueText } from '../print/output.ts';
import { timeTeller } from '../times.ts';
import { checkedToken, readTokenFile } from '../tokens.ts';

/** `slices-conn token inspect [FILE|-]`: shows what a token claims, unverified. */
export const inspect: CommandFile = {
  command: { args: { '[file]': 'the token; - or nothing for standard input' } },
  async run(context, [file = '-']) {
    const token = await readTokenFile(context, file);
    const { header, claims } = await checkedToken(() => readCompact(token));
    const kind = claimedKind(claims);
    const tell = timeTeller(await context.clock.times());
    await context.output.result({ verified: false, kind, header, claims }, (print) => {
      const lines: CardLine[] = [
        ...Object.entries(header).map(([name, value]): CardLine => [`header ${name}`, valueText(value)]),
        ...Object.entries(claims).map(([name, value]): CardLine => [name, claimText(name, value, tell)]),
      ];
      return print.card(`${print.paint.yellow('not verified')}: claims to be ${kindText(kind)}`, lines);
    });
  },
};

const ISSUE_OPTIONS = {
  key: { flags: '--key <file>', help: 'private key: a JWK, or PKCS#8 in PEM', required: true },
  issuer: { flags: '--issuer <url>', help: 'the token’s iss', required: true },
  ttl: { flags: '--ttl <seconds>', help: 'lifetime (default: 900)', parse: wholeSeconds },
  sub: { flags: '--sub <subject>', help: 'the token’s sub' },
  aud: { flags: '--aud <audience>', help: 'the token’s aud' },
  claim: {
    flags: '--claim <name=value>',
    help: 'a further claim; the value is JSON where it can be; may be repeated',
    parse: addClaim,
  },
} as const satisfies OptionTable;

/** `slices-conn token issue --key FILE --issuer URL …`: signs a token with the person's own key (contract/README.md, "Authentication" 6). */
export const issue: CommandFile = {
  command: { options: ISSUE_OPTIONS },
  async run({ files, output, clock }, _args, flags: OptionsOf<typeof ISSUE_OPTIONS>) {
    const { issuer, ttl, claim, sub, aud } = flags;
    const key = await readKey(files, flags.key);
    const token = await createIssuer({ issuer, key, ttl, now: clock.now }).issue({
      ...claim,
      ...(sub === undefined ? {} : { sub }),
      ...(aud === undefined ? {} : { aud }),
    });
    output.text({ token, claims: readCompact(token).claims }, token);
  },
};

/** `slices-conn token keygen [--out DIR]`: makes a key pair and its key set. */
export const keygen: CommandFile = {
  command: { options: { out: { flags: '--out <dir>', help: 'where to write them', default: '.' } } },
  async run({ files, output }, _args, { out }: { out: string }) {
    const jwk = await generateSigningKey();
    const { publicJwk } = await importSigningKey(jwk);
    const [key, jwks] = [join(out, 'key.json'), join(out, 'jwks.json')];
    await files.makeFolder(out);
    // Replacing a key would lose it, and its tokens would not verify any more.
    for (const path of [key, jwks]) await files.checkAbsent(path);
    await files.writePrivate(key, `${JSON.stringify(jwk, null, 2)}\n`);
    await files.writePublic(jwks, `${JSON.stringify({ keys: [publicJwk] }, null, 2)}\n`);
    await output.result({ kid: DEFAULT_KID, key, jwks }, (print) =>
      print.card(`Made an ES256 key pair, kid ${DEFAULT_KID}`, [
        ['private', `${key} (keep it secret)`],
        ['public', jwks],
      ]),
    );
  },
};

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

function wholeSeconds(text: string): number {
  const value = secondsIn(text);
  if (Number.isInteger(value) && value >= 1 && value <= 999_999_999) return value;
  throw new RangeError('It must be a whole number of seconds, or a duration such as 1h.');
}

/** Claims that the issuer sets by itself, or that have a flag of their own. */
const RESERVED = ['iss', 'iat', 'exp', 'sub', 'aud'];

function addClaim(text: string, previous: Record<string, unknown> = {}): Record<string, unknown> {
  const at = text.indexOf('=');
  const name = text.slice(0, Math.max(at, 0));
  if (name === '') throw new RangeError('It must be name=value.');
  if (RESERVED.includes(name)) throw new RangeError(`${name} is set by a flag, not by --claim.`);
  const value = text.slice(at + 1);
  try {
    return { ...previous, [name]: JSON.parse(value) };
  } catch {
    return { ...previous, [name]: value };
  }
}
