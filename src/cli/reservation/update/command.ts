import { Command } from 'commander';
import { RESERVATION_TEXTS } from '../../../contract/reservation-texts.ts';
import type { Invoke } from '../../context.ts';
import { ALLOW_UNSIGNED } from '../../global-options.ts';
import { addPeriodChangeOptions } from '../../period.ts';
import { addTextOptions } from '../text-options.ts';
import type { UpdateFlags } from './run.ts';

/** `slices-conn update ID [--bandwidth B] [--start T] [--end T|--for D|--extend D]`. */
export function updateCommand(invoke: Invoke): Command {
  const command = new Command('update')
    .summary('change the bandwidth, the period or the name of a reservation')
    .description(
      "Changes a reservation. When the link can't give all of it, nothing is changed.\nThe route stays, and so do the VLAN tags when they are free for the new period. The printed reservation has the tags to use.",
    )
    .argument(
      '[id]',
      'its name, its id, or four characters or more of the last part; asked for when left out',
    )
    .option('--bandwidth <rate>', '100 (Mbps), 100M, 1G, 2.5G');
  return addTextOptions(addPeriodChangeOptions(command), RESERVATION_TEXTS)
    .option(...ALLOW_UNSIGNED)
    .addHelpText(
      'after',
      `
Examples:
  slices-conn update con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --extend 1h
  slices-conn update con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --bandwidth 2G --extend 2h
  slices-conn update con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --name weekly`,
    )
    .action(invoke<UpdateFlags>(async () => (await import('./run.ts')).update));
}
