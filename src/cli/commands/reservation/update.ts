import { Command } from 'commander';
import type { ReservationChange } from '../../../client/connectivity.ts';
import { Failure } from '../../../contract/failure.ts';
import { parseBandwidth } from '../../bandwidth.ts';
import type { Invocation, Invoke } from '../../invocation.ts';
import { addPeriodChangeOptions, type PeriodChangeFlags, readPeriodChange } from '../../period-options.ts';
import { periodOf, reservationCard, reservationResult } from '../../reservation-card.ts';
import { reservationId } from '../../reservation-id.ts';

interface UpdateFlags extends PeriodChangeFlags {
  bandwidth?: string;
  allowUnsigned?: boolean;
}

/** `slices-conn update ID [--bandwidth B] [--start T] [--end T|--for D|--extend D]`. */
export function updateCommand(invoke: Invoke): Command {
  const command = new Command('update')
    .summary('change the bandwidth or the period of a reservation')
    .description(
      'Changes a reservation. All or nothing: what the link can not give leaves it exactly as it was.\nIts VLAN tags stay when they can; what is printed is what holds.',
    )
    .argument('<id>', 'a reservation, con_…')
    .option('--bandwidth <rate>', '100 (Mbps), 100M, 1G, 2.5G');
  return addPeriodChangeOptions(command)
    .option('--allow-unsigned', 'take an answer that the service did not sign')
    .addHelpText(
      'after',
      `
Examples:
  slices-conn update con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --extend 1h
  slices-conn update con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --bandwidth 2G --end 2026-12-01T18:00:00Z`,
    )
    .action(invoke<UpdateFlags>(update));
}

async function update(
  invocation: Invocation,
  [typed = '']: readonly string[],
  flags: UpdateFlags,
): Promise<void> {
  const id = reservationId(typed);
  const { bandwidth, start, end, for: lasting, extend, allowUnsigned = false } = flags;
  if ([bandwidth, start, end, lasting, extend].every((flag) => flag === undefined)) {
    throw new Failure('usage', 'What is to change?', {
      why: 'Give --bandwidth, --start, --end, --for or --extend.',
      fix: `slices-conn update ${id} --extend 1h`,
    });
  }
  const rate = bandwidth === undefined ? {} : { bandwidth: parseBandwidth(bandwidth) };
  const { connectivity } = await invocation.session();
  const current = await connectivity.show(id, { allowUnsigned });
  const period = await readPeriodChange(flags, periodOf(current.reservation), invocation.times());
  const change: ReservationChange = { ...rate, ...period };
  const proven = await connectivity.update(current.reservation, change, { allowUnsigned });
  await invocation.output.result(reservationResult(proven), (print) =>
    reservationCard(print, 'Updated', proven, { now: invocation.times().now }),
  );
}
