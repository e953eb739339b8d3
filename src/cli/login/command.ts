import { Command } from 'commander';
import type { Invoke } from '../context.ts';
import { waitSeconds } from '../global-options.ts';
import type { LoginFlags } from './run.ts';

/** `slices-conn login [ADDRESS] [--with-slices] [--no-browser] [--force] [--wait SECONDS] [--ci]`: OAuth 2.0 device login (RFC 8628). */
export function loginCommand(invoke: Invoke): Command {
  return new Command('login')
    .summary('log in, with a code that is entered in a browser')
    .description(
      'Prints an address and a code, and waits until the code was entered there, in any browser that reaches the address.\nNeeds no terminal. Ctrl-C gives up.\nWith the address of a service, it asks the service for its portal and its identity provider, and keeps them, once you have\naccepted them (--yes does), in a profile that is named after the service. Without one it logs in to the profile in use.',
    )
    .argument('[address]', 'the service, such as conn.example.org; https, and http on this machine')
    .option('--with-slices', 'use the login of the official client: its tokens, and no other login')
    .option('--no-browser', 'open no browser')
    .option('--force', 'ask nothing where somebody is logged in already')
    .option('--wait <seconds>', 'give up with exit code 8 after this long', waitSeconds)
    .option(
      '--ci',
      'print a refresh token for a CI job that experiment ci add can’t let in, once, and store nothing; the job gets it as SLICES_CONN_REFRESH_TOKEN',
    )
    .addHelpText(
      'after',
      `
Examples:
  slices-conn login conn.example.org
  slices-conn login conn.example.org --with-slices
  slices-conn login
  slices-conn login --no-browser
  slices-conn login --wait 60 --json
  slices-conn login --ci | gh secret set SLICES_CONN_REFRESH_TOKEN`,
    )
    .action(invoke<LoginFlags>(async () => (await import('./run.ts')).login));
}

/** `slices-conn logout`. */
export function logoutCommand(invoke: Invoke): Command {
  return new Command('logout')
    .summary('end the session and forget it')
    .action(invoke(async () => (await import('./run.ts')).logout));
}

/** `slices-conn status`. */
export function statusCommand(invoke: Invoke): Command {
  return new Command('status')
    .summary('show who is logged in where, and for how long')
    .description('Shows the profile, its services and the tokens. Exits with 4 when you are not logged in.')
    .action(invoke(async () => (await import('./run.ts')).status));
}
