import { HOUR, MINUTE } from '../../contract/durations.ts';
import type { Period } from '../../contract/instants.ts';
import { type Calendar, ceilToStep } from '../../words/civil-time.ts';
import { linkName } from '../../words/links.ts';
import type { Link } from '../service.ts';
import { lengthenedPeriod, movedPeriod } from './pick.ts';
import {
  clampWindow,
  panWindow,
  snapStep,
  turnedPage,
  unitWindow,
  windowFromNow,
  zoomWindow,
} from './windows.ts';

/** A period of a row. */
export type Mark = Period & { row: number };

/** The period of the form's draft: in the row of its two sites, and in those of the links of its route. */
export type DraftMark = Period & { rows: readonly number[] };

/** The lengths of a window that have a button. */
export const UNITS = ['day', 'week', 'month', 'year'] as const;
/** One of {@link UNITS}. */
export type Unit = (typeof UNITS)[number];

/** The state of the timeline, a part of the page's. Windows and periods in milliseconds. */
export interface TimelineState {
  /** The window that is shown. */
  window: Period;
  /** The button that stays pressed, since the window is a whole unit. */
  unit?: Unit;
  /** Whether it begins an hour before now, and goes on with the time. */
  isToday: boolean;
  /** What is typed to find links by their sites; empty for all. */
  filter: string;
  /** The rows that stand first. */
  first: readonly number[];
  /** Whether the drawing is narrow: then it has the rows of the chosen route alone, unless `isAll`. */
  isNarrow: boolean;
  isAll: boolean;
  /** Whether the table is shown in place of the drawing. */
  isTable: boolean;
  /** Where the keyboard is. */
  cursor?: Mark;
  /** What the live region says: a period of a row, or the window to which a page was turned. */
  said?: Mark | Period;
}

/** Everything that changes the timeline. */
export type TimelineAction =
  /** Parts that nothing else depends on. */
  | {
      type: 'set';
      parts: Partial<Pick<TimelineState, 'filter' | 'first' | 'isNarrow' | 'isAll' | 'isTable' | 'said'>>;
    }
  /** Time has passed. */
  | { type: 'elapsed' }
  /** Buttons. A factor below 1 shows less; without `at`, now or the middle stays in place. */
  | { type: 'unit'; unit: Unit }
  | { type: 'turn'; times: 1 | -1 }
  | { type: 'now' }
  | { type: 'zoom'; factor: number; at?: number }
  /** A gesture, or another view, moves it; the address may name the unit that it is. */
  | { type: 'moved'; window: Period; unit?: Unit }
  | { type: 'key'; key: string; isShift: boolean }
  /** The keyboard has come to the drawing. */
  | { type: 'focused' }
  /** The form has another draft. `isMoved`: at another time, which comes into view. */
  | { type: 'redrafted'; isMoved: boolean }
  /** The form was emptied. */
  | { type: 'cleared' };

/** The facts of the page that the timeline needs. */
export interface TimelineTerms extends Calendar {
  /** A row each. */
  links: readonly Link[];
  /** Two sites without a link that are looked at: their row has the number after those of the links. */
  pair?: Link;
  /** The rows of the route that is marked everywhere; of its two sites first. */
  selectedRows: readonly number[];
  /** The draft of the form. */
  mark?: DraftMark;
  /** Whether periods can be picked; if not, they are only described. */
  mayPick: boolean;
}

/** The keys that mean something on the drawing; those of the browser and of the page are left to them. */
export const KEYS = /^(Arrow(Left|Right|Up|Down)|Page(Up|Down)|Home|Enter|Escape|[-+=_ ])$/;

/** The timeline as the page opens: a week. */
export function openTimeline(now: number, clock: Calendar['clock']): TimelineState {
  const flags = { isToday: true, isNarrow: false, isAll: false, isTable: false };
  return { window: windowFromNow('week', now, clock), unit: 'week', filter: '', first: [], ...flags };
}

type Turn = Extract<TimelineAction, { type: 'unit' | 'turn' | 'now' | 'zoom' }>;
type Key = Extract<TimelineAction, { type: 'key' }>;

/** The next state of the timeline. Pure. */
export function changeTimeline(
  state: TimelineState,
  action: TimelineAction,
  terms: TimelineTerms,
): TimelineState {
  switch (action.type) {
    case 'set':
      return { ...state, ...action.parts };
    case 'elapsed':
      return state.isToday && state.unit
        ? { ...state, window: windowFromNow(state.unit, terms.now, terms.clock) }
        : state;
    case 'unit':
    case 'turn':
    case 'now':
    case 'zoom':
      return turnedTo(state, action, terms);
    case 'moved':
      return { ...movedTo(state, action.window, terms), unit: action.unit };
    case 'key':
      return keyed(state, action, terms);
    case 'focused':
      return withCursor(state, keyboardMark(state, terms), terms);
    case 'redrafted': {
      const next = { ...state, said: undefined };
      return action.isMoved && terms.mark ? broughtIn(next, terms.mark, terms) : next;
    }
    case 'cleared':
      return { ...state, cursor: undefined, said: undefined };
  }
}

/** Moves at once; it is no longer a whole unit. */
function movedTo(state: TimelineState, window: Period, { now }: TimelineTerms): TimelineState {
  return { ...state, window: clampWindow(window, now), unit: undefined, isToday: false };
}

