import { DAY, MINUTE } from '../../contract/durations.ts';
import { type Clock, ceilToStep, createClock, lengthOfStep, type Step } from '../../words/civil-time.ts';
import { twoLineAxis } from '../../words/time-axis.ts';
import { element, setText } from '../elements.ts';
import type { Column, Link, Own, Window } from '../service.ts';
import { FORCED, readColours } from './colours.ts';
import { followGestures, type Point } from './gestures.ts';
import { createGlide } from './glide.ts';
import { followKeys } from './keys.ts';
import { type Bar, barsOf, layoutFor, rowAt } from './layout.ts';
import { type Mark, Painter } from './paint.ts';
import { bookable, clickedPeriod, draggedPeriod, type PickContext } from './pick.ts';
import { createTable } from './table.ts';
import { knownFrom, levelFor, type Place, Tiles, tilesOf, tileWindow } from './tiles.ts';
import { createToolbar, type Unit } from './toolbar.ts';
import { clampWindow, instantAt, panWindow, snapStep, turnedPage, unitWindow, zoomWindow } from './view.ts';
import { type Calendar, HINTS, keysText, linkText, periodSentence, windowText } from './words.ts';

/** What a timeline is made of. All times in milliseconds since the Unix epoch. */
export interface TimelineOptions {
  /** A row each, in this order. */
  links: readonly Link[];
  /**
   * Asks what is free of a link in so many columns of equal length. Where nothing has changed since the time before, the
   * same array is given back; the timeline then asks nothing more of that link.
   */
  columns(link: Link, window: Window, points: number, signal: AbortSignal): Promise<readonly Column[]>;
  now(): number;
  /** The zone of all times that are shown: an IANA name, or `UTC`. */
  zone(): string;
  /** Whether periods can be picked; if not, what is marked is only described. Asked again by `setReservations`. */
  mayPick(): boolean;
  /** A period of a link was picked, by pointer, by keyboard or in the table, from the next full minute on. */
  onPick(pick: { link: Link; start: number; end: number }): void;
  /** The bar of one of my reservations was clicked. */
  onOwn(own: Own): void;
  /** Another window is shown, and has come to rest. */
  onWindow(window: Window): void;
}

/** Every link's use over time: a drawing that is moved and zoomed, a table of the same facts, and the same in words. */
export interface Timeline {
  /** Buttons, the drawing, the live region and the table. */
  element: HTMLElement;
  /** Shows a window; one that is too short, too long or too far away is corrected. */
  show(window: Window): void;
  /** My reservations, which are drawn above others' use. */
  setReservations(list: readonly Own[]): void;
  /** Marks a link's row; the table shows this link alone. */
  select(link: Link | null): void;
  /** Forgets what is picked and where the keyboard is: it begins anew with an hour at now. */
  clearPick(): void;
  /** Asks again for what is shown, and draws what has changed; reads the zone again. */
  refresh(): void;
  /** Says a text in the live region. */
  say(text: string): void;
}

/** Below this width labels are above the rows, in CSS pixels. */
const NARROW = 640;
/** How wide a step is at least to which what is picked snaps, and the period that a click picks; in pixels. */
const SNAP_PIXELS = 8;
const CLICK_PIXELS = 32;
/** How far beside one's own bar a click still means it, in pixels. */
const BAR_SLOP = 4;
/** Milliseconds. */
const LOAD_DELAY = 60;
const SETTLE_DELAY = 250;
const SAY_DELAY = 500;
const NOW_INTERVAL = 20_000;
/** How long the keyboard's period is at first, once what was picked is cleared. */
const FRESH: Step = { unit: 'minute', count: 60 };
/** How much is loaded on each side of a window, as a share of it. */
const MARGIN = 0.3;
/** How many rows above and below the screen are drawn too: all of a usual network, so that scrolling finds them there. */
const MARGIN_ROWS = 20;
/** The level at which a wide surrounding is loaded once somebody moves, so that zooming out finds something to draw. */
const OVERVIEW_LEVEL = levelFor({ start: 0, end: 366 * DAY }, 800);

