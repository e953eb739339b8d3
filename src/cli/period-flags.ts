import type { Command } from 'commander';

/** The flags of a new period, as typed. */
export interface PeriodFlags {
  start?: string;
  startNow?: boolean;
  end?: string;
  for?: string;
}

/** The flags of a change to a period, as typed. */
export interface PeriodChangeFlags extends Omit<PeriodFlags, 'startNow'> {
  extend?: string;
}

/** Adds the flags of a new period to a command. */
export function addPeriodOptions(command: Command): Command {
  return command
    .option('--start <time>', 'when it starts: 2026-12-01T10:00:00Z, +2h, now, tomorrow 09:00')
    .option('--start-now', 'start at the time of the request')
    .option('--end <time>', 'when it ends')
    .option('--for <duration>', 'how long it lasts: 90m, 2h, 3d, 1w');
}

/** Adds the flags of a change to a period. */
export function addPeriodChangeOptions(command: Command): Command {
  return command
    .option('--start <time>', 'the new start')
    .option('--end <time>', 'the new end')
    .option('--for <duration>', 'how long it lasts, from its start')
    .option('--extend <duration>', 'how much longer it lasts than now');
}
