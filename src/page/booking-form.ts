import { HOUR } from '../contract/durations.ts';
import type { Alternative } from '../contract/problems.ts';
import type { Calendar } from '../words/civil-time.ts';
import type { Booking } from './booking.ts';
import {
  type Draft,
  EMPTY_DRAFT,
  type Field,
  isSameDraft,
  neighbours,
  type ReadDraft,
  withAlternative,
} from './draft.ts';
import { element, setChoices, setText } from './elements.ts';
import type { Link } from './service.ts';
import {
  calendarOf,
  type FormParts,
  isRepeatable,
  mayDo,
  openRequest,
  readForm,
  type State,
} from './state.ts';
import { fitText, offerText, openText, readWall, refusalText, titleOf, wallText } from './words.ts';

/** The parts of the state that the form shows. */
export type FormView = FormParts &
  Pick<State, 'isChecked' | 'isSending' | 'zone' | 'live' | 'login' | 'hasEnded' | 'sent'>;

/** Options of {@link BookingForm}. */
export interface BookingFormOptions {
  booking: Booking;
  /** Gives up the request that had no answer, after a look whether it was done. */
  forget(): void;
  links: readonly Link[];
  /** The sites in the form are those of another link, or of none. */
  onLink(sites: { site1: string; site2: string }): void;
  /** Something in the form is typed or clicked. */
  onUse(): void;
  /** The form of a new reservation is emptied. */
  onClear(): void;
}

/** The sentence for each field that is empty when the form is sent. */
const MISSING: Readonly<Record<Field, string>> = {
  site1: 'Choose a site.',
  site2: 'Choose a site.',
  bandwidth: 'Say how much, such as 1G.',
  start: 'Choose when it starts.',
  ending: 'Say how long, such as 2h, or until when.',
  name: '',
};

/** The words of the form: for a new reservation, and for a change of one. */
const WORDS = {
  create: { send: 'Book', sending: 'Booking…', refused: 'Not booked: ', stop: 'Clear the form' },
  update: {
    send: 'Save the change',
    sending: 'Saving…',
    refused: 'Not changed: ',
    stop: 'Leave it as it is',
  },
};
const wordsFor = ({ id }: Draft) => WORDS[id === undefined ? 'create' : 'update'];

