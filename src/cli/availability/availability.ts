import type { ConnectivityClient } from '../../client/connectivity.ts';
import type { AskedRoute } from '../../contract/asked-route.ts';
import type { Slot } from '../../contract/availability.ts';
import { durationWord, formatDuration } from '../../contract/durations.ts';
import { Failure, ownCommand } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import type { Period } from '../../contract/phases.ts';
import { instantOf } from '../../contract/reservation-request.ts';
import { SITES } from '../../contract/sites.ts';
import { parseDuration } from '../../contract/typed-duration.ts';
import { linkName } from '../../words/link-name.ts';
import type { CommandDeclaration } from '../command.ts';
import type { CommandLine } from '../command-line.ts';
import type { Context } from '../context.ts';
import { continued } from '../help-layout.ts';
import { readWindow } from '../period.ts';
import { availabilityChart, chartColumns, type LinkAvailability } from '../print/availability-chart.ts';
import { availabilitySvg, SVG_COLUMNS } from '../print/availability-svg.ts';
import { folded } from '../print/folded.ts';
import { escapeLines, escapeText, type Output } from '../print/output.ts';
import { confirmWriting } from '../questions.ts';
import { timeWord, withNearestSite, withoutRoute } from '../reservation/alternatives.ts';
import { ROUTE_OPTIONS, readRoute, routeWords } from '../reservation/route-options.ts';
import { shortEnd, shortTime, type TimeContext } from '../times.ts';
import { bandwidthWord, formatBandwidth, parseBandwidth, siteName } from '../values.ts';

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
    end: { flags: '--end <time>', help: 'until when' },
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
  const answers = await answersOf(connectivity, sites, { window, route, need, points }).catch(
    (error: unknown) => {
      throw withNextStep(error, { sites, route, typed });
    },
  );
  const view = { window, zone: times.zone, now: times.now };
  if (svg !== undefined) await files.writePublic(svg, availabilitySvg({ ...view, links: answers }));
  // The answer took a moment: a start that was now lies before it.
  const answered = { ...times, now: context.clock.now() };
  const [only] = answers;
  await output.result(second !== undefined && only ? only : { items: answers }, (print) => {
    // A chart of one link has no title: who named both sites knows which it is.
    const title = second === undefined && only && answers.length === 1 ? `${linkName(only.link)}\n` : '';
    const chart = availabilityChart(print, { ...view, links: answers }, output.columns);
    const width = print.isTerminal ? output.columns : Number.POSITIVE_INFINITY;
    const starts = need
      ? startsText(answers, need, answered, {
          width,
          route,
          output,
        })
      : '';
    const written = svg === undefined ? '' : `Written to ${escapeText(svg)}.\n`;
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
  const links = await Promise.all(
    pairs.map((pair) => freeOf(connectivity, { ...pair, ...route }, window, points)),
  );
  const slotsOf = async ({ link }: LinkAvailability): Promise<readonly Slot[] | null> => {
    if (!need) return null;
    return need.bandwidth > link.bandwidth
      ? []
      : connectivity.slots({ ...link, ...route, ...window, ...need });
  };
  return Promise.all(links.map(async (each) => ({ ...each, slots: await slotsOf(each) })));
}

/** A refusal of the sites with a command that shows what there is. */
function withNextStep(
  error: unknown,
  { sites, route, typed }: { sites: readonly string[]; route: AskedRoute; typed: CommandLine },
): unknown {
  if (!(error instanceof Failure)) return error;
  const [site1, site2] = sites;
  if (error.code === 'search_given_up') return error.with({ why: 'Ask for a shorter time.' });
  return error.code === 'sites_not_connected' && site2 !== undefined
    ? error.with({ fix: `slices-conn availability ${site1}` })
    : withNearestSite(withoutRoute(error), [...sites, ...(route.via ?? []), ...(route.avoid ?? [])], typed);
}

/** How much of one link is free in a window: exact steps, or so many columns. */
async function freeOf(
  connectivity: ConnectivityClient,
  { site1, site2, ...route }: AskedRoute & { site1: string; site2: string },
  window: Period,
  points: number | undefined,
): Promise<LinkAvailability> {
  const { bandwidth, items, routes } = await connectivity.availability({
    ...{ site1, site2, ...route },
    ...{ ...window, points },
  });
  return { link: { site1, site2, bandwidth }, items, routes };
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
  const links = await connectivity.links();
  if (!links) {
    throw new Failure('not_supported', 'This service does not list its links.', {
      why: 'Name both ends of a link.',
      fix: 'slices-conn sites',
    });
  }
  const others = links.flatMap((link) => {
    if (link.site1 === site1) return [link.site2];
    return link.site2 === site1 ? [link.site1] : [];
  });
  if (others.length > 0) return others.map((other) => ({ site1, site2: other }));
  const known: readonly string[] = (await connectivity.sites()) ?? SITES;
  const isKnown = known.includes(site1);
  const facts = { fix: 'slices-conn sites' };
  if (isKnown) throw new Failure('sites_not_connected', `No link ends at ${site1}.`, facts);
  const says = `There is no site ${JSON.stringify(site1)}.`;
  const detail = {
    loc: ['Site'],
    msg: says,
    type: 'NotValid',
    code: 'site_unknown',
    facts: { sites: known },
  };
  throw new Failure('site_unknown', says, { ...facts, details: [detail] });
}

/** The most runs of starts that are told. */
const MOST_TOLD = 6;

/** When a reservation can start, in a sentence for each link, and the command that books the first. */
function startsText(
  answers: readonly LinkAnswer[],
  need: Need,
  times: TimeContext,
  { width, route, output }: { width: number; route: AskedRoute; output: Output },
): string {
  const sentences = answers.map((answer) => startsOf(answer, need, times, answers.length > 1));
  const advice = adviceOf(answers, need, route, times);
  const tried =
    advice === undefined ? [] : [continued(`  try: ${output.advised(advice)}`, width, output.shell)];
  const lines = [...sentences.map((text) => folded(text, width - 2).join('\n  ')), ...tried];
  return lines.map((line) => `${escapeLines(line)}\n`).join('');
}

/** When a reservation can start, as a sentence. @param isOneOfSeveral names the link */
function startsOf(
  { link, slots }: LinkAnswer,
  { bandwidth, duration }: Need,
  times: TimeContext,
  isOneOfSeveral: boolean,
): string {
  const where = isOneOfSeveral ? `${linkName(link)}: ` : '';
  const what = `${where}${formatBandwidth(bandwidth)} for ${formatDuration(duration)}`;
  if (bandwidth > link.bandwidth)
    return `${what} can't start: the link has ${formatBandwidth(link.bandwidth)}.`;
  const runs = (slots ?? []).map((slot) => slotText(slot, times));
  if (runs.length === 0) return `${what} can't start in this time.`;
  const more = runs.length - MOST_TOLD;
  const told = [...runs.slice(0, MOST_TOLD), ...(more > 0 ? [`and ${more} more times`] : [])];
  return `${what} can start: ${told.join(', ')}.`;
}

/** A run of starts for people: `now to 14:00`, `Mon 24 Nov 09:00 to 11:30`. */
function slotText({ first_start_date, last_start_date }: Slot, times: TimeContext): string {
  const [first, last] = [instantOf(first_start_date), instantOf(last_start_date)];
  const from = isNow(first, times) ? 'now' : shortTime(first, times);
  if (last === first) return from;
  return `${from} to ${shortEnd(first, last, times)}`;
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
  const starts = fitting.flatMap(({ link, slots }) =>
    (slots ?? []).slice(0, 1).map(({ first_start_date }) => ({ link, start: instantOf(first_start_date) })),
  );
  const [first] = starts.toSorted((one, other) => one.start - other.start);
  const link = first?.link ?? fitting[0]?.link;
  if (!link) return undefined;
  const words = ['reserve', link.site1, link.site2, '--bandwidth', bandwidthWord(need.bandwidth)];
  words.push(...routeWords(route));
  const lasting = ['--for', durationWord(need.duration) ?? ''];
  if (!first) return ownCommand(...words, '--earliest', ...lasting, '--dry-run');
  const start = isNow(first.start, times) ? ['--start-now'] : ['--start', timeWord(first.start)];
  return ownCommand(...words, ...start, ...lasting);
}
