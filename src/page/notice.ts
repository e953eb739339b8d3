import { element, setText } from './elements.ts';

/** How long the notice of something that was done is shown, in milliseconds. */
const LASTS = 10_000;

/** One notice of what became of an action. It stands in the flow of the page, beside what it is about. */
export interface Notice {
  /** To be put where it belongs. */
  element: HTMLElement;
  /** Stays where it is, so that a screen reader knows of it before it says something. */
  spoken: HTMLElement;
  /** Shows a text in the place of the one before. What was done goes by itself, unless someone is at it; a problem stays. */
  say(text: string, isDone: boolean): void;
  /** Takes it away: something else has begun. */
  clear(): void;
  /** Takes it away, unless it names a problem. */
  clearDone(): void;
}

/** Makes a {@link Notice}. @param later runs something later, and gives what calls it off */
export function createNotice(later: (milliseconds: number, run: () => void) => () => void): Notice {
  const words = element('span');
  const close = element(
    'button',
    { type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: () => clear() },
    '×',
  );
  const whole = element('p', { class: 'result', hidden: true }, words, close);
  const spoken = element('p', { class: 'spoken', role: 'status' });
  let callOff = (): void => {};
  let isPassing = false;
  function clear(): void {
    callOff();
    isPassing = false;
    whole.hidden = true;
    words.textContent = '';
    spoken.textContent = '';
  }
  function leave(): void {
    if (whole.matches(':hover') || whole.contains(document.activeElement)) callOff = later(LASTS, leave);
    else clear();
  }
  return {
    ...{ element: whole, spoken, clear },
    say(text, isDone) {
      // The same text again is news too: it is taken away first.
      clear();
      setText(words, text);
      setText(spoken, text);
      whole.hidden = false;
      isPassing = isDone;
      if (isDone) callOff = later(LASTS, leave);
    },
    clearDone() {
      if (isPassing) clear();
    },
  };
}
