import { Command } from 'commander';
import type { Invoke } from '../../invocation.ts';
import { addOptions, takeFlagsOfServe } from '../options.ts';
import type { DeclaredOptions } from '../server.ts';

/** `slices-conn serve backup FILE`. */
export function backupCommand(invoke: Invoke, options: DeclaredOptions): Command {
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
    .action(invoke<object>(async () => (await import('./run.ts')).serveBackup));
}
