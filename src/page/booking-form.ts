import { HOUR } from '../contract/durations.ts';
import type { Alternative } from '../contract/problems.ts';
import type { Booking } from './booking.ts';
import { createFields, nextHour } from './booking-fields.ts';
import { type Draft, type Field, type ReadDraft, type Wish, withAlternative } from './draft.ts';
import { element, quietButton, setText } from './elements.ts';
import { type Route, routesFrom, routeText } from './route.ts';
import type { Link } from './service.ts';
import {
  calendarOf,
  type FormParts,
  isRepeatable,
  isTyped,
  mayDo,
  openRequest,
  readForm,
  type State,
} from './state.ts';
import { fitText, offerText, openText, refusalText, titleOf } from './words.ts';

/** The parts of the state that the form shows. */
export type FormView = FormParts &
  Pick<State, 'isChecked' | 'isLeft' | 'isSending' | 'login' | 'hasEnded' | 'sent'> & {
    /** The route of the draft, as far as it is known. */
    route?: Route;
  };

/** Options of {@link BookingForm}. */
export interface BookingFormOptions {
  booking: Booking;
  /** Gives up the request that had no answer, after a look whether it was done. */
  forget(): void;
  links: readonly Link[];
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
  readonly element: HTMLFormElement;
  /** Where the form is not beside what is picked: leads from there to it. It stays in view, and moves nothing. */
  readonly entry = element('p', { class: 'entry', hidden: true });
  readonly #entered = element('span');
  readonly #enter = element('button', { type: 'button', onclick: () => this.focus() }, 'Book this');
  /** The element after which a notice about the form stands: below the fields, where it moves none of them. */
  readonly noticePlace = element('span');
  readonly #heading = element('h2', { id: 'booking-heading', tabindex: '-1' }, 'Book a link');
  readonly #options: BookingFormOptions;
  readonly #fields: ReturnType<typeof createFields>;
  readonly #status = element('p', { class: 'answer', role: 'status', tabindex: '-1' });
  readonly #alternatives = element('ul', {
    class: 'alternatives',
    'aria-label': 'What would be accepted',
  });
  readonly #send = element('button', { type: 'submit' }, 'Book');
  readonly #stop = quietButton('', () => this.#leave());
  readonly #actions = element('div', { class: 'actions' }, this.#send, this.#stop);
  /** The notice of a request without an answer; it takes the place of sending another one. */
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
      earliest: () => void booking.earliest(),
      calendar: () => calendarOf(this.#shown),
      duration: () => this.#duration,
      end: () => this.#end(),
    });
    this.entry.append(this.#entered, this.#enter);
    this.#again = element('button', { type: 'button', onclick: () => void booking.send() }, 'Send it again');
    const forget = quietButton('Forget it', options.forget);
    this.#unsettled = element(
      'div',
      { class: 'unsettled', hidden: true },
      ...[this.#unanswered, element('div', { class: 'actions' }, this.#again, forget)],
    );
    this.element = element(
      'form',
      {
        ...{ class: 'booking beside', novalidate: true, 'aria-labelledby': this.#heading.id },
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
      ...[this.#heading, this.#fields.element],
      element(
        'div',
        { class: 'outcome' },
        ...[this.#actions, this.noticePlace, this.#status, this.#alternatives, this.#unsettled],
      ),
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
      this.#heading,
      draft.id === undefined
        ? 'Book a link'
        : `Change ${titleOf({ id: draft.id, name: draft.name === '' ? undefined : draft.name })}`,
    );
    this.#fields.show(draft, { ...view, links: this.#options.links });
    this.#showProblems(read, view.isChecked);
    const offers = offersIn(view);
    setText(this.#status, statusText(view, offers.length > 0));
    this.#status.dataset['kind'] = answer.kind;
    if (before?.answer !== answer || before.draft !== draft || before.zone !== view.zone)
      this.#alternatives.replaceChildren(
        ...(answer.kind === 'refused' ? offers.map((offer) => this.#offerItem(offer, answer.wish)) : []),
      );
    this.#alternatives.hidden = offers.length === 0;
    if (before?.isSending && !isSending && answer.kind === 'refused') this.#goToAnswer(read);
    setText(this.#send, isSending ? words.sending : words.send);
    this.#send.setAttribute('aria-disabled', `${isSending || view.isLeft || answer.kind === 'moved'}`);
    setText(this.#stop, words.stop);
    this.#showOpen(view, before?.isSending === true);
  }

  /** Shows the request that has no answer; where nothing can be booked here, nothing but it. */
  #showOpen(view: FormView, wasSending: boolean): void {
    const { draft, login, chosen, hasEnded } = view;
    const open = openRequest(view);
    const isUser = login?.user != null;
    const mayBook = isUser && mayDo(view, draft.id === undefined ? 'create' : 'update');
    const isKept = hasEnded && isTyped(view);
    this.element.hidden = !mayBook && !isKept && !(open && (isUser || hasEnded));
    this.#fields.element.hidden = this.#status.hidden = this.#stop.hidden = !mayBook && !isKept;
    this.#send.hidden = open !== undefined || this.#stop.hidden;
    this.#unsettled.hidden = open === undefined;
    this.#again.hidden = open !== undefined && !isRepeatable(open, view.now);
    const there = login?.experiments.find(({ id }) => id === open?.experiment);
    const experiment = there && there.id !== chosen?.id ? there.name : undefined;
    setText(this.#unanswered, open ? openText(open, experiment, calendarOf(view)) : '');
    this.entry.hidden = this.#send.hidden || view.isLeft || draft.site1 === '' || draft.site2 === '';
    setText(this.#entered, routeText([draft.site1, draft.site2]));
    setText(this.#enter, draft.id === undefined ? 'Book this' : 'Change this');
    // The button that was clicked is gone.
    if (open && wasSending) this.#unanswered.focus();
  }

  /** Leads the keyboard on, from what is picked to the form; nothing moves. */
  lead(): void {
    (this.entry.checkVisibility() ? this.#enter : this.#heading).focus({ preventScroll: true });
  }

  /** Brings the form into view from its heading on, and the focus to it. */
  focus(): void {
    this.element.scrollTop = 0;
    this.element.scrollIntoView({ block: this.element.offsetHeight > innerHeight ? 'start' : 'nearest' });
    this.#heading.focus({ preventScroll: true });
  }

  #leave(): void {
    const isNew = this.#draft.id === undefined;
    this.#options.booking.reset();
    if (isNew) this.#options.onClear();
  }

  #choose(field: 'site1' | 'site2', site: string): void {
    const other = field === 'site1' ? 'site2' : 'site1';
    const { booking, links } = this.#options;
    const isReached = site === '' || routesFrom(links, site).has(this.#draft[other]);
    booking.fill({ ...this.#draft, via: undefined, [field]: site, ...(isReached ? {} : { [other]: '' }) });
  }

  /** When the draft ends, to be changed by hand. */
  #end(): number {
    const { ending, start } = this.#draft;
    const { period } = readForm(this.#shown);
    if ('at' in ending && period) return period.end;
    return (start === 'now' || !period ? nextHour(this.#shown.now) : period.start) + 2 * HOUR;
  }

  #offerItem(offer: Alternative, wish: Wish): HTMLElement {
    const onclick = (): void => {
      this.#options.booking.fill(withAlternative(this.#draft, offer, wish.period));
      this.#send.focus();
    };
    const text = offerText(offer, wish, calendarOf(this.#shown));
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

/** The alternatives that would be accepted. A user who keeps the start of a reservation does not want another one. */
function offersIn({ answer, draft, live }: FormView): readonly Alternative[] {
  if (answer.kind !== 'refused') return [];
  const { alternatives } = answer.facts;
  const isKept = draft.id !== undefined && draft.start === live?.find(({ id }) => id === draft.id)?.start;
  return isKept ? alternatives.filter(({ kind }) => kind !== 'earliest') : alternatives;
}

/** The form's sentence about its draft. */
function statusText(view: FormView, hasOffers: boolean): string {
  const { answer, draft, isSending, hasEnded, isLeft, isChecked } = view;
  if (isSending) return '';
  if (isLeft && isChecked) return 'This is booked. Change something to book another one.';
  switch (answer.kind) {
    case 'none':
      return '';
    case 'moved':
    case 'asking':
      return 'Asking whether it fits…';
    case 'fits':
      return fitText(answer, calendarOf(view));
    case 'refused': {
      // The notice above the fields says it.
      if (hasEnded && !answer.isSent && answer.facts.code === 'token_missing') return '';
      const why = refusalText(answer.facts, calendarOf(view));
      return `${answer.isSent ? wordsFor(draft).refused : ''}${why}${hasOffers ? ' Would be accepted:' : ''}`;
    }
    case 'away':
      return 'It is not known whether it fits: no answer came. What you typed is kept.';
  }
}
