import { expect, test } from 'vitest';
import { IDEMPOTENCY_KEY_HEADER } from '../../src/contract/routes.ts';
import {
  addressOf,
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
