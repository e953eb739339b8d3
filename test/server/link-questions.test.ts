import * as v from 'valibot';
import { beforeEach, describe, expect, test } from 'vitest';
import { Availability, SlotList } from '../../src/contract/availability.ts';
import { EXPERIMENT_TOKEN_HEADER } from '../../src/contract/routes.ts';
import {
  addressOf,
  at,
  booked,
  DAY,
  HOUR,
  hours,
  MINUTE,
  openWithLead,
  outcome,
  smallTopology,
} from '../fixtures/service.ts';

const AVAILABILITY = addressOf('linkAvailability');
const SLOTS = addressOf('linkSlots');
const query = (values: Readonly<Record<string, string>>): string => `?${new URLSearchParams(values)}`;

/** 1000 Mbps and three tags; 600 Mbps are taken from hour 1 to 2, all 1000 from hour 3 to 4. */
const { service, lead } = await openWithLead({ topology: smallTopology(3) });
await booked(lead, { ...hours(1, 2), bandwidth: '600' });
await booked(lead, { ...hours(3, 4), bandwidth: '1000' });
const user = service.with({ authorization: `Bearer ${await service.userToken('viewer')}` });
beforeEach(() => service.moveTo(0));

const FIVE_HOURS = { start: at(0), end: at(5 * HOUR) };

async function availability(values: Readonly<Record<string, string>>, address = AVAILABILITY) {
  const reply = await user.send('GET', address + query(values));
  expect(outcome(reply)).toBe('200');
  return v.parse(Availability, reply.body);
}

describe('availability', () => {
  test('the exact steps cover the window, and any valid user token reads them', async () => {
    // Nothing in it tells who holds what.
    expect(await availability(FIVE_HOURS)).toEqual({
      site1: 'be-gent1',
      site2: 'pl-poznan1',
      bandwidth: 1000,
      start_date: at(0),
      end_date: at(5 * HOUR),
      exact: true,
      items: [
        { ...hours(0, 1), bandwidth: 1000, bandwidth_max: 1000, vlans: 3 },
        { ...hours(1, 2), bandwidth: 400, bandwidth_max: 400, vlans: 2 },
        { ...hours(2, 3), bandwidth: 1000, bandwidth_max: 1000, vlans: 3 },
        { ...hours(3, 4), bandwidth: 0, bandwidth_max: 0, vlans: 2 },
        { ...hours(4, 5), bandwidth: 1000, bandwidth_max: 1000, vlans: 3 },
      ],
      nextCursor: null,
    });
  });

  test('columns say what is free throughout, and at best; the sites keep the order of the request', async () => {
    const turned = AVAILABILITY.replace('be-gent1/pl-poznan1', 'pl-poznan1/be-gent1');
    expect(await availability(FIVE_HOURS, turned)).toMatchObject({ site1: 'pl-poznan1', site2: 'be-gent1' });
    const { exact, items } = await availability({ ...FIVE_HOURS, end: at(4 * HOUR), points: '2' });
    expect(exact).toBe(false);
    expect(items).toEqual([
      { ...hours(0, 2), bandwidth: 400, bandwidth_max: 1000, vlans: 2 },
      { ...hours(2, 4), bandwidth: 0, bandwidth_max: 1000, vlans: 2 },
    ]);
  });

  test('a week from now on, unless it says otherwise', async () => {
    service.moveTo(MINUTE);
    expect(await availability({})).toMatchObject({ start_date: at(MINUTE), end_date: at(7 * DAY + MINUTE) });
    expect(await availability({ start: at(DAY) })).toMatchObject({ end_date: at(8 * DAY) });
    for (const plus of ['%2B', '+']) {
      const reply = await user.send('GET', `${AVAILABILITY}?start=2026-11-01T14:00:00${plus}02:00`);
      expect(v.parse(Availability, reply.body).start_date).toBe(at(0));
    }
  });

  test.each<[string, Readonly<Record<string, string>>, string]>([
    ['a start 24 h ago', { start: at(-DAY) }, '200'],
    ['an earlier one', { start: at(-DAY - 1) }, '422 date_past Date'],
    ['five years', { start: at(0), end: at(5 * 365 * DAY) }, '200'],
    ['six years', { start: at(0), end: at(6 * 365 * DAY) }, '422 date_invalid Date'],
    ['an end before the start', { start: at(HOUR), end: at(HOUR) }, '422 period_empty Date'],
    ['a time without a zone', { end: '2026-12-01T10:00:00' }, '422 date_invalid Date'],
    ['the last instant there is', { start: '9999-12-31T23:59:59.999Z' }, '422 period_empty Date'],
    ['no columns', { points: '0' }, '400 request_invalid'],
    ['too many columns', { points: '2001' }, '400 request_invalid'],
    ['a cursor of another planet', { cursor: 'zzzzzzzzzz-zzzzzzzzzz-zzzzzzzzzz' }, '400 request_invalid'],
    ['a cursor with columns', { cursor: '1-3-2', points: '3' }, '422 date_past Date'],
  ])('%s: %3$s', async (_, values, expected) => {
    expect(outcome(await user.send('GET', AVAILABILITY + query(values)))).toBe(expected);
  });

  test.each([
    ['be-gent1', 'be-ghent1', '422 site_unknown Site'],
    ['be-gent1', 'fr-lille', '422 sites_not_connected Site'],
    ['be-gent1', 'be-gent1', '422 sites_equal Site'],
    ['..%2F..', 'be-gent1', '422 site_unknown Site'],
  ])('%s and %s: %s', async (site1, site2, expected) => {
    for (const address of [AVAILABILITY, `${SLOTS}?bandwidth=1&duration=PT1H`]) {
      const reply = await user.send('GET', address.replace('be-gent1/pl-poznan1', `${site1}/${site2}`));
      expect(outcome(reply)).toBe(expected);
    }
  });
});

