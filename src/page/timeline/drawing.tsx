import { useEffect, useRef, useState } from 'preact/hooks';
import { formatBandwidth } from '../../contract/amounts.ts';
import { linkName } from '../../words/links.ts';
import { factsAt } from './facts.ts';
import { followDates, followKey, followRows, type LiveView, type Pointed } from './follow.ts';
import { AXIS } from './layout.ts';
import type { Mark } from './model.ts';
import { axisOf, type Paper, paintAxis, paintRows } from './paint.ts';
import { linkOf, type View } from './view.ts';
import { placeOf } from './windows.ts';
import { keysText, mineTexts } from './words.ts';

/** On a narrower screen labels are above the rows, and the rows of the chosen route alone are shown. */
const PHONE = '(max-width: 639px)';
/** How many rows are drawn together, and as many above and below the screen too. */
const ROWS = 10;

/** The part of a view that depends on the screen. */
export type Place = Pick<View, 'width' | 'first' | 'last'>;

type DrawingProps = { view: LiveView; isLoading: boolean; setPlace(place: Place): void };

/** The drawing: dates that stay in view, and below them a row for each link. */
export function Drawing({ view, isLoading, setPlace }: DrawingProps) {
  const { page, rows, layout, first, last, state } = view;
  const [pointed, setPointed] = useState<Pointed>();
  const [isHere, setHere] = useState(false);
  const dates = useRef<HTMLCanvasElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const drawing = useRef<HTMLCanvasElement>(null);
  const latest = useRef(view);
  latest.current = view;
  const cursor = isHere ? state.cursor : undefined;

  const frame = useRef(0);
  const paint = (): void => {
    const [over, paper] = [dates.current, drawing.current].map(paperOf);
    if (!over || !paper || view.width === 0) return;
    const axis = axisOf(over, view);
    paintAxis(over, view, axis, AXIS);
    paintRows(paper, view, axis, pointed?.isDrag ? pointed.mark : undefined, cursor);
  };
  useScreen(() => {
    if (!body.current) return;
    const isNarrow = matchMedia(PHONE).matches;
    if (isNarrow !== state.isNarrow) page.move({ type: 'set', parts: { isNarrow } });
    const place = placeIn(body.current.getBoundingClientRect(), layout.row, rows.length);
    if (place.width !== view.width || place.first !== first || place.last !== last) setPlace(place);
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(paint);
    // Paper gets what was painted by the time that this returns.
    if (matchMedia('print').matches) paint();
  });
  useEffect(() => {
    if (dates.current) followDates(dates.current, () => latest.current);
    if (body.current) followRows(body.current, () => latest.current, setPointed);
  }, []);
  useEffect(() => {
    if (!cursor || !body.current) return;
    // The keyboard has left the screen.
    const y = body.current.getBoundingClientRect().top + rows.indexOf(cursor.row) * layout.row;
    if (y < AXIS) scrollBy(0, y - AXIS);
    else if (y + layout.row > innerHeight) scrollBy(0, y + 2 * layout.row - innerHeight);
  }, [cursor]);

  const top = `${first * layout.row}px`;
  return (
    <div class={isLoading ? 'timeline-drawing loading' : 'timeline-drawing'}>
      <canvas class="timeline-axis" ref={dates} style={{ height: `${AXIS}px` }} />
      <div class="timeline-rows" ref={body} style={{ height: `${rows.length * layout.row}px` }}>
        <ol class="timeline-labels" aria-hidden="true" style={{ top }}>
          {rows.slice(first, last).map((row) => (
            <Label key={row} {...{ view, row }} />
          ))}
        </ol>
        <canvas
          {...{ ref: drawing, tabIndex: 0, role: 'application', 'aria-roledescription': 'timeline' }}
          {...{ 'aria-label': 'Use of the links over time', 'aria-describedby': 'timeline-keys' }}
          style={{ top, height: `${(last - first) * layout.row}px` }}
          onKeyDown={(event) => {
            if (event.key === 'Escape') setPointed(undefined);
            followKey(event, view);
          }}
          onFocus={({ currentTarget }) => {
            setHere(currentTarget.matches(':focus-visible'));
            if (currentTarget.matches(':focus-visible')) page.move({ type: 'focused' });
          }}
          onBlur={() => setHere(false)}
        />
        <Card {...{ view, pointed, cursor }} />
      </div>
      <p id="timeline-keys" hidden>
        {keysText(view.mayPick)}
      </p>
    </div>
  );
}

