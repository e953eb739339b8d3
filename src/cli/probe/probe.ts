import { isIP } from 'node:net';
import { Failure, ownCommand } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { instantOf } from '../../contract/reservation-request.ts';
import { type End, USUAL_MTU } from '../../vlan/end.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context, Outcome } from '../context.ts';
import { continued, folded } from '../print/folded.ts';
import { escapeText, type Printer } from '../print/output.ts';
import { shortTime } from '../times.ts';
import { END_OPTIONS, endArgument } from '../vlan/end-argument.ts';
import { type Check, type Probed, probeEnd } from './evidence.ts';
import { combined, readFarReport } from './far.ts';
import { VERDICTS, type Verdict } from './verdict.ts';

/** `slices-conn probe ID|FILE|- --site SITE --dev DEV --peer ADDRESS [--far FILE]`. */
export const command = {
  about:
    "Looks at this end of a reserved link, pings the other end, listens to what arrives, and says where the fault is. It leaves nothing behind, and sends with the reservation's own tags only. Give it --mtu and --outer as vlan got them. Run it at both ends at the same time: what one end sends is what the other hears. Listening needs root. Exits with 0 where the link works, and with 6 for every other verdict.",
  args: { '[id|file]': 'its name or id; the file of its signed token; - for standard input' },
  options: {
    ...END_OPTIONS,
    peer: { flags: '--peer <address>', help: "the other end's IP address", required: true },
    far: {
      flags: '--far <file>',
      help: 'what probe --json printed at the other end: both are judged together',
    },
  },
  notes: `Verdicts:
${Object.entries(VERDICTS)
  .map(([code, about]) => `  ${code.padEnd(20)}  ${about}\n`)
  .join('')}
Examples:
  slices-conn probe link.jwt --site be-gent1 --dev eth1 --peer 10.0.0.2

Both ends together, the first two at the same time:
  sudo slices-conn probe link.jwt --site be-gent1 --dev eth1 --peer 10.0.0.2 --json > be-gent1.json
  sudo slices-conn probe link.jwt --site pl-poznan1 --dev eth1 --peer 10.0.0.1
  sudo slices-conn probe link.jwt --site pl-poznan1 --dev eth1 --peer 10.0.0.1 --far be-gent1.json`,
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/** Says why nothing comes through, or that all does. */
export async function run(context: Context, [typed]: readonly string[], flags: Flags): Promise<Outcome> {
  const { output, files, clock } = context;
  const { peer } = flags;
  if (isIP(peer) === 0) {
    throw new Failure('usage', `${peer} is not an IP address.`, {
      why: '--peer takes the address of the other end, such as 10.0.0.2 or fd00::2, without a length.',
    });
  }
  const end = await endArgument(context, typed, flags, 'probe');
  const { id, start_date, end_date } = end.reservation;
  const hasBegun = clock.now() >= Date.parse(start_date);
  const far =
    flags.far === undefined ? undefined : readFarReport(await files.read(flags.far), flags.far, end);
  const times = await clock.times();
  const period = (at: (instant: string) => string): Check => ({
    check: 'reservation',
    ok: hasBegun,
    saw: hasBegun ? `${id}, until ${at(end_date)}` : `${id}, not before ${at(start_date)}`,
  });
  const inZone = (instant: string): string => `${shortTime(instantOf(instant), times)} ${times.zone}`;
  const probed = await probeEnd(context, end, peer);
  const verdict = far ? combined(probed.verdict, far, end) : probed.verdict;
  const other: Check[] = far
    ? [{ check: 'other_end', ok: far.verdict === 'ok', saw: `${far.verdict} at ${end.otherSite}` }]
    : [];
  const checks = [...probed.checks, ...other];
  const result = {
    verdict: verdict.verdict,
    end: verdict.end,
    heard: probed.heard ?? [],
    checks: [period(String), ...checks],
    reservation: id,
    site: end.site,
  };
  const next = nextSteps(context, verdict, {
    ...{ end, peer, hasBegun, hasFar: far !== undefined, heard: probed.heard },
    given: typed === undefined || typed === '-' ? id : typed,
  });
  await output.result(result, (print) => verdictText(print, verdict, [period(inZone), ...checks], next));
  return verdict.verdict === 'ok' ? 0 : 6;
}

/** What was probed, and how. */
interface Asked extends Pick<Probed, 'heard'> {
  readonly end: End;
  readonly peer: string;
  /** The reservation, as it can be typed again. */
  readonly given: string;
  readonly hasBegun: boolean;
  readonly hasFar: boolean;
}

/** The next steps: sentences, and commands, which start with two blanks. */
function nextSteps(
  { output, processes }: Context,
  { verdict, end: where, repair = [], configure = false, passes }: Verdict,
  { end, peer, given, hasBegun, hasFar, heard }: Asked,
): readonly string[] {
  const sudo = processes.isRoot() ? '' : 'sudo ';
  const chosen = (mtu = end.mtu.inner): string[] => [
    ...(mtu === USUAL_MTU ? [] : ['--mtu', String(mtu)]),
    ...(end.outer === '802.1ad' ? [] : ['--outer', end.outer]),
  ];
  const command = (verb: string, of: string, site: string, device: string, ...more: string[]): string =>
    `  ${verb === 'probe' ? sudo : ''}${output.advised(ownCommand(verb, of, '--site', site, '--dev', device, ...more))}`;
  const vlan = (mtu?: number): string => command('vlan', given, end.site, end.device, ...chosen(mtu));
  const again = command('probe', given, end.site, end.device, '--peer', peer, ...chosen());
  const lines = repair.map((line) => `  ${line}`);
  const isSilent = verdict === 'silent';
  if (verdict === 'ok') return [];
  if (where === 'own') {
    return [
      ...(lines.length === 0 ? [] : ['Type as root:', ...lines]),
      ...(configure ? ['What to type here:', `${vlan()} --address ADDRESS | ${sudo}sh -ex`] : []),
    ];
  }
  if (!hasBegun)
    return ['The network carries nothing before the reservation starts. Probe again then:', again];
  if (where === 'path') {
    if (verdict !== 'path_mtu') return [];
    const ask = 'Ask for a larger MTU there, or use';
    if (passes === undefined) return [`${ask} a smaller --mtu with vlan, at both ends.`];
    const both = `${ask} ${passes} bytes at both ends: as root at once, and in what configures them:`;
    return [both, ...lines, vlan(passes)];
  }
  if (isSilent && heard === null && sudo !== '') return ['Listen as root:', again];
  if ((isSilent || verdict === 'far_does_not_hear') && !hasFar) {
    const both = `Probe both ends at the same time, with --json > FILE at ${end.otherSite}. Then, with its file here:`;
    return [both, `${again} --far FILE`];
  }
  if (where === null)
    return ['Compare the addresses of both ends, and look at their firewalls:', '  ip address'];
  const there = ['--address', 'ADDRESS', ...chosen()];
  const vlanThere = command('vlan', end.reservation.id, end.otherSite, 'DEVICE', ...there);
  return [`What is to be typed at ${end.otherSite}:`, `${vlanThere} | sudo sh -ex`];
}

/** The verdict in a sentence, what was looked at, and what to type next. */
function verdictText(
  print: Printer,
  { says }: Verdict,
  checks: readonly Check[],
  next: readonly string[],
): string {
  const columns = print.columns ?? Number.POSITIVE_INFINITY;
  const [yes, no] = print.ascii ? ['ok', 'no'] : [print.paint.green('✓'), print.paint.red('✗')];
  const names = checks.map(({ check }) => check.replaceAll('_', ' '));
  const width = Math.max(...names.map((name) => name.length));
  const title = folded(escapeText(says), columns).map((line) => print.paint.bold(line));
  const rows = checks.map(({ ok, saw }, at) => {
    const lines = folded(escapeText(saw), columns - width - 6).join(`\n${' '.repeat(width + 6)}`);
    return `  ${ok ? yes : no} ${print.paint.dim((names[at] ?? '').padEnd(width))}  ${lines}`;
  });
  const steps = next.flatMap((line) =>
    line.startsWith('  ')
      ? [continued(escapeText(line), columns, 'posix')]
      : folded(escapeText(line), columns),
  );
  return `${[...title, ...rows, ...steps].join('\n')}\n`;
}
