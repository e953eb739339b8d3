import { signal } from '@preact/signals';
import { DAY, HOUR, MINUTE } from '../../contract/durations.ts';
import type { Period } from '../../contract/instants.ts';
import { MAX_USE_LINKS } from '../../contract/request-limits.ts';
import { ceilToStep, floorToStep, type Step } from '../../words/civil-time.ts';
import { isSamePair } from '../route.ts';
import type { Column, Ends, Link, Service } from '../service.ts';
import type { View } from './view.ts';

/** The use of links as far as it is known. */
interface KnownUse {
  /** In order, without a gap; in neighbours something differs. */
  columns: ReadonlyMap<Link, readonly Column[]>;
  /** Whether a first answer is waited for. */
  isLoading: boolean;
  /** Whether some of it could not be loaded. */
  hasFailed: boolean;
}

/** What of the use is looked at. */
export type Looked = Pick<View, 'links' | 'pair' | 'width' | 'clock'> & { window: Period };

/** The lengths of a column: whole minutes, hours and days, as most reservations have. */
const STEPS: readonly Step[] = [
  ...[1, 2, 5, 15, 30, 60, 120, 240, 720].map((count): Step => ({ unit: 'minute', count })),
  ...[1, 2, 4].map((count): Step => ({ unit: 'day', count })),
];
const lengthOf = ({ unit, count }: Step): number => count * (unit === 'day' ? DAY : MINUTE);
/** How wide a column is at least, in pixels. */
const LEAST_PIXELS = 1.5;
/** In a wider drawing columns are wider: an answer has 2,000 of a link at most. */
const WIDEST = 1400;
/** The most columns of an answer. */
const MOST_COLUMNS = 50_000;
/** How far back the use is asked for: the service answers 24 hours, and a question must not come too late. */
const ASKED_BACK = 23 * HOUR;

/** A question about the use of links, in columns of equal length. */
export type Question = Period & { step: Step; points: number };

/** The question for a window: half of its length on each side too. The same for as long as that covers the window; undefined where all of it is over. */
export function questionFor(at: Omit<Looked, 'links'>, now: number, before?: Question): Question | undefined {
  const { width, clock } = at;
  const { start, end } = at.window;
  const step: Step = STEPS.find(
    (one) => (lengthOf(one) * Math.min(width, WIDEST)) / (end - start) >= LEAST_PIXELS,
  ) ?? { unit: 'day', count: 14 };
  const known = Math.min(ceilToStep(now - ASKED_BACK, step, clock), Math.floor(now / HOUR) * HOUR);
  const needed = Math.max(start, known);
  if (needed >= end) return undefined;
  const isCovered =
    before &&
    lengthOf(before.step) === lengthOf(step) &&
    before.start <= needed &&
    before.end >= end &&
    before.start > now - ASKED_BACK - 55 * MINUTE;
  if (isCovered) return before;
  const half = (end - start) / 2;
  const from = Math.max(floorToStep(start - half, step, clock), known);
  const points = Math.ceil((end + half - from) / lengthOf(step));
  return { start: from, end: from + points * lengthOf(step), step, points };
}

/** Neighbours with the same facts are one column. */
function joined(columns: readonly Column[]): Column[] {
  const found: Column[] = [];
  for (const column of columns) {
    const last = found.at(-1);
    const { free, freeMax, vlans } = column;
    if (last?.free === free && last.freeMax === freeMax && last.vlans === vlans) last.end = column.end;
    else found.push({ ...column });
  }
  return found;
}

/** The parts of the page with which the use is asked for. */
export interface UsePage {
  service: Pick<Service, 'use' | 'columns'>;
  login: { visit: AbortSignal };
  store: { state: { now: number } };
}

