import type { ConnectivityClient, RoutesQuestion } from '../../client/connectivity.ts';
import { formatBandwidth, parseBandwidth, parseDuration } from '../../contract/amounts.ts';
import { readTypedDuration, SECOND, WEEK } from '../../contract/durations.ts';
import { Failure, ownCommand } from '../../contract/failure.ts';
import { SITES } from '../../contract/links.ts';
import type { AskedRoute } from '../../contract/reservation.ts';
import { linkName } from '../../words/links.ts';
import { parseTime } from '../../words/typed-time.ts';
import type { Context } from '../context.ts';
import type { PeriodFlags } from '../period.ts';
import { availabilityChart, chartColumns } from '../print/availability-chart.ts';
import { askFor, pick } from '../questions.ts';

/** The flags of a `reserve` of which some can't be missing. */
interface Typed extends PeriodFlags {
  bandwidth?: string;
  earliest?: boolean;
  volume?: string;
}

/** A part of a `reserve`; `length` is `--for` or `--end`. */
type Part = 'site1' | 'site2' | 'bandwidth' | 'start' | 'for' | 'end' | 'length';
/** The parts of a `reserve` that were not typed, each as it would be typed. */
type Missing = ReadonlyMap<Part, string>;

/** Finds the parts that a typed `reserve` lacks. A search finds its start itself, and a volume its rate. */
export function missingOf([site1, site2]: readonly (string | undefined)[], flags: Typed): Missing {
  const { bandwidth, earliest = false, volume, start, startNow = false, end, for: lasting } = flags;
  const isVolume = volume !== undefined;
  const isStarted = start !== undefined || startNow || earliest || isVolume;
  const parts: [Part, string, isTyped: boolean][] = [
    ['site1', '<site1>', site1 !== undefined],
    ['site2', '<site2>', site2 !== undefined],
    ['bandwidth', '--bandwidth <rate>', bandwidth !== undefined || isVolume],
    ['start', 'a start (--start-now or --start <time>)', isStarted],
    earliest
      ? ['for', '--for <duration>', lasting !== undefined]
      : isVolume
        ? ['end', '--end <time>', end !== undefined]
        : ['length', 'an end (--for <duration> or --end <time>)', end !== undefined || lasting !== undefined],
  ];
  return new Map(parts.flatMap(([part, text, isTyped]) => (isTyped ? [] : [[part, text]])));
}

/** The typed parts with the least in place of what is missing, so that mistakes in them are told before anything is asked. */
export function withLeast<Flags extends Typed>(
  [site1 = 'any', site2 = 'other']: readonly (string | undefined)[],
  flags: Flags,
  missing: Missing,
): [sites: [string, string], flags: Flags] {
  const least: Typed = {
    ...(missing.has('bandwidth') ? { bandwidth: '1' } : {}),
    ...(missing.has('start') ? { startNow: true } : {}),
    ...(missing.has('for') || missing.has('length') ? { for: '1s' } : {}),
    ...(missing.has('end') ? { end: '9999-12-31T00:00:00Z' } : {}),
  };
  return [[site1, site2], { ...flags, ...least }];
}

/** The sentence for a person who gives no answer. */
const DECLINED = 'Nothing was booked.';

/**
 * Asks a person for what is missing of a `reserve`, with what is free of the link, and shows the command that it then
 * is. Each answer is read at once, as the command would read it.
 *
 * @returns that command line, without the program's own name
 * @throws Declined where an answer is left out
 */
