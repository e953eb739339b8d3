import { describe, expect, test } from 'vitest';
import {
  addressOf,
  at,
  booked,
  booking,
  DAY,
  HOUR,
  hours,
  openWithLead,
  outcome,
  problemIn,
  type Reply,
  reservationIn,
  SIGNED,
  smallTopology,
  tagsOf,
  verified,
} from '../fixtures/service.ts';

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

  test('answers as GET: signed on request; and needs no member at all', async () => {
    const before = await booked(lead, hours(100, 102));
    const signed = await lead.update(before.id, { bandwidth: '2', tokens: [] }, '', SIGNED);
    const { connectivity } = await verified(service, signed, before.id);
    expect(connectivity).toEqual({ ...before, bandwidth: 2 });
    expect((await lead.update(before.id, {})).body).toEqual(connectivity);
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
