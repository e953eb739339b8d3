import { Command } from 'commander';
import type { Invoke } from '../invocation.ts';
import { auditCommand } from './audit/command.ts';
import { backupCommand } from './backup/command.ts';
import { addOptions } from './options.ts';
import { rotateKeysCommand } from './rotate-keys/command.ts';
import type { ServeFlags, ServerOptions } from './server.ts';

/** `slices-conn serve`: the reference server on a socket. */
export function serveCommand(invoke: Invoke, options: ServerOptions): Command {
  const serve = new Command('serve')
    .summary('run the reference server: identity provider, portal, connectivity service')
    .description(
      'Runs all three services on one port of this machine: the connectivity service at /, the portal at /portal, the identity provider at /auth. With --trust it is the connectivity service alone, for the users of another portal and identity provider. SIGINT and SIGTERM end it; SIGHUP reads the certificate anew.',
    );
  return (
    addOptions(serve, options.serve)
      // A sub-command has flags of the same names as serve.
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
  slices-conn serve --metrics 9464 --drain 5 --administrator user_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q
  slices-conn serve --host 0.0.0.0 --port 443 --base-url https://slices.example.org --tls-cert cert.pem --tls-key key.pem --trust https://login.example.org=user --trust https://portal.example.org=project,experiment --audience https://slices.example.org
  PGPASSWORD=… slices-conn serve --behind-proxy --base-url https://slices.example.org --trust https://portal.example.org --audience https://slices.example.org --database postgres://slices@db.example.org/slices`,
      )
      .action(invoke<ServeFlags>(async () => (await import('./run.ts')).serve))
  );
}
