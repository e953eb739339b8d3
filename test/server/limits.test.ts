import { expect, test } from 'vitest';
import { IDEMPOTENCY_KEY_HEADER } from '../../src/contract/routes.ts';
import {
  addressOf,
  at,
  booked,
  booking,
  type Caller,
  HOUR,
  hours,
  MINUTE,
  openService,
  openWithLead,
  outcome,
  problemIn,
  SECOND,
  smallTopology,
} from '../fixtures/service.ts';

const LINK = { site1: 'be-gent1', site2: 'pl-poznan1' };

test('row 59: a share of the bandwidth: 422 with the held and the allowed bandwidth, and an accepted alternative', async () => {
  const { lead } = await openWithLead({ maxShare: 1 });
  await booked(lead, { ...LINK, bandwidth: '600' });
  const reply = await lead.book(booking({ ...LINK, bandwidth: '500' }));
  expect(outcome(reply)).toBe('422 share_exceeded Bandwidth');
  const { detail, limits, alternatives } = problemIn(reply);
  expect(detail[0]?.msg).toContain('One project may have 1 Gbps of this link, and yours has 400 Mbps left');
  expect(limits).toEqual([
    {
      limit: 'share',
      site: null,
      layer: null,
      capacity: 1000,
      free: 400,
      tenant: 'project',
      start_date: at(HOUR),
      end_date: at(2 * HOUR),
    },
  ]);
  const later = { start_now: false, start_date: at(2 * HOUR), end_date: at(3 * HOUR) };
  expect(alternatives).toEqual([
    { ...later, kind: 'most_bandwidth', bandwidth: 400, start_date: at(HOUR), end_date: at(2 * HOUR) },
    { ...later, kind: 'earliest', bandwidth: 500 },
  ]);
});

test('row 59: a share of the tags names the site and the layer', async () => {
  const { lead } = await openWithLead({ maxShare: 50, topology: smallTopology(4) });
  for (let held = 0; held < 2; held += 1) await booked(lead, { bandwidth: '1' });
  const reply = await lead.book(booking({ bandwidth: '1' }));
  expect(outcome(reply)).toBe('422 share_exceeded Bandwidth');
  expect(problemIn(reply)).toMatchObject({
    limits: [{ limit: 'share', site: 'be-gent1', layer: 'S', capacity: 2, free: 0 }],
  });
});

test('row 59: a limit on live reservations: 422 without alternatives, and an update is still accepted', async () => {
  const { lead } = await openWithLead({ maxLive: 1 });
  const { id } = await booked(lead);
  const reply = await lead.book();
  expect(outcome(reply)).toBe('422 share_exceeded Bandwidth');
  expect(problemIn(reply)).toMatchObject({
    limits: [
      {
        ...{ limit: 'share', site: null, layer: null, capacity: 1, free: 0, tenant: 'project' },
        ...{ start_date: null, end_date: null },
      },
    ],
  });
  expect(problemIn(reply).alternatives).toBeUndefined();
  expect(outcome(await lead.update(id, { bandwidth: '200' }))).toBe('200');
  expect(outcome(await lead.delete(id))).toBe('204');
  expect(outcome(await lead.book())).toBe('201');
});

test('row 59: a reservation over a route counts on each of its links, and as one', async () => {
  const { lead } = await openWithLead({ maxShare: 50, maxLive: 2 });
  const route = { site1: 'be-gent1', site2: 'gr-uth' };
  await booked(lead, { ...route, bandwidth: '400' });
  for (const asked of [route, { ...route, site1: 'hu-sztaki' }]) {
    const reply = await lead.book(booking({ ...asked, bandwidth: '101' }));
    expect(outcome(reply)).toBe('422 share_exceeded Bandwidth');
    expect(problemIn(reply)).toMatchObject({ limits: [{ limit: 'share', capacity: 500, free: 100 }] });
  }
  await booked(lead, { ...route, bandwidth: '100' });
  expect(outcome(await lead.book(booking({ ...LINK, bandwidth: '1' })))).toBe('422 share_exceeded Bandwidth');
});

test('ten experiments of one project hold what one may hold, also after a restart (THREATS.md 92)', async () => {
  const service = await openService({ maxShare: 10, topology: smallTopology(40) });
  const outcomes: string[] = [];
  for (let made = 0; made < 10; made += 1) {
    const lead = await service.as('lead', await service.newExperiment(`free-${made}`));
    outcomes.push(outcome(await lead.book(booking({ ...LINK, bandwidth: '50' }))));
    if (made === 0) await service.restart();
  }
  const refused = '422 share_exceeded Bandwidth';
  expect(outcomes).toEqual(['201', '201', ...Array.from({ length: 8 }, () => refused)]);
  // In a batch, and when the free starts are asked for, it is no different.
  const lead = await service.as('lead', await service.newExperiment('last'));
  const item = { action: 'create', ...LINK, bandwidth: '1', start_date: at(HOUR), end_date: at(2 * HOUR) };
  const body = { items: [item], tokens: [] };
  expect(outcome(await lead.send('POST', addressOf('batchReservations'), { body }))).toBe(refused);
  const asked = `?bandwidth=1&duration=PT1H&start=${at(HOUR)}&end=${at(3 * HOUR)}`;
  expect((await lead.send('GET', `${addressOf('linkSlots')}${asked}`)).body).toMatchObject({
    items: [{ first_start_date: at(2 * HOUR) }],
  });
});

