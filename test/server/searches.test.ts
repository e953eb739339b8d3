import { beforeEach, describe, expect, test } from 'vitest';
import {
  at,
  booked,
  booking,
  DAY,
  HOUR,
  hours,
  MINUTE,
  openWithLead,
  outcome,
  problemIn,
  reservationIn,
  SECOND,
  SIGNED,
  smallTopology,
  verified,
} from '../fixtures/service.ts';

const EARLIEST = 'earliest=true';
/** What 1 Mbps carries in an hour, in bytes. */
const MBPS_HOUR = 450_000_000;

/** A link of 1000 Mbps, of which 600 are taken from hour 2 to 4. */
async function busyLink() {
  const { service, lead } = await openWithLead({ topology: smallTopology(4) });
  await booked(lead, { ...hours(2, 4), bandwidth: '600' });
  return { service, lead };
}

/** A search for two hours within the next ten. */
const twoHours = (changes: Readonly<Record<string, unknown>> = {}) =>
  booking({ ...hours(1, 10), bandwidth: '500', duration: 'PT2H', ...changes });
/** A search for 2000 Mbps hours within the next ten hours. */
const transfer = (changes: Readonly<Record<string, unknown>> = {}) =>
  booking({ ...hours(1, 10), bandwidth: undefined, volume: String(2000 * MBPS_HOUR), ...changes });

describe('earliest=true', async () => {
  const { service, lead } = await busyLink();
  beforeEach(() => service.moveTo(0));
  test('books the earliest period of the duration, signed like any other', async () => {
    const reply = await lead.book(twoHours(), EARLIEST, SIGNED);
    expect(outcome(reply)).toBe('201');
    const { connectivity } = await verified(service, reply);
    expect(connectivity).toMatchObject({ ...hours(4, 6), bandwidth: 500 });
    expect((await lead.read(connectivity.id)).body).toEqual(connectivity);
    await lead.delete(connectivity.id);
    service.moveTo(6 * MINUTE);
    const now = twoHours({ start_date: null, duration: 'PT1H' });
    const started = await lead.book(now, `${EARLIEST}&start_now=true&dry_run=true`);
    expect(reservationIn(started)).toMatchObject(hours(0.1, 1.1));
  });

  test('where no period fits: the most for that long within the window, or later', async () => {
    const refusal = problemIn(await lead.book(twoHours({ end_date: at(5 * HOUR) }), EARLIEST));
    expect(refusal).toMatchObject({
      code: 'bandwidth_unavailable',
      limits: [{ limit: 'bandwidth', capacity: 1000, free: 400 }],
      alternatives: [
        { kind: 'most_bandwidth', start_now: false, ...hours(1, 3), bandwidth: 400 },
        { kind: 'earliest', start_now: false, ...hours(4, 6), bandwidth: 500 },
      ],
    });
    expect(refusal.detail[0]?.msg).toContain(`400 Mbps from ${at(HOUR)}; 500 Mbps from ${at(4 * HOUR)}.`);
  });

  test.each<[string, string, Readonly<Record<string, unknown>>, string]>([
    ['no duration', EARLIEST, { duration: undefined }, '422 date_invalid Date'],
    ['a duration alone', '', {}, '422 date_invalid Date'],
    ['earliest=maybe', 'earliest=maybe', {}, '400 request_invalid'],
    ['a duration in milliseconds', EARLIEST, { duration: 7_200_000 }, '422 date_invalid Date'],
    ['a duration of nothing', EARLIEST, { duration: 'PT0S' }, '422 date_invalid Date'],
    ['a duration longer than the window', EARLIEST, { duration: 'PT9H1S' }, '422 date_invalid Date'],
    ['a volume too', EARLIEST, { volume: '1' }, '422 volume_invalid Bandwidth'],
    ['no bandwidth', EARLIEST, { bandwidth: undefined }, '422 bandwidth_invalid Bandwidth'],
    ['all of it wrong', EARLIEST, { bandwidth: '', duration: '' }, '422 bandwidth_invalid Bandwidth+Date'],
  ])('%s: %4$s', async (_, query, changes, expected) => {
    const before = service.rows();
    expect(outcome(await lead.book(twoHours(changes), query))).toBe(expected);
    expect(service.rows()).toEqual(before);
  });
});

