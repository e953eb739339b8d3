import type { Demand, Period } from './demand.ts';
import { durationOf, slowestRate } from './transfer.ts';

/** A part of a time, in which the free bandwidth may change. */
export interface BandwidthPart extends Period {
  /** Bounds of what is free in it, in Mbps. */
  least: number;
  most: number;
  /** In how many steps; in each, what is free does not change. The first begins with the part. */
  steps: number;
  startOf(step: number): number;
  /** Mbps. */
  freeIn(step: number): number;
}

/**
 * The bandwidth that is free on all of several links: step by step, that of the link with the least.
 *
 * @param links the parts of each, over the same period
 */
export function* narrowest(links: readonly Iterable<BandwidthPart>[]): Generator<BandwidthPart> {
  const steps = links.map((parts) => singleSteps(parts));
  const open = steps.map((each) => each.next());
  for (;;) {
    let [start, end, free] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (const { done, value } of open) {
      if (done) return;
      start = Math.max(start, value.start);
      end = Math.min(end, value.end);
      free = Math.min(free, value.free);
    }
    const [from, rate] = [start, free];
    yield { start, end, least: free, most: free, steps: 1, startOf: () => from, freeIn: () => rate };
    for (const [index, { value }] of open.entries()) {
      const next = value?.end === end ? steps[index]?.next() : undefined;
      if (next) open[index] = next;
    }
  }
}

/** A part in which what is free does not change, in Mbps. */
type FreeStep = Period & { free: number };

function* singleSteps(parts: Iterable<BandwidthPart>): Generator<FreeStep, undefined> {
  for (const part of parts) {
    for (let step = 0; step < part.steps; step += 1) {
      const end = step + 1 < part.steps ? part.startOf(step + 1) : part.end;
      yield { start: part.startOf(step), end, free: part.freeIn(step) };
    }
  }
}

/** The limits of a transfer besides bandwidth. */
export interface Transfer {
  /** The most Mbps that it may use. */
  most: number;
  /** Bytes, 1 to 2^53 - 1. */
  volume: number;
  /** The earliest start from an instant on for which tags are free for so many milliseconds; infinity for none. */
  tagsFrom(from: number, duration: number): number;
  /** A bound of how many milliseconds those tags are free that are free at some instant of a period. */
  tagsWithin(period: Period): number;
  /** The earliest start for which tags are free until an instant. */
  tagsSince(until: number): number;
}

/** A rectangle below the free bandwidth that may still become longer: `rate` Mbps have been free since `start`. */
interface Rectangle {
  start: number;
  rate: number;
  /** No start before this has tags. */
  tagged: number;
  /** Whether `tagged` has them. */
  isTagged: boolean;
  /** When the transfer at this rate is over, where it starts at `tagged`. */
  done: number;
  /** The least `done` of this rectangle and those below it. */
  first: number;
}

/**
 * The transfer of a volume at one constant rate that ends first; of those that end at the same instant, the slowest.
 *
 * The rate of one that ends first is, or can be raised to, the height of a rectangle that can't be made larger below the
 * free bandwidth. So the parts are read once, with a stack of the rectangles that are open: each is higher and begins
 * later than the one below it. The first in which the volume is through wins. A part in which none can be over is read
 * from its end, until the bandwidth is too low for what began before.
 *
 * @param parts without gaps between them, in order; the last ends at the deadline
 * @param deadline milliseconds
 */
export function fastest(
  parts: Iterable<BandwidthPart>,
  deadline: number,
  transfer: Transfer,
): Demand | undefined {
  const { most, volume } = transfer;
  const open = new OpenRectangles(transfer);
  const rates = new UsefulRates(transfer, deadline);
  for (const part of parts) {
    const useful = rates.during(part);
    const highest = Math.min(most, part.most);
    if (highest < useful) open.take(part.start, 0);
    else if (part.least >= highest) {
      open.take(part.start, highest);
      const found = open.overBy(part.end);
      if (found) return found;
    } else if (open.first() > part.end && part.start + durationOf(volume, highest) > part.end) {
      takeFromEnd(part, open, { most, useful });
    } else {
      for (let step = 0; step < part.steps; step += 1) {
        open.take(part.startOf(step), Math.min(most, part.freeIn(step)));
        const found = open.overBy(step + 1 < part.steps ? part.startOf(step + 1) : part.end);
        if (found) return found;
      }
    }
  }
  return undefined;
}

