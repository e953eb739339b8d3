import { Command, InvalidArgumentError } from 'commander';
import { MAX_IDEMPOTENCY_KEY } from '../../../contract/request-limits.ts';
import { RESERVATION_TEXTS } from '../../../contract/reservation-texts.ts';
import type { Invoke } from '../../context.ts';
import { ALLOW_UNSIGNED, waitSeconds } from '../../global-options.ts';
import { addPeriodOptions } from '../../period.ts';
import { addRouteOptions } from '../route-options.ts';
import { addTextOptions } from '../text-options.ts';
import type { ReserveFlags } from './flags.ts';

/**
 * `slices-conn reserve SITE1 SITE2 --bandwidth B (--start T | --start-now) (--end T | --for D)`, --earliest,
 * --volume.
 */
export function reserveCommand(invoke: Invoke): Command {
  const command = new Command('reserve')
    .summary('book a link between two sites')
    .description(
      'Books a link between two sites and verifies the signed answer before anything is printed.\nWith --earliest the service finds the start: the first that fits. With --volume it finds rate and time: those that finish first.\nExits with 6 when the link is not free; the message then says what would work.\nOn a terminal it asks for what is missing, and shows the command that it was.',
    )
    .usage(
      '<site1> <site2> --bandwidth <rate> (--start <time> | --start-now) (--end <time> | --for <duration>) [flags]',
    )
    .argument('[site1]', 'one end, such as be-gent1')
    .argument('[site2]', 'the other end')
    .option(
      '--bandwidth <rate>',
      'required, except with --volume: 100 (Mbps), 100M, 1G, 2.5G; then it is the most that may be used',
    );
  addPeriodOptions(command)
    .option(
      '--earliest',
      'book the earliest time that fits: --for is the duration, --start not before, --end not after',
    )
    .option(
      '--volume <bytes>',
      'book what carries so much by --end: 800G, 50T, 2TiB; in place of --for; --bandwidth is its cap',
    );
  return addTextOptions(addRouteOptions(command), RESERVATION_TEXTS)
    .option(
      '--wait [seconds]',
      'return when the link has started; after this long, exit code 8, and the link stays booked',
      waitSeconds,
    )
    .option('--dry-run', 'say what would be booked, and book nothing')
    .option('--save <file>', 'write the signed reservation to a file, for verify')
    .option(
      '--idempotency-key <key>',
      'repeat the command with the same key: it books only once',
      idempotencyKey,
    )
    .option(...ALLOW_UNSIGNED)
    .addHelpText(
      'after',
      `
Examples:
  slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h
  slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h --name nightly
  slices-conn reserve be-gent1 pl-poznan1 --bandwidth 2.5G --start 'friday 10:00' --end 'friday 18:00'
  slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1G --start 14:00 --for 2h --wait && ./measure.sh
  slices-conn reserve be-gent1 pl-poznan1 --bandwidth 100M --start-now --for 1d --save link.jwt --json
  slices-conn reserve be-gent1 pl-poznan1 --bandwidth 9G --for 2h --earliest
  slices-conn reserve be-gent1 gr-uth --bandwidth 500M --start-now --for 4h
  slices-conn reserve be-gent1 fr-slices --bandwidth 1G --start-now --for 2h --avoid fr-lille
  slices-conn reserve be-gent1 pl-poznan1 --volume 50T --bandwidth 10G --end friday`,
    )
    .action(invoke<ReserveFlags>(async () => (await import('./run.ts')).reserve));
}

/** Checks a key: the characters that an HTTP header can carry. */
function idempotencyKey(text: string): string {
  if (/^[!-~]+$/.test(text) && text.length <= MAX_IDEMPOTENCY_KEY) return text;
  throw new InvalidArgumentError(
    `It must be 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters without spaces.`,
  );
}
