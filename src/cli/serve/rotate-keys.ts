import type { RotateKeysOptions } from '../../operate/options.ts';
import type { KeyRow } from '../../operate/rotate-keys.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { escapeText } from '../print/output.ts';
import { confirm } from '../questions.ts';
import { shortTime } from '../times.ts';

/** `slices-conn serve rotate-keys`: new signing keys, for the servers on a database. */
export const command: CommandDeclaration = {
  about:
    'Makes the next signing key of each service, next to the database: no server is restarted, and every one takes over by itself. The new key is published for 20 minutes before it signs. The old one goes when the last token that it has signed has expired.',
  notes:
    "With --retire-now the servers refuse every earlier token within 1 s. People log in again, or wait until their client renews its token, an hour at most. Reservations stay; fetch a saved proof again with slices-conn show ID. Other programs accept an old token until they fetch the key set again: within 15 minutes for this client, up to a day if it can't reach the server.",
  examples: [
    'slices-conn serve rotate-keys',
    'PGPASSWORD=… slices-conn serve rotate-keys --database postgres://slices@db.example.org/slices',
    'slices-conn serve rotate-keys --data /var/lib/slices-conn --retire-now --yes',
  ],
};

/** Gives the servers on a database new signing keys; asks before it removes keys that are in use. */
export async function run(
  context: Context,
  _args: readonly string[],
  flags: RotateKeysOptions,
): Promise<void> {
  const { output, server } = context;
  const database = server.databaseOf(flags);
  const question = `Retire every signing key of ${database} now? No token that they have signed will verify.`;
  const asked = () => confirm(context, question, { unasked: 'Retiring the keys was not confirmed.' });
  const items = await output.waitFor('the database', () => server.rotateKeys(flags, asked));
  const times = await context.clock.times();
  const tell = (instant: string | null): string =>
    instant === null ? '–' : shortTime(Date.parse(instant), times);
  // A single result would have the kids masked: they look like tokens.
  const printed = output.portions<KeyRow>((print, rows) => {
    const table = print.table(
      ['service', 'key', 'state', `from (${times.zone})`, 'until'],
      rows.map(({ service, kid, state, signs_from, published_until }) => [
        ...[service, kid, state, tell(signs_from), tell(published_until)],
      ]),
    );
    return `Keys of the server on ${escapeText(database)}\n\n${table}`;
  });
  await printed.take(items);
  printed.end({ database }, '');
}