/** Loads the use of the links that are looked at. */
export function createUse({ service, login, store }: UsePage) {
  const known = signal<KnownUse>({ columns: new Map(), isLoading: false, hasFailed: false });
  let question: Question | undefined;
  let looked: readonly Link[] = [];
  let pair: Link | undefined;
  let giveUp = new AbortController();
  /** The links of the question by how far they are; `again`: changed while they were asked for. */
  const pending = new Set<Link>();
  const again = new Set<Link>();
  const answered = new Set<Link>();
  const failed = new Set<Link>();

  function show(columns: KnownUse['columns']): void {
    const isLoading = [...pending].some((link) => !answered.has(link));
    known.value = { columns, isLoading, hasFailed: failed.size > 0 };
  }

  function begin(next: Question | undefined): void {
    giveUp.abort();
    giveUp = new AbortController();
    question = next;
    for (const links of [pending, again, answered, failed]) links.clear();
    show(new Map([...known.peek().columns].filter(([link]) => next && looked.includes(link))));
  }

  async function ask(links: readonly Link[], { points, ...period }: Question, signal: AbortSignal) {
    const [first] = links;
    if (first && first === pair) return [await service.columns(first, period, points, signal)];
    const use = await service.use(period, points, signal, links);
    return links.map((link) => use.find((one) => isSamePair(one, link))?.columns ?? []);
  }

  function load(links: readonly Link[]): void {
    if (!question) return;
    const most = Math.min(MAX_USE_LINKS, Math.floor(MOST_COLUMNS / question.points));
    const together = Map.groupBy(links, (link, at) => (link === pair ? -1 : Math.floor(at / most)));
    for (const some of together.values()) void loadTogether(some, question);
  }

  async function loadTogether(links: readonly Link[], asked: Question): Promise<void> {
    const { signal } = giveUp;
    for (const link of links) pending.add(link);
    show(known.peek().columns);
    const answer = ask(links, asked, AbortSignal.any([signal, login.visit]));
    const found = await answer.catch(() => undefined);
    // What was given up is not a failure.
    if (signal.aborted) return;
    const columns = new Map(known.peek().columns);
    for (const [at, link] of links.entries()) {
      pending.delete(link);
      failed.delete(link);
      (found ? answered : failed).add(link);
      if (found?.[at]) columns.set(link, joined(found[at]));
    }
    show(columns);
    load(links.filter((link) => again.delete(link)));
  }

  return {
    known,
    /** Asks for what is not known yet: all links in one request, in a window that is twice as long. */
    look(at: Looked): void {
      pair = at.pair;
      looked = pair ? [...at.links, pair] : at.links;
      const next = questionFor(at, store.state.now, question);
      if (next && next !== question) begin(next);
      const isKnown = (link: Link): boolean => [pending, answered, failed].some((links) => links.has(link));
      load(looked.filter((link) => !isKnown(link)));
    },
    /** Asks again where links have changed, and where a request has failed. */
    refresh(changed: readonly Ends[]): void {
      // What is free between two sites without a link follows from any of them.
      const isChanged = (link: Link): boolean =>
        link === pair ? changed.length > 0 : changed.some((ends) => isSamePair(ends, link));
      for (const link of pending) if (isChanged(link)) again.add(link);
      const due = [...answered, ...failed].filter(
        (link) => !pending.has(link) && (isChanged(link) || failed.has(link)),
      );
      // What is out of view is asked for when it is back.
      for (const links of [answered, failed])
        for (const link of due) if (!looked.includes(link)) links.delete(link);
      load(due.filter((link) => looked.includes(link)));
    },
    /** Forgets everything: the login has ended. */
    forget: (): void => begin(undefined),
  };
}

/** What is free throughout a period; undefined where not all that is left of it is known. */
export function freeIn(columns: readonly Column[], { start, end }: Period, now: number) {
  const [first, last] = [columns[0], columns.at(-1)];
  const inside = columns.filter((column) => column.start < end && column.end > start);
  const isKnown = first && last && first.start <= Math.max(start, now) && last.end >= end;
  if (!isKnown || inside.length === 0) return undefined;
  return {
    free: Math.min(...inside.map(({ free }) => free)),
    freeMax: Math.max(...inside.map(({ freeMax }) => freeMax)),
    vlans: Math.min(...inside.map(({ vlans }) => vlans)),
  };
}
