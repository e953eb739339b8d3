import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import type { Topology } from '../../src/contract/links.ts';
import { Reservation } from '../../src/contract/reservation.ts';
import { localKeySet, readKeySet } from '../../src/tokens/key-set.ts';
import { verifyConnectivityToken } from '../../src/tokens/verify.ts';
import {
  at,
  booking,
  type Caller,
  CONNECTIVITY,
  DAY,
  HOUR,
  MINUTE,
  NOW,
  openService,
  outcome,
  problemIn,
  type Reply,
  reservationIn,
  SECOND,
  SIGNED,
  smallTopology,
  type TestService,
} from '../fixtures/service.ts';

const ListPage = v.object({ items: v.array(Reservation), nextCursor: v.nullable(v.string()) });

async function pageOf(reply: Promise<Reply>): Promise<v.InferOutput<typeof ListPage>> {
  return v.parse(ListPage, (await reply).body);
}

/** Ids of a list, in its order. */
async function idsIn(reply: Promise<Reply>): Promise<string[]> {
  return (await pageOf(reply)).items.map(({ id }) => id);
}

async function booked(caller: Caller, changes: Record<string, unknown> = {}): Promise<Reservation> {
  return reservationIn(await caller.book(booking(changes)));
}

function tagsOf({ site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag }: Reservation): number[] {
  return [site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag];
}

/** A period of so many hours after now, as members of a body. */
function hours(start: number, end: number): { start_date: string; end_date: string } {
  return { start_date: at(start * HOUR), end_date: at(end * HOUR) };
}

/** The reservation in a signed answer, verified with the key set that the service publishes. */
async function verified(service: TestService, reply: Reply, expected?: string) {
  expect(reply.headers.get('content-type')).toBe('application/jwt');
  const keys = localKeySet(readKeySet((await service.send('GET', '/.well-known/jwks.json')).body));
  const trust = { issuers: new Map([[service.base, keys]]), now: service.now };
  return verifyConnectivityToken(String(reply.body), trust, expected);
}

describe('create', async () => {
  const service = await openService();
  const lead = await service.as('lead');

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
  });

  test('gives in Location where it is read', async () => {
    const reply = await lead.book();
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
    ['application/jwt', 'application/jwt'],
    ['APPLICATION/JWT', 'application/jwt'],
    ['application/json, application/jwt', 'application/jwt'],
    ['application/jwt;q=0.5, application/json;q=0.9', 'application/json'],
    ['application/jwt;q=0', 'application/json'],
    ['application/json', 'application/json'],
    ['*/*', 'application/json'],
    ['text/html', 'application/json'],
    ['', 'application/json'],
  ])('Accept: %s gives %s', async (accept, mediaType) => {
    const reply = await lead.book(booking(), '', { accept });
    expect(reply.headers.get('content-type')).toBe(mediaType);
  });

  test.each([
    ['start_now=true', 'true'],
    ['start_now=1', '1'],
    ['start_now=TRUE', 'TRUE'],
  ])('%s starts at the time of the request', async (query) => {
    service.moveTo(MINUTE + 5);
    const reservation = reservationIn(await lead.book(booking({ start_date: null }), query));
    service.moveTo(0);
    expect(reservation).toMatchObject({ start_date: at(MINUTE + 5), created_at: at(MINUTE + 5) });
  });

  test.each([
    ['now', { start_date: at(0) }, at(0), at(2 * HOUR)],
    [
      'an offset',
      { start_date: '2026-11-01T15:00:00+02:00', end_date: '2026-11-01T12:30:00-02:00' },
      at(HOUR),
      at(2.5 * HOUR),
    ],
    ['no fraction, small letters', { start_date: '2026-11-01t13:00:00z' }, at(HOUR), at(2 * HOUR)],
    ['one digit', { start_date: '2026-11-01T13:00:00.5Z' }, at(HOUR + 500), at(2 * HOUR)],
    ['nine digits, cut off', { start_date: '2026-11-01T13:00:00.123999999Z' }, at(HOUR + 123), at(2 * HOUR)],
    ["the experiment's expiry", { end_date: at(90 * DAY) }, at(HOUR), at(90 * DAY)],
    ['one millisecond', { end_date: at(HOUR + 1) }, at(HOUR), at(HOUR + 1)],
  ])('takes a period with %s', async (_, changes, start, end) => {
    expect(await booked(lead, changes)).toMatchObject({ start_date: start, end_date: end });
  });

  test.each([
    ['1', 1],
    ['0010', 10],
  ])('reads the bandwidth %s as %d Mbps', async (bandwidth, expected) => {
    expect(await booked(lead, { bandwidth })).toMatchObject({ bandwidth: expected });
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
    service.moveTo(0);
    expect(exp).toBe((NOW + expected) / SECOND);
  });
});

