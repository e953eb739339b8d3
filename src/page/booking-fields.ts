import { DAY, HOUR } from '../contract/durations.ts';
import { type Calendar, instantText } from '../words/civil-time.ts';
import type { Draft, Field } from './draft.ts';
import { element, quietButton, setChoices, setText } from './elements.ts';
import { type Route, routesFrom } from './route.ts';
import type { Link } from './service.ts';
import { calendarOf, type State } from './state.ts';
import { readWall, routeNote, wallText } from './words.ts';

/** The full hour at a time or after it. */
export function nextHour(now: number): number {
  return Math.ceil(now / HOUR) * HOUR;
}

/** The effects of the fields. */
interface FieldHandlers {
  /** A part of the draft is typed. */
  type(part: Partial<Draft>): void;
  /** A part of the draft is chosen by a click. */
  click(part: Partial<Draft>): void;
  choose(field: 'site1' | 'site2', site: string): void;
  /** The start becomes the first at which it fits. */
  earliest(): void;
  calendar(): Calendar;
  /** The duration and the end to begin with, where the other of them is left. */
  duration(): string;
  end(): number;
}

/** The facts that fields show beside the draft. */
interface FieldView extends Pick<State, 'zone' | 'now'> {
  links: readonly Link[];
  /** The route of the draft, as far as it is known. */
  route?: Route;
}

/** Fields of the form, which show a draft. */
interface Fields {
  elements: readonly HTMLElement[];
  show(draft: Draft, view: FieldView): void;
}

/** Makes the place for the problems of a field, which its inputs name as their description. */
type Place = (key: Field, ...inputs: readonly HTMLElement[]) => HTMLElement;

/** Makes the fields of the form. They listen to `input`, which the form hears after them: by then the draft has what was typed. */
export function createFields(on: FieldHandlers) {
  const places = new Map<Field, { place: HTMLElement; inputs: readonly HTMLElement[] }>();
  const place: Place = (key, ...inputs) => {
    const made = element('p', { class: 'problem', id: `${key}-problem`, hidden: true });
    for (const input of inputs) input.setAttribute('aria-describedby', made.id);
    places.set(key, { place: made, inputs });
    return made;
  };
  const parts = [siteFields(on, place), textFields(on, place), startFields(on, place), endFields(on, place)];
  return {
    element: element('div', { class: 'fields' }, ...parts.flatMap(({ elements }) => elements)),
    places,
    show(draft: Draft, view: FieldView): void {
      for (const part of parts) part.show(draft, view);
    },
  };
}

function siteFields(on: FieldHandlers, place: Place): Fields {
  const site = (id: 'site1' | 'site2'): HTMLSelectElement =>
    element('select', { id, oninput: (event) => on.choose(id, valueIn(event)) });
  const [site1, site2] = [site('site1'), site('site2')];
  const note = element('small', { class: 'route', id: 'route' });
  const places = [place('site1', site1), place('site2', site2)] as const;
  site2.setAttribute('aria-describedby', 'site2-problem route');
  return {
    elements: [field('Site 1', site1, places[0]), field('Site 2', site2, places[1]), note],
    show(draft, { links, route }) {
      const all = [...new Set(links.flatMap((link) => [link.site1, link.site2]))].toSorted();
      const reached = routesFrom(links, draft.site1);
      const others = draft.site1 === '' ? all : all.filter((name) => reached.has(name));
      for (const [select, sites, value] of [
        [site1, all, draft.site1],
        [site2, others, draft.site2],
      ] as const) {
        const choices = sites.map((name) => ({ value: name, label: name }));
        setChoices(select, [{ value: '', label: 'Choose…' }, ...choices], value);
        select.disabled = draft.id !== undefined;
      }
      setText(note, routeNote(route));
      note.hidden = route === undefined;
    },
  };
}

function textFields({ type }: FieldHandlers, place: Place): Fields {
  const bandwidth = text('bandwidth', { size: '8' }, (value) => type({ bandwidth: value }));
  const name = text('name', { maxlength: '64' }, (value) => type({ name: value.trim() }));
  const such = small('Such as 100M, 2.5G.');
  const seen = small('All members see it.');
  const nameField = field('Name (optional)', name, seen, place('name', name));
  return {
    elements: [field('Bandwidth', bandwidth, such, place('bandwidth', bandwidth)), nameField],
    show(draft) {
      setValue(bandwidth, draft.bandwidth);
      setValue(name, draft.name);
      nameField.hidden = draft.id !== undefined;
    },
  };
}

function startFields(on: FieldHandlers, place: Place): Fields {
  const legend = element('legend');
  const now = radio('start', 'now', () => on.click({ start: 'now' }));
  const at = radio('start', 'at', () => on.click({ start: nextHour(on.calendar().now) }));
  const time = timeField('start', 'Start', on, (start) => ({ start }));
  const earliest = quietButton('Find the earliest', on.earliest, {
    title: 'The first time at which all of it is free',
  });
  const place1 = place('start', time.input);
  return {
    elements: [
      element(
        'fieldset',
        {},
        legend,
        choice(now, 'now', earliest),
        choice(at, 'at', ...time.elements),
        place1,
      ),
    ],
    show({ id, start }, view) {
      setText(legend, `Start (${view.zone})`);
      [now.checked, at.checked] = [start === 'now', start !== 'now'];
      time.show(start === 'now' ? undefined : start, view);
      earliest.hidden = id !== undefined;
    },
  };
}

