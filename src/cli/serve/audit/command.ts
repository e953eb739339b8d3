import { Command, InvalidArgumentError, Option } from 'commander';
import type { Invoke } from '../../invocation.ts';
import { takeFlagsOfServe } from '../flags-of-serve.ts';
import type { AuditFlags } from './run.ts';

/** `slices-conn serve audit`: who did what, read next to the database. */
export function auditCommand(invoke: Invoke): Command {
  return new Command('audit')
    .summary('who booked, changed and released what on a server, and why not')
    .description(
      'Lists what a server has decided, newest last: who asked for what and when, and whether it was granted, or why not. It only reads the database, next to the servers that run on it, and holds none of them up.',
    )
    .option('--data <dir>', "the server's data folder (default: where serve keeps it)")
    .addOption(
      new Option('--database <url>', 'the PostgreSQL database that the servers share').conflicts('data'),
    )
    .option('--reservation <id>', 'only about this reservation')
    .option('--user <user-id>', 'only what this user asked for')
    .option('--link <site...>', 'only on the link between two sites, SITE1 SITE2 or SITE1~SITE2')
    .option('--since <time>', 'only from then on; a duration such as 2d is that long ago')
    .option('--until <time>', 'only before then')
    .option('--refused', 'only what was refused')
    .option('--limit <number>', 'the newest so many', count, 100)
    .addHelpText(
      'after',
      `
--experiment ID, a global flag, picks what was decided in one experiment. Times are told in UTC.
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

function count(text: string): number {
  if (/^[1-9][0-9]{0,11}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number, 1 or more.');
}
