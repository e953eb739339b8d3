import * as v from 'valibot';
import { beforeEach, describe, expect, test } from 'vitest';
import { Reservation } from '../../src/contract/reservation.ts';
import {
  at,
  booked,
  booking,
  CONNECTIVITY,
  DAY,
  HOUR,
  hours,
  MINUTE,
  NOW,
  openWithLead,
  outcome,
  type Reply,
  reservationIn,
  SECOND,
  SIGNED,
  smallTopology,
  verified,
} from '../fixtures/service.ts';

const ListPage = v.object({ items: v.array(Reservation), nextCursor: v.nullable(v.string()) });

async function pageOf(reply: Promise<Reply>): Promise<v.InferOutput<typeof ListPage>> {
  return v.parse(ListPage, (await reply).body);
}

/** Ids of a list, in its order. */
async function idsIn(reply: Promise<Reply>): Promise<string[]> {
  return (await pageOf(reply)).items.map(({ id }) => id);
}

describe('create', async () => {
  const { service, lead } = await openWithLead();
  beforeEach(() => service.moveTo(0));

  test('answers 201 with every field of the reservation', async () => {
    const reply = await lead.book();
    expect(outcome(reply)).toBe('201');
    expect(reply.headers.get('cache-control')).toBe('no-store');
    const reservation = reservationIn(reply);
    expect(reservation).toMatchObject({
      site1: 'be-gent1',
      site2: 'pl-poznan1',
      bandwidth: 100,
      start_date: at(HOUR),
      end_date: at(2 * HOUR),
      experiment_id: service.experiment,
      created_at: at(0),
    });
    expect(reservation.id).toMatch(/^con_offline\.localhost_[0-9a-hjkmnp-tv-z]{26}$/);
    expect(reservation.created_by).toMatch(/^user_offline\.localhost_/);
    const location = new URL(reply.headers.get('location') ?? '', `${service.base}${CONNECTIVITY}`);
    expect((await lead.send('GET', location.href)).body).toEqual(reply.body);
  });

  test('is signed on request, and verifies with the published key set', async () => {
    const reply = await lead.book(booking(), '', SIGNED);
    expect(outcome(reply)).toBe('201');
    const { iss, sub, iat, connectivity } = await verified(service, reply);
    expect({ iss, iat, sub }).toEqual({ iss: service.base, iat: NOW / SECOND, sub: connectivity.id });
    expect((await lead.read(sub)).body).toEqual(connectivity);
    expect(reply.headers.get('location')).toContain(sub);
  });

  test.each([
    ['APPLICATION/JWT', 'application/jwt'],
    ['application/json, application/jwt', 'application/jwt'],
    ['application/jwt;q=0.5, application/json;q=0.9', 'application/json'],
    ['application/jwt;q=0', 'application/json'],
    ['*/*', 'application/json'],
  ])('Accept: %s gives %s', async (accept, mediaType) => {
    const reply = await lead.book(booking(), '', { accept });
    expect(reply.headers.get('content-type')).toBe(mediaType);
  });

  test.each(['start_now=true', 'start_now=1', 'start_now=TRUE'])(
    '%s starts at the time of the request',
    async (query) => {
      service.moveTo(MINUTE + 5);
      const reservation = reservationIn(await lead.book(booking({ start_date: null }), query));
      expect(reservation).toMatchObject({ start_date: at(MINUTE + 5), created_at: at(MINUTE + 5) });
    },
  );

  test.each([
    ['now', { start_date: at(0) }, at(0), at(2 * HOUR)],
    [
      'an offset',
      { start_date: '2026-11-01T15:00:00+02:00', end_date: '2026-11-01T12:30:00-02:00' },
      at(HOUR),
      at(2.5 * HOUR),
    ],
    ['nine digits, cut off', { start_date: '2026-11-01T13:00:00.123999999Z' }, at(HOUR + 123), at(2 * HOUR)],
    ["the experiment's expiry", { end_date: at(90 * DAY) }, at(HOUR), at(90 * DAY)],
    ['one millisecond', { end_date: at(HOUR + 1) }, at(HOUR), at(HOUR + 1)],
  ])('takes a period with %s', async (_, changes, start, end) => {
    expect(await booked(lead, changes)).toMatchObject({ start_date: start, end_date: end });
  });

  test.each([
    ['as long as the reservation', 90 * DAY, 90 * DAY],
    ['rounded up to a second', 2 * HOUR + 1, 2 * HOUR + SECOND],
    ['900 s at least', HOUR + 1, 900 * SECOND + HOUR],
  ])('its token lasts %s', async (_, end, expected) => {
    service.moveTo(HOUR);
    const caller = await service.as('lead');
    const reply = await caller.book(booking({ end_date: at(end) }), '', SIGNED);
    const { exp } = await verified(service, reply);
    expect(exp).toBe((NOW + expected) / SECOND);
  });
});

describe('dry run', async () => {
  const { service, lead } = await openWithLead({ topology: smallTopology(1) });

  test('of a booking answers 200, in JSON, and leaves nothing', async () => {
    const reply = await lead.book(booking(), 'dry_run=true', SIGNED);
    expect(outcome(reply)).toBe('200');
    expect(reply.headers.has('location')).toBe(false);
    const { id } = reservationIn(reply);
    expect(service.rows()).toEqual({ reservations: 0, hops: 0 });
    expect(outcome(await lead.read(id))).toBe('404 not_found');
    expect(await idsIn(lead.list())).toEqual([]);
  });

  test('refuses as the booking would, with the same words', async () => {
    await lead.book(booking(hours(10, 11)));
    const dry = await lead.book(booking(hours(10, 11)), 'dry_run=true');
    expect(outcome(dry)).toBe('422 vlans_unavailable Bandwidth');
    expect(dry.body).toEqual((await lead.book(booking(hours(10, 11)))).body);
  });

  test('of an update shows the result and changes nothing', async () => {
    const before = await booked(lead, hours(20, 21));
    const reply = await lead.update(before.id, hours(22, 23), 'dry_run=true');
    expect(reservationIn(reply)).toMatchObject({ id: before.id, ...hours(22, 23) });
    expect((await lead.read(before.id)).body).toEqual(before);
  });
});

