import { Command, InvalidArgumentError, Option } from 'commander';
import { Failure } from '../../contract/failure.ts';
import { ROLES } from '../../contract/roles.ts';
import { EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from '../../contract/routes.ts';
import { parseDuration } from '../durations.ts';
import type { Invoke } from '../invocation.ts';
import { auditCommand } from './audit/command.ts';
import { backupCommand } from './backup/command.ts';
import { rotateKeysCommand } from './rotate-keys/command.ts';
import type { ServeFlags } from './run.ts';

/** `slices-conn serve`: the reference server on a socket. */
export function serveCommand(invoke: Invoke): Command {
  return (
    new Command('serve')
      .summary('run the reference server: identity provider, portal, connectivity service')
      .description(
        'Runs the whole other side on one port of this machine: the connectivity service at /, the portal at /portal, the identity provider at /auth. With --trust it is the connectivity service alone, for the users of another portal and identity provider. SIGINT and SIGTERM end it; SIGHUP reads the certificate anew.',
      )
      .option('--host <address>', 'where to listen', '127.0.0.1')
      .option('--port <number>', '0 picks a free one', portNumber, 4280)
      .option('--base-url <url>', 'the address in tokens, links and the ready file')
      .option('--data <dir>', 'where the data is kept')
      .addOption(new Option('--memory', 'keep the data in memory only').conflicts('data'))
      .addOption(
        new Option(
          '--database <url>',
          'keep the data in PostgreSQL, which several servers may share',
        ).conflicts(['data', 'memory']),
      )
      .option('--topology <file>', 'the sites and links, as JSON')
      .option('--ready-file <file>', 'write the addresses there once requests are taken')
      .addOption(
        new Option('--auto-approve <role>', 'log every device code in at once, for scripts').choices(ROLES),
      )
      .option('--access-token-ttl <seconds>', 'lifetime of a user token (default: 3600)', wholeSeconds)
      .option(
        '--rotate-keys-every <duration>',
        'the age at which signing keys are followed by new ones (default: never)',
        keyAge,
      )
      .addOption(
        new Option(
          '--trust <url[=kinds]>',
          'take the tokens of the issuer there, in place of built-in users: of every kind, or only user, project, experiment, separated by commas; repeatable',
        )
          .argParser((issuer, before: string[] = []) => [...before, issuer])
          .conflicts(['autoApprove', 'accessTokenTtl', 'insecureBuiltInUsers']),
      )
      .option(
        '--audience <audience>',
        'what their user tokens must name as aud (default: not checked, on loopback only)',
      )
      .addOption(
        new Option('--any-audience', 'let others reach it without an audience').conflicts('audience'),
      )
      .option('--auth-url <url>', 'where their users log in (default: the first issuer of user tokens)')
      .option('--portal-url <url>', 'where their portal is (default: the last issuer of other tokens)')
      .option('--projects-api-group <name>', "name of the portal's API of projects", PROJECTS_API_GROUP)
      .option(
        '--experiments-api-group <name>',
        "name of the portal's API of experiments",
        EXPERIMENTS_API_GROUP,
      )
      .option('--tls-cert <file>', 'serve https with this certificate and those above it, in PEM')
      .option('--tls-key <file>', 'its private key, in PEM')
      .option('--behind-proxy', 'a proxy ends TLS; its X-Forwarded-For says where requests come from')
      .option(
        '--max-connections-per-address <number>',
        'connections served at once of one address; with --behind-proxy, requests at once',
        connectionCount,
        100,
      )
      .option(
        '--administrator <user-id>',
        'a user who may release any reservation; may be given several times',
        (id: string, before: string[] = []) => [...before, id],
      )
      .option(
        '--metrics <address>',
        'serve Prometheus metrics at /metrics of PORT, on loopback, or HOST:PORT',
      )
      .option(
        '--drain <seconds>',
        'once told to stop, go on for so long with /readyz at 503',
        drainSeconds,
        0,
      )
      .addOption(
        new Option('--keep <duration>', 'how long the audit and cancelled reservations are kept')
          .argParser(keptFor)
          .default(KEPT, '400d'),
      )
      .option(
        '--max-share <percent>',
        'how much of a link one experiment may hold at any instant (default: 100)',
        percent,
      )
      .option(
        '--max-live <number>',
        'how many reservations that have not ended one experiment may have (default: any number)',
        wholeNumber,
      )
      .option('--insecure-built-in-users', 'let anyone who reaches it log in, without a password')
      .option('--insecure-throw-away-key', 'let others reach it with --memory')
      .option('--insecure-http', 'let others reach it over plain http')
      // The flags that a sub-command has of its own are its own, though they are named alike.
      .enablePositionalOptions()
      .addCommand(rotateKeysCommand(invoke))
      .addCommand(backupCommand(invoke))
      .addCommand(auditCommand(invoke))
      .addHelpText(
        'after',
        `
Examples:
  slices-conn serve
  slices-conn serve --port 0 --memory --auto-approve lead --ready-file ready.json
  slices-conn serve --metrics 9464 --drain 5 --administrator user_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q
  slices-conn serve --host 0.0.0.0 --port 443 --base-url https://slices.example.org --tls-cert cert.pem --tls-key key.pem --trust https://login.example.org=user --trust https://portal.example.org=project,experiment --audience https://slices.example.org
  PGPASSWORD=… slices-conn serve --behind-proxy --base-url https://slices.example.org --trust https://portal.example.org --audience https://slices.example.org --database postgres://slices@db.example.org/slices`,
      )
      .action(invoke<ServeFlags>(async () => (await import('./run.ts')).serve))
  );
}

function portNumber(text: string): number {
  if (/^[0-9]{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError('It must be a number from 0 to 65535.');
}

/** As many as are served at once in all. */
const MOST_CONNECTIONS = 1000;

function connectionCount(text: string): number {
  const count = /^[1-9][0-9]{0,3}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MOST_CONNECTIONS) return count;
  throw new InvalidArgumentError(`It must be a number from 1 to ${MOST_CONNECTIONS}.`);
}

function percent(text: string): number {
  if (/^[0-9]{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= 100) return Number(text);
  throw new InvalidArgumentError('It must be a whole number from 1 to 100.');
}

function wholeNumber(text: string): number {
  if (/^[1-9][0-9]{0,11}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number, 1 or more.');
}

function wholeSeconds(text: string): number {
  if (/^[1-9][0-9]{0,7}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of seconds.');
}

/** An hour: a key that signs for less would be followed before the tokens that it has signed have expired. */
const SHORTEST_KEY_AGE = 3_600_000;

function keyAge(text: string): number {
  const age = durationOf(text);
  if (age !== undefined && age >= SHORTEST_KEY_AGE) return age;
  throw new InvalidArgumentError('It must be a duration of an hour or more, such as 90d.');
}

/** More than a year, so that a yearly review finds all of it. */
const KEPT = 400 * 86_400_000;
/** A day: a key that a client books under, and its reservation, are not forgotten before. */
const SHORTEST_KEEPING = 86_400_000;

function keptFor(text: string): number {
  const kept = durationOf(text);
  if (kept !== undefined && kept > SHORTEST_KEEPING) return kept;
  throw new InvalidArgumentError('It must be a duration of more than a day, such as 400d.');
}

function durationOf(text: string): number | undefined {
  try {
    return parseDuration(text);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

function drainSeconds(text: string): number {
  if (/^[0-9]{1,3}$/.test(text) && Number(text) <= 600) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of seconds, 600 at most.');
}
