import { DAY, MINUTE } from '../../contract/durations.ts';
import type { Period } from '../../contract/instants.ts';
import { floorToStep } from '../../words/civil-time.ts';
import { linkName } from '../../words/links.ts';
import { twoLineAxis } from '../../words/time-axis.ts';
import { element, setText } from '../elements.ts';
import type { Point } from '../point.ts';
import type { Column, Link, Own } from '../service.ts';
import { FORCED, readColours } from './colours.ts';
import { followGestures } from './gestures.ts';
import { isLane, rowAt } from './layout.ts';
import { bookableMark, KEYS, keyboardMark, type Mark, pickContext, rowsOf } from './model.ts';
import { OwnBars } from './own-bars.ts';
import { Painter } from './paint.ts';
import { BARS, DRAWN, MOVED, RESERVED, TABLED, type TimelineOptions, type TimelineParts } from './parts.ts';
import { draggedPeriod, edgeAt, resizedPeriod } from './pick.ts';
import { createTable } from './table.ts';
import { knownFrom, levelFor, type Place, Tiles, tilesOf, tileWindow } from './tiles.ts';
import { timelineElements } from './timeline-elements.ts';
import { createToolbar } from './toolbar.ts';
import { instantAt, panWindow, placeOf, zoomWindow } from './windows.ts';
import { keysText, periodSentence, windowText } from './words.ts';

/** Below this width labels are above the rows, in CSS pixels. */
const NARROW = 640;
/** How far beside one's own bar a click still means it, in pixels. */
const BAR_SLOP = 4;
/** Milliseconds. */
const LOAD_DELAY = 60;
const SETTLE_DELAY = 250;
const SAY_DELAY = 500;
/** How much is loaded on each side of a window, as a share of it. */
const MARGIN = 0.3;
/** How many rows above and below the screen are drawn too: all of a usual network, so that scrolling finds them there. */
const MARGIN_ROWS = 20;
/** The level at which a wide surrounding is loaded once somebody moves, so that zooming out finds something to draw. */
const OVERVIEW_LEVEL = levelFor({ start: 0, end: 366 * DAY }, 800);

/**
 * Every link's use over time: a drawing that is moved and zoomed, a table of the same facts, and the same in words. A view of
 * the timeline's state; it keeps only drawn pixels and loaded tiles itself.
 */
export class Timeline {
  /** Buttons, the drawing, the live region and the table. */
  readonly element: HTMLElement;
  readonly #options: TimelineOptions;
  readonly #dom: ReturnType<typeof timelineElements>;
  readonly #painter: Painter;
  readonly #tiles: Tiles;
  readonly #toolbar: ReturnType<typeof createToolbar>;
  readonly #table: ReturnType<typeof createTable>;
  #parts: TimelineParts | undefined;
  /** A link each, and two sites without one as the last. */
  readonly #links: Link[];
  #own: OwnBars | undefined;
  #isPaintDue = false;
  #isLoadDue = false;
  #settling: ReturnType<typeof setTimeout> | undefined;
  #saying: ReturnType<typeof setTimeout> | undefined;
  #said = '';