/** A link's two sites, each elided in the middle, and its rate at the other end of its row. */
function Label({ view, row }: { view: View; row: number }) {
  const link = linkOf(view, row);
  if (!link) return null;
  return (
    <li class={view.selectedRows.includes(row) ? 'chosen' : undefined}>
      <span>
        {[link.site1, link.site2].toSorted().map((site) => (
          <span class="site" key={site}>
            <span>{site.slice(0, -9)}</span>
            {site.slice(-9)}
          </span>
        ))}
      </span>
      <span>{formatBandwidth(link.bandwidth)}</span>
    </li>
  );
}

type CardProps = { view: View; pointed: Pointed | undefined; cursor: Mark | undefined };

/** What is known of a period of a link, beside the pointer or the keyboard's cursor. The live region says the same. */
function Card({ view, pointed, cursor }: CardProps) {
  const { rows, layout, width, state } = view;
  const mark = pointed?.mark ?? cursor;
  const link = mark && linkOf(view, mark.row);
  if (!mark || !link) return null;
  const { when, facts, own } = factsAt(view, mark, link);
  const mine = pointed && pointed.own.length > 0 ? pointed.own : own;
  const below = (rows.indexOf(mark.row) + 1) * layout.row - 10;
  const { x, y } = pointed?.at ?? { x: placeOf(mark.start, state.window, width), y: below };
  const side = x > width / 2 ? { right: `${width - x + 14}px` } : { left: `${Math.max(0, x) + 14}px` };
  return (
    <div class="timeline-card" aria-hidden="true" style={{ ...side, top: `${y + 14}px` }}>
      <strong>{when}</strong>
      <span>{linkName(link)}</span>
      <span>{facts}</span>
      {mineTexts(mine).map((text) => (
        <span key={text}>{text}</span>
      ))}
    </div>
  );
}

/** The rows that are on the screen, with some around them. */
function placeIn({ top, width }: DOMRect, row: number, count: number): Place {
  const before = Math.floor(-top / row / ROWS) * ROWS - ROWS;
  const behind = Math.ceil((innerHeight - top) / row / ROWS) * ROWS + ROWS;
  const first = Math.max(0, Math.min(before, count - ROWS));
  return { width, first, last: Math.min(count, Math.max(behind, first + 2 * ROWS)) };
}

/** What is needed to paint on a canvas. */
function paperOf(canvas: HTMLCanvasElement | null): Paper | undefined {
  const context = canvas?.getContext('2d');
  if (!canvas || !context) return undefined;
  const style = getComputedStyle(canvas);
  const known: Record<string, string> = {};
  const colour = (name: string): string => (known[name] ??= style.getPropertyValue(`--timeline-${name}`));
  return { context, colour, scale: devicePixelRatio };
}

/** Runs after each time that the component was shown; and when its place, its colours or its paper change. */
function useScreen(run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(run);
  useEffect(() => {
    const again = (): void => latest.current();
    const gone = new AbortController();
    const { signal } = gone;
    // The style sheet is there by the first of these.
    const sizes = new ResizeObserver(again);
    sizes.observe(document.body);
    signal.addEventListener('abort', () => sizes.disconnect());
    for (const event of ['scroll', 'resize']) addEventListener(event, again, { passive: true, signal });
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)', 'print'])
      matchMedia(query).addEventListener('change', again, { signal });
    return () => gone.abort();
  }, []);
}
