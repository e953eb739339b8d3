import type { RefObject } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { Point } from '../point.ts';
import { LARGEST } from './layout.ts';

/** By how much a turn of the wheel enlarges the picture. */
const TURN = 1.25;
/** How far a mouse moves before it drags, in pixels. */
const SLOP = 4;

/**
 * A picture that is drawn larger than its place, which scrolls it. A mouse drags it; the wheel enlarges it with Ctrl, and is the
 * page's without.
 *
 * @param middle the middle of what is chosen, as it is drawn now; undefined where nothing is
 */
export function useZoom(place: RefObject<HTMLElement | null>, middle: () => Point | undefined) {
  const [times, setTimes] = useState(1);
  /** Whether it was moved by hand since it was shown whole: then its middle stays. */
  const isMoved = useRef(false);
  const pressed = useRef<Point>(undefined);

  /** @param stays a point of the place that stays, with what is there @param on the point of the picture that is in the middle then */
  function zoomTo(
    wanted: number,
    stays?: Point,
    on = isMoved.current || stays ? () => undefined : middle,
  ): void {
    const element = place.current;
    if (!element) return;
    const next = Math.min(LARGEST, Math.max(1, wanted));
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = element;
    const half = { x: clientWidth / 2, y: clientHeight / 2 };
    const fixed = stays ?? half;
    const by = next / times;
    isMoved.current = next > 1 && (isMoved.current || stays !== undefined);
    setTimes(next);
    const target = on();
    if (target) element.scrollTo(target.x - half.x, target.y - half.y);
    else element.scrollTo((scrollLeft + fixed.x) * by - fixed.x, (scrollTop + fixed.y) * by - fixed.y);
  }

  const listeners = {
    onWheel(event: WheelEvent): void {
      if (!(event.ctrlKey || event.metaKey) || !place.current) return;
      event.preventDefault();
      const { left, top } = place.current.getBoundingClientRect();
      const stays = { x: event.clientX - left, y: event.clientY - top };
      zoomTo(times * (event.deltaY < 0 ? TURN : 1 / TURN), stays);
    },
    onPointerDown({ pointerType, button, clientX: x, clientY: y }: PointerEvent): void {
      if (times > 1 && pointerType === 'mouse' && button === 0) pressed.current = { x, y };
    },
    onPointerMove({ pointerId, buttons, clientX: x, clientY: y }: PointerEvent): void {
      if (buttons === 0) pressed.current = undefined;
      const element = place.current;
      const { current: from } = pressed;
      if (!from || !element) return;
      if (!element.hasPointerCapture(pointerId) && Math.hypot(x - from.x, y - from.y) <= SLOP) return;
      // From now on nothing in the picture is clicked.
      element.setPointerCapture(pointerId);
      isMoved.current = true;
      element.scrollBy(from.x - x, from.y - y);
      pressed.current = { x, y };
    },
  };
  return { times, zoomTo, listeners };
}
