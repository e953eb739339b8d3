import { describe, expect, it } from 'vitest';
import {
  type Applier,
  type ApplierOptions,
  createApplier,
  NotApplied,
} from '../../../src/cli/plan/applier.ts';
import type { PlannedChange } from '../../../src/cli/plan/difference.ts';
import type { WantedReservation } from '../../../src/cli/plan/plan-file.ts';
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

const wanted = (name: string): WantedReservation => ({
  ...{ name, site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 100 },
  ...{ start: START, end: END, length: END - START, place: 'demo.yaml:3:5' },
});

function current(id: string): Reservation {
  const dates = { start_date: new Date(START).toISOString(), end_date: new Date(END).toISOString() };
  return { ...RESERVATION, id, bandwidth: 100, ...dates };
}

const create = (name: string): PlannedChange => ({ action: 'create', name, wanted: wanted(name) });
const drop = (name: string): PlannedChange => ({ action: 'delete', name, current: current(name) });
const update = (name: string, change: Partial<ReservationRequest>): PlannedChange => ({
  ...{ action: 'update', name, wanted: wanted(name), current: current(name) },
  request: { ...asRequest(current(name)), ...change },
});

/** What an item is about. */
const about = (item: ChangeItem): string => (item.action === 'create' ? (item.request.name ?? '') : item.id);

/** An applier over a service that answers each request so. */
function applierOver(
  answer: (items: readonly ChangeItem[], options: ChangeOptions) => (Reservation | null)[],
  { earliest = false, hasBatches = true, canRehearse = true, all }: Partial<ApplierOptions> = {},
): { sent: [string[], ChangeOptions][]; applier: Applier } {
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
  const can = { hasBatches, canRehearse, allowUnsigned: false };
  const options = { session, now: () => NOW, expiry: undefined, earliest, ...can, pending: new Map() };
  return { sent, applier: createApplier({ ...options, ...(all ? { all } : {}) }) };
}

const asWanted = (items: readonly ChangeItem[]) =>
  items.map((item) => (item.action === 'delete' ? null : current(about(item))));

const fail = (code: Failure['code'], item?: number, httpStatus?: number) => () => {
  throw new Failure(code, 'No.', { httpStatus, details: [{ loc: [], msg: 'No.', type: 'NotValid', item }] });
};

