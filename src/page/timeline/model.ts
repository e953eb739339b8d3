import { DAY, HOUR, MINUTE } from '../../contract/durations.ts';
import type { Period } from '../../contract/instants.ts';
import { type Calendar, ceilToStep } from '../../words/civil-time.ts';
import type { Link } from '../service.ts';
import { type Layout, layoutFor } from './layout.ts';
import { bookable, lengthenedPeriod, movedPeriod, type PickContext } from './pick.ts';
import { clampWindow, panWindow, snapStep, turnedPage, unitWindow, zoomWindow } from './windows.ts';

/** A period of a row. */
export interface Mark extends Period {
  row: number;
}

/** The period of the form's draft: in the row of its two sites, and in those of the links of its route. */
export interface DraftMark extends Period {
  rows: readonly number[];
}

/** The lengths of a window that have a button. */
export const UNITS = ['day', 'week', 'month', 'year'] as const;
/** One of {@link UNITS}. */
export type Unit = (typeof UNITS)[number];

/** The subject of the line below the drawing. */
export interface Readout {
  /** Undefined where it is all over. */
  mark?: Mark;
  /** How it is said in the live region too: as it is, or as the window to which a page was turned. */
  said?: 'mark' | Period;
}

/** The state of the timeline, a part of the page's. Windows and periods in milliseconds. */
export interface TimelineState {
  /** The window that is shown. */
  window: Period;
  /** The button that stays pressed, since the window is a whole unit. */
  unit?: Unit;
  /** Whether it begins today, and goes on with the days. */
  isToday: boolean;
  /** The rows that a filter leaves, in order; absent: all. */
  rows?: readonly number[];
  /** Whether somebody has moved it: then a wide surrounding is loaded too. */
  hasMoved: boolean;
  layout: Layout;
  /** Whether the table is shown in place of the drawing. */
  isTable: boolean;
  /** The period that is being dragged, or that is looked at by a user who may not pick. */
  drag?: Mark;
  /** Where the keyboard is. */
  cursor?: Mark;
  /** Absent: the draft is described, or what can be done here. */
  readout?: Readout;
  /** Grows with each tile that was loaded, or could not be. */
  loads: number;
}

/** Everything that changes the timeline. */
export type TimelineAction =
  /** It has another width, in CSS pixels. */
  | { type: 'sized'; width: number; isNarrow: boolean }
  | { type: 'loaded' }
  /** Another day has begun. */
  | { type: 'dawned' }
  /** Times are of another zone than before. */
  | { type: 'rezoned'; before: Calendar['clock'] }
  /** A filter leaves these rows, or all. */
  | { type: 'filtered'; rows?: readonly number[] }
  | { type: 'table'; isTable: boolean }
  /** Buttons. A factor below 1 shows less; without `at`, now or the middle stays in place. */
  | { type: 'unit'; unit: Unit }
  | { type: 'turn'; times: 1 | -1 }
  | { type: 'now' }
  | { type: 'zoom'; factor: number; at?: number }
  /** A gesture, or another view, moves it at once; the address may name the unit that it is. */
  | { type: 'moved'; window: Period; unit?: Unit }
  /** The pointer is at a period, or nowhere. */
  | { type: 'pointed'; mark?: Mark }
  /** A period is marked by dragging; without one, all of it is over. */
  | { type: 'dragged'; mark?: Mark }
  /** A period was picked; without one, all of it is over. */
  | { type: 'picked'; mark?: Mark }
  /** A period is said, but not picked. */
  | { type: 'told'; mark: Mark }
  | { type: 'key'; key: string; isShift: boolean }
  /** The keyboard has come to the drawing. */
  | { type: 'focused' }
  | { type: 'cancelled' }
  /** The form has another draft, which is described from now on. */
  | { type: 'redrafted' }
  /** The form was emptied. */
  | { type: 'cleared' };

/** The facts of the page that the timeline needs. */
export interface TimelineTerms extends Calendar {
  /** How many links have a row. */
  links: number;
  /** Two sites without a link that are looked at: their row comes first, and its number after those of the links. */
  pair?: Link;
  /** The rows of the route that is marked everywhere; of its two sites first. */
  selectedRows: readonly number[];
  /** The draft of the form. */
  mark?: DraftMark;
  /** Whether periods can be picked; if not, they are only described. */
  mayPick: boolean;
}

/** How long the keyboard's first period is, where the form has none, in milliseconds. */
const FIRST_LENGTH = 2 * HOUR;

