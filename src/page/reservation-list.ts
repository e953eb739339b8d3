import { formatBandwidth } from '../contract/bandwidth.ts';
import { element, setText } from './elements.ts';
import type { Reserved } from './service.ts';
import { type Calendar, periodText } from './timeline/words.ts';
import { inOrder, nextText, stateOf, titleOf } from './words.ts';

/** What can be done with a reservation. */
export type ReservationAction = 'hour' | 'day' | 'change' | 'delete' | 'copy' | 'token' | 'server' | 'show';

/** What the list shows. */
export interface ReservationListView {
  /** The experiment's name. */
  experiment: string;
  /** Undefined while they are not known. */
  live: readonly Reserved[] | undefined;
  /** Undefined while they were not asked for. */
  ended: readonly Reserved[] | undefined;
  /** Why none can be seen; undefined where they can. */
  hidden: string | undefined;
  calendar: Calendar;
  mayUpdate: boolean;
  mayDelete: boolean;
  /** Ids with a request under way. */
  busy: ReadonlySet<string>;
}

/** Options of {@link createReservationList}. */
export interface ReservationListOptions {
  act(action: ReservationAction, reservation: Reserved): void;
  /** Those that have ended are looked at. */
  wantEnded(): void;
}

/** The buttons of a reservation: what they do, and what they say. The first ones change it; the others stand below “More”. */
const BUTTONS: readonly (readonly [ReservationAction, label: string])[] = [
  ['hour', '+1 h'],
  ['day', '+1 day'],
  ['change', 'Change'],
  ['delete', 'Delete'],
  ['copy', 'Copy tags'],
  ['server', 'On a server'],
  ['token', 'Download token'],
  ['show', 'Show in timeline'],
];

/** Those that change it. */
const CHANGES: ReadonlySet<ReservationAction> = new Set(['hour', 'day', 'change', 'delete']);

/** What a screen reader says of a button, after its reservation's name is added. What is seen comes first in it. */
const SPOKEN: Readonly<Partial<Record<ReservationAction, string>>> = {
  hour: '+1 h longer',
  day: '+1 day longer',
  server: 'On a server, what to paste',
};

