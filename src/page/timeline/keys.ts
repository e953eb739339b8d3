import type { Mark } from './paint.ts';
import { lengthenedPeriod, movedPeriod, type PickContext } from './pick.ts';

/** What keys mean on the drawing. */
export interface KeyHandlers {
  /** How many rows there are. */
  rows: number;
  picking(): PickContext;
  /** The period where the keyboard is. */
  mark(): Mark;
  /** It goes to another one. */
  onGo(mark: Mark): void;
  onTurn(mark: Mark, times: 1 | -1): void;
  /** Below 1 shows less. What is at `instant` stays there. */
  onZoom(factor: number, instant: number): void;
  onNow(mark: Mark): void;
  onChoose(mark: Mark): void;
  onCancel(): void;
}

/** Follows the keys on an element that has the focus; those of the browser and of the page are left to them. */
export function followKeys(element: HTMLElement, on: KeyHandlers): void {
  /** @returns whether the key means something here */
  const follow = ({ key, shiftKey }: KeyboardEvent): boolean => {
    const mark = on.mark();
    const times = key === 'ArrowRight' || key === 'ArrowDown' || key === 'PageDown' ? 1 : -1;
    switch (key) {
      case 'ArrowLeft':
      case 'ArrowRight': {
        const change = shiftKey ? lengthenedPeriod : movedPeriod;
        on.onGo({ row: mark.row, ...change(mark, times, on.picking()) });
        return true;
      }
      case 'ArrowUp':
      case 'ArrowDown':
        on.onGo({ ...mark, row: Math.min(on.rows - 1, Math.max(0, mark.row + times)) });
        return true;
      case 'PageUp':
      case 'PageDown':
        on.onTurn(mark, times);
        return true;
      case '+':
      case '=':
        on.onZoom(0.5, mark.start);
        return true;
      case '-':
      case '_':
        on.onZoom(2, mark.start);
        return true;
      case 'Home':
        on.onNow(mark);
        return true;
      case 'Enter':
      case ' ':
        on.onChoose(mark);
        return true;
      case 'Escape':
        on.onCancel();
        return true;
      default:
        return false;
    }
  };
  element.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (follow(event)) event.preventDefault();
  });
}
