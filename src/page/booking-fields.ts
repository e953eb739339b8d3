import { HOUR } from '../contract/durations.ts';
import type { Calendar } from '../words/civil-time.ts';
import { parseTime, type TimeContext, type TimeReading } from '../words/typed-time.ts';
import { type Draft, type Field, neighbours } from './draft.ts';
import { element, setChoices, setText } from './elements.ts';
import type { Link } from './service.ts';
import { calendarOf, type State } from './state.ts';
import { readWall, wallText } from './words.ts';

/** The full hour at a time or after it. */
export function nextHour(now: number): number {
  return Math.ceil(now / HOUR) * HOUR;
}

/** The instant that is pasted, as the command line reads it: the field itself takes what it shows only. */
function pastedTime(event: Event, times: TimeContext, reading: TimeReading): number | undefined {
  const text = event instanceof ClipboardEvent ? (event.clipboardData?.getData('text') ?? '') : '';
  try {
    const instant = parseTime(text, times, reading);
    event.preventDefault();
    return instant;
  } catch {
    return undefined;
  }
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
  times(): TimeContext;
  /** The duration and the end to begin with, where the other of them is left. */
  duration(): string;
  end(): number;
}

/** Makes the fields of the form. They listen to `input`, which the form hears after them: by then the draft has what was typed. */
export function createFields(on: FieldHandlers) {
  const { type, click } = on;
  const site = (id: 'site1' | 'site2'): HTMLSelectElement => {
    const select = element('select', { id, oninput: () => on.choose(id, select.value) });
    return select;
  };
  const text = (
    id: string,
    more: Readonly<Record<string, string>>,
    read: (value: string) => Partial<Draft>,
  ) => {
    const input = element('input', {
      ...{ id, type: 'text', autocomplete: 'off', spellcheck: 'false', ...more },
      oninput: () => type(read(input.value)),
    });
    return input;
  };
  const time = (id: string, label: string, read: (instant: number | null) => Partial<Draft>) => {
    const input = element('input', {
      ...{ type: 'datetime-local', id, 'aria-label': label, max: '9999-12-31T23:59' },
      oninput: () => type(read(readWall(input.value, on.calendar().clock))),
      onpaste: (event) => {
        const instant = pastedTime(event, on.times(), { isEnd: id === 'end' });
        if (instant !== undefined) click(read(instant));
      },
    });
    return input;
  };
  const radio = (name: string, value: string, part: () => Partial<Draft>): HTMLInputElement =>
    element('input', { type: 'radio', name, value, id: `${name}-${value}`, oninput: () => click(part()) });

  const [site1, site2] = [site('site1'), site('site2')];
  const bandwidth = text('bandwidth', { size: '8' }, (value) => ({ bandwidth: value }));
  const name = text('name', { maxlength: '64' }, (value) => ({ name: value.trim() }));
  const startNow = radio('start', 'now', () => ({ start: 'now' }));
  const startAt = radio('start', 'at', () => ({ start: nextHour(on.calendar().now) }));
  const start = time('start', 'Start', (instant) => ({ start: instant }));
  const earliest = element(
    'button',
    {
      type: 'button',
      class: 'quiet',
      onclick: on.earliest,
      title: 'The first time at which all of it is free',
    },
    'Earliest',
  );
  const endAfter = radio('end', 'after', () => ({ ending: { for: on.duration() } }));
  const endAt = radio('end', 'at', () => ({ ending: { at: on.end() } }));
  const duration = text('duration', { size: '8', 'aria-label': 'Duration' }, (value) => ({
    ending: { for: value },
  }));
  const end = time('end', 'End', (instant) => ({ ending: { at: instant } }));
  const longer = (milliseconds: number, label: string): HTMLButtonElement => {
    const onclick = (): void => click({ ending: { at: on.end() + milliseconds } });
    return element('button', { type: 'button', class: 'quiet', onclick }, label);
  };
  const extend = element('span', { class: 'extend' }, longer(HOUR, '+1 h'), longer(24 * HOUR, '+1 day'));

  const inputs: Readonly<Record<Field, readonly HTMLElement[]>> = {
    ...{ site1: [site1], site2: [site2], bandwidth: [bandwidth] },
    ...{ start: [start], ending: [duration, end], name: [name] },
  };
  const { places, place } = placesFor(inputs);
  const field = (key: Field, label: string, input: HTMLElement, ...more: readonly Node[]): HTMLElement =>
    element(
      'div',
      { class: 'field' },
      element('label', { for: input.id }, label),
      input,
      ...more,
      place(key),
    );
  const choice = (input: HTMLElement, label: string, ...more: readonly Node[]): HTMLElement =>
    element('div', { class: 'choice' }, input, element('label', { for: input.id }, label), ...more);
  const small = (words: string): HTMLElement => element('small', {}, words);
  const [startLegend, endLegend] = [element('legend'), element('legend')];
  const nameField = field('name', 'Name (optional)', name, small('Everyone in the experiment sees it.'));
  const whole = element(
    'div',
    { class: 'fields' },
    field('site1', 'Site 1', site1),
    field('site2', 'Site 2', site2),
    field('bandwidth', 'Bandwidth', bandwidth, small('Such as 100M, 1G, 2.5G.')),
    nameField,
    element(
      'fieldset',
      {},
      startLegend,
      choice(startNow, 'now'),
      choice(startAt, 'at', start, earliest),
      place('start'),
    ),
    element(
      'fieldset',
      {},
      endLegend,
      choice(endAfter, 'after', duration, small('Such as 90m, 2h, 3d; or for a volume, 50T.')),
      choice(endAt, 'at', end, extend),
      place('ending'),
    ),
  );
  const parts = { site1, site2, bandwidth, name, nameField, startLegend, startNow, startAt, start, earliest };
  const ends = { endLegend, endAfter, duration, endAt, end, extend };
  return {
    ...{ element: whole, places },
    show: (draft: Draft, links: readonly Link[], { zone, now }: Pick<State, 'zone' | 'now'>) =>
      fillFields({ ...parts, ...ends }, draft, { links, zone, now }),
  };
}

