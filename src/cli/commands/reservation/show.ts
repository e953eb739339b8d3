import { Command } from 'commander';
import type { Invocation, Invoke } from '../../invocation.ts';
import { reservationCard, reservationResult, reservationState } from '../../reservation-card.ts';
import { reservationId } from '../../reservation-id.ts';

interface ShowFlags {
  token?: boolean;
  allowUnsigned?: boolean;
}

/** `slices-conn show ID [--token]`. */
export function showCommand(invoke: Invoke): Command {
  return new Command('show')
    .summary('show a reservation, verified')
    .argument('<id>', 'a reservation, con_…')
    .option('--token', 'print the signed reservation itself')
    .option('--allow-unsigned', 'take an answer that the service did not sign')
    .addHelpText(
      'after',
      `
Examples:
  slices-conn show con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q
  slices-conn show con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --token > link.jwt`,
    )
    .action(invoke<ShowFlags>(show));
}

async function show(
  invocation: Invocation,
  [typed = '']: readonly string[],
  flags: ShowFlags,
): Promise<void> {
  const { output } = invocation;
  const id = reservationId(typed);
  const { connectivity } = await invocation.session();
  const proven = await connectivity.show(id, { allowUnsigned: flags.allowUnsigned === true && !flags.token });
  const { token, claims, reservation } = proven;
  if (flags.token && token !== null) {
    output.text({ token, claims }, token);
    return;
  }
  await output.result(reservationResult(proven), (print) => {
    const { now } = invocation.times();
    const state = reservationState(reservation, now);
    return reservationCard(print, `${state.charAt(0).toUpperCase()}${state.slice(1)}:`, proven, { now });
  });
}
