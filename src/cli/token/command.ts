import { Command, InvalidArgumentError } from 'commander';
import { secondsIn } from '../../contract/durations.ts';
import type { Invoke } from '../context.ts';
import type { IssueFlags } from './run.ts';

/** `slices-conn token inspect | issue | keygen` (contract/README.md, "Authentication" 6). */
export function tokenCommand(invoke: Invoke): Command {
  const command = new Command('token').summary('look into tokens; issue your own');
  command
    .command('inspect')
    .summary('show what a token claims, without verifying it')
    .argument('[file]', 'the token; - or nothing for standard input')
    .action(invoke(async () => (await import('./run.ts')).inspect));
  command
    .command('issue')
    .summary('sign a token with your own key (ES256)')
    .requiredOption('--key <file>', 'private key: a JWK, or PKCS#8 in PEM')
    .requiredOption('--issuer <url>', 'the token’s iss')
    .option('--ttl <seconds>', 'lifetime (default: 900)', wholeSeconds)
    .option('--sub <subject>', 'the token’s sub')
    .option('--aud <audience>', 'the token’s aud')
    .option(
      '--claim <name=value>',
      'a further claim; the value is JSON where it can be; may be repeated',
      addClaim,
    )
    .action(invoke<IssueFlags>(async () => (await import('./run.ts')).issue));
  command
    .command('keygen')
    .summary('make a key pair: key.json (private) and jwks.json (public)')
    .option('--out <dir>', 'where to write them', '.')
    .action(invoke<{ out: string }>(async () => (await import('./run.ts')).keygen));
  return command.addHelpText(
    'after',
    `
Examples:
  slices-conn token keygen --out keys
  slices-conn token issue --key keys/key.json --issuer https://svc.example.org --sub robot --claim admin=true
  slices-conn token issue --key keys/key.json --issuer https://svc.example.org | slices-conn verify --jwks keys/jwks.json --issuer https://svc.example.org`,
  );
}

function wholeSeconds(text: string): number {
  const value = secondsIn(text);
  if (Number.isInteger(value) && value >= 1 && value <= 999_999_999) return value;
  throw new InvalidArgumentError('It must be a whole number of seconds, or a duration such as 1h.');
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
