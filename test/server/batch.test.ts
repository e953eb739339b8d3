import { decodeJwt } from 'jose';
import { describe, expect, test } from 'vitest';
import { MAX_ITEMS, type Reservation } from '../../src/contract/reservation.ts';
import {
  addressOf,
  at,
  booked,
  booking,
  type Caller,
  DAY,
  HOUR,
  hours,
  openWithLead,
  outcome,
  problemIn,
  type Reply,
  reservationIn,
  smallTopology,
} from '../fixtures/service.ts';

const BATCH = addressOf('batchReservations');

/** Sends items as a batch. */
function batch(
  caller: Caller,
  items: unknown,
  query = '',
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  return caller.send('POST', `${BATCH}?${query}`, { body: { items, tokens: [] }, headers });
}

/** A create as an item. */
function create(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { tokens: _tokens, ...body } = booking(changes);
  return { action: 'create', ...body };
}

interface Result {
  connectivity: Reservation | null;
  token: string | null;
}

function resultsIn(reply: Reply): Result[] {
  expect(outcome(reply)).toBe('200');
  return (reply.body as { items: Result[] }).items;
}

/** The refused items: index, and location. */
function refusedIn(reply: Reply): [number | undefined, string | undefined][] {
  return problemIn(reply).detail.map(({ item, loc }) => [item, loc[0]]);
}

const open = () => openWithLead({ topology: smallTopology(4) });

async function liveIds(caller: Caller): Promise<string[]> {
  const { body } = await caller.list();
  return (body as { items: Reservation[] }).items.map(({ id }) => id).toSorted();
}