/** The form that books a link, or changes a reservation: a view of the draft. */
export class BookingForm {
  /** The form itself, and the heading after which a notice about it stands. */
  readonly element: HTMLFormElement;
  readonly heading = element('h2', { id: 'booking-heading', tabindex: '-1' }, 'Book a link');
  readonly #options: BookingFormOptions;
  readonly #fields: ReturnType<typeof createFields>;
  readonly #status = element('p', { class: 'answer', role: 'status', tabindex: '-1' });
  readonly #alternatives = element('ul', {
    class: 'alternatives',
    'aria-label': 'What would be accepted',
  });
  readonly #send = element('button', { type: 'submit' }, 'Book');
  readonly #stop = element('button', { type: 'button', class: 'quiet', onclick: () => this.#leave() });
  readonly #actions = element('div', { class: 'actions' }, this.#send, this.#stop);
  /** What is said of a request without an answer; it takes the place of sending another one. */
  readonly #unanswered = element('p', { class: 'answer', 'data-kind': 'unanswered', tabindex: '-1' });
  readonly #again: HTMLElement;
  readonly #unsettled: HTMLElement;
  /** Set by {@link show}, before anything can be typed. */
  #view: FormView | undefined;
  /** The duration that was typed last. */
  #duration = '2h';

  /** Makes the form, which is empty until it is shown. */
  constructor(options: BookingFormOptions) {
    const { booking, onUse } = options;
    this.#options = options;
    this.#fields = createFields({
      type: (part) => booking.type({ ...this.#draft, ...part }),
      click: (part) => booking.fill({ ...this.#draft, ...part }),
      choose: (field, site) => this.#choose(field, site),
      calendar: () => calendarOf(this.#shown),
      duration: () => this.#duration,
      end: () => this.#end(),
    });
    this.#again = element('button', { type: 'button', onclick: () => void booking.send() }, 'Send it again');
    const forget = element(
      'button',
      { type: 'button', class: 'quiet', onclick: options.forget },
      'Forget it',
    );
    this.#unsettled = element(
      'div',
      { hidden: true },
      ...[this.#unanswered, element('div', { class: 'actions' }, this.#again, forget)],
    );
    this.element = element(
      'form',
      {
        ...{ class: 'booking beside', novalidate: true, 'aria-labelledby': this.heading.id },
        onsubmit: (event) => {
          event.preventDefault();
          // Enter in a field would send what is not in the fields.
          if (openRequest(this.#shown)) this.#unanswered.focus();
          else void booking.send();
        },
        oninput: onUse,
        onclick: (event) => {
          // The second click of a double click begins nothing new.
          const isButton = event.target instanceof Element && event.target.closest('button') !== null;
          if (isButton && event instanceof MouseEvent && event.detail < 2) onUse();
        },
      },
      ...[this.heading, this.#fields.element, this.#status, this.#alternatives],
      ...[this.#unsettled, this.#actions],
    );
  }

  get #shown(): FormView {
    if (!this.#view) throw new Error('nothing is shown yet');
    return this.#view;
  }

  get #draft(): Draft {
    return this.#shown.draft;
  }

  /** Shows the state. */
  show(view: FormView): void {
    const before = this.#view;
    this.#view = view;
    const { draft, isSending, answer } = view;
    const read = readForm(view);
    const words = wordsFor(draft);
    if ('for' in draft.ending) this.#duration = draft.ending.for;
    setText(
      this.heading,
      draft.id === undefined
        ? 'Book a link'
        : `Change ${titleOf({ id: draft.id, name: draft.name === '' ? undefined : draft.name })}`,
    );
    this.#fields.show(draft, this.#options.links, view);
    this.#showProblems(read, view.isChecked);
    const offers = offersIn(view);
    setText(this.#status, statusText(view, offers.length > 0));
    this.#status.dataset['kind'] = answer.kind;
    if (before?.answer !== answer || before.draft !== draft || before.zone !== view.zone)
      this.#alternatives.replaceChildren(...offers.map((offer) => this.#offerItem(offer)));
    this.#alternatives.hidden = offers.length === 0;
    if (before?.isSending && !isSending && answer.kind === 'refused') this.#goToAnswer(read);
    setText(this.#send, isSending ? words.sending : words.send);
    this.#send.setAttribute('aria-disabled', `${isSending}`);
    setText(this.#stop, words.stop);
    this.#showOpen(view, before?.isSending === true);
  }

  /** Shows the request that has no answer; where nothing can be booked here, nothing but it. */
  #showOpen(view: FormView, wasSending: boolean): void {
    const { draft, login, chosen, hasEnded } = view;
    const open = openRequest(view);
    const isUser = login?.user != null;
    const mayBook = isUser && mayDo(view, draft.id === undefined ? 'create' : 'update');
    const isKept = hasEnded && !isSameDraft(draft, EMPTY_DRAFT);
    this.element.hidden = !mayBook && !isKept && !(open && (isUser || hasEnded));
    this.#fields.element.hidden = this.#status.hidden = this.#stop.hidden = !mayBook && !isKept;
    this.#send.hidden = open !== undefined || this.#stop.hidden;
    this.#unsettled.hidden = open === undefined;
    this.#again.hidden = open !== undefined && !isRepeatable(open, view.now);
    const there = login?.experiments.find(({ id }) => id === open?.experiment);
    const experiment = there && there.id !== chosen?.id ? there.name : undefined;
    setText(this.#unanswered, open ? openText(open, experiment, calendarOf(view)) : '');
    // The button that was clicked is gone.
    if (open && wasSending) this.#unanswered.focus();
  }

  /** Brings the form into view and the focus to it. */
  focus(): void {
    this.element.scrollIntoView({ block: 'nearest' });
    this.heading.focus({ preventScroll: true });
  }

  #leave(): void {
    const isNew = this.#draft.id === undefined;
    this.#options.booking.reset();
    if (isNew) this.#options.onClear();
  }

  #choose(field: 'site1' | 'site2', site: string): void {
    const { booking, links, onLink } = this.#options;
    const other = field === 'site1' ? 'site2' : 'site1';
    const near = neighbours(links, site);
    // The only neighbour is meant; one that is no neighbour is not.
    const kept = near.length === 1 ? near[0] : near.find((one) => one === this.#draft[other]);
    booking.fill({ ...this.#draft, [field]: site, ...(site === '' ? {} : { [other]: kept ?? '' }) });
    onLink(this.#draft);
  }

  /** When the draft ends, to be changed by hand. */
  #end(): number {
    const { ending, start } = this.#draft;
    if ('at' in ending && ending.at !== null) return ending.at;
    return (start === 'now' || start === null ? nextHour(this.#shown.now) : start) + 2 * HOUR;
  }

  #offerItem(offer: Alternative): HTMLElement {
    const { answer } = this.#shown;
    const onclick = (): void => {
      this.#options.booking.fill(withAlternative(this.#draft, offer));
      this.#send.focus();
    };
    const text = answer.kind === 'refused' ? offerText(offer, answer.wish, calendarOf(this.#shown)) : '';
    return element('li', {}, element('button', { type: 'button', class: 'alternative', onclick }, text));
  }

  #showProblems({ problems }: ReadDraft, isChecked: boolean): void {
    for (const [key, { place, inputs }] of this.#fields.places) {
      const text = problems.get(key);
      const said = text === '' && isChecked ? MISSING[key] : (text ?? '');
      setText(place, said);
      place.hidden = said === '';
      for (const input of inputs) input.setAttribute('aria-invalid', `${said !== ''}`);
    }
    if (!isChecked || document.activeElement !== this.#send) return;
    const [first] = problems.keys();
    const inputs = first && this.#fields.places.get(first)?.inputs;
    inputs?.find((each) => !each.matches(':disabled'))?.focus();
  }

  /** The request was refused: the focus goes to why, so that it is seen also where it was known before. */
  #goToAnswer({ problems }: ReadDraft): void {
    const [name] = this.#fields.places.get('name')?.inputs ?? [];
    this.#status.scrollIntoView({ block: 'nearest' });
    (problems.has('name') && name ? name : this.#status).focus();
  }
}

const nextHour = (now: number): number => Math.ceil(now / HOUR) * HOUR;

/** What would be accepted. Who keeps the start of a reservation does not want another one. */
function offersIn({ answer, draft, live }: FormView): readonly Alternative[] {
  if (answer.kind !== 'refused') return [];
  const { alternatives } = answer.facts;
  const isKept = draft.id !== undefined && draft.start === live?.find(({ id }) => id === draft.id)?.start;
  return isKept ? alternatives.filter(({ kind }) => kind !== 'earliest') : alternatives;
}

/** The form's sentence about its draft. */
function statusText(view: FormView, hasOffers: boolean): string {
  const { answer, draft, isSending } = view;
  if (isSending) return '';
  switch (answer.kind) {
    case 'none':
      return '';
    case 'asking':
      return 'Asking whether it fits…';
    case 'fits':
      return fitText(answer.wish, answer.free, calendarOf(view));
    case 'refused': {
      const why = refusalText(answer.facts, calendarOf(view));
      return `${answer.isSent ? wordsFor(draft).refused : ''}${why}${hasOffers ? ' Would be accepted:' : ''}`;
    }
    case 'away':
      return 'It is not known whether it fits: no answer came. What you typed is kept.';
  }
}

/** The effects of the fields. */
interface FieldHandlers {
  /** A part of the draft is typed. */
  type(part: Partial<Draft>): void;
  /** A part of the draft is chosen by a click. */
  click(part: Partial<Draft>): void;
  choose(field: 'site1' | 'site2', site: string): void;
  calendar(): Calendar;
  /** The duration and the end to begin with, where the other of them is left. */
  duration(): string;
  end(): number;
}

/** Makes the fields of the form. They listen to `input`, which the form hears after them: by then the draft has what was typed. */
function createFields(on: FieldHandlers) {
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
      choice(startAt, 'at', start),
      place('start'),
    ),
    element(
      'fieldset',
      {},
      endLegend,
      choice(endAfter, 'after', duration, small('Such as 90m, 2h, 3d.')),
      choice(endAt, 'at', end, extend),
      place('ending'),
    ),
  );
  const parts = { site1, site2, bandwidth, name, nameField, startLegend, startNow, startAt, start };
  const ends = { endLegend, endAfter, duration, endAt, end, extend };
  return {
    ...{ element: whole, places },
    show: (draft: Draft, links: readonly Link[], { zone, now }: Pick<FormView, 'zone' | 'now'>) =>
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
    Record<'nameField' | 'startLegend' | 'endLegend' | 'extend', HTMLElement>,
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
  fields.nameField.hidden = isChange;
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