describe('dry run', async () => {
  const service = await openService({ topology: smallTopology(1) });
  const lead = await service.as('lead');

  test('of a booking answers 200, in JSON, and leaves nothing', async () => {
    const reply = await lead.book(booking(), 'dry_run=true', SIGNED);
    expect(outcome(reply)).toBe('200');
    expect(reply.headers.has('location')).toBe(false);
    const { id } = reservationIn(reply);
    expect(service.rows()).toEqual({ reservations: 0, tagHolds: 0 });
    expect(outcome(await lead.read(id))).toBe('404 not_found');
    expect(await idsIn(lead.list())).toEqual([]);
  });

  test('refuses what a booking would be refused, with the same words', async () => {
    await lead.book(booking(hours(10, 11)));
    const dry = await lead.book(booking(hours(10, 11)), 'dry_run=true');
    expect(outcome(dry)).toBe('422 vlans_unavailable Bandwidth');
    expect(dry.body).toEqual((await lead.book(booking(hours(10, 11)))).body);
  });

  test('of an update shows what would be and leaves what is', async () => {
    const before = await booked(lead, hours(20, 21));
    const reply = await lead.update(before.id, hours(22, 23), 'dry_run=true');
    expect(reservationIn(reply)).toMatchObject({ id: before.id, ...hours(22, 23) });
    expect((await lead.read(before.id)).body).toEqual(before);
  });
});

describe('a link has no direction', async () => {
  const service = await openService({ topology: smallTopology(2) });
  const lead = await service.as('lead');
  /** smallTopology(2): S- and C-tags at be-gent1, then at pl-poznan1. */
  const gent = { s: [100, 101], c: [200, 201] };
  const poznan = { s: [300, 301], c: [400, 401] };

  test.each([
    ['be-gent1', 'pl-poznan1', gent, poznan],
    ['pl-poznan1', 'be-gent1', poznan, gent],
  ])('%s – %s: the reply keeps the order and each tag follows its site', async (site1, site2, near, far) => {
    const reservation = await booked(lead, { site1, site2 });
    expect(reservation).toMatchObject({ site1, site2 });
    const [site1S, site1C, site2S, site2C] = tagsOf(reservation);
    expect(near.s).toContain(site1S);
    expect(near.c).toContain(site1C);
    expect(far.s).toContain(site2S);
    expect(far.c).toContain(site2C);
    expect((await lead.read(reservation.id)).body).toEqual(reservation);
  });

  test('both ways round are one link: its tags are used up', async () => {
    expect(outcome(await lead.book())).toBe('422 vlans_unavailable Bandwidth');
  });
});

/** What runs out: the one tag of each kind, or the 1000 Mbps of a link with tags to spare. */
const SCARCE: [what: string, topology: Topology, bandwidth: string, expected: string][] = [
  ['tags', smallTopology(1), '1', '422 vlans_unavailable Bandwidth'],
  ['bandwidth', smallTopology(9), '501', '422 bandwidth_unavailable Bandwidth'],
];

describe.each(SCARCE)('row 37: periods are half-open, %s', async (_, topology, bandwidth, expected) => {
  const service = await openService({ topology });
  const lead = await service.as('lead');
  const first = await booked(lead, { ...hours(10, 11), bandwidth });

  test.each([
    ['ends as it starts', hours(9, 10)],
    ['starts as it ends', hours(11, 12)],
  ])('what %s shares its tags and bandwidth', async (_, period) => {
    expect(tagsOf(await booked(lead, { ...period, bandwidth }))).toEqual(tagsOf(first));
  });

  test.each([
    ['a millisecond at its start', { start_date: at(8 * HOUR), end_date: at(9 * HOUR + 1) }],
    ['a millisecond at its end', { start_date: at(12 * HOUR - 1), end_date: at(13 * HOUR) }],
    ['a millisecond inside', { start_date: at(10.5 * HOUR), end_date: at(10.5 * HOUR + 1) }],
    ['all of it and more', hours(8, 13)],
  ])('an overlap of %s is refused', async (_, period) => {
    const before = service.rows();
    expect(outcome(await lead.book(booking({ ...period, bandwidth })))).toBe(expected);
    expect(service.rows()).toEqual(before);
  });

  test('a period of no length is refused', async () => {
    expect(outcome(await lead.book(booking(hours(12, 12))))).toBe('422 period_empty Date');
  });
});