/** The reservations of the chosen experiment, each with what can be done with it. */
export function createReservationList({ act, wantEnded }: ReservationListOptions) {
  const heading = element('h2', { id: 'reservations-heading', tabindex: '-1' }, 'Reservations');
  const note = element('p', { class: 'soft' });
  const live = element('ul', { class: 'reservations', 'aria-labelledby': heading.id });
  const past = element('ul', { class: 'reservations', 'aria-label': 'Ended reservations' });
  const pastNote = element('p', { class: 'soft' });
  const details = element(
    'details',
    { ontoggle: () => details.open && wantEnded() },
    ...[element('summary', {}, 'Ended'), pastNote, past],
  );
  const section = element(
    'section',
    { class: 'beside', 'aria-labelledby': heading.id },
    heading,
    note,
    live,
    details,
  );
  /** What each row was made of, so that a row stays as it is while nothing changes, with the focus in it. */
  const rows = new Map<string, { made: string; row: HTMLLIElement }>();

  function rowOf(reservation: Reserved, view: ReservationListView): HTMLLIElement {
    const { calendar, mayUpdate, mayDelete, busy } = view;
    const state = stateOf(reservation, calendar.now);
    const facts: (readonly [string, string])[] = [
      ['Link', `${reservation.site1} – ${reservation.site2}`],
      ['Bandwidth', formatBandwidth(reservation.bandwidth)],
      ['When', `${periodText(reservation, calendar)}, ${nextText(reservation, calendar.now)}`],
      ...reservation.tags.map(({ site, sTag, cTag }) => [site, `S-tag ${sTag}, C-tag ${cTag}`] as const),
    ];
    const allowed = BUTTONS.filter(([action]) => {
      if (action === 'delete') return mayDelete && state !== 'ended';
      if (action === 'hour' || action === 'day' || action === 'change') return mayUpdate && state !== 'ended';
      return state !== 'ended' || action === 'token' || action === 'copy';
    });
    const title = titleOf(reservation);
    const isBusy = busy.has(reservation.id);
    const made = JSON.stringify([facts, state, allowed, title, isBusy]);
    const known = rows.get(reservation.id);
    if (known?.made === made) return known.row;
    const buttons = allowed.map(([action, label]) =>
      element(
        'button',
        {
          ...{ type: 'button', class: 'quiet', 'data-action': action, 'aria-disabled': `${isBusy}` },
          'aria-label': `${SPOKEN[action] ?? label}: ${title}`,
          onclick: () => act(action, reservation),
        },
        label,
      ),
    );
    const changing = allowed.filter(([action]) => CHANGES.has(action)).length;
    const row = element(
      'li',
      { class: state, 'data-id': reservation.id, 'aria-busy': `${isBusy}` },
      element(
        'h3',
        { title: reservation.id, tabindex: '-1' },
        title,
        ' ',
        element('span', { class: 'state' }, state),
      ),
      element(
        'dl',
        {},
        ...facts.map(([term, fact]) => element('div', {}, element('dt', {}, term), element('dd', {}, fact))),
      ),
      element(
        'div',
        { class: 'actions' },
        ...buttons.slice(0, changing),
        ...(changing === 0 ? buttons : [more(title, buttons.slice(changing), known?.row)]),
      ),
    );
    const focused = document.activeElement;
    if (known?.row.contains(focused) && focused instanceof HTMLElement) {
      const action = focused.dataset['action'];
      // Once it stands in the place of the old one.
      const place =
        action === undefined ? (focused.matches('summary') ? 'summary' : 'h3') : `[data-action="${action}"]`;
      queueMicrotask(() => row.querySelector<HTMLElement>(place)?.focus());
    }
    rows.set(reservation.id, { made, row });
    return row;
  }

  /** What is seldom needed. It stays open when its row is made anew. */
  function more(title: string, buttons: readonly HTMLElement[], before?: HTMLElement): HTMLDetailsElement {
    const isOpen = before?.querySelector('details')?.open === true;
    return element(
      'details',
      { open: isOpen },
      element('summary', { 'aria-label': `More: ${title}` }, 'More'),
      element('div', { class: 'actions' }, ...buttons),
    );
  }

  function fill(list: HTMLUListElement, reservations: readonly Reserved[], view: ReservationListView): void {
    const wanted = inOrder(reservations, view.calendar.now).map((one) => rowOf(one, view));
    const isSame =
      list.children.length === wanted.length && wanted.every((row, at) => list.children[at] === row);
    if (!isSame) list.replaceChildren(...wanted);
  }

  /** Shows what is known. */
  function show(view: ReservationListView): void {
    const { live: known, ended, hidden, calendar } = view;
    setText(heading, `Reservations of ${view.experiment}`);
    const now = known?.filter((one) => stateOf(one, calendar.now) !== 'ended');
    const text = hidden ?? (known === undefined ? 'Loading…' : now?.length === 0 ? 'None now or later.' : '');
    setText(note, text);
    note.hidden = text === '';
    details.hidden = hidden !== undefined || known === undefined;
    // What ended since the list was asked for is not lost.
    const over = [...(ended ?? []), ...(known ?? [])].filter((one) => stateOf(one, calendar.now) === 'ended');
    const unique = [...new Map(over.map((one) => [one.id, one])).values()];
    for (const id of rows.keys()) {
      if (!now?.some((one) => one.id === id) && !unique.some((one) => one.id === id)) rows.delete(id);
    }
    fill(live, hidden === undefined ? (now ?? []) : [], view);
    fill(past, unique, view);
    setText(
      pastNote,
      ended === undefined
        ? 'Loading…'
        : `${unique.length === 0 ? 'None. ' : ''}The service does not list deleted ones.`,
    );
  }

  return {
    ...{ element: section, show },
    /** Brings a reservation into view and the focus to it; to the list where it is not in it. */
    focus(id: string): void {
      const row = rows.get(id)?.row;
      if (row && past.contains(row)) details.open = true;
      row?.scrollIntoView({ block: 'nearest' });
      (row?.querySelector('h3') ?? heading).focus({ preventScroll: row !== undefined });
    },
    /** After what a notice about a reservation stands. */
    placeFor: (id: string): HTMLElement =>
      rows.get(id)?.row.querySelector<HTMLElement>('.actions') ?? heading,
  };
}
