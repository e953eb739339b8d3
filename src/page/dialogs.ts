import { element, setText } from './elements.ts';

/** A text to be copied, with fields that it depends on. */
export interface TextToCopy {
  title: string;
  /** Above the text. */
  fields: readonly HTMLElement[];
  /** The text for what the fields hold now. Asked again after each change of a field. */
  text(): { text: string } | { problem: string };
  copy(text: string): Promise<boolean>;
}

/** Shows a text over the page, to be copied. */
export function showText({ title, fields, text, copy }: TextToCopy): void {
  const heading = element('h2', { id: 'text-title' }, title);
  const shown = element('pre', { tabindex: '0', 'aria-label': 'Commands' });
  const status = element('p', { role: 'status' });
  const button = element('button', { type: 'button', onclick: () => void copied() }, 'Copy');
  async function copied(): Promise<void> {
    const now = text();
    if (!('text' in now)) return;
    setText(
      status,
      (await copy(now.text)) ? 'Copied.' : 'The browser does not let this page copy: select the text.',
    );
  }
  function update(): void {
    const now = text();
    const isText = 'text' in now;
    // Not through setText: the lines are to be pasted as they are.
    shown.textContent = isText ? now.text : '';
    [shown.hidden, button.disabled] = [!isText, !isText];
    setText(status, isText ? '' : now.problem);
  }
  const dialog = element(
    'dialog',
    { class: 'text', 'aria-labelledby': heading.id, onclose: () => dialog.remove(), oninput: update },
    ...[heading, element('div', { class: 'fields' }, ...fields), shown, status],
    element(
      'form',
      { method: 'dialog', class: 'actions' },
      button,
      element('button', { class: 'quiet' }, 'Close'),
    ),
  );
  update();
  document.body.append(dialog);
  dialog.showModal();
}
