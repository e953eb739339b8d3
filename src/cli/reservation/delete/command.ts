import { Command } from 'commander';
import type { Invoke } from '../../invocation.ts';
import type { DeleteFlags } from './run.ts';

/** `slices-conn delete ID...`. */
export function deleteCommand(invoke: Invoke): Command {
  return new Command('delete')
    .summary('delete reservations')
    .description(
      'Deletes reservations: their VLANs and bandwidth are free again at once. Asks first, unless --yes is given.',
    )
    .argument('<id...>', 'reservations, con_…')
    .option('--as-administrator', 'release any reservation, as an administrator of the service')
    .option('--reason <text>', 'why it is released; the service keeps the reason')
    .addHelpText(
      'after',
      `
Examples:
  slices-conn delete con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q
  slices-conn list --json | jq -r '.items[].reservation.id' | xargs slices-conn delete --yes
  slices-conn delete con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --as-administrator --reason 'its job died'`,
    )
    .action(invoke<DeleteFlags>(async () => (await import('./run.ts')).deleteReservations));
}