describe('the ETag of availability', () => {
  const tagOf = async (values: Readonly<Record<string, string>>): Promise<string> => {
    const { headers } = await user.send('GET', AVAILABILITY + query(values));
    return headers.get('etag') ?? '';
  };
  const asked = (tag: string, values = FIVE_HOURS) =>
    user.send('GET', AVAILABILITY + query(values), { headers: { 'if-none-match': tag } });

  test('answers 304 without a body while nothing changes', async () => {
    const tag = await tagOf(FIVE_HOURS);
    expect(tag).toMatch(/^W\/"[\w-]{22}"$/);
    service.moveTo(MINUTE);
    for (const named of [tag, tag.slice(2), `"other", ${tag}`, '*']) {
      const reply = await asked(named);
      expect([reply.status, reply.body, reply.headers.get('etag')]).toEqual([304, '', tag]);
    }
    expect((await asked('"other"')).status).toBe(200);
  });

  test('is another for another window, for columns, and after a booking', async () => {
    const tag = await tagOf(FIVE_HOURS);
    const others = [
      { ...FIVE_HOURS, end: at(6 * HOUR) },
      { ...FIVE_HOURS, points: '5' },
      { ...FIVE_HOURS, points: '6' },
    ];
    const tags = await Promise.all(others.map((values) => tagOf(values)));
    expect(new Set([tag, ...tags]).size).toBe(4);
    const { id } = await booked(lead, hours(20, 21));
    expect((await asked(tag)).status).toBe(200);
    await lead.delete(id);
  });
});