describe('refusals name what would be accepted', async () => {
  // 1000 Mbps and two tags. Ten hours from now 600 Mbps are taken for an hour, then both tags, then both.
  const service = await openService({ topology: smallTopology(2) });
  const lead = await service.as('lead');
  await booked(lead, { ...hours(10, 11), bandwidth: '600' });
  for (const bandwidth of ['1', '1']) await booked(lead, { ...hours(50, 51), bandwidth });
  for (const bandwidth of ['600', '1']) await booked(lead, { ...hours(60, 61), bandwidth });

  /** Every alternative of a refusal is accepted when it is sent. */
  async function alternativesOf(body: Record<string, unknown>, query = '') {
    const { alternatives = [], detail } = problemIn(await lead.book(body, query));
    for (const { bandwidth, start_date, end_date } of alternatives) {
      const accepted = await lead.book({ ...body, bandwidth: String(bandwidth), start_date, end_date });
      expect(outcome(accepted)).toBe('201');
      await lead.delete(reservationIn(accepted).id);
    }
    return { alternatives, msg: detail[0]?.msg ?? '' };
  }

  test('bandwidth: less now, or as much later', async () => {
    const { alternatives, msg } = await alternativesOf(booking({ ...hours(10, 12), bandwidth: '500' }));
    expect(alternatives).toEqual([
      { ...hours(10, 12), bandwidth: 400 },
      { ...hours(11, 13), bandwidth: 500 },
    ]);
    expect(msg).toContain('600 + 500 = 1100 Mbps of 1000');
    expect(msg).toContain(`from ${at(10 * HOUR)} to ${at(11 * HOUR)}`);
  });

  test('more than the link has: never later', async () => {
    const { alternatives } = await alternativesOf(booking({ ...hours(20, 21), bandwidth: '1001' }));
    expect(alternatives).toEqual([{ ...hours(20, 21), bandwidth: 1000 }]);
  });

  test('tags: the same later, in the words of SPEC.md', async () => {
    const { alternatives, msg } = await alternativesOf(booking({ ...hours(50, 51), bandwidth: '1' }));
    expect(alternatives).toEqual([{ ...hours(51, 52), bandwidth: 1 }]);
    expect(msg).toMatch(/no available vlans between the two sites/i);
  });

  test('tags and bandwidth: one detail for each limit, Bandwidth in every loc', async () => {
    const reply = await lead.book(booking({ ...hours(60, 61), bandwidth: '500' }));
    expect(outcome(reply)).toBe('422 bandwidth_unavailable Bandwidth');
    const { detail } = problemIn(reply);
    expect(detail.length).toBeGreaterThan(1);
    expect(detail.map(({ loc }) => loc)).toEqual(detail.map(() => ['Bandwidth']));
  });

  test('nothing is offered beyond the expiry of the experiment', async () => {
    const end = 90 * 24;
    await booked(lead, { ...hours(end - 1, end), bandwidth: '1000' });
    const { alternatives } = await alternativesOf(booking({ ...hours(end - 1, end), bandwidth: '1' }));
    expect(alternatives).toEqual([]);
  });

  test('an update gets the same, for what it would become', async () => {
    const own = await booked(lead, { ...hours(30, 31), bandwidth: '700' });
    await booked(lead, { ...hours(31, 32), bandwidth: '800' });
    const body = { ...hours(30, 32), tokens: [] };
    const { alternatives = [] } = problemIn(await lead.update(own.id, body));
    expect(alternatives).toEqual([
      { ...hours(30, 32), bandwidth: 200 },
      { ...hours(32, 34), bandwidth: 700 },
    ]);
    for (const { bandwidth, start_date, end_date } of alternatives) {
      const reply = await lead.update(own.id, {
        ...body,
        bandwidth: String(bandwidth),
        start_date,
        end_date,
      });
      expect(reservationIn(reply)).toMatchObject({ bandwidth, start_date, end_date });
      await lead.update(own.id, { ...hours(30, 31), bandwidth: '700', tokens: [] });
    }
  });
});