/** The keys that mean something on the drawing; those of the browser and of the page are left to them. */
export const KEYS: ReadonlySet<string> = new Set([
  ...['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Home'],
  ...['+', '=', '-', '_', 'Enter', ' ', 'Escape'],
]);

/** The timeline as the page opens: this week from today on. */
export function openTimeline(now: number, clock: Calendar['clock']): TimelineState {
  const window = unitWindow('week', now, clock, true);
  const layout = layoutFor(0, false);
  const flags = { isToday: true, hasMoved: false, isTable: false };
  return { window, unit: 'week', layout, ...flags, loads: 0 };
}

/** The next state of the timeline. Pure. */
export function changeTimeline(
  state: TimelineState,
  action: TimelineAction,
  terms: TimelineTerms,
): TimelineState {
  switch (action.type) {
    case 'sized':
      return { ...state, layout: layoutFor(action.width, action.isNarrow) };
    case 'loaded':
      return { ...state, loads: state.loads + 1 };
    case 'dawned':
      return state.isToday && state.unit
        ? { ...state, window: unitWindow(state.unit, terms.now, terms.clock, true) }
        : state;
    case 'rezoned':
      return { ...state, window: rezoned(state.window, action.before, terms) };
    case 'filtered':
      return { ...state, rows: action.rows, cursor: undefined };
    case 'table':
      return { ...state, isTable: action.isTable };
    case 'unit':
    case 'turn':
    case 'now':
    case 'zoom':
      return turnedTo(state, action, terms);
    case 'moved':
      return { ...movedTo(state, action.window, terms), unit: action.unit };
    case 'pointed':
      return { ...state, readout: action.mark && { mark: action.mark } };
    case 'dragged':
      return { ...state, drag: action.mark, readout: { mark: action.mark } };
    case 'picked': {
      const { mark } = action;
      // What becomes of a period that is picked is said where it goes to.
      const said = terms.mayPick && mark ? undefined : 'mark';
      return { ...state, drag: terms.mayPick ? undefined : mark, readout: { mark, said } };
    }
    case 'told':
      return { ...state, readout: { mark: action.mark, said: 'mark' } };
    case 'key':
      return keyed(state, action, terms);
    case 'focused':
      return withCursor(state, keyboardMark(state, terms), terms);
    case 'cancelled':
      return { ...state, drag: undefined, readout: state.readout?.said && state.readout };
    case 'redrafted':
      return { ...state, drag: undefined, readout: undefined };
    case 'cleared':
      return { ...state, drag: undefined, cursor: undefined, readout: undefined };
  }
}

/** A window of whole days is one of the same days in another zone; another window stays where it is. */
function rezoned({ start, end }: Period, before: Calendar['clock'], { clock }: TimelineTerms): Period {
  const days = [start, end].map((instant) => before.civil(instant));
  const [from = start, to = end] = days.some((civil) => civil % DAY !== 0)
    ? [start, end]
    : days.map((civil) => clock.instant(civil));
  return { start: from, end: to };
}

/** Moves at once; it is no longer a whole unit. */
function movedTo(state: TimelineState, window: Period, { now }: TimelineTerms): TimelineState {
  return { ...state, window: clampWindow(window, now), unit: undefined, isToday: false, hasMoved: true };
}

function turnedTo(
  state: TimelineState,
  action: Extract<TimelineAction, { type: 'unit' | 'turn' | 'now' | 'zoom' }>,
  { now, clock }: TimelineTerms,
): TimelineState {
  const from = state.window;
  const isNowShown = from.start <= now && now < from.end;
  const middle = (from.start + from.end) / 2;
  const length = from.end - from.start;
  const to = (window: Period, unit: Unit | undefined, isToday = false): TimelineState => ({
    ...{ ...state, window: clampWindow(window, now), unit, isToday, hasMoved: true },
  });
  switch (action.type) {
    case 'unit': {
      // A year begins with a month that is shown: in January much of it may be over.
      const isYear = action.unit === 'year';
      const anchor = isNowShown ? now : isYear ? from.start : middle;
      return to(unitWindow(action.unit, anchor, clock, isNowShown || isYear), action.unit, isNowShown);
    }
    case 'turn':
      return to(turnedPage(from, action.times, clock, state.unit), state.unit);
    case 'now': {
      const around = { start: now - length / 10, end: now + 0.9 * length };
      return to(state.unit ? unitWindow(state.unit, now, clock, true) : around, state.unit, true);
    }
    case 'zoom': {
      const at = action.at ?? (isNowShown && action.factor < 1 ? now : middle);
      return to(zoomWindow(from, action.factor, at), undefined);
    }
  }
}