describe('volume', async () => {
  const { service, lead } = await busyLink();
  beforeEach(() => service.moveTo(0));
  test('books the rate and period that finish first', async () => {
    // 1000 Mbps are free from hour 4 on: 6 h. 400 throughout: from 1 to 6 h as well, with less.
    const reservation = reservationIn(await lead.book(transfer()));
    expect(reservation).toMatchObject({ ...hours(1, 6), bandwidth: 400 });
    await lead.delete(reservation.id);
    const limited = transfer({ bandwidth: '200', end_date: at(11 * HOUR) });
    expect(reservationIn(await lead.book(limited, 'dry_run=true'))).toMatchObject({
      ...hours(1, 11),
      bandwidth: 200,
    });
  });

  test('its own bandwidth is too low, whatever is free: what it needs, and what the link has', async () => {
    const until = { end_date: at(6 * HOUR), volume: String(1000 * MBPS_HOUR) };
    const refusal = problemIn(await lead.book(transfer({ ...until, bandwidth: '100' })));
    expect(refusal).toMatchObject({
      code: 'bandwidth_too_low',
      detail: [
        {
          loc: ['Bandwidth'],
          code: 'bandwidth_too_low',
          facts: { bandwidth: 100, needed: 200, volume: 1000 * MBPS_HOUR, end_date: at(6 * HOUR) },
          msg: `450 GB by ${at(6 * HOUR)} needs 200 Mbps; at most 100 Mbps may be used. Would be accepted: done by ${at(11 * HOUR)}.`,
        },
      ],
      limits: [
        { limit: 'bandwidth', capacity: 1000, free: 400, start_date: at(HOUR), end_date: at(6 * HOUR) },
      ],
      alternatives: [{ kind: 'earliest', ...hours(1, 11), bandwidth: 100 }],
    });
    // Where the link has too little as well, more bandwidth of its own is needed first.
    const more = { volume: String(3000 * MBPS_HOUR), end_date: at(6 * HOUR) };
    expect(problemIn(await lead.book(transfer({ ...more, bandwidth: '100' })))).toMatchObject({
      code: 'bandwidth_too_low',
      limits: [
        { limit: 'bandwidth', capacity: 1000, free: 400, start_date: at(2 * HOUR), end_date: at(4 * HOUR) },
      ],
    });
    expect(problemIn(await lead.book(transfer(more))).code).toBe('bandwidth_unavailable');
  });

  test.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['nothing', { volume: '0' }, '422 volume_invalid Bandwidth'],
    ['a number', { volume: 5 }, '422 volume_invalid Bandwidth'],
    ['one more than can be counted', { volume: '9007199254740992' }, '422 volume_invalid Bandwidth'],
    ['as much as can be counted', { volume: '9007199254740991' }, '422 bandwidth_unavailable Bandwidth'],
    ['a duration too', { duration: 'PT1H' }, '422 date_invalid Date'],
    ['a bandwidth of nothing', { bandwidth: '0' }, '422 bandwidth_invalid Bandwidth'],
  ])('%s: %3$s', async (_, changes, expected) => {
    expect(outcome(await lead.book(transfer(changes)))).toBe(expected);
  });
});

test('under an idempotency key a search books once, and another search is another request', async () => {
  const { service, lead } = await busyLink();
  const key = { 'idempotency-key': 'k' };
  const first = reservationIn(await lead.book(twoHours(), EARLIEST, key));
  service.moveTo(MINUTE);
  const again = await lead.book(twoHours({ duration: 'PT120M' }), EARLIEST, key);
  expect(reservationIn(again)).toEqual(first);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  const { rows } = service;
  const before = rows();
  const others: [Record<string, unknown>, string][] = [
    [twoHours({ duration: 'PT3H' }), EARLIEST],
    [booking({ ...hours(1, 10), bandwidth: '500' }), ''],
    [transfer({ bandwidth: '500' }), ''],
    [transfer(), ''],
  ];
  for (const [body, query] of others) {
    expect(outcome(await lead.book(body, query, key))).toBe('409 idempotency_key_reused');
  }
  expect(rows()).toEqual(before);
});