describe('changes by one batch', () => {
  it('are sent with what gives back before what needs more, and told in the order of the file', async () => {
    const { sent, applier } = applierOver(asWanted);
    const changes = [
      create('new'),
      update('more', { bandwidth: 200 }),
      update('longer', { end: END + 1 }),
      update('sooner', { start: START - 1 }),
      update('less', { bandwidth: 50 }),
      update('shorter', { start: START + 1, end: END - 1 }),
      drop('old'),
    ];
    const outcomes = await applier.apply(changes);
    expect(sent).toEqual([
      [
        ['old', 'less', 'shorter', 'more', 'longer', 'sooner', 'new'],
        { earliest: false, allowUnsigned: false },
      ],
    ]);
    expect(outcomes.map(({ change, reservation }) => [change.name, reservation?.id])).toEqual([
      ...['new', 'more', 'longer', 'sooner', 'less', 'shorter'].map((name) => [name, name]),
      ['old', undefined],
    ]);
  });

  it('that are refused are each told with what is said of it, the limits with the first', async () => {
    const limits = [
      {
        ...({ limit: 'bandwidth', site: null, layer: null, capacity: 1000, free: 10 } as const),
        ...{ start_date: new Date(START).toISOString(), end_date: new Date(END).toISOString() },
      },
    ];
    const details = [
      { loc: ['Bandwidth'], msg: 'Too much.', type: 'NotValid', item: 1 },
      { loc: ['Date'], msg: 'Too late.', type: 'NotValid', item: 2 },
      { loc: ['Site'], msg: 'Not there.', type: 'NotValid', item: 2 },
    ];
    const refuse = (): never => {
      throw new Failure('bandwidth_unavailable', 'Too much.', { httpStatus: 422, details, limits });
    };
    const changes = [create('a'), create('b'), create('c')];
    const { applier } = applierOver(refuse);
    const outcomes = await applier.rehearse(changes);
    const facts = outcomes.map(
      ({ failure }) =>
        failure && [
          failure.code,
          `${failure.message} ${failure.facts.why ?? ''}`.trim(),
          failure.facts.limits,
        ],
    );
    expect(facts).toEqual([
      undefined,
      ['bandwidth_unavailable', 'Too much.', limits],
      ['date_invalid', 'Too late. Not there.', undefined],
    ]);
    await expect(applier.apply(changes)).rejects.toThrow(NotApplied);
  });

  it('that are refused are told by their place in the plan, not in the request', async () => {
    const all = [create('new'), drop('kept'), drop('old')];
    const [added, , removed] = all as [PlannedChange, PlannedChange, PlannedChange];
    const { applier, sent } = applierOver(fail('bandwidth_unavailable', 1, 422), { all });
    const failed = await applier.apply([added, removed]).catch((error: unknown) => error);
    expect(sent[0]?.[0]).toEqual(['old', 'new']);
    const told = { facts: { details: [{ item: 0 }] } };
    expect(failed).toMatchObject({ ...told, outcomes: [{ failure: told }, { failure: undefined }] });
    const other = applierOver(fail('bandwidth_unavailable', 0, 422), { all }).applier;
    await expect(other.apply([added, removed])).rejects.toMatchObject({ facts: { details: [{ item: 2 }] } });
  });

  it('that fail for no reason of a change are a failure like any other', async () => {
    const changes = [create('a'), create('b')];
    const away = applierOver(fail('unavailable'));
    await expect(away.applier.apply(changes)).rejects.toMatchObject({ name: 'Failure', code: 'unavailable' });
    const taken = applierOver(fail('name_taken', 0));
    await expect(taken.applier.rehearse(changes)).rejects.toMatchObject({ code: 'name_taken' });
    await expect(taken.applier.apply(changes)).rejects.toThrow(NotApplied);
  });

  it('one change that is refused alone is refused too, and one that may be tried again is not', async () => {
    const refusal = (facts: object) => () => {
      throw new Failure('not_found', 'No.', { httpStatus: 404, ...facts });
    };
    const gone = applierOver(refusal({}));
    const failed = await gone.applier.apply([drop('a')]).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(NotApplied);
    expect(failed).toMatchObject({ code: 'not_found', outcomes: [{ failure: { code: 'not_found' } }] });
    for (const facts of [{ retryable: true }, { maybeDone: true }]) {
      const { applier } = applierOver(refusal(facts));
      await expect(applier.apply([create('a')])).rejects.toMatchObject({ name: 'Failure' });
    }
  });

  it('creations are made one by one where a service has no batches in spite of its description', async () => {
    for (const httpStatus of [404, 405, 501]) {
      const answer = (items: readonly ChangeItem[]) => {
        if (items.length > 1) throw new Failure('not_found', 'No.', { httpStatus });
        return asWanted(items);
      };
      const { applier, sent } = applierOver(answer);
      expect(await applier.apply([create('a'), create('b')])).toHaveLength(2);
      expect(await applier.rehearse([create('a'), create('b')])).toHaveLength(2);
      expect(sent.map(([names]) => names.join(' '))).toEqual(['a b', 'a', 'b', 'a b', 'a', 'b']);
      await expect(applier.apply([create('a'), drop('b')])).rejects.toMatchObject({ code: 'not_supported' });
    }
    // A failure that is about an item is an answer.
    const answered = applierOver(fail('not_found', 0, 404));
    await expect(answered.applier.apply([create('a'), create('b')])).rejects.toThrow(NotApplied);
    expect(answered.sent).toHaveLength(1);
  });

  it('fit together from the start of the first creation on', async () => {
    const later = (items: readonly ChangeItem[], { earliest }: ChangeOptions) => {
      if (!earliest) throw new RangeError('not asked for');
      return items.map((item, at) =>
        item.action === 'create'
          ? { ...current('x'), start_date: new Date(START + (9 - at) * HOUR).toISOString() }
          : current('x'),
      );
    };
    const { sent, applier } = applierOver(later);
    expect(await applier.earliestStart([create('a'), update('b', {}), create('c')])).toBe(START + 7 * HOUR);
    expect(sent).toEqual([[['b', 'a', 'c'], { dryRun: true, earliest: true }]]);
    expect(await applier.earliestStart([update('b', {})])).toBeUndefined();
    // Where it is so already, and still does not fit, no later time helps.
    const refused = applierOver(fail('bandwidth_unavailable', 0), { earliest: true }).applier;
    expect(await refused.earliestStart([create('a')])).toBe('never');
    const unknown = applierOver(fail('site_unknown', 0)).applier;
    expect(await unknown.earliestStart([create('a')])).toBeUndefined();
  });
});