describe('read', async () => {
  const service = await openService();
  const lead = await service.as('lead');
  const reservation = await booked(lead);

  test('answers as creation did, to everyone who may read', async () => {
    for (const role of ['lead', 'admin', 'viewer'] as const) {
      expect((await (await service.as(role)).read(reservation.id)).body).toEqual(reservation);
    }
  });

  test('is signed on request', async () => {
    const { connectivity } = await verified(service, await lead.read(reservation.id, SIGNED), reservation.id);
    expect(connectivity).toEqual(reservation);
  });

  test.each([
    'con_offline.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q',
    'con_elsewhere.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
    'nonsense',
    '\u0000',
    '../connectivity',
    "' OR 1=1 --",
    '__proto__',
    'x'.repeat(5000),
  ])('of an unknown id %j: 404', async (id) => {
    expect(outcome(await lead.read(id))).toBe('404 not_found');
    expect(outcome(await lead.update(id, { tokens: [] }))).toBe('404 not_found');
    expect(outcome(await lead.delete(id))).toBe('404 not_found');
  });

  test('the id is read as it stands: not in capitals', async () => {
    expect(outcome(await lead.read(reservation.id.toUpperCase()))).toBe('404 not_found');
  });
});

describe('list', async () => {
  const service = await openService();
  const lead = await service.as('lead');
  const secondId = await service.newExperiment('second');
  const elsewhere = await booked(await service.as('lead', secondId));
  const ended = await booked(lead, hours(1, 2));
  const active = await booked(lead, hours(1, 20));
  const scheduled = await booked(lead, hours(10, 20));
  const deleted = await booked(lead, hours(1, 2));
  await lead.delete(deleted.id);
  const mine = [ended, active, scheduled];
  service.moveTo(2 * HOUR);
  const viewer = await service.as('viewer');
  const second = await service.as('lead', secondId);

  test('holds every reservation of the experiment that was not deleted, and no other', async () => {
    const { items, nextCursor } = await pageOf(viewer.list());
    expect(nextCursor).toBeNull();
    expect(items).toEqual(expect.arrayContaining(mine));
    expect(items).toHaveLength(mine.length);
    expect(await idsIn(second.list())).toEqual([elsewhere.id]);
  });

  test.each([
    ['scheduled', scheduled],
    ['active', active],
    ['ended', ended],
  ])('state=%s', async (state, expected) => {
    expect(await idsIn(viewer.list(`state=${state}`))).toEqual([expected.id]);
  });

  test('a state begins at its instant: active from the start on, ended from the end on', async () => {
    service.moveTo(10 * HOUR);
    const atStart = await service.as('viewer');
    expect(await idsIn(atStart.list('state=scheduled'))).toEqual([]);
    service.moveTo(20 * HOUR);
    const atEnd = await service.as('viewer');
    expect(await idsIn(atEnd.list('state=active'))).toEqual([]);
    expect(await idsIn(atEnd.list('state=ended'))).toHaveLength(mine.length);
    service.moveTo(2 * HOUR);
  });

  test('is ordered by age', async () => {
    const aging = await openService();
    const caller = await aging.as('lead');
    const ids: string[] = [];
    for (let age = 0; age < 5; age += 1) {
      aging.moveTo(age);
      ids.push((await booked(caller)).id);
    }
    expect(await idsIn(caller.list())).toEqual(ids);
  });

  test.each([1, 2, 3])('in pages of %d: each once, in the order of the whole', async (limit) => {
    const all = await idsIn(viewer.list());
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
  });

  test('a page outlives the deletion of the reservation that its cursor names', async () => {
    const extra = await booked(second, hours(3, 4));
    const another = await booked(second, hours(3, 4));
    const [first, ...rest] = await idsIn(second.list());
    const { nextCursor } = await pageOf(second.list('limit=1'));
    await second.delete(first ?? '');
    expect(await idsIn(second.list(`cursor=${nextCursor}`))).toEqual(rest);
    expect([extra.id, another.id].every((id) => id === first || rest.includes(id))).toBe(true);
  });

  test.each([
    'state=banana',
    'state=',
    'limit=0',
    'limit=-1',
    'limit=1.5',
    'limit=1001',
    'limit=',
    'limit=ten',
    'limit=99999999999999999999',
    'state=ended&state=active',
    'limit=1&limit=2',
    'cursor=a&cursor=b',
  ])('?%s: 400', async (query) => {
    expect(outcome(await viewer.list(query))).toBe('400 request_invalid');
  });

  test.each(['limit=1000', 'cursor=nonsense', 'cursor=%00', `cursor=${'x'.repeat(5000)}`, 'unknown=1'])(
    '?%s: 200',
    async (query) => {
      expect(outcome(await viewer.list(query))).toBe('200');
    },
  );
});