/** Moves the window where a period is out of view: its start is in view then. */
function broughtIn(state: TimelineState, { start, end }: Period, terms: TimelineTerms): TimelineState {
  const { window, unit } = state;
  if (start < window.end && end > window.start) return state;
  const length = window.end - window.start;
  const from = start - length / 10;
  return { ...movedTo(state, { start: from, end: from + length }, terms), unit };
}

function turnedTo(state: TimelineState, action: Turn, { now, clock }: TimelineTerms): TimelineState {
  const { window: from, unit } = state;
  const isNowShown = from.start <= now && now < from.end;
  const middle = (from.start + from.end) / 2;
  const to = (window: Period, as: Unit | undefined, isToday = false): TimelineState => ({
    ...{ ...state, window: clampWindow(window, now), unit: as, isToday },
  });
  switch (action.type) {
    case 'unit': {
      if (isNowShown) return to(windowFromNow(action.unit, now, clock), action.unit, true);
      return to(unitWindow(action.unit, action.unit === 'year' ? from.start : middle, clock), action.unit);
    }
    case 'turn':
      return to(turnedPage(from, action.times, clock, unit), unit);
    case 'now': {
      const share = (now - from.start) / (from.end - from.start) - 0.1;
      return to(unit ? windowFromNow(unit, now, clock) : panWindow(from, share), unit, true);
    }
    case 'zoom': {
      const { factor, at = isNowShown && factor < 1 ? now : middle } = action;
      return to(zoomWindow(from, factor, at), undefined);
    }
  }
}

type RowParts = Pick<TimelineState, 'filter' | 'first' | 'isNarrow' | 'isAll'>;
type RowTerms = Pick<TimelineTerms, 'links' | 'pair' | 'selectedRows'>;

/** The numbers of the rows that are shown, from top to bottom. */
export function rowsOf(state: RowParts, { links, pair, selectedRows }: RowTerms): readonly number[] {
  const text = state.filter.trim().toLowerCase();
  if (state.isNarrow && !state.isAll && text === '' && selectedRows.length > 0) return selectedRows;
  const first = new Set([
    ...(pair ? [links.length] : []),
    ...state.first.filter((row) => row < links.length),
  ]);
  const others = links.flatMap((link, row) =>
    !first.has(row) && linkName(link).toLowerCase().includes(text) ? [row] : [],
  );
  return [...first, ...others];
}

/** Where the keyboard is; it begins with the draft, or in view at now. */
export function keyboardMark(state: TimelineState, terms: TimelineTerms): Mark {
  const { cursor, window } = state;
  const { mark, selectedRows } = terms;
  const rows = rowsOf(state, terms);
  if (cursor && rows.includes(cursor.row)) return cursor;
  const wanted = selectedRows[0] ?? mark?.rows[0] ?? 0;
  const row = rows.includes(wanted) ? wanted : (rows[0] ?? wanted);
  // A draft that starts now has no time of its own.
  if (mark && mark.start > terms.now) return { row, start: mark.start, end: mark.end };
  const start = ceilToStep(Math.max(window.start, terms.now), snapStep(window, 'click'), terms.clock);
  return { row, start, end: start + (lengthOf(mark) ?? 2 * HOUR) };
}

/** The length of a draft in whole minutes: one that starts now lasts some seconds more, while it is on its way. */
export function lengthOf(mark: Period | undefined): number | undefined {
  return mark && Math.round((mark.end - mark.start) / MINUTE) * MINUTE;
}

/** The keyboard goes to a mark, and the window with it. */
function withCursor(state: TimelineState, cursor: Mark, terms: TimelineTerms): TimelineState {
  const { start, end } = state.window;
  const margin = (end - start) / 20;
  const [before, behind] = [cursor.start - start, cursor.start + margin - end];
  const by = before < 0 ? before - margin : behind > 0 ? behind + margin : 0;
  const next = by === 0 ? state : movedTo(state, panWindow(state.window, by / (end - start)), terms);
  return { ...next, cursor, said: cursor };
}

function keyed(state: TimelineState, { key, isShift }: Key, terms: TimelineTerms): TimelineState {
  const mark = keyboardMark(state, terms);
  const times = key === 'ArrowRight' || key === 'ArrowDown' || key === 'PageDown' ? 1 : -1;
  const step = snapStep(state.window, 'click');
  const by = (start: number): Mark => ({ ...mark, start, end: start + mark.end - mark.start });
  switch (key) {
    case 'ArrowLeft':
    case 'ArrowRight': {
      const moved = isShift ? lengthenedPeriod : movedPeriod;
      return withCursor(state, { ...mark, ...moved(mark, times, { ...terms, step }) }, terms);
    }
    case 'ArrowUp':
    case 'ArrowDown': {
      const rows = rowsOf(state, terms);
      return withCursor(state, { ...mark, row: rows[rows.indexOf(mark.row) + times] ?? mark.row }, terms);
    }
    case 'PageUp':
    case 'PageDown': {
      const next = turnedTo(state, { type: 'turn', times }, terms);
      const cursor = by(mark.start + next.window.start - state.window.start);
      return { ...next, cursor, said: next.window };
    }
    case 'Home': {
      const cursor = by(ceilToStep(terms.now, step, terms.clock));
      return { ...turnedTo(state, { type: 'now' }, terms), cursor, said: cursor };
    }
    default:
      if (!/^[-+=_]$/.test(key)) return state;
      return turnedTo(state, { type: 'zoom', factor: /[+=]/.test(key) ? 0.5 : 2, at: mark.start }, terms);
  }
}
