import type { ConnectivityClient } from '../../client/connectivity.ts';
import { bandwidthWord, formatBandwidth, parseBandwidth, parseDuration } from '../../contract/amounts.ts';
import type { Slot } from '../../contract/availability.ts';
import { durationWord, formatDuration } from '../../contract/durations.ts';
import { Failure, ownCommand } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import type { Period } from '../../contract/instants.ts';
import { SITES } from '../../contract/links.ts';
import type { AskedRoute } from '../../contract/reservation.ts';
import { instantOf } from '../../contract/reservation-request.ts';
import { linkName } from '../../words/links.ts';
import type { CommandDeclaration } from '../command.ts';
import type { CommandLine } from '../command-line.ts';
import type { Context } from '../context.ts';
import { readWindow } from '../period.ts';
import { availabilityChart, chartColumns, type LinkAvailability } from '../print/availability-chart.ts';
import { availabilitySvg, SVG_COLUMNS } from '../print/availability-svg.ts';
import { continued, folded } from '../print/folded.ts';
import { escapeLines, escapeText, type Output } from '../print/output.ts';
import { confirmWriting } from '../questions.ts';
import { timeWord, withNearestSite, withoutRoute } from '../reservation/alternatives.ts';
import { ROUTE_OPTIONS, readRoute, routeWords } from '../reservation/options.ts';
import { shortEnd, shortTime, type TimeContext } from '../times.ts';
import { siteName } from '../values.ts';