/** A link, as a search for a transfer asks it; see `LinkCalendar`. */
interface TransferLink {
  /** The bandwidth that is free over a period for a new reservation of a tenant. */
  freeParts(period: Period, tenant?: string): Iterable<BandwidthPart>;
  /** For each place, the earliest start from an instant on for which it has a tag that is free for so many milliseconds. */
  tagStarts(duration: number): ((from: number) => number)[];
  /** See {@link Transfer.tagsWithin}. */
  tagsWithin(period: Period): number;
  /** The earliest start, from `start` on, for which each place has a tag that is free until an instant. */
  tagsSince(until: number, start: number): number;
}

/**
 * The demand that carries `volume` bytes at one constant rate, of at most `bandwidth` Mbps, over all of some links at the
 * same time, and ends first; of those that end at the same instant, the slowest. Undefined when none fits within `start` to
 * `end`.
 *
 * @param links one at least
 * @param tenant whose share is a limit too
 */
export function fastestOver(
  links: readonly TransferLink[],
  { start, end, bandwidth, volume }: Demand & { volume: number },
  tenant?: string,
): Demand | undefined {
  const [first, ...others] = links.map((link) => link.freeParts({ start, end }, tenant));
  if (!first) throw new RangeError('a transfer needs a link');
  return fastest(others.length === 0 ? first : narrowest([first, ...others]), end, {
    most: bandwidth,
    volume,
    tagsFrom: (from, duration) =>
      settled(
        from,
        links.flatMap((link) => link.tagStarts(duration)),
      ),
    tagsWithin: (period) => Math.min(...links.map((link) => link.tagsWithin(period))),
    tagsSince: (until) => Math.max(...links.map((link) => link.tagsSince(until, start))),
  });
}

/** The first instant from `from` on that each of some functions gives back as it is: no earlier one would do for all. */
function settled(from: number, nexts: readonly ((start: number) => number)[]): number {
  for (let start = from; ; ) {
    const next = nexts.reduce((at, nextOf) => nextOf(at), start);
    if (next === start) return start;
    start = next;
  }
}

/** In about how many stretches of equal length the time up to the deadline is looked at for tags. */
const STRETCHES = 1000;

/** The slowest rates that are of use: slower, it takes longer than there is time, or than any tag is free. */
class UsefulRates {
  readonly #transfer: Transfer;
  readonly #deadline: number;
  /** When the first part begins. */
  #start: number | undefined;
  #until = Number.NEGATIVE_INFINITY;
  #rate = 0;

  constructor(transfer: Transfer, deadline: number) {
    this.#transfer = transfer;
    this.#deadline = deadline;
  }

