import { formatBandwidth } from '../contract/bandwidth.ts';
import { stateAt } from '../contract/instants.ts';
import { element, setText } from './elements.ts';
import type { OwnReservation } from './service.ts';
import { calendarOf, mayDo, type State } from './state.ts';
import { periodText } from './timeline/words.ts';
import { inOrder, nextText, tagFacts, titleOf } from './words.ts';

/** An action on a reservation. */
export type ReservationAction = 'hour' | 'day' | 'change' | 'delete' | 'copy' | 'token' | 'server' | 'show';

/** The parts of the state that the list shows. */
export type ReservationListView = Pick<
  State,
  'chosen' | 'live' | 'ended' | 'hidden' | 'busy' | 'now' | 'zone'
>;

/** Options of {@link createReservationList}. */
export interface ReservationListOptions {
  act(action: ReservationAction, reservation: OwnReservation): void;
  /** Those that have ended are looked at. */
  wantEnded(): void;
}

/** The buttons of a reservation and their words. The first ones change it; the others stand below “More”. */
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

/** The actions that change it. */
const CHANGES: ReadonlySet<ReservationAction> = new Set(['hour', 'day', 'change', 'delete']);

/** The spoken words of a button, before its reservation's name is added; they begin with the seen ones. */
const SPOKEN: Readonly<Partial<Record<ReservationAction, string>>> = {
  hour: '+1 h longer',
  day: '+1 day longer',
  server: 'On a server, what to paste',
};

/** A row of the list. It stays while its reservation does, with the focus in it. */
interface Row {
  element: HTMLLIElement;
  show(reservation: OwnReservation, view: ReservationListView): void;
}

/** The reservations of the chosen experiment, each with the buttons that its role allows. */
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
  const rows = new Map<string, Row>();

  function fill(list: HTMLUListElement, wanted: readonly OwnReservation[], view: ReservationListView): void {
    for (const [at, reservation] of inOrder(wanted, view.now).entries()) {
      const row = rows.get(reservation.id) ?? createRow(act);
      rows.set(reservation.id, row);
      row.show(reservation, view);
      // What stands where it belongs is not moved: that would take the focus away.
      if (list.children[at] !== row.element) list.insertBefore(row.element, list.children[at] ?? null);
    }
    while (list.children.length > wanted.length) list.lastElementChild?.remove();
  }

  /** Shows the state. */
  function show(view: ReservationListView): void {
    const { chosen, live: known, ended, hidden, now } = view;
    setText(heading, `Reservations of ${chosen?.name ?? ''}`);
    const isOver = (one: OwnReservation): boolean => stateAt(now, one) === 'ended';
    const current = known?.filter((one) => !isOver(one));
    const text =
      hidden ?? (known === undefined ? 'Loading…' : current?.length === 0 ? 'None now or later.' : '');
    setText(note, text);
    note.hidden = text === '';
    details.hidden = hidden !== undefined || known === undefined;
    // What ended since the list was asked for is not lost.
    const over = [...(ended ?? []), ...(known ?? [])].filter(isOver);
    const unique = [...new Map(over.map((one) => [one.id, one])).values()];
    const shown = new Set([...(current ?? []), ...unique].map(({ id }) => id));
    for (const id of rows.keys()) if (!shown.has(id)) rows.delete(id);
    fill(live, hidden === undefined ? (current ?? []) : [], view);
    fill(past, unique, view);
    const none = unique.length === 0 ? 'None. ' : '';
    setText(pastNote, ended === undefined ? 'Loading…' : `${none}The service does not list deleted ones.`);
  }

  return {
    element: element(
      'section',
      { class: 'beside', 'aria-labelledby': heading.id },
      ...[heading, note, live, details],
    ),
    show,
    /** Brings a reservation into view and the focus to it; to the list where it is not in it. */
    focus(id: string): void {
      const row = rows.get(id)?.element;
      if (row && past.contains(row)) details.open = true;
      row?.scrollIntoView({ block: 'nearest' });
      (row?.querySelector('h3') ?? heading).focus({ preventScroll: row !== undefined });
    },
    /** The element after which a notice about a reservation stands. */
    placeFor: (id: string): HTMLElement =>
      rows.get(id)?.element.querySelector<HTMLElement>('.actions') ?? heading,
  };
}

/** Whether the state and the role allow an action on a reservation. */
function isAllowed(action: ReservationAction, isOver: boolean, view: ReservationListView): boolean {
  if (CHANGES.has(action)) return !isOver && mayDo(view, action === 'delete' ? 'delete' : 'update');
  return !isOver || action === 'token' || action === 'copy';
}

/** Makes a row, which is empty until it is shown. */
function createRow(act: ReservationListOptions['act']): Row {
  /** Set before anything can be clicked. */
  let shown: OwnReservation | undefined;
  const state = element('span', { class: 'state' });
  const name = element('span');
  const heading = element('h3', { tabindex: '-1' }, name, ' ', state);
  const facts = element('dl');
  const buttons = BUTTONS.map(([action, label]) => {
    const onclick = (): void => shown && act(action, shown);
    const button = element(
      'button',
      { type: 'button', class: 'quiet', 'data-action': action, onclick },
      label,
    );
    return { action, label, button };
  });
  const summary = element('summary', {}, 'More');
  const below = element('div', { class: 'actions' });
  const more = element('details', {}, summary, below);
  const actions = element('div', { class: 'actions' });
  const row = element('li', {}, heading, facts, actions);
  let arranged = '';

  /** Puts the buttons in place that are allowed: all in one line where none of them changes anything. */
  function arrange(allowed: readonly HTMLElement[], changing: number): void {
    const known = `${changing} ${allowed.length}`;
    if (known === arranged) return;
    arranged = known;
    below.replaceChildren(...(changing === 0 ? [] : allowed.slice(changing)));
    actions.replaceChildren(...(changing === 0 ? allowed : [...allowed.slice(0, changing), more]));
  }

  return {
    element: row,
    show(reservation, view) {
      shown = reservation;
      const title = titleOf(reservation);
      const stage = stateAt(view.now, reservation);
      const isBusy = view.busy.has(reservation.id);
      setText(name, title);
      setText(state, stage);
      heading.title = reservation.id;
      row.className = stage;
      row.dataset['id'] = reservation.id;
      row.ariaBusy = `${isBusy}`;
      showFacts(facts, [
        ['Link', `${reservation.site1} – ${reservation.site2}`],
        ['Bandwidth', formatBandwidth(reservation.bandwidth)],
        ['When', `${periodText(reservation, calendarOf(view))}, ${nextText(reservation, view.now)}`],
        ...tagFacts(reservation),
      ]);
      const allowed = buttons.filter(({ action }) => isAllowed(action, stage === 'ended', view));
      for (const { action, label, button } of allowed) {
        button.ariaDisabled = `${isBusy}`;
        button.ariaLabel = `${SPOKEN[action] ?? label}: ${title}`;
      }
      summary.ariaLabel = `More: ${title}`;
      arrange(
        allowed.map(({ button }) => button),
        allowed.filter(({ action }) => CHANGES.has(action)).length,
      );
    },
  };
}

/** Shows facts in a list of descriptions. Their number stays. */
function showFacts(list: HTMLElement, facts: readonly (readonly [term: string, fact: string])[]): void {
  for (const [at, [term, fact]] of facts.entries()) {
    if (!list.children[at]) list.append(element('div', {}, element('dt'), element('dd')));
    const [name, value] = list.children[at]?.children ?? [];
    if (name instanceof HTMLElement) setText(name, term);
    if (value instanceof HTMLElement) setText(value, fact);
  }
}
