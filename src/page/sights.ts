import { flushed } from './old-views.ts';

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

/** Brings a reservation of the list into view, and the focus to it. */
export function focusReservation(id: string): void {
  flushed()?.list.focus(id);
}

/** Brings the timeline into view. */
export function scrollToTimeline(): void {
  document.querySelector('.timeline')?.scrollIntoView({ block: 'nearest' });
}
