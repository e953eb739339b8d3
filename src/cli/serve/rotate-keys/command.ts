import { Command } from 'commander';
import type { Invoke } from '../../invocation.ts';
import { addOptions, takeFlagsOfServe } from '../options.ts';
import type { DeclaredOptions, RotateKeysFlags } from '../server.ts';

/** `slices-conn serve rotate-keys`: new signing keys, for the servers on a database. */
export function rotateKeysCommand(invoke: Invoke, options: DeclaredOptions): Command {
  const rotateKeys = new Command('rotate-keys')
    .summary('give the servers on a database new signing keys')
    .description(
      'Makes the next signing key of each service, next to the database: no server is restarted, and every one takes over by itself. The new key is published for 20 minutes before it signs. The old one goes when the last token that it has signed has expired.',
    );
  return addOptions(rotateKeys, options)
    .addHelpText(
      'after',
      `
With --retire-now the servers refuse every earlier token within 10 s. People log in again, or wait
until their client renews its token, an hour at most. Reservations stay; fetch a saved
proof again with slices-conn show ID. Other programs accept an old token until they fetch the key
set again: within 15 minutes for this client, up to a day if it can't reach the server.

Examples:
  slices-conn serve rotate-keys
  PGPASSWORD=… slices-conn serve rotate-keys --database postgres://slices@db.example.org/slices
  slices-conn serve rotate-keys --data /var/lib/slices-conn --retire-now --yes`,
    )
    .hook('preAction', (_program, command) => takeFlagsOfServe(command))
    .action(invoke<RotateKeysFlags>(async () => (await import('./run.ts')).rotateKeys));
}
