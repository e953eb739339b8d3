import { signal } from '@preact/signals';

/** Brings the form into view from its heading on, and the focus to it. */
export function focusForm(): void {
  const heading = document.getElementById('booking-heading');
  const form = heading?.closest('form');
  if (!form) return;
  form.scrollTop = 0;
  form.scrollIntoView({ block: form.offsetHeight > innerHeight ? 'start' : 'nearest' });
  heading?.focus({ preventScroll: true });
}

/** Leads the keyboard on, from what is picked to the form; nothing moves. */
export function leadToForm(): void {
  const enter = document.getElementById('book-this');
  const to = enter?.checkVisibility() ? enter : document.getElementById('booking-heading');
  to?.focus({ preventScroll: true });
}

/** The reservation that was brought into view last: the list shows it, however far down it stands. */
export const sought = signal<{ id: string } | undefined>(undefined);

/** The id of the list's heading. */
export const LIST_HEADING = 'reservations-heading';

/** The id of the element of a reservation that takes the focus. */
export function rowId(id: string): string {
  return `reservation-${id}`;
}

/** Brings a reservation of the list into view, and the focus to it; to the list's heading where it is not in the list. */
export function focusReservation(id: string): void {
  // The list shows it when this returns.
  sought.value = { id };
  const row = document.getElementById(rowId(id));
  row?.scrollIntoView({ block: 'nearest' });
  (row ?? document.getElementById(LIST_HEADING))?.focus({ preventScroll: row !== null });
}

/** Brings the timeline into view. */
export function scrollToTimeline(): void {
  document.querySelector('.timeline')?.scrollIntoView({ block: 'nearest' });
}
