import { Command } from 'commander';
import type { Invoke } from '../context.ts';
import type { VerifyFlags } from './run.ts';

/** `slices-conn verify [FILE…|-] [--jwks FILE|URL] [--issuer URL] [--ended] [--key THUMBPRINT]`. */
export function verifyCommand(invoke: Invoke): Command {
  return new Command('verify')
    .summary('verify a signed reservation, or any other token')
    .description(
      "Verifies a token: its signature, its issuer, its times and what it claims. Without --jwks or --issuer the issuer must be one of the profile's own services. Exits with 9 for anything that does not verify, and for a reservation that has ended or was deleted or replaced, as its service says, which is asked unless --offline. Of several tokens it prints a row each, and exits with 10 where some hold, or they fail in different ways.",
    )
    .argument('[file...]', 'the tokens, one in a file; - or nothing for standard input, one a line')
    .option('--jwks <file|url>', 'the key set to verify with')
    .option('--issuer <url>', 'the only issuer to accept; its keys are fetched unless --jwks gives them')
    .option('--ended', 'accept a reservation that has ended')
    .option(
      '--key <thumbprint>',
      'the only key to accept (RFC 7638), from the file beside the token or --jwks; asks nobody',
    )
    .addHelpText(
      'after',
      `
Examples:
  slices-conn verify link.jwt
  slices-conn verify monday.jwt tuesday.jwt
  slices-conn verify link.jwt --jwks https://conn.example.org/.well-known/jwks.json --issuer https://conn.example.org
  slices-conn verify link.jwt --key NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs
  slices-conn show ID --token | slices-conn verify --json`,
    )
    .action(invoke<VerifyFlags>(async () => (await import('./run.ts')).verify));
}
