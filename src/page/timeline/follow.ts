import { MINUTE } from '../../contract/durations.ts';
import { draftOf, picked, startedAt } from '../draft.ts';
import type { Page } from '../page-props.ts';
import type { Point } from '../point.ts';
import type { Own } from '../service.ts';
import { focusReservation } from '../sights.ts';
import { mayDo, readForm } from '../state.ts';
import { followGestures } from './gestures.ts';
import { KEYS, keyboardMark, lengthOf, type Mark } from './model.ts';
import { bookable } from './pick.ts';
import { aimAt, clickedStart, columnsOf, type Dragged, draggedMark, linkOf, type View } from './view.ts';
import { instantAt, panWindow, zoomWindow } from './windows.ts';

/** What the drawing shows, and the page that it changes. */
export interface LiveView extends View {
  page: Page;
}

/** Where the pointer is, and what it means there. */
export interface Pointed {
  /** In pixels, from the drawing's corner. */
  at: Point;
  /** The period that is dragged; a column where the pointer rests. */
  mark: Mark;
  /** My reservations there. */
  own: readonly Own[];
  isDrag: boolean;
}

/** A start is picked: how long it lasts, the form says. A user who may not book is told what is free. */
function pickStart(view: LiveView, row: number, instant: number): void {
  const { page, mayPick } = view;
  const link = linkOf(view, row);
  const { state } = page.store;
  if (!mayPick) page.move({ type: 'set', parts: { said: { row, start: instant, end: instant + MINUTE } } });
  else if (link) page.pick(link, startedAt(state.draft, link, instant, readForm(state).period));
}

/** A period is picked, in the drawing or in the table. */
export function pickMark(view: LiveView, mark: Mark): void {
  const { page, now, mayPick } = view;
  const link = linkOf(view, mark.row);
  const period = bookable(mark, now);
  if (!mayPick) page.move({ type: 'set', parts: { said: mark } });
  else if (link && period) page.pick(link, picked(page.store.state.draft, link, period));
}

/** Moves and zooms the window. */
function moves(get: () => LiveView) {
  return {
    onMove(pixels: number) {
      const { page, state, width } = get();
      page.move({ type: 'moved', window: panWindow(state.window, -pixels / width) });
    },
    onZoom(factor: number, x: number) {
      const { page, state, width } = get();
      const fixed = instantAt(x, state.window, width);
      page.move({ type: 'moved', window: zoomWindow(state.window, factor, fixed) });
    },
  };
}

/** Follows pointers over the dates, which are dragged to move. */
export function followDates(dates: HTMLElement, get: () => LiveView): void {
  followGestures(dates, moves(get));
}

/** Follows pointers over the rows. @param point shows what is pointed at */
export function followRows(rows: HTMLElement, get: () => LiveView, point: (at?: Pointed) => void): void {
  const mayChange = (): boolean => mayDo(get().page.store.state, 'update');
  const dragged = (from: Point, to: Point): Dragged => draggedMark(get(), from, to, mayChange());
  const hover = (at: Point | undefined): void => {
    const aim = at && aimAt(get(), at);
    const grip = mayChange() ? aim?.grip : undefined;
    rows.style.cursor = grip && grip !== 'all' ? 'ew-resize' : aim?.block ? 'pointer' : '';
    if (!at || !aim) {
      point(undefined);
      return;
    }
    const { row, instant, block: { own } = { own: [] } } = aim;
    const column = columnsOf(get(), row).find(({ start, end }) => start <= instant && instant < end);
    const { start, end } = own.length === 1 && own[0] ? own[0] : (column ?? { start: instant, end: instant });
    point({ at, mark: { row, start, end }, own, isDrag: false });
  };
  followGestures(rows, {
    ...moves(get),
    selectsAt: (at) => aimAt(get(), at) !== undefined,
    onHover: hover,
    onSelect(from, at) {
      const mark = dragged(from, at);
      point(mark && { at, mark, own: mark.own ? [mark.own] : [], isDrag: true });
    },
    onSelected(from, to) {
      const mark = dragged(from, to);
      // Who may not book keeps what is looked at.
      if (get().mayPick) point(undefined);
      if (!mark) return;
      const { own, row, start, end } = mark;
      if (!own) pickMark(get(), { row, start, end });
      else if (start !== own.start || end !== own.end)
        get().page.booking.fill({ ...draftOf(own), start, ending: end, isDragged: true });
    },
    onCancel: () => point(undefined),
    onTap(at) {
      const view = get();
      const aim = aimAt(view, at);
      if (!view.mayPick) hover(at);
      if (!aim?.block) return aim && pickStart(view, aim.row, clickedStart(aim.instant, view));
      const [{ id }] = aim.block.own;
      view.page.store.dispatch({ type: 'learnt', facts: { marked: id } });
      focusReservation(id);
    },
  });
}

/** Does what a key means on the drawing; those of the browser stay its own. */
export function followKey(event: KeyboardEvent, view: LiveView): void {
  const { page, state, now, mark: draft, mayPick } = view;
  const { key, shiftKey: isShift } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS.test(key)) return;
  event.preventDefault();
  const mark = keyboardMark(state, view);
  if (key !== 'Enter' && key !== ' ') page.move({ type: 'key', key, isShift });
  // What is as long as the draft says is picked as by a click.
  else if (mayPick && mark.end - mark.start === lengthOf(draft))
    pickStart(view, mark.row, Math.max(now, mark.start));
  else pickMark(view, mark);
}
