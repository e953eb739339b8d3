import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { MAX_BANDWIDTH } from '../../src/contract/bandwidth.ts';
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
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: '1000',
  start_date: '2026-12-01T10:00:00.000Z',
  end_date: '2026-12-02T10:00:00.000Z',
  tokens: ['a.b.c'],
};
const READ = {
  ...BODY,
  bandwidth: 1000,
  start_date: Date.UTC(2026, 11, 1, 10),
  end_date: Date.UTC(2026, 11, 2, 10),
};

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
  test('gives dates in milliseconds and bandwidth in Mbps', () => {
    expect(v.parse(PeriodBody, BODY)).toEqual(READ);
  });

  test('members that the specification does not name are ignored', () => {
    expect(v.parse(PeriodBody, { ...BODY, id: 'x', site1_s_tag: 5 })).toEqual(READ);
  });

  test.each<[string, number]>([
    ['1', 1],
    ['1000', 1000],
    ['007', 7],
    ['100000', 100_000],
    ['999999999999999', MAX_BANDWIDTH],
  ])('row 36: bandwidth %j is accepted', (bandwidth, due) => {
    expect(v.parse(PeriodBody, { ...BODY, bandwidth }).bandwidth).toBe(due);
  });

  test.each<[unknown, string]>([
    ['0', 'at least 1'],
    ['000', 'at least 1'],
    ['-1', 'digits'],
    ['+1', 'digits'],
    ['1e3', 'digits'],
    ['0x10', 'digits'],
    ['1.0', 'digits'],
    ['1,000', 'digits'],
    ['1_000', 'digits'],
    ['1000 Mbps', 'digits'],
    ['10G', 'digits'],
    ['١٠٠', 'digits'],
    ['１００', 'digits'],
    ['²', 'digits'],
    ['', 'digits'],
    [' ', 'digits'],
    [' 1', 'digits'],
    ['1 ', 'digits'],
    ['1\n', 'digits'],
    ['x\n1', 'digits'],
    ['1\0', 'digits'],
    ['NaN', 'digits'],
    ['Infinity', 'digits'],
    ['1000000000000000', 'more than any link'],
    [`1${'0'.repeat(30)}`, 'more than any link'],
    ['9'.repeat(100_000), 'more than any link'],
    [100, 'string of digits'],
    [1e30, 'string of digits'],
    [0, 'string of digits'],
    [true, 'string of digits'],
    [null, 'string of digits'],
    [['1000'], 'string of digits'],
    [{}, 'string of digits'],
    [undefined, 'missing'],
  ])('row 36: bandwidth %j is refused, and the message says what is expected', (bandwidth, part) => {
    const [problem, ...more] = problems({ ...BODY, bandwidth });
    expect(more).toEqual([]);
    expect(problem?.member).toBe('bandwidth');
    expect(problem?.message).toContain('bandwidth');
    expect(problem?.message).toContain(part);
    expect(problem?.message.length).toBeLessThan(250);
  });

  test('start_date can be null, and end_date can’t', () => {
    expect(v.parse(PeriodBody, { ...BODY, start_date: null })).toEqual({ ...READ, start_date: null });
    expect(problems({ ...BODY, end_date: null })).toMatchObject([{ member: 'end_date' }]);
  });

  test.each(['start_date', 'end_date'])('row 36: a %s that is not an instant is refused', (member) => {
    const values = [
      '2026-12-01T10:00:00',
      '2026-02-30T10:00:00Z',
      '10000-01-01T00:00:00Z',
      '2026-12-01',
      '',
      1_796_119_200_000,
      true,
      {},
      undefined,
    ];
    for (const value of values) {
      expect(problems({ ...BODY, [member]: value })).toMatchObject([
        { member, message: expect.stringContaining(member) },
      ]);
    }
  });

  test.each(['site1', 'site2'])(
    'row 36: %s must be text, of any content: the schema does not know the sites',
    (member) => {
      for (const value of ['nowhere', '', '../x', 'x'.repeat(1000)]) {
        expect(problems({ ...BODY, [member]: value })).toEqual([]);
      }
      for (const value of [null, 5, [], {}, undefined]) {
        expect(problems({ ...BODY, [member]: value })).toMatchObject([
          { member, message: expect.stringContaining(member) },
        ]);
      }
    },
  );

  test.each<[string, unknown, boolean]>([
    ['none', [], true],
    ['16', Array.from({ length: MAX_TOKENS }, () => 'x'), true],
    ['17', Array.from({ length: MAX_TOKENS + 1 }, () => 'x'), false],
    ['a text', 'a.b.c', false],
    ['null', null, false],
    ['an object', { 0: 'x', length: 1 }, false],
    ['a number in the list', [5], false],
    ['null in the list', [null], false],
    ['nothing', undefined, false],
  ])('tokens: %s', (_, tokens, accepted) => {
    expect(problems({ ...BODY, tokens }).length === 0).toBe(accepted);
  });

  test('all wrong members are named at once', () => {
    const wrong = { site1: 1, site2: null, bandwidth: 'x', start_date: 'x', end_date: 'x', tokens: 'x' };
    expect(problems(wrong).map(({ member }) => member)).toEqual(Object.keys(BODY));
    expect(problems({}).map(({ member }) => member)).toEqual(Object.keys(BODY));
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['a list', []],
    ['text', 'x'],
    ['a number', 5],
  ])('row 36: a body that is %s is refused', (_, body) => {
    expect(problems(body)).not.toEqual([]);
  });

  test.each(Object.keys(BODY))(
    'row 36: %s that is nested 100,000 deep is refused without an exception',
    (member) => {
      expect(problems({ ...BODY, [member]: DEEP })).not.toEqual([]);
      expect(problems({ ...BODY, [member]: { a: DEEP } })).not.toEqual([]);
    },
  );

  test.each(Object.keys(BODY))('row 36: three megabytes of %s give a short message', (member) => {
    for (const value of ['x'.repeat(3_000_000), { a: 'x'.repeat(3_000_000) }]) {
      for (const { message } of problems({ ...BODY, [member]: value }))
        expect(message.length).toBeLessThan(250);
    }
  });

  test('row 11: the message does not repeat a token that replaces the list', () => {
    const token = 'eyJhbGciOiJFUzI1NiJ9.CANARYCANARYCANARYCANARY.CANARY';
    for (const tokens of [token, { token }, [[token]], [{ token }]]) {
      const found = problems({ ...BODY, tokens });
      expect(found).toHaveLength(1);
      expect(found[0]?.message).not.toContain('CANARY');
    }
  });
});

