import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { MAX_BANDWIDTH } from '../../src/contract/amounts.ts';
import { stateAt } from '../../src/contract/instants.ts';
import {
  MAX_TOKENS,
  PeriodBody,
  Reservation,
  ReservationReply,
  ReservationUpdate,
} from '../../src/contract/reservation.ts';
import { RESERVATION } from '../fixtures/tokens.ts';

const BODY = {
  ...{ site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: '1000', tokens: ['a.b.c'] },
  start_date: '2026-12-01T10:00:00.000Z',
  end_date: '2026-12-02T10:00:00.000Z',
};
const [START, END] = [Date.UTC(2026, 11, 1, 10), Date.UTC(2026, 11, 2, 10)];
const READ = { ...BODY, bandwidth: 1000, start_date: START, end_date: END };

/** The messages about a request body, each with its member. Empty when the body is accepted. */
function problems(body: unknown, schema: typeof PeriodBody | typeof ReservationUpdate = PeriodBody) {
  const { issues = [] } = v.safeParse(schema, body);
  return issues.map((issue) => ({ member: v.getDotPath(issue), message: issue.message }));
}

test('the bounds are fifteen digits of bandwidth and sixteen tokens', () => {
  expect([MAX_BANDWIDTH, MAX_TOKENS]).toEqual([999_999_999_999_999, 16]);
});

/** A value nested so deeply that recursion would overflow the stack. */
const DEEP: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);

describe('PeriodBody', () => {
  test('gives dates in milliseconds and bandwidth in Mbps, and ignores members that the specification does not name', () => {
    expect(v.parse(PeriodBody, { ...BODY, id: 'x', site1_s_tag: 5 })).toEqual(READ);
  });

  test.each<[string, number]>([
    ['1', 1],
    ['007', 7],
    ['100000', 100_000],
    ['999999999999999', MAX_BANDWIDTH],
  ])('row 36: bandwidth %j is accepted', (bandwidth, due) => {
    expect(v.parse(PeriodBody, { ...BODY, bandwidth }).bandwidth).toBe(due);
  });

  test.each<[part: string, ...unknown[]]>([
    ['at least 1', '0', '000'],
    ['digits', '-1', '+1', '1e3', '0x10', '1.0', '1,000', '1_000', '10G', '1000 Mbps', '١٠٠', '１００', '²'],
    ['digits', '', ' ', ' 1', '1 ', '1\n', 'x\n1', '1\0', 'NaN', 'Infinity'],
    ['more than any link', '1000000000000000', `1${'0'.repeat(30)}`, '9'.repeat(100_000)],
    ['string of digits', 100, 1e30, 0, true, null, ['1000'], {}],
    ['missing', undefined],
  ])('row 36: bandwidth %j is refused, and the message says what is expected', (part, ...values) => {
    for (const bandwidth of values) {
      const found = problems({ ...BODY, bandwidth });
      expect(found).toEqual([{ member: 'bandwidth', message: expect.stringContaining(part) }]);
      expect(found[0]?.message).toMatch(/^.{0,200}bandwidth.{0,200}$/s);
    }
  });

  test('start_date can be null, and end_date can’t', () => {
    expect(v.parse(PeriodBody, { ...BODY, start_date: null })).toEqual({ ...READ, start_date: null });
    expect(problems({ ...BODY, end_date: null })).toMatchObject([{ member: 'end_date' }]);
  });

  test.each([
    ['2026-12-01T10:00:00', 'with a zone'],
    ['2026-02-30T10:00:00Z', 'got "2026-02-30T10:00:00Z"'],
    ['10000-01-01T00:00:00Z', 'got "10000'],
    ['', 'got ""'],
    [1_796_119_200_000, 'got 1796119200000'],
    [true, 'got true'],
    [{}, 'got an object'],
    [undefined, 'it is missing'],
  ])('row 36: the date %j is refused, and the message says what was received', (value, part) => {
    for (const member of ['start_date', 'end_date']) {
      const [found, ...more] = problems({ ...BODY, [member]: value });
      expect([found?.member, more]).toEqual([member, []]);
      for (const each of [member, part]) expect(found?.message).toContain(each);
    }
  });

  test.each(['site1', 'site2'])('row 36: %s must be text, of any content', (member) => {
    for (const value of ['nowhere', '', '../x', 'x'.repeat(1000)]) {
      expect(problems({ ...BODY, [member]: value })).toEqual([]);
    }
    for (const value of [null, 5, [], {}, undefined]) {
      expect(problems({ ...BODY, [member]: value })).toEqual([
        { member, message: expect.stringContaining(member) },
      ]);
    }
  });

  test('tokens are 16 texts at most', () => {
    const some = (count: number) => Array.from({ length: count }, () => 'x');
    for (const tokens of [[], some(16)]) expect(problems({ ...BODY, tokens })).toEqual([]);
    for (const tokens of [some(17), 'a.b.c', null, { 0: 'x', length: 1 }, [5], [null], undefined]) {
      expect(problems({ ...BODY, tokens })).not.toEqual([]);
    }
  });

  test('all wrong members are named at once, and a body that is no object is refused', () => {
    const wrong = Object.fromEntries(Object.keys(BODY).map((member) => [member, null]));
    for (const body of [{ ...wrong, start_date: 'x' }, {}]) {
      expect(
        problems(body)
          .map(({ member }) => member)
          .toSorted(),
      ).toEqual(Object.keys(BODY).toSorted());
    }
    for (const body of [null, [], 'x', 5]) expect(problems(body)).not.toEqual([]);
  });

  test.each(Object.keys(BODY))(
    'row 36: %s that is nested 100,000 deep or large gets a short message',
    (member) => {
      for (const value of [DEEP, { a: DEEP }]) expect(problems({ ...BODY, [member]: value })).not.toEqual([]);
      for (const value of ['x'.repeat(3_000_000), { a: 'x'.repeat(3_000_000) }]) {
        for (const { message } of problems({ ...BODY, [member]: value }))
          expect(message.length).toBeLessThan(250);
      }
    },
  );

  test('row 11: the message does not repeat a token that replaces the list', () => {
    const token = 'eyJhbGciOiJFUzI1NiJ9.CANARYCANARYCANARYCANARY.CANARY';
    for (const tokens of [token, { token }, [[token]], [{ token }]]) {
      const found = problems({ ...BODY, tokens });
      expect(found).toEqual([{ member: expect.any(String), message: expect.not.stringContaining('CANARY') }]);
    }
  });
});

