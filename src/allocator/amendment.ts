import type { Link } from '../contract/links.ts';
import type { Demand } from './demand.ts';
import { offersFor } from './offers.ts';
import { type Outcome, reasonOf } from './outcome.ts';
import type { LinkView, Question, Verdict } from './question.ts';
import type { AuditEntry, ReservationRecord } from './store.ts';

/** What is to change about a reservation; what is absent stays. */
export interface Amendment {
  start?: number;
  end?: number;
  bandwidth?: number;
}

/** The answer to an amendment: as for a booking, or what the caller's own check found. */
export type AmendmentOutcome<Fault> = Outcome | { ok: false; reason: 'fault'; fault: Fault };

/** Looks at an amended reservation before it is decided on; what it returns is passed on in place of a decision. */
export type AmendmentCheck<Fault> = (current: ReservationRecord, amended: Demand) => Fault | undefined;

/** Who changes a reservation, and how far that may go. */
export interface AmendmentTerms<Fault> {
  /** The `sub` of the user who asks. */
  by: string;
  /** When the experiment ends: no alternative is offered beyond it. Milliseconds. */
  expiry: number;
  check: AmendmentCheck<Fault>;
  /** Decide and answer, and leave nothing behind. */
  dryRun?: boolean;
}

/** What an amendment is about. */
export interface AmendedReservation {
  link: Link;
  /** As it was found before the link was locked. */
  found: ReservationRecord;
  amendment: Amendment;
}

/** Whether a reservation can be changed; the answer is undefined when there is none any more. */
export function amendmentQuestion<Fault>(
  subject: AmendedReservation,
  terms: AmendmentTerms<Fault>,
): Question<AmendmentOutcome<Fault> | undefined> {
  const { found, amendment } = subject;
  return {
    about: found.id,
    from(view) {
      const start = view.reservation(found.id)?.start ?? found.start;
      return Math.min(start, amendment.start ?? start);
    },
    decide(view) {
      const current = view.reservation(found.id);
      return current ? decide(view, current, subject, terms) : { answer: undefined };
    },
  };
}

function decide<Fault>(
  view: LinkView,
  current: ReservationRecord,
  { link, amendment }: AmendedReservation,
  { by, expiry, check, dryRun }: AmendmentTerms<Fault>,
): Verdict<AmendmentOutcome<Fault>> {
  const { calendar, now } = view;
  const { id, experiment } = current;
  const demand: Demand = {
    start: amendment.start ?? current.start,
    end: amendment.end ?? current.end,
    bandwidth: amendment.bandwidth ?? current.bandwidth,
  };
  const fault = check(current, demand);
  if (fault !== undefined) return { answer: { ok: false, reason: 'fault', fault } };
  const entry = { at: now, action: 'amend', by, experiment, reservation: id, demand } as const;
  // What asks for no more than before is not held against the experiment's share, which may have been larger.
  const grows =
    demand.start < current.start || demand.end > current.end || demand.bandwidth > current.bandwidth;
  const decision = calendar.decideAnew(id, demand, now, grows ? experiment : undefined);
  if (!decision.accepted) {
    const { refusals } = decision;
    const later = current.start > now ? { from: demand.start, expiry } : undefined;
    const offers = calendar.without(id, (rest) => offersFor(demand, rest, experiment, later));
    const audit: AuditEntry = { ...entry, tags: null, why: reasonOf(refusals) };
    return { answer: { ok: false, reason: 'refused', link, refusals, offers }, ...(dryRun ? {} : { audit }) };
  }
  const { tags } = decision;
  const record = { ...current, ...demand, tags };
  if (dryRun) return { answer: { ok: true, record } };
  const audit: AuditEntry = { ...entry, tags, why: null };
  return { answer: { ok: true, record }, change: { action: 'amend', record }, audit };
}