describe('a batch', () => {
  test('creates, updates and deletes together, with a token for each that is left', async () => {
    const { service, lead } = await open();
    const first = await booked(lead, { ...hours(1, 2) });
    const second = await booked(lead, { ...hours(1, 2) });
    const items = [
      { action: 'delete', id: first.id },
      create({ bandwidth: '900', name: 'big', ...hours(1, 2) }),
      { action: 'update', id: second.id, ...hours(3, 4) },
      create({ ...hours(3, 4) }),
    ];
    const results = resultsIn(await batch(lead, items));
    expect(results.map(({ connectivity }) => connectivity?.bandwidth ?? null)).toEqual([null, 900, 100, 100]);
    expect(results.map(({ token }) => token === null)).toEqual([true, false, false, false]);
    for (const { connectivity, token } of results) {
      if (!connectivity || token === null) continue;
      expect(decodeJwt(token)).toMatchObject({ sub: connectivity.id, connectivity });
      expect(reservationIn(await lead.read(connectivity.id))).toEqual(connectivity);
    }
    expect(outcome(await lead.read(first.id))).toBe('404 not_found');
    expect(
      service.log
        .filter(({ event }) => /^(?:created|updated|deleted)$/.test(event))
        .map(({ event }) => event),
    ).toEqual(['created', 'created', 'deleted', 'created', 'updated', 'created']);
  });

  test('one refused: nothing is done; every refused item is named, whatever is wrong with it', async () => {
    const { service, lead } = await open();
    const own = await booked(lead, { ...hours(1, 2), name: 'own' });
    const before = service.rows();
    const reply = await batch(lead, [
      create({ ...hours(1, 2) }),
      create({ bandwidth: '2000', ...hours(1, 2) }),
      create({ start_date: 'tomorrow' }),
      create({ site1: 'nowhere', bandwidth: 7 }),
      { action: 'update', id: `${own.id}x`, bandwidth: '5' },
      { action: 'update', id: own.id, end_date: at(-HOUR) },
      create({ name: 'own', ...hours(5, 6) }),
      { action: 'delete', id: own.id },
      create({ bandwidth: '901', ...hours(1, 2) }),
    ]);
    expect(reply.status).toBe(422);
    expect(refusedIn(reply)).toEqual([
      [1, 'Bandwidth'],
      [2, 'Date'],
      [3, 'Site'],
      [3, 'Bandwidth'],
      [4, undefined],
      [5, 'Date'],
      [5, 'Date'],
      [6, undefined],
      [8, 'Bandwidth'],
    ]);
    const { limits = [], free = [], alternatives = [] } = problemIn(reply);
    const about = (facts: readonly { item?: number }[]) => new Set(facts.map(({ item }) => item));
    expect([about(limits), about(free)]).toEqual([new Set([1, 8]), new Set([1, 8])]);
    expect(about(alternatives)).toEqual(new Set([1, 8]));
    expect(service.rows()).toEqual(before);
    expect(await liveIds(lead)).toEqual([own.id]);
  });

  test('dates that break a rule have alternatives too, each true after the items before it', async () => {
    const { service } = await open();
    const experiment = await service.newExperiment('short', 10 * DAY);
    service.enrol(experiment);
    const lead = await service.as('lead', experiment);
    const own = await booked(lead, { bandwidth: '50', ...hours(1, 2) });
    const tooLate = at(11 * DAY);
    const items = [
      create({ bandwidth: '600', ...hours(3, 4) }),
      create({ bandwidth: '600', ...hours(3, 4), end_date: tooLate }),
      { action: 'update', id: own.id, end_date: tooLate },
    ];
    const reply = await batch(lead, items);
    expect(refusedIn(reply)).toEqual([
      [1, 'Date'],
      [2, 'Date'],
    ]);
    const { alternatives = [] } = problemIn(reply);
    expect(alternatives).toMatchObject([
      { item: 1, kind: 'most_bandwidth', bandwidth: 400 },
      { item: 2, kind: 'longest', bandwidth: 50 },
    ]);
    const [most, longest] = alternatives.map(({ end_date, bandwidth }) => ({
      end_date,
      bandwidth: String(bandwidth),
    }));
    const [first, second, third] = items;
    for (const item of [
      { ...second, ...most },
      { ...third, ...longest },
    ]) {
      resultsIn(await batch(lead, [first, item], 'dry_run=true'));
    }
  });

  test('each item sees the names that those before it gave and gave up; a refused batch leaves them', async () => {
    const { lead } = await open();
    const one = await booked(lead, { ...hours(1, 2), name: 'one' });
    const items = [{ action: 'update', id: one.id, name: 'spare' }, create({ name: 'one', ...hours(5, 6) })];
    expect(refusedIn(await batch(lead, [...items, create({ name: 'one', ...hours(7, 8) })]))).toEqual([
      [2, undefined],
    ]);
    const twice = await batch(lead, [create({ name: 'a' }), create({ name: 'a', ...hours(5, 6) })]);
    expect([outcome(twice), refusedIn(twice)]).toEqual(['409 name_taken', [[1, undefined]]]);
    // The first was not made, so it is not named.
    expect(problemIn(twice).detail[0]).toMatchObject({ msg: expect.not.stringContaining('con_') });
    expect(problemIn(twice).detail[0]).not.toHaveProperty('facts');
    resultsIn(await batch(lead, items));
    expect(reservationIn(await lead.read(one.id)).name).toBe('spare');
  });

  test('an unknown id is 404, another experiment’s 403, each with its item', async () => {
    const { service, lead } = await open();
    const experiment = await service.newExperiment('second');
    service.enrol(experiment);
    const theirs = await booked(await service.as('lead', experiment));
    const unknown = await batch(lead, [create(), { action: 'delete', id: 'con_x_1' }]);
    expect([outcome(unknown), refusedIn(unknown)]).toEqual(['404 not_found', [[1, undefined]]]);
    const foreign = await batch(lead, [{ action: 'delete', id: theirs.id }]);
    expect([outcome(foreign), refusedIn(foreign)]).toEqual(['403 wrong_experiment', [[0, undefined]]]);
  });

  test('dry run: the same answers without tokens, and nothing is left behind; a start of null is now', async () => {
    const { service, lead } = await open();
    service.moveTo(1000);
    const own = await booked(lead);
    const before = service.rows();
    const items = [
      { action: 'update', id: own.id, bandwidth: '1000' },
      create({ start_date: null, end_date: at(HOUR) }),
    ];
    const results = resultsIn(await batch(lead, items, 'dry_run=true', { 'idempotency-key': 'dry' }));
    expect(results).toMatchObject([
      { connectivity: { id: own.id, bandwidth: 1000 }, token: null },
      { connectivity: { bandwidth: 100, start_date: at(1000), end_date: at(HOUR) }, token: null },
    ]);
    expect(outcome(await batch(lead, [...items, create({ bandwidth: '1001' })], 'dry_run=true'))).toContain(
      '422',
    );
    expect(service.rows()).toEqual(before);
    expect(reservationIn(await lead.read(own.id))).toEqual(own);
  });

  test('earliest moves all creates by one offset, lengths unchanged', async () => {
    const { lead } = await open();
    await booked(lead, { bandwidth: '900', ...hours(1, 4) });
    const items = [
      create({ bandwidth: '500', ...hours(1, 2) }),
      create({ bandwidth: '600', ...hours(2, 3) }),
    ];
    expect(outcome(await batch(lead, items))).toContain('422');
    const results = resultsIn(await batch(lead, items, 'earliest=true'));
    expect(results.map(({ connectivity }) => connectivity)).toMatchObject([hours(4, 5), hours(5, 6)]);
  });

  test('the idempotency key covers the whole', async () => {
    const { service, lead } = await open();
    const own = await booked(lead);
    const key = { 'idempotency-key': 'whole' };
    const items = [create({ ...hours(3, 4) }), { action: 'delete', id: own.id }];
    const first = await batch(lead, items, '', key);
    const [made] = resultsIn(first);
    const before = service.rows();
    service.moveTo(10 * HOUR);
    const later = await service.as('lead');
    const again = await batch(later, items, '', key);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(resultsIn(again)).toMatchObject([
      { connectivity: made?.connectivity },
      { connectivity: null, token: null },
    ]);
    expect(service.rows()).toEqual(before);
    for (const [others, query] of [
      [items.toReversed(), ''],
      [items.slice(0, 1), ''],
      [items, 'earliest=true'],
    ] as const) {
      expect(outcome(await batch(later, others, query, key))).toBe('409 idempotency_key_reused');
    }
    expect(outcome(await later.book(booking(hours(3, 4)), '', key))).toBe('409 idempotency_key_reused');
  });

  test('each item needs the role that it would need alone', async () => {
    const { service, lead } = await open();
    const own = await booked(lead);
    const update = { action: 'update', id: own.id, bandwidth: '2' };
    const remove = { action: 'delete', id: own.id };
    const admin = await service.as('admin');
    const mixed = await batch(admin, [update, create({ start_date: 'x' }), remove, create()]);
    expect(outcome(mixed)).toBe('403 role_not_allowed');
    expect(refusedIn(mixed).map(([item]) => item)).toEqual([1, 3]);
    for (const role of ['member', 'viewer'] as const) {
      expect(outcome(await batch(await service.as(role), [update]))).toBe('403 role_not_allowed');
    }
    resultsIn(await batch(admin, [update, remove]));
    const { authorization } = lead.headers;
    const without = service.with({ authorization: String(authorization) });
    expect(outcome(await batch(without, [create()]))).toBe('403 token_missing');
  });
});

