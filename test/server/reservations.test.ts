import * as v from 'valibot';
import { beforeEach, describe, expect, test } from 'vitest';
import { Reservation } from '../../src/contract/reservation.ts';
import {
  addressOf,
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
  problemIn,
  type Reply,
  reservationIn,
  SECOND,
  SIGNED,
  smallTopology,
  tagsOf,
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

test('a dry run refuses as the booking would, with the same words', async () => {
  const { lead } = await openWithLead({ topology: smallTopology(1) });
  await lead.book(booking(hours(10, 11)));
  const dry = await lead.book(booking(hours(10, 11)), 'dry_run=true');
  expect(outcome(dry)).toBe('422 vlans_unavailable Bandwidth');
  expect(dry.body).toEqual((await lead.book(booking(hours(10, 11)))).body);
});

describe('read', async () => {
  const { service, lead } = await openWithLead();
  const reservation = await booked(lead);

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

describe('update', async () => {
  const { service, lead } = await openWithLead({ topology: smallTopology(2) });

  const CHANGES: [title: string, change: Record<string, unknown>][] = [
    ['longer', hours(100, 103)],
    ['shorter', { end_date: at(100.5 * HOUR) }],
    ['elsewhere in time', hours(200, 202)],
    ['more bandwidth', { bandwidth: '1000' }],
    ['all of it', { ...hours(150, 151), bandwidth: '900' }],
    ['the whole body of a create request', booking({ ...hours(101, 102), bandwidth: '2' })],
    ['its sites, the other way round', { site1: 'pl-poznan1', site2: 'be-gent1' }],
    ['one of its sites', { site2: 'be-gent1' }],
  ];

  test.each(CHANGES)('of %s: absent members keep their values, the tags stay', async (_, change) => {
    const before = await booked(lead, { ...hours(100, 102), bandwidth: '600' });
    const reply = await lead.update(before.id, { ...change, tokens: [] });
    expect(outcome(reply)).toBe('200');
    const { site1: _1, site2: _2, tokens: _3, bandwidth = '600', ...period } = change;
    const after = { ...before, ...period, bandwidth: Number(bandwidth) };
    expect(reply.body).toEqual(after);
    expect((await lead.read(before.id)).body).toEqual(after);
    await lead.delete(before.id);
  });

  const REFUSED: [title: string, change: Record<string, unknown>, expected: string][] = [
    ['more than is free', { bandwidth: '401' }, '422 bandwidth_unavailable Bandwidth'],
    ['a period without free tags', hours(100, 105), '422 vlans_unavailable Bandwidth'],
    ['other sites', { site1: 'be-gent1', site2: 'fr-lille' }, '422 sites_fixed Site'],
    ['a good change and other sites', { bandwidth: '2', site1: 'fr-lille' }, '422 sites_fixed Site'],
    ['a start in the past', { start_date: at(-1) }, '422 date_past Date'],
    ['an end before its start', { end_date: at(99 * HOUR) }, '422 period_empty Date'],
    ['an end past the expiry', { end_date: at(90 * DAY + 1) }, '422 experiment_ends_first Date'],
  ];

  test('row 38: an update that is refused changes nothing', async () => {
    const own = await booked(lead, { ...hours(100, 102), bandwidth: '300' });
    const others = [
      await booked(lead, { ...hours(101, 103), bandwidth: '600' }),
      await booked(lead, { ...hours(103, 106), bandwidth: '1' }),
      await booked(lead, { ...hours(103, 106), bandwidth: '1' }),
    ];
    for (const [title, change, expected] of REFUSED) {
      const rows = service.rows();
      expect([title, outcome(await lead.update(own.id, { ...change, tokens: [] }))]).toEqual([
        title,
        expected,
      ]);
      expect((await lead.read(own.id)).body).toEqual(own);
      expect(service.rows()).toEqual(rows);
    }
    for (const { id } of [own, ...others]) expect(outcome(await lead.delete(id))).toBe('204');
  });

  test('row 38: one that keeps or shortens never fails for its own use', async () => {
    // All of the link's bandwidth, and on a link with one tag all of its tags.
    const { lead: caller } = await openWithLead({ topology: smallTopology(1) });
    const own = await booked(caller, { ...hours(10, 12), bandwidth: '1000' });
    for (const change of [
      {},
      { bandwidth: '1000' },
      { end_date: at(11 * HOUR) },
      hours(10, 13),
      hours(11, 12),
    ]) {
      const reply = await caller.update(own.id, { ...change, tokens: [] });
      expect(tagsOf(reservationIn(reply))).toEqual(tagsOf(own));
    }
  });
});

describe('update of a reservation that has started', async () => {
  const { service, lead: early } = await openWithLead();

  test.each([
    ['a later end', { end_date: at(11 * HOUR) }, '200'],
    ['the same start, spelled otherwise', { start_date: '2026-11-01T14:00:00+01:00' }, '200'],
    ['the whole body, its start unchanged', booking(hours(1, 9)), '200'],
    ['an end that is just to come', { end_date: at(2 * HOUR + 1) }, '200'],
    ['another start in the past', { start_date: at(HOUR + 1) }, '422 reservation_started Date'],
    ['the whole body, its start moved', booking(hours(3, 9)), '422 reservation_started Date'],
    ['an end that is now', { end_date: at(2 * HOUR) }, '422 date_past Date'],
  ])('with %s: %3$s', async (_, change, expected) => {
    service.moveTo(0);
    const own = await booked(early, hours(1, 10));
    service.moveTo(2 * HOUR);
    const lead = await service.as('lead');
    expect(outcome(await lead.update(own.id, { tokens: [], ...change }))).toBe(expected);
    const after = reservationIn(await lead.read(own.id));
    if (expected === '200') expect(tagsOf(after)).toEqual(tagsOf(own));
    else expect(after).toEqual(own);
  });

  test.each([
    ['a millisecond before its start', HOUR - 1, '200', at(HOUR - 1)],
    ['from its start on', HOUR, '200', at(HOUR)],
    ['once it has begun', HOUR + 1, '422 reservation_started Date', at(HOUR)],
  ])('start_now=true moves a start only before it: %s', async (_, now, expected, start_date) => {
    service.moveTo(0);
    const own = await booked(early, hours(1, 10));
    service.moveTo(now);
    const lead = await service.as('lead');
    const reply = await lead.update(own.id, { start_date: null, tokens: [] }, 'start_now=true');
    expect(outcome(reply)).toBe(expected);
    expect(reservationIn(await lead.read(own.id))).toEqual({ ...own, start_date });
    expect(outcome(await lead.update(own.id, { start_date: at(5 * HOUR), tokens: [] }))).toBe(
      '422 reservation_started Date',
    );
  });

  test('is refused once it has ended, at its end on the millisecond', async () => {
    service.moveTo(0);
    const own = await booked(early, hours(1, 3));
    service.moveTo(3 * HOUR - 1);
    const lead = await service.as('lead');
    expect(outcome(await lead.update(own.id, { tokens: [] }))).toBe('200');
    service.moveTo(3 * HOUR);
    expect(outcome(await lead.update(own.id, { tokens: [] }))).toBe('422 reservation_ended Date');
    expect((await lead.read(own.id)).body).toEqual(own);
  });
});

describe('a description', async () => {
  const { service, lead } = await openWithLead();
  const said = async (id: string): Promise<unknown> =>
    (await verified(service, await lead.read(id, SIGNED), id)).connectivity.description;

  test('is kept and signed; an update changes it, leaves it, or takes it away, and lists have it', async () => {
    const { id } = await booked(lead, { ...hours(1, 2), name: 'told', description: 'A copy, “nightly” 🙂' });
    expect(await said(id)).toBe('A copy, “nightly” 🙂');
    expect(outcome(await lead.update(id, { bandwidth: '5', tokens: [] }))).toBe('200');
    expect(await said(id)).toBe('A copy, “nightly” 🙂');
    const changed = reservationIn(await lead.update(id, { description: 'Another', tokens: [] }));
    expect(changed).toMatchObject({ description: 'Another', name: 'told', bandwidth: 5 });
    expect((await lead.list()).body).toMatchObject({ items: [{ description: 'Another' }] });
    expect(reservationIn(await lead.update(id, { description: '', tokens: [] }))).not.toHaveProperty(
      'description',
    );
    expect(await said(id)).toBeUndefined();
  });

  test.each(['x'.repeat(201), 'two\nlines', 'a\u202eb', 7])(
    '%j is 422 description_invalid',
    async (description) => {
      const { id } = await booked(lead, hours(5, 6));
      expect(outcome(await lead.book(booking({ ...hours(7, 8), description })))).toBe(
        '422 description_invalid',
      );
      expect(outcome(await lead.update(id, { description, tokens: [] }))).toBe('422 description_invalid');
      await lead.delete(id);
    },
  );

  test('of 200 characters beyond the first plane is kept whole, and one that is empty is none', async () => {
    expect(await booked(lead, { ...hours(3, 4), description: '' })).not.toHaveProperty('description');
    const description = '🙂'.repeat(200);
    expect(await booked(lead, { ...hours(9, 10), description })).toMatchObject({ description });
  });
});

describe('a link has no direction', async () => {
  const { lead } = await openWithLead({ topology: smallTopology(2) });
  /** smallTopology(2): S- and C-tags at be-gent1, then at pl-poznan1. */
  const gent = { s: [100, 101], c: [200, 201] };
  const poznan = { s: [300, 301], c: [400, 401] };

  test('the reply keeps the order and each tag follows its site; both ways round its tags are used up', async () => {
    for (const [site1, site2, near, far] of [
      ['be-gent1', 'pl-poznan1', gent, poznan],
      ['pl-poznan1', 'be-gent1', poznan, gent],
    ] as const) {
      const reservation = await booked(lead, { site1, site2 });
      expect(reservation).toMatchObject({ site1, site2 });
      const [site1S, site1C, site2S, site2C] = tagsOf(reservation);
      expect(near.s).toContain(site1S);
      expect(near.c).toContain(site1C);
      expect(far.s).toContain(site2S);
      expect(far.c).toContain(site2C);
      expect((await lead.read(reservation.id)).body).toEqual(reservation);
    }
    expect(outcome(await lead.book())).toBe('422 vlans_unavailable Bandwidth');
  });

  test('a refusal names the sites in the order of its request, or of its reservation', async () => {
    const asked = { ...hours(5, 6), site1: 'pl-poznan1', site2: 'be-gent1' };
    const messages = async (reply: Promise<Reply>) => problemIn(await reply).detail.map(({ msg }) => msg);
    const said = [expect.stringMatching(/^Not enough free bandwidth between pl-poznan1 and be-gent1\./)];
    expect(await messages(lead.book(booking({ ...asked, bandwidth: '5000' })))).toEqual(said);
    const { id } = await booked(lead, asked);
    expect(await messages(lead.update(id, { bandwidth: '5000' }))).toEqual(said);
    const items = [
      { action: 'update', id, bandwidth: '5000' },
      { action: 'create', ...booking({ ...asked, bandwidth: '5000' }) },
    ];
    const batch = lead.send('POST', addressOf('batchReservations'), { body: { items, tokens: [] } });
    expect(await messages(batch)).toEqual([...said, ...said]);
    expect(outcome(await lead.delete(id))).toBe('204');
  });
});

describe('row 37: periods are half-open', async () => {
  const { service, lead } = await openWithLead({ topology: smallTopology(1) });
  const first = await booked(lead, hours(10, 11));

  test.each([
    ['ends as it starts', hours(9, 10), '201'],
    ['starts as it ends', hours(11, 12), '201'],
    [
      'overlaps it by a millisecond at its start',
      { end_date: at(10 * HOUR + 1) },
      '422 vlans_unavailable Bandwidth',
    ],
    [
      'overlaps it by a millisecond at its end',
      { start_date: at(11 * HOUR - 1), end_date: at(13 * HOUR) },
      '422 vlans_unavailable Bandwidth',
    ],
    ['has no length', hours(12, 12), '422 period_empty Date'],
  ])('what %s', async (_, period, due) => {
    const before = service.rows();
    const reply = await lead.book(booking(period));
    expect(outcome(reply)).toBe(due);
    if (due !== '201') {
      expect(service.rows()).toEqual(before);
      return;
    }
    expect(tagsOf(reservationIn(reply))).toEqual(tagsOf(first));
    await lead.delete(reservationIn(reply).id);
  });
});

describe('refusals name what would be accepted', async () => {
  // 1000 Mbps and two tags. Ten hours from now 600 Mbps are taken for an hour, then both tags, then both.
  const { lead } = await openWithLead({ topology: smallTopology(2) });
  await booked(lead, { ...hours(10, 11), bandwidth: '600' });
  for (const bandwidth of ['1', '1']) await booked(lead, { ...hours(50, 51), bandwidth });
  for (const bandwidth of ['600', '1']) await booked(lead, { ...hours(60, 61), bandwidth });

  /** The refusal's facts. That each alternative is accepted: test/cli/reservation/pasted-alternatives.test.ts. */
  async function refusedFor(body: Record<string, unknown>) {
    const { detail, ...facts } = problemIn(await lead.book(body));
    return { ...facts, msg: detail[0]?.msg ?? '' };
  }
  const later = { start_now: false } as const;

  test('bandwidth: less now, as much later, or for a shorter time', async () => {
    const asked = booking({ ...hours(9, 12), bandwidth: '500' });
    const { alternatives, limits, free, msg } = await refusedFor(asked);
    expect(alternatives).toEqual([
      { kind: 'most_bandwidth', ...later, ...hours(9, 12), bandwidth: 400 },
      { kind: 'earliest', ...later, ...hours(11, 14), bandwidth: 500 },
      { kind: 'longest', ...later, ...hours(9, 10), bandwidth: 500 },
    ]);
    expect(limits).toEqual([
      { limit: 'bandwidth', site: null, layer: null, capacity: 1000, free: 400, ...hours(10, 11) },
    ]);
    expect(free?.map(({ bandwidth }) => bandwidth)).toEqual([
      ...[...Array(6).fill(1000), ...Array(8).fill(400), ...Array(6).fill(1000)],
    ]);
    expect(msg).toBe(
      `Not enough free bandwidth between be-gent1 and pl-poznan1. 400 of the 500 Mbps asked for are free from ${at(10 * HOUR)} to ${at(11 * HOUR)}. Would be accepted: 400 Mbps, same period; 500 Mbps from ${at(11 * HOUR)}; 500 Mbps for 1 h.`,
    );
  });

  test('tags: the same later, in the words of the API', async () => {
    const { alternatives, limits, msg } = await refusedFor(booking({ ...hours(50, 51), bandwidth: '1' }));
    expect(alternatives).toEqual([{ kind: 'earliest', ...later, ...hours(51, 52), bandwidth: 1 }]);
    expect(msg).toMatch(/^no available vlans between the two sites/i);
    expect(limits).toHaveLength(4);
    expect(limits?.[0]).toEqual({
      limit: 'tags',
      site: 'be-gent1',
      layer: 'S',
      capacity: 2,
      free: 0,
      ...hours(50, 51),
    });
  });
});
