import { element, quietButton, setText } from './elements.ts';
import type { Action, Notice } from './state.ts';

/** How long the notice of something that was done is shown, in milliseconds. */
const LASTS = 10_000;

/** The view of the one notice. It stands in the flow of the page, beside its subject. */
export interface NoticeView {
  element: HTMLElement;
  /** Stays where it is, so that a screen reader knows of it before it says something. */
  spoken: HTMLElement;
  /** Shows a notice, or none. */
  show(notice: Notice | undefined): void;
  /** Puts it after an element. @returns whether it stood elsewhere */
  putAfter(place: HTMLElement): boolean;
}

/** Options of {@link createNotice}. */
export interface NoticeOptions {
  /** Runs something later. @returns what calls it off */
  later(milliseconds: number, run: () => void): () => void;
  dispatch(action: Action): void;
}

/** Makes a {@link NoticeView}. */
export function createNotice({ later, dispatch }: NoticeOptions): NoticeView {
  const words = element('span');
  const onclick = (): void => dispatch({ type: 'unsaid', since: 'closed' });
  const close = quietButton('×', onclick, { 'aria-label': 'Close' });
  const whole = element('p', { class: 'result', hidden: true }, words, close);
  const spoken = element('p', { class: 'spoken', role: 'status' });
  let callOff = (): void => {};
  /** Goes by itself, unless someone is at it. */
  function leave(): void {
    if (whole.matches(':hover') || whole.contains(document.activeElement)) callOff = later(LASTS, leave);
    else dispatch({ type: 'unsaid', since: 'passed' });
  }
  return {
    ...{ element: whole, spoken },
    show(notice) {
      callOff();
      // The same text again is news too: it is taken away first.
      [words.textContent, spoken.textContent] = ['', ''];
      setText(words, notice?.text ?? '');
      setText(spoken, notice?.text ?? '');
      whole.hidden = notice === undefined;
      if (notice?.isDone) callOff = later(LASTS, leave);
    },
    putAfter(place) {
      const isElsewhere = place.nextElementSibling !== whole;
      if (isElsewhere) place.after(whole);
      return isElsewhere;
    },
  };
}
