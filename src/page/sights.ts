import { flushed } from './old-views.ts';

/** Brings the form into view from its heading on, and the focus to it. */
export function focusForm(): void {
  flushed()?.form.focus();
}

/** Leads the keyboard on, from what is picked to the form; nothing moves. */
export function leadToForm(): void {
  flushed()?.form.lead();
}

/** Brings a reservation of the list into view, and the focus to it. */
export function focusReservation(id: string): void {
  flushed()?.list.focus(id);
}

/** Brings the timeline into view. */
export function scrollToTimeline(): void {
  document.querySelector('.timeline')?.scrollIntoView({ block: 'nearest' });
}
