import type { Point } from '../point.ts';

/** The meaning of pointers and wheels on a canvas. */
export interface GestureHandlers {
  /** Whether a mouse that is pressed here selects; elsewhere, and without this, it moves. */
  selectsAt?(point: Point): boolean;
  /** The content moves to the right by so many pixels. */
  onMove(pixels: number): void;
  /** Above 1 shows more. What is at `x` stays there. */
  onZoom(factor: number, x: number): void;
  /** The pointer rests here; undefined when it has left. */
  onHover?(point: Point | undefined): void;
  /** A selection from a point to another; it may still change. */
  onSelect?(from: Point, to: Point): void;
  onSelected?(from: Point, to: Point): void;
  /** A selection that was given up. */
  onCancel?(): void;
  onTap?(point: Point): void;
}

/** How far a pointer moves before it drags, in pixels. */
const SLOP = 4;
/** How long a finger rests before it selects, in milliseconds. */
const LONG_PRESS = 450;

/**
 * Follows mouse, pen, touch and wheel on an element: a mouse selects or moves, depending on where it is pressed; a finger
 * moves, taps, or selects after it has rested; two fingers zoom. A wheel moves sideways, and zooms with Ctrl, which is what a
 * pinch on a touchpad is. All else is left to the page, which scrolls up and down.
 */
export function followGestures(element: HTMLElement, on: GestureHandlers): void {
  const pointers = new Map<number, Point>();
  let press: { kind: 'tap' | 'move' | 'select'; from: Point; last: Point } | undefined;
  let resting: ReturnType<typeof setTimeout> | undefined;
  const pointOf = ({ clientX, clientY }: MouseEvent): Point => {
    const { left, top } = element.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  };
  const giveUp = (): void => {
    clearTimeout(resting);
    if (press?.kind === 'select') on.onCancel?.();
    press = undefined;
  };
  /** The middle of two fingers and how far they are apart. */
  const pinch = (): { x: number; apart: number } => {
    const [one = { x: 0, y: 0 }, other = one] = [...pointers.values()];
    return { x: (one.x + other.x) / 2, apart: Math.max(20, Math.hypot(one.x - other.x, one.y - other.y)) };
  };

  element.addEventListener('pointerdown', (event) => {
    if (event.pointerType === 'mouse' && event.button > 0) return;
    const point = pointOf(event);
    pointers.set(event.pointerId, point);
    element.setPointerCapture(event.pointerId);
    giveUp();
    if (pointers.size > 1) return;
    press = { kind: 'tap', from: point, last: point };
    if (event.pointerType === 'mouse' || !on.selectsAt?.(point)) return;
    resting = setTimeout(() => {
      if (!press) return;
      press.kind = 'select';
      on.onSelect?.(press.from, press.last);
    }, LONG_PRESS);
  });

  element.addEventListener('pointermove', (event) => {
    const point = pointOf(event);
    if (!pointers.has(event.pointerId)) {
      on.onHover?.(point);
      return;
    }
    const before = pinch();
    pointers.set(event.pointerId, point);
    if (pointers.size === 2) {
      const { x, apart } = pinch();
      on.onMove(x - before.x);
      on.onZoom(before.apart / apart, x);
    }
    if (!press) return;
    if (press.kind === 'tap' && Math.hypot(point.x - press.from.x, point.y - press.from.y) > SLOP) {
      clearTimeout(resting);
      press.kind = event.pointerType === 'mouse' && on.selectsAt?.(press.from) ? 'select' : 'move';
    }
    if (press.kind === 'move') on.onMove(point.x - press.last.x);
    if (press.kind === 'select') on.onSelect?.(press.from, point);
    press.last = point;
  });

  element.addEventListener('pointerup', (event) => {
    pointers.delete(event.pointerId);
    clearTimeout(resting);
    const ended = press;
    press = undefined;
    if (ended?.kind === 'tap') on.onTap?.(ended.from);
    if (ended?.kind === 'select') on.onSelected?.(ended.from, ended.last);
  });

  element.addEventListener('pointercancel', (event) => {
    pointers.delete(event.pointerId);
    giveUp();
  });
  element.addEventListener('pointerleave', ({ pointerType }) => {
    if (pointerType === 'mouse') on.onHover?.(undefined);
  });
  element.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') giveUp();
  });
  // A finger that rests selects; it asks for no menu.
  element.addEventListener('contextmenu', (event) => {
    if (pointers.size > 0) event.preventDefault();
  });

  const onWheel = (event: WheelEvent): void => {
    // Firefox may count lines.
    const unit = event.deltaMode === 0 ? 1 : 16;
    const [across, along] = [event.deltaX * unit, event.deltaY * unit];
    const isZoom = event.ctrlKey || event.metaKey;
    if (!isZoom && Math.abs(across) < Math.abs(along) && !event.shiftKey) return;
    event.preventDefault();
    if (isZoom) on.onZoom(Math.exp(Math.max(-50, Math.min(50, along)) * 0.008), pointOf(event).x);
    else on.onMove(-(event.shiftKey && across === 0 ? along : across));
  };
  element.addEventListener('wheel', onWheel, { passive: false });
}
