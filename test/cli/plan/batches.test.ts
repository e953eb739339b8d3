import { describe, expect, it } from 'vitest';
import { NotApplied } from '../../../src/cli/plan/applier.ts';
import { batches, batchesOr } from '../../../src/cli/plan/batches.ts';
import type { PlannedChange } from '../../../src/cli/plan/difference.ts';
import type { WantedReservation } from '../../../src/cli/plan/plan-file.ts';
import type { BatchItem, BatchOptions } from '../../../src/client/batch.ts';
import type { ProvenReservation } from '../../../src/client/proof.ts';
import { Failure } from '../../../src/contract/failure.ts';
import type { Reservation } from '../../../src/contract/reservation.ts';
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
const update = (
  name: string,
  change: { bandwidth?: number; start?: number; end?: number },
): PlannedChange => ({
  ...{ action: 'update', name, wanted: wanted(name) },
  ...{ current: current(name), change },
});

/** What an item is about. */
const about = (item: BatchItem): string =>
  item.action === 'create'
    ? (item.reservation.name ?? '')
    : item.action === 'delete'
      ? item.id
      : item.current.id;

/** An applier over a service that answers each batch so. */
function applierOver(
  answer: (items: readonly BatchItem[], options: BatchOptions) => (Reservation | null)[],
  earliest = false,
) {
  const sent: [string[], BatchOptions][] = [];
  const batch = async (items: readonly BatchItem[], options: BatchOptions = {}) => {
    sent.push([items.map(about), options]);
    return answer(items, options).map((reservation): ProvenReservation | null => {
      return reservation && { reservation, verified: true, token: null, claims: null };
    });
  };
  const unexpected = async (): Promise<never> => {
    throw new RangeError('nothing else is asked');
  };
  const session = {
    rehearse: unexpected,
    connectivity: { batch },
    reservations: { apply: batch, create: unexpected, delete: unexpected },
  };
  const options = { session, now: () => NOW, expiry: undefined, earliest };
  return { sent, applier: batches(options), options };
}

const asWanted = (items: readonly BatchItem[]) =>
  items.map((item) => (item.action === 'delete' ? null : current(about(item))));

const fail = (code: Failure['code'], item?: number) => () => {
  throw new Failure(code, 'No.', { details: [{ loc: [], msg: 'No.', type: 'NotValid', item }] });
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
      [['old', 'less', 'shorter', 'more', 'longer', 'sooner', 'new'], { earliest: false }],
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
      ({ failure }) => failure && [failure.code, failure.message, failure.facts.limits],
    );
    expect(facts).toEqual([
      undefined,
      ['bandwidth_unavailable', 'Too much.', limits],
      ['date_invalid', 'Too late. Not there.', undefined],
    ]);
    await expect(applier.apply(changes)).rejects.toThrow(NotApplied);
  });

  it('that fail for no reason of a change are a failure like any other', async () => {
    const away = applierOver(fail('unavailable'));
    await expect(away.applier.apply([create('a')])).rejects.toMatchObject({
      name: 'Failure',
      code: 'unavailable',
    });
    const taken = applierOver(fail('name_taken', 0));
    await expect(taken.applier.rehearse([create('a')])).rejects.toMatchObject({ code: 'name_taken' });
    await expect(taken.applier.apply([create('a')])).rejects.toThrow(NotApplied);
  });

  it('are made by single requests where a service has no batches in spite of its description', async () => {
    const answered = (httpStatus: number, item?: number) =>
      applierOver(() => {
        const details = [{ loc: [], msg: 'No.', type: 'NotValid', item }];
        throw new Failure('not_found', 'No.', { httpStatus, details });
      });
    const single = applierOver(asWanted).applier;
    for (const status of [404, 405, 501]) {
      const applier = batchesOr(single, answered(status).options);
      expect(await applier.apply([create('a')])).toHaveLength(1);
      expect(await applier.rehearse([create('a')])).toHaveLength(1);
    }
    // One that is about a reservation is an answer.
    await expect(batchesOr(single, answered(404, 0).options).apply([create('a')])).rejects.toThrow(
      NotApplied,
    );
  });

  it('fit together from the start of the first creation on', async () => {
    const later = (items: readonly BatchItem[], { earliest }: BatchOptions) => {
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
    const refused = applierOver(fail('bandwidth_unavailable', 0), true).applier;
    expect(await refused.earliestStart([create('a')])).toBe('never');
    const unknown = applierOver(fail('site_unknown', 0)).applier;
    expect(await unknown.earliestStart([create('a')])).toBeUndefined();
  });
});
