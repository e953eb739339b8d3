import { element, quietButton } from '../elements.ts';
import type { Point } from '../point.ts';
import type { MapLayout } from './layout.ts';

/** How many times as large the map can be drawn. */
const LARGEST = 8;
/** By how much a turn of the wheel enlarges it. */
const TURN = 1.25;
/** How far a mouse moves before it drags, in pixels. */
const SLOP = 4;

/**
 * The place in which a picture is moved, and buttons that draw it larger, around what is chosen. A mouse drags it; the wheel
 * enlarges it with Ctrl, and is the page's without.
 *
 * @param drawAt draws it so many times as large
 * @param chosen the sites that are chosen, by name
 */
export function createZoom(
  picture: SVGElement,
  drawAt: (times: number) => MapLayout,
  chosen: () => readonly string[],
) {
  const place = element('div', { class: 'map-place' });
  place.append(picture);
  let times = 1;
  /** Whether it was moved by hand since it was shown whole: then its middle stays. */
  let isMoved = false;
  let pressed: Point | undefined;
  /** @param around a point of the place that stays, with what is there */
  const zoomTo = (wanted: number, around?: Point): void => {
    const next = Math.min(LARGEST, Math.max(1, wanted));
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = place;
    const middle = { x: clientWidth / 2, y: clientHeight / 2 };
    const stays = around ?? middle;
    const by = next / times;
    times = next;
    isMoved = times > 1 && (isMoved || around !== undefined);
    const layout = drawAt(times);
    place.classList.toggle('zoomed', times > 1);
    if (times === 1) place.style.height = `${layout.height}px`;
    const { x, y } = isMoved
      ? { x: (scrollLeft + stays.x) * by - stays.x, y: (scrollTop + stays.y) * by - stays.y }
      : cornerAround(middleOf(layout, chosen()), middle);
    place.scrollTo(x, y);
  };

  place.addEventListener(
    'wheel',
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { left, top } = place.getBoundingClientRect();
      const around = { x: event.clientX - left, y: event.clientY - top };
      zoomTo(times * (event.deltaY < 0 ? TURN : 1 / TURN), around);
    },
    { passive: false },
  );
  place.addEventListener('pointerdown', ({ pointerType, button, clientX: x, clientY: y }) => {
    if (times > 1 && pointerType === 'mouse' && button === 0) pressed = { x, y };
  });
  place.addEventListener('pointermove', ({ pointerId, buttons, clientX: x, clientY: y }) => {
    if (buttons === 0) pressed = undefined;
    if (!pressed) return;
    const isDragged = place.hasPointerCapture(pointerId);
    if (!isDragged && Math.hypot(x - pressed.x, y - pressed.y) <= SLOP) return;
    // From now on nothing in the picture is clicked.
    place.setPointerCapture(pointerId);
    isMoved = true;
    place.scrollBy(pressed.x - x, pressed.y - y);
    pressed = { x, y };
  });

  const tools = element(
    'span',
    {},
    quietButton('Reset', () => zoomTo(1), { 'aria-label': 'Reset the map' }),
    quietButton('−', () => zoomTo(times / 2), { 'aria-label': 'Shrink the map' }),
    quietButton('+', () => zoomTo(times * 2), { 'aria-label': 'Enlarge the map' }),
  );
  return { place, tools, reset: () => zoomTo(1) };
}

/** The middle of some sites, or of all where none of them is on the map. */
function middleOf({ at }: MapLayout, names: readonly string[]): Point {
  const some = names.flatMap((name) => at.get(name) ?? []);
  const points = some.length > 0 ? some : [...at.values()];
  const between = (values: readonly number[]): number => (Math.min(...values) + Math.max(...values)) / 2;
  return { x: between(points.map(({ x }) => x)), y: between(points.map(({ y }) => y)) };
}

function cornerAround(point: Point, middle: Point): Point {
  return { x: point.x - middle.x, y: point.y - middle.y };
}
