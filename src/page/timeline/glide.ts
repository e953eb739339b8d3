import type { Window } from '../service.ts';
import { betweenWindows } from './view.ts';

/** How long a glide takes, in milliseconds. */
const LASTS = 180;

/** Moves from window to window in a short time, frame by frame. */
export interface Glide {
  /** Where it goes to; undefined while nothing moves. */
  readonly goal: Window | undefined;
  begin(from: Window, to: Window): void;
  /** Ends it where it is. */
  stop(): void;
}

/** Makes a {@link Glide}. @param moveTo shows a window */
export function createGlide(moveTo: (window: Window) => void): Glide {
  let frame = 0;
  let goal: Window | undefined;
  const stop = (): void => {
    cancelAnimationFrame(frame);
    goal = undefined;
  };
  return {
    get goal() {
      return goal;
    },
    begin(from, to) {
      stop();
      goal = to;
      let began: number | undefined;
      const step = (time: number): void => {
        began ??= time;
        const share = Math.min(1, (time - began) / LASTS);
        moveTo(share === 1 ? to : betweenWindows(from, to, 1 - (1 - share) ** 3));
        if (share < 1) frame = requestAnimationFrame(step);
        else goal = undefined;
      };
      frame = requestAnimationFrame(step);
    },
    stop,
  };
}
