import { Command } from 'commander';
import type { Invoke } from '../../invocation.ts';
import { addOptions, takeFlagsOfServe } from '../options.ts';
import type { AuditFlags, DeclaredOptions } from '../server.ts';

/** `slices-conn serve audit`: who did what, read next to the database. */
export function auditCommand(invoke: Invoke, options: DeclaredOptions): Command {
  const audit = new Command('audit')
    .summary('who booked, changed and released what on a server, and why not')
    .description(
      'Lists what a server has decided, newest last: who asked for what and when, and whether it was granted, or why not. It only reads the database, next to the servers that run on it, and holds none of them up.',
    );
  return addOptions(audit, options)
    .addHelpText(
      'after',
      `
--experiment ID, a global flag, picks what was decided in one experiment. Times are in UTC.
A server forgets decisions that are older than its --keep, 400 days unless it was told otherwise.

Examples:
  slices-conn serve audit
  slices-conn serve audit --data /var/lib/slices-conn --since 2d --refused
  slices-conn serve audit --link be-gent1 pl-poznan1 --since 2026-12-01T00:00Z --until 2026-12-02T00:00Z
  PGPASSWORD=… slices-conn serve audit --database postgres://slices@db.example.org/slices --limit 1000000 --json`,
    )
    .hook('preAction', (_program, command) => takeFlagsOfServe(command))
    .action(invoke<AuditFlags>(async () => (await import('./run.ts')).serveAudit));
}
