import { HOUR } from '../contract/durations.ts';
import type { Alternative } from '../contract/problems.ts';
import type { Booking, BookingView } from './booking.ts';
import { type Draft, type Field, neighbours, withAlternative } from './draft.ts';
import { element, setChoices, setText } from './elements.ts';
import type { Link } from './service.ts';
import type { Calendar } from './timeline/words.ts';
import { alternativeText, fitText, readWall, refusalText, titleOf, wallText } from './words.ts';

/** Options of {@link createBookingForm}. */
export interface BookingFormOptions {
  booking: Booking;
  links: readonly Link[];
  calendar(): Calendar;
  /** The zone of the times, for the labels. */
  zone(): string;
  /** When a reservation starts as it stands; undefined for one that is not known. */
  startOf(id: string): number | undefined;
  /** The sites in the form are those of another link, or of none. */
  onLink(sites: { site1: string; site2: string }): void;
  /** Something in the form is typed or clicked. */
  onUse(): void;
  /** The form of a new reservation is emptied. */
  onClear(): void;
}

/** Milliseconds. */

/** What to say of a field that is empty when the form is sent. */
const MISSING: Readonly<Record<Field, string>> = {
  site1: 'Choose a site.',
  site2: 'Choose a site.',
  bandwidth: 'Say how much, such as 1G.',
  start: 'Choose when it starts.',
  ending: 'Say how long, such as 2h, or until when.',
  name: '',
};

