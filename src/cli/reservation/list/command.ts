import { Command } from 'commander';
import type { Invoke } from '../../invocation.ts';
import type { ListFlags } from './run.ts';

/** `slices-conn list [--all]`. */
export function listCommand(invoke: Invoke): Command {
  return new Command('list')
    .summary("list the experiment's reservations")
    .description("Lists the experiment's reservations that have not ended.")
    .option('--all', 'also reservations that have ended')
    .addHelpText(
      'after',
      `
Examples:
  slices-conn list
  slices-conn list --all --json | jq -r '.items[].reservation.id'`,
    )
    .action(invoke<ListFlags>(async () => (await import('./run.ts')).list));
}
