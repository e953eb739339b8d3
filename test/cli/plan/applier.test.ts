import { describe, expect, it } from 'vitest';
import { type Applying, apply, earliestStart, NotApplied, rehearse } from '../../../src/cli/plan/applier.ts';
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
  { earliest = false, hasBatches = true } = {},
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
  const can = { earliest, hasBatches, canRehearse: true, allowUnsigned: false };
  return { sent, how: { session, now: () => NOW, expiry: undefined, ...can, pending: new Map() } };
}

const asWanted = (items: readonly ChangeItem[]) =>
  items.map((item) => (item.action === 'delete' ? null : current(about(item))));

const fail = (code: Failure['code'], item?: number, httpStatus?: number) => () => {
  throw new Failure(code, 'No.', { httpStatus, details: [{ loc: [], msg: 'No.', type: 'NotValid', item }] });
};

describe('changes by one batch', () => {
  it('are sent with what gives back before what needs more, and told in the order of the file', async () => {
    const { sent, how } = serviceOf(asWanted);
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

  it('that are refused are each told with what is said of it', async () => {
    const period = { start_date: new Date(START).toISOString(), end_date: new Date(END).toISOString() };
    const limit = { limit: 'bandwidth', site: null, layer: null, capacity: 1000, free: 10, item: 1 } as const;
    const limits = [{ ...limit, ...period }];
    const details = [
      { loc: ['Bandwidth'], msg: 'Too much.', type: 'NotValid', item: 1 },
      { loc: ['Date'], msg: 'Too late.', type: 'NotValid', item: 2, code: 'date_past' },
      { loc: ['Site'], msg: 'Not there.', type: 'NotValid', item: 2, code: 'site_unknown' },
    ];
    const { how } = serviceOf(() => {
      throw new Failure('bandwidth_unavailable', 'Too much.', { httpStatus: 422, details, limits });
    });
    const changes = [create('a'), create('b'), create('c')];
    const told = (await rehearse(changes, how)).map(
      ({ failure }) =>
        failure && [failure.code, `${failure.says} ${failure.facts.why ?? ''}`.trim(), failure.facts.limits],
    );
    expect(told).toEqual([
      undefined,
      ['bandwidth_unavailable', 'Too much.', limits],
      ['date_past', 'Too late. Not there.', undefined],
    ]);
    await expect(apply(changes, how)).rejects.toThrow(NotApplied);
  });

  it('that are refused are told by their place in the plan, not in the request', async () => {
    const plan = [create('new'), { ...update('kept', {}), action: 'none' } as PlannedChange, drop('old')];
    const { how, sent } = serviceOf(fail('bandwidth_unavailable', 1, 422));
    const failed = await apply(plan, how).catch((error: unknown) => error);
    expect(sent[0]?.[0]).toEqual(['old', 'new']);
    const told = { facts: { details: [{ item: 0 }] } };
    const none = { failure: undefined };
    expect(failed).toMatchObject({ ...told, outcomes: [{ failure: told }, none, none] });
    const other = apply(plan, serviceOf(fail('bandwidth_unavailable', 0, 422)).how);
    await expect(other).rejects.toMatchObject({ facts: { details: [{ item: 2 }] } });
  });

  it('that fail for no reason of a change are a failure like any other', async () => {
    const changes = [create('a'), create('b')];
    const away = apply(changes, serviceOf(fail('unavailable')).how);
    await expect(away).rejects.toMatchObject({ name: 'Failure', code: 'unavailable' });
    const { how } = serviceOf(fail('name_taken', 0));
    await expect(rehearse(changes, how)).rejects.toMatchObject({ code: 'name_taken' });
    await expect(apply(changes, how)).rejects.toThrow(NotApplied);
  });

  it('one change that is refused alone is refused too, and one that may be tried again is not', async () => {
    const refusal = (facts: object) =>
      serviceOf(() => {
        throw new Failure('not_found', 'No.', { httpStatus: 404, ...facts });
      });
    const failed = await apply([drop('a')], refusal({}).how).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(NotApplied);
    expect(failed).toMatchObject({ code: 'not_found', outcomes: [{ failure: { code: 'not_found' } }] });
    for (const facts of [{ retryable: true }, { maybeDone: true }]) {
      await expect(apply([create('a')], refusal(facts).how)).rejects.toMatchObject({ name: 'Failure' });
    }
  });

  it('fit together from the start of the first creation on', async () => {
    const { sent, how } = serviceOf((items, { earliest }) => {
      if (!earliest) throw new RangeError('not asked for');
      const later = (at: number) => new Date(START + (9 - at) * HOUR).toISOString();
      return items.map((item, at) => ({
        ...current('x'),
        ...(item.action === 'create' ? { start_date: later(at) } : {}),
      }));
    });
    expect(await earliestStart([create('a'), update('b', {}), create('c')], how)).toBe(START + 7 * HOUR);
    expect(sent).toEqual([[['b', 'a', 'c'], { dryRun: true, earliest: true }]]);
    expect(await earliestStart([update('b', {})], how)).toBeUndefined();
    // Where it is so already, and still does not fit, no later time helps.
    const refused = serviceOf(fail('bandwidth_unavailable', 0), { earliest: true });
    expect(await earliestStart([create('a')], refused.how)).toBe('never');
    expect(await earliestStart([create('a')], serviceOf(fail('site_unknown', 0)).how)).toBeUndefined();
  });
});