const batchOf = (...items: readonly object[]) => ({ items, tokens: [] });
const item = { action: 'create', site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: '1', ...hours(1, 2) };
const sendBatch = (caller: Caller, body: object) =>
  caller.send('POST', addressOf('batchReservations'), { body });

test('updates that are granted one after the other: 429 with Retry-After, and they go on when it is over (THREATS.md 88)', async () => {
  const { service, lead } = await openWithLead({ maxChanges: 4 });
  const { id } = await booked(lead);
  for (let bandwidth = 1; bandwidth <= 3; bandwidth += 1) {
    expect(outcome(await lead.update(id, { bandwidth: String(bandwidth) }))).toBe('200');
  }
  const refused = await lead.update(id, { bandwidth: '9' });
  expect(outcome(refused)).toBe('429 too_many_requests');
  expect(refused.headers.get('retry-after')).toBe(String((15 * MINUTE) / SECOND));
  expect(problemIn(refused).detail[0]?.msg).toBe(
    'You have asked for 4 changes within an hour. Try again in 15 min.',
  );
  expect(outcome(await lead.book())).toBe('429 too_many_requests');
  expect(outcome(await sendBatch(lead, batchOf(item)))).toBe('429 too_many_requests');
  expect((await lead.read(id)).body).toMatchObject({ bandwidth: 3 });
  expect(service.rows().reservations).toBe(1);

  service.moveTo(15 * MINUTE - SECOND);
  const again = await service.as('lead');
  expect(outcome(await again.update(id, { bandwidth: '9' }))).toBe('429 too_many_requests');
  service.moveTo(15 * MINUTE);
  const later = await service.as('lead');
  expect(outcome(await later.update(id, { bandwidth: '9' }))).toBe('200');
  expect(outcome(await later.update(id, { bandwidth: '8' }))).toBe('429 too_many_requests');
});

test('a user has one budget in all experiments, and an experiment one for all users', async () => {
  const service = await openService({ maxChanges: 2 });
  const second = await service.newExperiment('second');
  const [lead, leadInSecond, admin] = [
    await service.as('lead'),
    await service.as('lead', second),
    await service.as('admin'),
  ];
  const { id } = await booked(lead);
  await booked(leadInSecond);
  expect(outcome(await leadInSecond.book())).toBe('429 too_many_requests');
  expect(outcome(await admin.update(id, { bandwidth: '1' }))).toBe('200');
  const refused = await admin.update(id, { bandwidth: '2' });
  expect(problemIn(refused).detail[0]?.msg).toMatch(/^This experiment has asked for 2 changes/);
});

test('what a link has not decided does not count, and a deletion is never refused', async () => {
  const { lead } = await openWithLead({ maxChanges: 3 });
  const keyed = { [IDEMPOTENCY_KEY_HEADER]: 'the-only-one' };
  const { id } = await booked(lead, { name: 'first' });
  for (let time = 0; time < 5; time += 1) {
    expect(outcome(await lead.book(booking(), 'dry_run=true'))).toBe('200');
    expect(outcome(await lead.update(id, { bandwidth: '7' }, 'dry_run=true'))).toBe('200');
    expect(outcome(await lead.book(booking({ end_date: 'soon' })))).toBe('422 date_invalid Date');
    expect(outcome(await lead.book(booking({ name: 'first' })))).toBe('409 name_taken');
    expect(outcome(await lead.update(id, { end_date: 'soon' }))).toBe('422 date_invalid Date');
  }
  // Replays of one create count once.
  for (let time = 0; time < 5; time += 1) {
    expect(outcome(await lead.book(booking(), '', keyed))).toBe('201');
  }
  const other = await booked(lead);
  expect(outcome(await lead.book())).toBe('429 too_many_requests');
  expect(outcome(await lead.book(booking(), '', keyed))).toBe('201');
  expect(outcome(await lead.delete(id))).toBe('204');
  expect(outcome(await sendBatch(lead, batchOf({ action: 'delete', id: other.id })))).toBe('200');
});

test('what a link refuses counts: it leaves a row in the audit', async () => {
  const { lead } = await openWithLead({ maxChanges: 4, topology: smallTopology(2) });
  const { id } = await booked(lead, { bandwidth: '1000' });
  expect(outcome(await lead.book())).toBe('422 bandwidth_unavailable Bandwidth');
  expect(outcome(await lead.update(id, { bandwidth: '2000' }))).toBe('422 bandwidth_unavailable Bandwidth');
  expect(outcome(await sendBatch(lead, batchOf(item)))).toBe('422 bandwidth_unavailable Bandwidth');
  expect(outcome(await lead.book())).toBe('429 too_many_requests');
});

test('each item of a batch counts, and one that is larger than the budget is done when nothing was used', async () => {
  const { service, lead } = await openWithLead({ maxChanges: 2 });
  expect(outcome(await sendBatch(lead, batchOf(item, item, item)))).toBe('200');
  expect((await lead.book()).headers.get('retry-after')).toBe(String(HOUR / SECOND));
  service.moveTo(HOUR);
  await booked(await service.as('lead'), hours(2, 3));
});

test('a clock that was set back keeps no one out for longer than an hour', async () => {
  const service = await openService({ maxChanges: 1 });
  service.moveTo(10 * HOUR);
  await booked(await service.as('lead'), hours(11, 12));
  service.moveTo(0);
  await booked(await service.as('lead'));
  expect(outcome(await (await service.as('lead')).book())).toBe('429 too_many_requests');
});
