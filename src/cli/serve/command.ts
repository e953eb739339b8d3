import { Command, InvalidArgumentError, Option } from 'commander';
import { Failure } from '../../contract/failure.ts';
import type {
  AuditFlags,
  BackupOptions,
  OptionDeclaration,
  OptionTable,
  RotateKeysOptions,
  ServeOptions,
} from '../../operate/options.ts';
import type { Invoke } from '../context.ts';
import type { ServerOptions } from './server.ts';

/** `slices-conn serve`: the reference server on a socket. */
export function serveCommand(invoke: Invoke, options: ServerOptions): Command {
  const serve = new Command('serve')
    .summary('run the reference server: identity provider, portal, connectivity service')
    .description(
      'Runs all three services on one port of this machine: the connectivity service at /, the portal at /portal, the identity provider at /auth. With --trust it is the connectivity service alone, for the users of another portal and identity provider. SIGINT and SIGTERM end it; SIGHUP reads the certificate anew, where there is one, and never ends it.',
    );
  return (
    addOptions(serve, options.serve)
      // It runs without a command too.
      .usage('[command] [flags]')
      // Sub-commands have flags with the names of serve's flags.
      .enablePositionalOptions()
      .addCommand(rotateKeysCommand(invoke, options.rotateKeys))
      .addCommand(backupCommand(invoke, options.backup))
      .addCommand(auditCommand(invoke, options.audit))
      .addHelpText(
        'after',
        `
Examples:
  slices-conn serve
  slices-conn serve --port 0 --memory --auto-approve lead --ready-file ready.json
  slices-conn serve --memory --directory users.json --auto-approve alice
  slices-conn serve --metrics 9464 --drain 5 --administrator user_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q
  slices-conn serve --host 0.0.0.0 --port 443 --base-url https://slices.example.org --tls-cert cert.pem --tls-key key.pem --trust https://login.example.org=user --trust https://portal.example.org=project,experiment --audience https://slices.example.org
  PGPASSWORD=… slices-conn serve --behind-proxy --base-url https://slices.example.org --trust https://portal.example.org --audience https://slices.example.org --database postgres://slices@db.example.org/slices`,
      )
      .action(invoke<ServeOptions>(async () => (await import('./run.ts')).serve))
  );
}

/** `slices-conn serve rotate-keys`: new signing keys, for the servers on a database. */
function rotateKeysCommand(invoke: Invoke, options: OptionTable): Command {
  const rotateKeys = new Command('rotate-keys')
    .summary('give the servers on a database new signing keys')
    .description(
      'Makes the next signing key of each service, next to the database: no server is restarted, and every one takes over by itself. The new key is published for 20 minutes before it signs. The old one goes when the last token that it has signed has expired.',
    );
  return addOptions(rotateKeys, options)
    .addHelpText(
      'after',
      `
With --retire-now the servers refuse every earlier token within 10 s. People log in again, or wait until their client renews its token, an hour at most. Reservations stay; fetch a saved proof again with slices-conn show ID. Other programs accept an old token until they fetch the key set again: within 15 minutes for this client, up to a day if it can't reach the server.

Examples:
  slices-conn serve rotate-keys
  PGPASSWORD=… slices-conn serve rotate-keys --database postgres://slices@db.example.org/slices
  slices-conn serve rotate-keys --data /var/lib/slices-conn --retire-now --yes`,
    )
    .hook('preAction', (_program, command) => takeFlagsOfServe(command))
    .action(invoke<RotateKeysOptions>(async () => (await import('./run.ts')).rotateKeys));
}

/** `slices-conn serve backup FILE`. */
function backupCommand(invoke: Invoke, options: OptionTable): Command {
  const backup = new Command('backup')
    .summary("copy a server's data to a file, while it runs")
    .description(
      "Copies the database of a server with --data, as it is at one instant, while the server goes on. The file holds everything, signing keys included, and only its owner can read it. To restore it, put it into a new folder as slices-conn.sqlite and serve that. PostgreSQL's data is copied with pg_dump.",
    )
    .argument('<file>', 'where to; nothing may be there yet');
  return addOptions(backup, options)
    .addHelpText(
      'after',
      `
Examples:
  slices-conn serve backup --data /var/lib/slices-conn /backup/slices-conn-$(date +%F).sqlite
  install -d -m 700 restored && cp backup.sqlite restored/slices-conn.sqlite && slices-conn serve --data restored`,
    )
    .hook('preAction', (_program, command) => takeFlagsOfServe(command))
    .action(invoke<BackupOptions>(async () => (await import('./run.ts')).serveBackup));
}

/** `slices-conn serve audit`: the decisions of a server, read from its database. */
function auditCommand(invoke: Invoke, options: OptionTable): Command {
  const audit = new Command('audit')
    .summary('who created, updated and deleted what on a server, and why not')
    .description(
      'Lists what a server has decided, newest last: who asked for what and when, and whether it was granted, or why not. It only reads the database, next to the servers that run on it, and does not slow them down.',
    );
  return addOptions(audit, options)
    .addHelpText(
      'after',
      `
--experiment ID, a global flag, picks what was decided in one experiment.
A server forgets decisions that are older than its --keep, by default 400 days.

Examples:
  slices-conn serve audit
  slices-conn serve audit --data /var/lib/slices-conn --since 2d --refused
  slices-conn serve audit --link be-gent1 pl-poznan1 --since 2d --until 1d
  PGPASSWORD=… slices-conn serve audit --database postgres://slices@db.example.org/slices --limit 1000000 --json`,
    )
    .hook('preAction', (_program, command) => takeFlagsOfServe(command))
    .action(invoke<AuditFlags>(async () => (await import('./audit.ts')).serveAudit));
}

/** Adds declared flags to a command, in their order. */
function addOptions(command: Command, options: OptionTable): Command {
  let heading: string | undefined;
  for (const declared of Object.values(options)) {
    heading = declared.group ?? heading;
    const option = optionOf(declared);
    command.addOption(heading === undefined ? option : option.helpGroup(heading));
  }
  return command;
}

function optionOf(declared: OptionDeclaration): Option {
  const { flags, help, parse, choices, conflicts, defaultText } = declared;
  const option = new Option(flags, help);
  if (choices) option.choices(choices);
  // It replaces the check that `choices` sets.
  if (parse) option.argParser<unknown>((text, before) => read(() => parse(text, before as never)));
  if (conflicts) option.conflicts([...conflicts]);
  if (declared.default !== undefined) option.default(declared.default, defaultText);
  return option;
}

function read(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}

/**
 * Moves flags from `serve` to its sub-command. Commander gives a flag that both have to `serve`, even when it was typed
 * after the sub-command.
 *
 * @throws Failure `usage` for a flag that only `serve` has
 */
function takeFlagsOfServe(command: Command): void {
  const { parent: serve } = command;
  for (const option of serve?.options ?? []) {
    const name = option.attributeName();
    if (serve?.getOptionValueSource(name) !== 'cli') continue;
    if (!command.options.some(({ long }) => long === option.long)) {
      throw new Failure('usage', `serve ${command.name()} has no flag ${option.long ?? option.flags}.`, {
        fix: `slices-conn serve ${command.name()} --help`,
      });
    }
    command.setOptionValueWithSource(name, serve.getOptionValue(name), 'cli');
  }
}