describe('hostile batches', async () => {
  const { service, lead } = await open();

  test.each<[string, unknown, string]>([
    ['no items', undefined, '422 items_invalid'],
    ['items that are no array', {}, '422 items_invalid'],
    ['an empty array', [], '422 items_invalid'],
    [`${MAX_ITEMS + 1} items`, Array.from({ length: MAX_ITEMS + 1 }, () => create()), '422 items_invalid'],
    ['an item that is no object', [create(), 7], '422 items_invalid'],
    ['no action', [{ ...create(), action: undefined }], '422 items_invalid'],
    ['another action', [{ ...create(), action: 'book' }], '422 items_invalid'],
    ['no id', [{ action: 'delete' }], '422 items_invalid'],
    ['an id that is an object', [{ action: 'update', id: {} }], '422 items_invalid'],
    ['a duration', [create({ duration: 'PT1H' })], '422 date_invalid Date'],
    ['a volume', [create({ volume: '5' })], '422 volume_invalid Bandwidth'],
    ['a start of now with a date', [create({ start_date: at(-1) })], '422 date_past Date'],
    ['equal sites', [create({ site2: 'be-gent1' })], '422 sites_equal Site'],
    ['an end before its start', [create(hours(2, 1))], '422 period_empty Date'],
  ])('%s', async (_, items, refused) => {
    const before = service.rows();
    expect(outcome(await batch(lead, items))).toBe(refused);
    expect(service.rows()).toEqual(before);
  });

  test.each(['', 'A', 'a'.repeat(65), 7, null])('a name of %j, in a request of its own too', async (name) => {
    expect(outcome(await lead.book(booking({ name })))).toBe('422 name_invalid');
    expect(outcome(await batch(lead, [create({ name })]))).toBe('422 name_invalid');
  });

  test('without tokens in the body, with a bad one, and with too many', async () => {
    const send = (tokens: unknown) => lead.send('POST', BATCH, { body: { items: [create()], tokens } });
    expect(outcome(await send(undefined))).toBe('422 tokens_invalid');
    expect(outcome(await send(['eyJ.x.y']))).toBe('403 token_invalid');
    expect(outcome(await send(Array(17).fill('x')))).toBe('422 tokens_invalid');
  });

  test('64 items with long members and a long token fit, and are done', async () => {
    const items = Array.from({ length: MAX_ITEMS }, (_, index) =>
      create({
        name: `n${index}-${'x'.repeat(50)}`,
        bandwidth: '1',
        ...hours(1 + 2 * index, 2 + 2 * index),
      }),
    );
    const tokens = Object.values(lead.headers).map((text) => text.replace('Bearer ', ''));
    const reply = await lead.send('POST', BATCH, { body: { items, tokens } });
    const results = resultsIn(reply);
    expect(new Set(results.map(({ connectivity }) => connectivity?.id)).size).toBe(MAX_ITEMS);
    const gone = results.map(({ connectivity }) => ({ action: 'delete', id: connectivity?.id }));
    resultsIn(await batch(lead, gone));
    expect(await liveIds(lead)).toEqual([]);
  });
});