describe('update', async () => {
  const service = await openService({ topology: smallTopology(2) });
  const lead = await service.as('lead');

  const CHANGES: [title: string, change: Record<string, unknown>][] = [
    ['longer', hours(100, 103)],
    ['shorter', { end_date: at(100.5 * HOUR) }],
    ['earlier', hours(99, 101)],
    ['elsewhere in time', hours(200, 202)],
    ['more bandwidth', { bandwidth: '1000' }],
    ['less bandwidth', { bandwidth: '1' }],
    ['all of it', { ...hours(150, 151), bandwidth: '900' }],
    ['nothing', {}],
    ['its sites', { site1: 'be-gent1', site2: 'pl-poznan1' }],
    ['its sites, the other way round', { site1: 'pl-poznan1', site2: 'be-gent1' }],
    ['one of its sites', { site2: 'be-gent1' }],
  ];

  test.each(CHANGES)('of %s: what is absent keeps its value, the tags stay', async (_, change) => {
    const before = await booked(lead, { ...hours(100, 102), bandwidth: '600' });
    const reply = await lead.update(before.id, { ...change, tokens: [] });
    expect(outcome(reply)).toBe('200');
    const { site1: _1, site2: _2, bandwidth = '600', ...period } = change;
    const after = { ...before, ...period, bandwidth: Number(bandwidth) };
    expect(reply.body).toEqual(after);
    expect((await lead.read(before.id)).body).toEqual(after);
    await lead.delete(before.id);
  });

  test('takes the whole body of a create request', async () => {
    const before = await booked(lead, hours(100, 102));
    const reply = await lead.update(before.id, booking({ ...hours(101, 102), bandwidth: '2' }));
    expect(reply.body).toEqual({ ...before, ...hours(101, 102), bandwidth: 2 });
    await lead.delete(before.id);
  });

  test('answers as GET: signed on request', async () => {
    const before = await booked(lead, hours(100, 102));
    const { connectivity } = await verified(
      service,
      await lead.update(before.id, { bandwidth: '2', tokens: [] }, '', SIGNED),
      before.id,
    );
    expect(connectivity).toEqual({ ...before, bandwidth: 2 });
    await lead.delete(before.id);
  });

  test('needs no member at all', async () => {
    const before = await booked(lead, hours(100, 102));
    expect((await lead.update(before.id, {})).body).toEqual(before);
    await lead.delete(before.id);
  });

  test('takes other tags when its own are taken in the new period', async () => {
    const early = await booked(lead, { ...hours(100, 101), bandwidth: '1' });
    const late = await booked(lead, { ...hours(101, 102), bandwidth: '1' });
    expect(tagsOf(early)).toEqual(tagsOf(late));
    const moved = reservationIn(await lead.update(late.id, { ...hours(100, 102), tokens: [] }));
    expect(tagsOf(moved)).toEqual(tagsOf(early).map((tag) => tag + 1));
    await lead.delete(early.id);
    await lead.delete(late.id);
  });

  const REFUSED: [title: string, change: Record<string, unknown>, expected: string][] = [
    ['more than is free', { bandwidth: '401' }, '422 bandwidth_unavailable Bandwidth'],
    ['more than the link has', { bandwidth: '1001' }, '422 bandwidth_unavailable Bandwidth'],
    ['a period without free tags', hours(100, 105), '422 vlans_unavailable Bandwidth'],
    [
      'a period and more than is free',
      { ...hours(100, 102.5), bandwidth: '401' },
      '422 bandwidth_unavailable Bandwidth',
    ],
    ['other sites', { site1: 'be-gent1', site2: 'fr-lille' }, '422 sites_fixed Site'],
    ['a site twice', { site1: 'be-gent1', site2: 'be-gent1' }, '422 sites_fixed Site'],
    ['a good change and other sites', { bandwidth: '2', site1: 'fr-lille' }, '422 sites_fixed Site'],
    ['a start in the past', { start_date: at(-1) }, '422 date_past Date'],
    ['an end before its start', { end_date: at(99 * HOUR) }, '422 period_empty Date'],
    ['an end past the expiry', { end_date: at(90 * DAY + 1) }, '422 experiment_ends_first Date'],
  ];

  test('row 38: what cannot be met leaves it exactly as it was', async () => {
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
    const full = await openService({ topology: smallTopology(1) });
    const caller = await full.as('lead');
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

  test('row 38: updates at once of one reservation have one order', async () => {
    const own = await booked(lead, { ...hours(100, 102), bandwidth: '1' });
    const rows = service.rows();
    const replies = await Promise.all(
      [1, 2, 3, 4, 5, 6, 7, 8].map((n) =>
        lead.update(own.id, { ...hours(100 + n, 110 + n), bandwidth: String(100 * n), tokens: [] }),
      ),
    );
    expect(replies.map(outcome)).toEqual(replies.map(() => '200'));
    const after = (await lead.read(own.id)).body;
    expect(replies.map(({ body }) => body)).toContainEqual(after);
    expect(service.rows()).toEqual(rows);
    await lead.delete(own.id);
  });

  test('a deletion and updates at once: gone for good', async () => {
    const own = await booked(lead, { ...hours(100, 102), bandwidth: '1' });
    const { tagHolds } = service.rows();
    const replies = await Promise.all([
      lead.update(own.id, { bandwidth: '2', tokens: [] }),
      lead.delete(own.id),
      lead.update(own.id, { bandwidth: '3', tokens: [] }),
      lead.delete(own.id),
    ]);
    for (const reply of replies) expect(outcome(reply)).toMatch(/^(?:200|204|404 not_found)$/);
    expect(replies.map(outcome).filter((status) => status === '204')).toHaveLength(1);
    expect(outcome(await lead.read(own.id))).toBe('404 not_found');
    expect(service.rows().tagHolds).toBe(tagHolds - 4);
  });
});

describe('update of a reservation that has started', async () => {
  const service = await openService();
  const early = await service.as('lead');

  test.each([
    ['a later end', { end_date: at(11 * HOUR) }, '200'],
    ['the same start, spelled otherwise', { start_date: '2026-11-01T14:00:00+01:00' }, '200'],
    ['a later start', { start_date: at(3 * HOUR) }, '200'],
    ['the whole body, its start unchanged', booking(hours(1, 9)), '200'],
    ['an end that is just to come', { end_date: at(2 * HOUR + 1) }, '200'],
    ['another start in the past', { start_date: at(HOUR + 1) }, '422 date_past Date'],
    ['an earlier start', { start_date: at(0) }, '422 date_past Date'],
    ['an end that is now', { end_date: at(2 * HOUR) }, '422 date_past Date'],
    ['an end in the past', { end_date: at(1.5 * HOUR) }, '422 date_past Date'],
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

  test('with start_now=true moves its start to the time of the request', async () => {
    service.moveTo(0);
    const own = await booked(early, hours(1, 10));
    service.moveTo(2 * HOUR);
    const lead = await service.as('lead');
    const reply = await lead.update(own.id, { start_date: null, tokens: [] }, 'start_now=true');
    expect(reply.body).toEqual({ ...own, start_date: at(2 * HOUR) });
  });

  test('is refused once it has ended, at its end on the millisecond', async () => {
    service.moveTo(0);
    const own = await booked(early, hours(1, 3));
    service.moveTo(3 * HOUR - 1);
    const lead = await service.as('lead');
    expect(outcome(await lead.update(own.id, { tokens: [] }))).toBe('200');
    service.moveTo(3 * HOUR);
    expect(outcome(await lead.update(own.id, { tokens: [] }))).toBe('422 reservation_ended Date');
    expect(outcome(await lead.update(own.id, { ...hours(5, 6), tokens: [] }))).toBe(
      '422 reservation_ended Date',
    );
    expect((await lead.read(own.id)).body).toEqual(own);
  });
});

describe('delete', async () => {
  const service = await openService({ topology: smallTopology(1) });
  const lead = await service.as('lead');

  test('answers 204 with no body, and then there is none', async () => {
    const { id } = await booked(lead);
    const reply = await lead.delete(id);
    expect({ status: reply.status, body: reply.body }).toEqual({ status: 204, body: '' });
    for (const later of [lead.read(id), lead.delete(id), lead.update(id, { tokens: [] })]) {
      expect(outcome(await later)).toBe('404 not_found');
    }
  });

  test('frees tags and bandwidth at once', async () => {
    const first = await booked(lead, { bandwidth: '1000' });
    expect(outcome(await lead.book())).toMatch(/^422/);
    await lead.delete(first.id);
    expect(service.rows().tagHolds).toBe(0);
    const second = await booked(lead, { bandwidth: '1000' });
    expect(tagsOf(second)).toEqual(tagsOf(first));
    expect(second.id).not.toBe(first.id);
    await lead.delete(second.id);
  });

  test('of two at once, one finds it', async () => {
    const { id } = await booked(lead);
    const replies = await Promise.all([lead.delete(id), lead.delete(id), lead.delete(id)]);
    expect(replies.map(outcome).toSorted()).toEqual(['204', '404 not_found', '404 not_found']);
  });

  test('works while it runs and after its end', async () => {
    const running = await booked(lead, hours(1, 3));
    const ended = await booked(lead, hours(0, 1));
    service.moveTo(2 * HOUR);
    const later = await service.as('lead');
    expect(outcome(await later.delete(running.id))).toBe('204');
    expect(outcome(await later.delete(ended.id))).toBe('204');
    service.moveTo(0);
  });
});

describe('many at once on one link', () => {
  test('the sum never exceeds the capacity and every tag is held once', async () => {
    const service = await openService({ topology: smallTopology(50) });
    const lead = await service.as('lead');
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        lead.book(
          booking({ bandwidth: '100', ...(n % 2 ? { site1: 'pl-poznan1', site2: 'be-gent1' } : {}) }),
        ),
      ),
    );
    const accepted = replies.filter(({ status }) => status === 201).map(reservationIn);
    expect(accepted).toHaveLength(10);
    for (const tags of Object.values(Object.groupBy(accepted.flatMap(tagsOf), String))) {
      expect(tags).toHaveLength(1);
    }
    expect(new Set(accepted.map(({ id }) => id)).size).toBe(10);
    expect(service.rows()).toEqual({ reservations: 10, tagHolds: 40 });
  });
});

describe('a restart on the same file', async () => {
  const service = await openService({ topology: smallTopology(1) });
  const lead = await service.as('lead');
  const kept = await booked(lead, hours(10, 11));
  const deleted = await booked(lead, hours(20, 21));
  await lead.delete(deleted.id);
  const proof = await lead.read(kept.id, SIGNED);
  await service.restart();

  test('keeps reservations, and what was deleted stays so', async () => {
    expect((await lead.read(kept.id)).body).toEqual(kept);
    expect(await idsIn(lead.list())).toEqual([kept.id]);
    expect(outcome(await lead.read(deleted.id))).toBe('404 not_found');
  });

  test('keeps what they hold', async () => {
    expect(outcome(await lead.book(booking(hours(10, 11))))).toBe('422 vlans_unavailable Bandwidth');
    expect(outcome(await lead.book(booking(hours(20, 21))))).toBe('201');
  });

  test('keeps the keys: tokens from before hold', async () => {
    expect((await verified(service, proof, kept.id)).connectivity).toEqual(kept);
    expect(outcome(await lead.list())).toBe('200');
  });

  test('keeps the ids of users and experiments', async () => {
    const again = await service.as('lead');
    const after = await booked(again, hours(30, 31));
    expect(after).toMatchObject({ experiment_id: kept.experiment_id, created_by: kept.created_by });
  });
});
