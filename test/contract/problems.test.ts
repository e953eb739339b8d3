import * as v from 'valibot';
import { expect, test } from 'vitest';
import { problemsOf } from '../../src/contract/openapi.ts';
import {
  PROBLEM_CODES,
  PROBLEMS,
  ProblemBody,
  type ProblemCode,
  problemBody,
} from '../../src/contract/problems.ts';
import { ROUTES, type Route } from '../../src/contract/routes.ts';

/** The statuses of contract/README.md, "Status codes". */
const STATUSES: Record<number, string> = {
  400: 'body_unreadable request_invalid experiment_tokens_differ',
  403: 'token_missing token_invalid token_expired scope_missing role_not_allowed wrong_experiment wrong_project',
  404: 'not_found',
  405: 'method_not_allowed',
  409: 'name_taken idempotency_key_reused',
  410: 'cursor_too_old',
  413: 'body_too_large',
  415: 'media_type_unsupported',
  421: 'host_unknown',
  429: 'too_many_requests',
  500: 'internal',
  503: 'unavailable outcome_unknown',
};

test('every code has its status, and all others are refusals with 422', () => {
  const { 422: rules = [], ...others } = Object.groupBy(PROBLEM_CODES, (code) => PROBLEMS[code].status);
  expect(others).toEqual(
    Object.fromEntries(Object.entries(STATUSES).map(([status, codes]) => [status, codes.split(' ')])),
  );
  for (const code of rules) {
    expect(code).toMatch(
      /^no_route$|^not_supported$|^(?:volume|site|date|period|reservation|experiment|project|bandwidth|vlans|share|tokens|name|description|items|search|ci_rule)s?_[a-z_]+$/,
    );
  }
});

test('every code is listed for at least one route', () => {
  const routes: Route[] = Object.values(ROUTES);
  const answered = new Set(routes.flatMap((route) => [...problemsOf(route)]));
  expect(PROBLEM_CODES.filter((code) => !answered.has(code))).toEqual(['method_not_allowed']);
});

test.each<[ProblemCode, string[]]>([
  ['site_unknown', ['Site']],
  ['date_past', ['Date']],
  ['vlans_unavailable', ['Bandwidth']],
  ['token_missing', []],
])('%s is at %j', (code, loc) => {
  expect(problemBody([{ code, msg: 'text' }])).toEqual({
    code,
    detail: [{ loc, msg: 'text', type: 'NotValid', code }],
  });
});

const PERIOD = { start_date: '2026-12-01T10:00:00.000Z', end_date: '2026-12-02T10:00:00.000Z' };

test('the first of several problems gives the code, the order stays, and facts that are empty are left out', () => {
  const [one, two] = [{ code: 'date_past', msg: 'one' } as const, { code: 'internal', msg: 'two' } as const];
  const alternatives = [{ kind: 'earliest' as const, start_now: false, bandwidth: 5, ...PERIOD }];
  const body = problemBody([one, two], { alternatives, free: [] });
  expect([body.code, body.detail.map(({ msg }) => msg)]).toEqual(['date_past', ['one', 'two']]);
  expect(v.parse(ProblemBody, JSON.parse(JSON.stringify(body)))).toEqual(body);
  expect(body.alternatives).toEqual(alternatives);
  expect(body).not.toHaveProperty('free');
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