  /** At least so many Mbps has a transfer that is under way in a part, which come in order. */
  during({ start, end }: Period): number {
    if (end <= this.#until) return this.#rate;
    this.#start ??= start;
    const whole = this.#deadline - this.#start;
    this.#until = Math.max(end, start + Math.ceil(whole / STRETCHES));
    const longest = Math.min(whole, this.#transfer.tagsWithin({ start, end: this.#until }));
    this.#rate = longest > 0 ? slowestRate(this.#transfer.volume, longest) : Number.POSITIVE_INFINITY;
    return this.#rate;
  }
}

/** Takes a part in which no transfer can be over: what matters is how much is free from each step to its end. */
function takeFromEnd(
  part: BandwidthPart,
  open: OpenRectangles,
  { most, useful }: { most: number; useful: number },
): void {
  const steps: { start: number; rate: number }[] = [];
  let rate = Number.POSITIVE_INFINITY;
  for (let step = part.steps - 1; step >= 0 && rate >= useful && rate > part.least; step -= 1) {
    const free = Math.min(most, part.freeIn(step));
    if (free < rate) steps.push({ start: part.startOf(step), rate: free });
    const last = steps.at(-1);
    if (last) last.start = part.startOf(step);
    rate = Math.min(rate, free);
  }
  // The lowest goes on with what was open before the part; too low a rate ends all of that.
  open.take(part.start, rate < useful ? 0 : rate);
  for (const step of steps.toReversed()) if (step.rate > rate) open.take(step.start, step.rate);
}

/** The rectangles that are open at an instant, the lowest first. */
class OpenRectangles {
  readonly #transfer: Transfer;
  readonly #tags: TagStarts;
  readonly #open: Rectangle[] = [];

  constructor(transfer: Transfer) {
    this.#transfer = transfer;
    this.#tags = new TagStarts(transfer);
  }

  /** When the first transfer is over, unless its tags are not free by then. */
  first(): number {
    return this.#open.at(-1)?.first ?? Number.POSITIVE_INFINITY;
  }

  /** From `time` on, so many Mbps are free. */
  take(time: number, rate: number): void {
    const open = this.#open;
    let [start, tagged] = [time, time];
    let top = open.at(-1);
    while (top && top.rate > rate) {
      // A slower transfer takes longer, so its tags are free no earlier.
      [start, tagged] = [top.start, top.tagged];
      open.pop();
      top = open.at(-1);
    }
    if (rate <= (top?.rate ?? 0)) return;
    const duration = durationOf(this.#transfer.volume, rate);
    tagged = this.#tags.known(tagged, duration);
    const done = tagged + duration;
    const first = Math.min(done, top?.first ?? Number.POSITIVE_INFINITY);
    open.push({ start, rate, tagged, isTagged: false, done, first });
  }

  /** The transfer that is over by `end`, to which all that is open goes on; undefined when there is none. */
  overBy(end: number): Demand | undefined {
    for (let first = this.first(); first <= end; first = this.first()) {
      const rectangle = this.#open.find(({ done }) => done === first);
      if (!rectangle) break;
      if (rectangle.isTagged) return slowest(this.#open, first, this.#transfer);
      const duration = durationOf(this.#transfer.volume, rectangle.rate);
      const { start, isSure } = this.#tags.from(rectangle.tagged, duration);
      rectangle.tagged = start;
      rectangle.isTagged = isSure;
      rectangle.done = start + duration;
      let least = Number.POSITIVE_INFINITY;
      for (const each of this.#open) {
        least = Math.min(least, each.done);
        each.first = least;
      }
    }
    return undefined;
  }
}

/** How much longer the next of the durations is that {@link TagStarts} remembers. */
const NEXT_DURATION = 1.02;

/**
 * Remembers from when on tags are free, since many rectangles ask for almost the same. What is too early for a duration is
 * too early for a longer one: so a few durations are remembered, for those that are a little longer.
 */
class TagStarts {
  readonly #transfer: Transfer;
  /** By the number of the duration: no start of `[from, to)` has tags. */
  readonly #tooEarly = new Map<number, Period>();

  constructor(transfer: Transfer) {
    this.#transfer = transfer;
  }

  /** As {@link from}, without asking. */
  known(time: number, duration: number): number {
    const known = this.#tooEarly.get(numberOf(duration));
    return known && time >= known.start && time < known.end ? known.end : time;
  }

  /** A start that none before has tags from `time` on; surely with tags itself, or to be asked about again. */
  from(time: number, duration: number): { start: number; isSure: boolean } {
    const number = numberOf(duration);
    const shorter = Math.min(duration, Math.max(1, Math.floor(NEXT_DURATION ** number)));
    let known = this.#tooEarly.get(number);
    if (!known || time < known.start || time >= known.end) {
      known = { start: time, end: this.#transfer.tagsFrom(time, shorter) };
      this.#tooEarly.set(number, known);
    }
    if (known.end > time) return { start: known.end, isSure: false };
    return { start: this.#transfer.tagsFrom(time, duration), isSure: true };
  }
}

/** The number of the longest remembered duration that is no longer than this one. */
function numberOf(duration: number): number {
  return Math.floor(Math.log(duration) / Math.log(NEXT_DURATION));
}

/**
 * The slowest transfer that ends at `end`.
 *
 * @param open the rectangles that are open there: what begins in one and not yet in the next has at most its height
 */
function slowest(open: readonly Rectangle[], end: number, { volume, tagsSince }: Transfer): Demand {
  const tagged = tagsSince(end);
  for (const { start, rate } of open) {
    const longest = end - Math.max(start, tagged);
    const bandwidth = slowestRate(volume, longest);
    if (longest > 0 && bandwidth <= rate) {
      return { start: end - durationOf(volume, bandwidth), end, bandwidth };
    }
  }
  throw new RangeError('no rectangle ends there');
}
