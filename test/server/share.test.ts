import { expect, test } from 'vitest';
import {
  addressOf,
  at,
  booked,
  booking,
  HOUR,
  openService,
  openWithLead,
  outcome,
  problemIn,
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