function endFields(on: FieldHandlers, place: Place): Fields {
  const legend = element('legend');
  const after = radio('end', 'after', () => on.click({ ending: { for: on.duration() } }));
  const at = radio('end', 'at', () => on.click({ ending: { at: on.end() } }));
  const duration = text('duration', { size: '8', 'aria-label': 'Duration' }, (value) =>
    on.type({ ending: { for: value } }),
  );
  const time = timeField('end', 'End', on, (instant) => ({ ending: { at: instant } }));
  const longer = (milliseconds: number, label: string): HTMLButtonElement => {
    const onclick = (): void => on.click({ ending: { at: on.end() + milliseconds } });
    return quietButton(label, onclick);
  };
  const extend = element('span', { class: 'extend' }, longer(HOUR, '+1 h'), longer(DAY, '+1 day'));
  const such = small('Or 3d, or 50T of data.');
  return {
    elements: [
      element(
        'fieldset',
        {},
        ...[legend, choice(after, 'after', duration, such), choice(at, 'at', ...time.elements, extend)],
        place('ending', duration, time.input),
      ),
    ],
    show({ id, ending }, view) {
      setText(legend, `End (${view.zone})`);
      [after.checked, at.checked] = ['for' in ending, 'at' in ending];
      setValue(duration, 'for' in ending ? ending.for : '');
      duration.disabled = !('for' in ending);
      time.show('at' in ending ? ending.at : undefined, view);
      extend.hidden = id === undefined;
    },
  };
}

/** A field for a time, typed as on the command line, and a button that shows the browser's own calendar. */
function timeField(
  id: string,
  label: string,
  { type, click, calendar }: FieldHandlers,
  part: (time: number | string) => Partial<Draft>,
) {
  const placeholder = 'friday 09:00';
  const input = text(id, { 'aria-label': label, placeholder }, (value) => type(part(value)));
  let shown: number | string = '';
  const picker = element('input', {
    ...{ type: 'datetime-local', class: 'picker', tabindex: '-1', 'aria-hidden': 'true' },
    max: '9999-12-31T23:59',
    oninput: () => click(part(readWall(picker.value, calendar().clock) ?? '')),
  });
  const onclick = (): void => {
    picker.value = typeof shown === 'number' ? wallText(shown, calendar().clock) : '';
    picker.showPicker();
  };
  const button = quietButton('▾', onclick, { 'aria-label': `${label} in a calendar` });
  return {
    input,
    elements: [element('span', { class: 'time' }, input, picker, button)],
    /** Shows a time; undefined where another field says when. */
    show(time: number | string | undefined, view: Pick<State, 'zone' | 'now'>): void {
      shown = time ?? '';
      setValue(input, typeof shown === 'number' ? instantText(shown, calendarOf(view)) : shown);
      input.disabled = button.disabled = time === undefined;
    },
  };
}

/** The value of the field that is typed in. */
function valueIn({ target }: Event): string {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement ? target.value : '';
}

/** Sets what a field holds, unless it holds that already: the caret stays where it is. */
function setValue(input: HTMLInputElement, value: string): void {
  if (input.value !== value) input.value = value;
}

function text(
  id: string,
  more: Readonly<Record<string, string>>,
  typed: (value: string) => void,
): HTMLInputElement {
  return element('input', {
    ...{ id, type: 'text', autocomplete: 'off', spellcheck: 'false', ...more },
    oninput: (event) => typed(valueIn(event)),
  });
}

function radio(name: string, value: string, oninput: () => void): HTMLInputElement {
  return element('input', { type: 'radio', name, value, id: `${name}-${value}`, oninput });
}

function field(label: string, input: HTMLElement, ...more: readonly Node[]): HTMLElement {
  return element('div', { class: 'field' }, element('label', { for: input.id }, label), input, ...more);
}

function choice(input: HTMLElement, label: string, ...more: readonly Node[]): HTMLElement {
  // A field that is greyed out takes no clicks: they are for its place.
  const onclick = (event: Event): void => {
    const field = row.querySelector<HTMLInputElement>('input[type=text]:disabled');
    if (!field || !(event instanceof MouseEvent)) return;
    const { left, right } = field.getBoundingClientRect();
    if (event.clientX < left || event.clientX > right) return;
    input.click();
    field.focus();
  };
  const row = element(
    'div',
    { class: 'choice', onclick },
    ...[input, element('label', { for: input.id }, label), ...more],
  );
  return row;
}

function small(words: string): HTMLElement {
  return element('small', {}, words);
}