test('exact steps come in pages of 1000, whose window stays the same while time passes', async () => {
  const { service: many, lead: caller } = await openWithLead();
  const minutes = (count: number): string => at(HOUR + count * MINUTE);
  // Back to back with another bandwidth each: 1,200 steps, one before and one after.
  for (let group = 0; group < 1200; group += 60) {
    await Promise.all(
      Array.from({ length: 60 }, (_, index) => {
        const at = group + index;
        const period = { start_date: minutes(at), end_date: minutes(at + 1) };
        return booked(caller, { ...period, bandwidth: String(1 + (at % 2)) });
      }),
    );
  }
  const page = async (cursor: string) => {
    const { body } = await caller.send('GET', AVAILABILITY + cursor);
    return v.parse(Availability, body);
  };
  const first = await page('');
  many.moveTo(MINUTE);
  expect(first.items).toHaveLength(1000);
  const second = await page(query({ cursor: first.nextCursor ?? '' }));
  expect(second.items).toHaveLength(202);
  expect(second).toMatchObject({ start_date: at(0), end_date: at(7 * DAY), exact: true, nextCursor: null });
  const items = [...first.items, ...second.items];
  expect(items.map(({ end_date }) => end_date)).toEqual([
    ...items.slice(1).map(({ start_date }) => start_date),
    at(7 * DAY),
  ]);
  expect(items.map(({ bandwidth }) => 100_000 - bandwidth)).toEqual([
    0,
    ...Array.from({ length: 1200 }, (_, index) => 1 + (index % 2)),
    0,
  ]);

  // Every other minute is too full for all but 1 Mbps, so each run of starts is one instant.
  const asked = { bandwidth: '99999', duration: 'PT1M', start: minutes(0), end: minutes(1200) };
  const slots = async (more: object) => {
    const { body } = await caller.send('GET', SLOTS + query({ ...asked, ...more }));
    return v.parse(SlotList, body);
  };
  const found = [];
  for (let next: string | null = ''; next !== null; ) {
    const { items: runs, nextCursor } = await slots(next === '' ? {} : { cursor: next });
    found.push(...runs);
    expect(runs).toHaveLength(100);
    next = nextCursor;
  }
  expect(found.map(({ first_start_date }) => first_start_date)).toEqual(
    Array.from({ length: 600 }, (_, index) => minutes(2 * index)),
  );
});

describe('slots', () => {
  async function slots(values: Readonly<Record<string, string>>, caller = user) {
    const reply = await caller.send('GET', SLOTS + query({ ...FIVE_HOURS, ...values }));
    expect(outcome(reply)).toBe('200');
    return v.parse(SlotList, reply.body).items;
  }
  const run = (first: number, last: number) => ({ first_start_date: at(first), last_start_date: at(last) });

  test('every run of starts, each whole reservation within the window', async () => {
    expect(await slots({ bandwidth: '500', duration: 'PT30M' })).toEqual([
      run(0, HOUR / 2),
      run(2 * HOUR, 2.5 * HOUR),
      run(4 * HOUR, 4.5 * HOUR),
    ]);
    expect(await slots({ bandwidth: '400', duration: 'PT2H' })).toEqual([run(0, HOUR)]);
    expect(await slots({ bandwidth: '400', duration: 'PT4H' })).toEqual([]);
    expect(await slots({ bandwidth: '1001', duration: 'PT1S' })).toEqual([]);
  });

  test('none starts in the past', async () => {
    service.moveTo(15 * MINUTE);
    const [found] = await slots({ bandwidth: '500', duration: 'PT30M', start: at(-HOUR) });
    expect(found).toEqual(run(15 * MINUTE, HOUR / 2));
    expect(await slots({ bandwidth: '1', duration: 'PT1S', start: at(-HOUR), end: at(0) })).toEqual([]);
  });

  test.each<[string, Readonly<Record<string, string>>, string]>([
    ['no bandwidth', { duration: 'PT1H' }, '422 bandwidth_invalid Bandwidth'],
    ['no duration', { bandwidth: '1' }, '422 date_invalid Date'],
    ['a duration of half a second', { bandwidth: '1', duration: 'PT0.5S' }, '422 date_invalid Date'],
    ['both wrong', { bandwidth: '0', duration: '' }, '422 bandwidth_invalid Bandwidth+Date'],
  ])('%s: %3$s', async (_, values, expected) => {
    expect(outcome(await user.send('GET', SLOTS + query(values)))).toBe(expected);
  });
});

