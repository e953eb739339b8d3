import { formatBandwidth } from '../contract/amounts.ts';
import { type ReservationState, stateAt } from '../contract/instants.ts';
import { element, quietButton, setText, skipTo } from './elements.ts';
import type { ReservationAction } from './reservation-actions.ts';
import type { OwnReservation } from './service.ts';
import { calendarOf, mayDo, type State } from './state.ts';
import { periodText } from './timeline/words.ts';
import { endsText, foundIn, inKeptOrder, inOrder, isEnding, nextText, tagFacts, titleOf } from './words.ts';

/** The parts of the state that the list shows. */
export type ReservationListView = Pick<
  State,
  'chosen' | 'live' | 'ended' | 'filter' | 'hidden' | 'marked' | 'busy' | 'now' | 'zone'
>;

/** Options of {@link createReservationList}. */
export interface ReservationListOptions {
  /** A button was clicked. */
  act(action: ReservationAction, reservation: OwnReservation): void;
  /** Words are typed to find some. */
  filter(words: string): void;
  /** Those that have ended are looked at. */
  wantEnded(): void;
}

/** The buttons of a reservation and their words. The first ones change it; the others stand below “More”. */
const BUTTONS: readonly (readonly [ReservationAction, label: string])[] = [
  ['hour', '+1 h'],
  ['day', '+1 day'],
  ['change', 'Change'],
  ['end', 'End now'],
  ['delete', 'Delete'],
  ['copy', 'Copy tags'],
  ['server', 'On a server'],
  ['token', 'Download token'],
  ['show', 'Show in timeline'],
];

/** The actions that change it. */
const CHANGES: ReadonlySet<ReservationAction> = new Set(['hour', 'day', 'change', 'end', 'delete']);

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

/** Does what a button says that was clicked. */
type Act = (action: ReservationAction, own: OwnReservation, event: Event) => void;

/** From how many reservations on some are looked for. */
const FINDABLE = 6;

const numberText = (count: number): string => count.toLocaleString('en');

/** How many reservations a list shows at first, and how many more at each click. */
const SHOWN = 50;

