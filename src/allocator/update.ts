import type { Link } from '../contract/links.ts';
import type { Demand } from './demand.ts';
import {
  type Decision,
  type LinkView,
  type Operation,
  type Outcome,
  offersFor,
  reasonOf,
} from './operation.ts';
import type { AuditEntry, ReservationRecord } from './store.ts';

/** What to change about a reservation; an absent member keeps its value. Milliseconds and Mbps. */
export interface UpdateRequest {
  start?: number;
  end?: number;
  bandwidth?: number;
}

/** The answer to an update: as for a create, or what the caller's own check found. */
export type UpdateOutcome<Fault> = Outcome | { ok: false; reason: 'fault'; fault: Fault };

/** Who updates a reservation, and within which limits. */
export interface UpdateTerms<Fault> {
  /** The `sub` of the user who asks. */
  by: string;
  /** When the experiment ends: no alternative is offered beyond it. Milliseconds. */
  expiry: number;
  /** Checks the updated reservation before it is decided on; a fault is the answer in place of a decision. */
  check: (current: ReservationRecord, updated: Demand) => Fault | undefined;
  /** Decide and answer, and write nothing. */
  dryRun?: boolean;
}

/** What an update is about. */
export interface UpdateSubject {
  link: Link;
  /** The reservation as it was before the link was locked. */
  found: ReservationRecord;
  update: UpdateRequest;
}

/** Updates a reservation; the answer is undefined when it was deleted meanwhile. */
export function updateOperation<Fault>(
  subject: UpdateSubject,
  terms: UpdateTerms<Fault>,
): Operation<UpdateOutcome<Fault> | undefined> {
  const { found, update } = subject;
  return {
    about: found.id,
    from(view) {
      const start = view.reservation(found.id)?.start ?? found.start;
      return Math.min(start, update.start ?? start);
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
  { link, update }: UpdateSubject,
  { by, expiry, check, dryRun }: UpdateTerms<Fault>,
): Decision<UpdateOutcome<Fault>> {
  const { calendar, now } = view;
  const { id, experiment } = current;
  const demand: Demand = {
    start: update.start ?? current.start,
    end: update.end ?? current.end,
    bandwidth: update.bandwidth ?? current.bandwidth,
  };
  const fault = check(current, demand);
  if (fault !== undefined) return { answer: { ok: false, reason: 'fault', fault } };
  const entry = { at: now, action: 'amend', by, experiment, reservation: id, demand } as const;
  // A demand for no more than before does not count against the experiment's share, which may have been larger then.
  const grows =
    demand.start < current.start || demand.end > current.end || demand.bandwidth > current.bandwidth;
  const plan = calendar.planUpdate(id, demand, now, grows ? experiment : undefined);
  if (!plan.accepted) {
    const { refusals } = plan;
    const later = current.start > now ? { from: demand.start, expiry } : undefined;
    const offers = calendar.without(id, (rest) => offersFor(demand, rest, experiment, later));
    const audit: AuditEntry = { ...entry, tags: null, why: reasonOf(refusals) };
    return { answer: { ok: false, reason: 'refused', link, refusals, offers }, ...(dryRun ? {} : { audit }) };
  }
  const { tags } = plan;
  const record = { ...current, ...demand, tags };
  if (dryRun) return { answer: { ok: true, record } };
  const audit: AuditEntry = { ...entry, tags, why: null };
  return { answer: { ok: true, record }, change: { action: 'amend', record }, audit };
}
