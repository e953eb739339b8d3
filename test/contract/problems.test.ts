import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import {
  DETAIL_LOCATIONS,
  PROBLEM_CODES,
  PROBLEMS,
  type ProblemCode,
} from '../../src/contract/problem-codes.ts';
import { ProblemBody, problemBody } from '../../src/contract/problems.ts';
import { ROUTES, type Route } from '../../src/contract/routes.ts';

const CODES = PROBLEM_CODES;

/** The statuses of contract/README.md, "Status codes". */
const STATUSES: Record<number, ProblemCode[]> = {
  400: ['body_unreadable', 'experiment_tokens_differ', 'request_invalid'],
  403: [
    'role_not_allowed',
    'scope_missing',
    'token_expired',
    'token_invalid',
    'token_missing',
    'wrong_experiment',
    'wrong_project',
  ],
  404: ['not_found'],
  405: ['method_not_allowed'],
  409: ['idempotency_key_reused', 'name_taken'],
  413: ['body_too_large'],
  415: ['media_type_unsupported'],
  410: ['cursor_too_old'],
  421: ['host_unknown'],
  429: ['too_many_requests'],
  500: ['internal'],
  503: ['outcome_unknown', 'unavailable'],
};

test('every code has its status', () => {
  for (const [status, codes] of Object.entries(STATUSES)) {
    for (const code of codes) expect([code, PROBLEMS[code].status]).toEqual([code, Number(status)]);
  }
});

test('every other code is a refusal with 422', () => {
  const named = new Set(Object.values(STATUSES).flat());
  for (const code of CODES.filter((one) => !named.has(one))) {
    expect([code, PROBLEMS[code].status]).toEqual([code, 422]);
    expect(code).toMatch(
      /^no_route$|^(?:volume|site|date|period|reservation|experiment|project|bandwidth|vlans|share|tokens|name|description|items|search|ci_rule)s?_/,
    );
  }
});

test('every code consists of lower-case words', () => {
  for (const code of CODES) expect(code).toMatch(/^[a-z]+(?:_[a-z]+)*$/);
});

test('every code is listed for at least one route', () => {
  const everywhere = ['request_invalid', 'host_unknown', 'internal', 'method_not_allowed'];
  everywhere.push('unavailable', 'outcome_unknown');
  const routes: Route[] = Object.values(ROUTES);
  const answered = new Set([...routes.flatMap(({ problems }) => problems), ...everywhere]);
  expect(CODES.filter((code) => !answered.has(code))).toEqual([]);
});

describe('problemBody', () => {
  test('the locations are those of the API as it is given', () =>
    expect(DETAIL_LOCATIONS).toEqual(['Site', 'Date', 'Bandwidth']));

  test.each([
    ['site_unknown', 'Site'],
    ['date_past', 'Date'],
    ['vlans_unavailable', 'Bandwidth'],
  ] as const)('%s is at %s', (code, loc) => {
    expect(problemBody([{ code, msg: 'text' }])).toEqual({
      code,
      detail: [{ loc: [loc], msg: 'text', type: 'NotValid', code }],
    });
  });

  test('loc is empty when it is not Site, Date or Bandwidth', () => {
    expect(problemBody([{ code: 'token_missing', msg: 'text' }])).toEqual({
      code: 'token_missing',
      detail: [{ loc: [], msg: 'text', type: 'NotValid', code: 'token_missing' }],
    });
  });

  test('the first of several problems gives the code, and the order stays', () => {
    const body = problemBody([
      { code: 'date_past', msg: 'one' },
      { code: 'bandwidth_invalid', msg: 'two' },
    ]);
    expect(body.code).toBe('date_past');
    expect(body.detail.map(({ msg }) => msg)).toEqual(['one', 'two']);
  });

  const alternative = {
    kind: 'most_bandwidth' as const,
    start_now: false,
    bandwidth: 5,
    start_date: '2026-12-01T10:00:00.000Z',
    end_date: '2026-12-02T10:00:00.000Z',
  };
  test('it holds the alternatives, if there are any', () => {
    const problem = { code: 'bandwidth_unavailable', msg: 'text' } as const;
    expect(problemBody([problem], { alternatives: [alternative] }).alternatives).toEqual([alternative]);
    expect(problemBody([problem], { alternatives: [] })).not.toHaveProperty('alternatives');
  });

  test.each(CODES)('a body for %s fits the schema', (code) => {
    const body = problemBody([{ code, msg: 'text' }], { alternatives: [alternative] });
    expect(v.parse(ProblemBody, JSON.parse(JSON.stringify(body)))).toEqual(body);
  });

  const detail = { loc: [], msg: 'text', type: 'NotValid' };
  test.each<[string, unknown]>([
    ['an unknown code', { code: 'other', detail: [detail] }],
    ['a name that every object has as code', { code: 'toString', detail: [detail] }],
    ['no code', { detail: [detail] }],
    ['no detail', { code: 'internal' }],
    ['an empty detail', { code: 'internal', detail: [] }],
    ['a detail that is text', { code: 'internal', detail: 'text' }],
    ['another location', { code: 'internal', detail: [{ ...detail, loc: ['body'] }] }],
    ['a location that is text', { code: 'internal', detail: [{ ...detail, loc: 'Site' }] }],
    ['no message', { code: 'internal', detail: [{ loc: [], type: 'NotValid' }] }],
  ])('the schema refuses %s', (_, body) => {
    expect(v.is(ProblemBody, body)).toBe(false);
  });
});