describe('read', async () => {
  const { service, lead } = await openWithLead();
  const reservation = await booked(lead);

  test('answers as creation did, to everyone who may read', async () => {
    for (const role of ['lead', 'admin', 'viewer'] as const) {
      expect((await (await service.as(role)).read(reservation.id)).body).toEqual(reservation);
    }
    const { connectivity } = await verified(service, await lead.read(reservation.id, SIGNED), reservation.id);
    expect(connectivity).toEqual(reservation);
  });

  test.each([
    ...['con_offline.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q', service.experiment, reservation.id.toUpperCase()],
    ...['\u0000', "' OR 1=1 --", '__proto__', 'x'.repeat(5000)],
  ])('of an unknown id: 404 for %s', async (id) => {
    expect(outcome(await lead.read(id))).toBe('404 not_found');
    expect(outcome(await lead.update(id, { tokens: [] }))).toBe('404 not_found');
    expect(outcome(await lead.delete(id))).toBe('404 not_found');
  });
});

describe('list', async () => {
  const { service, lead } = await openWithLead();
  const secondId = await service.newExperiment('second');
  const elsewhere = await booked(await service.as('lead', secondId));
  const ended = await booked(lead, hours(1, 2));
  service.moveTo(1);
  const active = await booked(lead, hours(1, 20));
  service.moveTo(2);
  const scheduled = await booked(lead, hours(10, 20));
  const deleted = await booked(lead, hours(1, 2));
  await lead.delete(deleted.id);
  const mine = [ended, active, scheduled];
  service.moveTo(2 * HOUR);
  const viewer = await service.as('viewer');
  const second = await service.as('lead', secondId);
  beforeEach(() => service.moveTo(2 * HOUR));

  test('has an ETag, which changes with what it holds', async () => {
    const { lead } = await openWithLead();
    const first = await lead.list();
    const known = { headers: { 'if-none-match': first.headers.get('etag') ?? '' } };
    expect((await lead.send('GET', CONNECTIVITY, known)).status).toBe(304);
    await booked(lead);
    expect((await lead.send('GET', CONNECTIVITY, known)).status).toBe(200);
  });

  test('holds every reservation of the experiment that was not deleted, and no other', async () => {
    const { items, nextCursor } = await pageOf(viewer.list());
    expect(nextCursor).toBeNull();
    expect(items).toEqual(expect.arrayContaining(mine));
    expect(items).toHaveLength(mine.length);
    expect(await idsIn(second.list())).toEqual([elsewhere.id]);
  });

  test('by state, which begins at its instant: active from the start on, ended from the end on', async () => {
    for (const [state, expected] of Object.entries({ scheduled, active, ended })) {
      expect(await idsIn(viewer.list(`state=${state}`))).toEqual([expected.id]);
    }
    service.moveTo(10 * HOUR);
    expect(await idsIn((await service.as('viewer')).list('state=scheduled'))).toEqual([]);
    service.moveTo(20 * HOUR);
    expect(await idsIn((await service.as('viewer')).list('state=ended'))).toHaveLength(mine.length);
  });

  test.each([1, 2])(
    'in pages of %d: each once, in the order of the whole, the oldest first',
    async (limit) => {
      const all = mine.map(({ id }) => id);
      expect(await idsIn(viewer.list())).toEqual(all);
      const seen: string[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const page: v.InferOutput<typeof ListPage> = await pageOf(
          viewer.list(`limit=${limit}&cursor=${cursor}`),
        );
        expect(page.items.length).toBeLessThanOrEqual(limit);
        seen.push(...page.items.map(({ id }) => id));
        cursor = page.nextCursor;
      }
      expect(seen).toEqual(all);
    },
  );

  test('a page outlives the deletion of the reservation that its cursor names', async () => {
    for (const _ of [1, 2]) await booked(second, hours(3, 4));
    const [first = '', ...rest] = await idsIn(second.list());
    const { nextCursor } = await pageOf(second.list('limit=1'));
    await second.delete(first);
    expect(await idsIn(second.list(`cursor=${nextCursor}`))).toEqual(rest);
  });

  test.each(['state=banana', 'state=', 'limit=0', 'limit=1.5', 'limit=1001', 'limit=', 'limit=ten'])(
    '?%s: 400',
    async (query) => {
      expect(outcome(await viewer.list(query))).toBe('400 request_invalid');
    },
  );

  test.each([
    'limit=1000',
    'cursor=nonsense',
    'cursor=%00',
    `cursor=${'x'.repeat(5000)}`,
    'unknown=1&unknown=2',
  ])('?%s: 200', async (query) => {
    expect(outcome(await viewer.list(query))).toBe('200');
  });
});

describe('delete', async () => {
  const { service, lead } = await openWithLead({ topology: smallTopology(1) });
  beforeEach(() => service.moveTo(0));

  test('answers 204 with no body; after that the reservation is gone', async () => {
    const { id } = await booked(lead);
    const reply = await lead.delete(id);
    expect({ status: reply.status, body: reply.body }).toEqual({ status: 204, body: '' });
    for (const later of [lead.read(id), lead.delete(id), lead.update(id, { tokens: [] })]) {
      expect(outcome(await later)).toBe('404 not_found');
    }
  });
});