/** The places for the problems of fields, which their inputs name as their description. */
function placesFor(inputs: Readonly<Record<Field, readonly HTMLElement[]>>) {
  const places = new Map<Field, { place: HTMLElement; inputs: readonly HTMLElement[] }>();
  const place = (key: Field): HTMLElement => {
    const made = element('p', { class: 'problem', id: `${key}-problem`, hidden: true });
    for (const input of inputs[key]) input.setAttribute('aria-describedby', made.id);
    places.set(key, { place: made, inputs: inputs[key] });
    return made;
  };
  return { places, place };
}

/** The elements that {@link fillFields} fills. */
interface FilledFields
  extends Record<'site1' | 'site2', HTMLSelectElement>,
    Record<'nameField' | 'startLegend' | 'earliest' | 'endLegend' | 'extend', HTMLElement>,
    Record<
      'bandwidth' | 'name' | 'startNow' | 'startAt' | 'start' | 'endAfter' | 'duration' | 'endAt' | 'end',
      HTMLInputElement
    > {}

/** Shows a draft in the fields. */
function fillFields(
  fields: FilledFields,
  draft: Draft,
  { links, zone, now }: { links: readonly Link[]; zone: string; now: number },
): void {
  const { clock } = calendarOf({ zone, now });
  const { ending, start } = draft;
  const isChange = draft.id !== undefined;
  /** Sets what a field holds, unless it holds that already: the caret stays where it is. */
  const setValue = (input: HTMLInputElement, value: string): void => {
    if (input.value !== value) input.value = value;
  };
  for (const [select, near] of [
    [fields.site1, ''],
    [fields.site2, draft.site1],
  ] as const) {
    const sites = neighbours(links, near).map((value) => ({ value, label: value }));
    setChoices(
      select,
      [{ value: '', label: 'Choose…' }, ...sites],
      draft[select === fields.site1 ? 'site1' : 'site2'],
    );
    select.disabled = isChange;
  }
  fields.nameField.hidden = fields.earliest.hidden = isChange;
  fields.extend.hidden = !isChange;
  setValue(fields.bandwidth, draft.bandwidth);
  setValue(fields.name, draft.name);
  setText(fields.startLegend, `Start (${zone})`);
  setText(fields.endLegend, `End (${zone})`);
  [fields.startNow.checked, fields.startAt.checked] = [start === 'now', start !== 'now'];
  [fields.endAfter.checked, fields.endAt.checked] = ['for' in ending, 'at' in ending];
  setValue(fields.start, start === 'now' ? '' : wallText(start, clock));
  setValue(fields.duration, 'for' in ending ? ending.for : '');
  setValue(fields.end, 'at' in ending ? wallText(ending.at, clock) : '');
  fields.start.disabled = start === 'now';
  [fields.duration.disabled, fields.end.disabled] = [!('for' in ending), !('at' in ending)];
}
