import { isIP } from 'node:net';
import { Failure, ownCommand } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { instantOf } from '../../contract/reservation-request.ts';
import { type End, OUTER_PROTOCOLS, USUAL_MTU } from '../../vlan/end.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context, Outcome } from '../context.ts';
import { ALLOW_UNSIGNED } from '../global-options.ts';
import { continued } from '../help-layout.ts';
import { folded } from '../print/folded.ts';
import { escapeText, type Printer } from '../print/output.ts';
import { shortTime } from '../times.ts';
import { END_OPTIONS, endArgument } from '../vlan/end-argument.ts';
import { withPrograms } from './devices.ts';
import { type Check, gather } from './evidence.ts';
import { combined, readFarReport } from './far.ts';
import { stackText } from './stacks.ts';
import { type Verdict, verdictOf } from './verdict.ts';

/** `slices-conn probe ID|FILE|- --site SITE --dev DEV --peer ADDRESS [--far FILE]`. */
export const command = {
  about:
    "Looks at this end of a reserved link, pings the other end, listens to what arrives, and says where the fault is. It leaves nothing behind, and sends with the reservation's own tags only. Run it at both ends at the same time: what one end sends is what the other hears. Listening needs root. Exits with 0 where the link works, and with 6 for every other verdict.",
  args: { '[id|file]': 'its name or id; the file of its signed token; - for standard input' },
  options: {
    ...END_OPTIONS,
    ...ALLOW_UNSIGNED,
    peer: { flags: '--peer <address>', help: "the other end's IP address", required: true },
    far: {
      flags: '--far <file>',
      help: 'what probe --json printed at the other end: both are judged together',
    },
    mtu: { flags: '--mtu <bytes>', help: 'as it was given to vlan (default: 1500)' },
    outer: {
      flags: '--outer <protocol>',
      help: 'as it was given to vlan',
      choices: OUTER_PROTOCOLS,
      default: OUTER_PROTOCOLS[0],
    },
  },
  notes: `Verdicts:
  ok                    the link works, at the full size
  own_tags_swapped      this end: the C-tag is outside, the S-tag inside
  own_ethertype         this end: the outer tag is 802.1Q in place of 802.1ad
  own_other_sites_tags  this end has the other site's tags
  own_device            this end: a device is missing, down, or without address
  own_mtu               this end: an MTU is too small
  far_tags_swapped      the other end: the C-tag is outside, the S-tag inside
  far_ethertype         the other end: the outer tag is 802.1Q
  far_c_tag             the other end: another C-tag
  single_tagged         the other end sends one tag only
  far_does_not_hear     the other end sends, and does not answer
  silent                nothing arrives
  path_mtu              large packets are lost in the network

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
  const machine = withPrograms(context.processes);
  const { peer } = flags;
  if (isIP(peer) === 0) {
    throw new Failure('usage', `${peer} is not an IP address.`, {
      why: '--peer takes the address of the other end, such as 10.0.0.2 or fd00::2, without a length.',
    });
  }
  const end = await endArgument(context, typed, flags, { verb: 'probe' });
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
  const checks: Check[] = [];
  const evidence = await gather(end, peer, {
    machine,
    ...clock,
    waitFor: (what, work) => output.waitFor(what, work),
    note: (check) => void checks.push(check),
    stopped() {
      const stop = new AbortController();
      void machine.stopSignal().then((stopped) => {
        stop.abort(new Failure(stopped, 'Stopped.', { why: 'What was made for listening is removed.' }));
      });
      return stop.signal;
    },
  });
  const alone = verdictOf(end, peer, evidence);
  const verdict = far ? combined(alone, far, end) : alone;
  if (far)
    checks.push({ check: 'other_end', ok: far.verdict === 'ok', saw: `${far.verdict} at ${end.otherSite}` });
  const result = {
    verdict: verdict.verdict,
    end: verdict.end,
    heard: (evidence.heard ?? []).map(stackText),
    checks: [period(String), ...checks],
    reservation: end.reservation.id,
    site: end.site,
  };
  const next = nextSteps(verdict, {
    end,
    peer,
    argument: typed,
    isRoot: machine.isRoot(),
    hasBegun,
    hasFar: far !== undefined,
    couldListen: evidence.heard !== null,
    command: (...words) => context.output.advised(ownCommand(...words)),
  });
  await output.result(result, (print) => verdictText(print, verdict, [period(inZone), ...checks], next));
  return verdict.verdict === 'ok' ? 0 : 6;
}

/** The next steps: sentences, and commands, which start with two blanks. */
function nextSteps(
  { verdict, end: where, repair = [], configure = false, passes }: Verdict,
  about: {
    end: End;
    peer: string;
    argument: string | undefined;
    isRoot: boolean;
    hasBegun: boolean;
    hasFar: boolean;
    couldListen: boolean;
    command: (...words: readonly string[]) => string;
  },
): readonly string[] {
  const { end, peer, argument, isRoot, hasBegun, hasFar, couldListen, command } = about;
  const choices = (mtu: number): readonly string[] => [
    ...(mtu === USUAL_MTU ? [] : ['--mtu', String(mtu)]),
    ...(end.outer === '802.1ad' ? [] : ['--outer', end.outer]),
  ];
  const given = argument === undefined || argument === '-' ? end.reservation.id : argument;
  const vlan = (mtu = end.mtu.inner): string =>
    `  ${command('vlan', given, '--site', end.site, '--dev', end.device, ...choices(mtu))}`;
  const vlanHere = `${vlan()} --address ADDRESS | ${isRoot ? '' : 'sudo '}sh -ex`;
  const there = ['--site', end.otherSite, '--dev', 'DEVICE', '--address', 'ADDRESS'];
  const vlanThere = `  ${command('vlan', end.reservation.id, ...there, ...choices(end.mtu.inner))} | sudo sh -ex`;
  const again = `  ${isRoot ? '' : 'sudo '}${command('probe', given, '--site', end.site, '--dev', end.device, '--peer', peer, ...choices(end.mtu.inner))}`;
  if (!hasBegun && verdict !== 'ok' && where !== 'own') {
    return ['The network carries nothing before the reservation starts. Probe again then:', again];
  }
  if (where === 'path') {
    if (verdict !== 'path_mtu') return [];
    if (passes === undefined)
      return ['Ask for a larger MTU there, or use a smaller --mtu with vlan, at both ends.'];
    return [
      `Ask for a larger MTU there, or use ${passes} bytes at both ends: as root at once, and in what configures them:`,
      ...repair.map((line) => `  ${line}`),
      vlan(passes),
    ];
  }
  switch (verdict) {
    case 'ok':
      return [];
    case 'own_tags_swapped':
    case 'own_ethertype':
    case 'own_other_sites_tags':
    case 'own_device':
    case 'own_mtu': {
      const lines = repair.map((line) => `  ${line}`);
      if (!configure) return lines.length === 0 ? [] : ['Type as root:', ...lines];
      return lines.length === 0
        ? ['What to type here:', vlanHere]
        : ['Remove the wrong device as root, then see what to type here:', ...lines, vlanHere];
    }
    case 'silent':
    case 'far_does_not_hear': {
      if (verdict === 'silent' && !couldListen && !isRoot) return ['Listen as root:', again];
      if (hasFar && where === null) {
        return ['Compare the addresses of both ends, and look at their firewalls:', '  ip address'];
      }
      if (hasFar) return [`What is to be typed at ${end.otherSite}:`, vlanThere];
      return [
        `Probe both ends at the same time, with --json > FILE at ${end.otherSite}. Then, with its file here:`,
        `${again} --far FILE`,
      ];
    }
    default:
      return [`What is to be typed at ${end.otherSite}:`, vlanThere];
  }
}

/** The verdict in a sentence, what was looked at, and what to type next. */
function verdictText(
  print: Printer,
  { says }: Verdict,
  checks: readonly Check[],
  next: readonly string[],
): string {
  const columns = print.columns ?? Number.POSITIVE_INFINITY;
  const mark = (ok: boolean): string => {
    if (print.ascii) return ok ? 'ok' : 'no';
    return ok ? print.paint.green('✓') : print.paint.red('✗');
  };
  const names = checks.map(({ check }) => check.replaceAll('_', ' '));
  const width = Math.max(...names.map((name) => name.length));
  const title = folded(escapeText(says), columns).map((line) => print.paint.bold(line));
  const rows = checks.flatMap(({ ok, saw }, at) => {
    const indent = width + 6;
    const lines = folded(escapeText(saw), columns - indent);
    const label = (names[at] ?? '').padEnd(width);
    return lines.map((line, row) =>
      row === 0 ? `  ${mark(ok)} ${print.paint.dim(label)}  ${line}` : `${' '.repeat(indent)}${line}`,
    );
  });
  const steps = next.flatMap((line) =>
    line.startsWith('  ')
      ? [continued(escapeText(line), columns, 'posix')]
      : folded(escapeText(line), columns),
  );
  return `${[...title, ...rows, ...steps].join('\n')}\n`;
}
