import type { LinkCalendar } from './calendar.ts';
import type { AuditEntry, BookingKey, RememberedBooking, ReservationRecord, WrittenChange } from './store.ts';

/** A link as it stands when a question is decided: with what was decided before it in the same transaction. */
export interface LinkView {
  /** Milliseconds. */
  now: number;
  /** @throws RangeError for a question whose `from` said that it needs none */
  readonly calendar: LinkCalendar;
  /** One of the reservations that the question named, or that its key stands for; undefined when it is gone. */
  reservation(id: string): ReservationRecord | undefined;
  /** How many reservations of the experiment have not ended, on all links; for one that a question counts. */
  live(experiment: string): number;
  /** What the question's key stands for; undefined when it is free. */
  remembered(key: BookingKey): RememberedBooking | undefined;
}

/** A decision to be made on a link: what must be read for it, and then a pure function of that. */
export interface Question<Answer> {
  /** The reservation that it is about. */
  readonly about?: string;
  /** The key that it comes under. */
  readonly key?: BookingKey;
  /** The experiment whose live reservations it counts. */
  readonly counts?: string;
  /** The earliest instant that it looks at, in milliseconds; undefined when it needs no calendar. */
  from(view: Pick<LinkView, 'reservation'>): number | undefined;
  decide(view: LinkView): Verdict<Answer>;
}

/** What a decision leaves: the answer, what it changes, and what the audit says of it. */
export interface Verdict<Answer> {
  answer: Answer;
  change?: WrittenChange;
  audit?: AuditEntry;
}
