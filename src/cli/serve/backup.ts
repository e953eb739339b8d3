import type { BackupOptions } from '../../operate/options.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { escapeText } from '../print/output.ts';

/** `slices-conn serve backup FILE`. */
export const command: CommandDeclaration = {
  about:
    "Copies the database of a server with --data, as it is at one instant, while the server goes on. The file holds everything, signing keys included, and only its owner can read it. To restore it, put it into a new folder as slices-conn.sqlite and serve that. PostgreSQL's data is copied with pg_dump.",
  args: { '<file>': 'where to; nothing may be there yet' },
  examples: [
    'slices-conn serve backup --data /var/lib/slices-conn /backup/slices-conn-$(date +%F).sqlite',
    'install -d -m 700 restored && cp backup.sqlite restored/slices-conn.sqlite && slices-conn serve --data restored',
  ],
};

/** Copies a server's database while it runs. */
export async function run(
  { server, output }: Context,
  [file = '']: readonly string[],
  flags: BackupOptions,
): Promise<void> {
  const { bytes, reservations } = await output.waitFor('the database', () => server.backUp(flags, file));
  const database = server.databaseOf(flags);
  await output.result({ file, bytes, reservations, database }, (print) =>
    print.card(`Backed up to ${print.paint.bold(escapeText(file))}`, [
      ['of', database],
      ['holds', `${reservations} reservation${reservations === 1 ? '' : 's'}, ${bytes} bytes`],
      ['secret', 'the signing keys are in it'],
    ]),
  );
}