describe('refused dates', async () => {
  // The experiment lasts for ten days, the link's 1000 Mbps are used by 600 from hour 2 to 4.
  const { service, lead: shared } = await busyLink();
  const experiment = await service.newExperiment('short', 10 * DAY);
  const lead = await service.as('lead', experiment);
  beforeEach(() => service.moveTo(0));
  const alternativesOf = async (body: Record<string, unknown>, query = '') => {
    const { code, detail, alternatives } = problemIn(await lead.book(body, query));
    return { code, msg: detail[0]?.msg ?? '', alternatives };
  };
  const late = { start_date: at(5 * HOUR), end_date: at(11 * DAY) };

  test('past the expiry: the longest that ends with it, which is accepted', async () => {
    const { code, msg, alternatives } = await alternativesOf(booking(late));
    expect(code).toBe('experiment_ends_first');
    expect(msg).toMatch(/ Would be accepted: 100 Mbps from .* to .*\.$/);
    const [longest, other] = alternatives ?? [];
    expect([longest, other]).toEqual([
      { kind: 'longest', start_now: false, ...late, end_date: at(10 * DAY), bandwidth: 100 },
      undefined,
    ]);
    const { end_date } = longest ?? {};
    expect(outcome(await lead.book(booking({ ...late, end_date }), 'dry_run=true'))).toBe('200');
  });

  test('a start in the past: at once, with the same end, also a second later', async () => {
    const past = booking({ start_date: at(-HOUR), end_date: at(2 * HOUR) });
    const { code, alternatives } = await alternativesOf(past);
    expect(code).toBe('date_past');
    expect(alternatives).toEqual([
      { kind: 'longest', start_now: true, start_date: null, end_date: at(2 * HOUR), bandwidth: 100 },
    ]);
    service.moveTo(SECOND);
    const asked = booking({ start_date: null, end_date: at(2 * HOUR) });
    expect(outcome(await lead.book(asked, 'start_now=true&dry_run=true'))).toBe('200');
  });

  test('a search past the expiry: what it finds until then', async () => {
    const { alternatives } = await alternativesOf(twoHours({ end_date: at(11 * DAY) }), EARLIEST);
    expect(alternatives).toEqual([{ kind: 'earliest', start_now: false, ...hours(4, 6), bandwidth: 500 }]);
    const volume = await alternativesOf(
      transfer({ end_date: at(11 * DAY), start_date: null }),
      'start_now=true',
    );
    expect(volume.alternatives).toMatchObject([{ kind: 'earliest', start_now: false, bandwidth: 400 }]);
    const [{ start_date } = {}] = volume.alternatives ?? [];
    expect(Date.parse(start_date ?? '')).toBeGreaterThanOrEqual(Date.parse(at(SECOND)));
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['an end in the past', { start_date: at(-2 * HOUR), end_date: at(-HOUR) }, 'date_past'],
    ['an end before the start', hours(5, 4), 'period_empty'],
    [
      'a start after the expiry',
      { start_date: at(10 * DAY), end_date: at(11 * DAY) },
      'experiment_ends_first',
    ],
    ['a site that is not there too', { ...late, site1: 'be-ghent1' }, 'site_unknown'],
    ['half a second that is left', { start_date: at(-HOUR), end_date: at(500) }, 'date_past'],
  ])('%s: none', async (_, changes, code) => {
    expect(await alternativesOf(booking(changes))).toMatchObject({ code, alternatives: undefined });
  });

  test('of an update: the longest, unless that is how it stands', async () => {
    const own = reservationIn(await lead.book(booking(hours(5, 6))));
    const refused = problemIn(await lead.update(own.id, { end_date: at(11 * DAY), bandwidth: '200' }));
    expect(refused.alternatives).toEqual([
      { kind: 'longest', start_now: false, ...hours(5, 240), bandwidth: 200 },
    ]);
    expect(outcome(await lead.update(own.id, { end_date: at(10 * DAY) }))).toBe('200');
    const same = problemIn(await lead.update(own.id, { end_date: at(11 * DAY) }));
    expect(same.alternatives).toBeUndefined();
    const past = problemIn(await lead.update(own.id, { start_date: at(-HOUR), end_date: at(HOUR) }));
    expect(past.alternatives).toEqual([
      { kind: 'longest', start_now: true, start_date: null, end_date: at(HOUR), bandwidth: 100 },
    ]);
  });

  test('of an update of one that has started: its start stays', async () => {
    const own = reservationIn(await lead.book(booking({ start_date: at(0), end_date: at(HOUR) })));
    service.moveTo(MINUTE);
    const change = { start_date: at(-HOUR), end_date: at(2 * HOUR) };
    expect(problemIn(await lead.update(own.id, change)).alternatives).toEqual([
      { kind: 'longest', start_now: false, start_date: at(0), end_date: at(2 * HOUR), bandwidth: 100 },
    ]);
    await shared.delete(own.id);
  });
});
