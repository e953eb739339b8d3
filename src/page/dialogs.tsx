import { render } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** A question with two answers. */
export interface Question {
  title: string;
  text: string;
  /** The button that confirms, and the button that does not, which has the focus first. */
  yes: string;
  no: string;
}

/** Asks a question over the page. Escape means no. @returns whether the answer was yes */
export function ask(question: Question): Promise<boolean> {
  return new Promise((resolve) => {
    const place = document.createElement('div');
    document.body.append(place);
    const answer = (isYes: boolean): void => {
      render(null, place);
      place.remove();
      resolve(isYes);
    };
    render(<QuestionDialog {...question} answer={answer} />, place);
  });
}

function QuestionDialog({ title, text, yes, no, answer }: Question & { answer(isYes: boolean): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      aria-labelledby="question"
      ref={dialog}
      onClose={({ currentTarget }) => answer(currentTarget.returnValue === 'yes')}
    >
      <h2 id="question">{title}</h2>
      <p>{text}</p>
      <form method="dialog" class="actions">
        <button type="submit" value="yes" class="danger">
          {yes}
        </button>
        <button type="submit" value="no" class="quiet" autofocus>
          {no}
        </button>
      </form>
    </dialog>
  );
}