describe('ReservationUpdate', () => {
  test('an absent member stays absent', () => {
    expect(v.parse(ReservationUpdate, {})).toEqual({});
    expect(v.parse(ReservationUpdate, { bandwidth: '5' })).toEqual({ bandwidth: 5 });
    expect(v.parse(ReservationUpdate, BODY)).toEqual(READ);
  });

  test.each<[string, unknown]>([
    ['bandwidth', '0'],
    ['bandwidth', 5],
    ['bandwidth', null],
    ['end_date', null],
    ['end_date', '2026-12-01T10:00:00'],
    ['start_date', 'x'],
    ['site1', null],
    ['tokens', 'x'],
  ])('a present member is checked as in a create request: %s %j', (member, value) => {
    expect(problems({ [member]: value }, ReservationUpdate)).toMatchObject([{ member }]);
  });
});

describe('ReservationReply: a client reads any service’s spelling', () => {
  const read = (changes: Record<string, unknown>) =>
    v.safeParse(ReservationReply, { ...RESERVATION, ...changes });

  test('the reference server’s answer stays unchanged', () => {
    expect(v.parse(Reservation, RESERVATION)).toEqual(RESERVATION);
    expect(v.parse(ReservationReply, RESERVATION)).toEqual(RESERVATION);
  });

  test.each<[unknown, number]>([
    [1000, 1000],
    ['1000', 1000],
    ['007', 7],
    [1, 1],
    [1e5, 100_000],
    ['999999999999999', MAX_BANDWIDTH],
  ])('bandwidth %j is read', (bandwidth, due) => {
    expect(read({ bandwidth })).toMatchObject({ success: true, output: { ...RESERVATION, bandwidth: due } });
  });

  test.each([
    0,
    '0',
    -1,
    '-1',
    1.5,
    '1.5',
    '1e3',
    '',
    ' 1',
    '١٠٠',
    '1000000000000000',
    null,
    true,
    [1000],
    {},
    undefined,
  ])('bandwidth %j is refused', (bandwidth) => {
    expect(read({ bandwidth }).success).toBe(false);
  });

  const due = '2026-12-01T10:00:00.500Z';
  test.each([
    due,
    '2026-12-01T10:00:00.5Z',
    '2026-12-01T10:00:00.50Z',
    '2026-12-01T10:00:00.500000Z',
    '2026-12-01T10:00:00.5',
    '2026-12-01T10:00:00.500',
    '2026-12-01T12:00:00.5+02:00',
    '2026-12-01t10:00:00.5z',
  ])('the timestamp %s is read', (text) => {
    for (const member of ['start_date', 'end_date', 'created_at']) {
      expect(read({ [member]: text })).toMatchObject({
        success: true,
        output: { ...RESERVATION, [member]: due },
      });
    }
  });

  test('a timestamp without a fraction gets milliseconds', () => {
    expect(read({ end_date: '2026-12-01T10:00:00' })).toMatchObject({
      output: { end_date: '2026-12-01T10:00:00.000Z' },
    });
  });

  test.each(['2026-02-30T10:00:00Z', '2026-12-01', '10000-01-01T00:00:00Z', '', 'now', 5, null, undefined])(
    'the timestamp %j is refused',
    (value) => {
      for (const member of ['start_date', 'end_date', 'created_at']) {
        expect(read({ [member]: value }).success).toBe(false);
      }
    },
  );

  test('members that the specification does not name are left out', () => {
    const found = read({ status: 'active', links: [{ a: 1 }], '\u001b[2J': 1 });
    expect(found).toMatchObject({ success: true });
    expect(found.output).toEqual(RESERVATION);
  });

  test.each(Object.keys(RESERVATION))('%s must be there', (member) => {
    expect(read({ [member]: undefined }).success).toBe(false);
  });

  test.each(['site1_s_tag', 'site1_c_tag', 'site2_s_tag', 'site2_c_tag'])(
    '%s is a VLAN tag, 1 to 4094',
    (member) => {
      for (const tag of [1, 4094]) expect(read({ [member]: tag }).success).toBe(true);
      for (const tag of [0, 4095, -1, 1.5, '100', null]) expect(read({ [member]: tag }).success).toBe(false);
    },
  );

  test.each(['id', 'experiment_id', 'created_by'])('%s must be an identifier of its kind', (member) => {
    for (const id of ['', 'x', 'proj_h_x', 'con_h_../x', 5])
      expect(read({ [member]: id }).success).toBe(false);
  });

  test.each(['site1', 'site2'])('%s must be a name that can be printed', (member) => {
    expect(read({ [member]: 'xx-elsewhere2' }).success).toBe(true);
    for (const name of ['', 'BE-Gent1', 'a b', '\u001b[2J', '-a', 'a-', 'a'.repeat(64), null]) {
      expect(read({ [member]: name }).success).toBe(false);
    }
  });

  test('the reference server itself answers bandwidth as a number and timestamps with a zone', () => {
    expect(v.is(Reservation, { ...RESERVATION, bandwidth: '1000' })).toBe(false);
    expect(v.is(Reservation, { ...RESERVATION, end_date: '2026-12-01T10:00:00' })).toBe(false);
  });
});

describe('stateAt: the period is half-open', () => {
  test.each([
    [99, 'scheduled'],
    [100, 'active'],
    [199, 'active'],
    [200, 'ended'],
    [201, 'ended'],
  ])('row 37: at %i of [100, 200): %s', (now, state) => {
    expect(stateAt(now, { start: 100, end: 200 })).toBe(state);
  });
});
