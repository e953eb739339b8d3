import { escapeText } from '../contract/visible-text.ts';

/** A value of an attribute: `true` sets it, `false` and undefined leave it out; a function listens to an event. */
type Attribute = string | boolean | undefined | ((event: Event) => void);

/**
 * Makes an element. All text goes in as text, never as markup, with its invisible characters shown as codes.
 *
 * @param attributes names as in HTML; `onclick` and the like are listeners
 */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, Attribute>> = {},
  ...content: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...content.map((part) => (typeof part === 'string' ? escapeText(part) : part)));
  return made;
}

/** Makes a button that looks like text. @param attributes more than its type and class */
export function quietButton(
  label: string,
  onclick: () => void,
  attributes: Readonly<Record<string, Attribute>> = {},
): HTMLButtonElement {
  return element('button', { type: 'button', class: 'quiet', ...attributes, onclick }, label);
}

/** A link past what has many stops of the Tab key, to an element with an id behind it. Seen while it has the focus. */
export function skipTo(end: HTMLElement, text: string): HTMLElement {
  const onclick = (event: Event): void => {
    // The address stays as it is.
    event.preventDefault();
    // A stop of the Tab key while it has the focus: from what is none, Chromium goes back to where the section begins.
    end.tabIndex = 0;
    end.focus();
  };
  end.addEventListener('blur', () => end.removeAttribute('tabindex'));
  return element('a', { class: 'skip', href: `#${end.id}`, onclick }, text);
}

/** Sets an element's text where it differs, so that a live region says nothing twice. */
export function setText(place: HTMLElement, text: string): void {
  const shown = escapeText(text);
  if (place.textContent !== shown) place.textContent = shown;
}

/** A choice of a list. */
export interface Choice {
  value: string;
  label: string;
}

/** Gives a list its choices, where they differ, and selects one. */
export function setChoices(list: HTMLSelectElement, choices: readonly Choice[], value: string): void {
  const known = [...list.options].map((option) => `${option.value} ${option.text}`).join('\n');
  if (known !== choices.map((choice) => `${choice.value} ${choice.label}`).join('\n')) {
    list.replaceChildren(
      ...choices.map((choice) => element('option', { value: choice.value }, choice.label)),
    );
  }
  if (list.value !== value) list.value = value;
}