  /** Makes a timeline; it loads and draws once its element is in a document, and it is shown. */
  constructor(options: TimelineOptions) {
    const { links, columns, dispatch } = options;
    this.#options = options;
    this.#links = [...links];
    this.#dom = timelineElements(links);
    const context = this.#dom.canvas.getContext('2d');
    if (!context) throw new Error('this browser has no canvas');
    this.#painter = new Painter(context, readColours(this.#dom.probe));
    this.#tiles = new Tiles({
      ...{ links: this.#links, columns, now: () => this.#shown.now },
      onChange: () => dispatch({ type: 'loaded' }),
    });
    this.#toolbar = createToolbar(links, dispatch);
    this.#table = createTable({
      ...{ links: this.#links, columns, parts: () => this.#shown, rows: () => this.#rows },
      ownIn: (row) => this.#bars.in(row),
      onPick: (row, { start, end }) => this.#pick({ row, start, end }),
    });
    const { title, chart, live, probe } = this.#dom;
    this.element = element(
      'div',
      { class: 'timeline' },
      ...[this.#toolbar.element, title, chart, this.#table.element, live, probe],
    );
    this.#follow();
  }

  /** Shows the state. */
  show(parts: TimelineParts): void {
    const before = this.#parts;
    this.#parts = parts;
    const { state, mayPick } = parts;
    /** Whether one of these parts is another one than before. */
    const isOther = (...of: readonly ((parts: TimelineParts) => unknown)[]): boolean =>
      before === undefined || of.some((part) => part(parts) !== part(before));
    const isMoved = isOther(...MOVED);
    if (isOther(...BARS)) this.#own = undefined;
    if (isOther(({ pair }) => pair)) this.#showPair(parts.pair);
    if (isOther(...RESERVED)) this.#reserve();
    this.#toolbar.show(state.unit, state.isTable);
    [this.#dom.chart.hidden, this.#table.element.hidden] = [state.isTable, !state.isTable];
    const { spoken, short } = keysText(mayPick);
    setText(this.#dom.keys, spoken);
    setText(this.#dom.shortKeys, short);
    const fault = this.#tiles.hasFailed ? ' · Not all could be loaded; it is tried again.' : '';
    setText(this.#dom.title, `${windowText(state.window, parts)} · ${parts.zone}${fault}`);
    this.#showLoading();
    setText(this.#dom.readout, this.#readout());
    this.#say();
    if (isOther(({ selectedRows: [row] }) => row)) this.#table.select(parts.selectedRows[0]);
    if (isOther(({ state: { isTable } }) => isTable)) this.#measure();
    if (isMoved) {
      this.#load();
      clearTimeout(this.#settling);
      this.#settling = setTimeout(() => this.#table.fill(), SETTLE_DELAY);
    }
    if (isOther(...TABLED)) this.#table.fill();
    if (state.cursor && isOther((one) => one.state.cursor)) this.#scrollTo(state.cursor);
    if (isMoved || isOther(...DRAWN)) this.#draw();
  }

  /** Asks again for what is shown of some links, and for what could not be loaded. @param rows those of the links */
  refresh(rows: readonly number[]): void {
    // What is free between two sites without a link follows from any of them.
    this.#tiles.refresh(new Set(rows.length > 0 ? [...rows, this.#options.links.length] : []));
    this.#table.fill();
  }

  /** Gives two sites without a link the row that is for them. */
  #showPair(pair: Link | undefined): void {
    const row = this.#options.links.length;
    this.#tiles.forget(row);
    this.#links.splice(row, 1, ...(pair ? [pair] : []));
    setText(this.#dom.labels[row] ?? this.#dom.title, pair ? linkName(pair) : '');
    this.#table.show(row, pair);
  }

  get #shown(): TimelineParts {
    if (!this.#parts) throw new Error('nothing is shown yet');
    return this.#parts;
  }

  /** Follows pointers, keys, and whatever changes around the drawing. */
  #follow(): void {
    const { canvas, probe } = this.#dom;
    const { dispatch } = this.#options;
    this.#followPointer();
    canvas.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !KEYS.has(event.key)) return;
      event.preventDefault();
      if (event.key === 'Escape') dispatch({ type: 'cancelled' });
      else if (event.key !== 'Enter' && event.key !== ' ')
        dispatch({ type: 'key', key: event.key, isShift: event.shiftKey });
      else this.#pick(keyboardMark(this.#shown.state, this.#shown));
    });
    canvas.addEventListener('focus', () => {
      if (canvas.matches(':focus-visible') && this.#shown.state.layout.width > 0)
        dispatch({ type: 'focused' });
    });
    canvas.addEventListener('blur', () => this.#draw());
    const recolour = (): void => {
      this.#painter.colours = readColours(probe);
      this.#draw();
    };
    for (const query of ['(prefers-color-scheme: dark)', FORCED]) {
      matchMedia(query).addEventListener('change', recolour);
    }
    // Paper is light and has another width, and gets what was painted by the time that this returns.
    matchMedia('print').addEventListener('change', () => {
      recolour();
      this.#measure();
      this.#paint();
    });
    new ResizeObserver(() => {
      // The style sheet is there by now.
      recolour();
      this.#measure();
    }).observe(this.element);
    for (const event of ['scroll', 'resize']) {
      addEventListener(event, () => {
        this.#draw();
        this.#load();
      });
    }
  }

  #followPointer(): void {
    const { dispatch, onOwn, onResize } = this.#options;
    const { canvas } = this.#dom;
    followGestures(canvas, {
      selectsAt: (point) => this.#rowAt(point) !== undefined,
      onMove: (pixels) => {
        const { window, layout } = this.#shown.state;
        dispatch({ type: 'moved', window: panWindow(window, -pixels / layout.width) });
      },
      onZoom: (factor, x) => {
        const { window } = this.#shown.state;
        dispatch({ type: 'moved', window: zoomWindow(window, factor, this.#instantAt(x)) });
      },
      onHover: (point) => {
        const row = point && this.#rowAt(point);
        canvas.classList.toggle('moves', row === undefined);
        canvas.classList.toggle('resizes', point !== undefined && this.#resized(point, point) !== undefined);
        canvas.classList.toggle('opens', point !== undefined && this.#ownsAt(point).length > 0);
        if (!point || row === undefined) {
          dispatch({ type: 'pointed' });
          return;
        }
        const instant = this.#instantAt(point.x);
        const [column] = this.#columns(row, { start: instant, end: instant + 1 });
        const { start, end } = column ?? { start: instant, end: instant + MINUTE };
        dispatch({ type: 'pointed', mark: { row, start, end } });
      },
      onSelect: (from, to) =>
        dispatch({ type: 'dragged', mark: this.#resized(from, to) ?? this.#dragged(from, to) }),
      onSelected: (from, to) => {
        const resized = this.#resized(from, to);
        if (resized) dispatch({ type: 'cancelled' });
        if (resized) onResize(resized.own, resized);
        else this.#pick(this.#dragged(from, to));
      },
      onCancel: () => dispatch({ type: 'cancelled' }),
      onTap: (point) => {
        const [own] = this.#ownsAt(point);
        const row = this.#rowAt(point);
        if (own) onOwn(own);
        else if (row !== undefined) this.#tap(row, this.#instantAt(point.x));
      },
    });
  }

  /** A click picks a start: how long it lasts, the form says. Who may not book is told what is there. */
  #tap(row: number, instant: number): void {
    const { state, now, mayPick } = this.#shown;
    const link = this.#links[row];
    const { clock, step } = pickContext(state, this.#shown, 'click');
    if (link && mayPick) this.#options.onStart(link, Math.max(now, floorToStep(instant, step, clock)));
    else this.#options.dispatch({ type: 'told', mark: { row, start: instant, end: instant + MINUTE } });
  }

  #pick(marked: Mark | undefined): void {
    const mark = marked && bookableMark(marked, this.#shown.now);
    const link = mark && this.#links[mark.row];
    if (mark && link && this.#shown.mayPick) this.#options.onPick(link, { start: mark.start, end: mark.end });
    this.#options.dispatch({ type: 'picked', mark });
  }

  #dragged(from: Point, to: Point): Mark | undefined {
    const row = this.#rowAt(from);
    const context = pickContext(this.#shown.state, this.#shown, 'drag');
    const period = draggedPeriod(this.#instantAt(from.x), this.#instantAt(to.x), context);
    return row === undefined || !period ? undefined : { row, ...period };
  }

  /** One of my reservations as it is once an edge of it was dragged; undefined where none began there. */
  #resized(from: Point, to: Point): (Mark & { own: Own }) | undefined {
    const { state, now, mayPick } = this.#shown;
    const row = this.#rowAt(from);
    if (row === undefined || !mayPick) return undefined;
    const x = (instant: number): number => placeOf(instant, state.window, state.layout.width);
    for (const own of this.#ownsAt(from)) {
      const edge = edgeAt(own, from.x, x, now);
      if (!edge) continue;
      const context = pickContext(state, this.#shown, 'drag');
      const period = resizedPeriod(own, edge, this.#instantAt(to.x), context);
      return { row, own, ...period };
    }
    return undefined;
  }

  #rowAt({ y }: Point): number | undefined {
    const at = rowAt(y, this.#shown.state.layout, this.#rows.length);
    return at === undefined ? undefined : this.#rows[at];
  }

  #instantAt(x: number): number {
    const { window, layout } = this.#shown.state;
    return instantAt(x, window, layout.width);
  }

  #columns(row: number, period: Period): Column[] {
    return this.#tiles.columns(row, period, this.#level());
  }

  get #rows(): readonly number[] {
    return rowsOf(this.#shown.state, this.#shown);
  }

  #level(): number {
    const { window, layout } = this.#shown.state;
    return levelFor(window, layout.width);
  }

  get #bars(): OwnBars {
    const { own, pair } = this.#shown;
    this.#own ??= new OwnBars(own, this.#options.links, pair);
    return this.#own;
  }

  /** My reservations whose bars are here, the uppermost first. */
  #ownsAt(point: Point): Own[] {
    const row = this.#rowAt(point);
    const { window, layout } = this.#shown.state;
    if (row === undefined || !isLane(point.y, layout)) return [];
    const slop = (BAR_SLOP / layout.width) * (window.end - window.start);
    return this.#bars.at(row, this.#instantAt(point.x), slop);
  }

  /** The line below the drawing. */
  #readout(): string {
    const { state, mark, mayPick } = this.#shown;
    const draft = mark && { ...mark, row: mark.rows[0] ?? 0 };
    const shown = state.readout ? state.readout.mark : (state.drag ?? draft);
    if (shown) return this.#sentence(shown);
    return state.readout ? 'This time is over.' : this.#dom.hints[mayPick ? 'pick' : 'look'];
  }

  #sentence({ row, start, end }: Mark): string {
    const link = this.#links[row];
    if (!link) return '';
    const period = { start, end };
    const isOver = end <= this.#shown.now;
    const facts = isOver ? 'over' : this.#tiles.free(row, period, this.#level());
    const own = this.#bars.in(row).filter((one) => one.start < end && one.end > start);
    return periodSentence(link, period, { facts, own, calendar: this.#shown });
  }

  /** Says the line in the live region too, where it is to be said and differs from what was said last. */
  #say(): void {
    const { live, readout } = this.#dom;
    const said = this.#shown.state.readout?.said;
    const line = readout.textContent ?? '';
    const text = said === undefined ? '' : typeof said === 'object' ? windowText(said, this.#shown) : line;
    if (text === this.#said) return;
    this.#said = text;
    clearTimeout(this.#saying);
    this.#saying = setTimeout(() => {
      live.textContent = text;
    }, SAY_DELAY);
  }

  /** Scrolls the page where the keyboard has left the screen. */
  #scrollTo({ row }: Mark): void {
    const { layout } = this.#shown.state;
    const y =
      this.#dom.canvas.getBoundingClientRect().top + layout.axis + this.#rows.indexOf(row) * layout.row;
    if (y < 0) scrollBy(0, y - layout.axis);
    else if (y + layout.row > innerHeight) scrollBy(0, y + 2 * layout.row - innerHeight);
  }

  #load(): void {
    if (this.#isLoadDue) return;
    this.#isLoadDue = true;
    setTimeout(() => {
      this.#isLoadDue = false;
      const { state } = this.#shown;
      if (!state.isTable && state.layout.width > 0) this.#tiles.want(this.#wanted());
      this.#showLoading();
    }, LOAD_DELAY);
  }

  /** The tiles to load: those in view first, then those beside it. */
  #wanted(): Place[] {
    const { state, now } = this.#shown;
    const { start, end } = state.window;
    const [first, last] = this.#rowsInView();
    const from = knownFrom(now);
    const places = new Map<string, Place>();
    const add = (window: Period, level: number): void => {
      for (const link of this.#rows.slice(first, last)) {
        for (const index of tilesOf(window, level)) {
          if (tileWindow(level, index).end > from)
            places.set(`${link}/${level}/${index}`, { link, level, index });
        }
      }
    };
    add(state.window, this.#level());
    const margin = MARGIN * (end - start);
    add({ start: start - margin, end: end + margin }, this.#level());
    if (state.hasMoved) add({ start, end }, OVERVIEW_LEVEL);
    return [...places.values()];
  }

  /** The rows that are on the screen, with some around them: from the first to before the last. */
  #rowsInView(): [first: number, last: number] {
    const { layout } = this.#shown.state;
    const { length } = this.#rows;
    const { top } = this.#dom.canvas.getBoundingClientRect();
    const at = (y: number): number => Math.max(0, Math.min(length, (y - top - layout.axis) / layout.row));
    return [
      Math.max(0, Math.floor(at(0)) - MARGIN_ROWS),
      Math.min(length, Math.ceil(at(innerHeight)) + MARGIN_ROWS),
    ];
  }

  /** Reads how wide the drawing is. */
  #measure(): void {
    const { canvas, chart } = this.#dom;
    if (chart.hidden) return;
    const isNarrow = this.element.clientWidth < NARROW;
    this.element.classList.toggle('narrow', isNarrow);
    const { width } = canvas.getBoundingClientRect();
    this.#options.dispatch({ type: 'sized', width, isNarrow });
    // Hidden, it asks for nothing.
    if (width === 0) this.#tiles.want([]);
  }

  #draw(): void {
    if (this.#isPaintDue) return;
    this.#isPaintDue = true;
    requestAnimationFrame(() => {
      this.#isPaintDue = false;
      this.#paint();
    });
  }

  #showLoading(): void {
    this.#dom.drawing.ariaBusy = `${this.#tiles.isLoading}`;
  }

  /** Gives the drawing its height at once, so that nothing moves when it is painted. */
  #reserve(): void {
    const { canvas, drawing } = this.#dom;
    const { layout } = this.#shown.state;
    drawing.style.setProperty('--timeline-axis', `${layout.axis}px`);
    drawing.style.setProperty('--timeline-row', `${layout.row}px`);
    canvas.style.height = `${layout.axis + layout.row * this.#rows.length}px`;
    for (const [row, label] of this.#dom.labels.entries()) label.hidden = !this.#rows.includes(row);
  }

  /** Gives the canvas the pixels of the display. */
  #fit(): void {
    const { canvas } = this.#dom;
    const size = [this.#shown.state.layout.width, Number.parseFloat(canvas.style.height)].map((length) =>
      Math.round(length * devicePixelRatio),
    );
    const [across = 0, down = 0] = size;
    // Setting a size clears the canvas.
    if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  }

  #paint(): void {
    const { state, now, mark, clock } = this.#shown;
    const { window, layout, isTable } = state;
    if (layout.width === 0 || isTable) return;
    this.#fit();
    const { canvas } = this.#dom;
    const [first, last] = this.#rowsInView();
    const level = this.#level();
    const rows = this.#rows.slice(first, last).map((row) => ({
      parts: this.#tiles.over(row, window, level).flatMap(({ columns }) => (columns ? [columns] : [])),
      capacity: this.#links[row]?.bandwidth ?? 0,
      own: this.#bars.in(row),
      isSelected: this.#shown.selectedRows.includes(row),
    }));
    const placed = ({ start, end }: Period, at: readonly number[]): Mark[] =>
      at.flatMap((one) => (this.#rows.includes(one) ? { start, end, row: this.#rows.indexOf(one) } : []));
    const { drag, cursor } = state;
    const axis = twoLineAxis(window, clock, {
      width: layout.width,
      measure: (label) => this.#painter.measure(label),
      gap: 8,
    });
    const isHere = document.activeElement === canvas && canvas.matches(':focus-visible');
    this.#painter.draw(
      {
        ...{ window, layout, axis, rows, firstRow: first, now, marked: this.#shown.marked },
        marks: drag ? placed(drag, [drag.row]) : mark ? placed(mark, mark.rows) : [],
        cursor: isHere && cursor ? placed(cursor, [cursor.row])[0] : undefined,
      },
      devicePixelRatio,
    );
  }
}