export async function askForMissing(
  context: Context,
  [typed1, typed2]: readonly string[],
  missing: Missing,
  route: AskedRoute,
): Promise<string[]> {
  const { output } = context;
  const times = await context.clock.times();
  const { connectivity } = await context.session();
  const ends = await endsOf(connectivity, route);
  const chosen = (title: string, other?: string): Promise<string> => {
    const sites = ends.filter((name) => name !== other);
    return pick(context, title, sites, (site) => site, DECLINED);
  };
  const first = typed1 ?? (await chosen('From which site?'));
  const second = typed2 ?? (await chosen(`From ${first} to which site?`, first));
  const capacity = await showFree(context, connectivity, { site1: first, site2: second, ...route });
  const flags: string[] = [];
  if (missing.has('bandwidth')) {
    const most = capacity === undefined ? '' : `; at most ${formatBandwidth(capacity)}`;
    const rate = await askFor(context, `How fast? (such as 500M or 1G${most}) `, parseBandwidth, DECLINED);
    flags.push('--bandwidth', rate);
  }
  let from = times.now;
  if (missing.has('start')) {
    const question = "When does it start? (such as 14:00 or 'friday 9:00'; Enter: now) ";
    const read = (text: string): number => parseTime(text || 'now', times);
    const text = await askFor(context, question, read, undefined);
    from = read(text);
    flags.push(...(text === '' || text === 'now' ? ['--start-now'] : ['--start', text]));
  }
  const questions = {
    for: 'How long? (such as 2h or 3d) ',
    end: "Until when at the latest? (such as 'friday 18:00' or +1d) ",
    length: "How long, or until when? (such as 2h, 3d or 'friday 18:00') ",
  };
  for (const part of ['for', 'end', 'length'] as const) {
    if (!missing.has(part)) continue;
    const isFor = (text: string): boolean => part === 'for' || (part === 'length' && isDuration(text));
    const read = (text: string): number =>
      isFor(text) ? parseDuration(text) : parseTime(text, times, { after: from });
    const text = await askFor(context, questions[part], read, DECLINED);
    flags.push(isFor(text) ? '--for' : '--end', text);
  }
  const { words, texts } = context.typed;
  // After the site that was typed, else after the command's word.
  const at = words.findLastIndex(({ is }) => is === 'command' || is === 'argument') + 1;
  const sites = [...(missing.has('site1') ? [first] : []), ...(missing.has('site2') ? [second] : [])];
  const whole = [...texts.toSpliced(at, 0, ...sites), ...flags];
  output.prompt('The command for this:');
  output.command(ownCommand(...whole));
  return whole;
}

function isDuration(text: string): boolean {
  return (readTypedDuration(text) ?? 0) >= SECOND;
}

/** The sites that can be an end of a route as it is asked for: those of the links, else those that the service names. */
async function endsOf(
  connectivity: ConnectivityClient,
  { via = [], avoid = [] }: AskedRoute,
): Promise<string[]> {
  const ends = ((await connectivity.links()) ?? []).flatMap(({ site1, site2 }) => [site1, site2]);
  const sites = ends.length > 0 ? ends : ((await connectivity.sites()) ?? SITES);
  return [...new Set(sites)].filter((site) => ![...via, ...avoid].includes(site)).toSorted();
}

/**
 * Draws what is free of a link in the coming week.
 *
 * @returns the link's capacity in Mbps; undefined where the service does not tell
 */
async function showFree(
  { output, clock: { times } }: Context,
  connectivity: ConnectivityClient,
  { site1, site2, ...route }: RoutesQuestion,
): Promise<number | undefined> {
  const { now, zone } = await times();
  const window = { start: now, end: now + WEEK };
  try {
    const points = chartColumns(output.columns);
    const { bandwidth, items } = await connectivity.availability({
      ...{ site1, site2, ...route },
      ...{ ...window, points },
    });
    const link = { site1, site2, bandwidth };
    output.prompt(`Free in the coming week, ${linkName(link)}:`);
    await output.show((print) =>
      availabilityChart(print, { links: [{ link, items }], window, zone, now }, output.columns),
    );
    return bandwidth;
  } catch (error) {
    // A service without this question can be asked to book all the same.
    if (error instanceof Failure && error.code === 'not_supported') return undefined;
    throw error;
  }
}
