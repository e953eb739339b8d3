import { Command, InvalidArgumentError, Option } from 'commander';
import { Failure } from '../../contract/failure.ts';
import { ROLES } from '../../contract/roles.ts';
import type { ServeFlags } from '../actions/serve.ts';
import type { BackupFlags } from '../actions/serve-backup.ts';
import type { Invoke } from '../invocation.ts';

/** `slices-conn serve`: the reference server on a socket. */
export function serveCommand(invoke: Invoke): Command {
  return new Command('serve')
    .summary('run the reference server: identity provider, portal, connectivity service')
    .description(
      'Runs the whole other side on one port of this machine: the connectivity service at /, the portal at /portal, the identity provider at /auth. SIGINT and SIGTERM end it.',
    )
    .option('--host <address>', 'where to listen; loopback only', '127.0.0.1')
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
      '--administrator <user-id>',
      'a user who may release any reservation; may be given several times',
      (id: string, before: string[] = []) => [...before, id],
    )
    .option('--metrics <address>', 'serve Prometheus metrics at /metrics of PORT, on loopback, or HOST:PORT')
    .option('--drain <seconds>', 'once told to stop, go on for so long with /readyz at 503', drainSeconds, 0)
    .addHelpText(
      'after',
      `
Examples:
  slices-conn serve
  slices-conn serve --port 0 --memory --auto-approve lead --ready-file ready.json
  slices-conn serve --metrics 9464 --drain 5 --administrator user_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q
  PGPASSWORD=… slices-conn serve --base-url https://slices.example.org --database postgres://slices@db.example.org/slices`,
    )
    .addCommand(backupCommand(invoke))
    .hook('preSubcommand', handData)
    .action(invoke<ServeFlags>(async () => (await import('../actions/serve.ts')).serve));
}

/** Where flags stand makes no difference, so `serve` reads those of its subcommand: of these, only the folder is for both. */
function handData(serve: Command, subcommand: Command): void {
  for (const option of serve.options) {
    const name = option.attributeName();
    if (serve.getOptionValueSource(name) !== 'cli') continue;
    if (name === 'data') subcommand.setOptionValueWithSource(name, serve.getOptionValue(name), 'cli');
    else {
      throw new Failure('usage', `serve ${subcommand.name()} takes no ${option.long}.`, {
        fix: `slices-conn serve ${subcommand.name()} --help`,
      });
    }
  }
}

/** `slices-conn serve backup FILE`. */
function backupCommand(invoke: Invoke): Command {
  return new Command('backup')
    .summary("copy a server's data to a file, while it runs")
    .description(
      "Copies the database of a server with --data, as it is at one instant, while the server goes on. The file holds everything, signing keys included, and only its owner can read it. To restore it, put it into a new folder as slices-conn.sqlite and serve that. PostgreSQL's data is copied with pg_dump.",
    )
    .argument('<file>', 'where to; nothing may be there yet')
    .option('--data <dir>', "the server's data folder (default: where serve keeps it)")
    .addHelpText(
      'after',
      `
Examples:
  slices-conn serve backup --data /var/lib/slices-conn /backup/slices-conn-$(date +%F).sqlite
  install -d -m 700 restored && cp backup.sqlite restored/slices-conn.sqlite && slices-conn serve --data restored`,
    )
    .action(invoke<BackupFlags>(async () => (await import('../actions/serve-backup.ts')).serveBackup));
}

function portNumber(text: string): number {
  if (/^[0-9]{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError('It must be a number from 0 to 65535.');
}

function wholeSeconds(text: string): number {
  if (/^[1-9][0-9]{0,7}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of seconds.');
}

function drainSeconds(text: string): number {
  if (/^[0-9]{1,3}$/.test(text) && Number(text) <= 600) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of seconds, 600 at most.');
}
