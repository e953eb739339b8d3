import type { Period } from '../../contract/phases.ts';
import type { TimelineAction, TimelineState } from './model.ts';
import { betweenWindows } from './windows.ts';

/** How long a glide takes, in milliseconds. */
const GLIDE = 180;

/**
 * Makes the function that moves to a state's goal in a short time, frame by frame. Each goal takes the place of the one before.
 *
 * @param isAtOnce whether it goes there without a glide
 */
export function createGlide(
  dispatch: (action: TimelineAction) => void,
  isAtOnce: () => boolean,
): (state: Pick<TimelineState, 'window' | 'goal'>) => void {
  let frame = 0;
  return ({ window: from, goal }) => {
    cancelAnimationFrame(frame);
    if (!goal) return;
    if (isAtOnce()) {
      dispatch({ type: 'glided', window: goal });
      return;
    }
    let began: number | undefined;
    const at = (share: number): Period =>
      share === 1 ? goal : betweenWindows(from, goal, 1 - (1 - share) ** 3);
    const step = (time: number): void => {
      began ??= time;
      const share = Math.min(1, (time - began) / GLIDE);
      if (share < 1) frame = requestAnimationFrame(step);
      dispatch({ type: 'glided', window: at(share) });
    };
    frame = requestAnimationFrame(step);
  };
}