/** The step that picked times snap to, at the zoom that is shown. */
export function pickContext(
  { window }: Pick<TimelineState, 'window'>,
  { clock, now }: Calendar,
  by: 'click' | 'drag',
): PickContext {
  return { clock, now, step: snapStep(window, by) };
}

/** The part of a mark that can still be booked; undefined where all of it is over. */
export function bookableMark(mark: Mark, now: number): Mark | undefined {
  const period = bookable(mark, now);
  return period && { row: mark.row, ...period };
}

/** The numbers of the rows that are shown, from top to bottom. */
export function rowsOf(
  { rows }: Pick<TimelineState, 'rows'>,
  { links, pair }: Pick<TimelineTerms, 'links' | 'pair'>,
): readonly number[] {
  return [...(pair ? [links] : []), ...(rows ?? Array(links).keys())];
}

/** Where the keyboard is; it begins with the draft, or in view at now. */
export function keyboardMark(state: TimelineState, terms: TimelineTerms): Mark {
  const { cursor, window } = state;
  const rows = rowsOf(state, terms);
  if (cursor && rows.includes(cursor.row)) return cursor;
  const mark = state.drag ?? terms.mark;
  const wanted = terms.selectedRows[0] ?? state.drag?.row ?? terms.mark?.rows[0] ?? 0;
  const row = rows.includes(wanted) ? wanted : (rows[0] ?? wanted);
  // A draft that starts now has no time of its own.
  if (mark && mark.start > terms.now) return { row, start: mark.start, end: mark.end };
  const start = ceilToStep(Math.max(window.start, terms.now), snapStep(window, 'click'), terms.clock);
  // In whole minutes: a draft that starts now lasts some seconds more, while it is on its way.
  const length = mark ? Math.round((mark.end - mark.start) / MINUTE) * MINUTE : FIRST_LENGTH;
  return { row, start, end: start + length };
}

/** The keyboard goes to a mark, and the window with it. */
function withCursor(state: TimelineState, cursor: Mark, terms: TimelineTerms): TimelineState {
  const { start, end } = state.window;
  const margin = (end - start) / 20;
  const by =
    cursor.start < start
      ? cursor.start - margin - start
      : cursor.start > end - margin
        ? cursor.start + 2 * margin - end
        : 0;
  const next = by === 0 ? state : movedTo(state, panWindow(state.window, by / (end - start)), terms);
  return { ...next, cursor, readout: { mark: cursor, said: 'mark' } };
}

function keyed(
  state: TimelineState,
  { key, isShift }: Extract<TimelineAction, { type: 'key' }>,
  terms: TimelineTerms,
): TimelineState {
  const mark = keyboardMark(state, terms);
  const times = key === 'ArrowRight' || key === 'ArrowDown' || key === 'PageDown' ? 1 : -1;
  switch (key) {
    case 'ArrowLeft':
    case 'ArrowRight': {
      const moved = isShift ? lengthenedPeriod : movedPeriod;
      const context = pickContext(state, terms, 'click');
      return withCursor(state, { row: mark.row, ...moved(mark, times, context) }, terms);
    }
    case 'ArrowUp':
    case 'ArrowDown': {
      const rows = rowsOf(state, terms);
      return withCursor(state, { ...mark, row: rows[rows.indexOf(mark.row) + times] ?? mark.row }, terms);
    }
    case 'PageUp':
    case 'PageDown': {
      const before = state.window;
      const by = (before.end - before.start) * times;
      const cursor = { row: mark.row, start: mark.start + by, end: mark.end + by };
      const next = turnedTo(state, { type: 'turn', times }, terms);
      return { ...next, cursor, readout: { mark: cursor, said: panWindow(before, times) } };
    }
    case '+':
    case '=':
      return turnedTo(state, { type: 'zoom', factor: 0.5, at: mark.start }, terms);
    case '-':
    case '_':
      return turnedTo(state, { type: 'zoom', factor: 2, at: mark.start }, terms);
    case 'Home': {
      const start = ceilToStep(terms.now, snapStep(state.window, 'click'), terms.clock);
      const cursor = { row: mark.row, start, end: start + mark.end - mark.start };
      const next = turnedTo({ ...state, drag: undefined }, { type: 'now' }, terms);
      return { ...next, cursor, readout: { mark: cursor, said: 'mark' } };
    }
    default:
      return state;
  }
}