describe('ReservationUpdate', () => {
  test('an absent member stays absent', () => {
    expect(v.parse(ReservationUpdate, {})).toEqual({});
    expect(v.parse(ReservationUpdate, { bandwidth: '5' })).toEqual({ bandwidth: 5 });
    expect(v.parse(ReservationUpdate, BODY)).toEqual(READ);
  });

  test('a present member is checked as in a create request', () => {
    const wrong = { bandwidth: '0', end_date: null, start_date: 'x', site1: null, tokens: 'x' };
    for (const [member, value] of Object.entries(wrong)) {
      expect(problems({ [member]: value }, ReservationUpdate)).toMatchObject([{ member }]);
    }
  });
});

describe('ReservationReply: a client reads any service’s spelling', () => {
  const read = (changes: Record<string, unknown>) => {
    const { success, output } = v.safeParse(ReservationReply, { ...RESERVATION, ...changes });
    return success ? output : 'refused';
  };

  test('the reference server’s answer stays unchanged, and other members are left out', () => {
    expect(v.parse(Reservation, RESERVATION)).toEqual(RESERVATION);
    expect(read({ status: 'active', links: [{ a: 1 }], '\u001b[2J': 1 })).toEqual(RESERVATION);
  });

  test.each<[unknown, number]>([
    [1000, 1000],
    ['1000', 1000],
    ['007', 7],
    [1, 1],
    [1e5, 100_000],
    ['999999999999999', MAX_BANDWIDTH],
  ])('bandwidth %j is read', (bandwidth, due) => {
    expect(read({ bandwidth })).toEqual({ ...RESERVATION, bandwidth: due });
  });

  const dates = ['start_date', 'end_date', 'created_at'];
  test.each([
    ...['2026-12-01T10:00:00.500Z', '2026-12-01T10:00:00.5Z', '2026-12-01T10:00:00.500000Z'],
    ...['2026-12-01T10:00:00.5', '2026-12-01T12:00:00.5+02:00', '2026-12-01t10:00:00.5z'],
  ])('the timestamp %s is read', (text) => {
    for (const member of dates) {
      expect(read({ [member]: text })).toEqual({ ...RESERVATION, [member]: '2026-12-01T10:00:00.500Z' });
    }
  });

  const notTimes = ['2026-02-30T10:00:00Z', '2026-12-01', '10000-01-01T00:00:00Z', '', 'now', 5, null];
  const notIds = ['', 'x', 'proj_h_x', 'con_h_../x', 5];
  const notSites = ['', 'BE-Gent1', 'a b', '\u001b[2J', '-a', 'a-', 'a'.repeat(64), null];
  const notTags = [0, 4095, -1, 1.5, '100', null];
  test.each<[members: string[], values: unknown[]]>([
    [
      ['bandwidth'],
      [0, '0', -1, '-1', 1.5, '1.5', '1e3', '', ' 1', '١٠٠', '1000000000000000', true, [1000], {}],
    ],
    [dates, notTimes],
    [['id', 'experiment_id', 'created_by'], notIds],
    [['site1', 'site2'], notSites],
    [['site1_s_tag', 'site1_c_tag', 'site2_s_tag', 'site2_c_tag'], notTags],
    [Object.keys(RESERVATION), [undefined]],
  ])('%j can’t be one of %j', (members, values) => {
    for (const member of members) {
      for (const value of values)
        expect([member, value, read({ [member]: value })]).toEqual([member, value, 'refused']);
    }
  });

  test('a tag is 1 to 4094, and a site any name that can be printed', () => {
    const other = { site1: 'xx-elsewhere2', site1_s_tag: 1, site2_c_tag: 4094 };
    expect(read(other)).toEqual({ ...RESERVATION, ...other });
  });

  test('the reference server itself answers bandwidth as a number', () => {
    expect(v.is(Reservation, { ...RESERVATION, bandwidth: '1000' })).toBe(false);
  });
});

test.each([
  [99, 'scheduled'],
  [100, 'active'],
  [199, 'active'],
  [200, 'ended'],
])('row 37: at %i of [100, 200): %s', (now, state) => {
  expect(stateAt(now, { start: 100, end: 200 })).toBe(state);
});