/** Makes a timeline; it loads and draws once its element is in a document. */
export function createTimeline(options: TimelineOptions): Timeline {
  const { links } = options;
  const canvas = element('canvas', {
    ...{ tabindex: '0', role: 'application', 'aria-roledescription': 'timeline' },
    ...{ 'aria-label': 'Use of the links over time', 'aria-describedby': 'timeline-keys' },
  });
  const labels = links.map((link) => element('li', {}, linkText(link)));
  const title = element('p', { class: 'timeline-period' });
  const hints = HINTS[matchMedia('(pointer: coarse)').matches ? 'touch' : 'pointer'];
  const readout = element('p', { class: 'timeline-readout' });
  const live = element('p', { class: 'spoken', role: 'status' });
  const shortKeys = element('p', { class: 'timeline-keys', 'aria-hidden': 'true' });
  const drawing = element(
    'div',
    { class: 'timeline-drawing' },
    element('ol', { class: 'timeline-labels', 'aria-hidden': 'true' }, ...labels),
    canvas,
    shortKeys,
  );
  const keys = element('p', { id: 'timeline-keys', hidden: true });
  const chart = element('div', {}, drawing, readout, legend(), keys);
  const probe = element('span', { hidden: true });
  const root = element('div', { class: 'timeline' });
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser has no canvas');

  let clock: Clock = createClock(options.zone());
  let zone = options.zone();
  const calendar = (): Calendar => ({ clock, now: options.now() });
  let ownOf = new Map<Link, readonly Own[]>();
  const ownOn = (link: Link): readonly Own[] => ownOf.get(link) ?? [];
  /** Where those are drawn; forgotten when they or the layout change. */
  const barsKnown = new Map<Link, readonly Bar[]>();
  const barsOn = (link: Link): readonly Bar[] => {
    const bars = barsKnown.get(link) ?? barsOf(ownOn(link), link.bandwidth, layout);
    barsKnown.set(link, bars);
    return bars;
  };
  let selected: Link | null = null;
  let view: Window = unitWindow('week', options.now(), clock, true);
  let unit: Unit | undefined = 'week';
  let layout = layoutFor(0, false);
  let pick: Mark | undefined;
  let cursor: Mark | undefined;
  let isFresh = false;
  let hasMoved = false;
  const level = (): number => levelFor(view, layout.width);
  const calmed = matchMedia('(prefers-reduced-motion: reduce)');
  const painter = new Painter(context, readColours(probe));

  // Loading

  const tiles = new Tiles({
    links,
    columns: options.columns,
    now: options.now,
    onChange: () => {
      draw();
      if (told) tell(told);
    },
  });
  let isLoadDue = false;
  const load = (): void => {
    if (isLoadDue) return;
    isLoadDue = true;
    setTimeout(() => {
      isLoadDue = false;
      if (!chart.hidden && layout.width > 0) tiles.want(wanted());
    }, LOAD_DELAY);
  };
  /** What to load: what is in view first, then what is beside it. */
  const wanted = (): Place[] => {
    const [first, last] = rowsInView();
    const from = knownFrom(options.now());
    const places = new Map<string, Place>();
    const add = (window: Window, one: number): void => {
      for (let link = first; link < last; link += 1) {
        for (const index of tilesOf(window, one)) {
          if (tileWindow(one, index).end > from)
            places.set(`${link}/${one}/${index}`, { link, level: one, index });
        }
      }
    };
    add(view, level());
    const margin = MARGIN * (view.end - view.start);
    add({ start: view.start - margin, end: view.end + margin }, level());
    if (hasMoved) add({ start: view.start, end: view.end }, OVERVIEW_LEVEL);
    return [...places.values()];
  };

  // Drawing

  /** The rows that are on the screen, with some around them: from the first to before the last. */
  const rowsInView = (): [first: number, last: number] => {
    const { top } = canvas.getBoundingClientRect();
    const at = (y: number): number =>
      Math.max(0, Math.min(links.length, (y - top - layout.axis) / layout.row));
    return [
      Math.max(0, Math.floor(at(0)) - MARGIN_ROWS),
      Math.min(links.length, Math.ceil(at(innerHeight)) + MARGIN_ROWS),
    ];
  };
  let isPaintDue = false;
  const draw = (): void => {
    if (isPaintDue) return;
    isPaintDue = true;
    requestAnimationFrame(() => {
      isPaintDue = false;
      paint();
    });
  };
  const paint = (): void => {
    const state = tiles.hasFailed ? ' · Not all could be loaded; it is tried again.' : '';
    const text = `${windowText(view, calendar())} · ${zone}${state}`;
    setText(title, text);
    if (layout.width === 0 || chart.hidden) return;
    // The page was moved to a display with other pixels.
    if (canvas.width !== Math.round(layout.width * devicePixelRatio)) {
      measure();
      return;
    }
    const [first, last] = rowsInView();
    const rows = links.slice(first, last).map((link, index) => ({
      parts: tiles.over(first + index, view, level()).flatMap(({ columns }) => (columns ? [columns] : [])),
      capacity: link.bandwidth,
      own: barsOn(link),
      isSelected: link === selected,
    }));
    const axis = twoLineAxis(view, clock, {
      width: layout.width,
      measure: (label) => painter.measure(label),
      gap: 8,
    });
    const isHere = document.activeElement === canvas && canvas.matches(':focus-visible');
    painter.draw(
      {
        ...{ window: view, layout, axis, rows, firstRow: first, now: options.now(), pick },
        cursor: isHere ? cursor : undefined,
      },
      devicePixelRatio,
    );
  };
  const measure = (): void => {
    const isNarrow = root.clientWidth < NARROW;
    root.classList.toggle('narrow', isNarrow);
    const { width } = canvas.getBoundingClientRect();
    layout = layoutFor(width, isNarrow);
    barsKnown.clear();
    const height = layout.axis + layout.row * links.length;
    drawing.style.setProperty('--timeline-axis', `${layout.axis}px`);
    drawing.style.setProperty('--timeline-row', `${layout.row}px`);
    canvas.style.height = `${height}px`;
    const [across, down] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
    // Setting a size clears the canvas, so it is painted at once.
    if (canvas.width !== across || canvas.height !== down) {
      [canvas.width, canvas.height] = [across, down];
      paint();
    }
    // Hidden, it asks for nothing.
    if (width > 0) load();
    else tiles.want([]);
  };

  // Moving

  let settling: ReturnType<typeof setTimeout> | undefined;
  const moveTo = (window: Window): void => {
    view = clampWindow(window, options.now());
    draw();
    load();
    clearTimeout(settling);
    settling = setTimeout(() => {
      options.onWindow(view);
      table.fill();
    }, SETTLE_DELAY);
  };
  const glide = createGlide(moveTo);
  /** Moves by a gesture: at once, and no longer a whole day, week, month or year. */
  const moveBy = (window: Window): void => {
    glide.stop();
    hasMoved = true;
    setUnit(undefined);
    moveTo(window);
  };
  /** Moves by a button or a key: in a short glide, unless the system asks for less motion. */
  const glideTo = (window: Window): void => {
    hasMoved = true;
    const to = clampWindow(window, options.now());
    if (calmed.matches || chart.hidden) {
      glide.stop();
      moveTo(to);
    } else glide.begin(view, to);
  };
  /** What is shown, or where it glides to: what is pressed meanwhile starts from there. */
  const aim = (): Window => glide.goal ?? view;
  const isNowShown = (): boolean => aim().start <= options.now() && options.now() < aim().end;
  const middle = (): number => (aim().start + aim().end) / 2;
  const zoomBy = (factor: number, at: number): void => {
    setUnit(undefined);
    glideTo(zoomWindow(aim(), factor, at));
  };
  const turn = (times: 1 | -1): void => glideTo(turnedPage(aim(), times, clock, unit));
  const goToNow = (): void => {
    const length = aim().end - aim().start;
    const now = options.now();
    glideTo(
      unit ? unitWindow(unit, now, clock, true) : { start: now - length / 10, end: now + 0.9 * length },
    );
  };

  const setUnit = (next: Unit | undefined): void => {
    unit = next;
    toolbar.press(unit);
  };
  const toolbar = createToolbar({
    onUnit: (next) => {
      const anchor = isNowShown() ? options.now() : middle();
      setUnit(next);
      glideTo(unitWindow(next, anchor, clock, isNowShown()));
    },
    onTurn: (times) => turn(times),
    onNow: () => goToNow(),
    onZoom: (factor) => zoomBy(factor, isNowShown() && factor < 1 ? options.now() : middle()),
    onTable: (isTable) => {
      [chart.hidden, table.element.hidden] = [isTable, !isTable];
      if (isTable) table.fill();
      else measure();
    },
  });
  toolbar.press(unit);

  // Words

  let saying: ReturnType<typeof setTimeout> | undefined;
  const say = (text: string): void => {
    clearTimeout(saying);
    saying = setTimeout(() => {
      live.textContent = text;
    }, SAY_DELAY);
  };
  const ownIn = (link: Link, { start, end }: Window): Own[] =>
    ownOn(link).filter((one) => one.start < end && one.end > start);
  const sentence = ({ row, start, end }: Mark): string => {
    const link = links[row];
    if (!link) return '';
    const facts = end <= knownFrom(options.now()) ? 'over' : tiles.free(row, { start, end }, level());
    return periodSentence(
      link,
      { start, end },
      { facts, own: ownIn(link, { start, end }), calendar: calendar() },
    );
  };
  /** What was said last, so that it is said again when more of it is loaded. */
  let told: Mark | undefined;
  const tell = (mark: Mark): void => {
    told = mark;
    const text = sentence(mark);
    if (readout.textContent === text) return;
    readout.textContent = text;
    say(text);
  };

  // Picking

  let mayPick: boolean | undefined;
  const hint = (): string => hints[mayPick ? 'pick' : 'look'];
  /** Invites to pick, or no longer. */
  const invite = (): void => {
    if (mayPick === options.mayPick()) return;
    mayPick = options.mayPick();
    pick = undefined;
    setText(readout, hint());
    const { spoken, short } = keysText(mayPick);
    setText(keys, spoken);
    setText(shortKeys, short);
  };
  invite();
  const snap = (pixels: number): Step => snapStep(view, layout.width, pixels);
  const picking = (): PickContext => ({ ...calendar(), step: snap(SNAP_PIXELS) });
  const choose = (mark: Mark | undefined): void => {
    const link = mark && links[mark.row];
    const period = mark && bookable(mark, options.now());
    if (!mark || !link || !period) {
      pick = undefined;
      readout.textContent = 'This time is over.';
      say('This time is over.');
    } else {
      told = undefined;
      pick = { row: mark.row, ...period };
      const text = sentence(pick);
      readout.textContent = text;
      if (mayPick) options.onPick({ link, ...period });
      say(mayPick ? `Picked: ${text}` : text);
    }
    draw();
  };
  const cancel = (): void => {
    pick = undefined;
    draw();
  };
  const instantOf = ({ x }: Point): number => instantAt(x, view, layout.width);
  const dragged = (from: Point, to: Point): Mark | undefined => {
    const row = rowAt(from.y, layout, links.length);
    const period = draggedPeriod(instantOf(from), instantOf(to), picking());
    return row === undefined || !period ? undefined : { row, ...period };
  };
  /** The reservation whose bar is here, or nearest. */
  const ownAt = (point: Point): Own | undefined => {
    const row = rowAt(point.y, layout, links.length);
    const link = row === undefined ? undefined : links[row];
    if (row === undefined || !link) return undefined;
    const below = point.y - layout.axis - row * layout.row - layout.top;
    const [from, until] = [-BAR_SLOP, BAR_SLOP].map((pixels) => instantOf({ ...point, x: point.x + pixels }));
    const away = ({ y, height }: Bar): number => Math.max(y - below, below - y - height, 0);
    return barsOn(link)
      .filter((bar) => bar.own.start <= (until ?? 0) && bar.own.end > (from ?? 0) && away(bar) <= BAR_SLOP)
      .toSorted((one, other) => away(one) - away(other))[0]?.own;
  };
  const columnsAround = (row: number, instant: number, length: number): Column[] =>
    tiles.columns(row, { start: instant - 2 * length, end: instant + 2 * length }, level());
  followGestures(canvas, {
    selectsAt: (point) => rowAt(point.y, layout, links.length) !== undefined,
    onMove: (pixels) => moveBy(panWindow(view, -pixels / layout.width)),
    onZoom: (factor, x) => moveBy(zoomWindow(view, factor, instantAt(x, view, layout.width))),
    onHover: (point) => {
      told = undefined;
      const row = point && rowAt(point.y, layout, links.length);
      canvas.classList.toggle('moves', row === undefined);
      canvas.classList.toggle('opens', point !== undefined && ownAt(point) !== undefined);
      if (!point || row === undefined) {
        readout.textContent = pick ? sentence(pick) : hint();
        return;
      }
      const instant = instantOf(point);
      const columns = tiles.columns(row, { start: instant, end: instant + 1 }, level());
      const { start, end } = columns[0] ?? { start: instant, end: instant + MINUTE };
      readout.textContent = sentence({ row, start, end });
    },
    onSelect: (from, to) => {
      pick = dragged(from, to);
      readout.textContent = pick ? sentence(pick) : 'This time is over.';
      draw();
    },
    onSelected: (from, to) => choose(dragged(from, to)),
    onCancel: cancel,
    onTap: (point) => {
      const own = ownAt(point);
      if (own) {
        options.onOwn(own);
        return;
      }
      const row = rowAt(point.y, layout, links.length);
      if (row === undefined) return;
      const instant = instantOf(point);
      const length = lengthOfStep(snap(CLICK_PIXELS));
      const period = clickedPeriod(instant, length, columnsAround(row, instant, length), picking());
      if (period) choose({ row, ...period });
      else tell({ row, start: instant, end: instant + MINUTE });
    },
  });

  // Keyboard

  /** Where the keyboard is; it begins at now, or in view. */
  const keyboardMark = (): Mark => {
    if (cursor) return cursor;
    const step = isFresh ? FRESH : snap(CLICK_PIXELS);
    const row = Math.max(0, selected ? links.indexOf(selected) : (pick?.row ?? 0));
    const start = pick?.start ?? ceilToStep(Math.max(view.start, options.now()), step, clock);
    return { row, start, end: pick?.end ?? start + lengthOfStep(step) };
  };
  const setCursor = (mark: Mark): void => {
    cursor = mark;
    const margin = (view.end - view.start) / 20;
    if (mark.start < view.start)
      moveBy(panWindow(view, (mark.start - margin - view.start) / (view.end - view.start)));
    else if (mark.start > view.end - margin) {
      moveBy(panWindow(view, (mark.start + 2 * margin - view.end) / (view.end - view.start)));
    }
    const { top } = canvas.getBoundingClientRect();
    const y = top + layout.axis + mark.row * layout.row;
    if (y < 0) scrollBy(0, y - layout.axis);
    else if (y + layout.row > innerHeight) scrollBy(0, y + 2 * layout.row - innerHeight);
    tell(mark);
    draw();
  };
  followKeys(canvas, {
    rows: links.length,
    picking,
    mark: keyboardMark,
    onGo: setCursor,
    onTurn(mark, times) {
      const before = aim();
      turn(times);
      const by = (before.end - before.start) * times;
      cursor = { row: mark.row, start: mark.start + by, end: mark.end + by };
      say(windowText(panWindow(before, times), calendar()));
    },
    onZoom: zoomBy,
    onNow(mark) {
      pick = undefined;
      goToNow();
      const start = ceilToStep(options.now(), snap(CLICK_PIXELS), clock);
      cursor = { row: mark.row, start, end: start + mark.end - mark.start };
      tell(cursor);
    },
    onChoose: choose,
    onCancel: cancel,
  });
  canvas.addEventListener('focus', () => {
    if (!canvas.matches(':focus-visible') || layout.width === 0) return;
    setCursor(keyboardMark());
  });
  canvas.addEventListener('blur', draw);

  const table = createTable({
    ...{ links, columns: options.columns, zone: () => zone, calendar, window: () => view, ownOn },
    mayPick: () => mayPick === true,
    onPick: (link, period) => choose({ row: links.indexOf(link), ...period }),
  });
  root.append(toolbar.element, title, chart, table.element, live, probe);

  // What changes from outside

  const recolour = (): void => {
    painter.colours = readColours(probe);
    draw();
  };
  for (const query of ['(prefers-color-scheme: dark)', FORCED]) {
    matchMedia(query).addEventListener('change', recolour);
  }
  new ResizeObserver(() => {
    // The style sheet is there by now.
    painter.colours = readColours(probe);
    measure();
  }).observe(root);
  for (const event of ['scroll', 'resize']) {
    addEventListener(event, () => {
      draw();
      load();
    });
  }
  setInterval(draw, NOW_INTERVAL);

  return {
    element: root,
    show: (window) => {
      glide.stop();
      setUnit(undefined);
      moveTo(window);
    },
    setReservations: (list) => {
      invite();
      const link = pick && links[pick.row];
      const known = new Set(link && ownOn(link).map(({ id }) => id));
      ownOf = new Map(links.map((link) => [link, list.filter((one) => isBetween(one, link))]));
      barsKnown.clear();
      // What was picked is booked.
      if (pick && link && ownIn(link, pick).some(({ id }) => !known.has(id))) {
        pick = undefined;
        setText(readout, hint());
      }
      draw();
      table.fill();
    },
    select: (link) => {
      selected = links.find((one) => link && isBetween(link, one)) ?? null;
      table.select(selected);
      draw();
    },
    clearPick: () => {
      pick = undefined;
      cursor = undefined;
      told = undefined;
      isFresh = true;
      clearTimeout(saying);
      live.textContent = '';
      setText(readout, hint());
      draw();
    },
    refresh: () => {
      if (options.zone() !== zone) {
        zone = options.zone();
        clock = createClock(zone);
      }
      tiles.refresh();
      draw();
      table.fill();
    },
    say,
  };
}

/** Whether something is between a link's sites; a reservation may name them in the other order. */
function isBetween(one: Pick<Own, 'site1' | 'site2'>, { site1, site2 }: Link): boolean {
  return (one.site1 === site1 && one.site2 === site2) || (one.site1 === site2 && one.site2 === site1);
}

/** What the colours mean. */
function legend(): HTMLElement {
  const entries = [
    ['free', 'free throughout'],
    ['part', 'free for part of it'],
    ['used', 'in use'],
    ['mine', 'yours'],
    ['none', 'no VLAN free'],
    ['over', 'over'],
    ['now', 'now'],
  ] as const;
  return element(
    'ul',
    { class: 'timeline-legend', 'aria-hidden': 'true' },
    ...entries.map(([name, text]) => element('li', {}, element('i', { class: name }), text)),
  );
}
