import { describe, expect, test } from 'vitest';
import {
  addressOf,
  at,
  booked,
  booking,
  HOUR,
  hours,
  openWithLead,
  outcome,
  problemIn,
  type Reply,
  reservationIn,
  smallTopology,
  tagsOf,
} from '../fixtures/service.ts';

test('where the link between two sites is full, a longer route is offered, and taken as it is', async () => {
  const { lead } = await openWithLead();
  await booked(lead, { bandwidth: '100000' });
  const refused = await lead.book();
  expect(outcome(refused)).toBe('422 bandwidth_unavailable Bandwidth');
  const [other] = problemIn(refused).alternatives ?? [];
  expect(other).toMatchObject({ kind: 'other_route', via: ['fr-lille', 'fr-slices'] });
  const { start_date, end_date, via } = other ?? {};
  const taken = await lead.book(booking({ start_date, end_date, via }));
  expect(outcome(taken)).toBe('201');
  expect(taken.body).toMatchObject({ via: ['fr-lille', 'fr-slices'] });
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
  const { service, lead } = await openWithLead({ topology: smallTopology(2) });
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

  test('to start at once: start_now for what starts at once, and true for the next second', async () => {
    await booked(lead, { start_date: at(2 * HOUR), end_date: at(3 * HOUR), bandwidth: '700' });
    const asked = booking({ start_date: null, end_date: at(4 * HOUR), bandwidth: '400' });
    const { alternatives = [], detail } = problemIn(await lead.book(asked, 'start_now=true'));
    expect(alternatives).toEqual([
      { kind: 'most_bandwidth', start_now: true, start_date: null, end_date: at(4 * HOUR), bandwidth: 300 },
      { kind: 'earliest', ...later, start_date: at(3 * HOUR), end_date: at(7 * HOUR), bandwidth: 400 },
      { kind: 'longest', start_now: true, start_date: null, end_date: at(2 * HOUR), bandwidth: 400 },
    ]);
    expect(detail[0]?.msg).toMatch(/300 Mbps, same period; .*; 400 Mbps for 2 h\.$/);
    service.moveTo(1000);
    const [first] = alternatives;
    const body = booking({ start_date: null, end_date: first?.end_date, bandwidth: '300' });
    expect(outcome(await lead.book(body, 'start_now=true&dry_run=true'))).toBe('200');
    service.moveTo(0);
  });

  test('tags and bandwidth: one detail for each limit, Bandwidth in every loc', async () => {
    const { detail } = problemIn(await lead.book(booking({ ...hours(60, 61), bandwidth: '500' })));
    expect(detail.length).toBeGreaterThan(1);
    for (const { loc } of detail) expect(loc).toEqual(['Bandwidth']);
  });
});