const builtIn = await openWithLead();
test('the use of all links is the availability of each, in columns, with one ETag', async () => {
  const { lead: caller } = builtIn;
  await booked(caller, hours(1, 2));
  const window = query({ ...FIVE_HOURS, points: '5' });
  const asked = (headers = {}) => caller.send('GET', addressOf('linkUse') + window, { headers });
  const reply = await asked();
  const { items } = v.parse(v.object({ items: v.array(Availability) }), reply.body);
  const { items: links } = v.parse(
    v.object({ items: v.array(v.looseObject({ site1: v.string(), site2: v.string() })) }),
    (await caller.send('GET', addressOf('listLinks'))).body,
  );
  expect(items.map(({ site1, site2 }) => [site1, site2])).toEqual(
    links.map(({ site1, site2 }) => [site1, site2]),
  );
  for (const { site1, site2, ...use } of items) {
    const address = AVAILABILITY.replace('be-gent1/pl-poznan1', `${site1}/${site2}`);
    const one = v.parse(Availability, (await caller.send('GET', `${address + window}&direct=true`)).body);
    expect({ site1, site2, ...use }).toEqual(one);
  }
  const etag = reply.headers.get('etag') ?? '';
  expect((await asked({ 'if-none-match': etag })).status).toBe(304);
  // Of the links that are named alone, in either order of their sites.
  const some = async (links: readonly string[], more = {}) => {
    const named = links.map((link) => `&link=${link}`).join('');
    return caller.send('GET', addressOf('linkUse') + window + named, more);
  };
  const [first, , third] = items;
  const named = await some([`${third?.site2},${third?.site1}`, `${first?.site1}%2C${first?.site2}`]);
  expect(named.body).toEqual({ items: [first, third], nextCursor: null });
  const known = { headers: { 'if-none-match': named.headers.get('etag') ?? '' } };
  const [one, other] = [`${first?.site1},${first?.site2}`, `${third?.site1},${third?.site2}`];
  expect((await some([one, other, one], known)).status).toBe(304);
  for (const links of [[], [one], [other]]) expect((await some(links, known)).status).toBe(200);
  await booked(caller, hours(1, 2));
  expect((await asked({ 'if-none-match': etag })).status).toBe(200);
  const isBooked = (link: string): boolean => link === 'be-gent1,pl-poznan1';
  expect((await some([one, other], known)).status).toBe([one, other].some(isBooked) ? 200 : 304);
});

const ONE = 'link=be-gent1,pl-poznan1';
test.each<[string, string, string]>([
  ['too many columns', 'points=2001', '400 request_invalid'],
  ['one site', 'link=be-gent1', '400 request_invalid'],
  ['no site', 'link=', '400 request_invalid'],
  ['three sites', 'link=be-gent1,pl-poznan1,fr-lille', '400 request_invalid'],
  ['41 links', Array(41).fill(ONE).join('&'), '400 request_invalid'],
  ['an unknown site', `${ONE}&link=be-gent1,be-ghent1`, '422 site_unknown Site'],
  ['one site twice', 'link=be-gent1,be-gent1', '422 sites_equal Site'],
  ['two sites without a link', 'link=be-gent1,fr-slices', '422 no_route Site'],
  ['all columns of a link that is named 40 times', `${Array(40).fill(ONE).join('&')}&points=2000`, '200'],
])('the use of links: %s: %3$s', async (_, asked, expected) => {
  expect(outcome(await builtIn.lead.send('GET', `${addressOf('linkUse')}?${asked}`))).toBe(expected);
});

test('after a start with another topology, what was told is not known any more', async () => {
  const options = { topology: smallTopology(3) };
  const { service: elsewhere, lead: caller } = await openWithLead(options);
  for (const name of ['linkUse', 'linkAvailability'] as const) {
    const asked = (headers = {}) => caller.send('GET', addressOf(name) + query(FIVE_HOURS), { headers });
    const known = { 'if-none-match': (await asked()).headers.get('etag') ?? '' };
    await elsewhere.restart();
    expect((await asked(known)).status).toBe(304);
    options.topology = smallTopology(name === 'linkUse' ? 2 : 1);
    await elsewhere.restart();
    expect((await asked(known)).status).toBe(200);
  }
});

test.each([addressOf('listLinks'), addressOf('linkUse'), AVAILABILITY, `${SLOTS}?bandwidth=1&duration=PT1H`])(
  '%s needs a user token alone; an experiment token that is given must verify',
  async (address) => {
    const token = await service.experimentToken('lead');
    const user = { authorization: `Bearer ${await service.userToken('lead')}` };
    const asked = async (headers: Record<string, string>) =>
      outcome(await service.with(headers).send('GET', address));
    expect(await asked({})).toBe('403 token_missing');
    expect(await asked({ authorization: `Bearer ${token}` })).toBe('403 token_invalid');
    expect(await asked(user)).toBe('200');
    expect(await asked({ ...user, [EXPERIMENT_TOKEN_HEADER]: token.slice(1) })).toBe('403 token_invalid');
  },
);
