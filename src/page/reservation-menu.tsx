import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ReservationState } from '../contract/instants.ts';
import type { Page } from './page-props.ts';
import type { ReservationAction } from './reservation-actions.ts';
import type { OwnReservation } from './service.ts';
import { mayDo, type State } from './state.ts';

/** The entries of the menu, their words, and what a user must be allowed to do for them. */
const ENTRIES: readonly (readonly [ReservationAction, label: string, needs?: 'update' | 'delete'])[] = [
  ['hour', 'Extend by 1 hour', 'update'],
  ['day', 'Extend by 1 day', 'update'],
  ['change', 'Change…', 'update'],
  ['end', 'End now…', 'update'],
  ['delete', 'Delete…', 'delete'],
  ['token', 'Download the proof'],
  ['command', 'Copy the command'],
  ['show', 'Show in the timeline'],
];

/** The actions that the state of a reservation and the user's role allow, with their words. */
export function entriesFor(stage: ReservationState, view: Pick<State, 'chosen'>) {
  return ENTRIES.filter(([action, , needs]) => {
    if (stage === 'ended') return action === 'token';
    return (action !== 'end' || stage === 'active') && (!needs || mayDo(view, needs));
  });
}

/** A reservation whose menu is open, and the button that opened it. */
export interface OpenMenu {
  own: OwnReservation;
  title: string;
  entries: ReturnType<typeof entriesFor>;
  button: HTMLElement;
}

type MenuProps = { page: Page; menu: OpenMenu | undefined; close(): void };

/** The one menu of the list. Escape, a click elsewhere and the Tab key close it; arrows move in it. */
export function ReservationMenu({ page, menu, close }: MenuProps) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { current } = element;
    if (!menu || !current) return undefined;
    current.showPopover();
    const place = () => placeAt(current, menu.button.getBoundingClientRect());
    place();
    current.querySelector('button')?.focus({ preventScroll: true });
    addEventListener('resize', place);
    return () => removeEventListener('resize', place);
  }, [menu]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const entries = [...(element.current?.querySelectorAll('button') ?? [])];
    const at = entries.findIndex((entry) => entry.matches(':focus'));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === 'Tab') element.current?.hidePopover();
    if (to === undefined) return;
    event.preventDefault();
    entries.at(to % entries.length)?.focus();
  };
  return (
    <div
      {...{ class: 'menu', role: 'menu', popover: 'auto', ref: element, onKeyDown }}
      {...{ 'aria-label': menu && `Actions for ${menu.title}` }}
      onToggle={({ newState }) => newState === 'closed' && close()}
    >
      {menu?.entries.map(([action, label]) => (
        <button
          key={action}
          type="button"
          role="menuitem"
          tabIndex={-1}
          data-action={action}
          onClick={() => {
            // The focus goes back to the button first: what the action opens gives it back to that.
            element.current?.hidePopover();
            page.act(action, menu.own);
          }}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

/** Puts a menu below a button, or above it where there is no room; it scrolls with the page. */
function placeAt(menu: HTMLElement, { top, bottom, right }: DOMRect): void {
  const { offsetWidth, offsetHeight } = menu;
  const isBelow = bottom + offsetHeight <= innerHeight || top < offsetHeight;
  menu.style.top = `${scrollY + (isBelow ? bottom : top - offsetHeight)}px`;
  menu.style.left = `${scrollX + Math.max(0, right - offsetWidth)}px`;
}
