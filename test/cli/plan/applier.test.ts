import { describe, expect, it } from 'vitest';
import { type Applying, apply, NotApplied } from '../../../src/cli/plan/applier.ts';
import type { PlannedChange } from '../../../src/cli/plan/difference.ts';
import type { ChangeOptions } from '../../../src/client/changes.ts';
import type { ProvenReservation } from '../../../src/client/proof.ts';
import { Failure } from '../../../src/contract/failure.ts';
import type { Reservation } from '../../../src/contract/reservation.ts';
import {
  asRequest,
  type ChangeItem,
  type ReservationRequest,
} from '../../../src/contract/reservation-request.ts';
import { NOW, RESERVATION } from '../../fixtures/tokens.ts';

const HOUR = 3_600_000;
const [START, END] = [NOW + HOUR, NOW + 3 * HOUR];

function current(id: string): Reservation {
  const dates = { start_date: new Date(START).toISOString(), end_date: new Date(END).toISOString() };
  return { ...RESERVATION, id, bandwidth: 100, ...dates };
}

function create(name: string): PlannedChange {
  const request = { ...asRequest(current('x')), name };
  const wanted = { ...request, length: END - START, place: 'demo.yaml:3:5' };
  return { action: 'create', name, wanted, request, current: null };
}
function update(name: string, change: Partial<ReservationRequest>): PlannedChange {
  const { wanted, request } = create(name) as PlannedChange & { action: 'create' };
  return { action: 'update', name, wanted, request: { ...request, ...change }, current: current(name) };
}
const drop = (name: string): PlannedChange => ({
  ...{ action: 'delete', name, request: null, current: current(name) },
});

/** What an item is about. */
const about = (item: ChangeItem): string => (item.action === 'create' ? (item.request.name ?? '') : item.id);

/** What is sent to a service that answers each request so, and the way to it. */
function serviceOf(
  answer: (items: readonly ChangeItem[], options: ChangeOptions) => (Reservation | null)[],
): { sent: [string[], ChangeOptions][]; how: Applying } {
  const sent: [string[], ChangeOptions][] = [];
  const change = async (items: readonly ChangeItem[], options: ChangeOptions = {}) => {
    sent.push([items.map(about), options]);
    return answer(items, options).map((reservation): ProvenReservation | null => {
      return reservation && { reservation, verified: true, token: null, claims: null };
    });
  };
  // The result has a type for each item.
  const service = { change: change as never };
  const session = { connectivity: service, reservations: service };
  const can = { earliest: false, hasBatches: true, canRehearse: true, allowUnsigned: false };
  return { sent, how: { session, now: () => NOW, expiry: undefined, ...can, pending: new Map() } };
}

const refusing = (item: number) =>
  serviceOf(() => {
    const details = [{ loc: [], msg: 'No.', type: 'NotValid', item }];
    throw new Failure('bandwidth_unavailable', 'No.', { httpStatus: 422, details });
  });

describe('changes by one batch', () => {
  it('are sent with what gives back before what needs more, and told in the order of the file', async () => {
    const { sent, how } = serviceOf((items) =>
      items.map((item) => (item.action === 'delete' ? null : current(about(item)))),
    );
    const outcomes = await apply(
      [
        create('new'),
        update('more', { bandwidth: 200 }),
        update('longer', { end: END + 1 }),
        update('sooner', { start: START - 1 }),
        update('less', { bandwidth: 50 }),
        update('shorter', { start: START + 1, end: END - 1 }),
        drop('old'),
      ],
      how,
    );
    const names = ['old', 'less', 'shorter', 'more', 'longer', 'sooner', 'new'];
    expect(sent).toEqual([[names, { earliest: false, allowUnsigned: false }]]);
    expect(outcomes.map(({ change, reservation }) => [change.name, reservation?.id])).toEqual([
      ...['new', 'more', 'longer', 'sooner', 'less', 'shorter'].map((name) => [name, name]),
      ['old', undefined],
    ]);
  });

  it('that are refused are told by their place in the plan, not in the request', async () => {
    const plan = [create('new'), { ...update('kept', {}), action: 'none' } as PlannedChange, drop('old')];
    const { how, sent } = refusing(1);
    const failed = await apply(plan, how).catch((error: unknown) => error);
    expect(sent[0]?.[0]).toEqual(['old', 'new']);
    const told = { facts: { details: [{ item: 0 }] } };
    const none = { failure: undefined };
    expect(failed).toMatchObject({ ...told, outcomes: [{ failure: told }, none, none] });
    const other = apply(plan, refusing(0).how);
    await expect(other).rejects.toMatchObject({ facts: { details: [{ item: 2 }] } });
  });

  it('one change that is refused alone is refused too, and one that may be tried again is not', async () => {
    const applied = (facts: object) => {
      const { how } = serviceOf(() => {
        throw new Failure('not_found', 'No.', { httpStatus: 404, ...facts });
      });
      return apply([drop('a')], how).catch((error: unknown) => error);
    };
    expect(await applied({})).toBeInstanceOf(NotApplied);
    for (const facts of [{ retryable: true }, { maybeDone: true }])
      expect(await applied(facts)).toMatchObject({ name: 'Failure' });
  });
});