/** The reservations of the chosen experiment, each with the buttons that its role allows. */
export function createReservationList({ act: onAct, filter: onFilter, wantEnded }: ReservationListOptions) {
  const heading = element('h2', { id: 'reservations-heading', tabindex: '-1' }, 'Reservations');
  const note = element('p', { class: 'soft' });
  const words = element('input', {
    ...{ type: 'search', id: 'filter', placeholder: 'Name, id, site or state…', autocomplete: 'off' },
    ...{ 'aria-label': 'Find reservations', oninput: () => onFilter(words.value) },
  });
  const count = element('span', { class: 'soft', role: 'status' });
  const find = element('div', { class: 'find' }, count, words);
  let shown: ReservationListView | undefined;
  /** A reservation that is shown, however far down it stands. */
  let sought: string | undefined;
  const again = (): void => shown && show(shown);
  let clicked: string | undefined;
  /** Where cards move between two clicks, the second one is not meant for the card that is there by then. */
  const act: Act = (action, own, event) => {
    if (event instanceof MouseEvent && event.detail > 1 && own.id !== clicked) return;
    clicked = own.id;
    onAct(action, own);
  };
  const live = createRows({ 'aria-labelledby': heading.id }, act, again);
  const past = createRows({ 'aria-label': 'Ended reservations' }, act, again);
  const pastNote = element('p', { class: 'soft' });
  const details = element(
    'details',
    { ontoggle: () => details.open && wantEnded() },
    ...[element('summary', {}, 'Ended'), pastNote, past.list, past.more],
  );

  /** Shows the state. */
  function show(view: ReservationListView): void {
    const { chosen, live: known, ended, filter, hidden, now } = view;
    shown = view;
    setText(heading, `Reservations of ${chosen?.name ?? ''}`);
    const isOver = (one: OwnReservation): boolean => stateAt(now, one) === 'ended';
    const current = known?.filter((one) => !isOver(one));
    const found = foundIn(current ?? [], filter, now);
    const none = current?.length === 0 ? 'None now or later.' : found.length === 0 ? 'None like that.' : '';
    const text = hidden ?? (known === undefined ? 'Loading…' : none);
    if (words.value !== filter) words.value = filter;
    find.hidden = filter === '' && (current?.length ?? 0) < FINDABLE;
    setText(count, filter === '' ? '' : `${numberText(found.length)} of ${numberText(current?.length ?? 0)}`);
    setText(note, text);
    note.hidden = text === '';
    details.hidden = hidden !== undefined || known === undefined;
    // What ended since the list was asked for is not lost.
    const over = [...(ended ?? []), ...(known ?? [])].filter(isOver);
    const unique = [...new Map(over.map((one) => [one.id, one])).values()];
    const withSought = (some: readonly OwnReservation[], all: readonly OwnReservation[]) => [
      ...some,
      ...all.filter((one) => one.id === sought && !some.includes(one)),
    ];
    live.show(hidden === undefined ? withSought(found, current ?? []) : [], view, sought);
    past.show(withSought(foundIn(unique, filter, now), unique), view, sought);
    const noneOver = unique.length === 0 ? 'None. ' : '';
    setText(
      pastNote,
      ended === undefined ? 'Loading…' : `${noneOver}The service does not list deleted ones.`,
    );
  }

  const end = element('span', { id: 'after-list' });
  const rowOf = (id: string): HTMLElement | undefined => (live.row(id) ?? past.row(id))?.element;
  return {
    element: element(
      'section',
      { 'aria-labelledby': heading.id },
      element('div', { class: 'list-head' }, heading, find),
      ...[skipTo(end, 'Skip the list'), note, live.list, live.more, details, end],
    ),
    show,
    /** Brings a reservation into view and the focus to it; to the list where it is not in it. */
    focus(id: string): void {
      sought = id;
      again();
      const row = rowOf(id);
      if (past.row(id)) details.open = true;
      row?.scrollIntoView({ block: 'nearest' });
      (row?.querySelector('h3') ?? heading).focus({ preventScroll: row !== undefined });
    },
    /** The element after which a notice about a reservation stands. */
    placeFor: (id: string): HTMLElement => rowOf(id)?.querySelector<HTMLElement>('.actions') ?? heading,
  };
}

/**
 * A list of reservations in their order, the first {@link SHOWN} of them at first, and a button that shows more.
 *
 * @param again shows the list as it was shown last
 */
function createRows(attributes: Readonly<Record<string, string>>, act: Act, again: () => void) {
  const list = element('ul', {
    ...{ class: 'reservations', ...attributes, onpointerleave: again },
    onfocusout: (event) => {
      const to = event instanceof FocusEvent && event.relatedTarget;
      // Later: it may go since its card does, which is shown right now.
      if (!(to instanceof Node && list.contains(to))) setTimeout(again);
    },
  });
  let order: readonly string[] = [];
  const onclick = (): void => {
    most += SHOWN;
    again();
  };
  const more = quietButton('', onclick);
  let most = SHOWN;
  let rows = new Map<string, Row>();
  return {
    ...{ list, more },
    row: (id: string): Row | undefined => rows.get(id),
    show(all: readonly OwnReservation[], view: ReservationListView, sought: string | undefined): void {
      const sorted = inOrder(all, view.now);
      // Where someone is at it, no card takes the place of another.
      const isHeld = list.matches(':hover') || list.contains(document.activeElement);
      const ordered = isHeld ? inKeptOrder(sorted, order) : sorted;
      order = ordered.map(({ id }) => id);
      const wanted = ordered.filter(({ id }, at) => at < most || id === sought);
      const before = rows;
      rows = new Map(wanted.map(({ id }) => [id, before.get(id) ?? createRow(act)]));
      for (const reservation of wanted) rows.get(reservation.id)?.show(reservation, view);
      arrange(
        list,
        [...rows.values()].map((row) => row.element),
      );
      more.hidden = all.length <= most;
      setText(more, `Show ${SHOWN} more of ${all.length}`);
    },
  };
}