/** `slices-conn availability SITE1 [SITE2] [--start T] [--end T|--for D] [--bandwidth B --duration D] …`. */
export const command = {
  about:
    'Shows how much of a link is free over time, of all links of a site without <site2>: from now for a week, unless told otherwise.\nWith --bandwidth and --duration it also says when such a reservation can start.',
  args: {
    '<site1>': 'one end, such as be-gent1',
    '[site2]': 'the other end; left out: all links of site1',
  },
  options: {
    start: { flags: '--start <time>', help: 'from when on; default now' },
    end: { flags: '--end <time>', help: 'until when', conflicts: ['for'] },
    for: { flags: '--for <duration>', help: 'for how long: 6h, 1d, 52w; default 1w' },
    bandwidth: { flags: '--bandwidth <rate>', help: '100 (Mbps), 100M, 1G, 2.5G; with --duration' },
    duration: {
      flags: '--duration <duration>',
      help: 'how long a reservation would last: 90m, 2h; with --bandwidth',
    },
    ...ROUTE_OPTIONS,
    svg: { flags: '--svg <file>', help: 'write the chart as a picture, for a paper or a page' },
  },
  examples: [
    'slices-conn availability be-gent1 pl-poznan1 --for 1d',
    'slices-conn availability be-gent1 pl-poznan1 --bandwidth 1G --duration 2h',
    'slices-conn availability be-gent1',
    'slices-conn availability be-gent1 fr-slices --avoid fr-lille',
    'slices-conn availability be-gent1 pl-poznan1 --for 52w --svg year.svg',
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/** The need of a reservation: Mbps, and milliseconds. */
interface Need {
  bandwidth: number;
  duration: number;
}

/** A link's use over the window, and where something is needed the runs of starts that fit. */
interface LinkAnswer extends LinkAvailability {
  slots: readonly Slot[] | null;
}

/** Shows how much of a link, or of each link of a site, is free, and when a reservation can start. */
export async function run(
  context: Context,
  [first = '', second]: readonly string[],
  flags: Flags,
): Promise<void> {
  const { output, typed, files } = context;
  const sites = [first, ...(second === undefined ? [] : [second])].map(siteName);
  const route = readRoute(flags, { site1: first, site2: second });
  const need = readNeed(flags);
  const times = await context.clock.times();
  const window = readWindow(flags, times);
  const { svg } = flags;
  if (svg !== undefined) await confirmWriting(context, svg, 'Nothing was written.');
  const { connectivity } = await context.session();
  // A picture is finer than the screen, where a column shows the least and the most of several parts.
  const columns = svg === undefined ? chartColumns(output.columns) : SVG_COLUMNS;
  const points = output.json ? undefined : columns;
  const asked = { route, window, need, points };
  const answers = await answersOf(connectivity, sites, asked).catch((error: unknown) => {
    throw error instanceof Failure ? withNextStep(error, sites, route, typed) : error;
  });
  const view = { window, zone: times.zone, now: times.now, links: answers };
  if (svg !== undefined) await files.writePublic(svg, availabilitySvg(view));
  // The answer took a moment: a start that was now lies before it.
  const answered = { ...times, now: context.clock.now() };
  const [only] = answers;
  await output.result(second !== undefined && only ? only : { items: answers }, (print) => {
    // A chart of one link has no title: who named both sites knows which it is.
    const title = second === undefined && only && answers.length === 1 ? `${linkName(only.link)}\n` : '';
    const chart = availabilityChart(print, view, output.columns);
    const written = svg === undefined ? '' : `Written to ${escapeText(svg)}.\n`;
    const width = print.isTerminal ? output.columns : Number.POSITIVE_INFINITY;
    const starts = need ? startsText(answers, { need, route, width }, answered, output) : '';
    return print.paint.bold(escapeLines(title)) + chart + written + starts;
  });
}

/** The question about each link. */
interface Question {
  route: AskedRoute;
  /** Milliseconds. */
  window: Period;
  need: Need | undefined;
  /** How many columns to ask for; undefined: exact steps. */
  points: number | undefined;
}

/** Asks about the named link, or all links of a site. */
async function answersOf(
  connectivity: ConnectivityClient,
  sites: readonly string[],
  { window, route, need, points }: Question,
): Promise<LinkAnswer[]> {
  const pairs = await pairsOf(connectivity, sites);
  return Promise.all(
    pairs.map(async (pair) => {
      const asked = { ...pair, ...route, ...window };
      const { bandwidth, items, routes } = await connectivity.availability({ ...asked, points });
      const isWide = need !== undefined && need.bandwidth > bandwidth;
      const slots = isWide ? [] : need ? await connectivity.slots({ ...asked, ...need }) : null;
      return { link: { ...pair, bandwidth }, items, routes, slots };
    }),
  );
}

/** A refusal of the sites with a command that shows what there is. */
function withNextStep(
  error: Failure,
  sites: readonly string[],
  route: AskedRoute,
  typed: CommandLine,
): Failure {
  const [site1, site2] = sites;
  if (error.code === 'search_given_up') return error.with({ why: 'Ask for a shorter time.' });
  return error.code === 'sites_not_connected' && site2 !== undefined
    ? error.with({ fix: `slices-conn availability ${site1}` })
    : withNearestSite(withoutRoute(error), [...sites, ...(route.via ?? []), ...(route.avoid ?? [])], typed);
}

/** Reads --bandwidth and --duration. @throws Failure `usage` for one without the other */
function readNeed({ bandwidth, duration }: Flags): Need | undefined {
  if (bandwidth === undefined && duration === undefined) return undefined;
  if (bandwidth !== undefined && duration !== undefined) {
    return { bandwidth: parseBandwidth(bandwidth), duration: parseDuration(duration) };
  }
  const [given, other] = bandwidth === undefined ? ['duration', 'bandwidth'] : ['bandwidth', 'duration'];
  throw new Failure('usage', `--${given} needs --${other}.`, {
    why: 'The two together say when such a reservation can start.',
    fix: { [other]: other === 'bandwidth' ? '1G' : '2h' },
  });
}

/** The links that are asked about: the named one, or all of a site. @throws Failure where there is none */
async function pairsOf(
  connectivity: ConnectivityClient,
  [site1 = '', site2]: readonly string[],
): Promise<{ site1: string; site2: string }[]> {
  if (site2 !== undefined) return [{ site1, site2 }];
  const fix = 'slices-conn sites';
  const links = await connectivity.links();
  if (!links) {
    const why = 'Name both ends of a link.';
    throw new Failure('not_supported', 'This service does not list its links.', { why, fix });
  }
  const own = links.filter((link) => link.site1 === site1 || link.site2 === site1);
  if (own.length > 0)
    return own.map((link) => ({ site1, site2: link.site1 === site1 ? link.site2 : link.site1 }));
  const sites: readonly string[] = (await connectivity.sites()) ?? SITES;
  if (sites.includes(site1)) {
    throw new Failure('sites_not_connected', `No link ends at ${site1}.`, { fix });
  }
  const msg = `There is no site ${JSON.stringify(site1)}.`;
  const detail = { loc: ['Site'], msg, type: 'NotValid', code: 'site_unknown', facts: { sites } };
  throw new Failure('site_unknown', msg, { fix, details: [detail] });
}

/** The most runs of starts that are told. */
const MOST_TOLD = 6;

/** When a reservation can start, in a sentence for each link, and the command that books the first. */
function startsText(
  answers: readonly LinkAnswer[],
  { need, route, width }: { need: Need; route: AskedRoute; width: number },
  times: TimeContext,
  output: Output,
): string {
  const lines = answers.map(({ link, slots }) => {
    const name = answers.length > 1 ? `${linkName(link)}: ` : '';
    return folded(`${name}${startsOf(link.bandwidth, slots ?? [], need, times)}`, width - 2).join('\n  ');
  });
  const advice = adviceOf(answers, need, route, times);
  if (advice !== undefined) {
    lines.push(continued(`  try: ${output.advised(advice)}`, width, output.shell));
  }
  return lines.map((line) => `${escapeLines(line)}\n`).join('');
}

/** When a reservation can start on one link, as a sentence. @param capacity Mbps */
function startsOf(
  capacity: number,
  slots: readonly Slot[],
  { bandwidth, duration }: Need,
  times: TimeContext,
): string {
  const what = `${formatBandwidth(bandwidth)} for ${formatDuration(duration)}`;
  if (bandwidth > capacity) return `${what} can't start: the link has ${formatBandwidth(capacity)}.`;
  if (slots.length === 0) return `${what} can't start in this time.`;
  // A run of starts: `now to 14:00`, `Mon 24 Nov 09:00 to 11:30`.
  const told = slots.slice(0, MOST_TOLD).map(({ first_start_date, last_start_date }) => {
    const [first, last] = [instantOf(first_start_date), instantOf(last_start_date)];
    const from = isNow(first, times) ? 'now' : shortTime(first, times);
    return last === first ? from : `${from} to ${shortEnd(first, last, times)}`;
  });
  const more = slots.length - told.length;
  return `${what} can start: ${[...told, ...(more > 0 ? [`and ${more} more times`] : [])].join(', ')}.`;
}

/** Whether a start is not later than the command. */
function isNow(start: number, { now }: TimeContext): boolean {
  return start - now < 1000;
}

/** The command that books the first start of any link; without a start, the one that looks further. */
function adviceOf(
  answers: readonly LinkAnswer[],
  need: Need,
  route: AskedRoute,
  times: TimeContext,
): string | undefined {
  const fitting = answers.filter(({ link }) => link.bandwidth >= need.bandwidth);
  const starts = fitting.map(({ link, slots }) => {
    const [first] = slots ?? [];
    return { link, start: first ? instantOf(first.first_start_date) : Number.POSITIVE_INFINITY };
  });
  const [first] = starts.toSorted((one, other) => one.start - other.start || 0);
  if (!first) return undefined;
  const { link, start } = first;
  const words = ['reserve', link.site1, link.site2, '--bandwidth', bandwidthWord(need.bandwidth)];
  words.push(...routeWords(route));
  const lasting = ['--for', durationWord(need.duration) ?? ''];
  if (!Number.isFinite(start)) return ownCommand(...words, '--earliest', ...lasting, '--dry-run');
  const from = isNow(start, times) ? ['--start-now'] : ['--start', timeWord(start)];
  return ownCommand(...words, ...from, ...lasting);
}