/** The form that books a link, or changes a reservation. Its view is the {@link Booking}'s. */
export function createBookingForm(options: BookingFormOptions) {
  const { booking, links, calendar, zone, onLink } = options;
  /** Changes the draft by what was typed. */
  const type = (change: (draft: Draft) => Partial<Draft>): void => {
    const { draft } = booking.view;
    booking.type({ ...draft, ...change(draft) });
  };
  /** Changes the draft by a click. */
  const click = (change: (draft: Draft) => Partial<Draft>): void => {
    const { draft } = booking.view;
    booking.fill({ ...draft, ...change(draft) });
  };
  const clock = () => calendar().clock;

  const sites: Record<'site1' | 'site2', HTMLSelectElement> = {
    site1: element('select', { id: 'site1', onchange: () => chooseSite('site1') }),
    site2: element('select', { id: 'site2', onchange: () => chooseSite('site2') }),
  };
  function chooseSite(field: 'site1' | 'site2'): void {
    const site = sites[field].value;
    const other = field === 'site1' ? 'site2' : 'site1';
    click((draft) => {
      const near = neighbours(links, site);
      // The only neighbour is meant; one that is no neighbour is not.
      const kept = near.length === 1 ? (near[0] ?? '') : near.includes(draft[other]) ? draft[other] : '';
      return site === '' ? { [field]: '' } : { [field]: site, [other]: kept };
    });
    const { site1, site2 } = booking.view.draft;
    onLink({ site1, site2 });
  }
  const bandwidth = element('input', {
    ...{ id: 'bandwidth', type: 'text', autocomplete: 'off', spellcheck: 'false', size: '8' },
    oninput: () => type(() => ({ bandwidth: bandwidth.value })),
  });
  const radio = (name: string, value: string, onchange: () => void): HTMLInputElement =>
    element('input', { type: 'radio', name, value, id: `${name}-${value}`, onchange });
  const time = (id: string, label: string, oninput: () => void): HTMLInputElement =>
    element('input', { type: 'datetime-local', id, 'aria-label': label, max: '9999-12-31T23:59', oninput });

  const nextHour = (): number => Math.ceil(calendar().now / HOUR) * HOUR;
  const startNow = radio('start', 'now', () => click(() => ({ start: 'now' })));
  const startAt = radio('start', 'at', () => click(() => ({ start: nextHour() })));
  const start = time('start', 'Start', () => type(() => ({ start: readWall(start.value, clock()) })));
  const endAfter = radio('end', 'after', () => click(() => ({ ending: { for: lasting() } })));
  const endAt = radio('end', 'at', () => click((draft) => ({ ending: { at: endOf(draft) } })));
  const duration = element('input', {
    ...{
      id: 'duration',
      type: 'text',
      autocomplete: 'off',
      spellcheck: 'false',
      size: '8',
      'aria-label': 'Duration',
    },
    oninput: () => type(() => ({ ending: { for: duration.value } })),
  });
  const end = time('end', 'End', () => type(() => ({ ending: { at: readWall(end.value, clock()) } })));
  const name = element('input', {
    ...{ id: 'name', type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: '64' },
    oninput: () => type(() => ({ name: name.value.trim() })),
  });

  /** The duration that was typed last. */
  let typedDuration = '2h';
  const lasting = (): string => typedDuration;
  /** When the draft ends, to be changed by hand. */
  function endOf({ ending, start: from }: Draft): number {
    if ('at' in ending && ending.at !== null) return ending.at;
    return (from === 'now' || from === null ? nextHour() : from) + 2 * HOUR;
  }
  const later = (milliseconds: number, label: string): HTMLButtonElement =>
    element(
      'button',
      {
        type: 'button',
        class: 'quiet',
        onclick: () => click((draft) => ({ ending: { at: endOf(draft) + milliseconds } })),
      },
      label,
    );

  const problems = new Map<Field, HTMLElement>();
  /** A place for the problem of a field, which its inputs name as their description. */
  function problemOf(field: Field, ...inputs: readonly HTMLElement[]): HTMLElement {
    const place = element('p', { class: 'problem', id: `${field}-problem`, hidden: true });
    for (const input of inputs) input.setAttribute('aria-describedby', place.id);
    problems.set(field, place);
    return place;
  }
  const inputs: Readonly<Record<Field, readonly HTMLElement[]>> = {
    ...{ site1: [sites.site1], site2: [sites.site2], bandwidth: [bandwidth] },
    ...{ start: [start], ending: [duration, end], name: [name] },
  };
  const field = (
    key: Field,
    label: string,
    input: HTMLElement,
    ...more: readonly (Node | string)[]
  ): HTMLElement =>
    element(
      'div',
      { class: 'field' },
      ...[element('label', { for: input.id }, label), input, ...more, problemOf(key, input)],
    );

  const heading = element('h2', { id: 'booking-heading', tabindex: '-1' }, 'Book a link');
  const [startLegend, endLegend] = [element('legend'), element('legend')];
  const extend = element('span', { class: 'extend' }, later(HOUR, '+1 h'), later(24 * HOUR, '+1 day'));
  const nameField = field(
    ...(['name', 'Name (optional)', name] as const),
    element('small', {}, 'Everyone in the experiment sees it.'),
  );
  const status = element('p', { class: 'answer', role: 'status', tabindex: '-1' });
  const alternatives = element('ul', { class: 'alternatives', 'aria-label': 'What would be accepted' });
  const send = element('button', { type: 'submit' }, 'Book');
  const stop = element('button', { type: 'button', class: 'quiet', onclick: () => leave() });
  function leave(): void {
    const isNew = booking.view.draft.id === undefined;
    booking.reset();
    if (isNew) options.onClear();
  }
  const form = element(
    'form',
    {
      ...{ class: 'booking', novalidate: true, 'aria-labelledby': heading.id },
      onsubmit: (event) => {
        event.preventDefault();
        void booking.send();
      },
      oninput: () => options.onUse(),
      onclick: (event) => {
        // The second click of a double click begins nothing new.
        const isButton = event.target instanceof Element && event.target.closest('button') !== null;
        if (isButton && event instanceof MouseEvent && event.detail < 2) options.onUse();
      },
    },
    heading,
    element(
      'div',
      { class: 'fields' },
      field('site1', 'Site 1', sites.site1),
      field('site2', 'Site 2', sites.site2),
      field('bandwidth', 'Bandwidth', bandwidth, element('small', {}, 'Such as 100M, 1G, 2.5G.')),
      nameField,
      element(
        'fieldset',
        {},
        startLegend,
        element('div', { class: 'choice' }, startNow, element('label', { for: startNow.id }, 'now')),
        element('div', { class: 'choice' }, startAt, element('label', { for: startAt.id }, 'at'), start),
        problemOf('start', start),
      ),
      element(
        'fieldset',
        {},
        endLegend,
        element(
          'div',
          { class: 'choice' },
          endAfter,
          element('label', { for: endAfter.id }, 'after'),
          duration,
          element('small', {}, 'Such as 90m, 2h, 3d.'),
        ),
        element('div', { class: 'choice' }, endAt, element('label', { for: endAt.id }, 'at'), end, extend),
        problemOf('ending', duration, end),
      ),
    ),
    ...[status, alternatives, element('div', { class: 'actions' }, send, stop)],
  );

  /** Sets what a field holds, unless it holds that already. */
  const setValue = (input: HTMLInputElement, value: string): void => {
    if (input.value !== value) input.value = value;
  };

  /** What would be accepted. Who keeps the start of a reservation does not want another one. */
  function offersIn({ answer, draft }: BookingView): readonly Alternative[] {
    if (answer.kind !== 'refused') return [];
    const { alternatives: offers } = answer.facts;
    const isKept = draft.id !== undefined && draft.start === options.startOf(draft.id);
    return isKept ? offers.filter(({ kind }) => kind !== 'earliest') : offers;
  }

  let wasSending = false;
  /** The request was refused: the focus goes to why, so that it is seen also where it was known before. */
  function goToAnswer({ problems: found }: BookingView): void {
    const place = found.has('name') ? name : status;
    status.scrollIntoView({ block: 'nearest' });
    place.focus();
  }

  /** Shows what the form's state is. */
  function show(view: BookingView): void {
    const { draft, isChecked, isSending, answer } = view;
    const isChange = draft.id !== undefined;
    setText(
      heading,
      isChange
        ? `Change ${titleOf({ id: draft.id ?? '', ...(draft.name ? { name: draft.name } : {}) })}`
        : 'Book a link',
    );
    const choices = (from: readonly string[]) => [
      { value: '', label: 'Choose…' },
      ...from.map((value) => ({ value, label: value })),
    ];
    setChoices(sites.site1, choices(neighbours(links, '')), draft.site1);
    setChoices(sites.site2, choices(neighbours(links, draft.site1)), draft.site2);
    for (const select of Object.values(sites)) select.disabled = isChange;
    nameField.hidden = isChange;
    setValue(bandwidth, draft.bandwidth);
    setText(startLegend, `Start (${zone()})`);
    setText(endLegend, `End (${zone()})`);
    [startNow.checked, startAt.checked] = [draft.start === 'now', draft.start !== 'now'];
    setValue(start, draft.start === 'now' ? '' : wallText(draft.start, clock()));
    start.disabled = draft.start === 'now';
    const { ending } = draft;
    if ('for' in ending) typedDuration = ending.for;
    [endAfter.checked, endAt.checked] = ['for' in ending, 'at' in ending];
    setValue(duration, 'for' in ending ? ending.for : '');
    setValue(end, 'at' in ending ? wallText(ending.at, clock()) : '');
    [duration.disabled, end.disabled] = [!('for' in ending), !('at' in ending)];
    extend.hidden = !isChange;
    setValue(name, draft.name);
    showProblems(view, isChecked);
    setText(status, statusText(view, offersIn(view).length > 0, calendar()));
    status.dataset['kind'] = answer.kind;
    const offers = offersIn(view);
    alternatives.replaceChildren(
      ...offers.map((offer) =>
        element(
          'li',
          {},
          element(
            'button',
            {
              type: 'button',
              class: 'alternative',
              onclick: () => {
                booking.fill(withAlternative(booking.view.draft, offer));
                send.focus();
              },
            },
            answer.kind === 'refused' ? alternativeText(offer, answer.wish, calendar()) : '',
          ),
        ),
      ),
    );
    alternatives.hidden = offers.length === 0;
    if (wasSending && !isSending && answer.kind === 'refused') goToAnswer(view);
    wasSending = isSending;
    const word = isChange ? 'Save the change' : 'Book';
    setText(
      send,
      isSending ? (isChange ? 'Saving…' : 'Booking…') : answer.kind === 'unanswered' ? 'Send it again' : word,
    );
    send.setAttribute('aria-disabled', `${isSending}`);
    setText(stop, isChange ? 'Leave it as it is' : 'Clear the form');
  }

  function showProblems({ problems: found }: BookingView, isChecked: boolean): void {
    for (const [key, place] of problems) {
      const text = found.get(key);
      const said = text === '' && isChecked ? MISSING[key] : (text ?? '');
      setText(place, said);
      place.hidden = said === '';
      for (const input of inputs[key]) input.setAttribute('aria-invalid', `${said !== ''}`);
    }
    if (!isChecked) return;
    const [first] = found.keys();
    const input = first && inputs[first].find((each) => !each.matches(':disabled'));
    if (document.activeElement === send) input?.focus();
  }

  return {
    ...{ element: form, heading, show },
    /** Brings the form into view and the focus to it. */
    focus(): void {
      form.scrollIntoView({ block: 'nearest' });
      heading.focus({ preventScroll: true });
    },
  };
}

/** What the form says about its draft. */
function statusText(
  { answer, draft, isSending }: BookingView,
  hasOffers: boolean,
  calendar: Calendar,
): string {
  if (isSending) return '';
  switch (answer.kind) {
    case 'none':
      return '';
    case 'asking':
      return 'Asking whether it fits…';
    case 'fits':
      return fitText(answer.wish, answer.free, calendar);
    case 'refused':
      return `${answer.isSent ? `Not ${draft.id === undefined ? 'booked' : 'changed'}: ` : ''}${refusalText(answer.facts, calendar, answer.wish.bandwidth)}${hasOffers ? ' Would be accepted:' : ''}`;
    case 'away':
      return 'It is not known whether it fits: no answer came. What you typed is kept.';
    case 'unanswered':
      return draft.id === undefined
        ? 'No answer came: it may be booked or not. Send it again: the same request is never booked twice.'
        : 'No answer came: it may be changed or not. Send it again: that does no harm.';
  }
}