/** Gives a list its rows. What stays where it is is not moved, since that would take the focus and the selection away. */
function arrange(list: HTMLElement, rows: readonly HTMLElement[]): void {
  const { activeElement } = document;
  const wanted = new Set<Element>(rows);
  for (const row of [...list.children]) if (!wanted.has(row)) row.remove();
  let next = list.firstElementChild;
  for (const row of rows) {
    // The one in its place goes further down: that moves one in place of all that follow.
    if (next !== row && next?.nextElementSibling === row) {
      next.remove();
      next = row;
    }
    if (next === row) next = row.nextElementSibling;
    else list.insertBefore(row, next);
  }
  if (activeElement instanceof HTMLElement && list.contains(activeElement)) activeElement.focus();
}

/** Whether the state and the role allow an action on a reservation. */
function isAllowed(action: ReservationAction, stage: ReservationState, view: ReservationListView): boolean {
  const isOver = stage === 'ended';
  if (action === 'end' && stage !== 'active') return false;
  if (CHANGES.has(action)) return !isOver && mayDo(view, action === 'delete' ? 'delete' : 'update');
  return !isOver || action === 'token' || action === 'copy';
}

/** Makes a row, which is empty until it is shown. */
function createRow(act: Act): Row {
  /** Set before anything can be clicked. */
  let shown: OwnReservation | undefined;
  const state = element('span', { class: 'state' });
  const name = element('span');
  const heading = element('h3', { tabindex: '-1' }, name, ' ', state);
  const facts = element('dl');
  // Apart from the times, which stay as they are: news takes no selection from them.
  const next = element('span', { class: 'whole' });
  const buttons = BUTTONS.map(([action, label]) => {
    const onclick = (event: Event): void => shown && act(action, shown, event);
    const button = quietButton(label, onclick, { 'data-action': action });
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
    const known = `${changing} ${allowed.length} ${allowed[changing]?.dataset['action']}`;
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
      setText(state, isEnding(reservation, view.now) ? 'ending' : stage);
      heading.title = reservation.id;
      const isMarked = view.marked === reservation.id;
      row.className = stage;
      row.ariaCurrent = isMarked ? 'true' : null;
      row.dataset['id'] = reservation.id;
      row.ariaBusy = `${isBusy}`;
      showFacts(facts, [
        ['Link', endsText(reservation)],
        ['Bandwidth', formatBandwidth(reservation.bandwidth)],
        ['When', periodText(reservation, calendarOf(view))],
        ...tagFacts(reservation),
      ]);
      setText(next, nextText(reservation, view.now));
      facts.children[2]?.lastElementChild?.append(next);
      const allowed = isEnding(reservation, view.now)
        ? []
        : buttons.filter(({ action }) => isAllowed(action, stage, view));
      for (const { action, label, button } of allowed) {
        button.ariaDisabled = `${isBusy}`;
        button.ariaLabel = `${SPOKEN[action] ?? label}: ${title}`;
      }
      summary.ariaLabel = `More: ${title}`;
      // From the marked one there is a way back that is seen.
      const canChange = allowed.some(({ action }) => CHANGES.has(action));
      const isSeen = ({ action }: { action: ReservationAction }): boolean =>
        CHANGES.has(action) || (canChange && isMarked && action === 'show');
      const seen = allowed.filter(isSeen);
      arrange(
        [...seen, ...allowed.filter((one) => !isSeen(one))].map(({ button }) => button),
        seen.length,
      );
    },
  };
}

/** Shows facts in a list of descriptions. Their number stays. */
function showFacts(list: HTMLElement, facts: readonly (readonly [term: string, fact: string])[]): void {
  for (const [at, [term, fact]] of facts.entries()) {
    if (!list.children[at])
      list.append(element('div', {}, element('dt'), element('dd', {}, element('span'))));
    const [name, value] = list.children[at]?.children ?? [];
    const text = value?.firstElementChild;
    if (name instanceof HTMLElement) setText(name, term);
    if (text instanceof HTMLElement) setText(text, fact);
  }
}
